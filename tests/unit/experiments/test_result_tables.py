"""What tables say of results: as the data have it, and not what it was once."""

from __future__ import annotations

import copy
import json
import pathlib
from typing import Any

import pytest
import result_pages
from result_tables import accelerator_targets, benchmarks, common, comparison, phantom, players, small_games


def _given(monkeypatch: pytest.MonkeyPatch, result: Any) -> None:
    monkeypatch.setattr(common, "stored", lambda name: result)


def _compared(**more: Any) -> dict[str, Any]:
    keys = [f"{side}_at_equal_{limit}" for side in ("one", "other") for limit in ("decisions", "seconds")]
    spent = {key: [{"decisions": 1e6, "seconds": 60.0}] for key in keys}
    interval = dict.fromkeys(("mean", "low", "high"), 0.5)
    return {
        "unit": "chips",
        "uniform": 1.0,
        "pairs": 1,
        "by_pair": spent,
        "over_pairs": dict.fromkeys(keys, interval),
    } | more


def test_exploitability_is_of_the_policies_that_were_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The current ones where the result does not say; where games differ, each says its own."""
    average = _compared(policies={"one": "average", "other": "current"})
    _given(monkeypatch, {"leduc_poker": _compared()})
    assert "(NashConv / 2) of the current policies: mean over pairs" in small_games.exploitability_table()[0]
    _given(monkeypatch, {"leduc_poker": average})
    assert "of dueling DREAM's average and PPO's current policy: mean" in small_games.exploitability_table()[0]
    _given(monkeypatch, {"leduc_poker": average, "kuhn_poker": _compared()})
    lines = small_games.exploitability_table()
    assert "of the policies named: mean" in lines[0]
    assert [line.split(" | ")[0] for line in lines[-2:]] == [
        "| `leduc_poker`, chips, dueling DREAM's average and PPO's current policy",
        "| `kuhn_poker`, chips, the current policies",
    ]


def test_one_run_has_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mean stands alone, of a recipe's first seed and of one pair of runs, whose interval is stored as null."""
    strength = {"simple_bot": {"points_per_hand": {"mean": 1.25}, "win_rate": {"mean": 0.5}}}
    assert players._points_and_won([{"strength": strength}], "simple_bot") == ("+1.25", "50.0 %")
    _given(monkeypatch, {"player": {"0": {"strength": strength}}})
    assert result_pages._rounds_line("player", "It")[1] == "50.0 % of rounds, one seed"
    assert common.percent({"mean": 0.5, "low": None, "high": None}) == "50.00 %"
    one = _compared(over_pairs=dict.fromkeys(_compared()["by_pair"], common.over_samples([0.25])))
    _given(monkeypatch, {"leduc_poker": one})
    assert "| 1 | 1 M | 0.250 | 0.250 | 60 s | 0.250 | 0.250 |" in small_games.exploitability_table()[-1]


def test_what_is_equal_to_some_per_cent_alone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions with two digits; a sentence where they differ by more than a twentieth."""
    counters = _compared()["by_pair"]
    report = {"random": {"win_rate": dict.fromkeys(("mean", "low", "high"), 0.5)}}
    report["random"]["points_per_hand"] = report["random"]["win_rate"]
    result = {
        "pairs": 1, "games": 8, "counters": counters, "over_pairs": dict.fromkeys(counters, report),
        "overrides": {"one": [["a"]], "other": [["b"]]},
    }  # fmt: skip
    _given(monkeypatch, result)
    assert "; times with compiling). Runs: " in small_games.learners_table()[0]
    other = copy.deepcopy(counters)
    other["other_at_equal_decisions"][0]["decisions"] = 1.1e6
    _given(monkeypatch, result | {"counters": other})
    line = small_games.learners_table()[0]
    assert "PPO, equal decisions: 1.10 M decisions and 1.0 minutes" in line
    assert "). As checkpoints are some iterations apart, equal decisions differ by 10 %. Runs: " in line


def test_a_setting_is_dropped_where_all_trials_have_anothers_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal by chance in one trial, both stand there."""

    def group(*pairs: tuple[float, float]) -> dict[str, Any]:
        trials = [{"settings": {"algo.a": a, "algo.b": b}, "objective": 1.0, "nodes": 1} for a, b in pairs]
        return {"given": [], "trials": [*trials, {**trials[-1], "objective": 0.5}]}

    _given(monkeypatch, {"x": [group((0.1, 0.1), (0.1, 1.0)), group((1, 1), (2, 2))]})
    rows = [line.strip("| ").split(" | ")[-1] for line in comparison.trials_table()[2:]]
    assert rows == ["0.1, 0.1: 1.000; 0.1, 1.0: 1.000; **0.1, 1.0: 0.500**", "1: 1.000; 2: 1.000; **2: 0.500**"]


def test_solvers_are_told_by_their_own_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the head where it is one, else in the cells."""
    points = [{"iteration": n, "exploitability": 1 / n, "value": 0.0, "cpu_seconds": 1.0} for n in (1, 5, 9)]
    run = {"target": 0.2, "curve": points}
    _given(monkeypatch, {"dark_hex": {"cfr": run, "cfr_plus": run}})
    head, _, *lines = phantom.solvers_table()
    assert "| iterations to 0.2 |" in head
    assert [line.split(" | ")[5] for line in lines] == ["5", "5"]
    _given(monkeypatch, {"dark_hex": {"cfr": run, "cfr_plus": run | {"target": 0.01}}})
    head, _, *lines = phantom.solvers_table()
    assert "| iterations to the target |" in head
    assert [line.split(" | ")[5] for line in lines] == ["5 (0.2)", "not reached (0.01)"]


def test_targets_of_a_gpu_are_told_with_what_a_gpu_reached(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """None without a result; none of a CPU or at toy size either; parts that were skipped are not measured."""
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    machine = {"backend": "gpu", "device": "1 x NVIDIA H200"}
    report = {"command": "x", "machine": machine, "toy": False, "parts": {"document": {"skipped": "time is out"}}}
    report["parts"]["simple_bot"] = {"most_games_per_s": 310_000.4}
    none = benchmarks.accelerator_table()
    assert none[0].startswith("No GPU has been available")
    assert accelerator_targets.COMMAND in none[0]
    assert [line.split(" | ")[1] for line in none[4:]] == ["not measured"] * len(accelerator_targets.TARGETS)
    for other in (report | {"toy": True}, report | {"machine": machine | {"backend": "cpu"}}):
        (tmp_path / "accelerator.json").write_text(json.dumps(other))
        assert benchmarks.accelerator_table() == none
    (tmp_path / "accelerator.json").write_text(json.dumps(report))
    head, _, _, _, first, second, *_ = benchmarks.accelerator_table()
    assert head.startswith("`x`, 1 x NVIDIA H200.")
    assert first.endswith("| 310,000 | games/s | 300,000 |")
    assert second.endswith("| not measured | minutes | 10, then 3 |")
