"""A grid of algo.correction: what clipped traces between DREAM and ESCHER do on full gin rummy and on Leduc.

    python experiments/corrections.py gin_rummy --cells 0.9:11 0:11 1:null --seeds 0 1
    python experiments/corrections.py leduc_poker --cells 0.9:3 --seeds 0

Own actions are sampled uniformly (--exploration 1) and the value assumes today's policies, in every cell. A cell and
seed that experiments/results/corrections_<game>.json holds already is not run again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import jax

from dream.algorithms.types import Algorithm
from dream.config.compose import compose_config
from dream.evaluation.matches import match
from dream.game_tree import nash_conv, tabulate
from dream.storage.files import write_json
from dream.storage.tree_cache import stored_tree
from dream.training.start import build_run
from envs import Game, make_bot

RESULTS = Path(__file__).resolve().parent / "results"
OPPONENTS = ("random", "simple_bot")
COUNTED = ("episodes", "decisions", "nodes", "gradient_steps")
SAMPLING = ("regret_second_moment", "effective_sample_size", "baseline_explained_variance")
MEASURED = ("win_rate", "loss_rate", "draw_rate", "points_per_hand")
EVAL_SEED = 71_000
"""Of the deals that policies are measured on."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One setting of the grid: algo.correction as it is written on a command line."""

    trace: str
    clip: str

    @classmethod
    def read(cls, text: str) -> Cell:
        """Reads "<trace>:<clip>"."""
        trace, clip = text.split(":")
        return cls(trace, clip)

    def overrides(self, game: str, exploration: float) -> list[str]:
        """Returns the overrides of a run."""
        return [
            "algo=dream", f"env={game}", f"algo.correction={{trace: {self.trace}, clip: {self.clip}}}",
            f"algo.exploration={exploration}", "algo.weights.importance=true", "algo.values.policy=current",
        ]  # fmt: skip


def trained(learner: Algorithm, seed: int, ends: dict[str, float], progress: str) -> tuple[Any, dict[str, Any]]:
    """Iterates until one of the ends is reached: (state, totals, seconds and means of what the sampling reports)."""
    state, totals, began = learner.init(jax.random.key(seed)), dict.fromkeys((*COUNTED, "iterations"), 0.0), time.time()
    reported = dict.fromkeys(SAMPLING, 0.0)
    while all(totals[name] < end for name, end in ends.items()):
        state, metrics = learner.iterate(state)
        totals = {name: totals[name] + metrics[name] for name in COUNTED} | {"iterations": totals["iterations"] + 1}
        reported = {name: reported[name] + metrics[f"sampling/{name}"] for name in SAMPLING}
        print(f"{progress} iteration {totals['iterations']:.0f} {time.time() - began:.0f} s", flush=True)
    means = {name: float(x / totals["iterations"]) for name, x in reported.items()}
    return state, {**totals, "seconds": round(time.time() - began, 1), "sampling": means}


def measured(game: Game, learner: Algorithm, state: Any, games: int) -> dict[str, Any]:
    """Returns what the average policy is worth: exploitability where it is exact, else matches on fresh deals."""
    average = learner.policies(state)["average"]
    if game.name != "gin_rummy":
        tree = stored_tree(game)
        return {"exploitability": game.reward_scale * nash_conv(tree, tabulate(tree, average)) / 2}
    key = jax.random.key(EVAL_SEED)
    reports = {name: match(game, average, make_bot(name, game), games=games, seed=key) for name in OPPONENTS}
    return {
        name: {what: report[what]._asdict() for what in MEASURED if what in report} | {"n": games}
        for name, report in reports.items()
    }


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("game", choices=("gin_rummy", "leduc_poker"))
    parser.add_argument("--cells", nargs="+", type=Cell.read, required=True, help="<trace>:<clip>")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--exploration", type=float, default=1.0)
    parser.add_argument("--games", type=int, default=1000, help="rounds against each opponent")
    given = parser.parse_args()
    path = RESULTS / f"corrections_{given.game}.json"
    ends = {"iterations": 10} if given.game == "gin_rummy" else {"nodes": 1e6}
    for cell in given.cells:
        overrides = cell.overrides(given.game, given.exploration)
        parts = None
        for seed in given.seeds:
            name = f"{cell.trace}:{cell.clip} exploration {given.exploration:g} seed {seed}"
            if path.exists() and name in json.loads(path.read_text()):
                continue
            parts = parts or build_run(compose_config("config", overrides).node)
            state, record = trained(parts.algorithm, seed, ends, name)
            record |= measured(parts.game, parts.algorithm, state, given.games)
            record |= {"overrides": overrides, "seed": seed, "load_1_minute": os.getloadavg()[0]}
            stored = json.loads(path.read_text()) if path.exists() else {}
            write_json(path, dict(sorted((stored | {name: record}).items())))
            print(name, {key: record[key] for key in record if key in (*OPPONENTS, "exploitability")}, flush=True)


if __name__ == "__main__":
    main()
