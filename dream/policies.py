"""Trained players, loaded from a run or a checkpoint, and players by name."""

from __future__ import annotations

from pathlib import Path

import jax

import envs
from dream import algorithms
from dream.checkpoint import Checkpoint, find
from envs import Game, HostPlayer, InputError, Policy
from envs.errors import unknown


def load_policy(reference: str | Path, name: str | None = None) -> Policy:
    """Loads a trained player.

    Args:
      reference: a run directory, whose latest checkpoint is meant, or a checkpoint's folder.
      name: which of the learner's policies, "current" or "average"; by default the average where there is one.
    Returns:
      The Policy: `.params`, `.apply(params, view, legal)`, callable as policy(view, legal).
    Raises:
      InputError: no readable checkpoint there, one of another game version, or no policy of that name.
    """
    checkpoint = find(reference)
    return policy_of(checkpoint, game_of(checkpoint), name)


def game_of(checkpoint: Checkpoint) -> Game:
    """Builds the game a checkpoint was trained on.

    Raises:
      InputError: this project's game of that name has another version or other rules.
    """
    env = checkpoint.meta["config"]["env"]
    game = envs.make(env["name"], **env.get("rules", {}))
    check_game(checkpoint, game)
    return game


def check_game(checkpoint: Checkpoint, game: Game) -> None:
    """Raises InputError unless the checkpoint was trained on this very game, version and rules included."""
    stored, wanted = checkpoint.meta["game"], game.identity
    for part in ("name", "version"):
        if stored.get(part) != wanted[part]:
            raise InputError(
                f"{checkpoint.path} was trained on {stored.get('name')} version {stored.get('version')}, "
                f"not on {wanted['name']} version {wanted['version']}"
            )
    rules = stored.get("rules", {})
    other = [f"{k}={rules.get(k)!r}, not {v!r}" for k, v in wanted["rules"].items() if rules.get(k) != v]
    if other:
        raise InputError(f"{checkpoint.path} was trained with other rules of {wanted['name']}: {'; '.join(other)}")


def policy_of(checkpoint: Checkpoint, game: Game, name: str | None = None) -> Policy:
    """Restores one of a checkpoint's policies; raises InputError where it cannot be."""
    config = checkpoint.meta["config"]
    algorithm = algorithms.make(config["algo"], config["network"], game)
    state = checkpoint.restore(algorithm.init(jax.random.key(0)))
    return chosen_policy(algorithm.policies(state), name)


def chosen_policy(policies: dict[str, Policy], name: str | None = None) -> Policy:
    """Returns a learner's policy by name; by default the average, where the learner's guarantee is about that.

    Raises:
      InputError: it has none of that name.
    """
    if name is None:
        name = "average" if "average" in policies else "current"
    if name not in policies:
        raise unknown("policy", name, policies)
    return policies[name]


def find_opponent(reference: str, game: Game) -> Policy | HostPlayer:
    """Returns an opponent for a match: a player as in `find_player`, or another library's, "<library>:<name>".

    Raises:
      InputError: there is none, or it does not play the game.
    """
    return envs.make_host_player(reference, game) if envs.is_foreign(reference) else find_player(reference, game)


def find_player(reference: str, game: Game) -> Policy:
    """Returns a player: a rule-based one by name, or the trained one of a run or checkpoint.

    Raises:
      InputError: neither, or a player of another game.
    """
    if envs.is_foreign(reference):
        raise InputError(f"{reference} plays on the host; it can only be the opponent of a match")
    if reference in envs.bot_names(game):
        return envs.make_bot(reference, game)
    if not Path(reference).expanduser().exists():
        raise InputError(
            f"unknown opponent {reference!r}; it must be one of {', '.join(envs.bot_names(game))}, "
            "or the path of a run or checkpoint"
        )
    checkpoint = find(reference)
    check_game(checkpoint, game)
    return policy_of(checkpoint, game)
