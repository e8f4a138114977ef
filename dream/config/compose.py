"""Composes a configuration with Hydra, and says in one line what is wrong with the overrides."""

from __future__ import annotations

import dataclasses
import itertools
import re
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from envs.errors import InputError, unknown

_CHOSEN_BY = {
    "preset_network": ("preset", "network"),
    "preset_network_env": ("preset", "network", "env"),
    "preset_algo": ("preset", "algo"),
    "preset_algo_env": ("preset", "algo", "env"),
    "preset_experiment": ("preset", "experiment"),
    "network_env": ("network", "env"),
    "algo_env": ("algo", "env"),
}
"""Groups whose option is put together from others'."""
_PACKAGE = Path(__file__).resolve().parents[1]
OmegaConf.register_new_resolver("first", lambda *values: next(v for v in values if v is not None), replace=True)


def config_dir() -> Path:
    """Returns the folder of the configuration groups: inside the installed package, or the repository's conf/."""
    packaged = _PACKAGE / "conf"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "conf"


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


def compose_config(name: str, overrides: list[str]) -> Composed:
    """Composes a configuration.

    Args:
      name: of the primary file in conf/, without its ending.
      overrides: in Hydra's grammar.
    Raises:
      InputError: the overrides do not parse, name what is not there, or have the wrong type.
    """
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_dir()), version_base="1.3"):
        try:
            node = compose(name, overrides, return_hydra_config=True)
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            raise _as_input_error(name, error) from error
    plain = OmegaConf.create({key: value for key, value in node.items_ex(resolve=False) if key != "hydra"})
    choices = _choices(node.hydra)
    for group, parts in _CHOSEN_BY.items():
        wanted = "_".join(choices.get(part, "") for part in parts)
        if group in choices and choices[group] != wanted:
            raise InputError(f"{group}={choices[group]} is not to be chosen: it follows from {' and '.join(parts)}")
    return Composed(plain, tuple(overrides), choices)


def composed_by_hydra(node: DictConfig) -> Composed:
    """Returns the configuration of the job that Hydra is running."""
    hydra = HydraConfig.get()
    in_sweep = hydra.mode == RunMode.MULTIRUN
    sweep_dir = (Path(hydra.sweep.dir) / hydra.sweep.subdir).absolute() if in_sweep else None
    return Composed(node, tuple(hydra.overrides.task), _choices(hydra), sweep_dir)


def _choices(hydra: DictConfig) -> dict[str, str]:
    return {group: str(option) for group, option in hydra.runtime.choices.items() if not group.startswith("hydra")}


def jobs(overrides: list[str]) -> list[list[str]]:
    """Returns the overrides of every job of a sweep, as Hydra's basic sweeper makes them.

    Raises:
      InputError: an override does not parse.
    """
    lists = []
    try:
        for override in OverridesParser.create().parse_overrides(overrides):
            key = override.get_key_element()
            if override.is_sweep_override():
                lists.append([f"{key}={value}" for value in override.sweep_string_iterator()])
            else:
                lists.append([f"{key}={override.get_value_element_as_str()}"])
    except HydraException as error:
        raise InputError(_one_line(error)) from error
    return [list(job) for job in itertools.product(*lists)]


def update(node: DictConfig, overrides: tuple[str, ...], choices: dict[str, str], skip: set[str]) -> DictConfig:
    """Applies the overrides given beside `resume=` to a stored configuration.

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
    node = node.copy()
    for override in OverridesParser.create().parse_overrides(list(overrides)):
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
        if OmegaConf.select(node, key, default=node) is node and not override.is_add():
            raise _unknown_setting(node, key)
        with open_dict(node):
            OmegaConf.update(node, key, override.value(), merge=True)
    return node


def _unknown_setting(node: DictConfig, key: str) -> InputError:
    """Builds the error for a key that is not there: near are the keys of the deepest part of its path that is."""
    parent, _, _ = key.rpartition(".")
    while parent and not isinstance(OmegaConf.select(node, parent), DictConfig):
        parent, _, _ = parent.rpartition(".")
    inside = OmegaConf.select(node, parent) if parent else node
    return unknown("setting", key, [f"{parent}.{name}" if parent else str(name) for name in inside])


def _as_input_error(name: str, error: Exception) -> InputError:
    """Turns what Hydra says into one line that names what would be right."""
    text = str(error)
    if key := re.search(r"Could not override '(\S+)'", text):
        return _unknown_setting(compose(name), key.group(1))
    if option := re.search(r"Could not find '(\S+)/(\S+)'\s+Available options in '\S+':((?:\n\t\S+)+)", text):
        return unknown(option.group(1), option.group(2), option.group(3).split())
    return InputError(_one_line(error))


def _one_line(error: Exception) -> str:
    text = re.split(r"\n(?:Set the environment variable|Config search path|See https)", str(error))[0]
    return re.sub(r"\s*\n\s*", " ", text.strip()).replace("\t", " ")
