"""Two learners side by side: which checkpoints play at equal decisions and at equal seconds."""

from __future__ import annotations

import importlib
import json
import pathlib
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from command_support import REPO

import envs
from dream.evaluation.statistics import positive_interval
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tree import build_tree
from envs import InputError


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "experiments")
        yield importlib.import_module("compare_learners")


@pytest.fixture(scope="module")
def entrants(script: ModuleType) -> Callable:
    """Its choice of checkpoints."""
    return script.entrants


def _run(folder: pathlib.Path, decisions: int, seconds: float, kept: tuple[int, ...]) -> pathlib.Path:
    """A run directory of ten iterations, so many decisions and seconds each."""
    folder.mkdir()
    for iteration in kept:
        (folder / "checkpoints" / str(iteration)).mkdir(parents=True)
    rows = [{"iteration": n, "decisions": decisions * n, "seconds": seconds * n} for n in range(1, 11)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_the_last_checkpoint_within_each_limit_plays(entrants: Callable, tmp_path: pathlib.Path) -> None:
    """Both have reached 1,000 decisions, the other having gone on, and 10 seconds, the other being slower."""
    one = _run(tmp_path / "one", 100, 1.0, (5, 8, 10))
    other = _run(tmp_path / "other", 120, 2.0, (2, 4, 6, 8, 10))
    chosen = {name: (path.name, reported["decisions"]) for name, (path, reported) in entrants(one, other).items()}
    assert chosen == {
        "one_at_equal_decisions": ("10", 1000),
        "other_at_equal_decisions": ("8", 960),
        "one_at_equal_seconds": ("10", 1000),
        "other_at_equal_seconds": ("4", 480),
    }
    swapped = {name: path.name for name, (path, _) in entrants(other, one).items()}
    assert swapped["one_at_equal_seconds"] == "4"
    assert swapped["other_at_equal_decisions"] == "10"


def test_no_checkpoint_within_a_limit_is_refused(entrants: Callable, tmp_path: pathlib.Path) -> None:
    """One line that names the run and the limit; and a folder that is no run."""
    one = _run(tmp_path / "one", 100, 1.0, (10,))
    late = _run(tmp_path / "late", 100, 5.0, (10,))
    with pytest.raises(InputError, match="late kept nothing to compare within 10 seconds"):
        entrants(one, late)
    with pytest.raises(InputError, match="holds no checkpoint"):
        entrants(one, _run(tmp_path / "empty", 1, 1.0, ()))


def _evaluated(folder: pathlib.Path, seconds: float, values: list[float], game: str = "kuhn_poker") -> pathlib.Path:
    """A run of 100 decisions an iteration, evaluated at every second one."""
    folder.mkdir()
    (folder / "config.yaml").write_text(f"env: {{name: {game}, rules: {{}}}}")
    (folder / "versions.json").write_text(json.dumps({"command": f"run.py env={game} run_dir={folder}"}))
    rows = [{"iteration": n, "decisions": 100 * n, "seconds": seconds * n} for n in range(1, 2 * len(values) + 1)]
    for row, value in zip(rows[1::2], values, strict=True):
        row["eval/exploitability/current"] = value
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_exploitability_is_that_of_the_last_evaluation_within_each_limit(
    script: ModuleType, tmp_path: pathlib.Path
) -> None:
    """Both reach 600 decisions; the other is twice as slow, so that 8 seconds are its second evaluation, not its third.

    Values 1 and 3: mean 2, with an interval on a log scale. Uniform play of Kuhn loses 11/24.
    """
    one = [_evaluated(tmp_path / f"one{n}", 1.0, [0.9, 0.8, 0.7, value]) for n, value in enumerate((1.0, 3.0))]
    other = [_evaluated(tmp_path / f"other{n}", 2.0, [0.6, 0.5, 0.4]) for n in range(2)]
    reported = script.compare_exploitability(one, other)["kuhn_poker"]
    means = {name: x["mean"] for name, x in reported["over_pairs"].items()}
    assert means == pytest.approx({
        "one_at_equal_decisions": 0.7, "other_at_equal_decisions": 0.4,
        "one_at_equal_seconds": 2.0, "other_at_equal_seconds": 0.5,
    })  # fmt: skip
    assert reported["over_pairs"]["one_at_equal_seconds"]["high"] == positive_interval([1.0, 3.0]).high
    assert reported["by_pair"]["other_at_equal_seconds"][0] == {"decisions": 400, "seconds": 8.0, "exploitability": 0.5}
    assert (reported["pairs"], reported["unit"], reported["overrides"]["one"]) == (2, "chips", ["env=kuhn_poker"])
    assert reported["uniform"] == pytest.approx(11 / 24)


def test_uniform_play_is_told_in_the_unit_of_the_runs(script: ModuleType, tmp_path: pathlib.Path) -> None:
    """Rewards of mini gin are hundredths of points; the exploitability of a run is in points."""
    run = _evaluated(tmp_path / "run", 1.0, [11.8], "mini_gin_rummy")
    tree = build_tree(envs.make("mini_gin_rummy"))
    reported = script.compare_exploitability([run] * 2, [run] * 2)["mini_gin_rummy"]
    assert reported["uniform"] == pytest.approx(100 * nash_conv(tree, tree.uniform()) / 2)


def test_pairs_that_cannot_be_compared_are_refused(script: ModuleType, tmp_path: pathlib.Path) -> None:
    """Two games in a pair, a single pair, and a run without exact values: each in one line."""
    kuhn, leduc = _evaluated(tmp_path / "k", 1.0, [1.0]), _evaluated(tmp_path / "l", 1.0, [1.0], "leduc_poker")
    with pytest.raises(InputError, match=r"k is a run on kuhn_poker and .*l on leduc_poker"):
        script.compare_exploitability([kuhn], [leduc])
    with pytest.raises(InputError, match="at least two"):
        script.compare_exploitability([kuhn], [kuhn])
    with pytest.raises(InputError, match="holds no eval/exploitability/current"):
        script.compare_exploitability([kuhn] * 2, [_evaluated(tmp_path / "none", 1.0, [])] * 2)
