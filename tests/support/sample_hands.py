"""Random hands for meld tests: uniform ones, and ones full of melds and of cards that several melds want."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import slow_melds

Sampler = Callable[[np.random.Generator, int], np.ndarray]
_MELDS = [slow_melds.cards_of(meld) for meld in slow_melds.FULL.layable]


def uniform(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draws any cards."""
    return rng.permutation(52)[:size]


def few_ranks(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draws from three to six neighbouring ranks: sets and runs that share cards."""
    width = int(rng.integers(max(3, -(-size // 4)), 7))
    low = int(rng.integers(0, 14 - width))
    cards = [13 * suit + low + i for suit in range(4) for i in range(width)]
    return rng.permutation(cards)[:size]


def few_suits(rng: np.random.Generator, size: int) -> np.ndarray:
    """Draws from one or two suits: long runs."""
    suits = rng.permutation(4)[: rng.integers(1, 3)]
    return rng.permutation(np.concatenate([13 * suit + np.arange(13) for suit in suits]))[:size]


def melds_and_noise(rng: np.random.Generator, size: int) -> np.ndarray:
    """Joins two or three melds, which may overlap, and fills up with noise."""
    cards = sorted({card for n in rng.integers(0, len(_MELDS), rng.integers(2, 4)) for card in _MELDS[n]})
    others = np.setdiff1d(np.arange(52), cards)
    return np.concatenate([rng.permutation(cards), rng.permutation(others)])[:size]


RICH: tuple[Sampler, ...] = (few_ranks, few_suits, melds_and_noise)


def hands(rng: np.random.Generator, count: int, samplers: tuple[Sampler, ...], size: int | None = None) -> np.ndarray:
    """Draws hands, bool[count, 52], from the samplers in turn, of `size` cards or of ten and eleven in turn."""
    out = np.zeros((count, 52), bool)
    for n, row in enumerate(out):
        row[samplers[n % len(samplers)](rng, size or 10 + n // len(samplers) % 2)] = True
    return out


def pairs(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws two disjoint hands of ten, bool[count, 52] each, from the same few cards, so that layoffs abound."""
    first, second = np.zeros((2, count, 52), bool)
    for n in range(count):
        cards = (few_ranks, few_suits, uniform)[n % 3](rng, 20)
        others = rng.permutation(np.setdiff1d(np.arange(52), cards))
        both = np.concatenate([cards, others])[:20]
        if n % 2:
            both = rng.permutation(both)
        first[n, both[:10]] = second[n, both[10:]] = True
    return first, second
