"""Resident memory of a run, in a process of its own: the peak of its first iteration, and what it holds later."""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
from common import Parser, at_least_one, parameters, peak_gib, run, spread

from dream.config.compose import compose_config

_GIB = 2**30
_STATM = Path("/proc/self/statm")
_LATER = 2
"""Iterations after the first, whose memory is the steady one."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__, repeats=1)
    parser.add_argument("overrides", nargs="*", help="of the configuration, e.g. algo.num_envs=2048")
    parser.add_argument("--games", type=at_least_one, help="per iteration (default: the configuration's, 8192)")
    parser.add_argument("--presets", nargs="+", metavar="PRESET", help="measure these; put overrides before it")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    if "--child" in sys.argv:
        arguments = parser.parse_args()
        _iterate(parser, arguments.overrides)
    else:
        run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures one recipe, or several by preset in turn, as often as repeats says."""
    games = [f"algo.episodes_per_iteration={arguments.games}"] if arguments.games else []
    shared = [*arguments.overrides, *games]
    if not arguments.presets:
        return _figures([_child(shared) for _ in range(arguments.repeats)])
    recipes = {preset: [*shared, f"preset={preset}"] for preset in arguments.presets}
    for recipe in recipes.values():
        compose_config("config", recipe)  # a wrong one is named before any is measured
    rows = [{preset: _child(recipe) for preset, recipe in recipes.items()} for _ in range(arguments.repeats)]
    return {preset: _figures([row[preset] for row in rows]) for preset in recipes}


def _figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the figures of one recipe's processes; what a machine does not tell is left out."""
    report = {name: rows[0][name] for name in ("episodes", "decisions", "parameters")}
    for name in ("peak_gib", "steady_gib", "before_gib", "device_peak_gib", "seconds"):
        if rows[0][name] is not None:
            report |= spread(name, [row[name] for row in rows])
    return report


def _child(overrides: list[str]) -> dict[str, Any]:
    """Runs a recipe's first iterations in a fresh process and returns what it found; ends as it does if it fails."""
    # The child writes its errors itself; this process has started no backend that would hold the GPU's memory.
    command = [sys.executable, __file__, "--child", *overrides]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        if done.returncode < 0:
            print(f"error: the iteration was ended by signal {-done.returncode}", file=sys.stderr)
        sys.exit(done.returncode if done.returncode > 0 else 1)
    return json.loads(done.stdout.splitlines()[-1])


def _iterate(parser: Parser, overrides: list[str]) -> None:
    """Runs iterations of the configuration, and prints the first one's peaks and what is held later as JSON."""
    import envs
    from dream import algorithms
    from dream.training.start import build_run

    jax.config.update("jax_enable_compilation_cache", False)  # a program read from disk takes less memory
    try:
        config = build_run(compose_config("config", overrides).node).config
    except envs.InputError as error:
        parser.error(str(error))
    game = envs.make(config.env.name, **config.env.rules)
    algorithm = algorithms.make(config.algo, config.network, game)
    before = peak_gib()
    began = time.perf_counter()
    state, info = algorithm.iterate(algorithm.init(jax.random.key(config.seed)))
    stats = jax.devices()[0].memory_stats() or {}
    device_peak = stats.get("peak_bytes_in_use")
    report = {
        "episodes": round(info.get("episodes", 0)),
        "decisions": round(info.get("decisions", 0)),
        "parameters": parameters(config.network, game),
        "peak_gib": peak_gib(),
        "before_gib": before,
        "device_peak_gib": None if device_peak is None else device_peak / _GIB,
        "seconds": time.perf_counter() - began,
    }
    held = []
    for _ in range(_LATER):
        state, _ = algorithm.iterate(state)
        held.append(_resident_gib())
    report["steady_gib"] = None if None in held else statistics.median(held)
    print(json.dumps(report), flush=True)


def _resident_gib() -> float | None:
    """Returns what the process holds now; None where the system has no such file."""
    if not _STATM.exists():
        return None
    return int(_STATM.read_text().split()[1]) * resource.getpagesize() / _GIB


if __name__ == "__main__":
    main()
