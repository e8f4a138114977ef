"""The configuration of a run: its schema, how it is composed, and the check that comes before anything is done."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from dream import settings
from dream.settings import choice, number
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
_HERE = Path(__file__).resolve().parent
OmegaConf.register_new_resolver("first", lambda *values: next(v for v in values if v is not None), replace=True)


def config_dir() -> Path:
    """Returns the folder of the configuration groups: inside the installed package, or the repository's conf/."""
    packaged = _HERE / "conf"
    return packaged if packaged.is_dir() else _HERE.parent / "conf"


@dataclasses.dataclass(frozen=True)
class EnvConfig:
    """The game: its registered name, and the rules that differ from the game's own preset."""

    name: str
    rules: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class BudgetConfig:
    """Totals that end a run before its iterations are done; the iteration that reaches one is the last."""

    nodes: float | None = number(None, 0, above=True)
    episodes: float | None = number(None, 0, above=True)
    seconds: float | None = number(None, 0, above=True)

    def spent(self, totals: Mapping[str, float]) -> bool:
        """Returns whether a total has reached its limit."""
        limits = dataclasses.asdict(self).items()
        return any(limit is not None and totals[name] >= limit for name, limit in limits)


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints: one every so many iterations, the last always, the latest `keep` kept."""

    every: int = number(20, 1)
    keep: int = number(2, 1)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation: every so many iterations and at the last over `games` hands, at the end over `final_games`.

    Where the game is enumerable and `exact` is set, the exploitability of every policy comes with it.
    """

    opponents: tuple[str, ...] = ("random",)
    every: int = number(20, 1)
    exact: bool = True
    games: int = number(1000, 4)
    final_games: int = number(10000, 4)


@dataclasses.dataclass(frozen=True)
class TrackingConfig:
    """Weights & Biases; losing it never ends a run."""

    mode: str = choice("offline", "online", "offline", "disabled")
    project: str = "dream"
    entity: str | None = None
    group: str | None = None
    job_type: str = "train"
    tags: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything a run is made from; `algo` and `network` are read by what they name."""

    env: EnvConfig
    algo: Any
    network: Any
    tracking: TrackingConfig
    checkpoint: CheckpointConfig
    eval: EvaluationConfig
    iterations: int = number(800, 1)
    budget: BudgetConfig = BudgetConfig()
    seed: int = number(0, 0, 2**32 - 1)
    run_dir: str | None = None
    resume: str | None = None


@dataclasses.dataclass(frozen=True)
class EvaluateConfig:
    """Settings of `python -m dream.evaluate`."""

    checkpoint: str
    opponent: str = "random"
    games: int = number(10000, 4)
    seed: int = number(0, 0, 2**32 - 1)
    policy: str | None = None
    histories: str | None = None


@dataclasses.dataclass(frozen=True)
class LadderConfig:
    """Settings of `python -m dream.ladder`."""

    env: EnvConfig
    players: tuple[str, ...] | None = None
    games: int = number(1000, 4)
    block: int = number(1000, 4)
    seed: int = number(0, 0, 2**32 - 1)
    run_dir: str | None = None
    plot: str = choice("svg", "svg", "png", "none")


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


def check_run(node: Any) -> RunConfig:
    """Reads a run's configuration and builds every part of it, so that whatever is wrong shows before work begins.

    Raises:
      InputError: a wrong key, type or range, an unknown name, or parts that do not fit.
    """
    import envs
    from dream import algorithms
    from dream.policies import find_opponent

    config = settings.read(RunConfig, node, "")
    game = envs.make(config.env.name, **config.env.rules)
    algorithms.make(config.algo, config.network, game)
    for name in ("games", "final_games"):
        if game.num_players == 2 and getattr(config.eval, name) % 2:
            raise InputError(f"eval.{name}={getattr(config.eval, name)} is odd; it must be even: deals are mirrored")
    for opponent in config.eval.opponents:
        if opponent not in envs.bot_names(game):
            find_opponent(opponent, game)
    return config


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
