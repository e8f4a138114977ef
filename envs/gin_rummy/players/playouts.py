"""A round of gin rummy played to its end by two simple players, open and fast: what search players think with.

Both take the pile's top where it is part of a meld, discard what leaves least deadwood (of equals the one of most
points, then the lowest card) and knock within limits of their own. That is the rule bot with take_joins and these
limits, played to the letter, without log and views. A state is seen by whoever is to act. Full decks only.

Every array may have extra trailing axes, the same for all, over rounds played side by side.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs import cards
from envs.batching import lanes_last, where_needed
from envs.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, VALUES
from envs.gin_rummy.core import scoring, table
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.event_log.state import DISCARD, DRAW, FIRST_OFFER, SECOND_OFFER, GinView
from envs.gin_rummy.melding import melds
from envs.gin_rummy.players import rollout_queue

_STOCK, _TAKE, _PASS, _DISCARDS = 0, 1, 2, 3
_VALUES = np.tile(VALUES, NUM_SUITS).astype(np.int32)
_MORE_THAN_ANY_VALUE = 16
_UNWANTED = 1 << 24
PLAYING, DEAD, KNOCKED = 0, 1, 2


class Limits(NamedTuple):
    """The most deadwood a player knocks with: `early` to its turn 4, `middle` to its turn 8, `late`; float32."""

    early: Any
    middle: Any
    late: Any


class PlayoutState(NamedTuple):
    """A round in play, all cards open.

    Attributes:
      mine, other: int32[4] suit masks of the player to act, and of the one who waits.
      place: int32, where in the order of the stock (kept apart) its next card is.
      left: int32, cards in the stock.
      top: int32, the pile's top.
      taken: int32, the card that may not be discarded, -1 for none.
      phase: int32, as of `gin_rummy`.
      turn, other_turn: int32, the number of each player's turn, from 1.
      actions: int32, actions so far.
      first: bool, whether the one to act is the player whose result is returned.
      ending: int32, PLAYING, DEAD or KNOCKED, by `mine` then, discard done.
    """

    mine: Array
    other: Array
    place: Array
    left: Array
    top: Array
    taken: Array
    phase: Array
    turn: Array
    other_turn: Array
    actions: Array
    first: Array
    ending: Array


def open_view(view: GinView, key: Array) -> tuple[PlayoutState, Array]:
    """Deals what a player to act cannot see, all ways of dealing it being equally likely.

    Args:
      view: of the player to act, in play; one, without trailing axes.
      key: consumed.
    Returns:
      The state, and the order its stock has: int32[52], of which the first `left` from `place` on count.
    """
    hidden = ~cards.to_cards(view.hand | view.pile | view.known)
    noise = jax.random.bits(key, (NUM_CARDS,)) >> 1 & ~np.uint32(63)
    last = jnp.where(hidden, np.uint32(0), np.uint32(1 << 31))
    order = (jnp.sort(noise | last | np.arange(NUM_CARDS, dtype=np.uint32)) & 63).astype(jnp.int32)
    dealt = view.opponent_cards - table.count(view.known)
    theirs = _bit(order) * (np.arange(NUM_CARDS) < dealt)
    actor, kind, card = table.read(view.log)
    turns = [1 + jnp.sum((kind == table.DISCARD) & (actor == seat), dtype=jnp.int32) for seat in range(2)]
    latest = view.length.astype(jnp.int32) - 1
    state = PlayoutState(
        mine=view.hand.astype(jnp.int32),
        other=jnp.sum(theirs, axis=1) | view.known.astype(jnp.int32),
        place=dealt.astype(jnp.int32),
        left=view.stock.astype(jnp.int32),
        top=view.top.astype(jnp.int32),
        taken=jnp.where(kind[latest] == table.DRAW_DISCARD, card[latest], -1),
        phase=view.phase.astype(jnp.int32),
        turn=jnp.where(view.seat == 1, turns[1], turns[0]),
        other_turn=jnp.where(view.seat == 1, turns[0], turns[1]),
        actions=latest,
        first=jnp.bool_(True),
        ending=jnp.int32(PLAYING),
    )
    return state, order


def act(rules: GinRules, state: PlayoutState, stock: Array, action: Array) -> PlayoutState:
    """Plays a legal action of `gin_rummy`."""
    discards, knocks = action >= _DISCARDS, action >= _DISCARDS + rules.num_cards
    drawn = _drawn(rules, state, stock[jnp.clip(state.place, 0, NUM_CARDS - 1)], action == _TAKE)
    discard = _discarded(rules, state, (action - _DISCARDS) % rules.num_cards, knocks)
    return _choose(discards, discard, _choose(action == _PASS, _passed(rules, state), drawn))


def play_out(rules: GinRules, state: PlayoutState, stock: Array, mine: Limits, theirs: Limits, turns: int) -> Array:
    """Plays a round to its end.

    Args:
      rules: of the game.
      state: in play or over.
      stock: int32[52], its order.
      mine, theirs: limits of the player whose result is returned, and of the other.
      turns: after so many more turns, rounded up to a multiple of three, the round counts as a tie.
    Returns:
      float32, points the player wins.
    """
    limits = [jnp.asarray(limit, jnp.float32) for limit in (*mine, *theirs)]
    return lanes_last(functools.partial(_play_out, rules, turns))(stock, *limits, *state)


def _play_out(rules: GinRules, turns: int, stock: Array, *arrays: Array) -> Array:
    shape = stock.shape[1:]
    stock, *arrays = (x.reshape(*x.shape[: x.ndim - len(shape)], -1) for x in (stock, *arrays))
    limits, state = jnp.stack(arrays[:6]), PlayoutState(*arrays[6:])
    cards_flat, total = stock.reshape(-1), stock.shape[1]

    def step(state: PlayoutState, numbers: Array) -> PlayoutState:
        next_card = cards_flat[jnp.clip(state.place, 0, NUM_CARDS - 1) * total + numbers]
        own = limits[:, numbers]
        now = Limits(*jnp.where(state.first, own[:3], own[3:]))
        return _choose(state.ending == PLAYING, play_turn(rules, state, next_card, now), state)

    def keep(state: PlayoutState) -> Array:
        return jnp.stack([*state.mine, *state.other, state.top, state.ending, state.first.astype(jnp.int32)])

    end = rollout_queue.finish(step, lambda state: state.ending == PLAYING, keep, state, turns)
    mine, other, (top, ending, first) = end[:NUM_SUITS], end[NUM_SUITS : 2 * NUM_SUITS], end[2 * NUM_SUITS :]
    won = _settled(rules, ending == KNOCKED, mine, other, top)
    return jnp.where(first == 1, won, -won).astype(jnp.float32).reshape(shape)


def _settled(rules: GinRules, knocked: Array, knocker: Array, defender: Array, discard: Array) -> Array:
    """Returns what knockers win, 0 where none knocked: int32[N] points, from arrays [..., N]."""

    def one(knocker: Array, defender: Array, discard: Array) -> Array:
        return scoring.settle(rules, knocker, defender, melds.deadwood(defender), discard).points

    def each(knocked: Array, *hands: Array) -> Array:
        return where_needed(knocked, one, jnp.int32(0), *hands)

    return jax.vmap(each, -1, -1)(knocked, knocker, defender, discard)


def play_turn(rules: GinRules, state: PlayoutState, next_card: Array, limits: Limits) -> PlayoutState:
    """Plays the turn of the player to act, or what is left of it; `next_card` int32 is the stock's."""
    offer = (state.phase == FIRST_OFFER) | (state.phase == SECOND_OFFER)
    bit = _bit(state.top)
    bigger = state.mine | bit
    joins = melds.over_suits((melds.run_cards(bigger) | melds.threes(bigger)) & bit) != 0
    takes = joins & (offer | (state.phase == DRAW))
    full = _choose(state.phase == DISCARD, state, _drawn(rules, state, next_card, takes))
    card, kept = _discard(full.mine, full.taken)
    limit = jnp.where(state.turn <= 4, limits.early, jnp.where(state.turn <= 8, limits.middle, limits.late))
    discard = _discarded(rules, full, card, kept <= jnp.clip(limit, 0, rules.knock_limit))
    return _choose(offer & ~takes, _passed(rules, state), _choose(full.ending == DEAD, full, discard))


def improve(state: PlayoutState, stock: Array, fixed: Array, swaps: Array, bits: Array) -> tuple[PlayoutState, Array]:
    """Lets the player who waits draw from the hidden cards and discard back into them, as it has done so far.

    A uniform deal holds no trace of the opponent's choices; this puts them in: each swap draws a card of the stock and
    gives back the card whose loss leaves least deadwood, where the drawn one lay. With an empty stock nothing changes.

    Args:
      state: in play.
      stock: int32[52], its order.
      fixed: int32[4] suit masks of cards the player is known to hold.
      swaps: int32, how many.
      bits: uint32[n], random, one for each swap; n is the most there can be.
    Returns:
      The state and the stock's order, changed.
    """
    other, stock = lanes_last(_improve)(stock, fixed, swaps, bits, state.other, state.place, state.left)
    return state._replace(other=other), stock


def _improve(stock: Array, fixed: Array, swaps: Array, bits: Array, hand: Array, start: Array, left: Array) -> Any:
    ids = np.arange(NUM_CARDS).reshape(-1, *(1,) * left.ndim)
    known = _flags(fixed)

    def body(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        n, hand, stock = carry
        place = jnp.minimum(start + (bits[n] % left.astype(jnp.uint32)).astype(jnp.int32), NUM_CARDS - 1)
        here = ids == place
        bigger = hand | _bit(jnp.sum(jnp.where(here, stock, 0), axis=0))
        card, _ = _discard(bigger, -1, known)
        swapped = (n < swaps) & (left > 0)
        changed = jnp.where(swapped, bigger & ~_bit(card), hand)
        return n + 1, changed, jnp.where(here & swapped, card, stock)

    most = jnp.minimum(jnp.max(swaps), bits.shape[0])
    _, hand, stock = lax.while_loop(lambda carry: carry[0] < most, body, (jnp.int32(0), hand, stock))
    return hand, stock


def _bit(card: Array) -> Array:
    """Returns the suit masks that hold one card: int32[4]."""
    suits = np.arange(NUM_SUITS).reshape(-1, *(1,) * card.ndim)
    return jnp.where(suits == card // NUM_RANKS, jnp.left_shift(1, card % NUM_RANKS), 0)


def _flags(masks: Array) -> Array:
    """Returns the cards of suit masks: bool[52]."""
    ranks = np.arange(NUM_RANKS).reshape(-1, *(1,) * (masks.ndim - 1))
    return ((masks[:, None] >> ranks) & 1 == 1).reshape(NUM_CARDS, *masks.shape[1:])


def _discard(masks: Array, banned: Array | int, kept: Array | bool = False) -> tuple[Array, Array]:
    """Returns the card to discard of eleven, and the deadwood that leaves: int32 each."""
    left = melds.deadwood_after_discard(masks).reshape(NUM_CARDS, *masks.shape[1:])
    column = (-1, *(1,) * (left.ndim - 1))
    ids, values = np.arange(NUM_CARDS).reshape(column), _VALUES.reshape(column)
    allowed = (left < melds.NOT_HELD) & (ids != banned) & ~jnp.asarray(kept)
    # One number holds all: what is left, then the points, then the lowest card.
    score = (left * _MORE_THAN_ANY_VALUE - values + _MORE_THAN_ANY_VALUE) * 64 + ids
    best = jnp.min(jnp.where(allowed, score, _UNWANTED), axis=0)
    return best % 64, (best // 64) // _MORE_THAN_ANY_VALUE


def _choose(flag: Array, one: PlayoutState, two: PlayoutState) -> PlayoutState:
    return PlayoutState(*(jnp.where(flag, a, b) for a, b in zip(one, two, strict=True)))


def _drawn(rules: GinRules, state: PlayoutState, next_card: Array, takes: Array) -> PlayoutState:
    """Returns the state after a draw from the pile or the stock."""
    actions = state.actions + 1
    return state._replace(
        mine=state.mine | _bit(jnp.where(takes, state.top, next_card)),
        place=state.place + ~takes,
        left=state.left - ~takes,
        taken=jnp.where(takes, state.top, -1),
        phase=jnp.full_like(state.phase, DISCARD),
        actions=actions,
        ending=jnp.where(actions >= rules.max_actions, DEAD, PLAYING).astype(jnp.int32),
    )


def _discarded(rules: GinRules, state: PlayoutState, card: Array, knocks: Array) -> PlayoutState:
    """Returns the state after a discard; the other player is to act unless it ends the round."""
    mine = state.mine & ~_bit(card)
    actions = state.actions + 1
    dead = (state.left <= rules.stock_floor) | (actions >= rules.max_actions)
    return state._replace(
        mine=jnp.where(knocks, mine, state.other),
        other=jnp.where(knocks, state.other, mine),
        top=card,
        taken=jnp.full_like(state.taken, -1),
        phase=jnp.full_like(state.phase, DRAW),
        turn=jnp.where(knocks, state.turn, state.other_turn),
        other_turn=jnp.where(knocks, state.other_turn, state.turn + 1),
        actions=actions,
        first=state.first == knocks,
        ending=jnp.where(knocks, KNOCKED, jnp.where(dead, DEAD, PLAYING)).astype(jnp.int32),
    )


def _passed(rules: GinRules, state: PlayoutState) -> PlayoutState:
    """Returns the state after a pass of the first upcard."""
    actions = state.actions + 1
    return state._replace(
        mine=state.other,
        other=state.mine,
        phase=state.phase + 1,
        turn=state.other_turn,
        other_turn=state.turn,
        actions=actions,
        first=~state.first,
        ending=jnp.where(actions >= rules.max_actions, DEAD, PLAYING).astype(jnp.int32),
    )
