"""The vectorised rummy 500 against the plain one, decision by decision."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax
from slow_rummy500 import SlowRummy500

import envs
from envs.game import Game
from envs.random_play import uniform_action
from envs.rummy500 import actions
from envs.rummy500.state import HAND, IN_RUN, RummyState

ROUNDS, STEPS = 48, 300
RULES: list[dict[str, Any]] = [
    {"num_players": 2},
    {"num_players": 3, "take_needs_hand_card": True},
    {"num_players": 4, "ace_in_runs": "high", "hand_size": 10},
    {"num_players": 6, "ace_in_runs": "low", "max_turns": 25},
]


@functools.partial(jax.jit, static_argnums=0)
def _play(game: Game, decks: Array, key: Array) -> tuple:
    """Plays at random, but takes from the pile and lays cards often; what each step gave: [STEPS, ROUNDS]."""
    states = jax.vmap(game.from_deck)(decks)

    def one(state: Any, bits: Array) -> tuple:
        legal = game.legal_actions(state)
        eager = legal & (np.arange(game.num_actions) >= actions.TAKE) & (np.arange(game.num_actions) < actions.DISCARD)
        choice = jnp.where(jnp.any(eager) & (bits % 4 > 0), eager, legal)
        action = jnp.where(jnp.any(legal), uniform_action(bits, choice), 0)
        after, rewards, done = game.step(state, action)
        return after, (legal, action, rewards, done, game.scores(after), after.went_out)

    def body(states: Any, t: Array) -> tuple:
        return jax.vmap(one)(states, jax.random.bits(jax.random.fold_in(key, t), (ROUNDS,)))

    return lax.scan(body, states, jnp.arange(STEPS))[1]


@pytest.mark.parametrize("rules", RULES)
def test_legal_actions_scores_and_ends(rules: dict[str, Any]) -> None:
    """The same legal actions at every decision, the same scores after each, the same end."""
    game = envs.make("rummy500", rewards="points", **rules)
    decks = np.random.default_rng(3).permuted(np.tile(np.arange(52), (ROUNDS, 1)), axis=1)
    legal, played, rewards, done, scores, went_out = jax.device_get(_play(game, decks, jax.random.key(4)))
    takes = chains = 0
    for lane, deck in enumerate(decks.tolist()):
        slow = SlowRummy500(deck, **rules)
        for t in range(STEPS):
            assert set(np.flatnonzero(legal[t, lane]).tolist()) == slow.legal(), (lane, t)
            if slow.over:
                break
            action = int(played[t, lane])
            takes += 1 <= action < 53
            chains += slow.duty is not None and action >= actions.LOW_END
            slow.step(action)
            assert scores[t, lane].tolist() == slow.scores(), (lane, t)
            assert bool(done[t, lane]) == slow.over
        assert slow.over
        assert int(went_out[t - 1, lane]) == slow.went_out
        np.testing.assert_allclose(rewards[:, lane].sum(axis=0), np.array(slow.scores()) / 100, atol=1e-6)
    assert takes > ROUNDS
    assert chains > 0


KEPT = (13 + 12, 26 + 10)
"""Cards of other suits in hand, which make no meld."""


def _amid_a_take(
    game: Game, on_table: set[int], hand: set[int], fresh: set[int], must: int
) -> tuple[SlowRummy500, Any]:
    """Both games where player 0 has taken clubs from the pile and must play one; `KEPT` are in hand too."""
    deck = [*KEPT, *(card for card in range(52) if card not in KEPT)]
    slow, fast = SlowRummy500(deck, 2), game.from_deck(np.array(deck))
    slow.hands, slow.pile = [hand | fresh | set(KEPT), {50, 51}], []
    slow.fresh, slow.duty, slow.drew, slow.runs = set(fresh), must, True, []
    for card in sorted(on_table):
        slow._join({card: card})
    zone = np.zeros(52, np.int8)
    zone[[50, 51]], zone[list(slow.hands[0])], zone[list(on_table)] = HAND + 1, HAND, IN_RUN
    fast = dataclasses.replace(
        fast,
        zone=jnp.array(zone),
        owner=jnp.array(np.where(zone == IN_RUN, 1, -1).astype(np.int8)),
        position=jnp.full(52, -1, jnp.int8),
        fresh=jnp.array(np.isin(np.arange(52), list(fresh))),
        duty=jnp.int32(must),
        drew=jnp.bool_(True),
    )
    return slow, fast


class _Compiled:
    """A game whose functions are compiled."""

    def __init__(self, game: Game) -> None:
        self.legal_actions, self.step = jax.jit(game.legal_actions), jax.jit(game.step)


def _ends(game: _Compiled, slow: SlowRummy500, fast: RummyState) -> Iterator[tuple[int, SlowRummy500]]:
    """Walks all ways to play the card taken, with equal legal actions; yields each last play and the game after it."""
    legal = slow.legal()
    assert legal, "a turn must not get stuck"
    assert set(np.flatnonzero(game.legal_actions(fast)).tolist()) == legal
    for action in legal:
        after = copy.deepcopy(slow)
        after.step(action)
        if after.duty is None:
            yield action, after
        else:
            yield from _ends(game, after, game.step(fast, np.int32(action))[0])


def test_a_card_taken_is_not_laid_alone_beside_another_chain() -> None:
    """A23 and 89T are laid, 4 is in hand, 567 are taken: with the 4 laid, the 7 may not go alone below the 8."""
    game = envs.make("rummy500", num_players=2)
    slow, fast = _amid_a_take(game, {0, 1, 2, 7, 8, 9}, {3}, {4, 5, 6}, 6)
    assert {actions.HIGH_END + 3, actions.LOW_END + 6} <= slow.legal()
    slow.step(actions.HIGH_END + 3)
    fast = game.step(fast, np.int32(actions.HIGH_END + 3))[0]
    legal = set(np.flatnonzero(game.legal_actions(fast)).tolist())
    assert slow.legal() == legal
    assert actions.LOW_END + 6 not in legal
    assert actions.HIGH_END + 4 in legal


def test_every_way_to_play_a_card_taken_lays_it_with_one_that_was_in_hand() -> None:
    """In random positions of one suit, in every order: in a new meld, or in a run with a card of the hand before it."""
    game, rng = envs.make("rummy500", num_players=2), np.random.default_rng(0)
    compiled, both = _Compiled(game), 0
    for _ in range(60):
        start, length, other = rng.integers(0, 3), rng.integers(3, 5), rng.integers(7, 10)
        on_table = {*range(start, start + length), *range(other, other + 3)}
        held = [card for card in range(13) if card not in on_table and rng.random() < 0.8]
        fresh = {card for card in held if rng.random() < 0.6}
        hand = set(held) - fresh
        if not fresh:
            continue
        must = int(rng.choice(sorted(fresh)))
        slow, fast = _amid_a_take(game, on_table, hand, fresh, must)
        if not slow.legal():
            continue
        for action, after in _ends(compiled, slow, fast):
            run = next(set(one.values()) for one in after.runs if must in one.values())
            assert action < actions.ON_SET or run & hand
            both += action >= actions.LOW_END
    assert both > 100
