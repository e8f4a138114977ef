"""Where a match's report goes, a file of its own for what makes it another match, and what is said meanwhile."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from dream.commands import evaluate, folders
from dream.commands.evaluate import play_match, prepare_match, prepared
from dream.config.compose import compose_config
from dream.config.schema import EvaluateConfig
from dream.evaluation.statistics import Interval
from dream.storage import levels
from dream.storage.files import StorageError
from dream.storage.policies import find
from envs import InputError


def test_a_report_replaces_only_that_of_the_same_match() -> None:
    """Rounds, games to 100, under other scoring, fewer of them and by another seed are files of their own."""
    given = (
        {}, {"target": 100}, {"target": 100, "scoring": "eaai"}, {"target": 100, "scoring": "modern"},
        {"games": 4}, {"target": 100, "games": 4, "seed": 7},
    )  # fmt: skip
    names = [
        prepared(EvaluateConfig(checkpoint="gin_rummy/strong", opponent="simple_bot", **one)).path.name for one in given
    ]
    assert len(set(names)) == 6
    assert names[2].endswith("_to_100_eaai.json")
    assert names[5].endswith("_to_100_games4_seed7.json")


@pytest.mark.parametrize("setting", ["histories", "report"])
def test_a_folder_that_may_only_be_read_is_noticed_first(
    setting: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a round is played; the folders above those that are to be made count too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(folders.os, "access", lambda path, mode: path != tmp_path)
    given = {"histories": str(tmp_path / "rounds.jsonl")} if setting == "histories" else {}
    with pytest.raises(InputError, match=f"cannot be written: {tmp_path} may only be read; choose another folder"):
        prepared(EvaluateConfig(checkpoint="gin_rummy/strong", opponent="simple_bot", **given))


def test_searches_of_other_worlds_have_reports_of_their_own() -> None:
    """One of no worlds plays as its policy does, and its report is not that of a search."""
    given = [f"search:gin_rummy/strong{worlds}" for worlds in ("", ":0", ":8")]
    paths = [prepared(EvaluateConfig(checkpoint=name, opponent="simple_bot", games=4)).path for name in given]
    assert [path.stem.rpartition("_search_")[2] for path in paths] == ["usual_games4", "0_games4", "8_games4"]


def test_a_player_by_name_is_measured_on_the_game_that_is_chosen(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of any number of players; other rules have another report."""
    monkeypatch.chdir(tmp_path)
    for rules in ((), ("env.rules.num_players=2",)):
        given = ["checkpoint=heuristic", "env=rummy500", *rules, "opponent=random", "games=12"]
        play_match(prepare_match(compose_config("evaluate", given)))
    found = [json.loads(path.read_text()) for path in (tmp_path / "evaluations").iterdir()]
    assert sorted(report["num_players"] for report in found) == [2, 3]
    for report in found:
        assert (report["player"], report["iteration"], report["n"]) == ("heuristic", None, 12)
        assert report["measured"] == {"checkpoint": None, "opponent": None}
        assert report["points_per_hand"]["mean"] > 0


def test_a_level_that_is_a_trained_player_is_said_to_be() -> None:
    """Measured as in the opponent's place: the checksum says which weights the report is of."""
    given = ["env=gin_rummy", "checkpoint='level:9'", "opponent='level:9'", "games=4"]
    measured = prepare_match(compose_config("evaluate", given)).measured
    assert measured["checkpoint"] == measured["opponent"]
    assert measured["checkpoint"]["iteration"] == 700
    assert measured["checkpoint"]["player"] == "gin_rummy/points"


def test_a_level_that_stands_for_another_player_has_another_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """In another version of the package; its number is the same. The report says whom it is of."""
    given = ["env=gin_rummy", "games=4"]
    at_first = [["checkpoint='level:2'", "opponent=random"], ["checkpoint=random", "opponent='level:2'"]]
    searched = ["checkpoint=random", "opponent='search:level:8:4'"]
    first = [prepare_match(compose_config("evaluate", [*given, *players])) for players in at_first]
    assert first[0].measured["checkpoint"] == {"player": "greedy", "mistakes": 0.4}
    assert first[1].measured["opponent"] == {"player": "greedy", "mistakes": 0.4}
    before = prepare_match(compose_config("evaluate", [*given, *searched])).path
    random, _, *others = levels.LEVELS["gin_rummy"]
    *others, eighth, ninth = others
    others = [*others, eighth._replace(mistakes=0.01), ninth]
    monkeypatch.setitem(levels.LEVELS, "gin_rummy", (random, levels.Level("greedy", 0.3), *others))
    assert prepare_match(compose_config("evaluate", [*given, *searched])).path != before
    second = [prepare_match(compose_config("evaluate", [*given, *players])) for players in at_first]
    assert len({match.path for match in (*first, *second)}) == 4


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["checkpoint=camper", "env=rummy500"], "camper with env=rummy500 is not a named player; it must be one of"),
        (["checkpoint=random", "env=rummy500", "policy=average"], "policy=average is not possible"),
        (["checkpoint=random", "env=rummy500", "env.name=kuhn_poker"], "choose env=kuhn_poker"),
    ],
)
def test_no_player_of_that_name(given: list[str], line: str) -> None:
    """One line."""
    with pytest.raises(InputError, match=line):
        prepare_match(compose_config("evaluate", given))


def test_players_of_one_name_have_reports_of_their_own(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the package are all reported in the current folder, whatever their game; a file has its own folder."""
    monkeypatch.chdir(tmp_path)
    names = [f"{game}/points" for game in ("gin_rummy", "gin_rummy_mdp", "gin_rummy_openspiel")]
    players = [find(name) for name in names]
    assert [player.report_name.rpartition("-")[0] for player in players] == [name.replace("/", "_") for name in names]
    paths = [prepared(EvaluateConfig(checkpoint=name, opponent="simple_bot", games=4)).path for name in names]
    assert len(set(paths)) == 3
    assert {path.parent for path in paths} == {tmp_path / "evaluations"}
    copied = shutil.copy(players[0].path, tmp_path / "mine.safetensors")
    shutil.copy(players[0].path.with_suffix(".json"), tmp_path / "mine.json")
    assert find(copied).report_name == "mine"
    others = [dataclasses.replace(find(copied), path=tmp_path / name).report_name for name in ("mine.pkl", "mine.100")]
    assert others == ["mine.pkl", "mine.100"], "pickles may have any suffix"


def test_what_was_played_is_told_where_it_cannot_be_written(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder became unwritable meanwhile: the table is printed, then the fault."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluate, "match", lambda *players, **others: {"n": 4, "n_pairs": 2})
    match = prepared(EvaluateConfig(checkpoint="gin_rummy/strong", opponent="simple_bot", games=4))
    (tmp_path / "evaluations").write_text("a file now")
    with pytest.raises(StorageError, match="cannot be written"):
        play_match(match)
    assert "n = 4 rounds, 2 deals" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "function", "unit"), [(None, "match", "rounds"), (100, "match_games", "games to 100")]
)
def test_a_match_says_how_far_it_is(
    target: int | None,
    function: str,
    unit: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where the output is no terminal too: how many there are, how many are over, the time left; last the path."""

    def played(*players: object, progress: Callable[[int], None], **others: object) -> dict[str, Any]:
        for done in (2048, 3000, 4096):
            progress(done)
        return {"n": 4096, "n_pairs": 2048, "points_per_hand": Interval(1.0, 0.5, 1.5)}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evaluate, function, played)
    match = prepared(EvaluateConfig(checkpoint="gin_rummy/strong", opponent="simple_bot", games=4096, target=target))
    play_match(match)
    begin, first, last, *_, path = capsys.readouterr().out.splitlines()
    assert begin == f"match: 4,096 {unit}; compiling first"
    assert re.fullmatch(rf"match: 2,048/4,096 {unit}  less than \S+ s left", first)
    assert last == f"match: 4,096/4,096 {unit}"
    assert path == str(match.path)
