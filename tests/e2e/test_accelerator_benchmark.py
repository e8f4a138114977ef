"""Does the benchmark of accelerators run to its end here, at toy size, so that it does on the day one is lent?"""

from __future__ import annotations

import importlib
import json
import pathlib
import types
from typing import Any

import command_support
import pytest

EVALUATED = ("phantom_ttt classical", "dark_hex abrupt")
LEARNERS = ("document", "openspiel_ppo", "sixteen_actions_ppo")
SCRIPT = command_support.REPO / "experiments" / "benchmarks" / "accelerator.py"


def _run(folder: pathlib.Path, *options: str) -> dict[str, Any]:
    out = folder / "accelerator.json"
    command_support.succeed(
        str(SCRIPT), "--toy", "--repeats", "1", "--out", str(out), *options,
        cwd=folder, PYTHONPATH=str(command_support.REPO),
    )  # fmt: skip
    return json.loads(out.read_text())


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The script as a module."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    return importlib.import_module("accelerator")


def test_every_part_measures_at_toy_size(accelerator: types.ModuleType, tmp_path: pathlib.Path) -> None:
    """No part is skipped, stopped or failed, and each has the figures that it is asked for."""
    report = _run(tmp_path, "--minutes", "20")
    found = report["parts"]
    assert list(found) == list(accelerator.PLAN)
    assert not {name for name, part in found.items() if {"skipped", "stopped", "failed"} & part.keys()}
    assert found["roofline"]["bfloat16_tflop_per_s"] > 0
    assert found["simple_bot"]["8"]["decisions_per_s"] > 0
    assert found["games"]["leduc_poker"]["128"]["games_per_s"] > 0
    assert found["solvers"]["kuhn_poker"]["iterations_per_s"] > 0
    assert found["profile"]["events"] > 0
    for name in EVALUATED:
        part = found["information_sets"][name]
        assert part["information_sets_per_s"] > 0, name
        assert part["network_over_products"] > 0, name
        assert part["seconds_without_network"] > 0, name
    for name in LEARNERS:
        part = found[name]
        assert part["decisions_per_s"] > 0, name
        assert part["seconds_evaluation"] > 0, name
        assert part["fit_over_products"] > 0, name
        assert part["host"]["waits"] > 0, name
        assert part["host"]["reads"] > 0, name
    keys = [f"{part}_over_products" for part in ("generate", "fit")]
    ratios = {f"{name} {key}": found[name].get(key, 0) for name in LEARNERS for key in keys}
    key = "network_over_products"
    ratios |= {f"information_sets {name} {key}": found["information_sets"][name][key] for name in EVALUATED}
    assert report["over_three_times_their_products"] == {name: x for name, x in ratios.items() if x > 3}
    assert len(report["targets"]) == len(accelerator.TARGETS)
    assert all(target["measured"] is not None for target in report["targets"])


def test_what_there_is_no_time_for_is_skipped_with_the_reason(tmp_path: pathlib.Path) -> None:
    """The file names every part, though there was time for one at most."""
    found = _run(tmp_path, "--minutes", "0.00005", "--only", "roofline", "games", "solvers")["parts"]
    assert list(found) == ["roofline", "games", "solvers"]
    assert "iterations_per_s" not in str(found)
    assert all("time is out" in found[name].get("skipped", "") for name in ("games", "solvers"))


def test_the_larger_phantom_game_is_left_out_where_time_is_short(
    accelerator: types.ModuleType, tmp_path: pathlib.Path
) -> None:
    """The smaller one is measured; the other says why it is not, and its target that nothing was measured."""
    found = accelerator.information_sets(accelerator.parts.Sitting(1.0, True, 1, tmp_path))
    first, second = (found[name] for name in EVALUATED)
    assert first["seconds_network"] > 0
    assert "time is out" in second["skipped"]
    measured = [target.measured({"information_sets": found}) for target in accelerator.TARGETS]
    assert measured == [None, None, first["seconds_network"], None]


@pytest.mark.parametrize("option", [("--minutes", "0"), ("--only", "everything")])
def test_wrong_arguments_get_one_line(tmp_path: pathlib.Path, option: tuple[str, str]) -> None:
    """Nothing is written."""
    done = command_support.command(str(SCRIPT), *option, cwd=tmp_path, PYTHONPATH=str(command_support.REPO))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())
