"""Games under Gymnasium's names, for `gymnasium.make` and `gymnasium.make_vec`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from envs import registry
from envs.adapters.gymnasium import single_player_env
from envs.adapters.gymnasium_vector import vector_env
from envs.errors import InputError, shown, unknown
from envs.game import Game

NAMESPACE = "dream_rummy"
"""Of the registered environments."""


def register() -> list[str]:
    """Registers `dream_rummy/<game>-v<version>` for every game, single and vectorised; returns these names.

    A game from outside that cannot be made without rules, or whose package cannot be loaded, is left out.

    Keywords of `gymnasium.make` are those of `single_player_env`, and of `gymnasium.make_vec` those of `vector_env`,
    both with `rules`, a dict, in place of the game.
    """
    import gymnasium

    known = []
    for name in registry.names():
        try:
            version = registry.make(name).version
        except InputError:
            continue
        known.append(f"{NAMESPACE}/{name}-v{version if version.isdecimal() else 0}")
        if known[-1] not in gymnasium.registry:
            gymnasium.register(
                known[-1],
                entry_point=functools.partial(_single, name),
                vector_entry_point=functools.partial(_vector, name),
            )
    return known


def _single(name: str, *, rules: dict[str, Any] | None = None, **settings: Any) -> Any:
    game = _game(name, rules)
    _check(single_player_env, game, settings)
    return single_player_env(game, **settings)


def _vector(name: str, *, rules: dict[str, Any] | None = None, **settings: Any) -> Any:
    game = _game(name, rules)
    _check(vector_env, game, settings)
    return vector_env(game, **settings)


def _game(name: str, rules: Any) -> Game:
    """Builds a game; raises InputError for rules that are none, or no dict of them."""
    if not isinstance(rules, Mapping | None):
        raise InputError(f"rules={shown(repr(rules))} is not valid; it must be a dict, rules by name")
    return registry.make(name, **(rules or {}))


def _check(make: Callable[..., Any], game: Game, settings: dict[str, Any]) -> None:
    """Raises InputError for what is no setting of an environment, as a rule of its game is none."""
    known = {*inspect.signature(make).parameters, "rules"} - {"game"}
    for name, value in settings.items():
        if name in game.identity["rules"]:
            raise InputError(
                f"{name}={value!r} is a rule of {game.name}; it must be given as rules={{{name!r}: {value!r}}}"
            )
        if name not in known:
            raise unknown("setting of this environment", name, known)
