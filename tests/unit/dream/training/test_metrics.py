"""The record of a run: whole lines, and none of work that was lost."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from dream.evaluation import Interval
from dream.storage import files
from dream.training import metrics

LINES = [{"iteration": n, "loss": n / 3, "eval/random/win_rate": None} for n in range(1, 7)]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run of six records."""
    for record in LINES:
        metrics.append(tmp_path, record)
    return tmp_path


def test_append_and_read(run_dir: Path) -> None:
    """One line a record, numbers unchanged to the last bit."""
    assert metrics.read(run_dir) == LINES
    assert len((run_dir / metrics.FILE).read_text().splitlines()) == 6
    assert metrics.read(run_dir / "elsewhere") == []


def test_numbers_that_are_not_finite_are_null(tmp_path: Path) -> None:
    """The file is JSON as everyone reads it."""
    metrics.append(tmp_path, {"iteration": 1, "a": math.nan, "b": [math.inf, 1.0], "c": {"d": -math.inf}})
    text = (tmp_path / metrics.FILE).read_text()
    assert json.loads(text) == {"iteration": 1, "a": None, "b": [None, 1.0], "c": {"d": None}}


@pytest.mark.parametrize("last", [0, 1, 3, 6, 9])
def test_drop_after(run_dir: Path, last: int) -> None:
    """Records past the iteration go, the others stay byte for byte."""
    before = (run_dir / metrics.FILE).read_text().splitlines(keepends=True)
    metrics.drop_after(run_dir, last)
    assert (run_dir / metrics.FILE).read_text() == "".join(before[:last])
    assert [p.name for p in run_dir.iterdir()] == [metrics.FILE]


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_last_line_cut_off_is_left_out(run_dir: Path, cut: int) -> None:
    """As a killed process leaves it, its line end alone missing included; the next record starts a line of its own."""
    path = run_dir / metrics.FILE
    path.write_bytes(path.read_bytes()[:-cut])
    whole = LINES if cut == 1 else LINES[:-1]
    assert metrics.read(run_dir) == whole
    metrics.drop_after(run_dir, 6)
    metrics.append(run_dir, {"iteration": 7})
    assert metrics.read(run_dir) == [*whole, {"iteration": 7}]


def test_write_json_tells_intervals_by_name(tmp_path: Path) -> None:
    """An interval becomes {mean, low, high}; no temporary file stays."""
    files.write_json(tmp_path / "a.json", {"n": 2, "rate": Interval(0.5, 0.25, math.nan)})
    assert json.loads((tmp_path / "a.json").read_text()) == {"n": 2, "rate": {"mean": 0.5, "low": 0.25, "high": None}}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_write_text_replaces_whole_files(tmp_path: Path) -> None:
    """An interrupted write leaves the old text: the new one is put aside first."""
    path = tmp_path / "a.txt"
    files.write_text(path, "old")
    with pytest.raises(TypeError):
        files.write_bytes(path, 3)
    assert path.read_text() == "old"
    files.write_text(path, "new")
    assert path.read_text() == "new"
