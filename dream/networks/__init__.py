"""Networks, built by name from a configuration node."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import envs
from dream.config import settings
from dream.networks import dueling
from dream.networks.network import Network
from envs.errors import InputError, refuse_name, unknown

__all__ = ["Network", "make_history_network", "make_network", "make_policy_network", "read_settings", "settings_of"]

_REGISTRY: dict[str, str] = {
    "actor_critic": "dream.networks.actor_critic:ActorCriticConfig",
    "card_planes": "dream.networks.card_planes:CardPlanesConfig",
    "dueling": "dream.networks.dueling:DuelingConfig",
    "simba": "dream.networks.simba:SimbaConfig",
}
"""Name -> "module:settings"; the module's make(settings, game) returns the Network."""


def settings_of(name: str) -> type | None:
    """Returns the dataclass that holds a network's settings; None for an unknown name."""
    if name not in _REGISTRY:
        return None
    module_name, schema = _REGISTRY[name].split(":")
    return getattr(importlib.import_module(module_name), schema)


def make_network(config: Any, game: envs.Game | None = None) -> Network:
    """Builds a network.

    Args:
      config: the configuration's `network` node or a plain dict; `name` defaults to "dueling".
      game: whose observations it reads and actions it rates; by default `gin_rummy`, float32[4887] and 107 actions.
    Returns:
      A Network: init(key) -> params, apply(params, observation float32[N]) -> (advantages float32[A], value float32).
    Raises:
      InputError: an unknown network or setting, or a value out of range.
    """
    make, chosen = read_settings(config)
    game = envs.make("gin_rummy") if game is None else game
    refuse_name(game, "game")
    return make(chosen, game)


def read_settings(config: Any) -> tuple[Callable[..., Network], Any]:
    """Returns a network's builder and its settings, checked.

    Raises:
      InputError: an unknown network or setting, or a value out of range.
    """
    if not hasattr(config, "get"):
        raise InputError(f"network={config!r} must be a configuration node or a dict with a `name`")
    name = config.get("name", "dueling")
    if name not in _REGISTRY:
        raise unknown("network", name, _REGISTRY)
    module_name, schema = _REGISTRY[name].split(":")
    module = importlib.import_module(module_name)
    return module.make, settings.read(getattr(module, schema), config, "network")


def make_policy_network(config: Any, game: envs.Game) -> Network:
    """Builds the network with a policy head: its outputs are (advantages, value, logits float32[A]).

    Args:
      config: the `network` node; the network must be one that can be built so.
      game: what it plays.
    Raises:
      InputError: as make_network; or a network without such a head.
    """
    refuse_name(game, "game")
    name = config.get("name", "dueling") if hasattr(config, "get") else "dueling"
    if name != "dueling":
        raise InputError(f"network={name} has no policy head next to its advantages; it must be network=dueling")
    return dueling.make(settings.read(dueling.DuelingConfig, config, "network"), game, policy_head=True)


def make_history_network(config: Any, game: envs.Game) -> Network:
    """Builds the network that reads what all players of a game saw, as a value of histories needs.

    Args:
      config: the `network` node; the network must be one that can be built so.
      game: whose histories it reads.
    Returns:
      A Network whose observation is float32[P, observation_size], and whose view has the leading axis [P].
    Raises:
      InputError: as make_network; or a network that reads one player's observation only.
    """
    refuse_name(game, "game")
    name = config.get("name", "dueling") if hasattr(config, "get") else "dueling"
    if name != "dueling":
        raise InputError(f"network={name} reads one player's observation; a value of histories needs network=dueling")
    schema = settings.read(dueling.DuelingConfig, config, "network")
    return dueling.make(schema, game, of_history=True)
