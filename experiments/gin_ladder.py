#!/usr/bin/env python3
"""Plays the ladder of rule-based gin players under the EAAI challenge's rules and stores ratings and heat maps.

    python experiments/gin_ladder.py --run-dir runs/gin_ladder --processes 2

The ladder goes on where an earlier call in the same folder stopped. Written: experiments/results/ladder_gin_eaai.json,
and its ratings and cross-tables as figures next to it.
"""

from __future__ import annotations

import pathlib
import shutil

from scripting.arguments import Parser

from dream.commands.ladder import FILE, play_ladder, prepare_ladder
from dream.config.compose import compose_config
from envs import InputError

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
NAME = "ladder_gin_eaai"
PLAYERS = ("patient", "greedy", "eaai_simple", "camper", "heuristic", "marjj")
SETTINGS = ("env=gin_rummy", "env.rules.preset=eaai", "games=2000", "block=1000", "seed=19")


def main() -> None:
    """Plays what is missing, and copies what came out."""
    parser = Parser(__doc__.splitlines()[0])
    parser.add_argument("--run-dir", type=pathlib.Path, default=pathlib.Path("runs/gin_ladder"))
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    folder = [f"run_dir={arguments.run_dir}", f"processes={arguments.processes}"]
    try:
        prepared = prepare_ladder(compose_config("ladder", [*SETTINGS, f"players=[{','.join(PLAYERS)}]", *folder]))
    except InputError as error:
        parser.exit(2, f"error: {error}\n")
    play_ladder(prepared)
    shutil.copy(arguments.run_dir / FILE, RESULTS / f"{NAME}.json")
    for figure in ("ladder", "ladder_points", "ladder_games"):
        shutil.copy(arguments.run_dir / f"{figure}.svg", RESULTS / f"{figure.replace('ladder', NAME)}.svg")


if __name__ == "__main__":
    main()
