"""Everything this project claims of an accelerator, measured in one sitting: one result file, written after every part.

    python experiments/benchmarks/accelerator.py --minutes 9

The minutes are shared out by part; what a part does not use goes to those after it. A part for which time is out, or
which needs a package that is missing, is skipped with the reason; one that fails says how, and the rest go on.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import accelerator_parts as parts
import jax
from accelerator_information_sets import information_sets
from common import Parser, load_1_minute, machine
from result_tables.accelerator_targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "experiments" / "results" / "accelerator.json"

Part = Callable[[parts.Sitting], dict[str, Any]]
PLAN: dict[str, tuple[Part, float]] = {
    "roofline": (parts.roofline, 2),
    "simple_bot": (parts.simple_bot, 4),
    "document": (parts.document, 9),
    "profile": (parts.profile, 3),
    "openspiel_ppo": (parts.openspiel_ppo, 7),
    "sixteen_actions_ppo": (parts.sixteen_actions_ppo, 9),
    "games": (parts.games, 8),
    "solvers": (parts.solvers, 4),
    "information_sets": (information_sets, 8),
}
"""Name -> what measures it, and its share of the time; the order is that of what is asked first."""
_LEAST = 0.25
"""Of its share, without which a part is not begun."""
_MOST = 3.0
"""Times what its matrix products alone take; what takes longer is named in the result, to be explained or fixed."""


class _OverTimeError(Exception):
    """A part has had its time."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--minutes", type=float, default=9.0, help="of everything (default %(default)s)")
    parser.add_argument("--toy", action="store_true", help="small sizes, to see that it works; for any machine")
    parser.add_argument("--only", nargs="+", choices=PLAN, metavar="PART", help=f"of {', '.join(PLAN)}")
    parser.add_argument("--out", type=Path, default=RESULT, help="the result file (default %(default)s)")
    parser.add_argument("--folder", type=Path, help="for the profile's trace (default: next to the result file)")
    arguments = parser.parse_args()
    if arguments.minutes <= 0:
        parser.error(f"--minutes {arguments.minutes} is not valid; it must be above 0")
    if not arguments.toy:  # a program read from disk would hide what compiling costs
        jax.config.update("jax_enable_compilation_cache", False)
    report = measure(arguments)
    if arguments.json:
        print(json.dumps(report))
    broken = [name for name, found in report["parts"].items() if "failed" in found]
    sys.exit(f"failed: {', '.join(broken)}" if broken else 0)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures part after part and writes the report after each."""
    ends = time.monotonic() + 60.0 * arguments.minutes
    names = arguments.only or list(PLAN)
    folder = arguments.folder or arguments.out.parent
    report: dict[str, Any] = {
        "benchmark": "accelerator",
        "command": shlex.join(["python", *sys.argv]).replace(f"{ROOT}{os.sep}", ""),
        "machine": machine(load_1_minute()),
        "minutes": arguments.minutes,
        "toy": arguments.toy,
        "parts": {},
    }
    for n, name in enumerate(names):
        part, share = PLAN[name]
        left = ends - time.monotonic()
        limit = left * share / sum(PLAN[later][1] for later in names[n:])
        least = _LEAST * 60.0 * arguments.minutes * share / sum(PLAN[one][1] for one in names)
        sitting = parts.Sitting(limit, arguments.toy, arguments.repeats, folder)
        found = {"skipped": f"time is out: {left:.0f} s are left"} if limit < least else _measured(part, sitting)
        report["parts"][name] = found
        report["over_three_times_their_products"] = _too_slow(report["parts"])
        report["targets"] = [
            {"what": one.what, "unit": one.unit, "goals": one.goals, "measured": one.measured(report["parts"])}
            for one in TARGETS
        ]
        _write(arguments.out, report)
        print(f"{name}: {_brief(found)}", file=sys.stderr, flush=True)
    return report


def _measured(part: Part, sitting: parts.Sitting) -> dict[str, Any]:
    """Runs one part; what it found until its time was out, or why it found nothing."""
    began = time.monotonic()
    try:
        with _stopped_after(1.5 * sitting.seconds):
            found = part(sitting)
    except _OverTimeError:
        found = {**sitting.found, "stopped": f"after {1.5 * sitting.seconds:.0f} s, which is half over its time"}
    except ImportError as error:
        found = {"skipped": f"a package is missing: {error}"}
    except Exception as error:
        traceback.print_exc()
        found = {
            **sitting.found,
            "failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        }
    return {**found, "seconds": time.monotonic() - began, **parts.memory()}


@contextlib.contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raises once the time is over and Python runs again; a compilation under way is not cut."""

    def stop(number: int, frame: Any) -> None:
        raise _OverTimeError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1.0))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _too_slow(found: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Returns how often what its products alone take a network took somewhere, where that is too much."""
    return {name: x for name, x in _figures(found) if name.endswith("_over_products") and x > _MOST}


def _figures(found: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Goes through what was found, nested or not, each with the path to it."""
    for name, x in found.items():
        if isinstance(x, dict):
            yield from _figures(x, f"{path}{name} ")
        else:
            yield f"{path}{name}", x


def _write(path: Path, report: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(report, indent=1) + "\n")
    unfinished.replace(path)


def _brief(found: dict[str, Any]) -> str:
    for name in ("failed", "skipped", "stopped"):
        if name in found:
            return f"{name}: {found[name]}"
    return f"{found['seconds']:.0f} s"


if __name__ == "__main__":
    main()
