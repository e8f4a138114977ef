"""Deck, hand, player and game as plain objects, one round at a time: a thin layer over the rules of `rummy500`.

Source: the scope document's sections 3.1 to 3.4. Cards are keyed as there, "2Clubs", "TClubs", "ASpades"; its example's
names, "2Dia" and "AceSpades", are read as well, and so are those of `envs.cards`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np

from envs import cards
from envs.errors import InputError, shown, unknown, whole_number
from envs.hand_evaluator.combo import Meld, Options, kind_of, lowest
from envs.hand_evaluator.search import melds_at_lowest
from envs.rules import build_rules
from envs.rummy500 import actions
from envs.rummy500.game import Rummy500
from envs.rummy500.rules import ACES, HAND_VALUES, HIGH_ACE, LOW_ACE, RummyRules
from envs.rummy500.state import HAND, PILE, melds_of

_SUIT_NAMES = ("Spades", "Hearts", "Diamonds", "Clubs")
_RANK_WORDS = {"ACE": "A", "TEN": "T", "10": "T", "JACK": "J", "QUEEN": "Q", "KING": "K"}
_SUIT_PATTERN = "S(?:PADES?)?|H(?:EARTS?)?|D(?:IA(?:MONDS?)?)?|C(?:LUBS?)?"
_CARD_PATTERN = re.compile(f"({'|'.join(_RANK_WORDS)}|[{cards.RANKS}])({_SUIT_PATTERN})")
NO_MELD, SETS, RUNS, BOTH = range(4)
"""Type codes of a hand's melds."""


def parse_card(name: str) -> int:
    """Returns the id of a card named like "2Clubs", "2Dia", "AceSpades", "TClubs", "10H" or "AS".

    Raises:
      InputError: no such card.
    """
    found = _CARD_PATTERN.fullmatch(name.strip().upper()) if isinstance(name, str) else None
    if not found:
        raise InputError(f"unknown card {name!r}; a card is a rank and a suit, e.g. '2Clubs', 'TDia' or 'AceSpades'")
    rank, suit = found.groups()
    return cards.NUM_RANKS * cards.SUITS.index(suit[0]) + cards.RANKS.index(_RANK_WORDS.get(rank, rank))


def key_of(card: int) -> str:
    """Returns the document's name of a card id, e.g. "TClubs"."""
    return cards.RANKS[card % cards.NUM_RANKS] + _SUIT_NAMES[card // cards.NUM_RANKS]


def seed_of(seed: int | None) -> int:
    """Returns a seed as it is, a random one for None.

    Raises:
      InputError: no whole number of 32 bits.
    """
    if seed is None:
        return int(np.random.default_rng().integers(2**31))
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 2**32:
        raise InputError(f"seed={shown(seed)} is not valid; it must be a whole number, 0 to {2**32 - 1}")
    return int(seed)


class Deck:
    """A deck: a dictionary from names to ids, in the order of the cards."""

    def __init__(self, held: Iterable[str | int] | None = None) -> None:
        """Takes cards by name or id; all 52 by default.

        Raises:
          InputError: an unknown card, or one twice.
        """
        self.cards: dict[str, int] = {}
        if not isinstance(held, Iterable | None):
            raise InputError(f"held={shown(repr(held))} is not valid; it must be a list of cards")
        for card in range(cards.NUM_CARDS) if held is None else held:
            self.add(card)

    def add(self, card: str | int) -> None:
        """Puts a card on the deck."""
        number = _number(card)
        if key_of(number) in self.cards:
            raise InputError(f"{key_of(number)} is there already")
        self.cards[key_of(number)] = number

    def remove(self, card: str | int) -> None:
        """Takes a card out."""
        key = key_of(_number(card))
        if key not in self.cards:
            raise InputError(f"{key} is not there; there are {', '.join(self.cards) or 'no cards'}")
        del self.cards[key]

    def __contains__(self, card: object) -> bool:
        """Returns whether a card is there; what is no card is not."""
        if not isinstance(card, str | int | np.integer):
            return False
        try:
            return key_of(_number(card)) in self.cards
        except InputError:
            return False

    def __len__(self) -> int:
        return len(self.cards)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.cards)})"


def _number(card: str | int) -> int:
    if isinstance(card, str):
        return parse_card(card)
    number = whole_number("card", card, f"an id, 0 to {cards.NUM_CARDS - 1}, or a name")
    if not 0 <= number < cards.NUM_CARDS:
        raise InputError(f"unknown card {card!r}; an id is 0 to {cards.NUM_CARDS - 1}")
    return number


class Hand(Deck):
    """A player's cards, with the melds they make."""

    def __init__(self, held: Iterable[str | int] = (), ace_in_runs: str = "both") -> None:
        """Takes cards by name or id; none by default.

        Args:
          held: the cards.
          ace_in_runs: the table's rule, as of `RummyRules`.
        Raises:
          InputError: an unknown card, one twice, or no such rule.
        """
        if ace_in_runs not in ACES:
            raise unknown("ace_in_runs", ace_in_runs, ACES)
        self.ace_in_runs = ace_in_runs
        super().__init__(held)

    def summary(self) -> tuple[int, int, int]:
        """Returns the document's three-tuple.

        The number of melds in the hand (sets of three and four, runs of three), their type (NO_MELD, SETS, RUNS or
        BOTH), and the points of the best of them, of any length, that share no card. Runs have the ace where the
        table's rule has it.
        """
        low, high = self.ace_in_runs != "high", self.ace_in_runs != "low"
        held = np.zeros(cards.NUM_CARDS, bool)
        held[list(self.cards.values())] = True
        melds = actions.LAID[actions.SET : actions.ON_SET]
        starts = np.arange(actions.RUN, actions.ON_SET) - actions.RUN
        allowed = np.ones(len(melds), bool)
        runs_of = starts % actions.NUM_STARTS
        allowed[actions.RUN - actions.SET :] = (low | (runs_of != 0)) & (high | (runs_of != actions.NUM_STARTS - 1))
        complete = ~np.any(melds & ~held, axis=1) & allowed
        sets, runs = complete[: actions.RUN - actions.SET].any(), complete[actions.RUN - actions.SET :].any()
        code = sum(1 << 2 * kind_of(card) for card in self.cards.values())
        return int(complete.sum()), SETS * int(sets) + RUNS * int(runs), _most_points(code, low, high)


@functools.lru_cache(maxsize=4096)
def _most_points(code: int, low: bool, high: bool) -> int:
    """Returns the points of the best melds of a packed hand, with the ace below the two, above the king, or both."""
    if not code:
        return 0
    rest = _most_points(code & ~(3 << 2 * lowest(code)), low, high)
    found = melds_at_lowest(code, 0, Options(ace_high=high))
    melds = [meld for meld in found if low or not (meld.is_run and meld.cards[0] % cards.NUM_RANKS == 0)]
    return max([rest, *(_points(meld) + _most_points(code - meld.mask, low, high) for meld in melds)])


def _points(meld: Meld) -> int:
    low_ace = meld.is_run and meld.cards[0] % cards.NUM_RANKS == 0
    return int(HAND_VALUES[list(meld.cards)].sum()) - (HIGH_ACE - LOW_ACE) * low_ace


class ActionSpace(NamedTuple):
    """The legal action ids of a player in the document's three parts; empty while others act."""

    pick_up: tuple[int, ...]
    play: tuple[int, ...]
    discard: tuple[int, ...]


class Player:
    """One seat of a game."""

    def __init__(self, game: RummyGame, seat: int) -> None:
        """Sits down at a game."""
        self._game, self.seat = game, seat

    @property
    def hand(self) -> Hand:
        """The cards held."""
        held = np.flatnonzero(np.asarray(self._game.state.zone) == HAND + self.seat).tolist()
        return Hand(held, self._game.rules.rules.ace_in_runs)

    @property
    def score(self) -> int:
        """Points laid less points in hand, as if the round ended now."""
        return self._game.scores()[self.seat]

    @property
    def action_space(self) -> ActionSpace:
        """What the player may do now."""
        legal = self._game.legal_actions() if self._game.current_player == self.seat else []
        return ActionSpace(
            tuple(a for a in legal if a < actions.SET),
            tuple(a for a in legal if actions.SET <= a < actions.DISCARD),
            tuple(a for a in legal if a >= actions.DISCARD),
        )

    @property
    def action_names(self) -> dict[int, str]:
        """What the player may do now: the legal action ids with their names."""
        return {action: actions.action_name(action) for part in self.action_space for action in part}

    @property
    def observation_space(self) -> dict[str, tuple[int, ...]]:
        """The shapes of what `observation` returns."""
        return {"hand": (cards.NUM_CARDS,), "discard_deck": (cards.NUM_CARDS,), "summary": (3,)}

    def observation(self) -> dict[str, np.ndarray]:
        """Returns the hand bool[52], the pile int8[52] (place from the oldest, 1 up; 0 elsewhere), the three-tuple."""
        held = np.asarray(self._game.state.zone) == HAND + self.seat
        place = np.asarray(self._game.state.position) + np.int8(1)
        return {"hand": held, "discard_deck": place, "summary": np.array(self.hand.summary())}


_step = jax.jit(Rummy500.step, static_argnums=0)
_legal = jax.jit(Rummy500.legal_actions, static_argnums=0)


class RummyGame:
    """One round of rummy 500.

    Attributes:
      rules: the Game it is played by.
      state: its state.
      players: tuple of Player.
    """

    def __init__(self, num_players: int = 3, seed: int | None = None, deck: Any = None, **rules: Any) -> None:
        """Deals.

        Args:
          num_players: 2 to 6.
          seed: of the shuffle and of the first player; a random one by default.
          deck: 52 cards by name or id, instead of a shuffle: hands in turn, the upcard, the stock; player 0 is first.
          **rules: further fields of `RummyRules`.
        Raises:
          InputError: too many players, an unknown rule, no full deck, or no seed of 32 bits.
        """
        self.rules = Rummy500(build_rules(RummyRules, RummyRules(), {"num_players": num_players, **rules}))
        if deck is not None:
            if not isinstance(deck, Iterable):
                raise InputError(f"deck={shown(repr(deck))} is not valid; it must be {cards.NUM_CARDS} cards")
            ids = list(Deck(deck).cards.values())
            if len(ids) != cards.NUM_CARDS:
                raise InputError(f"deck has {len(ids)} cards; it must have {cards.NUM_CARDS}")
            self.state = self.rules.from_deck(np.array(ids))
        else:
            self.state = self.rules.init(jax.random.key(seed_of(seed)))
        self.players = tuple(Player(self, seat) for seat in range(self.rules.num_players))

    def begin(self, first: int) -> None:
        """Lets another player act first; before anyone has acted.

        Raises:
          InputError: no such player, or someone has acted.
        """
        first = whole_number("first", first, f"0 to {len(self.players) - 1}")
        if first not in range(len(self.players)):
            raise InputError(f"first={shown(first)} is not valid; it must be 0 to {len(self.players) - 1}")
        if bool(self.state.drew) or int(self.state.turns):
            raise InputError("a player has acted; who begins is chosen before that")
        self.state = dataclasses.replace(self.state, current_player=np.int32(first))

    @property
    def current_player(self) -> int:
        """The seat to act, -1 once the round is over."""
        return int(self.state.current_player)

    @property
    def is_over(self) -> bool:
        """Whether the round is over."""
        return self.current_player < 0

    @property
    def discard_deck(self) -> Deck:
        """The pile, oldest first."""
        position = np.asarray(self.state.position)
        pile = np.flatnonzero(np.asarray(self.state.zone) == PILE)
        return Deck(sorted(pile.tolist(), key=lambda card: position[card]))

    def legal_actions(self) -> list[int]:
        """Returns the legal action ids, ascending."""
        return np.flatnonzero(np.asarray(_legal(self.rules, self.state))).tolist()

    def legal_names(self) -> dict[int, str]:
        """Returns what the player to act may do: action ids with their names."""
        return {action: actions.action_name(action) for action in self.legal_actions()}

    @property
    def melds(self) -> list[list[str]]:
        """The melds on the table, sets by rank, then runs by suit, by the document's names of the cards."""
        return [[key_of(card) for card in meld] for meld in melds_of(self.state)]

    def step(self, action: int | str) -> None:
        """Plays an action of the player to act, by its id or its name.

        Raises:
          InputError: an illegal action.
        """
        if isinstance(action, str):
            action = self._named(action)
        action = whole_number("action", action, f"0 to {actions.NUM_ACTIONS - 1}, or a name")
        legal = self.legal_actions()
        if action not in legal:
            name = actions.action_name(action) if 0 <= action < actions.NUM_ACTIONS else "no action"
            ways = "; ".join(f"{a} {actions.action_name(a)}" for a in legal) or "none, the round is over"
            raise InputError(f"illegal action {action} ({name}) of player {self.current_player}; legal: {ways}")
        self.state, _, _ = _step(self.rules, self.state, np.int32(action))

    def _named(self, name: str) -> int:
        """Returns the legal action of a name."""
        names = self.legal_names()
        found = next((action for action, known in names.items() if known.lower() == name.strip().lower()), None)
        if found is None:
            raise unknown("or illegal action", name, names.values())
        return found

    def scores(self) -> list[int]:
        """Returns each player's points laid less those in hand, as if the round ended now."""
        return np.asarray(self.rules.scores(self.state)).tolist()

    def winners(self) -> list[int]:
        """Returns the seats of the highest score; empty while the round is on."""
        scores = self.scores()
        return [seat for seat, score in enumerate(scores) if score == max(scores)] if self.is_over else []

    def __str__(self) -> str:
        """Returns the table in words, all cards open."""
        return self.rules.render(self.state)

    def _repr_svg_(self) -> str:
        return self.rules.render_svg(self.state)

    def __repr__(self) -> str:
        return f"RummyGame(players {len(self.players)}, to act {self.current_player}, scores {self.scores()})"
