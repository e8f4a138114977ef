"""Records of rules, built from keyword arguments and checked; and the rules common to all games with a deck."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from envs import cards
from envs.errors import InputError, a_kind, unknown
from envs.values import read_as


def build_rules(kind: type, preset: Any, given: Mapping[str, Any], besides: Iterable[str] = ()) -> Any:
    """Returns `preset` with the given rules replaced, checked for name and type.

    Args:
      kind: the frozen dataclass of rules.
      preset: an instance of it, the defaults.
      given: rule name -> value.
      besides: names that the game takes besides these, for the message.
    Raises:
      InputError: an unknown rule, a value of another type, or one that the dataclass rejects.
    """
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    found = {}
    for key, value in given.items():
        if key not in fields:
            raise unknown("rule", key, fields.union(besides))
        found[key] = read_rule(key, type(getattr(preset, key)), value)
    return dataclasses.replace(preset, **found)


def read_rule(name: str, kind: type, value: Any) -> Any:
    """Returns the value of a rule as its kind; raises InputError where it is none."""
    found = read_as(kind, value)
    if type(found) is not kind:
        raise InputError(f"rule {name}={value!r} is {a_kind(type(value))}; it must be {a_kind(kind)}")
    return found


def chosen_preset(name: Any, presets: Mapping[str, Any]) -> Any:
    """Returns a preset by its name; raises InputError if there is none of that name."""
    if not isinstance(name, str) or name not in presets:
        raise unknown("preset", name, presets)
    return presets[name]


def check_bounds(rules: Any, bounds: Mapping[str, tuple[int, int]]) -> None:
    """Checks that numbers of a record of rules are within bounds.

    Args:
      rules: the record.
      bounds: rule name -> the least and the greatest value.
    Raises:
      InputError: a rule out of range.
    """
    for name, (low, high) in bounds.items():
        if not low <= getattr(rules, name) <= high:
            raise InputError(f"rule {name}={getattr(rules, name)} is out of range; it must be in [{low}, {high}]")


class DeckRules:
    """Rules common to all gin rummy games: a deck, a deal of two hands and an upcard, and bonuses.

    A mixin: the dataclass of rules declares these among its fields, the last where the game knows big gin.
    """

    num_ranks: int
    num_suits: int
    hand_size: int
    gin_bonus: int
    undercut_bonus: int
    big_gin_bonus: int = 0

    @property
    def num_cards(self) -> int:
        """Cards in the deck."""
        return self.num_ranks * self.num_suits

    @property
    def dealt(self) -> int:
        """Number of cards dealt before play begins: two hands and the upcard."""
        return 2 * self.hand_size + 1

    @property
    def worst_points(self) -> int:
        """Upper bound on the points lost in a round: the most costly hand without a meld, plus the largest bonus."""
        most = cards.most_points(self.hand_size, self.num_ranks, self.num_suits)
        return most + max(self.gin_bonus, self.undercut_bonus, self.big_gin_bonus)

    def check_deck(self, stock: int, what: str) -> None:
        """Checks that the deck has enough cards for a deal and some cards of the stock.

        Args:
          stock: cards the stock needs.
          what: their name in the message.
        Raises:
          InputError: there are fewer cards.
        """
        if self.num_cards < self.dealt + stock:
            raise InputError(
                f"rules num_ranks={self.num_ranks}, num_suits={self.num_suits}, hand_size={self.hand_size} do not fit: "
                f"{self.num_cards} cards, of which a deal and {what} take {self.dealt + stock}"
            )
