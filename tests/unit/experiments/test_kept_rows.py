"""Scripts that add to a file of results: what stands there for what was asked, and in which order."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from types import SimpleNamespace

import gin_levels
import mini_gin_play
import numpy as np
import pytest
import rummy500_players
import rummy500_shaped
from result_tables import corrections, players
from script_support import called

import envs
from dream.evaluation.statistics import Interval
from envs import InputError


def _never(*_: object, **__: object) -> None:
    raise AssertionError("nothing is to be played")


@pytest.fixture
def seats(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Calls the script of rummy 500 by number of players for two of them, of code "old"; matches are made up."""
    report = dict.fromkeys(("shared_win_rate", "score"), Interval(0.5, 0.4, 0.6))
    monkeypatch.setattr(rummy500_players, "match", lambda *_, **__: report)
    monkeypatch.setattr(rummy500_players.blocks, "commit", lambda: "old")
    return lambda *arguments: called(rummy500_players, "--counts", "2", "--out", str(tmp_path / "out.json"), *arguments)


def test_rows_of_other_deals_or_code_are_refused(
    seats: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Before anything is played; rows of the same are kept, and those that do not say what made them are named."""
    out = tmp_path / "out.json"
    assert seats() == 0
    before = out.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(rummy500_players, "match", _never)
        assert seats() == 0
        capsys.readouterr()
        for arguments, reported in ((("--deals", "9"), "n is 1000 and 18"), (("--seed", "1"), "seed is 0 and 1")):
            assert seats(*arguments) == 2
            assert f"holds 2/greedy/random of something else: {reported}; ask for that" in capsys.readouterr().err
        patch.setattr(rummy500_players.blocks, "commit", lambda: "new")
        assert seats() == 2
        assert "made.commit is old and new" in capsys.readouterr().err
        assert out.read_bytes() == before
        stored = json.loads(before)
        del stored["2/heuristic/greedy"]["made"]
        patch.setattr(rummy500_players.blocks, "commit", lambda: "old")
        out.write_text(json.dumps(stored))
        assert seats() == 2
        line = capsys.readouterr().err
        assert (line.count("\n"), "which rules, weights and code 2/heuristic/greedy is of" in line) == (1, True)
    del stored["2/heuristic/greedy"]
    out.write_text(json.dumps(stored))
    assert seats() == 0
    assert out.read_bytes() == before


def test_a_match_that_is_refused_is_one_line(
    seats: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """As is all other wrong input; nothing is written."""

    def refused(*_: object, **__: object) -> None:
        raise InputError("games=2 is not valid")

    monkeypatch.setattr(rummy500_players, "match", refused)
    assert seats() == 2
    assert capsys.readouterr().err == "error: games=2 is not valid\n"
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("content", ["[]", '{"3/seed0": {"final_by_opponent": {}}}'])
def test_rows_of_rummy_are_not_added_to_something_else(
    seats: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    """One line, whether it is a list or the results of the shaped reward."""
    out = tmp_path / "out.json"
    out.write_text(content)
    assert seats() == 2
    line = f"error: {out} holds something else than these results; give another --out\n"
    assert (capsys.readouterr().err, out.read_text()) == (line, content)


@pytest.fixture
def gin_rows(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Calls the script of levels on a file of its own; rounds are made up."""
    report = {"points_per_hand": Interval(1.0, 0.5, 1.5)}
    monkeypatch.setattr(gin_levels, "match", lambda *_, **__: report)
    monkeypatch.setattr(gin_levels.blocks, "commit", lambda: "old")
    return lambda *arguments: called(gin_levels, "--out", str(tmp_path / "gin_levels.json"), *arguments)


def test_no_row_of_a_player_is_replaced_by_one_of_fewer_rounds(
    gin_rows: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One line, before anything is played; other rows are kept, and each says what made it, of a level its player."""
    out = tmp_path / "gin_levels.json"
    assert gin_rows("--players", "greedy", "level:9") == 0
    before = out.read_bytes()
    made = json.loads(before)["players"]["level:9"]["made"]
    assert (made["commit"], made["checksum of greedy"]) == ("old", None)
    assert made["checksum of level:9"] == gin_levels.blocks.checksum("gin_rummy/points", envs.make("gin_rummy"))
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(gin_levels, "match", _never)
        assert gin_rows("--players", "camper", "greedy", "--games", "8") == 2
    assert capsys.readouterr().err == (
        f"error: {out} holds 2,000 rounds of greedy, here are 8; make it as many, or give another --out\n"
    )
    assert out.read_bytes() == before
    assert gin_rows("--players", "camper", "--games", "4000") == 0
    stored = json.loads(out.read_text())["players"]
    assert {player: row["games"] for player, row in stored.items()} == {"greedy": 2000, "level:9": 2000, "camper": 4000}
    monkeypatch.setattr(players, "stored", lambda name: json.loads(out.read_text()))
    assert "2,000 to 4,000 mirrored rounds per pairing;" in "\n".join(players.levels_table())


def test_means_over_another_field_are_not_added_to(
    gin_rows: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One table would hold both; one line, before anything is played."""
    out = tmp_path / "gin_levels.json"
    assert gin_rows("--players", "greedy") == 0
    before = out.read_bytes()
    monkeypatch.setattr(gin_levels, "FIELD", gin_levels.FIELD[:2])
    capsys.readouterr()
    assert gin_rows("--players", "camper") == 2
    field = "simple_bot, greedy, heuristic, marjj, camper, lookahead"
    line = f"error: {out} holds means over another field, {field}; give another --out\n"
    assert (capsys.readouterr().err, out.read_bytes()) == (line, before)


def test_a_file_of_something_else_is_not_replaced(
    gin_rows: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, whether it holds other names or no names at all."""
    out = tmp_path / "gin_levels.json"
    for content in ('{"seed": 1}', "[]"):
        out.write_text(content)
        assert gin_rows("--players", "greedy") == 2
        line = f"error: {out} holds something else than these results; give another --out\n"
        assert (capsys.readouterr().err, out.read_text()) == (line, content)


def test_seeds_stand_in_the_order_of_numbers() -> None:
    """The tenth after the second, though both are texts; cells by players first."""
    assert players.by_seed({"10": "c", "0": "a", "2": "b"}) == [("0", "a"), ("2", "b"), ("10", "c")]
    cells = dict.fromkeys(("3/seed0", "2/seed10", "10/seed0", "2/seed2"))
    assert list(rummy500_shaped.in_order(cells)) == ["2/seed2", "2/seed10", "3/seed0", "10/seed0"]


def test_cells_of_corrections_are_told_over_their_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """From none to the full one, ten after nine; a single run has the interval of its rounds."""

    def run(points: float) -> dict[str, object]:
        interval = {"mean": points, "low": points - 1, "high": points + 1}
        found = dict.fromkeys(("win_rate", "points_per_hand"), interval)
        by_opponent = {"random": found, "simple_bot": found}
        return {"final_by_opponent": by_opponent, "exploitability": points, "sampling": {"regret_second_moment": 2.0}}

    cells = {"1_null_1": [0.5], "0.9_11_1": [0.25, 0.5, 0.75], "0.9_2_1": [0.5]}
    found = {f"{cell}/seed{n}": run(x) for cell, values in cells.items() for n, x in enumerate(values)}
    stored = dict.fromkeys(("corrections_gin_rummy", "corrections_leduc_poker"), found)
    monkeypatch.setattr(corrections, "stored", stored.__getitem__)
    rows = [line.strip("| ").split(" | ") for line in corrections.corrections_table("gin_rummy")[2:]]
    assert [row[:3] for row in rows] == [["0.9", "2", "1"], ["0.9", "11", "3"], ["1", "null", "1"]]
    assert rows[1][5:] == ["+0.50 (-0.12 to +1.12)", "2"], "0.25 / sqrt(3) times Student's 4.30"
    assert rows[2][5] == "+0.50 (-0.50 to +1.50)"
    leduc = [line.strip("| ").split(" | ")[3] for line in corrections.corrections_table("leduc_poker")[2:]]
    assert leduc[0] == "0.500"
    assert leduc[1].startswith("0.500 (0.1")
    found["0.9_11_0.5/seed0"] = run(0.1)
    head, _, *lines = corrections.corrections_table("leduc_poker")
    assert head.startswith("| trace | clip | exploration | seeds | ")
    rows = [line.strip("| ").split(" | ")[:5] for line in lines]
    assert [row[:4] for row in rows] == [
        ["0.9", "2", "1", "1"], ["0.9", "11", "0.5", "1"], ["0.9", "11", "1", "3"], ["1", "null", "1", "1"],
    ]  # fmt: skip
    assert rows[1][4] == "0.100"


def test_each_deck_and_rules_are_a_result_of_their_own(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deck by other rules does not replace the preset's; two runs of the same are refused, and nothing is written."""
    out = tmp_path / "out.json"
    rules = {"a": {}, "b": {"gin_bonus": 9}, "c": {}, "d": {"preset": "5x2"}, "e": {"num_ranks": 5, "preset": "4x2"}}
    games = {name: envs.make("mini_gin_rummy", **one) for name, one in rules.items()}
    played = {"play": {}, "uniform_play": {}}
    monkeypatch.setattr(
        mini_gin_play, "report", lambda run: (mini_gin_play.named(games[run].rules), {"run": run, **played})
    )
    assert called(mini_gin_play, "a", "d", "--out", str(out)) == 0
    assert called(mini_gin_play, "b", "--out", str(out)) == 0
    found = {deck: one["run"] for deck, one in json.loads(out.read_text()).items()}
    assert found == {"4x2": "a", "5x2": "d", "4x2 gin_bonus=9": "b"}
    assert mini_gin_play.named(games["e"].rules).startswith("5x2")
    capsys.readouterr()
    before = out.read_bytes()
    assert called(mini_gin_play, "a", "b", "c", "--out", str(out)) == 2
    assert capsys.readouterr().err == "error: a and c are both of 4x2; give one run of each\n"
    assert out.read_bytes() == before


def test_an_ending_is_gin_by_the_hand_and_not_by_its_points() -> None:
    """A-2-3 and a four: without the four it is gin, whatever that pays; without the ace a knock that pays more."""
    game = envs.make("mini_gin_rummy", gin_bonus=1)
    knock = 3 + game.rules.num_cards
    tree = SimpleNamespace(
        game=game,
        views=SimpleNamespace(hand=np.array([[0b111, 0b1000, 0, 0]], np.uint16)),
        player=np.array([0, -1, -1, -1]),
        parent=np.array([-1, 0, 0, 0]),
        infoset=np.array([0, -1, -1, -1]),
        action=np.array([0, knock + 7, knock + 0, 3]),
        payoff=np.array([[0, 0], [2, -2], [3, -3], [0, 0]]) / game.reward_scale,
    )
    found = mini_gin_play.endings(tree, np.array([1.0, 0.5, 0.25, 0.25]))
    assert found == {"knock": 0.25, "gin": 0.5, "undercut": 0, "tie": 0, "dead": 0.25}
