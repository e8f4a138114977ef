"""The table of benchmarks as lines of Markdown, made from the files in experiments/results."""

from __future__ import annotations

import functools
import operator

from result_tables import stored, table

BENCHMARKS = (
    ("random_play", "decisions_per_s", "uniform random play, full legal mask, decisions/s (target 8,700,000)"),
    ("random_play", "ratio", "the same over pyspiel's gin_rummy driven from Python"),
    ("openspiel_gin", "random games_per_s", "OpenSpiel's gin, uniform random play, packed masks, games/s"),
    ("openspiel_gin", "random ratio", "the same over pyspiel's C++ loop on the same cores (target 40)"),
    ("openspiel_gin", "public_random ratio", "the same through `Game.legal_actions`"),
    ("openspiel_gin", "simple_bot games_per_s", "OpenSpiel's gin, simple bot against itself, packed masks, games/s"),
    ("openspiel_gin", "simple_bot ratio", "the same over pyspiel's C++ loop on the same cores (target 20)"),
    ("openspiel_gin", "public_simple_bot ratio", "the same through `Game.view`, `Policy` and a draw from it"),
    ("selfplay", "decisions_per_s", "self-play with the network of 4,887 inputs, decisions/s"),
    ("selfplay", "ratio", "the same over dense 4,887-vectors (target 5)"),
    ("iteration", "seconds_iteration", "an iteration of the DREAM document's size, 8,192 games, s"),
    ("iteration", "seconds_generate", "of it play, s"),
    ("iteration", "generate_over_products", "the same over its matrix products alone"),
    ("iteration", "seconds_fit", "of it the fit, s"),
    ("iteration", "fit_over_products", "the same over its matrix products alone (target 1.3)"),
    ("iteration", "seconds_evaluate", "an evaluation of 1,000 rounds besides, s"),
    ("iteration", "seconds_checkpoint", "a checkpoint besides, s"),
    ("solvers", "leduc_poker iterations_per_s", "CFR on Leduc, iterations/s, one core"),
    ("solvers", "leduc_poker ratio", "the same over pyspiel's C++ solver"),
    ("solvers", "liars_dice iterations_per_s", "CFR on liar's dice, iterations/s, one core"),
    ("solvers", "liars_dice ratio", "the same over pyspiel's C++ solver"),
    ("solvers", "leduc_poker nash_conv_ms", "NashConv of a table on Leduc, milliseconds"),
    ("solvers", "liars_dice nash_conv_ms", "NashConv of a table on liar's dice, milliseconds"),
    ("hand_evaluator", "uniform from_scratch hands_per_s", "hand evaluator, 15 cards of two decks, hands/s one by one"),
    ("hand_evaluator", "uniform batched hands_per_s", "the same, 4,096 hands at once"),
    ("hand_evaluator", "uniform add_cheaper_by", "a card more, times cheaper than starting over (target 3)"),
    ("hand_evaluator", "uniform remove_cheaper_by", "a card less, the same (target 3)"),
    ("hand_evaluator", "rich add_cheaper_by", "a card more, 15 cards of five ranks (target 3)"),
    ("hand_evaluator", "rich remove_cheaper_by", "a card less, 15 cards of five ranks (target 3)"),
    ("gymnasium_envs", "single steps_per_s", "Gymnasium, one game of gin rummy, steps/s (target 5,000)"),
    ("gymnasium_envs", "view steps_per_s", "Gymnasium, 4,096 games at once, views, steps/s (target 1,000,000)"),
    ("gymnasium_envs", "vector steps_per_s", "the same with vectors of 4,887 numbers, steps/s"),
    (
        "page",
        "strong cold first_card_s",
        "page, from the command to the first cards, empty cache, seconds (target 15)",
    ),
    ("page", "strong warm first_card_s", "the same with programs compiled before"),
    (
        "page",
        "strong cold move_ms",
        "page, a move and the learned player's answer, milliseconds (target 100)",
    ),
    ("page", "strong cold move_95_ms", "the same, 95th percentile"),
    ("run_loop", "leduc_poker iterations_per_s", "CFR on Leduc by `python -m dream.run`, iterations/s, both cores"),
    ("run_loop", "leduc_poker ratio", "the same over its compiled loop alone"),
    ("run_loop", "leduc_poker loop_us_per_iteration", "of it the run loop, microseconds per iteration (target 100)"),
    ("run_loop", "liars_dice iterations_per_s", "CFR on liar's dice by the same, iterations/s, both cores"),
    (
        "run_loop",
        "empty us_per_iteration",
        "the run loop of a learner that does nothing, one iteration at a time, microseconds (target 100)",
    ),
    ("run_loop", "empty processor_us_per_iteration", "the same, microseconds of a processor"),
    ("first_record", "first_record_cold_s", "`preset=laptop`, from the command to the first record, s (target 10)"),
    ("first_record", "first_record_warm_s", "the same with programs compiled before (target 3)"),
    ("learners", "ppo run_s", "PPO on Leduc, 10 M decisions, from the command to its end, one run, s (target 30)"),
    ("learners", "dream run_s", "DREAM on Leduc, 5 M nodes, the same (target 300)"),
    ("search", "batch_1 compile_seconds", "search with a trained policy on gin rummy, seconds to compile (target 30)"),
    ("search", "batch_1 lv7_compile_seconds", "the same of `lv7`"),
    ("search", "batch_1 worlds_128 seconds_per_decision", "a decision of that search with 128 worlds, alone, s"),
    ("search", "batch_64 worlds_128 seconds_per_decision", "the same, of 64 decisions at once, s"),
    ("search", "batch_1 lv7 seconds_per_decision", "a decision of `lv7`, alone, s"),
    ("memory", "none peak_gib", "memory of the first iteration of 8,192 games, peak, GiB"),
    ("memory", "none steady_gib", "the same, held after later iterations"),
    ("memory", "laptop peak_gib", "memory of the first iteration of `preset=laptop`, peak, GiB"),
    ("memory", "laptop steady_gib", "the same, held after later iterations"),
    ("memory_presets", "tiny peak_gib", "memory of the first iteration of `preset=tiny`, peak, GiB"),
    ("memory_presets", "tiny steady_gib", "the same, held after later iterations"),
    ("memory_presets", "h200 peak_gib", "memory of the first iteration of `preset=h200` on a CPU, peak, GiB"),
    ("memory_presets", "h200 steady_gib", "the same, held after later iterations"),
)
"""Result file, path of the number in it, what it is."""


def measured(name: str, key: str) -> float:
    """Returns a benchmark's number."""
    return functools.reduce(operator.getitem, key.split(), stored(name))


def benchmark_table() -> list[str]:
    """Returns the lines of the benchmarks' table."""
    numbers = [(text, measured(name, key)) for name, key, text in BENCHMARKS]
    rows = [(text, f"{value:,.0f}" if value > 1000 else f"{value:.2f}") for text, value in numbers]
    return table("what | measured", rows, "Medians, two shared CPU cores:")
