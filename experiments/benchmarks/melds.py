"""Hands per second of the meld functions, on random hands and on hands full of melds in conflict."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from common import Parser, Work, at_least_one, interleaved, run, spread

from envs import gin_rummy

_SECONDS = 0.3
_RANKS = 5
"""Meld-rich hands come from this many neighbouring ranks."""


def main() -> None:
    """Reads the arguments and measures."""
    parser = Parser(__doc__)
    parser.add_argument("--batch", type=at_least_one, default=4096, help="hands at once (default %(default)s)")
    run(parser, measure)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Times each function on a batch: deadwood of 10 cards, all discards and best melds of 11, layoffs of 10 on 10."""
    works = {}
    for kind, decks in (("random", _random_decks), ("rich", _rich_decks)):
        deck = decks(np.random.default_rng(0), arguments.batch)
        ten, other, eleven = _hands(deck[:, :10]), _hands(deck[:, 10:20]), _hands(deck[:, :11])
        works |= {
            f"{kind} deadwood": _batched(gin_rummy.deadwood, ten),
            f"{kind} deadwood_after_discard": _batched(gin_rummy.deadwood_after_discard, eleven),
            f"{kind} best_melds": _batched(gin_rummy.best_melds, eleven),
            f"{kind} layoff_deadwood": _batched(gin_rummy.layoff_deadwood, ten, other),
        }
    figures: dict[str, Any] = {"batch": arguments.batch}
    for name, timing in interleaved(works, arguments.repeats, _SECONDS).items():
        kind, function = name.split()
        rates = spread("hands_per_s", timing.rates("hands"))
        figures.setdefault(kind, {})[function] = {**rates, "compile_seconds": timing.compile_seconds}
    return figures


def _batched(function: Callable[..., Any], *hands: np.ndarray) -> Work:
    mapped, held = jax.jit(jax.vmap(function)), jax.device_put(hands)
    return Work(lambda n: mapped(*held), lambda out: {"hands": len(hands[0])})


def _random_decks(rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns shuffled decks: int[count, 52]."""
    return rng.permuted(np.tile(np.arange(52), (count, 1)), axis=1)


def _rich_decks(rng: np.random.Generator, count: int) -> np.ndarray:
    """Returns decks whose first 20 cards are all those of five neighbouring ranks, shuffled: int[count, 20]."""
    low = rng.integers(0, 14 - _RANKS, (count, 1))
    cards = (13 * np.arange(4)[:, None] + np.arange(_RANKS)).reshape(1, -1)
    return rng.permuted(low + cards, axis=1)


def _hands(cards: np.ndarray) -> np.ndarray:
    """Returns hands as bool[count, 52] from card ids int[count, size]."""
    hands = np.zeros((len(cards), 52), bool)
    np.put_along_axis(hands, cards, True, axis=1)
    return hands


if __name__ == "__main__":
    main()
