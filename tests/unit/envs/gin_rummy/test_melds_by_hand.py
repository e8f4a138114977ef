"""Melds, deadwood and layoffs of hands one can check by eye."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import Array

from envs import cards, gin_rummy

_deadwood, _after = jax.jit(gin_rummy.deadwood), jax.jit(gin_rummy.deadwood_after_discard)
_best_melds, _layoff = jax.jit(gin_rummy.best_melds), jax.jit(gin_rummy.layoff_deadwood)


def _hand(text: str) -> Array:
    hand = np.zeros(52, bool)
    hand[[cards.card_id(name) for name in text.split()]] = True
    assert hand.sum() == len(text.split())
    return jax.numpy.asarray(hand)


def _melds(text: str) -> list[str]:
    """Returns the melds a hand lays, each as names in ascending id."""
    rows = np.asarray(_best_melds(_hand(text)))
    assert rows.shape == (4, 52)
    return [" ".join(cards.card_name(c) for c in np.flatnonzero(row)) for row in rows if row.any()]


DEADWOOD = {
    "no meld": ("AS 3H 5D 7C 9S JH KD 2C 4S 6H", 1 + 3 + 5 + 7 + 9 + 10 + 10 + 2 + 4 + 6),
    "the most ten cards can leave": ("KS KH QD QC JS JH TD TC 9S 9H", 98),
    "one set of three": ("7S 7H 7D AS 3H 5D 9C JS KH 2C", 1 + 3 + 5 + 9 + 10 + 10 + 2),
    "two of a rank are no set": ("7S 7H AS 3H 5D 9C JS KH 2C QD", 14 + 1 + 3 + 5 + 9 + 10 + 10 + 2 + 10),
    "one run of three": ("4S 5S 6S AH 3D 8C TH QD 2C KC", 1 + 3 + 8 + 10 + 10 + 2 + 10),
    "a run needs one suit": ("4S 5H 6S AH 3D 8C TH QD 2C KC", 15 + 1 + 3 + 8 + 10 + 10 + 2 + 10),
    "the ace starts a run": ("AS 2S 3S KH JD 9C 7H 5D 4C TC", 10 + 10 + 9 + 7 + 5 + 4 + 10),
    "queen, king, ace is no run": ("QS KS AS 3H 5D 7C 9H JD 2C 4D", 10 + 10 + 1 + 3 + 5 + 7 + 9 + 10 + 2 + 4),
    "king, ace, two is no run": ("KS AS 2S 4H 6D 8C TH QD 5C 7D", 10 + 1 + 2 + 4 + 6 + 8 + 10 + 10 + 5 + 7),
    "the last ranks are no neighbours of the next suit": (
        "KS AH 2H QS 5D 7C 9D JC 4C 6D",
        10 + 1 + 2 + 10 + 5 + 7 + 9 + 10 + 4 + 6,
    ),
    "gin of three melds": ("AS 2S 3S 7S 7H 7D 9C TC JC QC", 0),
    "gin of one run of ten": ("3D 4D 5D 6D 7D 8D 9D TD JD QD", 0),
    "two sets of four and a loose pair": ("2S 2H 2D 2C 9S 9H 9D 9C KS KH", 20),
    "run of six": ("3H 4H 5H 6H 7H 8H KS JD 9C AC", 10 + 10 + 9 + 1),
    "run of seven and a set": ("AC 2C 3C 4C 5C 6C 7C KS KH KD", 0),
    "the run is worth more than the set": ("9S TS JS 9H 9D KC 3D 2C 4H 6C", 18 + 10 + 3 + 2 + 4 + 6),
    "a low set is worth more than the run below it": ("AS 2S 3S 3H 3D KC JD 6C 8H TC", 3 + 10 + 10 + 6 + 8 + 10),
    "a set of four lends a card to a run": ("5S 5H 5D 5C 6S 7S KC JD 2H 9D", 10 + 10 + 2 + 9),
    "a set of four is broken up for two runs": ("5S 5H 5D 5C 6S 7S 6H 7H KC JD", 5 + 5 + 10 + 10),
    "three runs over the same three ranks": ("4S 5S 6S 4H 5H 6H 4D 5D 6D KC", 10),
    "three sets or a run and pairs": ("4S 4H 4D 5S 5H 5D 6S 6H 6D 6C", 0),
    "a set splits a run of seven in two": ("2S 3S 4S 5S 6S 7S 8S 5H 5D KC", 10),
    "a set takes the end of a run of four": ("5S 6S 7S 8S 8H 8D KC QD AC 3H", 10 + 10 + 1 + 3),
    "11 cards: all counted": ("AS 2S 3S 7S 7H 7D 9C TC JC QC KC", 0),
    "11 cards: seven in a row and a set of four": ("AC 2C 3C 4C 5C 6C 7C KS KH KD KC", 0),
    "11 cards: two sets of four and a set of three": ("2S 2H 2D 2C 9S 9H 9D 9C KS KH KD", 0),
    "11 cards: all in a row": ("AD 2D 3D 4D 5D 6D 7D 8D 9D TD JD", 0),
    "11 cards, one loose": ("AS 2S 3S 7S 7H 7D 9C TC JC QC 5H", 5),
    "11 cards: a run gives its end to a set": ("4S 5S 6S 3C 4C 5C 6C 3D 3H 4H 6H", 4 + 6),
}


@pytest.mark.parametrize("case", DEADWOOD)
def test_deadwood(case: str) -> None:
    """Cards outside the best melds, summed by hand."""
    hand, expected = DEADWOOD[case]
    assert int(_deadwood(_hand(hand))) == expected


LAID = {
    "nothing": ("AS 3H 5D 7C 9S JH KD 2C 4S 6H", []),
    "set before run, runs by length": (
        "9S TS JS QS 2H 3H 4H 7S 7D 7C",
        ["7S 7D 7C", "2H 3H 4H", "9S TS JS QS"],
    ),
    "six in a row as two threes": ("3H 4H 5H 6H 7H 8H KS JD 9C AC", ["3H 4H 5H", "6H 7H 8H"]),
    "seven in a row, the four at the upper end": ("3H 4H 5H 6H 7H 8H 9H KS JD AC", ["3H 4H 5H", "6H 7H 8H 9H"]),
    "ten in a row": (
        "3D 4D 5D 6D 7D 8D 9D TD JD QD",
        ["3D 4D 5D", "6D 7D 8D", "9D TD JD QD"],
    ),
    "three ranks in three suits: sets": (
        "4S 5S 6S 4H 5H 6H 4D 5D 6D KC",
        ["4S 4H 4D", "5S 5H 5D", "6S 6H 6D"],
    ),
    "a set of four lends a card to a run": (
        "5S 5H 5D 5C 6S 7S KC JD 2H 9D",
        ["5H 5D 5C", "5S 6S 7S"],
    ),
    "most cards in sets: the end of the run goes to the set": (
        "5S 6S 7S 8S 8H 8D 8C KC QD AC",
        ["8S 8H 8D 8C", "5S 6S 7S"],
    ),
}


@pytest.mark.parametrize("case", LAID)
def test_melds_laid(case: str) -> None:
    """The melds in ascending id; ties go to most cards in sets."""
    hand, expected = LAID[case]
    assert _melds(hand) == expected


def test_tie_between_sets_goes_to_the_one_with_the_lower_id() -> None:
    """Four nines may lend the spade or the heart to a run: the set without the spade has the lower id."""
    assert _melds("9S 9H 9D 9C 7S 8S 7H 8H KC QD") == ["9H 9D 9C", "7S 8S 9S"]


def test_each_discard_of_eleven_cards() -> None:
    """Two runs, a set and a loose five: what each of the eleven discards leaves."""
    hand = "AS 2S 3S 7S 7H 7D 9C TC JC QC 5H"
    after = np.asarray(_after(_hand(hand)))
    expected = {"5H": 0, "QC": 5, "9C": 5, "AS": 10, "2S": 9, "3S": 8, "7S": 19, "7H": 19, "7D": 19, "TC": 34, "JC": 34}
    assert {name: int(after[cards.card_id(name)]) for name in hand.split()} == expected
    assert np.sum(after == gin_rummy.NOT_HELD) == 41


def test_least_discard_of_a_conflict_hand() -> None:
    """Dropping the six leaves the four alone: a hand where greedy melding of all eleven cards would leave five."""
    assert int(np.min(_after(_hand("4S 5S 6S 3C 4C 5C 6C 3D 3H 4H 6H")))) == 4


LAYOFFS = {
    "both ends of a run": (
        "4S 5S 6S KH KD KC 9D JH 2C AD",
        "3S 7S 2D 4H 6C 8D TH QC 9S JC",
        2 + 4 + 6 + 8 + 10 + 10 + 9 + 10,
    ),
    "a chain on a run": (
        "4S 5S 6S KH KD KC 9D JH 2C AD",
        "7S 8S 2D 4H 6C 9C TH QD JC 3H",
        2 + 4 + 6 + 9 + 10 + 10 + 10 + 3,
    ),
    "the fourth card of a set, beside an own run": (
        "4S 5S 6S 9H 9D 9C JD QH 2C AD",
        "9S 2D 4H 6C 8D TH QC KC 5H JC",
        2 + 4 + 6 + 8 + 10 + 5,
    ),
    "an own set broken up: two of it are laid off, the third joins a run": (
        "4S 5S 6S 4H 5H 6H KC KD 9C AC",
        "3S 3H 3D 4D 5D JC 9S 7C QD TH",
        10 + 9 + 7 + 10 + 10,
    ),
    "the ten goes on the run, not on the set, and the nine follows": (
        "JS QS KS TH TD TC 2H 4D 6C AH",
        "TS 9S 3H 5D 7C 8H QD KC 2D AC",
        3 + 5 + 7 + 8 + 10 + 10 + 2 + 1,
    ),
    "three ranks in three suits are laid as sets, which take no run cards": (
        "4S 5S 6S 4H 5H 6H 4D 5D 6D KC",
        "7S 8D 3H 4C 9H TH QC JD 2S AC",
        7 + 8 + 3 + 9 + 10 + 10 + 10 + 2 + 1,
    ),
}


@pytest.mark.parametrize("case", LAYOFFS)
def test_layoffs(case: str) -> None:
    """The defender's deadwood after own melds and layoffs, summed by hand."""
    knocker, defender, expected = LAYOFFS[case]
    assert int(_layoff(_hand(knocker), _hand(defender))) == expected
