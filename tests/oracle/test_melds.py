"""The meld kernel against trying everything, on uniform hands and on hands full of melds in conflict."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import sample_hands
import slow_melds

from envs import gin_rummy

NUM_UNIFORM = NUM_RICH = 52_000
FULL = slow_melds.FULL


@pytest.fixture(scope="module")
def hands() -> np.ndarray:
    """Hands of ten and eleven cards, bool[104000, 52]: the first half uniform, the second rich in melds."""
    rng = np.random.default_rng(20)
    uniform = sample_hands.hands(rng, NUM_UNIFORM, (sample_hands.uniform,))
    return np.concatenate([uniform, sample_hands.hands(rng, NUM_RICH, sample_hands.RICH)])


def _each(function: Callable[..., Any], *hands: np.ndarray) -> np.ndarray:
    """Applies a function of `envs.gin_rummy` to many hands at once."""
    return np.asarray(jax.jit(jax.vmap(function))(*hands))


def _bits(hand: np.ndarray) -> int:
    return slow_melds.mask_of(np.flatnonzero(hand))


def test_samples_are_what_they_claim(hands: np.ndarray) -> None:
    """Both sizes are there, and in a third of the rich hands some card is wanted by a set and a run."""
    assert np.unique(hands.sum(axis=1)).tolist() == [10, 11]
    by_suit = hands[NUM_UNIFORM:].reshape(-1, 4, 13)
    in_set = by_suit.sum(axis=1) >= 3
    middle = by_suit[:, :, :-2] & by_suit[:, :, 1:-1] & by_suit[:, :, 2:]
    in_run = np.zeros_like(by_suit)
    for shift in range(3):
        in_run[:, :, shift : shift + 11] |= middle
    conflict = (in_run & in_set[:, None]).any(axis=(1, 2))
    assert conflict.mean() > 1 / 3


def test_deadwood_equals_brute_force(hands: np.ndarray) -> None:
    """The least over all collections of disjoint melds, on 104,000 hands."""
    np.testing.assert_array_equal(_each(gin_rummy.deadwood, hands), slow_melds.many_deadwoods(hands))


def test_deadwood_after_each_discard_equals_brute_force(hands: np.ndarray) -> None:
    """All discards of 30,000 hands, two thirds of them rich."""
    some = np.concatenate([hands[:10_000], hands[NUM_UNIFORM : NUM_UNIFORM + 20_000]])
    expected = slow_melds.many_after_discards(some, gin_rummy.NOT_HELD)
    np.testing.assert_array_equal(_each(gin_rummy.deadwood_after_discard, some), expected)


def test_melds_laid_follow_the_tie_break(hands: np.ndarray) -> None:
    """Least deadwood, most cards in sets, lowest ids: the first of all arrangements, on 4,000 rich hands."""
    some = hands[NUM_UNIFORM : NUM_UNIFORM + 4_000]
    rows = _each(gin_rummy.best_melds, some)
    tied = 0
    for hand, melds in zip(some, rows, strict=True):
        bits = _bits(hand)
        expected = FULL.laid(bits)
        assert [_bits(row) for row in melds] == [*expected, 0, 0, 0, 0][:4]
        covered = [sum(map(FULL.points, melds)) for melds in FULL.arrangements(bits)]
        tied += covered.count(max(covered)) > 1
    assert tied > 300


def test_melds_laid_in_every_hand_of_four_neighbouring_ranks() -> None:
    """All hands of ten and eleven cards from A-4 and from T-K, where values make most ties: 24,752 hands."""
    picks = [pick for size in (10, 11) for pick in itertools.combinations(range(16), size)]
    for low in (0, 9):
        window = np.array([13 * suit + low + i for suit in range(4) for i in range(4)])
        some = np.zeros((len(picks), 52), bool)
        for row, pick in zip(some, picks, strict=True):
            row[window[list(pick)]] = True
        laid = [FULL.laid(_bits(hand)) for hand in some]
        assert [[_bits(row) for row in melds if row.any()] for melds in _each(gin_rummy.best_melds, some)] == [
            list(melds) for melds in laid
        ]


def test_layoffs_equal_the_joint_optimum_of_brute_force() -> None:
    """Own melds and every order of layoffs tried together, on 6,000 pairs of hands from the same few cards."""
    knockers, defenders = sample_hands.pairs(np.random.default_rng(21), 6_000)
    expected = [FULL.defence(_bits(a), _bits(b)) for a, b in zip(knockers, defenders, strict=True)]
    np.testing.assert_array_equal(_each(gin_rummy.layoff_deadwood, knockers, defenders), expected)
    own = slow_melds.many_deadwoods(defenders)
    assert np.sum(own > expected) > 1_000
    melds_first = [
        FULL.least_after_layoffs(FULL.laid(_bits(a)), _loose(_bits(b)))
        for a, b in zip(knockers, defenders, strict=True)
    ]
    assert np.sum(np.array(melds_first) > expected) > 20


def _loose(hand: int) -> int:
    """Returns the cards a hand leaves out of the melds it lays."""
    return hand & ~sum(FULL.laid(hand))


def test_deadwood_of_ten_cards_equals_openspiel(hands: np.ndarray) -> None:
    """OpenSpiel's search is exact for ten cards; 8,000 hands, half of them rich."""
    utils = pytest.importorskip("pyspiel").gin_rummy.GinRummyUtils(13, 4, 10)
    tens = np.concatenate([part[part.sum(axis=1) == 10][:4_000] for part in np.split(hands, 2)])
    # OpenSpiel's suits are S, C, D, H; deadwood does not mind their order, so ids are passed as they are.
    expected = [utils.min_deadwood(np.flatnonzero(hand).tolist()) for hand in tens]
    np.testing.assert_array_equal(_each(gin_rummy.deadwood, tens), expected)


def test_meld_ids_equal_openspiel() -> None:
    """The brute force's table of melds, which fixes the tie-break, is OpenSpiel's: 185 melds in the same order."""
    utils = pytest.importorskip("pyspiel").gin_rummy.GinRummyUtils(13, 4, 10)
    theirs = utils.int_to_meld
    assert [slow_melds.mask_of(theirs[n]) for n in range(185)] == FULL.layable


@pytest.mark.parametrize(
    "function", [gin_rummy.deadwood, gin_rummy.deadwood_after_discard, gin_rummy.best_melds, gin_rummy.layoff_deadwood]
)
def test_one_hand_alone_gives_what_it_gives_in_a_batch(function: Callable[..., Any], hands: np.ndarray) -> None:
    """The branches of an unbatched call and the lanes of a batched one agree, on 80 hands."""
    some = np.concatenate([hands[:40], hands[-40:]])
    arguments = sample_hands.pairs(np.random.default_rng(22), 80) if function is gin_rummy.layoff_deadwood else (some,)
    alone = jax.jit(function)
    one_by_one = np.stack([alone(*(hands[n] for hands in arguments)) for n in range(80)])
    np.testing.assert_array_equal(_each(function, *arguments), one_by_one)
