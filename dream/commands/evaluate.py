"""The match command's work: two players found, played, reported and written beside the checkpoint."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from dream.config import settings
from dream.config.compose import Composed
from dream.config.schema import EvaluateConfig
from dream.evaluation import match
from dream.evaluation.matches import check_games
from dream.evaluation.report import report_table
from dream.storage.files import EVALUATION_FILE, write_json, write_text
from dream.storage.policies import Trained, find, find_opponent, game_of, policy_of, report_dir
from envs import Game, HostPlayer, InputError, Policy


@dataclasses.dataclass(frozen=True)
class Match:
    """A match to be played."""

    config: EvaluateConfig
    checkpoint: Trained
    game: Game
    policy: Policy
    opponent: Policy | HostPlayer


def prepare_match(composed: Composed) -> Match:
    """Checks a composed configuration and loads both players; writes nothing.

    Raises:
      InputError: a wrong setting, or a player that cannot be loaded.
    """
    if OmegaConf.is_missing(composed.node, "checkpoint"):
        raise InputError("checkpoint= is missing; it must be a run directory, a checkpoint's folder or a policy's file")
    config = settings.read(EvaluateConfig, composed.node, "")
    checkpoint = find(config.checkpoint)
    game = game_of(checkpoint)
    check_games(game, config.games)
    policy = policy_of(checkpoint, game, config.policy)
    if config.histories is not None:
        path = Path(config.histories).expanduser().absolute()
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"histories={config.histories} is not valid; it must be a file in a folder that exists")
    return Match(config, checkpoint, game, policy, find_opponent(config.opponent, game))


def play_match(prepared: Match) -> None:
    """Plays, prints the table, writes evaluation.json beside the checkpoint and, where asked, the hands' histories."""
    config, checkpoint = prepared.config, prepared.checkpoint
    hands: list[str] = []
    report = match(
        prepared.game,
        prepared.policy,
        prepared.opponent,
        games=config.games,
        seed=config.seed,
        progress=_show,
        on_hand=None if config.histories is None else lambda told: hands.append(json.dumps(told) + "\n"),
    )
    if config.histories is not None:
        write_text(Path(config.histories).expanduser(), "".join(hands))
    iteration = checkpoint.meta["iteration"]
    player = config.checkpoint if iteration is None else f"{config.checkpoint} (iteration {iteration})"
    report_table(f"{player} against {config.opponent}", report)
    path = report_dir(config.checkpoint, checkpoint) / EVALUATION_FILE
    told: dict[str, Any] = {"iteration": iteration, "opponent": config.opponent, "seed": config.seed}
    write_json(
        path,
        {
            **told,
            "policy": config.policy,
            "unit": prepared.game.unit,
            "num_players": prepared.game.num_players,
            **report,
        },
    )
    print(path)


def _show(played: int) -> None:
    if sys.stdout.isatty():
        print(f"\r{played} hands", end="\r", flush=True)
