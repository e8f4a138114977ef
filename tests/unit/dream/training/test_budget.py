"""A run's end: its iterations, or before them a budget; the last iteration is evaluated either way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_support import without_seconds

from dream.config.compose import compose_config
from dream.training import metrics
from dream.training.loop import train
from dream.training.signals import StopRequest
from dream.training.start import prepare_run, with_stored_choices
from envs import InputError

NEVER = StopRequest(listen=False)
"""A stop request that does not come."""
KUHN = ("env=kuhn_poker", "tracking.mode=disabled", "eval.opponents=[]", "eval.every=1000")


def _records(*overrides: str) -> list[dict[str, Any]]:
    """Runs to the end and returns the record."""
    start = prepare_run(compose_config("config", with_stored_choices(list(overrides))))
    train(start, NEVER)
    return metrics.read(start.run_dir)


def _new(folder: Path, *overrides: str) -> list[dict[str, Any]]:
    return _records(*KUHN, f"run_dir={folder / 'run'}", *overrides)


@pytest.mark.parametrize(
    ("name", "limit", "iterations"),
    [("episodes", 300, 3), ("episodes", 256, 2), ("episodes", 257, 3), ("nodes", 1, 1), ("seconds", 1e-6, 1)],
)
def test_the_iteration_that_reaches_a_budget_is_the_last(
    tmp_path: Path, name: str, limit: float, iterations: int
) -> None:
    """128 episodes an iteration; a total that is exactly the limit has reached it."""
    settings = ("algo=external_mccfr", "algo.trajectories=64", "iterations=9", f"budget.{name}={limit}")
    records = _new(tmp_path, *settings)
    assert [record["iteration"] for record in records] == list(range(1, iterations + 1))
    assert records[-1][name] >= limit
    assert all(record[name] < limit for record in records[:-1])


def test_the_first_of_several_budgets_counts(tmp_path: Path) -> None:
    """An iteration of CFR costs the same nodes each time; one and a half times that is reached in the second."""
    one = _new(tmp_path / "one", "algo=cfr", "iterations=1")[0]["nodes"]
    records = _new(tmp_path, "algo=cfr", "iterations=9", f"budget.nodes={one * 1.5}", "budget.seconds=1000")
    assert [record["nodes"] for record in records] == [one, 2 * one]


@pytest.mark.parametrize("end", ["iterations=5", "budget.nodes=190"])
def test_the_last_iteration_is_evaluated(tmp_path: Path, end: str) -> None:
    """Every third and the last; the final report says the same."""
    records = _new(tmp_path, "algo=cfr", "eval.every=3", end)
    evaluated = [record["iteration"] for record in records if "eval/exploitability/average" in record]
    assert evaluated == sorted({*range(3, len(records) + 1, 3), len(records)})


def test_a_run_goes_on_with_a_larger_budget(tmp_path: Path) -> None:
    """It equals one that had the larger budget at once; a spent budget leaves it as it is."""
    settings = ("algo=cfr", "iterations=99")
    run = tmp_path / "run"
    whole = _new(tmp_path / "whole", *settings, "budget.nodes=190")
    _new(tmp_path, *settings, "budget.nodes=90")
    went_on = _records(f"resume={run}", "budget.nodes=190")
    assert [record["iteration"] for record in went_on] == [1, 2, 3, 4]
    assert without_seconds(went_on[2]) == without_seconds(whole[2])
    assert without_seconds(went_on[3]) == without_seconds(whole[3])
    assert _records(f"resume={run}") == went_on


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("budget.nodes=0", r"budget\.nodes=0\.0 is out of range; it must be more than 0"),
        ("budget.episodes=-5", r"budget\.episodes=-5\.0 is out of range"),
        ("budget.seconds=long", r"budget\.seconds='long' is not valid; it must be a number"),
        ("budget=100", r"budget=100 must hold nodes, episodes, seconds"),
        ("budget.node=100", "did you mean 'budget.nodes'"),
    ],
)
def test_wrong_budget(override: str, told: str) -> None:
    """One line that names the place and what would be right."""
    with pytest.raises(InputError, match=told):
        prepare_run(compose_config("config", [override]))
