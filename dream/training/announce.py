"""What a run says about itself: what it is about to do, before the first compilation, and what to do next."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

import envs
from dream.config.compose import as_value
from dream.config.schema import EvaluateConfig
from dream.evaluation.validity import has_opposite_points
from dream.networks import make_network
from envs import Game, InputError

_WORK = {
    "episodes_per_iteration": "episodes per iteration: {:,}",
    "traversals": "traversals per player and iteration: {:,}",
    "trajectories": "trajectories per player and iteration: {:,}",
    "updates": "full updates per iteration: {:,}",
}
"""Setting of an algorithm -> what it says about the size of an iteration; the first that is there."""


def plan(settings: Mapping[str, Any], game: Game, *, tabular: bool | None, run_dir: Path, done: int) -> list[str]:
    """Returns the lines that say what a run is about to do.

    Args:
      settings: the run's, plain.
      game: what is played.
      tabular: whether the learner keeps tables, and no network; None where that is not known, of one from outside.
      run_dir: where the run is kept.
      done: iterations completed before.
    """
    algo, budget = settings["algo"], settings.get("budget") or {}
    limits = "".join(f", budget.{name}={limit:g}" for name, limit in budget.items() if limit is not None)
    start = f"from iteration {done} to {settings['iterations']:,}" if done else f"{settings['iterations']:,} iterations"
    begins = [f"{algo['name']} on {game.name}", f"{start}{limits}", *_work(algo)]
    evaluated = settings["eval"]
    rivals = ", ".join(evaluated["opponents"]) or "no one"
    learner = {True: "tables, no network · ", False: f"{_network(settings['network'], game)} · ", None: ""}[tabular]
    return [
        " · ".join(begins),
        f"{learner}{device()} · seed {settings['seed']}",
        f"evaluation every {evaluated['every']:,} iterations against {rivals}, "
        f"checkpoint every {settings['checkpoint']['every']:,}",
        f"run directory: {run_dir}",
        "the first iteration compiles; how long one takes is known after it"
        if done < settings["iterations"]
        else f"all {done:,} iterations are done; iterations=<more> goes on",
    ]


def next_steps(run_dir: Path, game: Game, rules: Mapping[str, Any], *, finished: bool, wandb: bool) -> list[str]:
    """Returns the commands that make sense after a run; those that need a two-player zero-sum game only for such games.

    Args:
      run_dir: of the run.
      game: what was played.
      rules: the game's, as the run was given them.
      finished: whether the run came to its end, and was not interrupted.
      wandb: whether there are offline W&B files to send.
    """
    place = as_argument(run_dir)
    steps = [] if finished else [("go on", f"python -m dream.run resume={place}")]
    whole = EvaluateConfig.games // game.num_players * game.num_players  # every deal from every seat
    rounds = "" if whole == EvaluateConfig.games else f" games={whole}"
    steps.append(("evaluate", f"python -m dream.evaluate checkpoint={place} opponent=random{rounds}"))
    if game.num_players == 2 and has_opposite_points(game):
        steps.append(("exploit", f"python -m dream.exploit checkpoint={place}"))
        env = " ".join([f"env={game.name}", *_changed_rules(game.name, rules)])
        steps.append(("rate", f"python -m dream.ladder {env} players=[random,{place}]"))
    if wandb:
        steps.append(("send to W&B", f"wandb sync {shlex.quote(_named(run_dir))}/wandb/offline-run-*"))
    return [f"  {name + ':':<13}{command}" for name, command in steps]


def as_argument(folder: Path) -> str:
    """Returns a folder as the value of a setting on a command line of the shell."""
    return shlex.quote(as_value(_named(folder)))


def _named(folder: Path) -> str:
    """Returns the shortest path of a folder: from the current one where that holds it."""
    return os.path.relpath(folder) if folder.is_relative_to(Path.cwd()) else str(folder)


def _changed_rules(name: str, rules: Mapping[str, Any]) -> list[str]:
    """Returns the overrides that make a game of these rules, without those that change nothing."""
    needed: dict[str, Any] = {}
    for rule, value in rules.items():
        try:
            changes = envs.make(name, **needed, **{rule: value}) != envs.make(name, **needed)
        except InputError:  # not without a later one
            changes = True
        if changes:
            needed[rule] = value
    return [shlex.quote(f"env.rules.{rule}={value}") for rule, value in needed.items()]


def uneven(settings: Mapping[str, Any], sizes: Mapping[int, int]) -> list[str]:
    """Returns a line for each size that the devices do not divide.

    Args:
      settings: of the run or the ladder, plain; those that have the size are named.
      sizes: size -> devices.
    """
    games = {name: x for name, x in settings.get("eval", {}).items() if name.endswith("games")}
    lines, sized = [], {"algo": settings.get("algo", {}), "eval": games, "block": settings.get("block")}
    for size, devices in sizes.items():
        names = _having(sized, size)
        what = " or ".join(f"{name}={size}" for name in names) if names else f"a size of {size}"
        near = [str(n) for n in (size // devices * devices, -(-size // devices) * devices) if n > 0]
        lines.append(
            f"{what} is not divided by {devices} devices: each of them computes all of it; {' and '.join(near)} would "
            "be split"
        )
    return lines


def _having(node: Mapping[str, Any], size: int, path: str = "") -> list[str]:
    found = []
    for key, value in node.items():
        if isinstance(value, Mapping):
            found += _having(value, size, f"{path}{key}.")
        elif type(value) is int and value == size:
            found.append(f"{path}{key}")
    return found


def device() -> str:
    """Returns the accelerators or cores that are used."""
    kind = jax.devices()[0].device_kind
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    among = f" of {jax.process_count()} hosts" if jax.process_count() > 1 else ""
    return f"{jax.device_count()} x {kind}{among}, {cores} CPU core{'s' if cores != 1 else ''}"


def _work(algo: Mapping[str, Any]) -> list[str]:
    """Returns how much an iteration is, in the algorithm's own unit."""
    if algo.get("rollout_length") and algo.get("num_envs"):
        return [f"decisions per iteration: {algo['num_envs']:,} x {algo['rollout_length']:,}"]
    if algo.get("records"):
        return [f"passes over {algo['records']} per iteration: {algo['epochs']:,}"]
    return [words.format(algo[name]) for name, words in _WORK.items() if isinstance(algo.get(name), int)][:1]


def _network(node: Mapping[str, Any], game: Game) -> str:
    """Returns a network's name and size; shapes are traced, nothing is computed."""
    try:
        shapes = jax.eval_shape(make_network(node, game).init, jax.random.key(0))
    except InputError:  # a learner from outside may read this node in its own way
        return f"network {node.get('name', 'of its own')}"
    count = sum(leaf.size for leaf in jax.tree.leaves(shapes))
    return f"network {node['name']}, {count:,} parameters"
