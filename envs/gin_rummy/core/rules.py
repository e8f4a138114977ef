"""The rules that differ between gin rummy games, as one record, and its presets: of rounds and of games to a target."""

from __future__ import annotations

import dataclasses

from envs.cards import NUM_RANKS, NUM_SUITS
from envs.errors import InputError, unknown
from envs.gin_rummy.melding import melds
from envs.match_rules import MatchRules
from envs.rules import DeckRules, check_bounds

_MOST_CARDS_IN_HAND = melds.MOST_CARDS - 1
"""The meld kernel is exact up to a hand and the card drawn."""
LAYOFFS = ("exact", "melds_first")
REWARDS = ("points", "categorical")
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
      layoff: "exact": the defender's melds and layoffs are jointly optimal; "melds_first": the defender melds for the
        least deadwood, then lays off from the rest, in a tie with the arrangement that lays off most.
      big_gin_bonus: points for gin with all eleven cards melded, in place of gin_bonus; 0: it counts as gin.
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
    layoff: str = "exact"
    big_gin_bonus: int = 0

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
            "big_gin_bonus": (0, 1000),
            "max_actions": (2, 250),
        }
        check_bounds(self, bounds)
        if self.layoff not in LAYOFFS:
            raise unknown("layoff", self.layoff, LAYOFFS)
        self.check_deck(1, "one stock card")
        spare = self.num_cards - self.dealt - 1
        if not 0 <= self.stock_floor <= spare:
            raise InputError(f"rule stock_floor={self.stock_floor} is out of range; it must be in [0, {spare}]")


@dataclasses.dataclass(frozen=True)
class MdpRules(GinRules):
    """Rules of gin rummy with the knock decided after the discard; the defaults are the preset `r42`.

    Attributes:
      num_ranks, num_suits, hand_size, first_offer: fixed; the deck is the full one, and no upcard is offered.
      max_actions: the round is a tie after this many actions, knock decisions included.
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
        if self.reward not in REWARDS:
            raise unknown("reward", self.reward, REWARDS)
        super().__post_init__()


PRESETS = {
    "dream": GinRules(gin_bonus=50, undercut_bonus=50),
    "r42": GinRules(first_offer=False, layoff="melds_first"),
    "eaai": GinRules(layoff="melds_first"),
    "modern": GinRules(big_gin_bonus=31),
    "classic": GinRules(gin_bonus=20, undercut_bonus=10),
    "palace": GinRules(undercut_bonus=20),
}
"""Named rules of a round of `gin_rummy`, which starts from `dream`.

Sources: the 107-action document (dream); the 16-action document (r42); the framework of the EAAI 2021 gin rummy
challenge (eaai); common tournament values, Bicycle's and those of the app Gin Rummy Palace, all three as jdh8's crate
gin-rummy has them, src/rules.rs (modern, classic, palace)."""

MDP_PRESETS = {"r42": MdpRules()}
"""Named rules of a round of `gin_rummy_mdp`."""

PAYOFF_RULES = frozenset({"gin_bonus", "undercut_bonus", "undercut_on_tie", "layoff", "big_gin_bonus"})
"""Rules that change what a round pays and nothing before its end: melds and layoffs are not played but computed."""

MATCHES = {
    "dream": MatchRules(),
    "r42": MatchRules(),
    "eaai": MatchRules(),
    "modern": MatchRules(dealer="winner", game_bonus=100, box_bonus=25, shutout="double"),
    "classic": MatchRules(dealer="winner", game_bonus=100, box_bonus=20, shutout="bonus", shutout_bonus=100),
    "palace": MatchRules(dealer="winner", box_bonus=10, boxes_count=True),
}
"""How rounds make a game, by the name of the rules of its rounds.

Sources: as of PRESETS; the crate's src/game.rs for who deals. The two documents have single rounds only: theirs are
EAAI's games."""


def preset_name(rules: object) -> str | None:
    """Returns the name of the preset that some rules are, None where they are none's."""
    named = [*PRESETS.items(), *MDP_PRESETS.items(), *MINI_PRESETS.items()]
    return next((name for name, known in named if known == rules), None)


def match_rules(rules: object, preset: str | None = None) -> MatchRules:
    """Returns how rounds make a game.

    Args:
      rules: of the rounds.
      preset: one of MATCHES; by default the one whose rounds have these rules, and where there is none "eaai".
    Raises:
      InputError: an unknown preset.
    """
    if preset is None:
        own = preset_name(rules)
        preset = own if own in MATCHES else "eaai"
    if preset not in MATCHES:
        raise unknown("preset of games", preset, MATCHES)
    return MATCHES[preset]


KNOCK_FORMS = ("each_discard", "best_discard")


@dataclasses.dataclass(frozen=True)
class MiniRules(GinRules):
    """Rules of gin rummy on a reduced deck; all else is as in GinRules.

    Attributes:
      max_turns: the round is a tie after this many turns, a turn being a draw with its discard or knock.
      knock_form: "each_discard" has a knock for each card, as the full game; "best_discard" a single one, which
        discards the card that leaves the least deadwood, be it the one just taken from the pile.
      suit_symmetry: whether each player names the suits by its own cards, so that hands that differ by a permutation
        of suits have the same view (see suits.py).
      layoff, big_gin_bonus: fixed; layoffs are exact, and big gin is gin.
      max_actions: follows from max_turns and first_offer.
    """

    num_ranks: int = 4
    num_suits: int = 2
    hand_size: int = 3
    knock_limit: int = 5
    undercut_on_tie: bool = False
    stock_floor: int = 0
    layoff: str = dataclasses.field(default="exact", init=False)
    big_gin_bonus: int = dataclasses.field(default=0, init=False)
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
