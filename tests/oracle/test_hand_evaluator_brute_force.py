"""The hand evaluator against brute force, with jokers and the ace after the king."""

from __future__ import annotations

import random

import pytest
import slow_hand_evaluator as slow

from envs.hand_evaluator import HandEvaluator
from envs.hand_evaluator.combo import Combo


def _hand(rng: random.Random, size: int, jokers: int) -> list[int]:
    """Returns a hand full of melds: a few neighbouring ranks, round the ace."""
    first, width, suits = rng.randrange(13), rng.choice((3, 4, 6)), rng.choice((2, 3, 4))
    deck = [13 * suit + (first + i) % 13 for suit in range(suits) for i in range(width)] * 2
    return rng.sample(deck, size - jokers) + [slow.JOKER] * jokers


def _told(combo: Combo) -> slow.Division:
    melds = [("run", run) for run in combo.runs] + [("set", tuple(sorted(s))) for s in combo.sets]
    return tuple(sorted(melds)), tuple(sorted(combo.dump))


@pytest.mark.parametrize("ace_high", [False, True])
@pytest.mark.parametrize("jokers", [0, 1, 2])
def test_combos_of_every_level(ace_high: bool, jokers: int) -> None:
    """The same divisions, each once; the best is their minimum."""
    rng = random.Random(10 * jokers + ace_high)
    for _ in range(60):
        cards = _hand(rng, rng.choice((3, 5, 7, 8)) if jokers < 2 else rng.choice((4, 6)), jokers)
        hand = HandEvaluator(cards, jokers=True, ace_high=ace_high)
        wanted = slow.divisions(cards, ace_high)
        levels = {division: slow.level_of(division, ace_high) for division in wanted}
        for number, level in enumerate(slow.LEVELS):
            found = [_told(combo) for combo in hand.combos(level)]
            assert len(found) == len(set(found))
            assert set(found) == {division for division, most in levels.items() if most >= number}
        best = hand.best()
        least = min((c.dump_points, c.dump_count) for c in hand.combos("any"))
        assert (best.dump_points, best.dump_count) == least


def test_four_jokers_fill_any_gap() -> None:
    """Two cards far apart in a suit with four jokers between them."""
    hand = HandEvaluator(["2H", "7H", *"****"], jokers=True)
    assert (14, 52, 52, 52, 52, 19) in {run for combo in hand.combos() for run in combo.runs}
    assert hand.best().dump == ()
    assert HandEvaluator(["2H", "3S", *"****"], jokers=True).best().dump == ()
    assert HandEvaluator("***", jokers=True).best().dump_count == 3
