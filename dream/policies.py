"""Trained players, loaded from a run, a checkpoint or a policy's file, and players by name."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

import envs
from dream import algorithms, checkpoint, hub
from dream.checkpoint import Checkpoint
from envs import Game, HostPlayer, InputError, Policy
from envs.errors import unknown


@dataclasses.dataclass(frozen=True)
class PolicyFile:
    """A trained player in one file.

    Attributes:
      path: of the file.
      meta: `game`, the identity of the game it was trained on as far as it is known, `iteration`, None if unknown, and
        `checksum`, the file's CRC-32.
      env: name and rules of that game.
      policies: game -> its policies by name.
      folder: for reports on it.
    """

    path: Path
    meta: dict[str, Any]
    env: dict[str, Any]
    policies: Callable[[Game], dict[str, Policy]]
    folder: Path


Trained = Checkpoint | PolicyFile
"""A trained player on disk."""


def load_policy(reference: str | Path, name: str | None = None) -> Policy:
    """Loads a trained player.

    Args:
      reference: a run directory, whose latest checkpoint is meant, a checkpoint's folder, a policy's file (a documented
        pickle of another project), or hf:<owner>/<repo>/<file> for such a file on the Hugging Face hub.
      name: which of the learner's policies, "current" or "average"; by default the average where there is one.
    Returns:
      The Policy: `.params`, `.apply(params, view, legal)`, callable as policy(view, legal); of a network's file also
      `.outputs(observations)`, every head's output by name.
    Raises:
      InputError: no readable player there, one of another game version, or no policy of that name.
    """
    found = find(reference)
    return policy_of(found, game_of(found), name)


def find(reference: str | Path) -> Trained:
    """Finds a trained player.

    Args:
      reference: as `load_policy` takes it.
    Raises:
      InputError: nothing readable there.
    """
    if hub.is_reference(reference):
        return _read_file(hub.download(str(reference)), Path.cwd())
    path = Path(reference).expanduser().absolute()
    return _read_file(path, path.parent) if path.is_file() else checkpoint.find(reference)


def _read_file(path: Path, folder: Path) -> PolicyFile:
    from dream.foreign.networks import read_network
    from dream.network_policy import make_network_policy
    from dream.networks import make_network

    foreign = read_network(path)

    def policies(game: Game) -> dict[str, Policy]:
        params = jax.device_put(foreign.params)
        return {"current": make_network_policy(game, make_network(foreign.network, game), params, foreign.acts)}

    game = envs.make(foreign.game["name"], **foreign.game["rules"])
    identity = {part: game.identity[part] for part in ("name", "version")}
    meta = {"game": identity, "iteration": None, "checksum": zlib.crc32(path.read_bytes())}
    return PolicyFile(path, meta, foreign.game, policies, folder)


def game_of(trained: Trained) -> Game:
    """Builds the game a player was trained on.

    Raises:
      InputError: this project's game of that name has another version or other rules.
    """
    env = trained.env if isinstance(trained, PolicyFile) else trained.meta["config"]["env"]
    game = envs.make(env["name"], **env.get("rules", {}))
    check_game(trained, game)
    return game


def check_game(trained: Trained, game: Game) -> None:
    """Raises InputError unless the player was trained on this game, version and rules, as far as they are known."""
    stored, wanted = trained.meta["game"], game.identity
    for part in ("name", "version"):
        if stored.get(part) != wanted[part]:
            raise InputError(
                f"{trained.path} was trained on {stored.get('name')} version {stored.get('version')}, "
                f"not on {wanted['name']} version {wanted['version']}"
            )
    rules = stored.get("rules", {} if isinstance(trained, Checkpoint) else wanted["rules"])
    other = [f"{k}={rules.get(k)!r}, not {v!r}" for k, v in wanted["rules"].items() if rules.get(k) != v]
    if other:
        raise InputError(f"{trained.path} was trained with other rules of {wanted['name']}: {'; '.join(other)}")


def policy_of(trained: Trained, game: Game, name: str | None = None) -> Policy:
    """Restores one of a player's policies; raises InputError where it cannot be."""
    if isinstance(trained, PolicyFile):
        return chosen_policy(trained.policies(game), name)
    config = trained.meta["config"]
    algorithm = algorithms.make(config["algo"], config["network"], game)
    state = trained.restore(algorithm.init(jax.random.key(0)))
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
    """Returns a player: a rule-based one by name, or a trained one as `load_policy` finds it.

    Raises:
      InputError: neither, or a player of another game.
    """
    if envs.is_foreign(reference):
        raise InputError(f"{reference} plays on the host; it can only be the opponent of a match")
    if reference in envs.bot_names(game):
        return envs.make_bot(reference, game)
    if not hub.is_reference(reference) and not Path(reference).expanduser().exists():
        raise InputError(
            f"unknown opponent {reference!r}; it must be one of {', '.join(envs.bot_names(game))}, "
            "or the path of a run, a checkpoint or a policy's file"
        )
    trained = find(reference)
    check_game(trained, game)
    return policy_of(trained, game)
