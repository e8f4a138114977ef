"""What a run begins with: its parts, and the configuration, folder and checkpoint that it starts from."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from dream.algorithms.types import Algorithm
from dream.config.schema import RunConfig
from dream.storage.checkpoint import Checkpoint
from envs import Game, HostPlayer, Policy


@dataclasses.dataclass(frozen=True)
class Parts:
    """What a run is put together from, each built once.

    Attributes:
      config: checked settings.
      game: what is played.
      algorithm: the learner.
      opponents: of the evaluation, by name.
      trained: of these and of the learner's opponents those that were trained, by name: iteration and checksum.
    """

    config: RunConfig
    game: Game
    algorithm: Algorithm
    opponents: dict[str, Policy | HostPlayer]
    trained: dict[str, dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Start:
    """What a run starts from.

    Attributes:
      parts: settings, game, learner and opponents.
      plain: the same as the resolved configuration, plain containers.
      choices: the option chosen in each configuration group.
      run_dir: where the run is kept.
      checkpoint: to go on from, or None.
      newest: iteration of the run's newest checkpoint when this was prepared; None for a new run.
      group: of the W&B run, where the configuration names none.
      name: of the W&B run: a job's overrides where it belongs to a sweep, else the run directory's name.
    """

    parts: Parts
    plain: dict[str, Any]
    choices: dict[str, str]
    run_dir: Path
    checkpoint: Checkpoint | None
    group: str
    name: str
    newest: int | None = None
