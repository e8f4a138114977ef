r"""Compares lower bounds on exploitability with exact values, on average policies of CFR.

    python experiments/calibration.py
    python experiments/calibration.py --games leduc_poker --iterations 100
    python experiments/calibration.py best_response.seeds=[0] --games leduc_poker    # settings of dream.exploit, first

The fewer iterations, the more can be gained against the policy. Each bound is computed as `python -m dream.exploit`
does; results are merged into experiments/results/calibration.json game by game.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from scripting.arguments import Parser, at_least_one, result_file
from scripting.run_records import holds, stored_result

import dream
from dream.storage import files
from envs import InputError

RESULT = Path(__file__).resolve().parent / "results" / "calibration.json"
KEPT = ("unit", "learned", "local")
GAMES = ("liars_dice", "mini_gin_rummy", "leduc_poker")
METHODS = {"both": ("best_response.", "exact, and a learned response"), "local": ("local.", "a local response")}
"""Method of dream.exploit: what its settings begin with, and what it computes."""


def measured(game: str, iterations: int, overrides: list[str]) -> dict[str, Any]:
    """Returns the exact exploitability of CFR's average policy, what each response finds, and their ratios."""
    trained = [f"env={game}", "algo=cfr", f"iterations={iterations}"]
    found: dict[str, Any] = {
        "game": game,
        "iterations": iterations,
        "policy": " ".join(("python -m dream.run", *trained)),
    }
    with tempfile.TemporaryDirectory() as folder:
        quietly = [f"run_dir={folder}/run", "tracking.mode=disabled", "eval.opponents=[]"]
        run = dream.train([*trained, *quietly], quiet=True)
        for method, (prefix, what) in METHODS.items():
            print(f"{game}, {iterations} iterations of CFR: {what}", flush=True)
            began = time.perf_counter()
            report = dream.exploit(run, [one for one in overrides if one.startswith(prefix)], method=method)
            found |= {name: x for name, x in report.record.items() if name in KEPT or name.endswith("_over_exact")}
            found["exact"] = {"nash_conv": report.nash_conv, "exploitability": report.exploitability}
            found[f"seconds_{method}"] = round(time.perf_counter() - began, 1)
    return found | {"overrides": overrides}


def stored_bounds(path: Path) -> dict[str, Any]:
    """Returns what a result file holds; raises InputError where it is damaged, or of something else."""
    return stored_result(path, each=holds("exact", *KEPT))


def check(overrides: list[str]) -> None:
    """Raises InputError where a setting is of neither bound."""
    prefixes = tuple(prefix for prefix, _ in METHODS.values())
    for one in overrides:
        if not one.startswith(prefixes):
            raise InputError(f"{one!r} is of neither bound; settings begin with {' or '.join(prefixes)}")


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=GAMES)
    parser.add_argument("--iterations", type=at_least_one, default=4, help="of CFR (default %(default)s)")
    parser.add_argument("--out", type=result_file, default=RESULT)
    parser.add_argument("settings", nargs="*", help="of dream.exploit, as on its command line")
    arguments = parser.parse_args()
    try:
        check(arguments.settings)
        stored = stored_bounds(arguments.out)
        for game in arguments.games:
            stored[f"{game} {arguments.iterations}"] = measured(game, arguments.iterations, arguments.settings)
            files.write_json(arguments.out, stored)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
