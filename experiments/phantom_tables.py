"""The tables of games of hidden stones, as lines of Markdown: what exact values cost, and what solvers reach."""

from __future__ import annotations

import result_tables as tables


def costs_table() -> list[str]:
    """Returns the lines of the table: seconds to set up, of NashConv and of a network on all information sets."""
    lines = [
        "`python experiments/benchmarks/exact.py --env <game> --version <version> --json`, two CPU cores, medians of "
        "three with least and greatest; the network has two layers of 64:",
        "",
        "| game | information sets | set-up, s | NashConv, s | network on all sets, s | share of the arithmetic of a "
        "matrix product | peak, GiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for game, run in tables.stored("exact_values").items():
        spread = {
            name: [run[f"{name}_seconds{end}"] for end in ("", "_min", "_max")] for name in ("nash_conv", "network")
        }
        cells = [f"{value:.1f} ({low:.1f} to {high:.1f})" for value, low, high in spread.values()]
        lines.append(
            f"| {game} | {run['information_sets']:,} | {run['setup_seconds']:.1f} | {cells[0]} | {cells[1]} | "
            f"{100 * run['share_of_arithmetic']:.0f} % | {run['peak_gib']:.1f} |"
        )
    return lines


def wide_network_table() -> list[str]:
    """Returns the lines of the table: seconds of a network of three layers of 512 on all information sets."""
    lines = [
        "`python experiments/benchmarks/exact.py --env <game> --version <version> --hidden 512 512 512 --repeats 1 "
        "--json`, two CPU cores, one measurement each; the network has three layers of 512:",
        "",
        "| game | information sets | network on all sets, s | share of the arithmetic of a matrix product "
        "| peak, GiB |",
        "|---|---|---|---|---|",
    ]
    for game, run in tables.stored("exact_values_wide").items():
        lines.append(
            f"| {game} | {run['information_sets']:,} | {run['network_seconds']:.1f} | "
            f"{100 * run['share_of_arithmetic']:.0f} % | {run['peak_gib']:.1f} |"
        )
    return lines


def peer_table() -> list[str]:
    """Returns the lines of the table: uniform play's exploitability here and by the benchmark's C++ package."""
    lines = [
        "`python experiments/benchmarks/exact.py --env <game> --version <version> --hidden --peer --json`, both in one "
        "process on two CPU cores; here the median of five with least and greatest, the package once:",
        "",
        "| game | code | set-up, s | exploitability, s | processor s of it | exploitability of uniform play |",
        "|---|---|---|---|---|---|",
    ]
    for game, run in tables.stored("exact_values_peer").items():
        ours = "{nash_conv_seconds:.1f} ({nash_conv_seconds_min:.1f} to {nash_conv_seconds_max:.1f})".format_map(run)
        lines += [
            f"| {game} | here | {run['setup_seconds']:.1f} | {ours} | {run['nash_conv_cpu_seconds']:.1f} | "
            f"{run['uniform_exploitability']:.12f} |",
            f"| | exp-a-spiel | {run['peer_setup_seconds']:.0f} | {run['peer_nash_conv_seconds']:.0f} | "
            f"{run['peer_nash_conv_cpu_seconds']:.0f} | {run['peer_uniform_exploitability']:.12f} |",
            f"| | times as fast | {run['peer_setup_seconds'] / run['setup_seconds']:.0f} | "
            f"{run['times_as_fast']:.0f} ({run['times_as_fast_min']:.0f} to {run['times_as_fast_max']:.0f}) | "
            f"{run['peer_nash_conv_cpu_seconds'] / run['nash_conv_cpu_seconds']:.0f} | |",
        ]
    return lines


def random_play_table() -> list[str]:
    """Returns the lines of the table: decisions per second of uniform random play with full legal masks."""
    lines = [
        "`python experiments/benchmarks/random_play.py --env <game> --version <version> --batches 262144 --no-pyspiel "
        "--json`, two CPU cores, medians with least and greatest:",
        "",
        "| game | decisions per second | games per second |",
        "|---|---|---|",
    ]
    for game, run in tables.stored("phantom_random_play").items():
        pace, low, high = (run[f"decisions_per_s{end}"] / 1e6 for end in ("", "_min", "_max"))
        lines.append(f"| `{game}` | {pace:.1f} M ({low:.1f} to {high:.1f}) | {run['games_per_s'] / 1e6:.2f} M |")
    return lines


def solvers_table() -> list[str]:
    """Returns the lines of the table: exploitability of the average by iteration, until it reached the target."""
    lines = [
        "| game | algorithm | iterations | exploitability | value for player 0 | iterations to 0.01 | processor s | "
        "of one iteration |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for game, solvers in sorted(tables.stored("phantom_solvers").items()):
        for name, run in sorted(solvers.items()):
            last = run["curve"][-1]
            reached = next((str(p["iteration"]) for p in run["curve"] if p["exploitability"] <= 0.01), "not reached")
            lines.append(
                f"| {game} | `{name}` | {last['iteration']} | {last['exploitability']:.4f} | {last['value']:+.4f} | "
                f"{reached} | {last['cpu_seconds']:.0f} | {last['cpu_seconds'] / last['iteration']:.1f} |"
            )
    return lines
