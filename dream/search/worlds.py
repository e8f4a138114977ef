"""What may be hidden, weighted by how likely the others' actions were: beliefs by importance sampling.

A world is a whole state that would have shown a player the same view. `Game.determinize` draws one uniformly; with c(w)
the chance of the deal and of every draw in a world w, the same for all of them, and pi the others' policy,

    P(w | view)  is proportional to  c(w) * product over the others' actions a so far of pi(a | their view then in w)

by Bayes' rule; the own actions are the same in all worlds and cancel out. `Game.likely_world` draws from another
density q, nearer to that one, and gives log 1/q, which is added. A mixture (1 - m) pi + m / (legal actions) stands for
pi, as nobody plays exactly by the policy that is believed in. `determinize` may fail to find a world that could be, and
then returns one on which some of the actions seen were not legal: its likelihood is 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from envs import Game, Policy
from envs.game import State, View

_LEAST_PROBABILITY = 1e-9
_HALVINGS = 24


class Belief(NamedTuple):
    """Worlds and what they weigh.

    Attributes:
      worlds: states [N].
      weights: float32[N], summing to one.
    """

    worlds: State
    weights: Array


def sample_belief(
    game: Game,
    policy: Policy,
    view: View,
    key: Array,
    *,
    count: int,
    mistakes: Array,
    least_effective: Array,
    likely: bool,
) -> Belief:
    """Draws worlds and weighs them.

    Args:
      game: two-player or more, with `determinize` and `replay_actions`.
      policy: the others'.
      view: of the player whose belief it is.
      key: consumed.
      count: N.
      mistakes: m, float32.
      least_effective: effective number of worlds that the weights are softened to leave, as of `tempered`.
      likely: whether worlds are drawn by `Game.likely_world`; else by `Game.determinize`.
    """
    worlds, corrections = drawn_worlds(game, view, key, count, likely)
    seat = view.seat.astype(jnp.int32)
    logs = jax.vmap(lambda world: log_likelihood(game, policy, world, seat, mistakes))(worlds)
    return Belief(worlds, tempered(logs + corrections, least_effective))


def drawn_worlds(game: Game, view: View, key: Array, count: int, likely: bool) -> tuple[State, Array]:
    """Draws worlds, and the logarithms of the weights that make them uniform: states [N], float32[N]."""
    keys = jax.random.split(key, count)
    if likely:
        return jax.vmap(lambda one: game.likely_world(view, one))(keys)
    return jax.vmap(lambda one: game.determinize(view, one))(keys), jnp.zeros(count, jnp.float32)


def log_likelihood(game: Game, policy: Policy, world: State, seat: Array, mistakes: Array | float) -> Array:
    """Returns the logarithm of the probability of the others' actions that led to a world: float32.

    -inf of a world that contradicts its own actions: one of them, anyone's, was not legal, or another player is to act.

    Args:
      game: with `replay_actions`.
      policy: the others'.
      world: a state in play.
      seat: int32, of the player whose own actions do not count.
      mistakes: m, the share of uniform play in theirs.
    """
    deal, actions, count = game.replay_actions(world)

    def body(carry: tuple[Array, State, Array, Array, Array]) -> tuple[Array, State, Array, Array, Array]:
        n, state, counted, log, fine = carry

        def passes(at: tuple[Array, State, Array, Array]) -> Array:
            # The others' action that has been counted is taken, and the own ones after it.
            return (at[0] < count) & (at[2] | (at[1].current_player == seat))

        def take(at: tuple[Array, State, Array, Array]) -> tuple[Array, State, Array, Array]:
            n, state, _, fine = at
            fine = fine & game.legal_actions(state)[actions[n]]
            return n + 1, game.step(state, actions[n])[0], jnp.bool_(False), fine

        n, state, _, fine = lax.while_loop(passes, take, (n, state, counted, fine))
        legal = game.legal_actions(state)
        probs = policy(game.view(state, jnp.maximum(state.current_player, 0)), legal)
        mixed = (1 - mistakes) * probs[actions[n]] + mistakes / jnp.maximum(jnp.sum(legal), 1)
        gained = jnp.where(n < count, jnp.log(jnp.maximum(mixed, _LEAST_PROBABILITY)), 0.0)
        return n, state, jnp.bool_(True), log + gained, fine & (legal[actions[n]] | (n == count))

    start = jnp.int32(0), deal, jnp.bool_(False), jnp.float32(0), jnp.bool_(True)
    n, state, _, log, fine = lax.while_loop(lambda carry: carry[0] + carry[2] < count, body, start)
    last = game.step(state, actions[n])[0].current_player
    ends = jnp.where(n < count, last, state.current_player) == world.current_player
    return jnp.where(fine & ends, log, -jnp.inf)


def tempered(logs: Any, least_effective: Any) -> Array:
    """Returns weights proportional to exp(b logs), with the largest b <= 1 that leaves enough effective worlds.

    With b = 1 a few worlds may have all the weight, and what is believed is then one guess, certain of itself.

    Args:
      logs: float32[N], log-likelihoods; -inf weighs 0, unless all are that.
      least_effective: of (sum w)^2 / sum w^2; N or more makes all weights equal.
    Returns:
      float32[N], summing to one.
    """
    logs = jnp.asarray(logs, jnp.float32)
    most = jnp.max(logs)
    logs = jnp.where(most == -jnp.inf, 0.0, logs - most)

    def enough(power: Array) -> Array:
        weights = jnp.exp(power * logs)
        return jnp.sum(weights) ** 2 >= least_effective * jnp.sum(weights**2)

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        is_enough = enough(middle)
        return jnp.where(is_enough, middle, low), jnp.where(is_enough, high, middle)

    low, _ = lax.fori_loop(0, _HALVINGS, halve, (jnp.float32(0), jnp.float32(1)))
    power = jnp.where(enough(jnp.float32(1)), 1.0, low)
    weights = jnp.where(logs == -jnp.inf, 0.0, jnp.exp(power * logs))
    return weights / jnp.sum(weights)
