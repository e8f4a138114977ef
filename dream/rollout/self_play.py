"""Self-play: thousands of games at once, each lane starting a new game when its last one ends, recorded as views."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.compiled import devices
from dream.compiled.bounded import long_loop
from envs import EnumerableGame, Game, InputError
from envs.batching import where_needed
from envs.totals import settled, tied


class Outcomes(NamedTuple):
    """All that an action could lead to, leading axis [K], as EnumerableGame.outcomes gives it.

    Attributes:
      views: what all players see there, [K, P].
      legal: bool[K, A].
      player: int8[K], who decides there.
      chance: float32[K], 0 for padding.
      rewards: float32[K, P].
      done: bool[K].
    """

    views: Any
    legal: Array
    player: Array
    chance: Array
    rewards: Array
    done: Array


class Decision(NamedTuple):
    """One transition of one game, as recorded; in a Record every field has leading axes [T, lanes].

    Attributes:
      view: what the player who decided saw.
      legal: uint8[ceil(A / 8)], the legal actions, packed by jnp.packbits.
      player: int8, who decided.
      action: int16.
      rewards: float32[P], the game's own, paid on the transition.
      potentials: float32[2, P], the game's potential before and after.
      auxiliary: float32, game.auxiliary for the player who decided, before the transition.
      done: bool, whether the transition ended the game.
      phase: int8, index into game.phases.
      extras: what the actor outputs besides the action.
      views: what all players saw, leading axis [P], where asked for; else None.
      outcomes: all that the action could have led to, where asked for; else None.
      paid: float32[P], what the game has paid up to and with the transition; None where it pays at its end alone.
    """

    view: Any
    legal: Array
    player: Array
    action: Array
    rewards: Array
    potentials: Array
    auxiliary: Array
    done: Array
    phase: Array
    extras: Any
    views: Any = None
    outcomes: Outcomes | None = None
    paid: Array | None = None


class Record(NamedTuple):
    """What self-play recorded.

    Attributes:
      decisions: Decision, [T, lanes, ...]; meaningless where not valid.
      valid: bool[T, lanes].
      results: float32 by name, sums over finished games: the mean of game.result over the seats that are counted,
        `tie_rate` (games nobody won), and `games`, which counts them.
    """

    decisions: Decision
    valid: Array
    results: dict[str, Array]


class Actor(NamedTuple):
    """How self-play chooses actions; one lane's functions.

    Attributes:
      start: key -> carry, at a deal.
      act: (carry, view, legal bool[A], player, key) -> (action int32, carry, extras).
      counted: carry -> bool[P], whose results are reported; None: those of all seats.
    """

    start: Callable[[Array], Any]
    act: Callable[[Any, Any, Array, Array, Array], tuple[Array, Any, Any]]
    counted: Callable[[Any], Array] | None = None


class _Lanes(NamedTuple):
    """The loop's carry: the lanes' games, their actors' carries, which are free, the next game, what was recorded."""

    states: Any
    paid: Array
    actor_carries: Any
    free: Array
    next_game: Array
    record: Decision
    valid: Array
    results: dict[str, Array]
    t: Array


def num_envs_for(num_envs: int | None, games: int, setting: str = "episodes_per_iteration") -> int:
    """Returns the lanes asked for, by default one per game; `setting` is where the number of games stands.

    Raises:
      InputError: more lanes than games.
    """
    if num_envs is not None and num_envs > games:
        raise InputError(f"algo.num_envs={num_envs} is more than algo.{setting}={games}")
    return num_envs or games


def longest(game: Game, games: int, num_envs: int) -> int:
    """Returns the most steps that `games` games in `num_envs` lanes can take; a free lane takes the next game."""
    return game.max_length * (-(-games // num_envs) + (games > num_envs))


def play(
    game: Game, actor: Actor, key: Array, *, games: int, num_envs: int, all_views: bool = False, outcomes: bool = False
) -> Record:
    """Plays exactly `games` whole games in `num_envs` lanes (jit the caller).

    Game g is dealt with key fold_in(deal key, g), whichever lane plays it. A lane that finishes takes the next game,
    so that lanes are idle only at the very end and no game is cut off.

    Args:
      game: the game.
      actor: chooses for all players.
      key: consumed.
      games: at least `num_envs`.
      num_envs: games in play at once.
      all_views: whether to record what every player saw at each decision, not only who decided.
      outcomes: whether to record all that each action could have led to, of an EnumerableGame.
    """
    deal_key, start_key, act_key = jax.random.split(key, 3)
    steps = longest(game, games, num_envs)
    blank = jax.eval_shape(lambda: (game.init(deal_key), jnp.zeros(game.num_players), actor.start(start_key)))
    one = functools.partial(_decide, game, actor, all_views, outcomes)
    decide = jax.vmap(one)

    def deal(needed: Array, state: Any, number: Array) -> Any:
        return where_needed(needed, lambda key, n: game.init(jax.random.fold_in(key, n)), state, deal_key, number)

    def start(number: Array) -> Any:
        return actor.start(jax.random.fold_in(start_key, number))

    def turn(deals: Array, place: Array, states: Any, paid: Array, carries: Any, keys: Array) -> tuple:
        states, paid = jax.vmap(deal)(deals, states, place), jnp.where(deals[:, None], 0.0, paid)
        return decide(states, paid, _select(deals, jax.vmap(start)(place), carries), keys)

    def body(at: _Lanes) -> _Lanes:
        place = at.next_game + jnp.cumsum(at.free) - 1
        deals = at.free & (place < games)
        playing = deals | ~at.free
        keys = jax.random.split(jax.random.fold_in(act_key, at.t), num_envs)
        before = at.states, at.paid, at.actor_carries
        states, paid, carries, decision, result = devices.by_lane(turn, deals, place, *before, keys)
        finished = playing & decision.done
        sums = {name: jnp.sum(jnp.where(finished, x, 0.0)) for name, x in result.items()}
        return _Lanes(
            states=states,
            paid=paid,
            actor_carries=carries,
            free=finished | ~playing,
            next_game=at.next_game + jnp.sum(deals, dtype=jnp.int32),
            record=jax.tree.map(lambda rows, row: rows.at[at.t].set(row), at.record, decision),
            valid=at.valid.at[at.t].set(playing),
            results={name: at.results[name] + total for name, total in sums.items()},
            t=at.t + 1,
        )

    def first() -> _Lanes:
        return _at_start(blank, jax.eval_shape(one, *blank, act_key), steps, num_envs)

    end = long_loop(lambda at: (at.next_game < games) | ~jnp.all(at.free), body, first)
    return Record(end.record, end.valid, end.results)


def _at_start(blank: tuple[Any, Any, Any], decided: tuple[Any, ...], steps: int, num_envs: int) -> _Lanes:
    """Returns the loop's carry before the first deal, from the shapes of a deal and of what a decision gives."""
    *_, decision, result = decided
    return _Lanes(
        states=devices.split(_zeros(blank[0], num_envs)),
        paid=devices.split(_zeros(blank[1], num_envs)),
        actor_carries=devices.split(_zeros(blank[2], num_envs)),
        free=jnp.ones(num_envs, bool),
        next_game=jnp.int32(0),
        record=devices.split(_zeros(decision, steps, num_envs), axis=1),
        valid=devices.split(jnp.zeros((steps, num_envs), bool), axis=1),
        results=_zeros(result),
        t=jnp.int32(0),
    )


def _zeros(tree: Any, *axes: int) -> Any:
    """Returns zeros of a tree's dtypes and shapes, some axes put first."""
    return jax.tree.map(lambda x: jnp.zeros((*axes, *x.shape), x.dtype), tree)


def _select(chosen: Array, new: Any, old: Any) -> Any:
    """Returns `new` in the chosen lanes, `old` in the others."""
    return jax.tree.map(lambda x, y: jnp.where(chosen.reshape((-1,) + (1,) * (x.ndim - 1)), x, y), new, old)


def _decide(
    game: Game, actor: Actor, all_views: bool, outcomes: bool, state: Any, paid: Array, carry: Any, key: Array
) -> tuple[Any, Array, Any, Decision, dict]:
    """Plays one decision of one game: the next state, what was paid, carry, record, and the result if it ended."""
    player = state.current_player
    view, legal = game.view(state, player), game.legal_actions(state)
    action, carry, extras = actor.act(carry, view, legal, player, key)
    after, rewards, done = game.step(state, action)
    paid = paid + rewards
    earned = settled(game, paid)
    seats = jnp.arange(game.num_players)
    potentials = jnp.stack([jax.vmap(lambda p, s=s: game.potential(s, p))(seats) for s in (state, after)])
    decision = Decision(
        view=view,
        legal=jnp.packbits(legal),
        player=player.astype(jnp.int8),
        action=action.astype(jnp.int16),
        rewards=rewards,
        potentials=potentials,
        auxiliary=game.auxiliary(state, player) if game.auxiliary else jnp.float32(0),
        done=done,
        phase=game.phase(state).astype(jnp.int8),
        extras=extras,
        views=jax.vmap(lambda p: game.view(state, p))(seats) if all_views else None,
        outcomes=_outcomes(game, state, action) if outcomes else None,
        paid=None if game.pays_at_end else earned,
    )
    each = jax.vmap(lambda p: game.result(after, p))(seats)
    counted = np.ones(game.num_players) if actor.counted is None else actor.counted(carry)
    result = {name: jnp.average(value, weights=counted) for name, value in each.items()}
    result |= {"games": jnp.float32(1), "tie_rate": tied(earned).astype(jnp.float32)}
    return after, paid, carry, decision, result


def _outcomes(game: EnumerableGame, state: Any, action: Array) -> Outcomes:
    """Returns what an action can lead to."""
    states, chance, rewards, done = game.outcomes(state, action)
    seats = jnp.arange(game.num_players)
    views = jax.vmap(lambda state: jax.vmap(lambda p: game.view(state, p))(seats))(states)
    legal = jax.vmap(game.legal_actions)(states)
    return Outcomes(views, legal, states.current_player.astype(jnp.int8), chance, rewards, done)
