"""The table of benchmarks as lines of Markdown, made from the files in experiments/results."""

from __future__ import annotations

import collections
import functools
import operator

from result_tables import common
from result_tables.accelerator_targets import COMMAND, TARGETS

BENCHMARKS = (
    ("random_play", "decisions_per_s", "`gin_rummy`: uniform random play, full legal mask", "decisions/s", "8.7 M"),
    ("random_play", "ratio", "`gin_rummy`: random play against pyspiel's gin_rummy driven from Python", "times", ""),
    ("openspiel_gin", "random games_per_s", "`gin_rummy_openspiel`: random play, packed masks", "games/s", ""),
    ("openspiel_gin", "random ratio", "... against pyspiel's C++ loop on the same cores", "times", "40"),
    ("openspiel_gin", "public_random ratio", "... through `Game.legal_actions`", "times", ""),
    ("openspiel_gin", "simple_bot games_per_s", "`gin_rummy_openspiel`: simple bot, packed masks", "games/s", ""),
    ("openspiel_gin", "simple_bot ratio", "... against pyspiel's C++ loop on the same cores", "times", "20"),
    ("openspiel_gin", "public_simple_bot ratio", "... through `Game.view` and a draw from `Policy`", "times", ""),
    ("selfplay", "decisions_per_s", "self-play with the network of 4,887 inputs", "decisions/s", ""),
    ("selfplay", "ratio", "... against a dense first layer", "times", "5"),
    ("iteration", "seconds_iteration", "iteration of the DREAM document's size, 8,192 games", "s", ""),
    ("iteration", "seconds_generate", "... self-play", "s", ""),
    ("iteration", "generate_over_products", "... self-play over its matrix products", "times", ""),
    ("iteration", "seconds_fit", "... gradient steps", "s", ""),
    ("iteration", "fit_over_products", "... gradient steps over their matrix products", "times", "1.3"),
    ("iteration", "seconds_evaluate", "evaluation of that size, 1,000 rounds", "s", ""),
    ("iteration", "seconds_checkpoint", "checkpoint of that size", "s", ""),
    ("solvers", "leduc_poker iterations_per_s", "CFR on Leduc poker", "iterations/s", ""),
    ("solvers", "leduc_poker ratio", "... against pyspiel's C++ solver", "times", ""),
    ("solvers", "liars_dice iterations_per_s", "CFR on liar's dice", "iterations/s", ""),
    ("solvers", "liars_dice ratio", "... against pyspiel's C++ solver", "times", ""),
    ("solvers", "leduc_poker nash_conv_ms", "NashConv of a table on Leduc poker", "ms", ""),
    ("solvers", "liars_dice nash_conv_ms", "NashConv of a table on liar's dice", "ms", ""),
    (
        "hand_evaluator",
        "uniform from_scratch hands_per_s",
        "hand evaluator, 15 cards, one hand at a time",
        "hands/s",
        "",
    ),
    ("hand_evaluator", "uniform batched hands_per_s", "hand evaluator, 15 cards, 4,096 hands at once", "hands/s", ""),
    ("hand_evaluator", "uniform add_cheaper_by", "adding a card, against starting over", "times", "3"),
    ("hand_evaluator", "uniform remove_cheaper_by", "removing a card, against starting over", "times", "3"),
    ("hand_evaluator", "rich add_cheaper_by", "adding a card to 15 of five ranks, against starting over", "times", "3"),
    ("hand_evaluator", "rich remove_cheaper_by", "removing one of 15 of five ranks, the same", "times", "3"),
    ("gymnasium_envs", "single steps_per_s", "Gymnasium, one game of `gin_rummy`", "steps/s", "5,000"),
    ("gymnasium_envs", "view steps_per_s", "Gymnasium, 4,096 games at once, views", "steps/s", "1 M"),
    ("gymnasium_envs", "vector steps_per_s", "Gymnasium, 4,096 games at once, 4,887 numbers each", "steps/s", ""),
    ("page", "strong cold first_card_s", "page: command to first cards, empty compilation cache", "s", "15"),
    ("page", "strong warm first_card_s", "page: command to first cards, filled compilation cache", "s", ""),
    ("page", "strong cold move_ms", "page: a move and the learned player's answer, median", "ms", "100"),
    ("page", "strong cold move_95_ms", "page: a move and the learned player's answer, 95th percentile", "ms", ""),
    (
        "run_loop",
        "leduc_poker iterations_per_s",
        "`dream.run algo=cfr env=leduc_poker`, both cores",
        "iterations/s",
        "",
    ),
    ("run_loop", "leduc_poker ratio", "... against its compiled loop alone", "times", ""),
    ("run_loop", "leduc_poker loop_us_per_iteration", "... time of the run loop per iteration", "us", "100"),
    ("run_loop", "liars_dice iterations_per_s", "`dream.run algo=cfr env=liars_dice`, both cores", "iterations/s", ""),
    ("run_loop", "empty us_per_iteration", "run loop of a learner that does nothing, per iteration", "us", "100"),
    ("run_loop", "empty processor_us_per_iteration", "... processor time", "us", ""),
    ("first_record", "first_record_cold_s", "`preset=laptop`: command to first record, empty cache", "s", "10"),
    ("first_record", "first_record_warm_s", "`preset=laptop`: command to first record, filled cache", "s", "3"),
    ("learners", "ppo run_s", "PPO on Leduc poker, 10 M decisions, whole command, one run", "s", "30"),
    ("learners_one_pass", "ppo run_s", "... two runs of another day", "s", "30"),
    ("learners_one_pass", "ppo_one_pass run_s", "... of that day, decisions read once, not four times", "s", "30"),
    ("learners", "dream run_s", "DREAM on Leduc poker, 5 M nodes, whole command, one run", "s", "300"),
    ("search", "batch_1 compile_seconds", "search with a policy on `gin_rummy`: compilation", "s", "30"),
    ("search", "batch_1 lv7_compile_seconds", "`lv7`: compilation", "s", ""),
    ("search", "batch_1 worlds_128 seconds_per_decision", "search, 128 worlds: one decision alone", "s", ""),
    ("search", "batch_64 worlds_128 seconds_per_decision", "search, 128 worlds: per decision, 64 at once", "s", ""),
    ("search", "batch_1 lv7 seconds_per_decision", "`lv7`: one decision alone", "s", ""),
    ("memory", "none peak_gib", "memory of 8,192 games: peak of the first iteration", "GiB", ""),
    ("memory", "none steady_gib", "... held after later iterations", "GiB", ""),
    ("memory", "laptop peak_gib", "memory of `preset=laptop`: peak of the first iteration", "GiB", ""),
    ("memory", "laptop steady_gib", "... held after later iterations", "GiB", ""),
    ("memory_presets", "tiny peak_gib", "memory of `preset=tiny`: peak of the first iteration", "GiB", ""),
    ("memory_presets", "tiny steady_gib", "... held after later iterations", "GiB", ""),
    ("memory_presets", "h200 peak_gib", "memory of `preset=h200` on a CPU: peak of the first iteration", "GiB", ""),
    ("memory_presets", "h200 steady_gib", "... held after later iterations", "GiB", ""),
)
"""Result file, path of the number in it, what it is, its unit, its target."""
_HEAD = "what | measured | unit | target"


def measured(name: str, key: str) -> float:
    """Returns a benchmark's number."""
    return functools.reduce(operator.getitem, key.split(), common.stored(name))


def benchmark_table() -> list[str]:
    """Returns the lines of the benchmarks' table."""
    machines = {name: common.stored(name)["machine"] for name, *_ in BENCHMARKS}
    usual = collections.Counter(machine["cpu"] for machine in machines.values()).most_common(1)[0][0]
    rows = []
    for name, key, what, unit, target in BENCHMARKS:
        value, machine = measured(name, key), machines[name]
        what += ", one core" if machine["cores"] == 1 else ""
        what += "" if machine["cpu"] == usual else f" ({machine['cpu'].replace('(R)', '')})"
        rows.append((what, _number(value), unit, target))
    return common.table(_HEAD, rows, f"Medians, two shared cores of {usual} unless a row says otherwise:")


def accelerator_table() -> list[str]:
    """Returns the lines of the table of what is aimed at on a GPU, measured or not."""
    report = common.stored("accelerator") if (common.RESULTS / "accelerator.json").exists() else None
    is_measured = report is not None and report["machine"]["backend"] == "gpu" and not report["toy"]
    rows = []
    for target in TARGETS:
        value = target.measured(report["parts"]) if is_measured else None
        goals = ", then ".join(f"{goal:,}" for goal in target.goals)
        rows.append((target.what, "not measured" if value is None else _number(value), target.unit, goals))
    none = f"No GPU has been available, so none of this is measured; `{COMMAND}` measures it"
    before = f"`{report['command']}`, {report['machine']['device']}" if is_measured else none
    return common.table(_HEAD, rows, f"{before}. The targets are for one H200:")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value > 1000 else f"{value:.2f}"
