"""Two learners side by side: which checkpoints play at equal decisions and at equal seconds."""

from __future__ import annotations

import importlib
import json
import pathlib
from collections.abc import Callable, Iterator

import pytest
from command_support import REPO

from envs import InputError


@pytest.fixture(scope="module")
def entrants() -> Iterator[Callable]:
    """The script's function."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "experiments")
        yield importlib.import_module("compare_learners").entrants


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
    chosen = {name: (path.name, told["decisions"]) for name, (path, told) in entrants(one, other).items()}
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
    with pytest.raises(InputError, match="late kept no checkpoint within 10 seconds"):
        entrants(one, late)
    with pytest.raises(InputError, match="holds no checkpoint"):
        entrants(one, _run(tmp_path / "empty", 1, 1.0, ()))
