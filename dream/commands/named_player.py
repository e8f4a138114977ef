"""A rule-based player measured in the place of a trained one: `env` chooses the game."""

from __future__ import annotations

from typing import Any

import envs
from dream.config import settings
from dream.config.schema import EnvConfig
from dream.search import names as search_names
from dream.storage.policies import by_name
from envs import Game, InputError


def game_of_named(player: str, env: Any, policy: str | None) -> Game:
    """Returns the game that `env` chooses for a player by name.

    Args:
      player: its name, or a search with it.
      env: the configuration's node.
      policy: the setting of that name, which must not be given.
    Raises:
      InputError: no such game, rules or player, or a policy is given.
    """
    if policy is not None:
        raise InputError(f"policy={policy} is not possible: a player by name has one policy; leave policy= out")
    chosen = settings.read(EnvConfig, env, "env")
    game = envs.make(chosen.name, **chosen.rules)
    if search_names.policy_in(player) not in by_name(game):
        raise InputError(
            f"checkpoint={player} with env={chosen.name} is not a named player; it must be one of "
            f"{', '.join(by_name(game))}; leave env= out for a run, whose game is known"
        )
    return game
