r"""Tries settings of PPO and MMD on a small game, as many of each, and writes what was tried with its curves.

    python experiments/tune_policy_gradients.py leduc_poker --decisions 2.5e6 \
        --trials experiments/tuning/leduc_poker.yaml --out experiments/results/policy_gradient_trials.json

A file of trials names groups; each has an algorithm, `settings` that all its trials share, and `trials`, of which each
changes some of `VARIED`. Those are arguments of one compiled program, so that a group compiles once. `entropy_end` and
`learning_rate_end` are the factors reached at the end, the first as 1 / sqrt(1 + c decisions), the other linearly;
MMD's kl_weight is divided by the first. Results of other groups in the file are kept.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from omegaconf import OmegaConf

import envs
from dream import algorithms
from dream.algorithms.types import Resources
from dream.config.compose import compose_config
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tabular_policy import tabulate
from dream.game_tree.tree import build_tree

VARIED = (
    "learning_rate", "entropy_weight", "kl_weight", "clip_epsilon", "gae_lambda", "value_weight", "max_grad_norm",
    "epochs", "magnet_tau", "correction_clip",
)  # fmt: skip
ENDS = {"learning_rate_end": 0.0, "entropy_end": 1.0}
POINTS = 20


class Group:
    """Trials that share one compiled program."""

    def __init__(self, env: str, node: dict[str, Any]) -> None:
        """Composes the configuration and builds the game's tree."""
        self.node = compose_config("config", [f"env={env}", f"algo={node['algorithm']}", *node["settings"]]).node
        rules = OmegaConf.to_container(self.node.env.rules)
        self.game = envs.make(self.node.env.name, **rules)
        self.build, self.config = algorithms.read_settings(self.node.algo)
        self.varied = [name for name in VARIED if hasattr(self.config, name)]
        self.tree, self.first = build_tree(self.game), self.learner({})

    def learner(self, changes: dict[str, Any]) -> Any:
        """Returns the learner with some settings changed."""
        config = dataclasses.replace(self.config, **changes)
        return self.build(config, self.node.network, self.game, Resources()).init.__self__

    @functools.partial(jax.jit, static_argnums=0)
    def step(self, state: Any, changes: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
        """Runs an iteration."""
        learner = self.learner(changes)
        played, _, counters = learner.generate(*learner.play_arguments(state))
        state, metrics, _ = learner.learn(*learner.fit_arguments(state, played))
        return state, metrics, counters.decisions

    def exploitability(self, state: Any) -> float:
        """Returns that of the current policy."""
        return nash_conv(self.tree, tabulate(self.tree, self.first.policies(state)["current"])) / 2

    def settings(self, trial: dict[str, float], share: float) -> dict[str, Any]:
        """Returns the settings at a share of the decisions."""
        given = {name: trial.get(name, getattr(self.config, name)) for name in self.varied}
        ends = {name: trial.get(name, default) for name, default in ENDS.items()}
        fall = 1.0 / np.sqrt(1.0 + share * (ends["entropy_end"] ** -2 - 1.0))
        given["learning_rate"] *= 1.0 + (ends["learning_rate_end"] - 1.0) * share
        given["entropy_weight"] *= fall
        if "kl_weight" in given:
            given["kl_weight"] /= fall
        return {name: jnp.int32(x) if name == "epochs" else jnp.float32(x) for name, x in given.items()}

    def run(self, trial: dict[str, float], decisions: float, seed: int) -> dict[str, Any]:
        """Runs one trial; returns its curve."""
        began, state, done, curve = time.perf_counter(), self.first.init(jax.random.key(seed)), 0, []
        while done < decisions:
            state, _, played = self.step(state, self.settings(trial, min(done / decisions, 1.0)))
            done += int(played)
            if done >= len(curve) * decisions / POINTS or done >= decisions:
                curve.append((done, round(self.exploitability(state), 5)))
        seconds = round(time.perf_counter() - began, 1)
        last = [value for _, value in curve]
        return {"trial": trial, "last": last[-1], "mean_of_last_3": float(np.mean(last[-3:])), "curve": curve,
                "seconds": seconds, "seed": seed}  # fmt: skip


def main() -> None:
    """Runs the groups asked for, one after the other, and stores each when it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env")
    parser.add_argument("--trials", type=Path, required=True, help="the file of groups")
    parser.add_argument("--groups", nargs="*", help="those to run; by default all")
    parser.add_argument("--decisions", type=float, default=2.5e6)
    parser.add_argument("--seed", type=int, default=100, help="none that a result is judged by")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    groups = OmegaConf.to_container(OmegaConf.load(given.trials))
    for name in given.groups or groups:
        group, found = Group(given.env, groups[name]), []
        for trial in groups[name]["trials"]:
            found.append(group.run(trial, given.decisions, given.seed))
            print(name, trial, found[-1]["last"], found[-1]["mean_of_last_3"], found[-1]["seconds"], flush=True)
            stored = json.loads(given.out.read_text()) if given.out.exists() else {}
            of_game = stored.setdefault(given.env, {})
            of_game[name] = {**groups[name], "decisions": given.decisions, "trials": found}
            given.out.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
