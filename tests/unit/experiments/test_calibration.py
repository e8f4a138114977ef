"""Bounds beside exact values: each bound with its own settings, results game by game, the table's row."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import calibration as script
import pytest
from result_tables import common, small_games
from script_support import called

import dream

INTERVAL = {"mean": 0.5, "low": 0.4, "high": 0.6}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], str]]:
    """Settings and method of each call of dream.exploit, which here knows what it finds; nothing is trained."""
    calls = []

    def exploit(run: Any, overrides: list[str], *, method: str) -> Any:
        calls.append((overrides, method))
        kind = "learned" if method == "both" else "local"
        record = {"unit": "chips", "seed": 1, kind: {"exploitability": INTERVAL}, f"{kind}_over_exact": 0.25}
        return SimpleNamespace(record=record, nash_conv=4.0, exploitability=2.0)

    monkeypatch.setattr(dream, "train", lambda overrides, quiet: overrides)
    monkeypatch.setattr(dream, "exploit", exploit)
    return calls


def test_results_are_kept_by_game_and_iterations(
    asked: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two policies of a game are two rows."""
    out = tmp_path / "calibration.json"
    first = ("--games", "leduc_poker", "--out", out)
    assert called(script, "local.games=8", "best_response.seeds=[0]", *first) == 0
    assert called(script, *first, "--iterations", 100) == 0
    assert asked == [(["best_response.seeds=[0]"], "both"), (["local.games=8"], "local"), ([], "both"), ([], "local")]
    stored = json.loads(out.read_text())
    assert list(stored) == ["leduc_poker 4", "leduc_poker 100"]
    assert stored["leduc_poker 100"]["exact"] == {"nash_conv": 4.0, "exploitability": 2.0}
    assert "seed" not in stored["leduc_poker 100"]
    monkeypatch.setattr(common, "stored", lambda name: stored)
    row = "| `leduc_poker`, chips | 100 | 2 | 0.500 (0.400 to 0.600) | 0.25 | 0.500 (0.400 to 0.600) | 0.25 |  |"
    assert row in small_games.calibration_table()


def test_a_setting_of_neither_bound_is_refused(
    asked: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is trained."""
    assert called(script, "--out", tmp_path / "calibration.json", "iterations=3") == 2
    assert "'iterations=3' is of neither bound; settings begin with best_response. or local." in capsys.readouterr().err
    assert asked == []


def test_bounds_are_not_added_to_something_else(
    asked: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, before anything is trained."""
    out = tmp_path / "comparison.json"
    out.write_text('{"leduc_poker": {"unit": "chips", "learners": {}}}')
    before = out.read_bytes()
    assert called(script, "--games", "leduc_poker", "--out", out) == 2
    line = f"error: {out} holds something else than these results; give another --out\n"
    assert (capsys.readouterr().err, out.read_bytes(), asked) == (line, before, [])
