"""What a player of rummy 500 cannot see, dealt anew.

Cards that never showed are exchangeable: each is as likely in the stock as in any other hand, in proportion to how many
unknown cards are there. Once an empty stock has been made of the pile that is no longer so, and the game must say no.

Who has taken a card that must still be played holds what it takes: hands that lack it are dealt again, up to a bound.

A view does not show which of the own cards the others saw taken; in the state that is made they know of none.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.batching import where_needed
from envs.gin_rummy.core.rejection import first_accepted
from envs.rummy500 import actions, plays
from envs.rummy500.rules import RummyRules
from envs.rummy500.state import HAND, IN_RUN, IN_SET, NONE, PILE, STOCK, RummyState, RummyView, table_of

_IDS = np.arange(cards.NUM_CARDS)


def sample(num_players: int, view: RummyView, key: Array, rules: RummyRules) -> RummyState:
    """Draws a state uniformly among those that would look the same.

    Args:
      num_players: at the table.
      view: of any player, in play.
      key: consumed.
      rules: by which a card that another has taken can be played.
    Returns:
      The RummyState; seen by view.seat it is bit for bit the one that was seen. Its deck begins with the cards that
      have left the stock, in no order that means anything.
    """
    state, fits = _dealt(num_players, view, key), functools.partial(_can_meet_duty, rules)

    def again(seen: RummyView, one: Array) -> RummyState:
        return first_accepted(functools.partial(_dealt, num_players, seen), fits, one)[0]

    return where_needed(~fits(state), again, state, view, jax.random.fold_in(key, 1))


def _can_meet_duty(rules: RummyRules, state: RummyState) -> Array:
    """Returns whether the player to act can play the card it has taken, or has none to play."""
    table, direction = table_of(state), state.duty_direction
    lay = plays.plays(rules, table, plays.Duty(state.duty, direction, state.duty_backed))
    # Of a chain begun from the hand the next link is held; else it could not have been begun.
    ends = np.arange(lay.shape[0]) + actions.SET
    ends = (ends >= actions.LOW_END) & (ends < actions.DISCARD)
    can = jnp.any(lay & (ends | ~(jnp.any(state.duty_backed) & (direction == 0))))
    return (state.duty < 0) | (can & ((direction == 0) | _goes_on(table, state.duty, direction)))


def _goes_on(table: plays.Cards, card: Array, direction: Array) -> Array:
    """Returns whether the chain from `card` on over cards held reaches one that was in hand before, and one is left."""
    place = jnp.where((card % 13 == 0) & (direction > 0), 13, card % 13) + direction * np.arange(13)
    rows = [one[jnp.maximum(card, 0) // 13, place % 13] & (place >= 0) & (place <= 13)
            for one in (table.hand, table.fresh)]  # fmt: skip
    links = jnp.argmax(rows[0]) + 1
    reached = jnp.all(rows[0] | rows[1] | (np.arange(13) >= links)) & jnp.any(rows[0])
    return reached & (jnp.sum(table.hand | table.fresh) > links)


def _dealt(num_players: int, view: RummyView, key: Array) -> RummyState:
    """Deals the cards that are not seen."""
    seat = view.seat.astype(jnp.int32)
    zone, hidden = _zones(num_players, view, seat)
    order = jnp.argsort(jnp.where(hidden, jax.random.uniform(key, (cards.NUM_CARDS,)), 2.0))
    known = jnp.stack([jnp.sum(view.holder == step) for step in range(num_players)])
    wanted = jnp.where(np.arange(num_players) == 0, 0, view.sizes - known).astype(jnp.int32)
    ends = jnp.cumsum(wanted)
    step = jnp.sum(_IDS[:, None] >= ends, axis=1)  # place in `order` -> whose card it is; num_players: of the stock
    place = jnp.where(step < num_players, HAND + (seat + step) % num_players, STOCK)
    dealt = jnp.zeros(cards.NUM_CARDS, jnp.int32).at[order].set(place)
    zone = jnp.where(hidden, dealt, zone)
    noise = jnp.zeros(cards.NUM_CARDS).at[order].set(_IDS / np.float32(cards.NUM_CARDS))
    deck = jnp.argsort(jnp.where(zone == STOCK, 1.0 + noise, 0.0))
    return _state(num_players, view, seat, zone, deck)


def _zones(num_players: int, view: RummyView, seat: Array) -> tuple[Array, Array]:
    """Returns where the cards that are seen are, int32[52], and which are not, bool[52]."""
    own, sets, runs = (cards.to_cards(masks) for masks in (view.hand, view.sets, view.runs))
    holder = view.holder.astype(jnp.int32)
    seen = [own, sets, runs, view.position != NONE, view.holder != NONE]
    places = [HAND + seat, IN_SET, IN_RUN, PILE, HAND + (seat + holder) % num_players]
    return jnp.select(seen, [jnp.broadcast_to(jnp.int32(p), (cards.NUM_CARDS,)) for p in places], STOCK), ~(
        seen[0] | seen[1] | seen[2] | seen[3] | seen[4]
    )


def _state(num_players: int, view: RummyView, seat: Array, zone: Array, deck: Array) -> RummyState:
    """Returns the state of a view with every card in its zone."""
    relative = (np.arange(num_players) - seat) % num_players
    small = {name: getattr(view, name).astype(jnp.int32) for name in ("owner", "position", "duty", "to_act")}
    direction = view.duty_direction.astype(jnp.int32)
    return RummyState(
        zone=zone.astype(jnp.int8),
        owner=jnp.where(view.owner == NONE, -1, (small["owner"] + seat) % num_players).astype(jnp.int8),
        position=jnp.where(view.position == NONE, -1, small["position"]).astype(jnp.int8),
        seen=view.holder != NONE,
        fresh=cards.to_cards(view.fresh),
        deck=deck.astype(jnp.uint8),
        drawn=cards.NUM_CARDS - view.stock.astype(jnp.int32),
        ace_high=view.ace_high,
        points=view.points[relative].astype(jnp.int16),
        duty=jnp.where(view.duty == NONE, -1, small["duty"]),
        duty_direction=jnp.where(direction == 2, -1, direction),
        duty_backed=view.duty_backed,
        drew=view.drew,
        turns=view.turns.astype(jnp.int32),
        current_player=jnp.where(view.to_act == NONE, -1, (small["to_act"] + seat) % num_players),
        went_out=jnp.int32(-1),
    )
