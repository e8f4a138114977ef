"""Does `lookahead` reckon two draws ahead as its rule says, held against loops over cards in plain Python?"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_melds

import envs
from dream.evaluation import match
from envs import InputError, cards
from envs.gin_rummy.melding import outs
from envs.gin_rummy.players import lookahead

pytestmark = pytest.mark.runs_long
GAME = envs.make("gin_rummy")
WEIGHTS = {
    "win": 90.0,
    "win_later": 70.0,
    "card": 3.0,
    "card_later": 7.0,
    "partner_count": 1.5,
    "partner_count_later": 0.25,
}
MELDS = [frozenset(slow_melds.cards_of(meld)) for meld in slow_melds.FULL.all_melds]
VALUES = slow_melds.FULL.values


def _unmatched(hand: frozenset[int]) -> list[set[int]]:
    """Returns the cards outside melds, runs melded first and sets melded first."""
    reported = []
    for sets_first in (False, True):
        left = set(hand)
        for in_sets in (sets_first, not sets_first):
            found = {
                card
                for meld in MELDS
                if meld <= left and (len({c % 13 for c in meld}) == 1) == in_sets
                for card in meld
            }
            left -= found
        reported.append(left)
    return reported


def _partner_count(hand: frozenset[int], unseen: frozenset[int]) -> int:
    threes = [meld for meld in MELDS if len(meld) == 3]
    return sum(len(meld & hand) == 2 and len(meld & unseen) == 1 for meld in threes)


def _one(hand: frozenset[int], drawn: int, unseen: frozenset[int], stays: bool) -> tuple[float, frozenset[int], bool]:
    """Returns the cost of a hand with a card drawn, the hand after the best discard, whether it may knock."""
    bigger, rest = hand | {drawn}, unseen - {drawn}
    options, least = [], 999
    for unmatched in _unmatched(bigger):
        free = [card for card in [*sorted(hand), drawn] if card in unmatched and not (stays and card == drawn)]
        total = sum(VALUES[c] + WEIGHTS["card"] for c in unmatched)
        least = min(least, sum(VALUES[c] for c in unmatched) - max((VALUES[c] for c in free), default=0))
        for card in free or [min(hand)]:
            kept = bigger - {card}
            saved = VALUES[card] + WEIGHTS["card"] if free else 0.0
            options.append((total - saved - WEIGHTS["partner_count"] * _partner_count(kept, rest), kept))
    cost, kept = min(options, key=lambda option: option[0])
    return (-WEIGHTS["win"] if least <= 10 else cost), kept, least <= 10


def _two(hand: frozenset[int], drawn: int, unseen: frozenset[int], stays: bool = False) -> float:
    _, kept, wins = _one(hand, drawn, unseen, stays)
    if wins:
        return -WEIGHTS["win"]
    later = []
    for second in unseen - {drawn}:
        least, count = min(
            (
                sum(VALUES[c] for c in unmatched) - max((VALUES[c] for c in unmatched), default=0),
                max(len(unmatched) - 1, 0),
            )
            for unmatched in _unmatched(kept | {second})
        )
        later.append(-WEIGHTS["win_later"] if least <= 10 else least + WEIGHTS["card_later"] * count)
    return float(np.mean(later)) - WEIGHTS["partner_count_later"] * _partner_count(kept, unseen - {drawn})


@functools.cache
def _decisions() -> tuple[Any, np.ndarray, np.ndarray]:
    """Lets two simple bots play four hands: views, legal actions, whether someone is to act, of every step."""
    simple = envs.make_bot("simple_bot", GAME)
    states = jax.vmap(GAME.init)(jax.random.split(jax.random.key(3), 4))

    def body(states: Any, _: jax.Array) -> Any:
        views, legal = jax.vmap(GAME.view)(states, states.current_player), jax.vmap(GAME.legal_actions)(states)
        after, _, _ = jax.vmap(GAME.step)(states, jnp.argmax(jax.vmap(simple)(views, legal), axis=1))
        return after, (views, legal, states.current_player >= 0)

    return jax.device_get(jax.jit(lambda states: jax.lax.scan(body, states, None, 40)[1])(states))


@jax.jit
def _chances(policy: envs.Policy, views: Any, legal: jax.Array) -> jax.Array:
    return jax.vmap(jax.vmap(policy))(views, legal)


def _flagged(mask: Any) -> frozenset[int]:
    return frozenset(cards.cards_in(np.asarray(mask)))


def _packed(some: frozenset[int]) -> np.ndarray:
    return np.asarray(cards.to_mask(np.isin(np.arange(52), list(some)))).astype(np.int32)


def test_discards_are_scored_as_by_loops_over_cards() -> None:
    """The four of least cost after one draw, by their cost after two."""
    views, legal, playing = _decisions()
    policy = envs.make_bot("lookahead", GAME, discard_risk=0.5, **WEIGHTS)
    score = jax.jit(policy.apply.discard_score)
    asked = np.argwhere(playing & legal[..., 3:55].any(axis=-1) & ~legal[..., 55:].any(axis=-1))
    for t, lane in asked[np.random.default_rng(0).permutation(len(asked))[:2]]:
        view, allowed = jax.tree.map(lambda x, at=(t, lane): x[at], views), legal[t, lane, 3:55]
        hand = _flagged(view.hand)
        unseen = frozenset(range(52)) - hand - _flagged(view.pile) - _flagged(view.known)
        before = (views.seat[:t, lane] == view.seat) & legal[:t, lane, 3:].any(axis=-1)
        turn = 1 + np.count_nonzero(before)
        worth = np.asarray(outs.discard_risk(_packed(unseen), _packed(_flagged(view.known))))
        risk = 0.5 * turn * worth
        first = {
            c: np.mean([_one(hand - {c}, u, unseen, False)[0] for u in unseen]) + risk[c]
            for c in sorted(hand)
            if allowed[c]
        }
        best = sorted(first, key=lambda c: round(256 * first[c]))[:4]
        expected = {c: np.mean([_two(hand - {c}, u, unseen) for u in unseen]) + risk[c] for c in best}
        reported = np.asarray(score(policy.params, view, allowed))
        assert set(np.flatnonzero(np.isfinite(reported))) == set(best)
        np.testing.assert_allclose(reported[best], [expected[c] for c in best], rtol=1e-4, atol=4e-3)


def test_the_top_is_taken_where_it_costs_less_than_a_card_of_the_stock() -> None:
    """At every offer and draw of the hands, by loops over cards; both answers occur."""
    views, legal, playing = _decisions()
    policy = envs.make_bot("lookahead", GAME, take=2.0, **WEIGHTS)
    chosen = np.asarray(_chances(policy, views, legal)).argmax(axis=-1)
    asked = np.argwhere(playing & legal[..., 1])
    answers = []
    for t, lane in asked[np.random.default_rng(1).permutation(len(asked))[:8]]:
        view = jax.tree.map(lambda x, at=(t, lane): x[at], views)
        hand, top = _flagged(view.hand), int(view.top)
        unseen = frozenset(range(52)) - hand - _flagged(view.pile) - _flagged(view.known)
        stock = np.mean([_two(hand, u, unseen) for u in unseen])
        gap = _two(hand, top, unseen, stays=True) - stock - 2.0
        if abs(gap) > 1e-3:
            assert (chosen[t, lane] == 1) == (gap < 0)
            answers.append(gap < 0)
    assert 0 < sum(answers) < len(answers)


def test_it_plays_legally_and_knocks_as_soon_as_it_may() -> None:
    """At every decision of the hands: one legal action, a knock with the least deadwood where there is one."""
    views, legal, playing = _decisions()
    policy = envs.make_bot("lookahead", GAME)
    chances = np.asarray(_chances(policy, views, legal))
    np.testing.assert_array_equal(chances.sum(axis=-1), playing)
    assert not np.any((chances > 0) & ~legal)
    knocks = legal[..., 55:].any(axis=-1)
    assert knocks.any()
    assert np.all(chances[knocks][:, 55:].sum(axis=-1) == 1)


def test_it_beats_random_play() -> None:
    """In more than 95 of 100 hands, the whole interval."""
    report = match(GAME, envs.make_bot("lookahead", GAME), envs.make_bot("random", GAME), games=256, seed=1)
    assert report["win_rate"].low > 0.95


def test_wrong_options_and_games_are_refused() -> None:
    """One line, with the nearest name."""
    with pytest.raises(InputError, match="did you mean 'win_later'"):
        envs.make_bot("lookahead", GAME, win_latr=1.0)
    with pytest.raises(InputError, match="win='high' is not valid; it must be a finite number"):
        envs.make_bot("lookahead", GAME, win="high")
    with pytest.raises(InputError, match="unknown option of lookahead 'knock_limit'"):
        envs.make_bot("lookahead", GAME, knock_limit=0)
    with pytest.raises(InputError, match="lookahead does not play gin_rummy_openspiel; it plays gin_rummy"):
        lookahead.make(envs.make("gin_rummy_openspiel"))
