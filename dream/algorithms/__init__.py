"""Learners behind one type, built by name from a configuration: this project's own and those of other packages."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.metadata
import sys
from collections.abc import Callable, Mapping
from typing import Any

from omegaconf import OmegaConf

from dream.algorithms.sizes import suggested
from dream.algorithms.types import Algorithm, Resources, TrainState
from dream.config import registered, renamed, settings
from dream.config.tuned import config_dir
from envs import Game, Policy, check_once
from envs.errors import InputError

ENTRY_POINTS = "dream_rummy.algorithms"
"""The group in which an installed package names its algorithms, each as "module:SettingsClass"."""

Make = Callable[[Any, Any, Game, Resources], Algorithm]
"""(settings, network node, game, resources) -> Algorithm."""

_REGISTRY: dict[str, str] = {
    "dueling_dream": "dream.algorithms.dueling_dream:DuelingDreamConfig",
    "ppo": "dream.algorithms.ppo:PpoConfig",
    "mmd": "dream.algorithms.mmd:MmdConfig",
    **dict.fromkeys(("cfr", "cfr_plus", "linear_cfr", "dcfr", "pcfr_plus"), "dream.algorithms.tabular.cfr:CfrConfig"),
    "behaviour_cloning": "dream.algorithms.behaviour_cloning:BehaviourCloningConfig",
    "rnad": "dream.algorithms.rnad:RnadConfig",
    "nfsp": "dream.algorithms.nfsp:NfspConfig",
    "tabular_mmd": "dream.algorithms.tabular.mmd:TabularMmdConfig",
    "external_mccfr": "dream.algorithms.tabular.mccfr:ExternalConfig",
    "outcome_mccfr": "dream.algorithms.tabular.mccfr:OutcomeConfig",
    "deep_cfr": "dream.algorithms.deep.deep_cfr:DeepCfrConfig",
    "sd_cfr": "dream.algorithms.deep.sd_cfr:SdCfrConfig",
    "os_sd_cfr": "dream.algorithms.deep.os_sd_cfr:OsSdCfrConfig",
    "dream": "dream.algorithms.deep.dream:DreamConfig",
    "escher": "dream.algorithms.deep.escher:EscherConfig",
    "vr_dcfr_plus": "dream.algorithms.deep.vr_dcfr_plus:VrDcfrPlusConfig",
}
"""This project's own: name -> "module:settings"; the module's `make` builds the Algorithm."""

_registered: dict[str, tuple[type | str, Make | None]] = {}


def register(name: str, settings_class: type | str, make: Make | None = None) -> None:
    """Makes an algorithm known by name in this process; a second call with the same name replaces the first.

    Args:
      name: what `algo.name` says.
      settings_class: a dataclass that `dream.config.settings` can read, with a field `name`, or "module:Class".
      make: (settings, network node, game, resources) -> Algorithm; by default the function `make` of the module that
        the path names or that defines the class.
    Raises:
      InputError: the name is one of this project's own, or the class is neither a dataclass nor "module:Class".
    """
    if name in _REGISTRY:
        raise InputError(f"algorithm {name!r} is one of this project's own; register yours under another name")
    is_path = isinstance(settings_class, str) and settings_class.count(":") == 1
    if not is_path and not (isinstance(settings_class, type) and dataclasses.is_dataclass(settings_class)):
        raise InputError(f"algorithm {name!r}: {settings_class!r} must be a dataclass or 'module:Class'")
    _registered[name] = settings_class, make


def names() -> list[str]:
    """Returns the names `make` knows: this project's own, registered ones, and those of installed packages."""
    return sorted({*_REGISTRY, *_registered, *_entry_points()})


def settings_of(name: str) -> type:
    """Returns the dataclass of an algorithm's settings.

    Raises:
      InputError: an unknown algorithm, or one whose package cannot be loaded.
    """
    return _load(name)[0]


def make(config: Any, network: Any, game: Game, resources: Resources | None = None) -> Algorithm:
    """Builds a learner.

    Args:
      config: the configuration's `algo` node or a plain dict, with a `name`; a setting that it lacks is that of
        conf/algo/<name>.yaml.
      network: the configuration's `network` node or a plain dict.
      game: what it learns to play.
      resources: where opponents and trees come from; by default memory alone.
    Raises:
      InputError: an unknown algorithm or setting, a value out of range, or a game from outside the package that does
        not keep what it promises.
    """
    build, chosen = read_settings(config)
    check_once(game)
    return _of_game(build(chosen, network, game, resources or Resources()), game)


def is_own(name: str) -> bool:
    """Returns whether an algorithm is this project's, and tested."""
    return name in _REGISTRY


def check_policies(name: str, algorithm: Algorithm, state: TrainState) -> None:
    """Raises InputError where a learner from outside this project has no policy `current`; its own are tested."""
    if not is_own(name) and "current" not in (found := algorithm.policies(state)):
        raise InputError(f"algo={name}: policies of a state are {sorted(found)}; 'current' must be among them")


def read_settings(config: Any) -> tuple[Make, Any]:
    """Returns a learner's builder and its settings, checked; those that are missing are of conf/algo/<name>.yaml.

    Raises:
      InputError: an unknown algorithm or setting, or a value out of range.
    """
    name = config.get("name") if hasattr(config, "get") else None
    if not isinstance(name, str):
        raise InputError(f"algo={config!r} must be a configuration node or a dict with a `name`")
    schema, build = _load(name)
    return build, settings.read(schema, config, "algo", _of_file(name))


@functools.cache
def _of_file(name: str) -> dict[str, Any]:
    """Returns what conf/algo holds of an algorithm; variants of one dataclass, as of CFR, differ there alone."""
    return OmegaConf.to_container(OmegaConf.load(config_dir() / "algo" / f"{name}.yaml")) if name in _REGISTRY else {}


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    """Returns the algorithms that installed packages name, none of them loaded yet."""
    return {point.name: point for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}


def _load(name: str) -> tuple[type, Make]:
    """Returns settings class and builder; an algorithm's module is imported here and not before."""
    if name in _REGISTRY:
        return _resolved(_REGISTRY[name], None)
    if name in _registered:
        try:
            return _resolved(*_registered[name])
        except (ImportError, AttributeError) as error:
            raise InputError(f"algorithm {name!r} is registered but cannot be loaded: {_first_line(error)}") from error
    point = _entry_points().get(name)
    if point is None:
        raise renamed.unknown_option("algorithm", name, names())
    try:
        schema, build = _resolved(point.value, None)
    except Exception as error:  # an installed package may fail in any way when it is imported
        owner = point.dist.name if point.dist is not None else "an installed package"
        raise InputError(
            f"algorithm {name!r} of {owner} ({point.value}) cannot be loaded: {_first_line(error)}; "
            f"fix or uninstall {owner}"
        ) from error
    return schema, build


def _resolved(settings_class: type | str, build: Make | None) -> tuple[type, Make]:
    """Returns the class, and the builder given or `make` of the module the path names or the class comes from."""
    if isinstance(settings_class, str):
        module_name, attribute = (part.strip() for part in settings_class.split(":"))
        module = importlib.import_module(module_name)
        settings_class = getattr(module, attribute)
    else:
        module = sys.modules[settings_class.__module__]
    if not (isinstance(settings_class, type) and dataclasses.is_dataclass(settings_class)):
        raise AttributeError(f"{settings_class!r} is not a dataclass")
    return settings_class, build or module.make


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _of_game(algorithm: Algorithm, game: Game) -> Algorithm:
    """Returns a learner whose policies know the game they play."""

    def policies(state: TrainState) -> dict[str, Policy]:
        found = algorithm.policies(state)
        if not isinstance(found, Mapping):
            raise InputError(f"policies of a state are {type(found).__name__}; they must be a dict of policies by name")
        return {name: dataclasses.replace(policy, game=game) for name, policy in found.items()}

    return dataclasses.replace(algorithm, policies=policies)


def _node(name: str) -> dict[str, Any]:
    """Returns the configuration node of an algorithm without a YAML file: its name and its settings' defaults."""
    fields = dataclasses.fields(settings_of(name))
    known = [field for field in fields if field.default is not dataclasses.MISSING and field.name != "name"]
    return {"name": name, **{field.name: _plain(field.default) for field in known}}


def _plain(value: Any) -> Any:
    """Returns a setting's default as plain containers."""
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


registered.add_source("algo", lambda: {name: functools.partial(_node, name) for name in names()})
registered.add_sizes(suggested)
