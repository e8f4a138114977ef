"""The hand evaluator: fresh hands per second in the batched form and one by one, single-card updates, the worst hand.

`add` and `remove` are a new hand, its best combo, one card more or less and the best combo again; `cheaper_by` is how
much less the update alone takes than starting over with the cards it leads to.
"""

from __future__ import annotations

import argparse
import functools
import time
from typing import Any

import numpy as np
from common import Parser, Work, at_least_one, interleaved, run, spread

from envs.hand_evaluator import HandEvaluator, best_dump_points
from envs.hand_evaluator.combo import name

_SECONDS = 0.3
_RANKS = 5
"""Meld-rich hands come from this many neighbouring ranks of both decks."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--batch", type=at_least_one, default=4096, help="hands at once (default %(default)s)")
    parser.add_argument("--singles", type=at_least_one, default=400, help="hands one by one (default %(default)s)")
    parser.add_argument("--cards", type=at_least_one, default=15, help="cards in a hand (default %(default)s)")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times uniform and meld-rich hands; an update is one card more or less and the best combo anew."""
    figures: dict[str, Any] = {"cards": arguments.cards, "batch": arguments.batch}
    for kind, decks in (("uniform", _uniform_decks), ("rich", _rich_decks)):
        deck = decks(np.random.default_rng(0), arguments.batch)
        size = min(arguments.cards, deck.shape[1] - 1)
        singles = deck[: arguments.singles].tolist()
        hands = [cards[:size] for cards in singles]
        works = {
            "batched": _work(functools.partial(best_dump_points, _counts(deck[:, :size])), len(deck)),
            "from_scratch": _work(functools.partial(_fresh, hands), len(hands)),
            "one_more": _work(functools.partial(_fresh, [cards[: size + 1] for cards in singles]), len(hands)),
            "one_less": _work(functools.partial(_fresh, [cards[1:size] for cards in singles]), len(hands)),
            "add": _work(functools.partial(_added, hands, [cards[size] for cards in singles]), len(hands)),
            "remove": _work(functools.partial(_removed, hands, [cards[0] for cards in singles]), len(hands)),
        }
        timings = interleaved(works, arguments.repeats, _SECONDS)
        rates = {work: spread("hands_per_s", timing.rates("hands")) for work, timing in timings.items()}
        # A hand remembers what its updates have found, so each starts from a new one, whose time is taken off again.
        seconds = {work: 1 / rate["hands_per_s"] for work, rate in rates.items()}
        cheaper = {
            f"{work}_cheaper_by": seconds[over] / (seconds[work] - seconds["from_scratch"])
            for work, over in (("add", "one_more"), ("remove", "one_less"))
        }
        figures[kind] = {**rates, **cheaper, "worst_hand": _worst(singles, size)}
    return figures


def _work(function: Any, hands: int) -> Work:
    return Work(lambda n: function(), lambda out: {"hands": hands})


def _fresh(hands: list[list[int]]) -> None:
    for cards in hands:
        HandEvaluator(cards).best()


def _added(hands: list[list[int]], cards: list[int]) -> None:
    for held, card in zip(hands, cards, strict=True):
        hand = HandEvaluator(held)
        hand.best()
        hand.add(card).best()


def _removed(hands: list[list[int]], cards: list[int]) -> None:
    for held, card in zip(hands, cards, strict=True):
        hand = HandEvaluator(held)
        hand.best()
        hand.remove(card).best()


def _worst(singles: list[list[int]], size: int) -> dict[str, Any]:
    """Finds the hand that takes longest from scratch, the best of three tries each."""
    seconds = []
    for cards in singles:
        tries = []
        for _ in range(3):
            began = time.perf_counter()
            HandEvaluator(cards[:size]).best()
            tries.append(time.perf_counter() - began)
        seconds.append(min(tries))
    worst = int(np.argmax(seconds))
    hand = HandEvaluator(singles[worst][:size])
    return {
        "microseconds": 1e6 * seconds[worst],
        "combos": sum(1 for _ in hand.combos()),
        "cards": " ".join(map(name, hand.cards)),
    }


def _uniform_decks(rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns two shuffled decks as one: int[count, 104]."""
    return rng.permuted(np.tile(np.arange(52), (count, 2)), axis=1)


def _rich_decks(rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns both decks' cards of five neighbouring ranks, shuffled: int[count, 40]."""
    low = rng.integers(0, 14 - _RANKS, (count, 1))
    cards = (13 * np.arange(4)[:, None] + np.arange(_RANKS)).reshape(1, -1)
    return rng.permuted(np.tile(low + cards, 2), axis=1)


def _counts(cards: np.ndarray) -> np.ndarray:
    """Returns copies of each card: int8[count, 52]."""
    counts = np.zeros((len(cards), 52), np.int8)
    np.add.at(counts, (np.arange(len(cards))[:, None], cards), 1)
    return counts


if __name__ == "__main__":
    main()
