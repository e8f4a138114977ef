"""Tables of search and of where points go, from results that are made up."""

from __future__ import annotations

import json
import pathlib

import gin_losses as losses
import numpy as np
import pytest
from result_tables import common
from result_tables import search as tables


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The folder that results are read from."""
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    return tmp_path


def test_beliefs_stand_beside_the_truth(folder: pathlib.Path) -> None:
    """Deadwood, share that may knock, and, but for the truth, the log score."""
    by_kind = {"truth": [20.0, 19, 21], "uniform deals": [50.0, 49, 51]}
    one = {"opponent": "marjj", "actions": 12, "decisions": 9, "deadwood": by_kind}
    one |= {"may_knock": {"truth": [0.25, 0, 1], "uniform deals": [0.0, 0, 0]}}
    one |= {"log_score": {"truth": [0.0, 0, 0], "uniform deals": [0.6, 0.5, 0.7]}}
    (folder / "gin_beliefs.json").write_text(json.dumps({"command": "x", "player": "y", "beliefs": [one]}))
    assert tables.beliefs_table()[-1] == "| `marjj` | 12 | 9 | 20.0, 25 % | 50.0, 0 %, 0.600 |"


def test_each_pairing_is_a_row(folder: pathlib.Path) -> None:
    """The time is that of later blocks, as the first one compiles: 6 s for 2 * 16 rounds."""
    pairing = {"player": "search", "opponent": "lv5", "deals": 32, "points_per_hand": [1.0, -2.0, 4.0],
               "win_rate_excluding_ties": [0.5, 0.4, 0.6], "core_seconds": [90.0, 6.0],
               "more_than_policy": [0.5, -0.5, 1.5]}  # fmt: skip
    stored = {"command": "python x", "policy": {"name": "strong", "iteration": 7}, "pairings": [pairing]}
    (folder / "gin_search.json").write_text(json.dumps(stored))
    assert tables.search_table()[-1] == (
        "| search | lv5 | +1.00 (-2.00 to +4.00) | +0.50 (-0.50 to +1.50) | 50.0 % (40.0 to 60.0) | 32 | 188 |"
    )
    assert "paired playouts" not in tables.search_table()[0]
    stored["pairings"].append(pairing | {"opponent": "policy", "gain": [0.25, -0.25, 0.75]})
    (folder / "gin_search.json").write_text(json.dumps(stored))
    assert "paired playouts" in tables.search_table()[0]
    assert "| search | policy | +1.00 (-2.00 to +4.00) | +0.25 (-0.25 to +0.75) |" in tables.search_table()[-1]


def test_where_points_go_is_a_column_for_each_player_and_opponent(folder: pathlib.Path) -> None:
    """Of four rounds: gin, an undercut suffered, a knock against 25 points with layoffs of 5, nobody's."""
    rounds = {
        "ending": np.array([3, 4, 2, 1]),
        "knocker": np.array([0, 1, 1, -1]),
        "seat": np.array([0, 1, 0, 1]),
        "deadwood": np.array([[0, 30], [4, 8], [25, 6], [9, 9]]),
        "turns": np.array([[5, 4], [3, 3], [6, 7], [20, 20]]),
        "waited": np.array([[1, 0], [0, 0], [0, 0], [2, 3]]),
        "stock": np.array([20, 25, 15, 2]),
        "points": np.array([80.0, -54.0, -14.0, 0.0]),
    }
    found = losses.looked_at(rounds, 50)
    assert found["layoffs"]["player"] == {"rounds": 1, "saved": 5.0, "undercuts": 0.0}
    assert found["layoffs"]["opponent"] == {"rounds": 1, "saved": 0.0, "undercuts": 1.0}
    (folder / "gin_losses.json").write_text(json.dumps({"players": {"strong": {"camper": found, "lookahead": found}}}))
    lines = tables.losses_table()
    assert "| how the round ended | strong, camper | strong, lookahead |" in lines
    assert "| gin | 25.0 %: +20.00 | 25.0 %: +20.00 |" in lines
    assert "| undercut | 25.0 %: -13.50 | 25.0 %: -13.50 |" in lines
    assert "| knocked against, 21 to 30 | 25.0 %: -3.50 | 25.0 %: -3.50 |" in lines
    assert "| layoffs save it | 5.0 points per knock, 0.0 % undercut | 5.0 points per knock, 0.0 % undercut |" in lines
