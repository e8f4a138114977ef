"""The rules that differ between gin rummy games, as one record, and its presets."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from envs.cards import NUM_RANKS, NUM_SUITS
from envs.errors import InputError, unknown
from envs.gin_rummy.melding import melds
from envs.rules import DeckRules, check_bounds

_MOST_CARDS_IN_HAND = melds.MOST_CARDS - 1
"""The meld kernel is exact up to a hand and the card drawn."""
_MOST_TURNS = 124
"""Two passes and two actions a turn must stay within the bound of max_actions."""


@dataclasses.dataclass(frozen=True)
class GinRules(DeckRules):
    """Rules of one gin rummy game; the defaults are the common ones.

    Attributes:
      num_ranks, num_suits: the deck, ranks from the ace up.
      hand_size: cards dealt to each player.
      knock_limit: the most deadwood a knocker may keep.
      gin_bonus, undercut_bonus: points.
      undercut_on_tie: whether equal deadwood is an undercut (else it scores nothing).
      first_offer: whether the upcard is offered to player 0, then player 1, before the first draw.
      stock_floor: a plain discard that leaves this many cards or fewer in the stock ends the round as a tie.
      max_actions: the round is a tie after this many actions, passes included.
    """

    num_ranks: int = NUM_RANKS
    num_suits: int = NUM_SUITS
    hand_size: int = 10
    knock_limit: int = 10
    gin_bonus: int = 25
    undercut_bonus: int = 25
    undercut_on_tie: bool = True
    first_offer: bool = True
    stock_floor: int = 2
    max_actions: int = 80
    layoff: ClassVar[str] = "exact"
    """How a defender answers a knock, one of LAYOFFS."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
          InputError: a rule out of range.
        """
        bounds = {
            "num_ranks": (3, NUM_RANKS),
            "num_suits": (1, NUM_SUITS),
            "hand_size": (2, _MOST_CARDS_IN_HAND),
            "knock_limit": (0, 98),
            "gin_bonus": (0, 1000),
            "undercut_bonus": (0, 1000),
            "max_actions": (2, 250),
        }
        check_bounds(self, bounds)
        self.check_deck(1, "one stock card")
        spare = self.num_cards - self.dealt - 1
        if not 0 <= self.stock_floor <= spare:
            raise InputError(f"rule stock_floor={self.stock_floor} is out of range; it must be in [0, {spare}]")


LAYOFFS = ("exact", "melds_first")
REWARDS = ("points", "categorical")


@dataclasses.dataclass(frozen=True)
class MdpRules(GinRules):
    """Rules of gin rummy with the knock decided after the discard; the defaults are the preset `r42`.

    Attributes:
      num_ranks, num_suits, hand_size, first_offer: fixed; the deck is the full one, and no upcard is offered.
      max_actions: the round is a tie after this many actions, knock decisions included.
      layoff: "melds_first": the defender melds for least deadwood, then lays off what is left, of equal arrangements
        the one that lays off most; "exact": own melds and layoffs at the joint optimum.
      reward: "points", zero-sum points / 100; "categorical", see scoring.categorical_reward.
    """

    num_ranks: int = dataclasses.field(default=NUM_RANKS, init=False)
    num_suits: int = dataclasses.field(default=NUM_SUITS, init=False)
    hand_size: int = dataclasses.field(default=_MOST_CARDS_IN_HAND, init=False)
    first_offer: bool = dataclasses.field(default=False, init=False)
    max_actions: int = 240
    layoff: str = "melds_first"
    reward: str = "points"

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
          InputError: a rule out of range.
        """
        for name, options in (("layoff", LAYOFFS), ("reward", REWARDS)):
            if getattr(self, name) not in options:
                raise unknown(name, getattr(self, name), options)
        super().__post_init__()


PRESETS = {"dream": GinRules(gin_bonus=50, undercut_bonus=50), "r42": MdpRules()}
"""Named rule sets; a game names the one it starts from."""


KNOCK_FORMS = ("each_discard", "best_discard")


@dataclasses.dataclass(frozen=True)
class MiniRules(GinRules):
    """Rules of gin rummy on a reduced deck; all else is as in GinRules.

    Attributes:
      max_turns: the round is a tie after this many turns, a turn being a draw with its discard or knock.
      knock_form: "each_discard" has a knock for each card, as the full game; "best_discard" a single one, which
        discards the card that leaves the least deadwood, be it the one just taken from the pile.
      suit_symmetry: whether each player names the suits by its own cards, so that hands that differ by a renaming of
        suits look alike (see suits.py).
      max_actions: follows from max_turns and first_offer.
    """

    num_ranks: int = 4
    num_suits: int = 2
    hand_size: int = 3
    knock_limit: int = 5
    undercut_on_tie: bool = False
    stock_floor: int = 0
    max_actions: int = dataclasses.field(default=0, init=False)
    max_turns: int = 2
    knock_form: str = "each_discard"
    suit_symmetry: bool = False

    def __post_init__(self) -> None:
        """Checks the ranges and works out max_actions.

        Raises:
          InputError: a rule out of range.
        """
        if not 1 <= self.max_turns <= _MOST_TURNS:
            raise InputError(f"rule max_turns={self.max_turns} is out of range; it must be in [1, {_MOST_TURNS}]")
        if self.knock_form not in KNOCK_FORMS:
            raise unknown("knock_form", self.knock_form, KNOCK_FORMS)
        object.__setattr__(self, "max_actions", 2 * self.max_turns + 2 * self.first_offer)
        super().__post_init__()


MINI_PRESETS = {
    "4x2": MiniRules(),
    "3x3": MiniRules(num_ranks=3, num_suits=3),
    "5x2": MiniRules(num_ranks=5, hand_size=4, knock_limit=3),
    "3x4": MiniRules(num_ranks=3, num_suits=4, hand_size=4, knock_limit=3, suit_symmetry=True),
}
"""Named reduced decks, ranks x suits."""


def preset_of(rules: GinRules) -> str | None:
    """Returns the name of the preset that some rules are, None where they are none."""
    return next((name for name, preset in (PRESETS | MINI_PRESETS).items() if preset == rules), None)
