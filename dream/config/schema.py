"""What a run and the commands can be set to: one typed record for each part of the configuration."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from dream.config.settings import choice, number
from envs.errors import InputError

_MODES = {"online": "online", "offline": "offline", "disabled": "disabled", "dryrun": "offline", "run": "online"}
"""Value of W&B's own variable WANDB_MODE -> mode; the last two are its older names. A run is never `shared`."""


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

    def spent(self, totals: Mapping[str, float]) -> str:
        """Returns the first limit that a total has reached, as "budget.nodes=1e+06"; "" where there is none."""
        limits = vars(self).items()
        reached = (f"budget.{n}={limit:g}" for n, limit in limits if limit is not None and totals[n] >= limit)
        return next(reached, "")

    def share(self, totals: Mapping[str, float]) -> float:
        """Returns the largest share of a limit in nodes or episodes that is spent, at most 1; 0 without one."""
        limits = {"nodes": self.nodes, "episodes": self.episodes}
        return min(max((totals[n] / limit for n, limit in limits.items() if limit is not None), default=0.0), 1.0)


@dataclasses.dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints: one every so many iterations, the last always, the latest `keep` kept."""

    every: int = number(20, 1)
    keep: int = number(2, 1)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation: every so many iterations and at the last over `games` rounds, at the end over `final_games`.

    Where the game is enumerable and `exact` is set, the exploitability of every policy comes with it.
    """

    opponents: tuple[str, ...] = ("random",)
    every: int = number(20, 1)
    exact: bool = True
    games: int = number(1000, 4)
    final_games: int = number(10000, 4)


@dataclasses.dataclass(frozen=True)
class TrackingConfig:
    """Weights & Biases; losing it never ends a run. A mode that is not given is that of WANDB_MODE, else offline."""

    mode: str | None = choice(None, "online", "offline", "disabled")
    project: str = "dream"
    entity: str | None = None
    group: str | None = None
    job_type: str = "train"
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Settles a mode that is not given; raises InputError where WANDB_MODE is none that a run can have."""
        if self.mode is None:
            object.__setattr__(self, "mode", _mode_of_environment())


def _mode_of_environment() -> str:
    given = os.environ.get("WANDB_MODE", "offline")
    if given not in _MODES:
        raise InputError(f"WANDB_MODE={given} is not valid; it must be online, offline or disabled, or not set")
    return _MODES[given]


@dataclasses.dataclass(frozen=True)
class HostsConfig:
    """Several processes as one run, each with the accelerators of its machine; by default there is one."""

    coordinator: str | None = None
    count: int | None = number(None, 1, 4096)
    index: int | None = number(None, 0)
    auto: bool = False
    wait_seconds: float = number(300.0, 0, above=True)
    silence_seconds: int = number(40, 4, 3600)


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
    devices: int | None = number(None, 1)
    hosts: HostsConfig = HostsConfig()
    run_dir: str | None = None
    resume: str | None = None


@dataclasses.dataclass(frozen=True)
class EvaluateConfig:
    """Settings of `python -m dream.evaluate`."""

    checkpoint: str
    opponent: str = "random"
    games: int = number(10000, 4)
    target: int | None = number(None, 1, 10000)
    scoring: str | None = None
    seed: int = number(0, 0, 2**32 - 1)
    devices: int | None = number(None, 1)
    hosts: HostsConfig = HostsConfig()
    policy: str | None = None
    env: Any = None
    histories: str | None = None
    records: str | None = None


@dataclasses.dataclass(frozen=True)
class PlayConfig:
    """Settings of `python -m dream.play`."""

    env: EnvConfig
    port: int = number(0, 0, 65535)
    host: str = "127.0.0.1"
    anyone: bool = False
    open_browser: bool = True
    players: tuple[str, ...] = ()
    records: str | None = None
    terminal: bool = False
    seats: tuple[str, ...] | None = None
    target: int | None = number(None, 1, 100_000)
    seed: int | None = number(None, 0, 2**31 - 1)


@dataclasses.dataclass(frozen=True)
class LadderConfig:
    """Settings of `python -m dream.ladder`."""

    env: EnvConfig
    players: tuple[str, ...] | None = None
    games: int = number(1000, 4)
    block: int = number(1000, 4)
    target: int | None = number(100, 1, 10000)
    scoring: str | None = None
    processes: int = number(1, 1, 256)
    seed: int = number(0, 0, 2**32 - 1)
    run_dir: str | None = None
    plot: str = choice("svg", "svg", "png", "none")
