"""OpenSpiel's bots as opponents in our matches: `open_spiel:<bot>` on the games that are pyspiel's to the bit.

Each round is played on a pyspiel state too, its chance nodes fed from the deal's deck; that state is all the bot sees.
pyspiel is imported when a bot is made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from envs import cards
from envs.adapters.open_spiel import NATIVE
from envs.errors import InputError, unknown
from envs.game import Game
from envs.gin_rummy.openspiel.state import OpenSpielRules
from envs.players import HostPlayer

_SIMPLE = "simple_gin_rummy_bot"
_SIMPLE_HANDS = (6, 7, 9, 10)
"""Hand sizes that it can play in pyspiel 2.0.2; of a hand of eight, for instance, nine melded cards stop it."""


def make(name: str, game: Game) -> HostPlayer:
    """Builds one of OpenSpiel's bots as an opponent.

    Args:
      name: "simple_gin_rummy_bot", or a bot that pyspiel.load_bot knows for the game without further parameters.
      game: `gin_rummy_openspiel`.
    Raises:
      InputError: another game, an unknown bot, rules that it cannot play, or open_spiel is not installed.
    """
    if game.name not in NATIVE:
        raise InputError(f"open_spiel's bots do not play {game.name}; they play {', '.join(NATIVE)}")
    try:
        import pyspiel
    except ImportError as error:
        raise InputError("open_spiel is not installed; the extra `interop` installs it") from error
    native = native_game(game)
    known = [_SIMPLE, *(bot for bot in pyspiel.bots_that_can_play_game(native, 0) if bot == "uniform_random")]
    if name not in known:
        raise unknown("bot of open_spiel", name, known)
    if name == _SIMPLE:
        _check_simple(game)
        return _Bots(native, lambda seat, number: pyspiel.make_simple_gin_rummy_bot(native.get_parameters(), seat))
    return _Bots(native, lambda seat, number: pyspiel.make_uniform_random_bot(seat, number))


def _check_simple(game: Game) -> None:
    """Raises InputError where pyspiel's simple bot fails within a round: it counts on 13 ranks, and on some hands."""
    ranks, size = game.rules.num_ranks, game.rules.hand_size
    if ranks != cards.NUM_RANKS or size not in _SIMPLE_HANDS:
        hands = ", ".join(map(str, _SIMPLE_HANDS))
        raise InputError(
            f"pyspiel's {_SIMPLE} fails with num_ranks={ranks} and hand_size={size}; num_ranks must be "
            f"{cards.NUM_RANKS} and hand_size one of {hands}; the player simple_bot plays all rules"
        )


def native_game(game: Game) -> Any:
    """Returns pyspiel's own game of the same rules.

    Raises:
      InputError: four suits of fewer than 13 ranks, where pyspiel 2.0.2 fails once a set without spades is laid.
    """
    import pyspiel

    rules = dataclasses.asdict(game.rules)
    suits, ranks = rules["num_suits"], rules["num_ranks"]
    if suits == cards.NUM_SUITS and ranks < cards.NUM_RANKS:
        raise InputError(
            f"pyspiel's {NATIVE[game.name]} with num_suits={suits} and num_ranks={ranks} fails when a set without "
            f"spades is laid; num_ranks must be {cards.NUM_RANKS}, or num_suits fewer"
        )
    return pyspiel.load_game(NATIVE[game.name], {name: rules[name] for name in OpenSpielRules.__dataclass_fields__})


class _Bots(HostPlayer):
    """One bot per round, each with its pyspiel state."""

    def __init__(self, native: Any, bot: Callable[[int, int], Any]) -> None:
        """Takes pyspiel's game and the function (seat, number of the round) -> a bot."""
        self._root, self._bot, self._begun = native.new_initial_state(), bot, 0

    def begin(self, states: Any, seats: Sequence[int]) -> None:
        """Takes its seats at newly dealt rounds."""
        decks = np.asarray(states.deck)
        self._decks: list[Iterator[int]] = [iter(deck.tolist()) for deck in decks]
        self._states = [self._root.clone() for _ in decks]
        self._bots = [self._bot(int(seat), self._begun + n) for n, seat in enumerate(seats)]
        self._seats = [int(seat) for seat in seats]
        self._begun += len(decks)
        for number in range(len(decks)):
            self._deal(number)

    def choose(self, number: int) -> int:
        """Returns the bot's action in a round in which it is to act."""
        return int(self._bots[number].step(self._states[number]))

    def see(self, number: int, player: int, action: int) -> None:
        """Takes note of an action, its own included."""
        state = self._states[number]
        if player != self._seats[number]:
            self._bots[number].inform_action(state, player, action)
        state.apply_action(action)
        self._deal(number)

    def _deal(self, number: int) -> None:
        """Feeds the state's chance nodes from the deck."""
        while self._states[number].is_chance_node():
            self._states[number].apply_action(next(self._decks[number]))
