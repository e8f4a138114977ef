"""Rule-based players of `gin_rummy`: one parameterised rule, seeing only a view.

On a draw a bot takes the pile's top where its rule says so, else draws from the stock (or passes). On a discard it
discards the card of least score

    w_left W(c) - w_value value(c) + w_risk risk(c) + w_partners partners(c),

W(c) the deadwood left without c, risk(c) what c is worth to the opponent, partners(c) the unseen cards that would meld
with c and another own card; of equals the lowest card goes. It knocks with that card where its rule allows, at gin
always. Where the rules let nobody knock without gin, the discards that go gin come before all others.
Sources: the 16-action document's list of opponents, which gives one line each - the numbers are this project's; greedy
takes what lowers deadwood and knocks at once, as the player called gold in arXiv 2607.06854; patient after jdh8's
greedy player, which knocks with four points of deadwood or less (that one with more or less by the score of the game);
eaai_simple after the EAAI-21 framework's simple player (without its rule against repeating a drawn and discarded pair),
camper after MARJJ v5's knock rule.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.cards import NUM_RANKS, NUM_SUITS, VALUES
from envs.errors import finite_number, unknown
from envs.game import Game, Policy
from envs.gin_rummy.core import table
from envs.gin_rummy.event_log.state import DISCARD, GinView
from envs.gin_rummy.melding import melds, outs

_NEVER = 1000.0


class RuleBotParams(NamedTuple):
    """What distinguishes one rule bot from another; float32 scalars.

    Attributes:
      take_joins: 1 to take a top that is part of a meld with own cards.
      take_gain: take a top that lowers deadwood by at least this.
      take_knock: 1 to take a top that makes a knock within the present limit possible.
      take_low: 1 to take a card of at most three points that lowers deadwood at all.
      left, value, discard_risk, partner_count: weights of the discard's score.
      early, middle, late: the most deadwood knocked with until turn `turn_early`, `turn_middle`, and later.
      turn_early, turn_middle: own turns.
      short, short_limit: with at most `short` cards in the stock the limit is `short_limit` instead.
      lead: knock only where the opponent's estimated deadwood is larger by this, gin and short stock apart.
      spread: 1 to draw the discard uniformly among equal scores, 0 for the lowest card.
      knock_limit: the most deadwood that the rules let a knocker keep.
    """

    take_joins: Any = 1.0
    take_gain: Any = _NEVER
    take_knock: Any = 0.0
    take_low: Any = 0.0
    left: Any = 1000.0
    value: Any = 1.0
    discard_risk: Any = 0.0
    partner_count: Any = 0.0
    early: Any = 10.0
    middle: Any = 10.0
    late: Any = 10.0
    turn_early: Any = 4.0
    turn_middle: Any = 8.0
    short: Any = 0.0
    short_limit: Any = 10.0
    lead: Any = -_NEVER
    spread: Any = 0.0
    knock_limit: Any = 10.0


_OPTIONS = tuple(field for field in RuleBotParams._fields if field != "knock_limit")

BOTS: dict[str, RuleBotParams] = {
    "greedy": RuleBotParams(take_joins=0.0, take_gain=1.0),
    "heuristic": RuleBotParams(take_gain=4.0, take_knock=1.0, value=10.0, discard_risk=0.1, middle=7.0, late=5.0),
    "aggressive_knock": RuleBotParams(take_knock=1.0),
    "meld_builder": RuleBotParams(
        take_gain=6.0, left=1.0, partner_count=3.0, value=0.0, early=2.0, middle=2.0, late=2.0, short=8.0
    ),
    "early_knock": RuleBotParams(
        take_gain=3.0, take_low=1.0, left=1.0, value=0.9, turn_early=6.0, turn_middle=6.0, middle=6.0, late=6.0
    ),
    "defensive": RuleBotParams(left=1.0, discard_risk=1.0, value=0.01, lead=8.0, short=6.0, short_limit=5.0),
    "eaai_simple": RuleBotParams(value=0.0, spread=1.0),
    "patient": RuleBotParams(
        take_joins=0.0, take_gain=1.0, left=100.0, value=0.01, discard_risk=1.0, early=4.0, middle=4.0, late=4.0
    ),
    "camper": RuleBotParams(take_joins=0.0, take_gain=1.0, turn_early=3.0, turn_middle=3.0, middle=0.0, late=0.0),
}  # fmt: skip
"""The rule bots by name."""


def rule_bot(name: str, game: Game | None = None, **changes: float) -> Policy:
    """Builds a rule bot.

    Args:
      name: one of BOTS.
      game: whose knock limit it keeps to; None: the usual one.
      **changes: fields of RuleBotParams to replace, knock_limit apart.
    Raises:
      InputError: an unknown name or field, or a value that is no finite number.
    """
    if name not in BOTS:
        raise unknown("rule bot", name, BOTS)
    for field, value in changes.items():
        if field not in _OPTIONS:
            raise unknown(f"option of {name}", field, _OPTIONS)
        finite_number(field, value)
    params = BOTS[name]._replace(**changes)
    if game is not None:
        params = params._replace(knock_limit=game.rules.knock_limit)
    return Policy(play, jax.tree.map(np.float32, params))


def play(params: RuleBotParams, view: GinView, legal: Array) -> Array:
    """Returns the bot's action probabilities: float32[107]."""
    hand = view.hand.astype(jnp.int32)
    chosen = jnp.where(view.phase == DISCARD, _discard(params, view, hand, legal), _draw(params, view, hand, legal))
    total = jnp.sum(chosen)
    return jnp.where(total > 0, chosen / jnp.where(total > 0, total, 1.0), 0.0)


def _draw(params: RuleBotParams, view: GinView, hand: Array, legal: Array) -> Array:
    """Returns the draw: one at taking, or at the stock or a pass."""
    top = view.top.astype(jnp.int32)
    bit = cards.card_mask(cards.signed_id(view.top)).astype(jnp.int32)
    bigger = hand | bit
    left = melds.deadwood_after_discard(bigger).reshape(-1)
    kept = jnp.min(jnp.where(np.arange(left.shape[0]) == top, melds.NOT_HELD, left))
    gain = (view.deadwood.astype(jnp.int32) - kept).astype(jnp.float32)
    joins = jnp.any((melds.run_cards(bigger) | melds.threes(bigger)) & bit != 0)
    value = jnp.asarray(VALUES)[top % NUM_RANKS]
    takes = (
        ((params.take_joins > 0) & joins)
        | (gain >= params.take_gain)
        | ((params.take_knock > 0) & (kept <= _limit(params, view)) & (gain > 0))
        | ((params.take_low > 0) & (value <= 3) & (gain > 0))
    )
    take = takes & legal[1]
    others = legal & (np.arange(legal.shape[0]) != 1)
    first = np.arange(legal.shape[0]) == jnp.argmax(others)
    return jnp.where(take, np.arange(legal.shape[0]) == 1, first & others).astype(jnp.float32)


def discard_score(params: RuleBotParams, view: GinView) -> Array:
    """Returns the score by which cards of a hand with a card drawn are discarded, the least first: float32[52]."""
    hand = view.hand.astype(jnp.int32)
    left = melds.deadwood_after_discard(hand).reshape(-1).astype(jnp.float32)
    values = np.tile(VALUES, NUM_SUITS).astype(np.float32)
    unseen = (~(view.hand | view.pile | view.known)).astype(jnp.int32)
    risk = outs.discard_risk(unseen, view.known.astype(jnp.int32))
    partners = outs.partner_count(hand, unseen)
    return params.left * left - params.value * values + params.discard_risk * risk + params.partner_count * partners


def _discard(params: RuleBotParams, view: GinView, hand: Array, legal: Array) -> Array:
    """Returns the discard, as a knock where the rule says so."""
    size = cards.NUM_CARDS
    left = melds.deadwood_after_discard(hand).reshape(-1).astype(jnp.float32)
    score = discard_score(params, view)
    plain, knock = legal[3 : 3 + size], legal[3 + size :]
    gin_alone = (params.knock_limit == 0) & jnp.any(knock)
    score = jnp.where(jnp.where(gin_alone, knock, plain | knock), score, jnp.inf)
    best = score <= jnp.min(score)
    lowest = best & (np.arange(size) == jnp.argmax(best))
    card = jnp.where(params.spread > 0, best, lowest)
    short = view.stock <= params.short
    estimated = jnp.asarray(outs.TYPICAL_DEADWOOD)[jnp.minimum(turn_of(view), len(outs.TYPICAL_DEADWOOD) - 1)]
    ahead = short | (estimated - left >= params.lead)
    knocks = card & knock & ((left == 0) | ((left <= _limit(params, view)) & ahead))
    discards = jnp.where(jnp.any(knocks), knocks, card)
    nothing = jnp.zeros(3, bool)
    as_knock = jnp.any(knocks)
    return jnp.concatenate([nothing, discards & ~as_knock & plain, discards & as_knock]).astype(jnp.float32)


def turn_of(view: GinView) -> Array:
    """Returns the own turn's number, from 1: int32."""
    actor, kind, _ = table.read(view.log)
    return 1 + jnp.sum((actor == view.seat) & (kind == table.DISCARD), dtype=jnp.int32)


def _limit(params: RuleBotParams, view: GinView) -> Array:
    """Returns the most deadwood the bot knocks with now: float32."""
    turn = turn_of(view)
    by_turn = jnp.where(
        turn <= params.turn_early, params.early, jnp.where(turn <= params.turn_middle, params.middle, params.late)
    )
    chosen = jnp.where(view.stock <= params.short, jnp.maximum(by_turn, params.short_limit), by_turn)
    return jnp.minimum(chosen, params.knock_limit)


def __getattr__(name: str) -> Any:
    """Returns the maker of a rule bot by the bot's name, as the registry of players asks for it."""
    if name in BOTS:
        return functools.partial(rule_bot, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
