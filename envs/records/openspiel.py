"""OpenSpiel's histories as records: the outcomes of chance and the actions of all players, in their order.

A history is read in each of these forms:

| form | the game |
|---|---|
| `[2, 0, 1, 1]`, or the numbers alone | must be given |
| `{"game": "kuhn_poker", "history": [2, 0, 1, 1]}`, the game as OpenSpiel writes it, with its parameters | named |
| what `pyspiel.serialize_game_and_state` writes | named |

Games: gin_rummy, kuhn_poker, leduc_poker, liars_dice, phantom_ttt and dark_hex, of two players, with the parameters
that ours can have. pyspiel is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import jax

import envs
from envs.dealing import whole_deck
from envs.errors import InputError, shown, unknown, whole_number
from envs.game import Game
from envs.records.record import Record, a_record, listed, record

_GIN_STOCK = 53
"""OpenSpiel's action of drawing from the stock; the card follows it."""
_CALL = 1
"""Of Leduc poker; the second in a row of a round's actions, or one after a raise, ends the round."""
_NUMBERS = "a list of whole numbers"
_GAME_TEXT = re.compile(r"([a-z_]\w*)(?:\((.*)\))?", re.DOTALL)
_SERIALISED = re.compile(r"\[Game\]\n(.*?)\n+\[State\]\n(.*)", re.DOTALL)


class _Kind(NamedTuple):
    """One of OpenSpiel's games.

    Attributes:
      name: of our game.
      fixed: its parameters of which we have one value.
      split: history -> (deal, actions).
      joined: (deal, actions) -> history.
      renamed: its parameters that ours call otherwise: the rule, and the rule's value for each of its values.
    """

    name: str
    fixed: dict[str, Any]
    split: Callable[[Game, list[int]], tuple[Sequence[int], list[int]]]
    joined: Callable[[Game, Sequence[int], Sequence[int]], list[int]]
    renamed: Mapping[str, tuple[str, dict[str, Any]]] = MappingProxyType({})


def of_history(
    game: Game | str, history: Sequence[int], players: Sequence[str] = (), *, place: str = "history"
) -> Record:
    """Makes the record of a game from OpenSpiel's history of it.

    Args:
      game: ours, or OpenSpiel's as it writes it, e.g. "gin_rummy(oklahoma=True)".
      history: chance and actions.
      players: who played, by seat.
      place: for messages.
    Raises:
      InputError: a game we do not have, or a history that cannot be.
    """
    try:
        ours = game if isinstance(game, Game) else game_of(game)
        kind = _kind_of(ours)
        numbers = [
            whole_number("an entry", x, "an outcome of chance or an action")
            for x in listed("history", history, _NUMBERS)
        ]
        deal, actions = kind.split(ours, numbers)
        return record(ours, deal, actions, players)
    except InputError as error:
        raise InputError(f"{place}: {str(error).removeprefix('record: ')}") from error


def to_history(given: Record) -> list[int]:
    """Returns OpenSpiel's history of a record; raises InputError where it has no such game."""
    game = envs.make(a_record(given).game, **given.rules)
    return _kind_of(game).joined(game, [int(x) for x in given.deal], given.actions)


def game_of(text: str) -> Game:
    """Returns our game for OpenSpiel's, e.g. "kuhn_poker(players=2)".

    Raises:
      InputError: there is none, or it has not the parameters.
    """
    if not isinstance(text, str):
        raise InputError(f"game={shown(repr(text))} is not a game; give one, or OpenSpiel's name of it")
    found = _GAME_TEXT.fullmatch(text.strip())
    if found is None or found[1] not in _KINDS:
        raise unknown("game of OpenSpiel", shown(text), _KINDS)
    kind, rules = _KINDS[found[1]], {}
    for part in filter(None, (found[2] or "").split(",")):
        name, _, value = (word.strip() for word in part.partition("="))
        given = {"True": True, "False": False}.get(value, int(value) if re.fullmatch(r"-?\d{1,9}", value) else value)
        rule, values = kind.renamed.get(name, (name, {given: given}))
        if name in kind.fixed:
            values = {kind.fixed[name]: None}
        if given not in values:
            could = " or ".join(f"{name}={value}" for value in values)
            raise InputError(f"{found[1]} with {shown(part.strip())} is not one of ours; {could} is")
        if name not in kind.fixed:
            rules[rule] = values[given]
    return envs.make(kind.name, **rules)


def of_text(place: str, text: str) -> Record | None:
    """Returns the record in what `pyspiel.serialize_game_and_state` wrote; None for any other text."""
    found = _SERIALISED.search(text)
    if found is None:
        return None
    numbers = found[2].split()
    if not all(re.fullmatch(r"\d{1,6}", number) for number in numbers):
        raise InputError(f"{place}: the state is no list of actions")
    return of_history(found[1], [int(number) for number in numbers], place=place)


def _kind_of(game: Game) -> _Kind:
    found = next((kind for kind in _KINDS.values() if kind.name == game.name), None)
    if found is None:
        ours = ", ".join(kind.name for kind in _KINDS.values())
        raise InputError(f"{game.name} has no counterpart in OpenSpiel; {ours} have")
    return found


def _gin(game: Game, history: list[int]) -> tuple[Sequence[int], list[int]]:
    dealt = game.rules.dealt
    deck, actions, drawn = history[:dealt], [], False
    for entry in history[dealt:]:
        (deck if drawn else actions).append(entry)
        drawn = not drawn and entry == _GIN_STOCK
    return _deck(deck, game.rules.num_cards), actions


def _gin_joined(game: Game, deal: Sequence[int], actions: Sequence[int]) -> list[int]:
    return game.history(game.from_deal(deal), actions)["history"]


def _cards_first(game: Game, history: list[int]) -> tuple[Sequence[int], list[int]]:
    return _deck(history[:2], 3), history[2:]


def _leduc(game: Game, history: list[int]) -> tuple[Sequence[int], list[int]]:
    place = _second_round(history[2:]) + 2
    return _deck([*history[:2], *history[place : place + 1]], 6), history[2:place] + history[place + 1 :]


def _second_round(actions: Sequence[int]) -> int:
    """Returns after how many actions of Leduc poker the public card is turned, or how many there are."""
    return next((n + 1 for n, action in enumerate(actions) if n and action == _CALL), len(actions))


def _leduc_joined(game: Game, deal: Sequence[int], actions: Sequence[int]) -> list[int]:
    place = _second_round(actions)
    ends = place == len(actions) and (not actions or actions[-1] != _CALL)
    return [*deal[:2], *actions[:place], *([] if ends else deal[2:3]), *actions[place:]]


def _chanceless(game: Game, history: list[int]) -> tuple[Sequence[int], list[int]]:
    """Splits a history without chance: its deal is the game's only starting state."""
    return [int(x) for x in game.deal_of(game.init(jax.random.key(0)))], history


def _deck(first: list[int], size: int) -> tuple[int, ...]:
    if len(set(first)) != len(first) or not all(0 <= card < size for card in first):
        raise InputError(f"chance deals no {size} cards, each once")
    return whole_deck(first, size)


_KINDS = {
    "gin_rummy": _Kind("gin_rummy_openspiel", {}, _gin, _gin_joined),
    "kuhn_poker": _Kind("kuhn_poker", {"players": 2}, _cards_first, lambda game, deal, taken: [*deal[:2], *taken]),
    "leduc_poker": _Kind(
        "leduc_poker",
        {"players": 2, "action_mapping": False, "suit_isomorphism": False},
        _leduc,
        _leduc_joined,
    ),
    "liars_dice": _Kind(
        "liars_dice",
        {"players": 2, "numdice": 1, "dice_sides": 6, "bidding_rule": "reset-face"},
        lambda game, history: ([outcome + 1 for outcome in history[:2]], history[2:]),
        lambda game, deal, taken: [*(face - 1 for face in deal), *taken],
    ),
    "phantom_ttt": _Kind(
        "phantom_ttt",
        {"obstype": "reveal-nothing"},
        _chanceless,
        lambda game, deal, taken: [*taken],
        {"gameversion": ("version", {"classical": "classical", "abrupt": "abrupt"})},
    ),
    "dark_hex": _Kind(
        "dark_hex",
        {"obstype": "reveal-nothing"},
        _chanceless,
        lambda game, deal, taken: [*taken],
        {"gameversion": ("version", {"cdh": "classical", "adh": "abrupt"})},
    ),
}
"""OpenSpiel's name -> what it is with us."""
