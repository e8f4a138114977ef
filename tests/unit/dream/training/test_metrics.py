"""The record of a run: whole lines, and none of work that was lost."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from dream.evaluation import Interval
from dream.storage import files
from dream.training import metrics
from envs import InputError

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


def test_a_write_in_parts(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system leaves over is written next, as where a disk is nearly full."""
    write = os.write
    monkeypatch.setattr(files.os, "write", lambda file, data: write(file, data[:7]))
    metrics.append(run_dir, {"iteration": 7}, {"iteration": 8})
    assert metrics.read(run_dir) == [*LINES, {"iteration": 7}, {"iteration": 8}]


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


_NO_ITERATION = [b'{"iteration": ' + value + b"}" for value in (b"null", b'"x"', b"[1]", b"NaN", b"true", b"0", b"-5",
                                                               b"2.5", b"3.0", b"1e400")]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [b"", b"{", b'{"iteration": 3', b"\xff\xfe\x00", b"7", b"[1]", b'{"loss": 1}', b"[" * 100_000, *_NO_ITERATION],
)
@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_damaged_line_does_not_take_others_with_it(
    run_dir: Path, capsys: pytest.CaptureFixture[str], wrong: bytes, place: int
) -> None:
    """In the middle of the file: the sound ones before and after it stay, and one line says how many are damaged."""
    path = run_dir / metrics.FILE
    lines = path.read_bytes().splitlines()
    lines[place] = wrong
    path.write_bytes(b"\n".join(lines) + b"\n")
    sound = [line for n, line in enumerate(LINES) if n != place]
    assert metrics.read(run_dir) == sound
    said = capsys.readouterr().err
    assert said.count("\n") == (1 if wrong else 0)
    assert not wrong or "has 1 damaged line, left out; 5 are sound" in said
    metrics.drop_after(run_dir, 4)
    assert metrics.read(run_dir) == [line for line in sound if line["iteration"] <= 4]
    assert capsys.readouterr().err == ""


def test_a_folder_in_the_place_of_the_file(tmp_path: Path) -> None:
    """Named in one line by whatever reads it, and left as it is."""
    (tmp_path / metrics.FILE).mkdir()
    for read in (metrics.read, metrics.scan, lambda path: metrics.drop_after(path, 3)):
        with pytest.raises(InputError, match=r"jsonl is not a file; it must be a file with a record on each line"):
            read(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [metrics.FILE]


def _clock(*events: tuple[float, float]) -> metrics.CompileClock:
    """Returns a clock that began at 100 and heard of compilations from, to."""
    clock = metrics.CompileClock()
    clock.began = 100.0
    for start, end in events:
        clock.add(end, end - start)
    return clock


@pytest.mark.parametrize(
    ("events", "seconds"),
    [
        ([], 0),
        ([(101, 103)], 2),
        ([(101, 103), (104, 105)], 3),
        ([(102, 103), (101, 104)], 3),  # one inside another, which ends later
        ([(102, 103), (103.5, 103.75), (101, 104)], 3),
        ([(101, 103), (102, 105)], 4),  # two threads
        ([(104, 105), (101, 102), (101.5, 104.5)], 4),
        ([(104, 105), (101, 102)], 2),
        ([(90, 101)], 1),  # begun before the clock
        ([(90, 99)], 0),
        ([(101, 101)], 0),
    ],
)
def test_the_compile_clock_counts_time_once(events: list[tuple[float, float]], seconds: float) -> None:
    """Written out: the length of the union of the intervals since the clock began."""
    assert _clock(*events).seconds == pytest.approx(seconds)


def test_compile_seconds_never_exceed_seconds() -> None:
    """With compilations inside compilations; another clock, begun later, hears of the later ones alone."""
    clock = metrics.CompileClock()

    @jax.jit
    def inner(x: jax.Array) -> jax.Array:
        return jnp.sin(x) @ jnp.cos(x).T

    for size in range(2, 6):
        jax.jit(lambda x: jax.vmap(inner)(x) + jax.vmap(inner)(2 * x))(jnp.ones((2, size, size))).block_until_ready()
    later = metrics.CompileClock()
    jax.jit(lambda x: inner(x) * 3)(jnp.ones((7, 7))).block_until_ready()
    assert 0 < later.seconds < clock.seconds <= time.monotonic() - clock.began
    assert later.seconds <= time.monotonic() - later.began
