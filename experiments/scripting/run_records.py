"""What a run directory says of its run, and whether runs can stand together in one result."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from yaml import YAMLError

import envs
from dream import networks
from dream.algorithms import read_settings
from dream.config import settings as schemas
from dream.config.compose import compose_config
from dream.storage.files import CONFIG_FILE, EVALUATION_FILE, VERSIONS_FILE, decoded
from dream.storage.old_configs import current_config
from dream.training import metrics
from dream.training.sweeps import is_finished
from envs import Game, InputError

_MADE = ("git_commit", "device", "jax", "load_1_minute")
_FOLDERS = ("run_dir", "resume")
_PLAIN = re.compile(r"[\w./:@%+-]+( [\w./:@%+-]+)*")
"""Texts that Hydra's grammar takes without quotes."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A run, by its directory.

    Attributes:
      path: the directory.
      learner: its algorithm, as `learner_of` names it.
      seed: of the run.
      game_name: the game, with the preset or version of its rules.
      game: the game.
      recipe: settings of algorithm and network, complete.
      budget: what ends the run: iterations and limits.
    """

    path: Path
    learner: str
    seed: int
    game_name: str
    game: Game
    recipe: dict[str, Any]
    budget: dict[str, Any]


def read_run(path: Path) -> Run:
    """Reads a run's configuration.

    Raises:
      InputError: no run directory, or a game or an algorithm that this version does not have.
    """
    return run_of(path, config_of(path))


def run_of(path: Path, config: dict[str, Any]) -> Run:
    """Returns the run of a configuration; the path is what it is named by.

    Raises:
      InputError: a game or an algorithm that this version does not have.
    """
    name, game = game_in(config)
    return Run(path, learner_of(config), config["seed"], name, game, recipe_of(config), budget_of(config))


def read_json(path: Path) -> Any:
    """Returns what a JSON file holds.

    Raises:
      InputError: there is no such file, or it is damaged.
    """
    try:
        return decoded(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); {path.parent} must be a run directory") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged ({error}); it must be JSON") from error


def stored_result(path: Path, *parts: str, each: Callable[[Any], bool] = lambda one: True) -> dict[str, Any]:
    """Returns what a result file holds; nothing where there is none.

    Args:
      path: the file.
      *parts: names of what it must hold.
      each: whether what stands under a name is of these results.
    Raises:
      InputError: it is damaged, or of something else.
    """
    if not path.exists():
        return {}
    stored = read_json(path)
    is_whole = isinstance(stored, dict) and all(part in stored for part in parts)
    if not is_whole or not all(each(one) for one in stored.values()):
        raise InputError(f"{path} holds something else than these results; give another --out")
    return stored


def holds(*names: str) -> Callable[[Any], bool]:
    """Returns what says whether something is an object with these names, for `each` of `stored_result`."""
    return lambda one: isinstance(one, dict) and one.keys() >= {*names}


def check_as_many(path: Path, unit: str, stored: Mapping[str, int], found: Mapping[str, int]) -> None:
    """Raises InputError where a result file has more of something than what would replace it.

    Args:
      path: the file.
      unit: what is counted, with its preposition, such as "deals of".
      stored: how many it has, by what they are of.
      found: how many would replace them.
    """
    for name, number in stored.items():
        if (here := found.get(name, number)) < number:
            raise InputError(
                f"{path} holds {number:,} {unit} {name}, here are {here:,}; make it as many, or give another --out"
            )


def finished(run: Path) -> bool:
    """Returns whether there is a run that has done all that its configuration asks for, and was evaluated there.

    Raises:
      InputError: there is a final evaluation, but no configuration of a run.
    """
    if not (run / EVALUATION_FILE).exists():
        return False
    records = metrics.scan(run)[0]
    return bool(records) and is_finished(run, flat(config_of(run)), records[-1])


def config_of(run: Path) -> dict[str, Any]:
    """Returns a run's configuration, resolved, under the present names.

    Raises:
      InputError: no run directory.
    """
    return current_config(_config(run))


def _config(run: Path) -> dict[str, Any]:
    path = run / CONFIG_FILE
    if not path.is_file():
        raise InputError(f"{run} holds no {CONFIG_FILE}; it must be a run directory")
    try:
        config = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except (OSError, ValueError, YAMLError) as error:
        raise InputError(f"{path} cannot be read as a run's configuration ({str(error).splitlines()[0]})") from error
    if missing := [part for part in ("env", "algo", "network", "seed") if part not in config]:
        raise InputError(f"{path} lacks {missing[0]}; it must be the configuration of a run")
    return config


def game_in(config: dict[str, Any]) -> tuple[str, Game]:
    """Returns the game of a configuration and its name, with the preset or version of its rules where it has one."""
    env = config["env"]
    rules = env.get("rules", {})
    kind = rules.get("preset") or rules.get("version")
    return " ".join(filter(None, (env["name"], kind))), envs.make(env["name"], **rules)


def learner_of(config: Any) -> str:
    """Returns a run's learner: its algorithm, whether it accumulates, and whether by a critic of histories."""
    algo = config["algo"]
    accumulates = algo.get("accumulate", "none") != "none"
    by_critic = algo.get("advantage") == "expected_sarsa"
    how = " ".join(["accumulating"] * accumulates + ["by a critic"] * by_critic)
    return f"{algo['name']}, {how}" if how else algo["name"]


def recipe_of(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of algorithm and network by dotted name; one that is missing came later: its default.

    Args:
      config: with `algo` and `network`, under present or older names.
    """
    config = current_config(config)
    settings = read_settings(config["algo"])[1]
    algo = {"name": config["algo"]["name"], **dataclasses.asdict(settings)}
    network = config["network"]
    if (schema := networks.settings_of(network.get("name", "dueling"))) is not None:
        network = network | dataclasses.asdict(schemas.read(schema, network, "network"))
    return flat({"algo": algo, "network": network})


def budget_of(config: dict[str, Any]) -> dict[str, Any]:
    """Returns what ends a run: iterations and the limits, by dotted name."""
    return flat({"iterations": config.get("iterations"), "budget": config.get("budget") or {}})


def check_asked(run: Path, asked: Sequence[str], also: Sequence[str] = ()) -> None:
    """Raises InputError unless a run is what overrides ask for: game, recipe, budget and seed.

    Args:
      run: its directory.
      asked: overrides of dream.run, complete.
      also: other settings that have to be equal, by dotted name.
    """
    wanted = OmegaConf.to_container(compose_config("config", [*asked]).node, resolve=True)
    if differing := difference(_told(config_of(run), also), _told(wanted, also)):
        raise InputError(f"{run} is not what was asked for: {differing}; ask for what it is, or give other --runs")


def _told(config: dict[str, Any], also: Sequence[str]) -> dict[str, Any]:
    own = {"seed": config["seed"], **{name: _at(config, name)[0] for name in also}}
    return {**flat(game_in(config)[1].identity), **recipe_of(config), **budget_of(config), **own}


def flat(node: Any, path: str = "") -> dict[str, Any]:
    """Returns a nested dict as one level: dotted name -> value."""
    if not isinstance(node, dict) or not node:
        return {path: list(node) if isinstance(node, tuple) else node} if path else {}
    found: dict[str, Any] = {}
    for name, part in node.items():
        found |= flat(part, f"{path}.{name}" if path else str(name))
    return found


def check_distinct(runs: Sequence[Run]) -> None:
    """Raises InputError where a directory comes twice, or a learner with the same seed twice on a game."""
    check_paths([run.path for run in runs])
    seen: dict[tuple[str, str, int], Path] = {}
    for run in runs:
        before = seen.setdefault((run.game_name, run.learner, run.seed), run.path)
        if before != run.path:
            raise InputError(
                f"{before} and {run.path} are both seed {run.seed} of {run.learner} on {run.game_name}; "
                "each seed must come once"
            )


def check_paths(paths: Iterable[Path]) -> None:
    """Raises InputError where a directory comes twice, by whatever path."""
    seen: dict[Path, Path] = {}
    for path in paths:
        if path.resolve() in seen:
            raise InputError(f"{path} is given twice (also as {seen[path.resolve()]}); each run must come once")
        seen[path.resolve()] = path


def check_games(runs: Sequence[Run]) -> None:
    """Raises InputError unless all runs are of one game: name, version and rules."""
    for run in runs[1:]:
        _check_equal(runs[0], run, "game", *(flat(x.game.identity) for x in (runs[0], run)))


def check_alike(runs: Sequence[Run]) -> None:
    """Raises InputError unless runs can be averaged over: of one game, recipe and budget."""
    check_games(runs)
    for run in runs[1:]:
        _check_equal(runs[0], run, "recipe", runs[0].recipe, run.recipe)
        _check_equal(runs[0], run, "budget", runs[0].budget, run.budget)


def _check_equal(first: Run, second: Run, what: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    if differing := difference(one, other):
        raise InputError(f"{first.path} and {second.path} are of another {what}: {differing}; it must be one")


def difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Returns in words where two flat dicts differ, "" where they do not; three differences at most."""
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    shown = [f"{name} is {one.get(name)} and {other.get(name)}" for name in names[:3]]
    return ", ".join([*shown, *([f"{len(names) - 3} more"] if len(names) > 3 else [])])


def sittings(run: Path) -> list[dict[str, Any]]:
    """Returns what a run was made by: the command, commit and machine that began it, then those that resumed it."""
    begun = read_json(run / VERSIONS_FILE)
    return [begun, *begun.get("resumed", ())]


def origin(run: Path) -> dict[str, Any]:
    """Returns commit, device, JAX and load of a run and its overrides; of one that went on, `resumed`: later sittings.

    The overrides are those of all sittings together, as the run ended.
    """
    first, *later = sittings(run)
    made = {name: first.get(name) for name in _MADE}
    resumed = [
        {name: one.get(name) for name in ("started_at_iteration", *_MADE)}
        | {"overrides": _without_folders(one["command"])}
        for one in later
    ]
    return made | {"overrides": overrides(run)} | ({"resumed": resumed} if resumed else {})


def overrides(run: Path) -> list[str]:
    """Returns the overrides of dream.run that a run had at its end, but for folders.

    Keys are those that its commands gave, the values those of its configuration: what resume= changed later, and in a
    sweep what this job had.
    """
    config, made = _config(run), sittings(run)
    choices = {name: option for one in made for name, option in one.get("choices", {}).items()}
    found: dict[str, str] = {}
    for text in (text for one in made for text in _without_folders(one["command"])):
        override = _parsed(text)
        if override is not None:
            found[override.get_key_element()] = _as_ended(override, text, config, choices)
    return list(found.values())


def _without_folders(command: str) -> list[str]:
    texts = [text for text in shlex.split(command)[1:] if text not in ("-m", "--multirun")]
    return [text for text in texts if not text.startswith(tuple(f"{name}=" for name in _FOLDERS))]


def _parsed(text: str) -> Override | None:
    """Returns an override; None of what is none, such as an option of Hydra or of another command."""
    if text.startswith(("-", "hydra")):
        return None
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException:
        return None


def _as_ended(override: Override, text: str, config: dict[str, Any], choices: dict[str, str]) -> str:
    """Returns an override with the value that the run ended with; unchanged where it has it, or refers to another."""
    key = override.key_or_group
    if override.is_sweep_override() and key in choices:
        return f"{override.get_key_element()}={choices[key]}"
    inside, known = _at(config, key)
    if key in choices or override.is_delete() or not known:
        return text
    if not override.is_sweep_override() and ("${" in text or isinstance(inside, dict) or override.value() == inside):
        return text
    return f"{override.get_key_element()}={_hydra_text(inside)}"


def _at(config: Any, key: str) -> tuple[Any, bool]:
    """Returns what stands at a dotted name, and whether it is there."""
    for part in key.split("."):
        if not isinstance(config, dict) or part not in config:
            return None, False
        config = config[part]
    return config, True


def _hydra_text(value: Any) -> str:
    """Returns a value in Hydra's grammar."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(_hydra_text, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{name}:{_hydra_text(part)}' for name, part in value.items())}}}"
    return str(value) if not isinstance(value, str) or _PLAIN.fullmatch(value) else json.dumps(value)
