"""Where a run starts: a new run directory, or the checkpoint of an old one."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

import envs
from dream import algorithms, networks
from dream.compiled.agreement import agreed
from dream.config import settings
from dream.config.compose import Composed, beside_recipe, check_names, mixed_recipe, update
from dream.config.schema import HostsConfig, RunConfig
from dream.rollout.opponents import PAST_SELF, SELF
from dream.storage import files, lock
from dream.storage.checkpoint import Checkpoint, find, has_checkpoint, newest
from dream.storage.policies import RESOURCES, check_game, find_opponent, places_of
from dream.storage.reports import measured_players
from dream.training import cautions, hosts, memory
from dream.training.beginning import Parts, Start
from envs import InputError
from envs.errors import naming

_ROOT = Path("runs")
_BEGINNING = ("algo.start_from", "algo.initial_scale")
"""Settings that decide nothing but the first weights; the first may become null, where what it names is gone."""
_MEANINGS = {
    "algo.unit": "the networks in {} learned",
    "algo.regrets.head": "the networks in {} learned",
    "algo.memory.kind": "the samples in {} were kept",
}
"""Settings that say what the outputs of a network or the rows of a buffer are -> what has been made with them."""
_FREE = {"iterations", "budget", "eval", "checkpoint", "tracking", "hosts", "devices", "resume", "run_dir"}
"""Settings with which a sweep's job may go on otherwise than it was begun: how long, where and how it is measured."""


def build_run(node: Any) -> Parts:
    """Reads a run's configuration and builds every part of it, so that whatever is wrong shows before work begins.

    Raises:
      InputError: a wrong key, type or range, an unknown name, or parts that do not fit.
    """
    config = settings.read(RunConfig, node, "")
    game = envs.make(config.env.name, **config.env.rules)
    algorithm = algorithms.make(config.algo, config.network, game, RESOURCES)
    for name in ("nodes", "episodes"):
        if getattr(config.budget, name) is not None and name not in algorithm.counts:
            other = algorithm.counts[0] if algorithm.counts else "seconds"
            raise InputError(
                f"budget.{name}={getattr(config.budget, name):g} ends no run of algo={config.algo['name']}, which "
                f"counts no {name} here; use budget.{other} instead"
            )
    for name in ("games", "final_games"):
        if game.num_players == 2 and getattr(config.eval, name) % 2:
            raise InputError(f"eval.{name}={getattr(config.eval, name)} is odd; it must be even: deals are mirrored")
    named = config.eval.opponents
    if twice := next((name for name in named if named.count(name) > 1), None):
        raise InputError(f"eval.opponents={list(named)} names {twice!r} twice; name each once")
    with naming("eval.opponents"):
        places = places_of(named, game)
        opponents = {name: find_opponent(place, game) for name, place in places.items()}
    met = {name: name for name in config.algo.get("opponents", ()) if name not in (SELF, PAST_SELF)}
    if config.algo.get("player") is not None and config.algo.get("records") is None:  # whom behaviour cloning imitates
        met[config.algo["player"]] = config.algo["player"]
    trained = measured_players(met | places, game)
    return Parts(config, game, algorithm, opponents, trained)


def prepare_run(composed: Composed) -> Start:
    """Checks a composed configuration and decides where the run starts; writes nothing.

    Raises:
      InputError: a wrong setting, an occupied run directory, or a checkpoint that cannot be resumed.
    """
    config = settings.read(HostsConfig, composed.node.get("hosts", {}), "hosts")
    if composed.sweep_dir and config != HostsConfig():
        raise InputError("hosts.* belongs to a single run; the jobs of a sweep are one process each")
    hosts.join(config)
    with hosts.together(), jax.enable_x64(False):
        start = _prepared(composed)
        hosts.same(start.plain, _found(start))
        return dataclasses.replace(start, run_dir=Path(agreed("run_dir", str(start.run_dir))))


def _found(start: Start) -> dict[str, Any]:
    """Returns what every host must have found as the first one did, besides the settings."""
    found = {"jax": jax.__version__, "players": start.parts.trained}
    if start.checkpoint is None:
        return found
    meta = start.checkpoint.meta
    return found | {"checkpoint": {name: meta[name] for name in ("iteration", "checksum")}}


def _prepared(composed: Composed) -> Start:
    """Checks a composed configuration of this process."""
    if composed.node.resume is not None:
        return _resume(composed)
    if composed.node.run_dir == "":
        raise InputError("run_dir= is empty; it must be a folder for the run, or be left out")
    if composed.sweep_dir is not None and has_checkpoint(composed.sweep_dir):
        return _go_on(composed, find(composed.sweep_dir))
    check_names(composed, "env", "algo")
    parts = _built(composed)
    cautions.check_lengths(composed)
    config = parts.config
    if not parts.algorithm.has_network and (given := composed.given("network")):
        raise InputError(
            f"{given[0]} has no effect with algo={config.algo['name']}, which has no network; leave it out"
        )
    run_dir = _new_run_dir(composed, config.env.name, config.seed)
    if composed.sweep_dir and (run_dir.parent / files.CONFIG_FILE).is_file():
        raise InputError(f"run_dir={run_dir.parent} holds a run; a sweep needs a folder of its own")
    blocked = next((folder for folder in run_dir.parents if folder.exists()), run_dir)
    if not blocked.is_dir():
        raise InputError(f"run_dir={run_dir} cannot be made: {blocked} is a file; choose another folder")
    group = run_dir.parent.name if composed.sweep_dir else f"{config.algo['name']}_{config.env.name}"
    name = job_name(composed.overrides) if composed.sweep_dir else run_dir.name
    for line in filter(None, (mixed_recipe(composed), cautions.long_schedules(composed, composed.node))):
        print(line, flush=True)
    start = _start(composed.node, parts, composed.choices, run_dir, None, group, name)
    if run_dir.exists() and (not run_dir.is_dir() or any(path.name != lock.FILE for path in run_dir.iterdir())):
        _check_start_over(start)
    return start


def _built(composed: Composed) -> Parts:
    try:
        return build_run(composed.node)
    except InputError as error:
        if note := beside_recipe(composed):
            raise InputError(f"{error}{note}") from error
        raise


def job_name(overrides: tuple[str, ...]) -> str:
    """Returns a name for a job of a sweep: its overrides, as many as W&B takes."""
    return ",".join(text for text in overrides if not text.startswith("run_dir="))[:128] or "job"


def _check_start_over(start: Start) -> None:
    """Lets a run begin again in the folder of one with the same settings that ended before its first checkpoint.

    Raises:
      InputError: another process works in the folder, or it holds anything else.
    """
    run_dir, config_file = start.run_dir, start.run_dir / files.CONFIG_FILE
    lock.RunLock(run_dir).check_free()
    if has_checkpoint(run_dir):
        raise InputError(f"run_dir={run_dir} exists; choose a new folder, or go on with resume={run_dir}")
    if (run_dir / files.EVALUATION_FILE).is_file():
        raise InputError(
            f"run_dir={run_dir} holds a finished run whose checkpoints are gone; choose a new folder, or delete it"
        )
    if not config_file.is_file():
        raise InputError(f"run_dir={run_dir} exists and holds no run; choose a new folder")
    try:
        same = OmegaConf.to_container(OmegaConf.load(config_file)) == start.plain
    except (OSError, ValueError, YAMLError, OmegaConfBaseException):
        same = False
    if not same:
        raise InputError(
            f"run_dir={run_dir} holds a run with other settings and no checkpoint; choose a new folder, or delete it"
        )
    print(f"{run_dir} holds this run without a checkpoint: it starts over", flush=True)


def _resume(composed: Composed) -> Start:
    """Returns the start of a run that goes on: its own configuration with the values given with `resume=`."""
    reference = str(composed.node.resume)
    if not reference:
        raise InputError("resume= is empty; it must be a run directory or a checkpoint's folder in one")
    checkpoint = _find_to_resume(reference)
    run_dir = checkpoint.run_dir
    given = composed.node.run_dir
    if given is not None and Path(given).expanduser().absolute() != run_dir:
        raise InputError(f"run_dir={given} is not the run that resume= goes on with, {run_dir}; leave it out")
    stored = OmegaConf.create(checkpoint.meta["config"])
    for key in composed.node.keys() - stored.keys():
        stored[key] = composed.node[key]  # a setting that came after the checkpoint
    choices = checkpoint.meta["choices"]
    _refuse_new_rules(checkpoint, stored, composed.overrides)
    node = update(stored, composed.overrides, choices, skip={"resume", "run_dir"})
    for part in ("network", "env", "seed"):
        if node[part] != stored[part]:
            then, now = _differing(stored[part], node[part])
            raise InputError(
                f"{part} cannot be changed by resume=: {checkpoint.path} has {then}, the overrides ask for {now}"
            )
    for name in _BEGINNING:
        now, then = OmegaConf.select(node, name), OmegaConf.select(stored, name)
        if now not in (None, then):
            raise InputError(
                f"{name} cannot be changed by resume=: {checkpoint.path} has {then}, and weights learned since; "
                f"{now} is for a new run"
            )
    for name, made in _MEANINGS.items():
        if (then := OmegaConf.select(stored, name)) not in (None, OmegaConf.select(node, name)):
            raise InputError(
                f"{name} cannot be changed by resume=: {made.format(checkpoint.path)} with {name}={then}; "
                "start a new run"
            )
    if node.algo.name != stored.algo.name:
        raise InputError(f"algo.name={node.algo.name} cannot be changed by resume=; the run has {stored.algo.name}")
    if stored.algo.get("rollout_length") is not None and node.algo.opponents != stored.algo.opponents:
        raise InputError(
            f"algo.opponents cannot be changed by resume= with algo.rollout_length: {checkpoint.path} holds unfinished "
            f"games against {', '.join(stored.algo.opponents)}"
        )
    cautions.check_changed_ends(composed, node, checkpoint)
    for line in filter(None, (*cautions.of_resume(stored, node), cautions.long_schedules(composed, node))):
        print(line, flush=True)
    return _start_from(checkpoint, node, choices)


def _go_on(composed: Composed, checkpoint: Checkpoint) -> Start:
    """Returns the start of a sweep's job that goes on from its folder's newest checkpoint.

    Raises:
      InputError: the folder holds a job with other settings.
    """
    start = _start_from(checkpoint, composed.node, composed.choices)
    asked, stored = (
        settings.flat({key: value for key, value in node.items() if key not in _FREE})
        for node in (start.plain, checkpoint.meta["config"])
    )
    if other := [name for name in asked if name in stored and asked[name] != stored[name]]:
        raise InputError(
            f"run_dir={start.run_dir.parent} holds a job {start.run_dir.name} with {other[0]}={stored[other[0]]}, "
            f"not {asked[other[0]]}; choose a new folder"
        )
    for line in cautions.of_resume(OmegaConf.create(checkpoint.meta["config"]), composed.node):
        print(line, flush=True)
    return start


def _start_from(checkpoint: Checkpoint, node: DictConfig, choices: dict[str, str]) -> Start:
    """Returns the start of a run that goes on from a checkpoint with a configuration."""
    parts, run_dir = build_run(node), checkpoint.run_dir
    config = parts.config
    check_game(checkpoint, parts.game, payoffs=True)
    done = checkpoint.meta["iteration"]
    for name, earlier in checkpoint.meta.get("players", {}).items():
        if (now := parts.trained.get(name, earlier)) != earlier:
            print(f"{name} is another player than before: {_stated(now)}, not {_stated(earlier)}", flush=True)
    if config.iterations < done:
        raise InputError(f"iterations={config.iterations} is less than the {done} iterations that {run_dir} has done")
    cautions.check_budget(checkpoint, node)
    cautions.check_fixed(checkpoint, parts.algorithm.fixed)
    group = checkpoint.meta.get("group", f"{config.algo['name']}_{config.env.name}")
    return _start(node, parts, choices, run_dir, checkpoint, group, checkpoint.meta.get("name", run_dir.name))


def _stated(player: Mapping[str, Any]) -> str:
    return f"of iteration {player['iteration']}, checksum {player['checksum']}"


def _find_to_resume(reference: str) -> Checkpoint:
    """Opens a checkpoint; raises InputError, which for a run that has none yet says how to start it over."""
    run_dir = Path(reference).expanduser()
    if run_dir.is_file():
        raise InputError(
            f"resume={reference} is a file; it must be a run directory or a checkpoint's folder in one. A new run can "
            "begin with an export's weights: algo.start_from="
        )
    if (run_dir / files.CONFIG_FILE).is_file() and not has_checkpoint(run_dir):
        lock.RunLock(run_dir).check_free()
        if (run_dir / files.EVALUATION_FILE).is_file():
            raise InputError(f"{reference} is a finished run whose checkpoints are gone; it cannot be resumed")
        raise InputError(
            f"{reference} has no checkpoint yet; the command that made it starts it over, with run_dir={reference}"
        )
    return find(reference)


def _refuse_new_rules(checkpoint: Checkpoint, stored: DictConfig, overrides: Sequence[str]) -> None:
    """Raises InputError where an override gives a rule that the run's configuration leaves to its preset."""
    for override in overrides:
        rule = override.split("=")[0].lstrip("+~")
        if rule.startswith("env.rules.") and OmegaConf.select(stored, rule) is None:
            raise InputError(
                f"env cannot be changed by resume=: {checkpoint.path} has {OmegaConf.to_container(stored.env)}, "
                f"the overrides ask for {override}"
            )


def _differing(one: object, other: object) -> tuple[object, object]:
    """Returns what differs of two settings: of groups, the keys that do."""
    if not (OmegaConf.is_dict(one) and OmegaConf.is_dict(other)):
        return one, other
    plain = [OmegaConf.to_container(group) for group in (one, other)]
    keys = [key for key in plain[0] | plain[1] if plain[0].get(key) != plain[1].get(key)]
    return tuple({key: group[key] for key in keys if key in group} for group in plain)


def _start(
    node: DictConfig,
    parts: Parts,
    choices: dict[str, str],
    run_dir: Path,
    checkpoint: Checkpoint | None,
    group: str,
    name: str,
) -> Start:
    node = node.copy()
    cautions.check_whole_run(node, parts.algorithm)
    fits_late = checkpoint is None and parts.algorithm.settle is not None
    for line in (
        cautions.idle_steps(node, 0 if checkpoint is None else checkpoint.meta["iteration"]),
        cautions.young_averages(node.algo, node.iterations),
        cautions.leaning_regrets(OmegaConf.to_container(node.algo, resolve=True)),
        cautions.late_averages(node) if fits_late else "",
        memory.notice(parts.algorithm, OmegaConf.to_container(node.algo, resolve=True)),
    ):
        if line:
            print(line, flush=True)
    node.run_dir = node.resume = None
    node.hosts = dataclasses.asdict(HostsConfig())  # where a run is at work is no part of it
    last = None if checkpoint is None else newest(run_dir)
    return Start(parts, _plain(node, parts), choices, run_dir, checkpoint, group, name, last)


def _plain(node: DictConfig, parts: Parts) -> dict[str, Any]:
    """Returns a configuration as plain containers, whole numbers as they were read."""
    plain = settings.as_read(OmegaConf.to_container(node, resolve=True), parts.config)
    plain["env"] = settings.as_read(plain["env"], parts.game.identity)
    plain["algo"] = settings.as_read(plain["algo"], algorithms.read_settings(plain["algo"])[1])
    with contextlib.suppress(InputError):  # a learner from outside may read this node in its own way
        plain["network"] = settings.as_read(plain["network"], networks.read_settings(plain["network"])[1])
    return plain


def with_stored_choices(overrides: list[str]) -> list[str]:
    """Puts the group choices of the run that `resume=` names before the overrides that lack them.

    So that the settings of its own algorithm and game can be given with `resume=`, whatever the defaults are.

    Raises:
      InputError: there is no checkpoint to go on from.
    """
    given = dict(text.split("=", 1) for text in overrides if "=" in text)
    reference = given.get("resume", "null").strip("'\"")
    if reference in ("null", ""):
        return overrides
    choices = _find_to_resume(reference).meta.get("choices", {})
    kept = [f"{group}={choices[group]}" for group in ("algo", "env", "network") if choices.get(group, "None") != "None"]
    return [text for text in kept if text.split("=")[0] not in given] + overrides


def _new_run_dir(composed: Composed, game: str, seed: int) -> Path:
    """Returns the folder of a new run: the one asked for, the sweep's, or a new name under runs/."""
    asked = composed.node.run_dir
    if composed.sweep_dir:
        return composed.sweep_dir
    if asked is not None:
        return Path(asked).expanduser().absolute()
    stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
    return (_ROOT / f"{stamp}_{composed.choices['algo']}_{game}_seed{seed}").absolute()
