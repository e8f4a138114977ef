"""Result files of several seeds: made of run directories, and added to."""

from __future__ import annotations

import importlib
import json
import pathlib
import sys
from collections.abc import Callable, Iterator

import pytest
from command_support import REPO


@pytest.fixture(scope="module")
def main() -> Iterator[Callable[[], None]]:
    """The script's command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "experiments")
        yield importlib.import_module("collect_runs").main


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Callable[[int], pathlib.Path]:
    """Makes the finished run of a seed."""

    def make(seed: int) -> pathlib.Path:
        folder = tmp_path / f"seed{seed}"
        folder.mkdir()
        rates = dict.fromkeys(("win_rate", "points_per_hand", "knock_rate"), 0.5 + seed / 10)
        (folder / "evaluation.json").write_text(json.dumps({"opponent": "random", "iteration": 3, **rates}))
        versions = {"command": f"run experiment=x seed={seed} run_dir=y", "git_commit": "c", "device": "d", "jax": "j"}
        (folder / "versions.json").write_text(json.dumps(versions))
        spent = {"seconds": 1.0, "compile_seconds": 0.5, "decisions": 7}
        record = {"iteration": 3, **spent, **{f"eval/random/{name}": rate for name, rate in rates.items()}}
        (folder / "metrics.jsonl").write_text(json.dumps(record) + "\n")
        return folder

    return make


def _called(main: Callable[[], None], *arguments: object) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["collect_runs.py", *map(str, arguments)])
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


def test_further_seeds_come_after_the_stored_ones(
    main: Callable[[], None], run: Callable[[int], pathlib.Path], tmp_path: pathlib.Path
) -> None:
    """And a seed twice, or one left out, changes nothing, since tables number the runs by their place."""
    target = tmp_path / "result"
    assert _called(main, target, run(0), run(1)) == 0
    before = json.loads((tmp_path / "result.json").read_text())["runs"]
    assert _called(main, target, run(2), "--keep") == 0
    after = json.loads((tmp_path / "result.json").read_text())["runs"]
    assert after[:2] == before
    assert [one["final"]["win_rate"] for one in after] == pytest.approx([0.5, 0.6, 0.7])
    for wrong in (tmp_path / "seed1", run(4)):
        assert _called(main, target, wrong, "--keep") == 2
    assert json.loads((tmp_path / "result.json").read_text())["runs"] == after
    assert _called(main, tmp_path / "other", tmp_path / "seed0", "--keep") == 2
