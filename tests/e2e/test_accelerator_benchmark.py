"""Does the benchmark of accelerators run to its end here, at toy size, so that it does on the day one is lent?"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import command_support
import pytest

LEARNERS = ("document", "openspiel_ppo", "sixteen_actions_ppo")
SCRIPT = command_support.REPO / "experiments" / "benchmarks" / "accelerator.py"


def _run(folder: pathlib.Path, *options: str) -> dict[str, Any]:
    out = folder / "accelerator.json"
    command_support.succeed(
        str(SCRIPT), "--toy", "--repeats", "1", "--out", str(out), *options,
        cwd=folder, PYTHONPATH=str(command_support.REPO),
    )  # fmt: skip
    return json.loads(out.read_text())


def test_every_part_measures_at_toy_size(tmp_path: pathlib.Path) -> None:
    """No part is skipped, stopped or failed, and each has the figures that it is asked for."""
    report = _run(tmp_path, "--minutes", "20")
    found = report["parts"]
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        import accelerator
    finally:
        sys.path.remove(str(SCRIPT.parent))
    assert list(found) == list(accelerator.PLAN)
    assert not {name for name, part in found.items() if {"skipped", "stopped", "failed"} & part.keys()}
    assert found["roofline"]["bfloat16_tflop_per_s"] > 0
    assert found["simple_bot"]["8"]["decisions_per_s"] > 0
    assert found["games"]["leduc_poker"]["128"]["games_per_s"] > 0
    assert found["solvers"]["kuhn_poker"]["iterations_per_s"] > 0
    assert found["profile"]["events"] > 0
    for name in LEARNERS:
        part = found[name]
        assert part["decisions_per_s"] > 0, name
        assert part["seconds_evaluation"] > 0, name
        assert part["fit_over_products"] > 0, name
        assert part["host"]["waits"] > 0, name
        assert part["host"]["reads"] > 0, name
    ratios = {f"{name} {part}_over_products" for name in LEARNERS for part in ("generate", "fit")}
    beyond = {name for name in ratios if found[name.split()[0]].get(name.split()[1], 0) > 3}
    assert set(report["over_three_times_their_products"]) == beyond


def test_what_there_is_no_time_for_is_skipped_with_the_reason(tmp_path: pathlib.Path) -> None:
    """The file names every part, though there was time for one at most."""
    found = _run(tmp_path, "--minutes", "0.00005", "--only", "roofline", "games", "solvers")["parts"]
    assert list(found) == ["roofline", "games", "solvers"]
    assert "iterations_per_s" not in str(found)
    assert all("time is out" in found[name].get("skipped", "") for name in ("games", "solvers"))


@pytest.mark.parametrize("option", [("--minutes", "0"), ("--only", "everything")])
def test_wrong_arguments_get_one_line(tmp_path: pathlib.Path, option: tuple[str, str]) -> None:
    """Nothing is written."""
    done = command_support.command(str(SCRIPT), *option, cwd=tmp_path, PYTHONPATH=str(command_support.REPO))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
