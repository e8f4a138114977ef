"""The rule bot of `gin_rummy` that counts what its next two draws may bring: `lookahead`.

Of a hand h with the cards U unseen, unmatched cards are those outside its melds (runs melded first or sets first,
whichever makes the cost less), and W(h) is the least deadwood that h with a card drawn keeps after a discard. With

    K_w(h)    = sum over unmatched cards of (points + w), what it costs that they are unmatched,
    L(h)      = how many times a card of U would meld with two cards of h,

the cost of a hand h of eleven cards, d the unmatched card whose loss leaves the least K_card(h - d) - w_p L(h - d), is

    one(h) = -win     where W(h) <= the knock limit,    else K_card(h - d) - w_p L(h - d);
    two(h) = -win     where W(h) <= the knock limit,
             else -w_p_later L(h - d) + mean over v in U of
                  (-win_later where W(h - d + v) <= the knock limit,
                   else K_card_later(h - d + v without its highest card)),

the last with the melds that leave the least deadwood; w_p and w_p_later are the weights `partner_count` and
`partner_count_later`.

It discards the card c of least mean over u in U of two(h - c + u), plus `discard_risk` times the own turn's number
times what c is worth to the opponent, of the four cards that are best by `one`. It takes the pile's top t where
two(h + t) <= mean over u of two(h + u) + take; a top taken may not be d. It knocks as soon as it may, with the least
deadwood.

Why unmatched cards cost more than their points, and what the weights are: a logistic regression of winning on features
of the hand, 100,000 decisions against `simple_bot`, finds each unmatched card worth more than ten points of deadwood;
matches between variants settled the rest. The rule and its numbers are this project's.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.batching import where_needed
from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, VALUES
from envs.errors import InputError, finite_number, unknown
from envs.game import Game, Policy
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.event_log.game import GinRummy
from envs.gin_rummy.event_log.state import DISCARD, GinView
from envs.gin_rummy.melding import melds, outs
from envs.gin_rummy.players import rule_based

_STOCK, _TAKE, _PASS, _DISCARDS = 0, 1, 2, 3
_CONSIDERED = 4
_STEPS = 256.0
_POINTS_AT, _WINS_AT = 10, 23
"""Bits at which sums over 52 cards begin: of unmatched cards at 0, of points, of wins."""
_POINTS = np.tile(VALUES, NUM_SUITS).astype(np.float32)
_ONE_CARD = np.where(
    np.arange(NUM_SUITS)[:, None] == np.arange(NUM_CARDS) // NUM_RANKS, 1 << np.arange(NUM_CARDS) % NUM_RANKS, 0
).astype(np.int32)
"""int32[4, 52]: the suit masks that hold each card alone."""


class LookaheadParams(NamedTuple):
    """The rule's weights, in points of deadwood; float32 scalars.

    Attributes:
      win: what being able to knock after the next draw is worth.
      win_later: the same after the draw after that.
      card: what an unmatched card costs besides its points, where the next draw's best discard is looked for.
      card_later: the same after the second draw.
      partner_count: worth of a card unseen that would meld with two own cards, after the next draw.
      partner_count_later: the same, besides what the second draw is expected to bring.
      discard_risk: cost, for each own turn so far, of a pair of cards that the opponent may hold and that meld with the
        discard; later on what is unseen fits the opponent's hand more often.
      take: how much worse than a card of the stock the pile's top may be and still be taken.
      knock_limit: int32, the most deadwood a knocker may keep in this round; None where the rules' own limit holds. No
        option: a game whose rounds differ sets it.
    """

    win: Any = 120.0
    win_later: Any = 100.0
    card: Any = 5.0
    card_later: Any = 10.0
    partner_count: Any = 2.0
    partner_count_later: Any = 0.5
    discard_risk: Any = 0.2
    take: Any = 3.0
    knock_limit: Any = None


_OPTIONS = tuple(field for field in LookaheadParams._fields if field != "knock_limit")


def make(game: Game, **changes: float) -> Policy:
    """Builds the bot.

    Args:
      game: `gin_rummy`, of whatever rules.
      **changes: fields of LookaheadParams to replace, knock_limit apart.
    Raises:
      InputError: another game, an unknown field, or a value that is no finite number.
    """
    if type(game) is not GinRummy or game.rules.num_cards != NUM_CARDS:
        raise InputError(f"lookahead does not play {game.name}; it plays gin_rummy")
    for field, value in changes.items():
        if field not in _OPTIONS:
            raise unknown("option of lookahead", field, _OPTIONS)
        finite_number(field, value)
    return Policy(Lookahead(game.rules), jax.tree.map(np.float32, LookaheadParams(**changes)))


@dataclasses.dataclass(frozen=True)
class Lookahead:
    """The bot's decision function."""

    rules: GinRules

    def __call__(self, params: LookaheadParams, view: GinView, legal: Array) -> Array:
        """Returns the chosen action's probability 1: float32[107]."""
        discarding = view.phase == DISCARD
        may_take = legal[_TAKE] & ~discarding
        takes = where_needed(may_take, self._takes, jnp.bool_(False), params, view)
        draw = jnp.where(takes, _TAKE, jnp.where(legal[_STOCK], _STOCK, _PASS))
        action = jnp.where(discarding, self._discard(params, view, legal), draw)
        return ((np.arange(legal.shape[0]) == action) & legal).astype(jnp.float32)

    def _discard(self, params: LookaheadParams, view: GinView, legal: Array) -> Array:
        """Returns the discard or the knock: int32."""
        plain, knock = legal[_DISCARDS : _DISCARDS + NUM_CARDS], legal[_DISCARDS + NUM_CARDS :]
        left = melds.deadwood_after_discard(view.hand.astype(jnp.int32)).reshape(-1)
        lowest = jnp.argmin(jnp.where(knock, left, melds.NOT_HELD))
        open_question = jnp.any(plain) & ~jnp.any(knock)
        nothing = jnp.zeros(NUM_CARDS, jnp.float32)
        score = where_needed(open_question, self.discard_score, nothing, params, view, plain)
        discard = jnp.argmin(jnp.where(plain, score, jnp.inf))
        return _DISCARDS + jnp.where(jnp.any(knock), NUM_CARDS + lowest, discard)

    def discard_score(self, params: LookaheadParams, view: GinView, allowed: Array) -> Array:
        """Returns the score by which a card is discarded, the least first.

        Args:
          params: the weights.
          view: with a card drawn.
          allowed: bool[52], the cards that may be discarded.
        Returns:
          float32[52]; infinite but for the few cards considered.
        """
        unseen = _unseen(view)
        size = self.rules.hand_size + 1
        held = jnp.nonzero(cards.to_cards(view.hand), size=size, fill_value=0)[0]
        others = np.array([[m for m in range(size) if m != n] for n in range(size)])
        risk = outs.discard_risk(_masks(unseen), view.known.astype(jnp.int32))[held]
        risk = params.discard_risk * rule_based.turn_of(view) * risk
        drawn = jax.vmap(lambda hand: self._one_draw(params, hand, unseen, np.zeros(NUM_CARDS, bool)))(held[others])
        first = jnp.where(allowed[held], _rounded(_mean(drawn.cost, unseen) + risk), jnp.inf)
        best = lax.top_k(-first, min(_CONSIDERED, size))[1]
        picked = jax.tree.map(lambda x: x[best], drawn)
        cost = jax.vmap(lambda one: _two_draws(params, self._limit(params), one, unseen))(picked)
        score = jnp.where(allowed[held[best]], _rounded(_mean(cost, unseen) + risk[best]), jnp.inf)
        return jnp.full(NUM_CARDS, jnp.inf).at[held[best]].set(score)

    def _takes(self, params: LookaheadParams, view: GinView) -> Array:
        """Returns whether the pile's top is worth taking: bool."""
        top, unseen = view.top.astype(jnp.int32), _unseen(view)
        held = jnp.nonzero(cards.to_cards(view.hand), size=self.rules.hand_size, fill_value=0)[0]
        drawn = self._one_draw(params, held, unseen, np.arange(NUM_CARDS) == top)
        cost = _two_draws(params, self._limit(params), drawn, unseen)
        return cost[jnp.minimum(top, NUM_CARDS - 1)] <= _mean(cost, unseen) + params.take

    def _limit(self, params: LookaheadParams) -> Any:
        """Returns the most deadwood a knocker may keep: int32."""
        return self.rules.knock_limit if params.knock_limit is None else params.knock_limit

    def _one_draw(self, params: LookaheadParams, held: Array, unseen: Array, kept: Array) -> _Drawn:
        """Draws each card: int32[n] a hand, bool[52] the cards not seen, bool[52] those that stay once drawn."""
        own = jnp.zeros(NUM_CARDS, bool).at[held].set(True)
        drawn = np.arange(NUM_CARDS)
        unseen_outs, own_outs = outs.completing(unseen, held), outs.completing(own, held)
        among = jnp.sum(jnp.where(own, unseen_outs, 0), axis=1)
        by_held = among[:, None] + unseen_outs - jnp.where(unseen, own_outs, 0)
        partners = jnp.concatenate([by_held, jnp.sum(unseen_outs, axis=0)[None]]).astype(jnp.float32)
        masks = _masks(own)[:, None] | _ONE_CARD
        suit, rank = jnp.append(held // NUM_RANKS, 0), jnp.append(held % NUM_RANKS, 0)
        value = jnp.concatenate([jnp.broadcast_to(jnp.asarray(_POINTS)[held][:, None], by_held.shape), _POINTS[None]])
        stays = jnp.zeros(partners.shape, bool).at[-1].set(kept)
        best = None
        for unmatched in without_melds(masks):
            is_unmatched = (
                ((unmatched[suit] >> rank[:, None]) & 1 == 1).at[-1].set(jnp.any(unmatched & _ONE_CARD != 0, axis=0))
            )
            cost = jnp.where(is_unmatched, value + params.card, 0.0)
            saved = jnp.where(is_unmatched & ~stays, value + params.card - params.partner_count * partners, -jnp.inf)
            most, discard = jnp.max(saved, axis=0), jnp.argmax(saved, axis=0)
            total = jnp.sum(cost, axis=0) - jnp.where(jnp.isfinite(most), most, 0.0)
            highest = jnp.max(jnp.where(is_unmatched & ~stays, value, 0.0), axis=0)
            least = jnp.sum(jnp.where(is_unmatched, value, 0.0), axis=0) - highest
            this = total, discard, least
            best = this if best is None else _cheaper(best, this)
        total, discard, least = best
        wins = least <= self._limit(params)
        rest = jnp.sum(partners, axis=0) / 2 - jnp.take_along_axis(partners, discard[None], axis=0)[0]
        cost = jnp.where(wins, -params.win, total - params.partner_count * rest)
        gone = jnp.where(discard < len(held), held[jnp.minimum(discard, len(held) - 1)], drawn)
        return _Drawn(masks & ~jnp.asarray(_ONE_CARD)[:, gone], rest, wins, cost)


class _Drawn(NamedTuple):
    """What follows from drawing each card.

    Attributes:
      left: int32[4, 52] suit masks of the hand after the best discard.
      partners: float32[52], L of it.
      wins: bool[52], whether a knock would be allowed instead.
      cost: float32[52], `one`.
    """

    left: Array
    partners: Array
    wins: Array
    cost: Array


def _cheaper(one: tuple[Array, Array, Array], two: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
    """Returns the cost and the discard of the cheaper arrangement, the first of equals, and the least deadwood."""
    better = two[0] < one[0]
    return jnp.minimum(one[0], two[0]), jnp.where(better, two[1], one[1]), jnp.minimum(one[2], two[2])


def _two_draws(params: LookaheadParams, limit: Any, drawn: _Drawn, unseen: Array) -> Array:
    """Returns `two` for each card drawn: float32[52]."""

    def second(some: tuple[Array, Array]) -> Array:
        left, free = some
        masks = left[..., None] | _ONE_CARD[:, None]
        both = []
        for unmatched in without_melds(masks):
            count = jnp.maximum(melds.over_suits(lax.population_count(unmatched)) - 1, 0)
            both.append(melds.points_but_highest(unmatched) << _POINTS_AT | count)
        least = jnp.minimum(*both)
        packed = jnp.where(least >> _POINTS_AT <= limit, 1 << _WINS_AT, least)
        return jnp.sum(jnp.where(free, packed, 0), axis=-1)

    # One sum of whole numbers holds all three: XLA for CPUs would compute everything anew for each, and weights
    # that differ by lane keep the inner loop from being vectorised.
    # XLA for CPUs would compute the first draw anew for each second one; what a loop goes over it keeps.
    left = jnp.moveaxis(drawn.left.reshape(NUM_SUITS, NUM_SUITS, NUM_RANKS), 1, 0)
    free = (unseen & ~np.eye(NUM_CARDS, dtype=bool)).reshape(NUM_SUITS, NUM_RANKS, NUM_CARDS)
    packed = lax.map(second, (left, free)).reshape(-1)
    count, points = packed & (1 << _POINTS_AT) - 1, (packed & (1 << _WINS_AT) - 1) >> _POINTS_AT
    wins = packed >> _WINS_AT
    total = points + params.card_later * count - params.win_later * wins
    cost = total / jnp.maximum(jnp.sum(free, axis=-1).reshape(-1), 1)
    return jnp.where(drawn.wins, -params.win, cost - params.partner_count_later * drawn.partners)


def without_melds(masks: Array) -> tuple[Array, Array]:
    """Returns the cards outside melds, int32[4, ...] each: runs melded first, and sets first."""
    after_runs = masks & ~melds.run_cards(masks)
    after_sets = masks & ~melds.threes(masks)
    return after_runs & ~melds.threes(after_runs), after_sets & ~melds.run_cards(after_sets)


def _mean(values: Array, among: Array) -> Array:
    """Returns the mean of float32[..., 52] over the cards of bool[..., 52], 0 for none."""
    return jnp.sum(jnp.where(among, values, 0.0), axis=-1) / jnp.maximum(jnp.sum(among, axis=-1), 1)


def _rounded(score: Array) -> Array:
    """Returns a score in whole 256ths, so that of equal cards the lowest goes in whatever order sums are taken."""
    return jnp.round(score * _STEPS) / _STEPS


def _masks(flags: Array) -> Array:
    return cards.to_mask(flags).astype(jnp.int32)


def _unseen(view: GinView) -> Array:
    """Returns the cards in the stock or unknown in the opponent's hand: bool[52]."""
    return ~cards.to_cards(view.hand | view.pile | view.known)
