"""What holds of the hand evaluator on every hand."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.hand_evaluator import HandEvaluator, best_dump_points
from envs.hand_evaluator.search import LEVELS

DENSE = [13 * suit + rank for suit in range(4) for rank in (0, 1, 2, 3, 11, 12)] * 2


@st.composite
def hands(draw: st.DrawFn, most: int = 14) -> list[int]:
    """Draws hands of two decks, some of few ranks."""
    deck = draw(st.sampled_from([DENSE, list(range(52)) * 2]))
    return draw(st.permutations(deck))[: draw(st.integers(0, most))]


def _told(hand: HandEvaluator) -> tuple:
    """Returns what a hand says of itself; of control points with the ace low alone, as the article knows no other."""
    points = () if hand.ace_high else hand.control_points
    return hand.cards, [island.cards for island in hand.islands], hand.best(), points, list(hand.combos())


@settings(max_examples=60)
@given(hands(), st.integers(0, 51), st.booleans())
def test_add_then_remove_is_the_identity(cards: list[int], card: int, ace_high: bool) -> None:
    """Also for the hand that was changed, which stays as it was; untouched islands are kept, not computed anew."""
    hand = HandEvaluator(cards, ace_high=ace_high)
    if cards.count(card) == 2:
        return
    before = _told(hand)
    more = hand.add(card)
    assert more.cards == HandEvaluator([*cards, card], ace_high=ace_high).cards
    assert _told(more.remove(card)) == before == _told(hand)
    old = {id(island) for island in hand.islands}
    assert sum(1 for island in more.islands if id(island) not in old) == 1


@settings(max_examples=60)
@given(hands(), st.randoms(use_true_random=False), st.booleans())
def test_any_order_of_additions_equals_from_scratch(cards: list[int], rng: object, ace_high: bool) -> None:
    """Card by card, in a shuffled order, combos in the same order too."""
    order = list(cards)
    rng.shuffle(order)
    hand = HandEvaluator(ace_high=ace_high)
    for card in order:
        hand = hand.add(card)
    assert _told(hand) == _told(HandEvaluator(cards, ace_high=ace_high))


@settings(max_examples=60)
@given(hands(), st.sampled_from(LEVELS), st.booleans())
def test_products_of_islands_are_the_whole(cards: list[int], level: str, ace_high: bool) -> None:
    """As many combos as the product over islands, all different, each with the hand's cards and their points."""
    hand = HandEvaluator(cards, ace_high=ace_high)
    product = 1
    for island in hand.islands:
        product *= sum(1 for _ in island.combos(level, "exact"))
    combos = list(itertools.islice(hand.combos(level), 3_000))
    assert len(combos) == min(product, 3_000)
    assert len(set(combos)) == len(combos)
    for combo in combos:
        assert Counter(itertools.chain(*combo.runs, *combo.sets, combo.dump)) == Counter(cards)
        assert combo.dump_points == sum(min(card % 13 + 1, 10) for card in combo.dump)


@settings(max_examples=60)
@given(hands(), st.booleans(), st.lists(st.integers(0, 20), min_size=13, max_size=13))
def test_best_is_the_least_of_all_combos(cards: list[int], ace_high: bool, values: list[int]) -> None:
    """In points, then in cards, with the common values and with others; the batched form agrees."""
    for table in (None, values):
        hand = HandEvaluator(cards, ace_high=ace_high, values=table)
        best = hand.best()
        combos = list(itertools.islice(hand.combos("merged"), 5_000))
        assert best in combos or len(combos) == 5_000
        assert (best.dump_points, best.dump_count) <= min((c.dump_points, c.dump_count) for c in combos)
        assert HandEvaluator(cards, ace_high=ace_high).best(table) == best


def test_batched_form_equals_one_by_one() -> None:
    """On hands of all sizes, up to both decks; with the ace after the king, and with other values."""
    rng = np.random.default_rng(1)
    sizes = [*range(0, 45), 60, 104]
    counts = np.zeros((len(sizes), 52), np.int8)
    for row, size in zip(counts, sizes, strict=True):
        np.add.at(row, rng.permutation(np.tile(np.arange(52), 2))[:size], 1)
    for options in ({}, {"ace_high": True}, {"values": [15, *range(2, 11), 10, 10, 20], "ace_high": True}):
        wanted = [HandEvaluator(np.repeat(np.arange(52), row).tolist(), **options).best() for row in counts]
        assert best_dump_points(counts, **options).tolist() == [best.dump_points for best in wanted]
