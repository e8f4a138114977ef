"""Two learners side by side: which checkpoints play at equal decisions and at equal seconds."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import compare_learners as script
import pytest
from command_support import succeed
from run_folder import write_config, write_metrics, write_sittings
from script_support import called

import envs
from dream.evaluation.statistics import positive_interval
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tree import build_tree
from envs import InputError
from envs.phantom import dark_hex


def _run(folder: pathlib.Path, decisions: int, seconds: float, kept: tuple[int, ...]) -> pathlib.Path:
    """A run directory of ten iterations, so many decisions and seconds each."""
    folder.mkdir()
    for iteration in kept:
        (folder / "checkpoints" / str(iteration)).mkdir(parents=True)
    rows = [{"iteration": n, "decisions": decisions * n, "seconds": seconds * n} for n in range(1, 11)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_the_last_checkpoint_within_each_limit_plays(tmp_path: pathlib.Path) -> None:
    """Both have reached 1,000 decisions, the other having gone on, and 10 seconds, the other being slower."""
    one = _run(tmp_path / "one", 100, 1.0, (5, 8, 10))
    (one / "checkpoints" / "9.orbax-checkpoint-tmp").mkdir()  # a run that was killed
    other = _run(tmp_path / "other", 120, 2.0, (2, 4, 6, 8, 10))
    chosen = {name: (path.name, met["decisions"]) for name, (path, met) in script.entrants(one, other).items()}
    assert chosen == {
        "one_at_equal_decisions": ("10", 1000),
        "other_at_equal_decisions": ("8", 960),
        "one_at_equal_seconds": ("10", 1000),
        "other_at_equal_seconds": ("4", 480),
    }
    swapped = {name: path.name for name, (path, _) in script.entrants(other, one).items()}
    assert swapped["one_at_equal_seconds"] == "4"
    assert swapped["other_at_equal_decisions"] == "10"


def test_no_checkpoint_within_a_limit_is_refused(tmp_path: pathlib.Path) -> None:
    """One line that names the run and the limit; and a folder that is no run."""
    one = _run(tmp_path / "one", 100, 1.0, (10,))
    late = _run(tmp_path / "late", 100, 5.0, (10,))
    with pytest.raises(InputError, match="late kept nothing to compare within 10 seconds"):
        script.entrants(one, late)
    with pytest.raises(InputError, match="solver counts no decisions, as solvers of game trees do"):
        script.entrants(one, _run(tmp_path / "solver", 0, 1.0, (10,)))
    with pytest.raises(InputError, match="holds no checkpoint"):
        script.entrants(one, _run(tmp_path / "empty", 1, 1.0, ()))


def _evaluated(
    folder: pathlib.Path, seconds: float, values: list[float], policy: str = "current", **changed: Any
) -> pathlib.Path:
    """A run of 100 decisions an iteration, evaluated at every second one; its seed is the last digit of its name."""
    digit = folder.name[-1]
    write_config(folder, **{"seed": int(digit) if digit.isdecimal() else 0} | changed)
    write_sittings(folder, f"run.py env=kuhn_poker run_dir={folder}")
    rows = [{"iteration": n, "decisions": 100 * n, "seconds": seconds * n} for n in range(1, 2 * len(values) + 1)]
    for row, value in zip(rows[1::2], values, strict=True):
        row |= {"eval/exploitability/current": 9.0, f"eval/exploitability/{policy}": value}
    write_metrics(folder, rows)
    return folder


def test_exploitability_is_that_of_the_last_evaluation_within_each_limit(tmp_path: pathlib.Path) -> None:
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


def test_uniform_play_is_told_in_the_unit_of_the_runs(tmp_path: pathlib.Path) -> None:
    """Rewards of mini gin are hundredths of points; the exploitability of a run is in points."""
    runs = [_evaluated(tmp_path / f"run{n}", 1.0, [11.8], env__name="mini_gin_rummy") for n in range(4)]
    tree = build_tree(envs.make("mini_gin_rummy"))
    reported = script.compare_exploitability(runs[:2], runs[2:])["mini_gin_rummy"]
    assert reported["uniform"] == pytest.approx(100 * nash_conv(tree, tree.uniform()) / 2)


def test_a_game_without_a_tree_is_compared(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one of hidden stones on a full board; uniform play of classical Dark Hex on 2 x 2 cells loses 5/8."""
    monkeypatch.setattr(dark_hex, "SmallDarkHex", dark_hex.DarkHex)
    changed = {"env__name": "dark_hex", "env__rules": {"board_size": 2}}
    runs = [_evaluated(tmp_path / f"run{n}", 1.0, [0.5], **changed) for n in range(2)]
    (reported,) = script.compare_exploitability(runs[:1], runs[1:]).values()
    assert reported["uniform"] == pytest.approx(5 / 8)


def test_a_learner_is_judged_by_its_average(tmp_path: pathlib.Path) -> None:
    """As in its matches, where it has one; the result says which policy it is of."""
    one = [_evaluated(tmp_path / f"one{n}", 1.0, [0.9, 0.8], "average") for n in range(2)]
    other = [_evaluated(tmp_path / f"other{n}", 1.0, [0.7, 0.6]) for n in range(2)]
    reported = script.compare_exploitability(one, other)["kuhn_poker"]
    assert reported["policies"] == {"one": "average", "other": "current"}
    assert reported["over_pairs"]["one_at_equal_decisions"]["mean"] == pytest.approx(0.8)
    assert reported["over_pairs"]["other_at_equal_decisions"]["mean"] == pytest.approx(0.6)


def test_one_pair_has_no_interval(tmp_path: pathlib.Path) -> None:
    """Null ends and a note that says so, in a file that is valid JSON."""
    one, other = (_evaluated(tmp_path / name, 1.0, [value]) for name, value in (("one", 0.5), ("other", 0.25)))
    assert called(script, "--exploitability", "--one", one, "--other", other, "--out", tmp_path / "out.json") == 0
    reported = strict(tmp_path / "out.json")["kuhn_poker"]
    assert reported["over_pairs"]["one_at_equal_decisions"] == {"mean": 0.5, "low": None, "high": None}
    assert "two pairs" in reported["note"]


def test_pairs_that_cannot_be_compared_are_refused(tmp_path: pathlib.Path) -> None:
    """Two games in a pair, a run without exact values, and a folder that is no run: each in one line."""
    kuhn, leduc = (
        _evaluated(tmp_path / "k", 1.0, [1.0]),
        _evaluated(tmp_path / "l", 1.0, [1.0], env__name="leduc_poker"),
    )
    with pytest.raises(InputError, match=r"k is a run on kuhn_poker and .*l on leduc_poker"):
        script.compare_exploitability([kuhn], [leduc])
    with pytest.raises(InputError, match=r"holds no eval/exploitability/\*"):
        script.compare_exploitability([kuhn], [_evaluated(tmp_path / "none", 1.0, [])])
    with pytest.raises(InputError, match=r"nowhere holds no config\.yaml"):
        script.compare_exploitability([kuhn], [tmp_path / "nowhere"])


def test_runs_of_one_side_differ_in_the_seed_alone(tmp_path: pathlib.Path) -> None:
    """Twice the same run, a copy of it, other rules, recipe and budget are refused, by both commands."""
    own = [_evaluated(tmp_path / f"own{n}", 1.0, [1.0]) for n in range(2)]
    fine = _evaluated(tmp_path / "fine0", 1.0, [1.0])
    mini = {"env__name": "mini_gin_rummy", "env__rules": {"gin_bonus": 200}}
    plain = _evaluated(tmp_path / "plain0", 1.0, [1.0], env__name="mini_gin_rummy")
    with pytest.raises(InputError, match=r"another game: .*gin_bonus is 25 and 200"):
        script.compare_exploitability([plain], [_evaluated(tmp_path / "rich", 1.0, [1.0], **mini)])
    for name, changed, message in (
        ("copy0", {}, "are both seed 0 of cfr_plus"),
        ("late1", {"iterations": 9}, "another budget: iterations is 4 and 9"),
        ("power1", {"algo__average_power": 2.0}, "another recipe: algo.average_power"),
    ):
        wrong = _evaluated(tmp_path / name, 1.0, [1.0], **changed)
        for compare in (script.compare_exploitability, lambda one, other: script.compare(one, other, ["random"], 40)):
            with pytest.raises(InputError, match=message):
                compare([fine, wrong], own)
    for compare in (script.compare_exploitability, lambda one, other: script.compare(one, other, ["random"], 40)):
        with pytest.raises(InputError, match="given twice"):
            compare([own[0], own[0]], [fine, fine])


def test_matches_of_one_pair(tmp_path: pathlib.Path) -> None:
    """Means without intervals, in valid JSON; no match is played where a run is by other rules."""
    one, other = tmp_path / "one", tmp_path / "other"
    short = ["env=kuhn_poker", "algo=cfr_plus", "iterations=1", "eval.opponents=[]", "tracking.mode=disabled"]
    succeed("dream.run", *short, f"run_dir={one}", cwd=tmp_path)
    shutil.copytree(one, other)
    out = tmp_path / "new" / "out.json"
    assert called(script, "--one", one, "--other", other, "--games", 40, "--opponents", "random", "--out", out) == 0
    found = strict(out)
    assert found["over_pairs"]["other_at_equal_seconds"]["one"]["win_rate"]["low"] is None
    assert "two pairs" in found["note"]
    rules = {"env__name": "mini_gin_rummy", "env__rules": {"preset": "4x2"}}
    runs = [write_config(tmp_path / f"rules{bonus}", **rules, env__rules__gin_bonus=bonus) for bonus in (25, 200)]
    with pytest.raises(InputError, match="gin_bonus is 25 and 200"):
        script.compare(runs[:1], runs[1:], ["random"], 40)


def strict(path: pathlib.Path) -> Any:
    """Returns what a file of JSON holds; NaN is none."""

    def refuse(text: str) -> None:
        raise ValueError(text)

    return json.loads(path.read_text(), parse_constant=refuse)
