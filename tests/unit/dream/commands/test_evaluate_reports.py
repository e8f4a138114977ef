"""Where a match's report goes: a file of its own for what makes it another match."""

from __future__ import annotations

import pathlib
import shutil

import pytest

from dream.commands.evaluate import prepared
from dream.config.schema import EvaluateConfig
from dream.storage.policies import find


def test_a_report_replaces_only_that_of_the_same_match() -> None:
    """Rounds, games to 100 and games to 100 under other scoring are three files."""
    given = ({}, {"target": 100}, {"target": 100, "scoring": "eaai"}, {"target": 100, "scoring": "modern"})
    names = [
        prepared(EvaluateConfig(checkpoint="gin_rummy/strong", opponent="simple_bot", games=4, **one)).path.name
        for one in given
    ]
    assert len(set(names)) == 4
    assert names[2].endswith("_to_100_eaai.json")


def test_searches_of_other_worlds_have_reports_of_their_own() -> None:
    """One of no worlds plays as its policy does, and its report is not that of a search."""
    given = [f"search:gin_rummy/strong{worlds}" for worlds in ("", ":0", ":8")]
    paths = [prepared(EvaluateConfig(checkpoint=name, opponent="simple_bot", games=4)).path for name in given]
    assert [path.stem.rpartition("_search_")[2] for path in paths] == ["usual", "0", "8"]


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
