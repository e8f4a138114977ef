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
from dream.training import metrics
from envs import InputError
from envs.phantom import dark_hex


def _spent(iteration: int, decisions: int, seconds: float, compiling: float = 0.0) -> dict[str, Any]:
    """A record after so many iterations of so many decisions and seconds each, and what compiled before them."""
    times = {"seconds": compiling + seconds * iteration, "compile_seconds": compiling}
    return {"iteration": iteration, "decisions": decisions * iteration, **times}


def _run(
    folder: pathlib.Path, decisions: int, seconds: float, kept: tuple[int, ...], compiling: float = 0.0
) -> pathlib.Path:
    """A run directory of ten iterations, so many decisions and seconds each."""
    folder.mkdir()
    for iteration in kept:
        (folder / "checkpoints" / str(iteration)).mkdir(parents=True)
    write_metrics(folder, [_spent(n, decisions, seconds, compiling) for n in range(1, 11)])
    return folder


def _points(one: pathlib.Path, other: pathlib.Path) -> dict[str, tuple[str, float] | None]:
    """What is compared of a pair: checkpoint and decisions."""
    points, _ = script.side_by_side([(one, other)], script.counters)
    return {name: at and (at[0].checkpoint.name, at[0].found["decisions"]) for name, at in points.items()}


def test_the_last_checkpoint_within_each_limit_plays(tmp_path: pathlib.Path) -> None:
    """Both have reached 1,000 decisions, the other having gone on, and 10 seconds, the other being slower."""
    one = _run(tmp_path / "one", 100, 1.0, (5, 8, 10))
    (one / "checkpoints" / "9.orbax-checkpoint-tmp").mkdir()  # a run that was killed
    other = _run(tmp_path / "other", 120, 2.0, (2, 4, 6, 8, 10))
    assert _points(one, other) == {
        "one_at_equal_decisions": ("10", 1000),
        "other_at_equal_decisions": ("8", 960),
        "one_at_equal_seconds": ("10", 1000),
        "other_at_equal_seconds": ("4", 480),
    }
    swapped = _points(other, one)
    assert swapped["one_at_equal_seconds"] == ("4", 480)
    assert swapped["other_at_equal_decisions"] == ("10", 1000)


def test_seconds_are_those_without_compiling(tmp_path: pathlib.Path) -> None:
    """The first job of a process compiles for the others: 30 seconds of it are no work of its learner."""
    first, later = _run(tmp_path / "first", 100, 1.0, (5, 10), 30.0), _run(tmp_path / "later", 100, 1.0, (5, 10))
    assert set(_points(first, later).values()) == {("10", 1000)}


def test_nothing_within_a_limit_is_null(tmp_path: pathlib.Path) -> None:
    """For all pairs, with a note that names the run and the limit; what there is at the other limit stays."""
    pairs = [(_run(tmp_path / f"one{n}", 100, 1.0, (10,)), _run(tmp_path / f"other{n}", 100, 1.0, (10,))) for n in "ab"]
    pairs.append((_run(tmp_path / "early", 100, 1.0, (10,)), _run(tmp_path / "late", 100, 5.0, (10,))))
    points, told = script.side_by_side(pairs, script.counters)
    assert [name for name, at in points.items() if at is None] == ["one_at_equal_seconds", "other_at_equal_seconds"]
    assert [point.iteration for point in points["other_at_equal_decisions"]] == [10, 10, 10]
    assert "late kept nothing to compare within 10 seconds" in told["note"]


def test_runs_without_anything_to_compare_are_refused(tmp_path: pathlib.Path) -> None:
    """One line: no limit is left, a run that counts nothing of one, and a folder that is no run."""
    one = _run(tmp_path / "one", 100, 1.0, (10,))
    with pytest.raises(InputError, match="behind kept nothing to compare within 10 seconds"):
        script.side_by_side([(one, _run(tmp_path / "behind", 200, 5.0, (10,)))], script.counters)
    with pytest.raises(InputError, match="solver counts no decisions, as solvers of game trees do"):
        script.side_by_side([(one, _run(tmp_path / "solver", 0, 1.0, (10,)))], script.counters)
    with pytest.raises(InputError, match="holds no checkpoint"):
        script.side_by_side([(one, _run(tmp_path / "empty", 1, 1.0, ()))], script.counters)


def test_solvers_are_compared_at_equal_seconds_alone(tmp_path: pathlib.Path) -> None:
    """Neither counts decisions: at no decisions nothing is equal but the beginning."""
    pair = (_run(tmp_path / "one", 0, 1.0, (5, 10)), _run(tmp_path / "other", 0, 2.0, (5, 10)))
    points, header = script.side_by_side([pair], script.counters)
    assert (points["one_at_equal_decisions"], points["other_at_equal_decisions"]) == (None, None)
    assert [point.iteration for point in (*points["one_at_equal_seconds"], *points["other_at_equal_seconds"])] == [
        10,
        5,
    ]
    assert "count no decisions" in header["note"]


def _evaluated(
    folder: pathlib.Path, seconds: float, values: list[float], policy: str = "current", **changed: Any
) -> pathlib.Path:
    """A run of 100 decisions an iteration, evaluated at every second one; its seed is the last digit of its name."""
    digit = folder.name[-1]
    write_config(folder, **{"seed": int(digit) if digit.isdecimal() else 0} | changed)
    write_sittings(folder, f"run.py env=kuhn_poker run_dir={folder}")
    rows = [_spent(n, 100, seconds) for n in range(1, 2 * len(values) + 1)]
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


def test_exploitability_at_a_limit_without_a_point_is_null(tmp_path: pathlib.Path) -> None:
    """What there is at the other limit is reported."""
    one = [_evaluated(tmp_path / f"one{n}", 1.0, [0.5]) for n in range(2)]
    other = [_evaluated(tmp_path / f"other{n}", 9.0, [0.25]) for n in range(2)]
    reported = script.compare_exploitability(one, other)["kuhn_poker"]
    assert reported["over_pairs"]["other_at_equal_seconds"] is reported["by_pair"]["one_at_equal_seconds"] is None
    assert reported["over_pairs"]["other_at_equal_decisions"]["mean"] == pytest.approx(0.25)
    assert "other0 kept nothing to compare within 2 seconds" in reported["note"]


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
    """Means without intervals, in valid JSON; null where a run is too late, and no match by other rules."""
    one, other = tmp_path / "one", tmp_path / "other"
    short = ["env=kuhn_poker", "algo=cfr_plus", "iterations=1", "eval.opponents=[]", "tracking.mode=disabled"]
    succeed("dream.run", *short, f"run_dir={one}", cwd=tmp_path)
    shutil.copytree(one, other)
    rows = [row | {"decisions": 100} for row in metrics.read(one)]  # a solver counts none
    write_metrics(one, rows)
    write_metrics(other, [row | {"seconds": row["seconds"] + 60} for row in rows])
    out = tmp_path / "new" / "out.json"
    assert called(script, "--one", one, "--other", other, "--games", 40, "--opponents", "random", "--out", out) == 0
    found = strict(out)
    assert found["over_pairs"]["other_at_equal_decisions"]["one"]["win_rate"]["low"] is None
    assert {found[part]["other_at_equal_seconds"] for part in ("counters", "by_pair", "over_pairs")} == {None}
    assert "two pairs" in found["note"]
    assert "nothing at equal seconds" in found["note"]
    rules = {"env__name": "mini_gin_rummy", "env__rules": {"preset": "4x2"}}
    runs = [write_config(tmp_path / f"rules{bonus}", **rules, env__rules__gin_bonus=bonus) for bonus in (25, 200)]
    with pytest.raises(InputError, match="gin_bonus is 25 and 200"):
        script.compare(runs[:1], runs[1:], ["random"], 40)


def strict(path: pathlib.Path) -> Any:
    """Returns what a file of JSON holds; NaN is none."""

    def refuse(text: str) -> None:
        raise ValueError(text)

    return json.loads(path.read_text(), parse_constant=refuse)
