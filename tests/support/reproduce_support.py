"""Runs of learners that never ran: the files that a result is made from, written out."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from omegaconf import OmegaConf

from dream.config.compose import compose_config
from dream.training import metrics

ROWS = """
overrides: [tracking.mode=disabled]
games:
  coin: {title: Coin, overrides: [env=kuhn_poker], thresholds: [0.1, 0.06]}
  dice: {title: Dice, overrides: [env=leduc_poker]}
rows:
  long:
    {game: coin, algorithm: cfr, budget: {nodes: 1000}, published: 60, source: a paper, seeds: [0, 1, 2],
     tolerance: {at_most: 65}}
  long_at_500: {run: long, budget: {nodes: 500}, tolerance: {at_least: 100}}
  other: {game: dice, algorithm: ppo, policy: current, budget: {iterations: 4}, deterministic: true, seeds: [0]}
"""


COIN = ("env=kuhn_poker", "algo=cfr")
DICE = ("env=leduc_poker", "algo=ppo")


def write_run(
    run_dir: pathlib.Path,
    values: list[float | None],
    policy: str = "average",
    step: int = 100,
    overrides: tuple[str, ...] = COIN,
) -> None:
    """Writes a run: exploitability by iteration, None where not evaluated; `step` nodes each, 2 s; its configuration.

    The seed is the number in the folder's name, 0 where it has none.
    """
    run_dir.mkdir(parents=True)
    seed = "".join(filter(str.isdigit, run_dir.name)) or "0"
    OmegaConf.save(compose_config("config", [*overrides, f"seed={seed}"]).node, run_dir / "config.yaml", resolve=True)
    for n, value in enumerate(values, start=1):
        record: dict[str, Any] = dict.fromkeys(metrics.COUNTERS, 10 * n)
        record |= {"iteration": n, "nodes": step * n, "seconds": 2.0 * n, "compile_seconds": 0.5}
        if value is not None:
            record |= {f"eval/exploitability/{policy}": value, "seconds_evaluate": 0.25}
        metrics.append(run_dir, record)
    reported = {"device": "1 x cpu", "cores": 2, "jax": "0", "git_commit": "abc", "load_1_minute": 1.5}
    (run_dir / "versions.json").write_text(json.dumps(reported))
