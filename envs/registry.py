"""Games by name: those of this package, those a program registers, and those of installed distributions.

A distribution provides a game by an entry point of the group `dream_rummy.games`, whose name is that of the game and
whose value is "module:function". The function takes the rules as keyword arguments and returns the Game. Entry points
are read when a name is first looked up, and loaded when their game is built.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from envs import players
from envs.errors import InputError, a_kind, unknown
from envs.game import Game, Policy

GROUP = "dream_rummy.games"
"""Group of the entry points by which a distribution provides games."""

_OWN: dict[str, str] = {
    "dark_hex": "envs.phantom.dark_hex:make",
    "gin_rummy": "envs.gin_rummy.event_log.game:make",
    "gin_rummy_mdp": "envs.gin_rummy.mdp.game:make",
    "gin_rummy_openspiel": "envs.gin_rummy.openspiel.game:make",
    "kuhn_poker": "envs.kuhn_poker:make",
    "leduc_poker": "envs.leduc_poker:make",
    "liars_dice": "envs.liars_dice:make",
    "mini_gin_rummy": "envs.gin_rummy.mini.game:make",
    "phantom_ttt": "envs.phantom.tic_tac_toe:make",
    "rummy500": "envs.rummy500.variants:make",
}
"""Name -> "module:function"; the function takes the rules as keywords and returns the Game."""
_registered: dict[str, str | Callable[..., Game]] = {}
"""The same, of games that a program has registered."""


def names() -> list[str]:
    """Returns the names that `make` accepts."""
    return sorted({*_OWN, *_registered, *_offered()})


def is_own(game: Game) -> bool:
    """Returns whether the class of a game is defined in this package, whose tests check it in full."""
    return type(game).__module__.partition(".")[0] == __name__.partition(".")[0]


def register(
    name: str, make: str | Callable[..., Game], bots: Mapping[str, str | Callable[..., Policy]] | None = None
) -> None:
    """Registers a game, so that it can be built, trained on and played by name.

    Args:
      name: of the game, equal to the `name` of the Game that is built; letters, digits and underscores.
      make: a function that takes the rules as keyword arguments and returns the Game; or "module:function".
      bots: name -> function (game, **options) -> Policy, or "module:function": players that need no training.
    Raises:
      InputError: a name that is not valid, or that is registered with another function.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"{name!r} is not a valid name of a game; it must be letters, digits and underscores")
    if not callable(make) and not _is_reference(make):
        raise InputError(f"game {name!r}: make={make!r} is not valid; it must be a function or 'module:function'")
    taken = _OWN.get(name) or _registered.get(name)
    if taken is not None and _reference(taken) != _reference(make):
        raise InputError(f"game {name!r} is registered already, by {_text(taken)}; choose another name")
    if name not in _OWN:
        _registered[name] = make
    players.add_bots(name, bots or {})


def make(name: str, /, **rules: Any) -> Game:
    """Builds a game.

    Args:
      name: one of `names()`.
      **rules: the game's own rules, each defaulting to the game's preset.
    Raises:
      InputError: an unknown game or rule, a value out of range, or a third-party game that cannot be loaded.
    """
    if name in _OWN:
        return _load(_OWN[name])(**rules)
    if name in _registered:
        return _made(name, f"game {name!r}", _registered[name], rules)
    offered = _offered()
    if name not in offered:
        raise unknown("game", name, names())
    entry = offered[name]
    place = f"game {name!r} of distribution {entry.dist.name if entry.dist else 'unknown'} ({entry.value})"
    try:
        function = entry.load()
    except Exception as error:
        raise InputError(f"{place} cannot be loaded: {_line(error)}") from error
    return _made(name, place, function, rules)


def _made(name: str, place: str, given: str | Callable[..., Game], rules: dict[str, Any]) -> Game:
    """Builds a third-party game; raises InputError, one line that names the game, where that fails."""
    try:
        function = _load(given) if isinstance(given, str) else given
    except (ImportError, AttributeError) as error:
        raise InputError(f"{place} cannot be loaded: {_line(error)}") from error
    if not callable(function):
        raise InputError(f"{place} is {a_kind(type(function))}; it must be a function of the rules")
    try:
        inspect.signature(function).bind(**rules)
    except TypeError as error:
        raise InputError(f"{place} does not take these rules: {error}") from error
    try:
        game = function(**rules)
    except InputError:
        raise
    except (TypeError, ValueError) as error:  # of a function that hands its rules on
        given = ", ".join(f"{rule}={value!r}" for rule, value in rules.items()) or "no rules given"
        raise InputError(f"{place} cannot be made with {given}: {_line(error)}") from error
    if not isinstance(game, Game):
        raise InputError(f"{place} made {a_kind(type(game))}; it must make an envs.Game")
    if game.name != name:
        raise InputError(f"{place} made a game named {game.name!r}; both names must be the same")
    return game


@functools.cache
def _offered() -> dict[str, importlib.metadata.EntryPoint]:
    """Returns the games of installed distributions, except those with names of this package."""
    found: dict[str, importlib.metadata.EntryPoint] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        if entry.name not in _OWN:
            found.setdefault(entry.name, entry)
    return found


def _is_reference(text: Any) -> bool:
    module, colon, function = text.partition(":") if isinstance(text, str) else ("", "", "")
    return bool(module and colon and function.isidentifier())


def _load(reference: str) -> Callable[..., Any]:
    module, function = reference.split(":")
    return getattr(importlib.import_module(module), function)


def _reference(given: str | Callable[..., Any]) -> Any:
    """Returns "module:function", the same for a function defined again; a nameless function equals only itself."""
    if isinstance(given, str):
        return given
    name = getattr(given, "__qualname__", "<nameless>")
    return given if "<" in name else f"{given.__module__}:{name}"


def _text(given: str | Callable[..., Any]) -> str:
    return given if isinstance(given, str) else f"{given.__module__}:{getattr(given, '__qualname__', given)}"


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
