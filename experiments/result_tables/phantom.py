"""The tables of phantom games, as lines of Markdown: what exact values cost, and what solvers reach."""

from __future__ import annotations

from result_tables import common


def costs_table() -> list[str]:
    """Returns the lines of the table: seconds to set up, of NashConv and of a network on all information sets."""
    rows = []
    for game, run in common.stored("exact_values").items():
        spread = [[run[f"{name}_seconds{end}"] for end in ("", "_min", "_max")] for name in ("nash_conv", "network")]
        cells = [game, f"{run['information_sets']:,}", f"{run['setup_seconds']:.1f}"]
        cells += [f"{value:.1f} ({low:.1f} to {high:.1f})" for value, low, high in spread]
        rows.append([*cells, f"{100 * run['share_of_arithmetic']:.0f} %", f"{run['peak_gib']:.1f}"])
    return common.table(
        "game | information sets | set-up, s | NashConv, s | network on all sets, s | share of the arithmetic of a "
        "matrix product | peak, GiB",
        rows,
        "`python experiments/benchmarks/exact.py --env <game> --version <version> --json`, two CPU cores, medians of "
        "three with least and greatest; the network has two layers of 64:",
    )


def wide_network_table() -> list[str]:
    """Returns the lines of the table: seconds of a network of three layers of 512 on all information sets."""
    rows = []
    for game, run in common.stored("exact_values_wide").items():
        cells = [game, f"{run['information_sets']:,}", f"{run['network_seconds']:.1f}"]
        rows.append([*cells, f"{100 * run['share_of_arithmetic']:.0f} %", f"{run['peak_gib']:.1f}"])
    return common.table(
        "game | information sets | network on all sets, s | share of the arithmetic of a matrix product | peak, GiB",
        rows,
        "`python experiments/benchmarks/exact.py --env <game> --version <version> --hidden 512 512 512 --repeats 1 "
        "--json`, two CPU cores, one measurement each; the network has three layers of 512:",
    )


def peer_table() -> list[str]:
    """Returns the lines of the table: uniform play's exploitability here and by the benchmark's C++ package."""
    rows = []
    for game, run in common.stored("exact_values_peer").items():
        pace = "{nash_conv_seconds:.1f} ({nash_conv_seconds_min:.1f} to {nash_conv_seconds_max:.1f})".format_map(run)
        faster = "{times_as_fast:.0f} ({times_as_fast_min:.0f} to {times_as_fast_max:.0f})".format_map(run)
        ours = [f"{run['setup_seconds']:.1f}", pace, f"{run['nash_conv_cpu_seconds']:.1f}"]
        theirs = [f"{run[f'peer_{name}_seconds']:.0f}" for name in ("setup", "nash_conv", "nash_conv_cpu")]
        times = [f"{run[f'peer_{x}_seconds'] / run[f'{x}_seconds']:.0f}" for x in ("setup", "nash_conv_cpu")]
        rows += [
            [game, "here", *ours, f"{run['uniform_exploitability']:.12f}"],
            ["", "exp-a-spiel", *theirs, f"{run['peer_uniform_exploitability']:.12f}"],
            ["", "times as fast", times[0], faster, times[1], ""],
        ]
    return common.table(
        "game | code | set-up, s | exploitability, s | processor s of it | exploitability of uniform play",
        rows,
        "`python experiments/benchmarks/exact.py --env <game> --version <version> --hidden --peer --json`, both in one "
        "process on two CPU cores; here the median of five with least and greatest, the package once:",
    )


def random_play_table() -> list[str]:
    """Returns the lines of the table: decisions per second of uniform random play with full legal masks."""
    rows = []
    for game, run in common.stored("phantom_random_play").items():
        pace, low, high = (run[f"decisions_per_s{end}"] / 1e6 for end in ("", "_min", "_max"))
        rows.append([f"`{game}`", f"{pace:.1f} M ({low:.1f} to {high:.1f})", f"{run['games_per_s'] / 1e6:.2f} M"])
    return common.table(
        "game | decisions per second | games per second",
        rows,
        "`python experiments/benchmarks/random_play.py --env <game> --version <version> --batches 262144 --no-pyspiel "
        "--json`, two CPU cores, medians with least and greatest:",
    )


def solvers_table() -> list[str]:
    """Returns the lines of the table: exploitability of the average by iteration, until it reached the target."""
    rows, games = [], common.stored("phantom_solvers")
    targets = {run["target"] for solvers in games.values() for run in solvers.values()}
    (title, own) = (f"{min(targets):g}", "") if len(targets) == 1 else ("the target", " ({target:g})")
    for game, solvers in sorted(games.items()):
        for name, run in sorted(solvers.items()):
            last, target = run["curve"][-1], run["target"]
            reached = next((str(p["iteration"]) for p in run["curve"] if p["exploitability"] <= target), "not reached")
            reached += own.format(target=target)
            cells = [game, f"`{name}`", last["iteration"], f"{last['exploitability']:.4f}", f"{last['value']:+.4f}"]
            seconds = last["cpu_seconds"]
            rows.append([*cells, reached, f"{seconds:.0f}", f"{seconds / last['iteration']:.1f}"])
    return common.table(
        f"game | algorithm | iterations | exploitability | value for player 0 | iterations to {title} | processor s | "
        "of one iteration",
        rows,
    )
