"""Players of the slow gin rummy that between them reach every way a hand can end."""

from __future__ import annotations

import random
from collections.abc import Callable

import slow_gin
import slow_melds

Player = Callable[[slow_gin.Hand, random.Random], int]
"""Chooses a legal action of the player to act."""


def at_random(hand: slow_gin.Hand, rng: random.Random) -> int:
    """Chooses uniformly."""
    return rng.choice(hand.legal().nonzero()[0].tolist())


def greedy(hand: slow_gin.Hand, rng: random.Random) -> int:
    """Takes the pile's top when that lowers its deadwood, discards for least deadwood, knocks as soon as it may."""
    return _greedy(hand, hand.rules.knock_limit)


def patient(hand: slow_gin.Hand, rng: random.Random) -> int:
    """Plays like `greedy` but knocks only with gin."""
    return _greedy(hand, 0)


def hasty(hand: slow_gin.Hand, rng: random.Random) -> int:
    """Knocks with the most deadwood it may, else plays like `greedy`: it is often undercut."""
    if hand.phase == slow_gin.DISCARD:
        knocks = {c: left for c, left in hand.discards().items() if left <= hand.rules.knock_limit}
        if knocks:
            return slow_gin.FIRST_CARD + hand.rules.num_cards + max(knocks, key=lambda c: (knocks[c], c))
    return _greedy(hand, hand.rules.knock_limit)


def taker(hand: slow_gin.Hand, rng: random.Random) -> int:
    """Always takes the pile's top and never knocks: two of them play until the action limit."""
    if hand.phase == slow_gin.DISCARD:
        return slow_gin.FIRST_CARD + rng.choice(sorted(hand.discards()))
    return slow_gin.TOP if hand.phase != slow_gin.FORCED_STOCK else slow_gin.STOCK


def drawer(hand: slow_gin.Hand, rng: random.Random) -> int:
    """Never takes the pile's top and never knocks: two of them play until the stock is out."""
    if hand.phase == slow_gin.DISCARD:
        return slow_gin.FIRST_CARD + rng.choice(sorted(hand.discards()))
    return slow_gin.PASS if hand.phase < slow_gin.FORCED_STOCK else slow_gin.STOCK


def _greedy(hand: slow_gin.Hand, limit: int) -> int:
    if hand.phase == slow_gin.DISCARD:
        after = hand.discards()
        card = min(after, key=lambda c: (after[c], -hand.deck.values[c], c))
        knocks = after[card] <= min(limit, hand.rules.knock_limit)
        return slow_gin.FIRST_CARD + card + (hand.rules.num_cards if knocks else 0)
    if hand.phase == slow_gin.FORCED_STOCK:
        return slow_gin.STOCK
    mine = slow_melds.mask_of(hand.hands[hand.to_act])
    lowered = min(hand.deck.after_discard(mine | 1 << hand.pile[-1]).values()) < hand.deck.deadwood(mine)
    if lowered:
        return slow_gin.TOP
    return slow_gin.STOCK if hand.phase == slow_gin.DRAW else slow_gin.PASS


PAIRINGS: tuple[tuple[Player, Player], ...] = (
    (at_random, at_random),
    (greedy, greedy),
    (hasty, patient),
    (patient, patient),
    (at_random, greedy),
    (taker, taker),
    (drawer, drawer),
    (taker, drawer),
    (patient, hasty),
)


def play(deck: list[int], players: tuple[Player, Player], rng: random.Random, rules: slow_gin.Rules) -> list[int]:
    """Returns the actions of one whole hand."""
    hand, actions = slow_gin.Hand(deck, rules), []
    while hand.phase != slow_gin.OVER:
        actions.append(players[hand.to_act](hand, rng))
        hand.play(actions[-1])
    return actions
