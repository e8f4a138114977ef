"""Composes a configuration with Hydra, and says in one line what is wrong with the overrides."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from dream.config import registered, renamed, tuned
from dream.config.tuned import config_dir
from envs.errors import InputError, unknown

__all__ = [
    "Composed", "as_literal", "as_value", "beside_recipe", "check_names", "compose_config", "composed_by_hydra",
    "config_dir", "default_option", "given_values", "groups_of", "jobs", "mixed_recipe", "offer_all", "update",
]  # fmt: skip

_PLAIN = re.compile(r"[\w./:@%+-]+( [\w./:@%+-]+)*", re.ASCII)
"""Texts that Hydra's grammar takes without quotes."""
_COMPOSE_ERRORS = (HydraException, OmegaConfBaseException, ValueError)
OmegaConf.register_new_resolver("first", lambda *values: next(v for v in values if v is not None), replace=True)


@dataclasses.dataclass(frozen=True)
class Composed:
    """A configuration as Hydra composed it.

    Attributes:
      node: the configuration.
      overrides: as given.
      choices: the option chosen in each group.
      sweep_dir: the job's folder where it belongs to a sweep, else None.
    """

    node: DictConfig
    overrides: tuple[str, ...]
    choices: dict[str, str]
    sweep_dir: Path | None = None

    def gives(self, key: str) -> bool:
        """Returns whether an override sets a key or group, or a part of it."""
        return bool(self.given(key))

    def given(self, key: str) -> list[str]:
        """Returns the overrides that set a key or group, or a part of it."""
        keys = {text: text.lstrip("+~").partition("=")[0] for text in self.overrides}
        return [text for text, one in keys.items() if one == key or one.startswith(f"{key}.")]


def compose_config(name: str, overrides: list[str]) -> Composed:
    """Composes a configuration.

    Args:
      name: of the primary file in conf/, without its ending.
      overrides: in Hydra's grammar.
    Raises:
      InputError: the overrides do not parse, name what is not there, or have the wrong type.
    """
    groups = groups_of(name)
    overrides = _choosing(name, overrides)
    parsed = _parse(overrides)
    _refuse_sweeps(parsed)
    _check_options(parsed, groups)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        try:
            node = compose(name, overrides, return_hydra_config=True)
        except _COMPOSE_ERRORS as error:
            raise _refused(name, parsed, groups, error) from error
    _refuse_deletions(parsed)
    _check_recipe(parsed)
    plain = OmegaConf.create({key: value for key, value in node.items_ex(resolve=False) if key != "hydra"})
    return Composed(plain, tuple(overrides), _choices(node.hydra))


def composed_by_hydra(node: DictConfig) -> Composed:
    """Returns the configuration of the job that Hydra is running."""
    hydra = HydraConfig.get()
    in_sweep = hydra.mode == RunMode.MULTIRUN
    sweep_dir = (Path(hydra.sweep.dir) / hydra.sweep.subdir).absolute() if in_sweep else None
    return Composed(node, tuple(hydra.overrides.task), _choices(hydra), sweep_dir)


def groups_of(name: str) -> dict[str, list[str]]:
    """Returns the groups that a user chooses from in a primary configuration file, each with its options."""
    groups = [key for key in _defaults(name) if not _is_derived(key)]
    return {group: sorted(file.stem for file in (config_dir() / group).glob("*.yaml")) for group in groups}


def _defaults(name: str) -> dict[str, Any]:
    """Returns group -> option of the defaults list of a file in conf/, by its name without the ending."""
    items = OmegaConf.to_container(OmegaConf.load(config_dir() / f"{name}.yaml")).get("defaults", [])
    return {key: option for item in items if isinstance(item, dict) for key, option in item.items()}


def default_option(name: str, group: str) -> str:
    """Returns what is chosen in a group of a primary configuration file where nothing is given."""
    return _defaults(name)[group]


def offer_all(name: str) -> None:
    """Makes all games and algorithms from outside known to Hydra, where it composes a primary file by itself."""
    for group, options in groups_of(name).items():
        for option in set(registered.names(group)) - set(options):
            with contextlib.suppress(InputError):  # of a package that cannot be loaded; Hydra does not find the option
                registered.offer(group, option)


def check_hydra(name: str, overrides: list[str]) -> None:
    """Raises InputError where Hydra could not begin a sweep: a wrong launcher or sweeper, or a range without values.

    Args:
      name: of the primary file in conf/, without its ending.
      overrides: of the command line.
    """
    parsed = _parse(overrides)
    own = [override.input_line for override in parsed if override.get_key_element().startswith("hydra")]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        for override in parsed:
            group, option = override.get_key_element(), override.value()
            if group.startswith("hydra/") and option not in (options := loader.get_group_options(group)):
                raise unknown(group, option, options)
        try:
            compose(name, own, return_hydra_config=True)
        except _COMPOSE_ERRORS as error:
            reason = str(error).strip().splitlines()[0].rstrip(".")
            raise InputError(
                f"{reason}: it must be a setting of the launcher or sweeper chosen by hydra/launcher= or hydra/sweeper="
            ) from error
    for override in filter(Override.is_interval_sweep, parsed):
        values = override.value()
        if not values.start < values.end:
            raise InputError(f"{override.input_line} is not valid; an interval must end above its start")


def check_names(composed: Composed, *groups: str) -> None:
    """Raises InputError where <group>.name= names another option than was chosen, whose settings the group then has."""
    for group in groups:
        if not composed.gives(f"{group}.name"):
            continue
        name, chosen = OmegaConf.to_container(composed.node[group])["name"], composed.choices[group]
        if name != chosen and name in registered.names(group):
            raise InputError(f"{group}.name={name} has the settings of {group}={chosen}; choose {group}={name}")


def _is_derived(group: str) -> bool:
    """Returns whether a group is Hydra's own, or follows from others."""
    return group.startswith(("hydra", "override hydra", f"{tuned.FOLDER}/"))


def _choices(hydra: DictConfig) -> dict[str, str]:
    return {group: str(option) for group, option in hydra.runtime.choices.items() if not _is_derived(group)}


def _parse(overrides: list[str]) -> list[Override]:
    try:
        return OverridesParser.create().parse_overrides(overrides)
    except HydraException as error:
        raise InputError(_unreadable(overrides) or _one_line(error)) from error


def _unreadable(overrides: list[str]) -> str | None:
    """Returns a line on the first override without a value, or that can be read with it in quotes alone; else None."""
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals and not text.startswith("~"):
            path = f"; a run or a file is given as checkpoint={text}, or resume={text}" if Path(text).exists() else ""
            return f"{text} is not valid; it must be <setting>=<value>, such as seed=1{path}"
        quoted = f'{key}="{value}"'
        if not _is_readable(text):
            way = f"put the value in quotes, on a command line {shlex.quote(quoted)}"
            return f"{text} has characters that mean something else; {way}" if equals and _is_readable(quoted) else None
    return None


def _is_readable(override: str) -> bool:
    try:
        return bool(OverridesParser.create().parse_override(override))
    except HydraException:
        return False


def as_value(text: str) -> str:
    """Returns a text as a value of an override, in quotes where it needs them."""
    return text if _PLAIN.fullmatch(text) else _quoted(text)


def as_literal(value: Any) -> str:
    """Returns a value of JSON as that of an override; a text is in quotes, and no number or null."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(map(as_literal, value))}]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    """Returns a text in quotes: Hydra takes a backslash as one, but for those before a quote."""
    inside = re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + ('\\"' if found[2] else ""), text)
    return f'"{inside}"'


def _choosing(name: str, overrides: list[str]) -> list[str]:
    """Returns overrides without those that choose null where nothing is chosen anyway: Hydra knows no such choice."""
    nothing = {f"{group}=null" for group, option in _defaults(name).items() if option is None}
    return [text for text in overrides if text.replace(" ", "") not in nothing]


def _check_options(overrides: list[Override], groups: dict[str, list[str]]) -> None:
    """Raises InputError where an override chooses what a group does not have, or what is not chosen at all."""
    _refuse_deletions([override for override in overrides if override.key_or_group in groups])
    for override in overrides:
        group, option = override.key_or_group, override.value()
        if group.startswith(f"{tuned.FOLDER}/"):
            raise InputError(f"{group} cannot be chosen: it follows from the other groups")
        if group in groups and option is None:
            option = "null"
        if group not in groups or not isinstance(option, str) or option in groups[group]:
            continue
        if not registered.offer(group, option):
            raise renamed.unknown_option(group, option, sorted({*groups[group], *registered.names(group)}))


def _check_recipe(overrides: list[Override]) -> None:
    """Raises InputError where overrides choose an experiment and another algorithm than it is a recipe of."""
    chosen = {override.key_or_group: override.value() for override in overrides}
    experiment, algo = chosen.get("experiment"), chosen.get("algo")
    if not isinstance(experiment, str) or not isinstance(algo, str):
        return
    own = _defaults(f"experiment/{experiment}").get("override /algo", algo)
    if own != algo:
        raise InputError(
            f"algo={algo} cannot be combined with experiment={experiment}, a recipe of algo={own}; leave one out"
        )


def beside_recipe(composed: Composed) -> str:
    """Returns a note for a message where another game was chosen than an experiment is a recipe of; else ""."""
    experiment, env, own = _recipe(composed)
    return "" if own == env else f"; experiment={experiment} is a recipe of env={own}, and env={env} was chosen"


def mixed_recipe(composed: Composed) -> str:
    """Returns a line where an experiment's numbers replace those of a game that its file does not name; else ""."""
    experiment, env, own = _recipe(composed)
    if own == env or env in tuned.named_in(experiment, "env"):
        return ""
    return (
        f"experiment={experiment} is a recipe of env={own}: with env={env} its numbers replace those tuned for "
        f"env={env}, where it has any; without the experiment all are those of env={env}"
    )


def _recipe(composed: Composed) -> tuple[str, str, str]:
    """Returns the chosen experiment and game, and the game that the experiment is a recipe of."""
    experiment, env = (composed.choices.get(group, "null") for group in ("experiment", "env"))
    own = env if experiment in ("null", "None") else _defaults(f"experiment/{experiment}").get("override /env", env)
    return experiment, env, own


def _refuse_deletions(overrides: list[Override]) -> None:
    """Raises InputError where an override takes a setting away, which no part of a configuration can be without."""
    if deleted := next((override for override in overrides if override.is_delete()), None):
        raise InputError(
            f"~{deleted.key_or_group} takes a setting away; give it a value instead, as in {deleted.key_or_group}="
        )


def _refuse_sweeps(overrides: list[Override]) -> None:
    """Raises InputError where an override gives several values: what is composed is one job."""
    for override in filter(Override.is_sweep_override, overrides):
        text = override.input_line
        hint = ""
        if override.is_choice_sweep() and override.value().simple_form:
            hint = f"; a list is [{text.partition('=')[2]}], and text with a comma is in quotes"
        raise InputError(
            f"{text} gives several values; -m sweeps over them, in Python call the function once for each{hint}"
        )


def _refused(name: str, overrides: list[Override], groups: dict[str, list[str]], error: Exception) -> InputError:
    """Finds the override that Hydra refused: a key that the chosen groups do not have, or else what Hydra says."""
    chosen = [override.input_line for override in overrides if override.key_or_group in groups]
    try:
        node = compose(name, [line for line in chosen if line is not None])
    except _COMPOSE_ERRORS:
        return InputError(_one_line(error))
    for override in overrides:
        key = override.key_or_group
        if not (key in groups or override.is_add() or override.is_force_add() or _holds(node, key)):
            return _unknown_setting(node, key, override.value(), groups)
    return InputError(_one_line(error))


def _holds(node: DictConfig, key: str) -> bool:
    """Returns whether a configuration has a key, whatever its value."""
    parent, _, leaf = key.rpartition(".")
    inside = OmegaConf.select(node, parent) if parent else node
    return isinstance(inside, ListConfig) or (isinstance(inside, DictConfig) and leaf in inside.keys())  # noqa: SIM118


def _unknown_setting(node: DictConfig, key: str, value: object, groups: Iterable[str] = ()) -> InputError:
    """Builds the error for a key that is not there, against the keys of the deepest part of its path that is.

    Args:
      node: the configuration, which lacks the groups in which nothing is chosen.
      key: the key.
      value: what it was given.
      groups: those that a user chooses from.
    """
    parent, _, leaf = key.rpartition(".")
    while parent and not isinstance(OmegaConf.select(node, parent), DictConfig):
        parent, _, leaf = parent.rpartition(".")
    inside = OmegaConf.select(node, parent) if parent else node
    if parent == "algo" and inside.get("name") == "dream" and renamed.KEYS.get(leaf, leaf) in _dueling_dream():
        return InputError(f"algo=dream has no setting {key!r}; the dueling self-play learner is now algo=dueling_dream")
    return renamed.unknown_setting(parent, leaf, inside if parent else {*inside, *groups}, value)


def _dueling_dream() -> DictConfig:
    return OmegaConf.load(config_dir() / "algo" / "dueling_dream.yaml")


def given_values(overrides: list[str]) -> dict[str, Any]:
    """Returns the values that overrides give, by key or group; raises InputError where they do not parse."""
    parsed = [override for override in _parse(overrides) if not override.is_sweep_override()]
    return {override.key_or_group: override.value() for override in parsed}


def jobs(overrides: list[str]) -> list[list[str]]:
    """Returns the overrides of every job of a sweep, as Hydra's basic sweeper makes them.

    Raises:
      InputError: an override does not parse.
    """
    lists = []
    for override in _parse(overrides):
        key = override.get_key_element()
        if override.is_sweep_override():
            lists.append([f"{key}={value}" for value in override.sweep_string_iterator()])
        else:
            lists.append([f"{key}={override.get_value_element_as_str()}"])
    return [list(job) for job in itertools.product(*lists)]


def update(node: DictConfig, overrides: tuple[str, ...], choices: dict[str, str], skip: set[str]) -> DictConfig:
    """Applies the overrides given with `resume=` to a stored configuration.

    Args:
      node: the stored configuration.
      overrides: in Hydra's grammar; group choices are allowed where they repeat the stored ones.
      choices: the stored run's option of each group.
      skip: keys that are not the configuration's.
    Returns:
      A new configuration.
    Raises:
      InputError: an override that a run cannot be resumed with.
    """
    node, given = node.copy(), _parse(list(overrides))
    _refuse_deletions(given)
    for override in given:
        key = override.key_or_group
        if key in skip:
            continue
        if key in choices:
            if str(override.value()) != choices[key]:
                raise InputError(
                    f"{key}={override.value()} cannot be changed by resume=: the run has {key}={choices[key]}; "
                    "override single values instead"
                )
            continue
        if not _holds(node, key) and not override.is_add():
            raise _unknown_setting(node, key, override.value())
        with open_dict(node):
            OmegaConf.update(node, key, override.value(), merge=True)
    return node


def _one_line(error: Exception) -> str:
    text = re.split(r"\n(?:Set the environment variable|Config search path|See https)", str(error))[0]
    return re.sub(r"\s*\n\s*", " ", text.strip()).replace("\t", " ")
