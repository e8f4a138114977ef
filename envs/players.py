"""Players that need no training, built by name."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import functools
import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from envs.cards import NUM_CARDS
from envs.errors import InputError, a_kind, refuse_name, unknown
from envs.game import Game, Policy, State

GROUP = "dream_rummy.players"
"""Group of entry points by which a distribution provides players: <game>.<player> = "module:function"."""
_EVERYWHERE: dict[str, str] = {"random": "envs.random_play:uniform_policy"}
"""Name -> "module:function", players of every game; the function takes the player's options and returns the Policy."""
_RULE_BOTS = (
    "greedy",
    "heuristic",
    "aggressive_knock",
    "meld_builder",
    "early_knock",
    "defensive",
    "eaai_simple",
    "camper",
    "patient",
)
_SEARCH_LEVELS = ("lv4", "lv5", "lv7", "mc:64", "mc:128", "mc:256", "mc:512")
_OF_GAME: dict[str, dict[str, str]] = {
    "gin_rummy_openspiel": {"simple_bot": "envs.gin_rummy.players.simple_bot:make"},
    "rummy500": {
        "greedy": "envs.rummy500.bots:greedy_policy",
        "heuristic": "envs.rummy500.heuristic:heuristic_policy",
    },
    "gin_rummy": {
        "simple_bot": "envs.gin_rummy.players.simple_bot:make",
        "lookahead": "envs.gin_rummy.players.lookahead:make",
        "marjj": "envs.gin_rummy.players.marjj:make",
        **{name: f"envs.gin_rummy.players.rule_based:{name}" for name in _RULE_BOTS},
        **{name: f"envs.gin_rummy.players.search:{name}" for name in _SEARCH_LEVELS},
    },
}
"""The same for the players of one game; see _FOR_ITS_RULES."""
_FOR_ITS_RULES: dict[str, tuple[str, ...]] = {
    "gin_rummy": ("simple_bot", "lookahead", "marjj", *_RULE_BOTS, *_SEARCH_LEVELS),
    "gin_rummy_openspiel": ("simple_bot",),
}
"""Game -> the players whose makers are given the game first."""
_FULL_DECK: dict[str, tuple[str, ...]] = {"gin_rummy": ("lookahead", "marjj", *_RULE_BOTS, *_SEARCH_LEVELS)}
"""Game -> the players that play it with the full deck alone."""
_added: dict[str, dict[str, str | Callable[..., Policy]]] = {}
"""Game -> name -> player, registered with a game; each is given the game first, as those of entry points are."""
_TRANSLATED: dict[str, str] = {
    "gin_rummy_mdp": "envs.gin_rummy.mdp.players",
    "gin_rummy_openspiel": "envs.gin_rummy.players.translation",
}
"""Game -> module: `original(game)` is the game whose players `translated(player, game)` adapts to this one.

`original` returns None where they cannot be adapted, for instance with a reduced deck."""
_ASSISTANTS: dict[str, dict[str, str]] = {
    "gin_rummy_openspiel": {"exact_endgame": "envs.gin_rummy.players.openspiel_endgame:make"},
}
"""Game -> name -> "module:function" that takes the game and returns a Policy for some of its decisions."""
_LIBRARIES = {"open_spiel": "envs.adapters.open_spiel_bots:make"}
"""Prefix -> "module:function" that builds another library's player of a game by its name there."""


class HostPlayer(abc.ABC):
    """A player of another library: it plays many rounds at once on the host and is notified of every action."""

    @abc.abstractmethod
    def begin(self, states: State, seats: Sequence[int]) -> None:
        """Starts newly dealt rounds: states [N], its seats [N], one per round."""

    @abc.abstractmethod
    def choose(self, number: int) -> int:
        """Returns its action in round 0 <= number < N, where it is to act."""

    @abc.abstractmethod
    def see(self, number: int, player: int, action: int) -> None:
        """Receives an action that was played, its own included."""


def add_bots(game: str, bots: Mapping[str, str | Callable[..., Policy]]) -> None:
    """Adds players of a third-party game.

    Args:
      game: its name.
      bots: name -> function (game, **options) -> Policy, or "module:function".
    Raises:
      InputError: a name that is taken by a player of all games or of this package's game.
    """
    taken = sorted({*bots} & {*_EVERYWHERE, *_OF_GAME.get(game, {})})
    if taken:
        raise InputError(f"player {taken[0]!r} of {game} is registered already; choose another name")
    _added.setdefault(game, {}).update(bots)


@functools.cache
def _offered() -> dict[str, dict[str, str]]:
    """Returns the players that installed distributions offer: game -> name -> "module:function"."""
    found: dict[str, dict[str, str]] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        game, dot, name = entry.name.partition(".")
        if dot and name:
            found.setdefault(game, {}).setdefault(name, entry.value)
    return found


def _from_outside(game: str) -> dict[str, str | Callable[..., Policy]]:
    """Returns the third-party players of a game, except those with names of this package."""
    own = {*_EVERYWHERE, *_OF_GAME.get(game, {})}
    return {name: given for name, given in (_offered().get(game, {}) | _added.get(game, {})).items() if name not in own}


def _players(game: Game) -> dict[str, str | Callable[..., Policy]]:
    known = _from_outside(game.name) | _EVERYWHERE | _OF_GAME.get(game.name, {})
    return {name: player for name, player in known.items() if not _lacks_cards(name, game)}


def _lacks_cards(name: str, game: Game) -> bool:
    """Returns whether a player needs the full deck and the game has a smaller one."""
    return name in _FULL_DECK.get(game.name, ()) and game.rules.num_cards < NUM_CARDS


def _translator(game: Game) -> Any:
    """Returns the module through which players of another game play this one, or None."""
    if game.name not in _TRANSLATED:
        return None
    module = importlib.import_module(_TRANSLATED[game.name])
    return None if module.original(game) is None else module


def bot_names(game: Game) -> list[str]:
    """Returns the names that `make_bot` accepts for a game.

    Raises:
      InputError: a name in the place of a game.
    """
    refuse_name(game, "game")
    translator = _translator(game)
    return sorted({*_players(game), *(_players(translator.original(game)) if translator else ())})


def make_bot(name: str, game: Game, **options: Any) -> Policy:
    """Builds a rule-based player of a game.

    Args:
      name: one of bot_names(game).
      game: the game it plays.
      **options: options of that player.
    Raises:
      InputError: no player of that name plays the game, or an unknown option.
    """
    refuse_name(game, "game")
    if _lacks_cards(name, game):
        raise InputError(
            f"player {name!r} of {game.name} does not play with {game.rules.num_cards} cards; it plays with all "
            f"{NUM_CARDS}; players of this deck: {', '.join(bot_names(game))}"
        )
    if name not in bot_names(game):
        raise unknown(f"player of {game.name}", name, bot_names(game))
    if name not in _players(game):
        translator = _translator(game)
        player = translator.translated(make_bot(name, translator.original(game), **options), game)
        return dataclasses.replace(player, game=game)
    maker = given = _players(game)[name]
    takes_game = name in _FOR_ITS_RULES.get(game.name, ()) or name in _from_outside(game.name)
    if isinstance(given, str):
        module, _, function = given.partition(":")
        try:
            maker = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise InputError(f"player {name!r} of {game.name} ({given}) cannot be loaded: {error}") from error
    if name in _from_outside(game.name):
        _check_maker(name, game, maker, options)
    try:
        player = maker(game, **options) if takes_game else maker(**options)
    except TypeError as error:
        if not options:
            raise
        raise InputError(f"player {name!r} does not take {', '.join(options)}") from error
    if not isinstance(player, Policy):
        found = "None" if player is None else a_kind(type(player))
        raise InputError(
            f"player {name!r} of {game.name}: its function returned {found}; it must return an envs.Policy, as "
            "envs.Policy(lambda params, view, legal: <probabilities of the actions>)"
        )
    return dataclasses.replace(player, game=game)


def _check_maker(name: str, game: Game, maker: Any, options: Mapping[str, Any]) -> None:
    """Raises InputError unless what makes a third-party player can be called with the game, as no player can."""
    takes = None
    if callable(maker) and not isinstance(maker, Policy):
        try:
            takes = inspect.signature(maker)
        except ValueError:  # compiled code may not say what it takes
            return
        for given in (options, {}):  # options that it does not take are another fault
            with contextlib.suppress(TypeError):
                takes.bind(game, **given)
                return
        with contextlib.suppress(TypeError):
            takes.bind_partial(game)
            needed = [
                one.name
                for one in takes.parameters.values()
                if one.kind is one.KEYWORD_ONLY and one.default is one.empty
            ]
            if missing := [name for name in needed if name not in options]:
                raise InputError(f"player {name!r} of {game.name} needs {', '.join(missing)}, which nobody gave")
    found = a_kind(type(maker)) if takes is None else f"a function of {takes}"
    raise InputError(
        f"player {name!r} of {game.name} is {found}; it must be a function that takes the game and returns an "
        "envs.Policy"
    )


def is_foreign(reference: str) -> bool:
    """Returns whether a reference names another library's player, as "open_spiel:simple_gin_rummy_bot" does."""
    return reference.partition(":")[0] in _LIBRARIES


def make_host_player(reference: str, game: Game) -> HostPlayer:
    """Builds another library's player.

    Args:
      reference: "<library>:<its name there>".
      game: what it plays.
    Raises:
      InputError: an unknown library or player, one that does not play the game, or a library that is not installed.
    """
    refuse_name(game, "game")
    library, _, name = reference.partition(":")
    if library not in _LIBRARIES:
        raise unknown("library of players", library, _LIBRARIES)
    module, function = _LIBRARIES[library].split(":")
    return getattr(importlib.import_module(module), function)(name, game)


def make_assistant(name: str, game: Game) -> Policy:
    """Builds an assistant: a policy for some decisions of a game, with probability 0 for all actions at the others.

    Args:
      name: an assistant of the game.
      game: the game.
    Raises:
      InputError: the game has none of that name.
    """
    refuse_name(game, "game")
    known = _ASSISTANTS.get(game.name, {})
    if name not in known:
        raise unknown(f"assistant for {game.name}", name, known)
    module, function = known[name].split(":")
    return getattr(importlib.import_module(module), function)(game)


def check_plays(player: Policy | HostPlayer, game: Game) -> None:
    """Checks that a player was made for a game; a player without a game is accepted.

    Rules that change payoffs alone may differ.

    Raises:
      InputError: it is a player of another game, of another version of it, or of other rules; or what is no player or
        no game.
    """
    refuse_name(player, "player")
    refuse_name(game, "game")
    if not isinstance(player, Policy | HostPlayer):
        way = "; envs.Policy(function), of (params, view, legal), makes one" if callable(player) else ""
        raise InputError(f"{a_kind(type(player))} is not a player; it must be an envs.Policy{way}")
    own = player.game if isinstance(player, Policy) else None
    if own is None or own == game:
        return
    mine, wanted = own.identity, game.identity
    for part in ("name", "version"):
        if mine[part] != wanted[part]:
            raise InputError(
                f"the policy plays {own.name} version {own.version}, not {game.name} version {game.version}; "
                "give it a game of its own kind"
            )
    other = [f"{rule}={mine['rules'].get(rule)!r}, not {x!r}" for rule, x in wanted["rules"].items()
             if rule not in game.payoff_rules and mine["rules"].get(rule) != x]  # fmt: skip
    if own.observation_size != game.observation_size:  # a match's policy in a round, which has no rules of matches
        other += [f"{rule}={x!r}, not given" for rule, x in mine["rules"].items() if rule not in wanted["rules"]]
    if other:
        raise InputError(
            f"the policy plays {own.name} with other rules: {'; '.join(other)}; "
            "dataclasses.replace(policy, game=None) is a copy that takes any rules"
        )
