"""The exact play of what follows a knock, against trying everything."""

from __future__ import annotations

import functools
import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import InputError
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel import meld_ids
from envs.gin_rummy.openspiel.ids import DRAW, LAYOFF, NO_MELD, PASS
from envs.gin_rummy.openspiel.meld_ids import MELD_MASKS, NUM_MELDS

GAME = envs.make("gin_rummy_openspiel")
ASSISTANT = envs.make_assistant("exact_endgame", GAME)
ALL_RANKS = (1 << 13) - 1
HANDS = 300


def _masks(cards: frozenset[int]) -> np.ndarray:
    masks = np.zeros(4, np.uint16)
    for card in cards:
        masks[card // 13] |= 1 << card % 13
    return masks


@functools.cache
def _cards_of(meld: int) -> frozenset[int]:
    return frozenset(13 * suit + rank for suit in range(4) for rank in range(13) if MELD_MASKS[meld][suit] >> rank & 1)


def _position(rng: random.Random) -> tuple[list[int], frozenset[int]]:
    """Returns the knocker's melds and a defender's hand of ten that tends to fit them."""
    laid: list[int] = []
    taken: set[int] = set()
    for meld in rng.sample(range(NUM_MELDS), NUM_MELDS):
        if len(laid) < 2 and not taken & _cards_of(meld):
            laid.append(meld)
            taken |= _cards_of(meld)
    near = {card + step for card in taken for step in (-2, -1, 1, 2, 13, -13) if 0 <= card + step < 52} - taken
    hand = set(rng.sample(sorted(near), min(len(near), rng.randint(4, 8))))
    rest = [card for card in range(52) if card not in taken | hand]
    return laid, frozenset(hand | set(rng.sample(rest, 10 - len(hand))))


@functools.cache
def _deadwood(hand: frozenset[int]) -> int:
    return int(_kernel(_masks(hand).astype(np.int32)))


_kernel = jax.jit(melds.deadwood)
_fits = jax.jit(lambda laid, off: meld_ids.layoffs(laid, off, ALL_RANKS))


class Table:
    """A layoff to be played out."""

    def __init__(self, laid: list[int]) -> None:
        """Takes the knocker's melds."""
        self.laid = np.stack([MELD_MASKS[meld] for meld in laid]).astype(np.int32)
        self.seen: dict[frozenset[int], frozenset[int]] = {}

    def open_to(self, hand: frozenset[int], off: frozenset[int]) -> list[int]:
        """Returns the legal layoffs."""
        if off not in self.seen:
            masks = np.asarray(_fits(self.laid, _masks(off).astype(np.int32)))
            self.seen[off] = frozenset(c for c in range(52) if masks[c // 13] >> c % 13 & 1)
        return sorted(self.seen[off] & hand)

    def least(self, hand: frozenset[int], off: frozenset[int] = frozenset(), known: Any = None) -> int:
        """Returns the least deadwood over all layoffs in all orders."""
        known = {} if known is None else known
        if hand not in known:
            after = [self.least(hand - {card}, off | {card}, known) for card in self.open_to(hand, off)]
            known[hand] = min([_deadwood(hand), *after])
        return known[hand]


@jax.jit
def _choice(view: Any, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
    probs = ASSISTANT(view, legal)
    return jnp.sum(probs), jnp.argmax(probs)


def _view(blank: Any, laid: list[int], hand: frozenset[int], off: frozenset[int]) -> Any:
    rows = np.full((2, 3), NO_MELD, np.uint8)
    rows[0, : len(laid)] = laid
    return blank._replace(hand=_masks(hand), laid_off=_masks(off), laid=rows, phase=np.uint8(LAYOFF), seat=np.uint8(1))


def test_layoffs_leave_the_least_deadwood() -> None:
    """On positions rich in layoffs: what the assistant comes to is the least of everything that could be laid off."""
    rng = random.Random(7)
    blank = jax.device_get(GAME.view(GAME.init(jax.random.key(0)), 1))
    improved = 0
    for _ in range(HANDS):
        laid, hand = _position(rng)
        table, off, start = Table(laid), frozenset(), _deadwood(hand)
        least = table.least(hand)
        while True:
            legal = np.zeros(241, bool)
            legal[[*table.open_to(hand, off), PASS]] = True
            total, action = (int(x) for x in _choice(_view(blank, laid, hand, off), legal))
            assert total == 1
            assert legal[action]
            if action == PASS:
                break
            hand, off = hand - {action}, off | {action}
        assert _deadwood(hand) == least
        improved += least < start
    assert improved > HANDS / 4


def test_the_strategic_decisions_are_left_open() -> None:
    """Before a knock all probabilities are 0."""
    state = GAME.init(jax.random.key(1))
    for phase in range(DRAW + 2):
        view = jax.device_get(GAME.view(state, 0))._replace(phase=np.uint8(phase))
        assert int(_choice(view, np.asarray(GAME.legal_actions(state)))[0]) == 0


def test_other_games_have_none() -> None:
    """One line."""
    with pytest.raises(InputError, match="unknown assistant for leduc_poker"):
        envs.make_assistant("exact_endgame", envs.make("leduc_poker"))
