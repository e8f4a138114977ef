"""OpenSpiel's gin with everything hidden dealt anew: the same view, hands that fit a knock, and each as often."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import openspiel_lockstep as lockstep
import pytest
from jax import Array, lax

import envs
from envs import cards
from envs.game import Game
from envs.gin_rummy.core import likely
from envs.gin_rummy.melding import melds
from envs.gin_rummy.openspiel import determinize

LANES = 96
SMALL = envs.make("gin_rummy_openspiel", num_ranks=5, num_suits=4, hand_size=5, knock_card=5)
OWN, UPCARD, DRAWN = [1, 8, 13, 17, 9], 12, 6
"""2S 4C 4D 3H 5C, the upcard 3D and the card that player 0 draws, 2C."""
KNOCKED = [54, 54, 53, 6, 53, 55, 4, 59, 54]
"""Both pass; player 0 discards its 2C; player 1 draws, knocks with 5S, lays three aces, is done."""
SCRIPTS = {
    "has taken the upcard": ([54, 52, 4], [4], 4),
    "has knocked": (KNOCKED[:6], [], 6),
    "has laid a meld": (KNOCKED[:8], [4, 0, 5, 10], 2),
    "is done": (KNOCKED, [4, 0, 5, 10], 2),
}
"""What the opponent has done: the actions, the cards it has shown of its own, and how many of its cards are hidden."""


def _same(one: Any, two: Any) -> Array:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return jnp.all(jnp.stack([jnp.all(a == b) & jnp.asarray(a.dtype == b.dtype) for a, b in pairs]))


@functools.partial(jax.jit, static_argnums=0)
def _kept(game: Game, decks: Array, actions: Array, key: Array) -> dict[str, Array]:
    """Returns what holds of states dealt anew at every action, for one player each: bool[T, LANES] each.

    Every other pair of lanes has likely deals.
    """

    def one(state: Any, action: Array, key: Array, seat: Array, is_likely: Array) -> tuple[Any, dict[str, Array]]:
        view = game.view(state, seat)
        pair = game.determinize(view, key), game.likely_world(view, key)[0]
        other = jax.tree.map(lambda one, two: jnp.where(is_likely, two, one), *pair)
        acts = state.current_player == seat
        held = cards.to_cards(other.hands[0]).astype(int) + cards.to_cards(other.hands[1])
        stock = jnp.zeros(cards.NUM_CARDS, int).at[other.deck].add(np.arange(52) >= game.rules.dealt + other.drawn)
        kept = {
            "view": _same(game.view(state, seat), game.view(other, seat)),
            "legal": ~acts | jnp.all(game.legal_actions(state) == game.legal_actions(other)),
            "cards": jnp.all(jnp.sort(other.deck) == np.arange(52)) & jnp.all(held + stock <= 1),
            "moved": jnp.any(state.hands != other.hands),
            "in_play": state.current_player >= 0,
            "goes_on": acts | jnp.any(game.legal_actions(other)),
        }
        return game.step(state, action)[0], kept

    def body(states: Any, step: tuple[Array, Array]) -> tuple[Any, dict[str, Array]]:
        keys = jax.random.split(jax.random.fold_in(key, step[1]), LANES)
        return jax.vmap(one)(states, step[0], keys, np.arange(LANES) % 2, np.arange(LANES) % 4 > 1)

    return lax.scan(body, jax.vmap(game.from_deck)(decks), (actions, np.arange(actions.shape[0])))[1]


def test_the_view_stays_and_the_hidden_cards_move() -> None:
    """Through whole hands, knocks and layoffs included: view and legal actions to the bit, each card in one place."""
    game, rng = envs.make("gin_rummy_openspiel"), random.Random(12)
    choosers = [lockstep.greedy, lockstep.eager, lockstep.uniform]
    decks = [lockstep.rich_deck(rng) if n % 2 else rng.sample(range(52), 52) for n in range(LANES)]
    records = [lockstep.play(deck, choosers[n % 3], rng) for n, deck in enumerate(decks)]
    length = max(len(record.actions) for record in records)
    actions = np.full((length, LANES), 54, np.int32)
    for n, record in enumerate(records):
        actions[: len(record.actions), n] = record.actions
    kept = jax.device_get(_kept(game, np.array(decks), actions, jax.random.key(3)))
    in_play = kept.pop("in_play")
    assert in_play.sum() > 1000
    for what in ("view", "legal", "cards", "goes_on"):
        assert kept[what][in_play].all(), what
    assert kept["moved"][in_play].mean() > 0.8


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, None))
def _after(deck: Array, actions: Array) -> tuple[Any, Array]:
    """Returns the state after a script on a deal, and whether all was legal; -1 stands for no action."""

    def body(carry: tuple[Any, Array], action: Array) -> tuple[tuple[Any, Array], None]:
        state, fine = carry
        after = jax.tree.map(lambda old, new: jnp.where(action < 0, old, new), state, SMALL.step(state, action)[0])
        return (after, fine & (SMALL.legal_actions(state)[action] | (action < 0))), None

    return lax.scan(body, (SMALL.from_deck(deck), jnp.bool_(True)), actions)[0]


def _played(done: str) -> tuple[Any, np.ndarray]:
    """Plays a script with all hands that the opponent might hold: the states and whether all was legal."""
    actions, shown, count = SCRIPTS[done]
    middle = [UPCARD, DRAWN] if DRAWN in actions else [UPCARD]
    unseen = sorted(set(range(20)) - {*OWN, *shown, *middle})
    decks = []
    for hidden in itertools.combinations(unseen, count):
        theirs = [*hidden, *shown]
        first = [*OWN, *theirs[:5], *middle, *theirs[5:]]
        decks.append(first + sorted(set(range(20)) - set(first)))
    padded = np.array(actions + [-1] * (len(KNOCKED) - len(actions)))
    return _in_chunks(lambda decks: _after(decks, padded), np.array(decks), 512)


def _in_chunks(function: Callable[[Any], Any], rows: Any, size: int) -> Any:
    """Calls a vectorised function with so many rows at a time, so that it is compiled once whatever their number."""
    starts = range(0, len(rows), size)
    chunks = (rows[np.arange(start, start + size) % len(rows)] for start in starts)  # the last begins again
    parts = [jax.device_get(function(chunk)) for chunk in chunks]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(rows)], *parts)


_hands = jax.jit(jax.vmap(lambda view, key: SMALL.determinize(view, key).hands[1], (None, 0)))


@pytest.mark.parametrize("done", SCRIPTS)
def test_all_consistent_hands_are_equally_likely(done: str) -> None:
    """Sampled hands against the list of all that let the opponent do what it has done, on twenty cards."""
    played, fine = _played(done)
    view = SMALL.view(jax.tree.map(lambda leaf: leaf[np.flatnonzero(fine)[0]], played), 0)
    listed = {tuple(hand) for hand in played.hands[:, 1][fine].tolist()}
    assert len(listed) == fine.sum()
    assert len(listed) < len(fine) or done == "has taken the upcard"
    keys = jax.random.split(jax.random.key(5), 60 * len(listed))
    sampled = _in_chunks(lambda keys: _hands(view, keys), keys, 2048)
    found, counts = np.unique(sampled, axis=0, return_counts=True)
    assert {tuple(hand) for hand in found.tolist()} == listed
    assert abs(np.sum((counts - 60) ** 2 / 60) - len(listed)) < 5 * np.sqrt(2 * len(listed))


def test_likely_hands_have_the_density_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each hand as often as exp(-b deadwood) among all that fit; once the opponent has knocked all are alike again."""
    monkeypatch.setattr(likely, "sharpness", lambda turns: jnp.float32(0.2))
    draw = jax.jit(jax.vmap(functools.partial(determinize.sample_likely, SMALL.rules), (None, 0)))
    for done, in_play in (("has taken the upcard", True), ("has knocked", False)):
        played, fine = _played(done)
        view = SMALL.view(jax.tree.map(lambda leaf, f=fine: leaf[np.flatnonzero(f)[0]], played), 0)
        states, logs = draw(view, jax.random.split(jax.random.key(6), 20_000))
        held = np.asarray(states.hands[:, 1])
        deadwood = np.asarray(jax.vmap(melds.deadwood)(states.hands[:, 1].astype(jnp.int32)))
        np.testing.assert_allclose(logs, 0.2 * deadwood * in_play, rtol=1e-5)
        if in_play:
            kinds, first, kind = np.unique(held, axis=0, return_index=True, return_inverse=True)
            wanted = np.exp(-0.2 * deadwood[first])
            expected = wanted / wanted.sum() * len(held)
            assert len(kinds) == np.sum(fine)
            assert expected.max() > 2 * expected.min()
            chi_square = np.sum((np.bincount(kind.reshape(-1)) - expected) ** 2 / expected)
            assert abs(chi_square - len(kinds)) < 5 * np.sqrt(2 * len(kinds))
