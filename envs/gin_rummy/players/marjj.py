"""The rule bot of `gin_rummy` that weighs its own future against the opponent's, card by card: `marjj`.

It takes the pile's top where every arrangement of least deadwood melds it and deadwood drops. With a card drawn, its
candidates are the cards that some arrangement of least deadwood leaves out, within five points of the dearest of them
and of the least deadwood that one of them leaves; where there is none, every card. It discards the candidate c of least

    left(c) + 18 * 0.9^(t - 1) * future(c) + danger(c),

t the own turn's number, left(c) the deadwood without c, future(c) the mean of the seven least deadwoods that the hand
without c can come to with a card not seen yet and a discard; of equals each alike. danger(c) is the sum of

| what is known of the cards around c | out of reach | held by the opponent |
|---|---|---|
| both neighbours, or one and the card two away on the other side | -10 | +20 |
| else: each neighbour | -5 | +5 |
| else: each card two away | -3 | +3 |
| of its rank: three (two) others | -10 (-4), c itself counted | +20 for two |

and +4 where of its rank only c itself is out of reach. Out of reach is a card of the own hand, one seen that the
opponent is not known to hold, and what lies beyond ace or king. It knocks with what it may in its turns one to three,
later with gin alone.
Source: the public player MARJJ_v5 of the family that won the EAAI 2021 challenge, as described by the domain notes and
by the surrogate's documentation in jdh8's gin-rummy-engine; the rule and its numbers are that player's. Here a card
that the opponent took and let go again counts as seen, not as held; beyond the king's neighbour nothing special holds;
future(c) melds runs first or sets first, whichever leaves less, which is exact but for rare hands; melds are laid by
the game.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.batching import where_needed
from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, VALUES
from envs.errors import InputError
from envs.game import Game, Policy
from envs.gin_rummy.event_log.game import GinRummy
from envs.gin_rummy.event_log.state import DISCARD, GinView
from envs.gin_rummy.melding import melds, outs
from envs.gin_rummy.players import lookahead, rule_based

_TAKE, _DISCARDS = 1, 3
_SPREAD, _FUTURES, _WEIGHT, _DECAY, _LAST_KNOCK_TURN = 5, 7, 18.0, 0.9, 3
_POINTS = np.tile(VALUES, NUM_SUITS).astype(np.int32)
_NO_DEADWOOD = 1 << 10
_STEPS = 1024.0


def make(game: Game) -> Policy:
    """Builds the bot; raises InputError for another game than `gin_rummy` with the full deck."""
    if type(game) is not GinRummy or game.rules.num_cards != NUM_CARDS:
        raise InputError(f"marjj does not play {game.name}; it plays gin_rummy")
    return Policy(Marjj(game.rules.hand_size))


@dataclasses.dataclass(frozen=True)
class Marjj:
    """The bot's decision function."""

    hand_size: int

    def __call__(self, params: tuple[()], view: GinView, legal: Array) -> Array:
        """Returns the action probabilities: float32[107]."""
        ids = np.arange(legal.shape[0])
        others = legal & (ids != _TAKE)
        draw = jnp.where(legal[_TAKE] & _takes(view), ids == _TAKE, others & (ids == jnp.argmax(others)))
        chosen = jnp.where(view.phase == DISCARD, self._discard(view, legal), draw)
        return chosen / jnp.maximum(jnp.sum(chosen), 1)

    def _discard(self, view: GinView, legal: Array) -> Array:
        """Returns the discards or knocks, each alike: bool[107]."""
        plain, knock = legal[_DISCARDS : _DISCARDS + NUM_CARDS], legal[_DISCARDS + NUM_CARDS :]
        left = melds.deadwood_after_discard(view.hand.astype(jnp.int32)).reshape(-1)
        turn = rule_based.turn_of(view)
        allowed = plain | knock
        candidates = candidates_of(view, left, allowed)
        gin = allowed & (left == 0)
        open_question = (jnp.sum(candidates) > 1) & ~jnp.any(gin)
        nothing = jnp.zeros(NUM_CARDS, jnp.float32)
        score = where_needed(open_question, self.score, nothing, view, left, turn, candidates)
        best = candidates & (score <= jnp.min(jnp.where(candidates, score, jnp.inf)))
        best = jnp.where(jnp.any(gin), gin & (jnp.cumsum(gin) == 1), best)
        may_knock = knock & ((left == 0) | (turn <= _LAST_KNOCK_TURN))
        nothing = jnp.zeros(_DISCARDS, bool)
        return jnp.concatenate([nothing, best & ~may_knock & plain, best & may_knock])

    def score(self, view: GinView, left: Array, turn: Array, candidates: Array) -> Array:
        """Returns the score by which a candidate is discarded, the least first: float32[52]; of others it is none."""
        hand = view.hand.astype(jnp.int32)
        unseen = ~cards.to_cards(view.hand | view.pile | view.known)
        held = jnp.nonzero(cards.to_cards(view.hand), size=self.hand_size + 1, fill_value=0)[0]

        def future_of(card: Array) -> Array:
            return where_needed(candidates[card], _future, jnp.float32(0), hand & ~_bit(card), unseen)

        future = jax.vmap(future_of)(held)
        weight = _WEIGHT * _DECAY ** (turn - 1).astype(jnp.float32)
        score = left[held] + weight * future + danger(view)[held]
        # In whole 1024ths, so that equals are equal in whatever order sums are taken.
        return jnp.zeros(NUM_CARDS).at[held].set(jnp.round(score * _STEPS) / _STEPS)


def _takes(view: GinView) -> Array:
    """Returns whether the pile's top is taken: bool."""
    top = jnp.minimum(view.top.astype(jnp.int32), NUM_CARDS - 1)
    hand = view.hand.astype(jnp.int32)
    bigger = hand | _bit(top)
    left = melds.deadwood_after_discard(bigger).reshape(-1)
    melded = left[top] + jnp.asarray(_POINTS)[top] > melds.deadwood(bigger)
    return melded & (jnp.min(left) < view.deadwood)


def candidates_of(view: GinView, left: Array, allowed: Array) -> Array:
    """Returns the cards that may be discarded.

    Args:
      view: with a card drawn.
      left: int32[52], the deadwood left without each card.
      allowed: bool[52], the legal discards.
    Returns:
      bool[52].
    """
    outside = left + _POINTS == melds.deadwood(view.hand.astype(jnp.int32))
    loose = allowed & outside
    dearest = jnp.max(jnp.where(loose, _POINTS, 0))
    near = loose & (dearest - _POINTS <= _SPREAD)
    near = jnp.where(jnp.any(near), near, allowed)
    least = jnp.min(jnp.where(near, left, _NO_DEADWOOD))
    return near & (left <= least + _SPREAD)


def _future(hand: Array, unseen: Array) -> Array:
    """Returns the mean of the least deadwoods with one more card: float32, from int32[4] and bool[52]."""
    after = jax.vmap(lambda card: _least(hand | _bit(card)))(np.arange(NUM_CARDS))
    lowest = jnp.sort(jnp.where(unseen, after, _NO_DEADWOOD))[:_FUTURES]
    count = jnp.minimum(jnp.sum(unseen), _FUTURES)
    return jnp.sum(jnp.where(lowest < _NO_DEADWOOD, lowest, 0)) / jnp.maximum(count, 1)


def _least(hand: Array) -> Array:
    """Returns the least deadwood that one discard leaves of eleven cards, runs melded first or sets first: int32."""
    return jnp.minimum(*map(melds.points_but_highest, lookahead.without_melds(hand)))


def danger(view: GinView) -> Array:
    """Returns how much a card may help the opponent: float32[52]; the table of the module."""
    known = cards.to_cards(view.known).reshape(NUM_SUITS, NUM_RANKS)
    seen = cards.to_cards(view.hand | view.pile).reshape(NUM_SUITS, NUM_RANKS) & ~known
    runs = _around(seen, edge=True, certain=-10.0, sign=-1.0) + _around(known, edge=False, certain=20.0, sign=1.0)
    out, held = jnp.sum(seen, axis=0), jnp.sum(known, axis=0)
    sets = jnp.where(out >= 3, -10.0, jnp.where(out == 2, -4.0, 0.0))
    sets = sets + jnp.where(held >= 2, 20.0, jnp.where(out == 1, 4.0, 0.0))
    return (runs + sets).reshape(-1)


def _around(flags: Array, *, edge: bool, certain: float, sign: float) -> Array:
    """Returns what flags of a card's neighbours in the suit come to: float32[4, 13].

    Args:
      flags: bool[4, 13].
      edge: the flag of what lies beyond ace and king.
      certain: the score where both sides are flagged.
      sign: of the score of single flags.
    """
    low2, low1, high1, high2 = outs.around(flags, edge)
    both = (high1 & (low1 | low2)) | (low1 & (high1 | high2))
    single = sign * (5.0 * low1 + 5.0 * high1 + 3.0 * low2 + 3.0 * high2)
    return jnp.where(both, certain, single)


def _bit(card: Array) -> Array:
    return cards.card_mask(card).astype(jnp.int32)
