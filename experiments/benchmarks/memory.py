"""Peak resident memory, compilation included, of one iteration at the document's size, in a process of its own."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import jax
from common import Parser, at_least_one, parameters, run, spread

_GIB = 2**30
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in the unit of ru_maxrss."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__, repeats=1)
    parser.add_argument("overrides", nargs="*", help="of the configuration, e.g. algo.num_envs=2048")
    parser.add_argument("--games", type=at_least_one, help="in the iteration (default: the configuration's, 8192)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    if "--child" in sys.argv:
        arguments = parser.parse_args()
        _iterate(parser, arguments.overrides)
    else:
        run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs one iteration from a cold start in a fresh process, as often as repeats says, and reports its peaks."""
    games = [f"algo.episodes_per_iteration={arguments.games}"] if arguments.games else []
    command = [sys.executable, __file__, "--child", *arguments.overrides, *games]
    rows = []
    for _ in range(arguments.repeats):
        # The child writes its errors itself; this process has started no backend that would hold the GPU's memory.
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            if done.returncode < 0:
                print(f"error: the iteration was ended by signal {-done.returncode}", file=sys.stderr)
            sys.exit(done.returncode if done.returncode > 0 else 1)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    report = {name: rows[0][name] for name in ("episodes", "decisions", "parameters")}
    for name in ("peak_gib", "before_gib", "device_peak_gib", "seconds"):
        if rows[0][name] is not None:
            report |= spread(name, [row[name] for row in rows])
    return report


def _iterate(parser: Parser, overrides: list[str]) -> None:
    """Runs one iteration of the configuration and prints its peaks as JSON."""
    import envs
    from dream import algorithms
    from dream.config.compose import compose_config
    from dream.training.start import build_run

    try:
        config = build_run(compose_config("config", overrides).node).config
    except envs.InputError as error:
        parser.error(str(error))
    game = envs.make(config.env.name, **config.env.rules)
    algorithm = algorithms.make(config.algo, config.network, game)
    before = _peak_gib()
    began = time.perf_counter()
    _, info = algorithm.iterate(algorithm.init(jax.random.key(config.seed)))
    stats = jax.devices()[0].memory_stats() or {}
    device_peak = stats.get("peak_bytes_in_use")
    report = {
        "episodes": round(info.get("episodes", 0)),
        "decisions": round(info.get("decisions", 0)),
        "parameters": parameters(config.network, game),
        "peak_gib": _peak_gib(),
        "before_gib": before,
        "device_peak_gib": None if device_peak is None else device_peak / _GIB,
        "seconds": time.perf_counter() - began,
    }
    print(json.dumps(report), flush=True)


def _peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT / _GIB


if __name__ == "__main__":
    main()
