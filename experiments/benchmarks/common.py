"""What the benchmarks share: timing with compilation apart, the machine's description, arguments and output."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec
from rich.console import Console
from rich.table import Table

from envs import Game, InputError
from envs.random_play import play_random

sys.path.append(str(Path(__file__).resolve().parents[1]))
from scripting.arguments import at_least_one


class Work(NamedTuple):
    """Something to time.

    Attributes:
      run: number of the call -> outputs; they are waited for.
      count: outputs -> how much was done, by name; not timed.
    """

    run: Callable[[int], Any]
    count: Callable[[Any], dict[str, float]] = lambda outputs: {}


class Timing(NamedTuple):
    """What was timed.

    Attributes:
      compile_seconds: of the first call, less the median of the later ones.
      seconds: of one call, by repeat.
      counts: what one call did, by repeat.
    """

    compile_seconds: float
    seconds: list[float]
    counts: list[dict[str, float]]

    def rates(self, name: str) -> list[float]:
        """Returns how much of `name` was done per second, by repeat."""
        return [count[name] / seconds for count, seconds in zip(self.counts, self.seconds, strict=True)]


def timed(work: Work, repeats: int, at_least: float = 0.0) -> Timing:
    """Times one piece of work; see `interleaved`."""
    return interleaved({"": work}, repeats, at_least)[""]


def interleaved(works: dict[str, Work], repeats: int, at_least: float = 0.0) -> dict[str, Timing]:
    """Times pieces of work in turn, round after round, so that a machine that slows down slows them all.

    Args:
      works: by name.
      repeats: rounds, after a first call of each that compiles.
      at_least: seconds a measurement should last; short work is called often enough in each.
    """
    first = {name: _measure(work, 0, 1)[0] for name, work in works.items()}
    calls = dict.fromkeys(works, 1)
    if at_least:
        calls = {name: math.ceil(at_least / _measure(work, 1, 1)[0]) for name, work in works.items()}
    rounds = [
        {name: _measure(work, 2 + n * calls[name], calls[name]) for name, work in works.items()} for n in range(repeats)
    ]
    timings = {}
    for name in works:
        seconds, counts = zip(*(measured[name] for measured in rounds), strict=True)
        apart = max(0.0, first[name] - statistics.median(seconds))
        timings[name] = Timing(apart, list(seconds), list(counts))
    return timings


def _measure(work: Work, first: int, calls: int) -> tuple[float, dict[str, float]]:
    """Returns the mean seconds and counts of calls numbered from `first`."""
    seconds, sums = 0.0, {}
    for n in range(first, first + calls):
        began = time.perf_counter()
        outputs = jax.block_until_ready(work.run(n))
        seconds += time.perf_counter() - began
        for name, value in work.count(outputs).items():
            sums[name] = sums.get(name, 0.0) + float(value)
    return seconds / calls, {name: total / calls for name, total in sums.items()}


def spread(name: str, values: list[float]) -> dict[str, float]:
    """Returns the median as `name`, with `name`_min and `name`_max."""
    return {name: statistics.median(values), f"{name}_min": min(values), f"{name}_max": max(values)}


def spreads(rows: list[dict[str, float]]) -> dict[str, float]:
    """Returns the spread of every figure over rows that have the same ones."""
    return {key: value for name in rows[0] for key, value in spread(name, [row[name] for row in rows]).items()}


def ratio(values: list[float], peers: list[float]) -> dict[str, float]:
    """Returns `ratio`, that of the medians, with the least and greatest of a single round."""
    rounds = [value / peer for value, peer in zip(values, peers, strict=True)]
    return spread("ratio", rounds) | {"ratio": statistics.median(values) / statistics.median(peers)}


def split_cores(devices: int, lanes: list[int]) -> None:
    """Makes the CPU several devices of one thread each; nothing has used JAX before. 1 leaves it as it is.

    Raises:
      InputError: numbers of lanes that cannot be split over the devices there are.
    """
    if devices > 1:
        os.environ["NPROC"] = "1"  # of XLA: threads that share the work of one program
        jax.config.update("jax_num_cpu_devices", devices)
    if uneven := [number for number in lanes if number % jax.device_count()]:
        raise InputError(f"{uneven[0]} games cannot be split evenly over {jax.device_count()} devices")


def on_every_device(part: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function to run on all devices, each with its share of the leading axis of arguments and outputs."""
    lanes = PartitionSpec("lanes")
    mesh = Mesh(np.array(jax.devices()), ("lanes",))
    return jax.jit(jax.shard_map(part, mesh=mesh, in_specs=lanes, out_specs=lanes, check_vma=False))


def random_play(game: Game, batch: int) -> Work:
    """Plays `batch` games at once, uniformly at random, each device its share; counts games and decisions."""
    devices = jax.device_count()

    def share(keys: Array) -> Array:
        return play_random(game, keys[0], batch // devices).decisions[None]

    play = on_every_device(share)
    return Work(
        lambda n: play(jax.random.split(jax.random.key(n), devices)),
        lambda decisions: {"games": batch, "decisions": jnp.sum(decisions)},
    )


def peak_gib() -> float:
    """Returns the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 2**30


def parameters(network: Any, game: Game) -> int:
    """Returns the number of parameters of a configuration's network."""
    from dream.networks import make_network  # not at the top: what needs no network runs without its packages

    shapes = jax.eval_shape(make_network(network, game).init, jax.random.key(0))
    return sum(x.size for x in jax.tree.leaves(shapes))


def load_1_minute() -> float:
    """Returns how many processes ran or waited over the last minute; asked before measuring, to leave that out."""
    return round(os.getloadavg()[0], 2)


def machine(load: float) -> dict[str, Any]:
    """Describes the machine; starts the backend.

    Args:
      load: `load_1_minute` of before the measurement.
    """
    device = jax.devices()[0]
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_1_minute": load,
        "device": f"{jax.device_count()} x {device.device_kind}",
        "backend": device.platform,
        "jax": jax.__version__,
        "python": platform.python_version(),
    }


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


class Parser(argparse.ArgumentParser):
    """Arguments of a benchmark; wrong ones get one line and exit code 2."""

    def __init__(self, description: str | None, repeats: int = 5) -> None:
        """Adds --json and --repeats.

        Args:
          description: the script's docstring.
          repeats: how many by default.
        """
        super().__init__(description=description)
        self.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
        self.add_argument("--repeats", type=at_least_one, default=repeats, help="measurements (default %(default)s)")

    def error(self, message: str) -> NoReturn:
        """Ends with one line."""
        self.exit(2, f"error: {message}\n")


def run(parser: Parser, measure: Callable[[argparse.Namespace], dict[str, Any]]) -> None:
    """Runs a benchmark: reads its arguments, measures and prints.

    Args:
      parser: of the arguments.
      measure: arguments -> figures by name, nested or not, medians with their `_min` and `_max`; may raise InputError.
    """
    arguments = parser.parse_args()
    load = load_1_minute()
    # A program read from disk would hide what compiling costs.
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        figures = measure(arguments)
    except InputError as error:
        parser.error(str(error))
    report = {"benchmark": Path(parser.prog).stem, "machine": machine(load), "repeats": arguments.repeats, **figures}
    if arguments.json:
        print(json.dumps(report))
    else:
        _print_table(report)


def _print_table(report: dict[str, Any]) -> None:
    caption = ", ".join(f"{name} {value}" for name, value in report["machine"].items())
    table = Table(title=report["benchmark"], title_justify="left", caption=caption, caption_justify="left")
    for column in ("figure", "median", "min", "max"):
        table.add_column(column, justify="left" if column == "figure" else "right")
    _add_rows(table, {name: value for name, value in report.items() if name not in ("benchmark", "machine")}, "")
    Console().print(table)


def _add_rows(table: Table, figures: dict[str, Any], path: str) -> None:
    for name, value in figures.items():
        base, _, end = name.rpartition("_")
        if end in ("min", "max") and base in figures:
            continue
        if isinstance(value, dict):
            _add_rows(table, value, f"{path}{name} ")
        else:
            bounds = [_text(figures[key]) if (key := f"{name}_{end}") in figures else "" for end in ("min", "max")]
            table.add_row(f"{path}{name}", _text(value), *bounds)


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return f"{value:,}" if type(value) is int else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
