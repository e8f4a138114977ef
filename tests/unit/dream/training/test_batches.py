"""Are iterations that are done several at once the same, bit for bit, as one after the other?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from command_support import without_seconds

from dream.config.compose import compose_config
from dream.storage.checkpoint import find
from dream.training import batch_size, metrics
from dream.training.batch_size import BatchSize
from dream.training.beginning import Start
from dream.training.loop import train
from dream.training.run_state import Run
from dream.training.signals import StopRequest
from dream.training.start import prepare_run, with_stored_choices

NEVER = StopRequest(listen=False)
SETTINGS = ("env=kuhn_poker", "tracking.mode=disabled", "eval.opponents=[]", "eval.every=40", "iterations=90")
LEARNERS = {
    "cfr": ("algo=cfr",),
    "pcfr_plus": ("algo=pcfr_plus", "algo.updates=3"),
    "mccfr": ("algo=outcome_mccfr", "algo.trajectories=16", "algo.batch=8", "algo.baseline=history"),
    "tabular_mmd": ("algo=tabular_mmd", "algo.magnet_tau=0.1"),
}


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches grow however long they take."""
    monkeypatch.setattr(batch_size, "_SECONDS", 1e9)


def _start(run_dir: Path, *overrides: str) -> Start:
    return prepare_run(compose_config("config", [*SETTINGS, f"run_dir={run_dir}", *overrides]))


def _changed(start: Start, **fields: Any) -> Start:
    parts = dataclasses.replace(start.parts, algorithm=dataclasses.replace(start.parts.algorithm, **fields))
    return dataclasses.replace(start, parts=parts)


def _result(run_dir: Path) -> tuple[list[dict[str, Any]], str]:
    """Returns a run's record without its times, and the checksum of its last state."""
    return [without_seconds(record) for record in metrics.read(run_dir)], find(run_dir).meta["checksum"]


@pytest.mark.parametrize("name", LEARNERS)
def test_several_at_once_are_the_same(name: str, tmp_path: Path) -> None:
    """One by one, in batches, and in batches that a resume cuts elsewhere: records and state to the bit."""
    whole, single, halves = (tmp_path / part for part in ("whole", "single", "halves"))
    train(_start(whole, *LEARNERS[name]), NEVER)
    train(_changed(_start(single, *LEARNERS[name]), most=1), NEVER)
    assert _result(whole) == _result(single)
    train(_start(halves, *LEARNERS[name], "iterations=33"), NEVER)
    train(prepare_run(compose_config("config", with_stored_choices([f"resume={halves}", "iterations=90"]))), NEVER)
    (cut, checksum), (expected, same) = _result(halves), _result(whole)
    assert checksum == same
    assert [record for record in cut if record["iteration"] != 33] == [r for r in expected if r["iteration"] != 33]


def test_batches_end_where_something_is_due(tmp_path: Path) -> None:
    """Sizes grow from one by fours; evaluations and checkpoints are the last of a batch; times go up."""
    run, last = Run(_start(tmp_path / "run", "algo=cfr", "checkpoint.every=32")), []
    while not run.ended:
        records = run.advance(NEVER)
        last.append(records[-1]["iteration"])
        assert ["seconds_evaluate" in record for record in records[:-1]] == [False] * (len(records) - 1)
        metrics.append(run.run_dir, *records)
    run.writer.close()
    assert last == [1, 5, 21, 32, 40, 64, 80, 90]
    seconds = [record["seconds"] for record in metrics.read(run.run_dir)]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("wanted", [2, 21, 37])
def test_a_budget_in_the_middle_of_a_batch(wanted: int, tmp_path: Path) -> None:
    """The iteration that reaches it is the last, and is evaluated."""
    settings = ("algo=cfr", "eval.every=1000", "checkpoint.every=1000")
    train(_start(tmp_path / "whole", *settings), NEVER)
    nodes = metrics.read(tmp_path / "whole")[0]["nodes"]
    train(_start(tmp_path / "run", *settings, f"budget.nodes={nodes * (wanted - 1) + 1}"), NEVER)
    records = metrics.read(tmp_path / "run")
    assert [record["iteration"] for record in records] == list(range(1, wanted + 1))
    assert "eval/exploitability/average" in records[-1]
    assert find(tmp_path / "run").meta["iteration"] == wanted


@pytest.mark.parametrize("at", [1, 30, 37])
def test_a_fault_in_the_middle_of_a_batch_is_found(at: int, tmp_path: Path) -> None:
    """Its iteration is named, and those before it are on record."""
    start = _start(tmp_path / "run", "algo=cfr", "eval.every=1000", "checkpoint.every=1000")
    several = start.parts.algorithm.several

    def poisoned(state: Any, iterations: int) -> Generator[None, None, tuple[Any, list[dict[str, float]]]]:
        after, reported = yield from several(state, iterations)
        if after.iteration >= at:
            after = after._replace(regrets=np.full_like(after.regrets, np.nan))
        return after, reported

    with pytest.raises(FloatingPointError, match=f"iteration {at}: regrets is not finite"):
        train(_changed(start, several=poisoned), NEVER)
    records = [json.loads(line) for line in (tmp_path / "run" / metrics.FILE).read_text().splitlines()]
    assert [record["iteration"] for record in records] == list(range(1, at))


def test_sizes_follow_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a second, four times more at most, never past what is due, allowed, or left of the budget."""
    monkeypatch.setattr(batch_size, "_SECONDS", 0.25)
    size = BatchSize(100)
    assert size.next(1000, np.inf) == 1
    size.took(1, 9.0)
    assert size.next(1000, np.inf) == 1
    size.took(1, 0.001)
    assert (size.next(1000, np.inf), size.next(3, np.inf)) == (4, 3)
    size.took(3, 0.003)
    assert size.next(1000, np.inf) == 16
    size.took(16, 0.016)
    assert (size.next(1000, np.inf), size.next(1000, 0.0055), size.next(1000, -1.0)) == (64, 5, 1)
    size.took(64, 0.64)
    assert size.next(1000, np.inf) == 25
    size.limit(7)
    assert size.next(1000, np.inf) == 7


def test_metrics_may_be_numbers_of_numpy_and_jax(tmp_path: Path) -> None:
    """As a learner from outside gives them: the record holds Python's."""
    start = _start(tmp_path / "run", "algo=cfr", "iterations=2")
    iterate = start.parts.algorithm.iterate

    def counted(state: Any) -> tuple[Any, dict[str, Any]]:
        return iterate(state)[0], {"nodes": jnp.int32(7), "episodes": np.int64(2), "gap": np.float32(1.5)}

    train(_changed(start, several=None, calls=None, iterate=counted), NEVER)
    last = metrics.read(tmp_path / "run")[-1]
    assert (last["nodes"], last["episodes"], last["gap"]) == (14, 4, 1.5)
