"""Reports of rounds that were played before, against the match that wrote them and by hand."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import pytest

import envs
from dream.commands.evaluate import play_match, prepare_match
from dream.config.compose import compose_config
from dream.evaluation import match
from dream.evaluation.recorded import print_reports, recorded_reports
from envs import InputError, records


@pytest.mark.parametrize("name", ["leduc_poker", "rummy500"])
def test_a_match_is_reported_again_from_its_records(name: str, tmp_path: pathlib.Path) -> None:
    """Every quantity and interval of the match's own report; the opponent has the other half of the points."""
    game, path = envs.make(name), tmp_path / "rounds.jsonl"
    one, other = envs.make_bot("random", game), envs.make_bot("greedy" if name == "rummy500" else "random", game)
    rounds: list[records.Record] = []

    def keep(played: dict) -> None:
        seats = ["b"] * game.num_players
        seats[played["seat"]] = "a"
        about = {"pair": played["pair"], "seat": played["seat"]}
        rounds.append(records.finished(game, played["deal"], played["actions"], played["won"], seats, about=about))

    expected = match(game, one, other, games=42, seed=3, on_hand=keep)
    records.write(path, rounds)
    (report,) = recorded_reports(records.read(path))
    assert (report["game"], report["unit"], report["rounds"]) == (name, game.unit, 42)
    player = report["players"]["a"]
    assert player["n"] == 42
    quantities = {key: value for key, value in expected.items() if hasattr(value, "low")}
    assert "points_per_hand" in quantities
    for key, interval in quantities.items():
        found = [player[key][part] for part in ("mean", "low", "high")]
        assert found == pytest.approx(list(interval), abs=1e-3), key
    if name == "leduc_poker":
        assert report["players"]["b"]["points_per_hand"]["mean"] == pytest.approx(-player["points_per_hand"]["mean"])


def test_a_round_of_two_games_to_a_target_counts_once() -> None:
    """Both games of a pair may take a deal in the same seat: that round is in the file twice, in the report once."""
    game = envs.make("kuhn_poker")

    def played(pair: int, seat: int, number: int) -> records.Record:
        about = {"hand": 2 * pair + seat, "pair": pair, "seat": seat, "game": number, "round": 0}
        return records.record(game, [2, 0, 1], [1, 1], players=[("a", "b"), ("b", "a")][seat], about=about)

    once = [played(0, 0, 0), played(0, 1, 1), played(1, 1, 0), played(2, 1, 2)]
    twice = [*once[:3], played(1, 1, 1), once[3]]
    (expected,), (found,) = recorded_reports(once), recorded_reports(twice)
    assert found == expected
    assert found["rounds"] == found["players"]["a"]["n"] == 4


def test_a_quantity_may_be_named_rounds(capsys: pytest.CaptureFixture) -> None:
    """As of games to a target: it is the mean number of rounds, and how many games there are is kept apart."""
    game = envs.make("rummy500", num_players=2, target=20, max_rounds=2, max_turns=8)
    one, rounds = envs.make_bot("greedy", game), []

    def keep(played: dict) -> None:
        about = {"pair": played["pair"], "seat": played["seat"]}
        rounds.append(records.finished(game, played["deal"], played["actions"], played["won"], ["a", "b"], about=about))

    match(game, one, one, games=4, seed=3, on_hand=keep)
    (report,) = recorded_reports(rounds)
    player = report["players"]["a"]
    assert player["n"] == 4
    assert 1 <= player["rounds"]["mean"] <= 2
    print_reports([report])
    assert "rummy500, 4 rounds" in capsys.readouterr().out


def test_rounds_of_people(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    """Kuhn by hand: three rounds without pairs; the command prints and keeps the report of each game."""
    game, path = envs.make("kuhn_poker"), tmp_path / "played.jsonl"
    deals = [([2, 0, 1], [1, 1]), ([0, 2, 1], [0, 0]), ([1, 2, 0], [1, 0])]  # king wins 2; loses 1; bluff wins 1
    rounds = [records.record(game, deal, moves, players=("anna", "otto")) for deal, moves in deals]
    records.write(path, rounds)
    play_match(prepare_match(compose_config("evaluate", [f"records={path}"])))
    assert "anna" in capsys.readouterr().out
    (report,) = json.loads((tmp_path / "played.jsonl_report.json").read_text())
    anna, otto = report["players"]["anna"], report["players"]["otto"]
    assert anna["points_per_hand"]["mean"] == pytest.approx(2 / 3)
    assert anna["win_rate"]["mean"] == pytest.approx(2 / 3)
    assert otto["points_per_hand"]["mean"] == pytest.approx(-2 / 3)
    assert anna["points_per_hand"]["low"] < 2 / 3 < anna["points_per_hand"]["high"]
    (alone,) = recorded_reports(rounds[:1])
    assert alone["players"]["anna"]["points_per_hand"] == {"mean": 2.0, "low": None, "high": None}


def test_files_of_one_stem_have_a_report_each(tmp_path: pathlib.Path) -> None:
    """games, games.json and games.jsonl are three files."""
    files = [tmp_path / name for name in ("games", "games.json", "games.jsonl")]
    for file in files:
        records.write(file, [records.record(envs.make("kuhn_poker"), [2, 0, 1], [1, 1])])
    prepared = [prepare_match(compose_config("evaluate", [f"records={file}"])) for file in files]
    assert len({*files, *(one.path for one in prepared)}) == 6


def test_players_whose_names_begin_alike_are_two() -> None:
    """As two checkpoints of a run in a deep folder are, whose names differ at their end alone."""
    game = envs.make("kuhn_poker")
    one, other = (f"/home/somebody/work/project/runs/2026-01-01_10-00-00/checkpoints/{n}" for n in (100, 200))
    rounds = [records.record(game, [2, 0, 1], [1, 1], players=(one, other)) for _ in range(2)]
    (report,) = recorded_reports(rounds)
    assert {name: player["points_per_hand"]["mean"] for name, player in report["players"].items()} == {
        one: 2.0,
        other: -2.0,
    }


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture) -> None:
    """Also what rich would take for a style, its end or an emoji."""
    names = ("[self]", "[/b]:dog:")
    rounds = [records.record(envs.make("kuhn_poker"), [2, 0, 1], [1, 1], players=names)] * 2
    print_reports(recorded_reports(rounds))
    shown = capsys.readouterr().out
    assert all(name in shown for name in names)


def test_what_is_refused(tmp_path: pathlib.Path) -> None:
    """A result that is not the game's, a pair without a name, a file without rounds, and settings of a match."""
    path, empty = tmp_path / "rounds.jsonl", tmp_path / "empty.jsonl"
    one = records.record(envs.make("kuhn_poker"), [2, 0, 1], [1, 1])
    records.write(path, [one, dataclasses.replace(one, result={"points": [1.0, -1.0]})])
    empty.write_text("")
    for pair in ([1, 2], None):
        with pytest.raises(InputError, match=r"record: about pair is .*; it must be a number or a text"):
            recorded_reports([dataclasses.replace(one, about={"pair": pair})])
    with pytest.raises(InputError, match=r"record 2: result points=\[1.0, -1.0\]; the game played gives"):
        recorded_reports(records.read(path))
    with pytest.raises(InputError, match="holds no rounds"):
        prepare_match(compose_config("evaluate", [f"records={empty}"]))
    with pytest.raises(InputError, match="leave out opponent, games"):
        prepare_match(compose_config("evaluate", [f"records={path}", "opponent=greedy", "games=8"]))
