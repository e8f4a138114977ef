r"""Tries settings of PPO and MMD on a small game, as many of each, and writes what was tried with its curves.

    python experiments/tune_policy_gradients.py leduc_poker --decisions 2.5e6 \
        --trials experiments/tuning/leduc_poker.yaml --out experiments/results/policy_gradient_trials.json

A file of trials names groups; each has an algorithm, `settings` that all its trials share, and `trials`, of which each
changes some of `VARIED`. Those are arguments of one compiled program, so that a group compiles once. `entropy_end` and
`learning_rate_end` are the factors reached at the end, the first as 1 / sqrt(1 + c decisions), the other linearly;
MMD's kl_weight is divided by the first. They stand for the algorithm's own schedules, which are off. Exploitability is
in the game's unit. Results of other groups in the file are kept; those of a group that is stored are replaced when all
of its trials are done, and not by fewer decisions.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from omegaconf import OmegaConf
from scripting.arguments import Parser, above_zero, result_file
from scripting.run_records import check_as_many, holds, stored_result
from yaml import YAMLError

import envs
from dream import algorithms
from dream.algorithms.types import Resources
from dream.config.compose import compose_config
from dream.equations import schedules
from dream.game_tree.sequence_form import nash_conv
from dream.game_tree.tabular_policy import tabulate
from dream.game_tree.tree import build_tree
from dream.storage.files import why_not, write_json
from envs import InputError
from envs.errors import unknown

VARIED = (
    "learning_rate", "entropy_weight", "kl_weight", "clip_epsilon", "gae_lambda", "value_weight", "max_grad_norm",
    "epochs", "magnet_tau", "correction_clip",
)  # fmt: skip
ENDS = {"learning_rate_end": 0.0, "entropy_end": 1.0}
POINTS = 20
SCHEDULES = ("learning_rate_decay", "entropy_decay")
"""Of the algorithms: a trial's own factors stand for them."""
PARTS = ("algorithm", "settings", "trials")
"""Of a group."""


class Group:
    """Trials that share one compiled program."""

    def __init__(self, env: str, node: dict[str, Any]) -> None:
        """Composes the configuration and builds the game's tree."""
        self.node = composed(env, node)
        rules = OmegaConf.to_container(self.node.env.rules)
        self.game = envs.make(self.node.env.name, **rules)
        self.build, config = algorithms.read_settings(self.node.algo)
        self.config = dataclasses.replace(config, **dict.fromkeys(SCHEDULES, schedules.constant(1.0)))
        self.varied = varied(self.config)
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
        """Returns that of the current policy, in the game's unit."""
        gap = nash_conv(self.tree, tabulate(self.tree, self.first.policies(state)["current"]))
        return gap * self.game.reward_scale / 2

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


def composed(env: str, node: dict[str, Any]) -> Any:
    """Returns the configuration that all trials of a group share."""
    return compose_config("config", [f"env={env}", f"algo={node['algorithm']}", *node["settings"]]).node


def varied(config: Any) -> list[str]:
    """Returns those of VARIED that an algorithm has."""
    return [name for name in VARIED if hasattr(config, name)]


def check_trials(env: str, groups: dict[str, dict[str, Any]]) -> None:
    """Raises InputError where a trial changes what its group's program does not vary, or to no number."""
    for name, node in groups.items():
        known = [*varied(algorithms.read_settings(composed(env, node).algo)[1]), *ENDS]
        for trial in node["trials"]:
            if not isinstance(trial, dict):
                raise InputError(f"group {name}: trial {trial!r} is not valid; it must name settings and their values")
            for key, value in trial.items():
                if key not in known:
                    raise unknown(f"setting of group {name},", key, known)
                if type(value) not in (int, float):
                    raise InputError(f"group {name}: a trial has {key}={value!r}; it must be a number")


def chosen(path: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """Returns the groups of a file of trials that are named, all of them where none is.

    Raises:
      InputError: no such file, one of something else, a group that it does not have, or one with schedules.
    """
    try:
        groups = OmegaConf.to_container(OmegaConf.load(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({why_not(error)[0]}); --trials must be a file of groups") from error
    except (ValueError, YAMLError) as error:
        raise InputError(f"{path} is damaged ({str(error).splitlines()[0]}); it must be YAML") from error
    if not isinstance(groups, dict) or not groups:
        raise InputError(f"{path} holds no groups; it must name some, each with {', '.join(PARTS)}")
    for name in names or groups:
        if name not in groups:
            raise InputError(f"--groups {name} is not in {path}; it must be among {', '.join(map(str, groups))}")
        parts = groups[name] if isinstance(groups[name], dict) else {}
        if missing := [part for part in PARTS if part not in parts]:
            raise InputError(f"group {name} of {path} lacks {missing[0]}; it must have {', '.join(PARTS)}")
        for text in parts["settings"]:
            if text.lstrip("+~").startswith(tuple(f"algo.{schedule}" for schedule in SCHEDULES)):
                raise InputError(
                    f"group {name} of {path} sets {text}; its trials must have {' or '.join(ENDS)} instead"
                )
    return {name: groups[name] for name in names or groups}


def stored_trials(path: Path) -> dict[str, Any]:
    """Returns what a result file holds by game and group; raises InputError where it is damaged, or of others."""
    tuned = holds("decisions", "trials")
    return stored_result(path, each=lambda game: isinstance(game, dict) and all(map(tuned, game.values())))


def tried(given: argparse.Namespace) -> None:
    """Runs the groups asked for, one after the other, and stores each trial when it is done, a stored group whole.

    Raises:
      InputError: as `chosen` and `check_trials`; a game, an algorithm or a setting that is not there, stored results
        that are damaged, or a stored group of more decisions.
    """
    groups = chosen(given.trials, given.groups)
    check_trials(given.env, groups)
    known = stored_trials(given.out).get(given.env, {})  # damage is refused before anything is run
    spent = {name: int(group["decisions"]) for name, group in known.items()}
    check_as_many(given.out, "decisions of group", spent, dict.fromkeys(groups, int(given.decisions)))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for name, node in groups.items():
        group, found = Group(given.env, node), []
        for trial in node["trials"]:
            found.append(group.run(trial, given.decisions, given.seed))
            print(name, trial, found[-1]["last"], found[-1]["mean_of_last_3"], found[-1]["seconds"], flush=True)
            if name in known and len(found) < len(node["trials"]):
                continue
            stored = stored_trials(given.out)
            stored.setdefault(given.env, {})[name] = {**node, "decisions": given.decisions, "trials": found}
            write_json(given.out, stored)


def main() -> None:
    """Runs the command."""
    parser = Parser(__doc__)
    parser.add_argument("env")
    parser.add_argument("--trials", type=Path, required=True, help="the file of groups")
    parser.add_argument("--groups", nargs="*", default=[], help="those to run; by default all")
    parser.add_argument("--decisions", type=above_zero, default=2.5e6)
    parser.add_argument("--seed", type=int, default=100, help="none that a result is judged by")
    parser.add_argument("--out", type=result_file, required=True)
    given = parser.parse_args()
    try:
        tried(given)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()
