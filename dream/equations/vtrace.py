"""Off-policy value estimates of regularised games: v-trace per player, and NeuRD's action values from them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax


class Traced(NamedTuple):
    """Estimates at each decision, to the player who took it.

    Attributes:
      values: float[T], G.
      action_values: float[T, A], Q; 0 at illegal actions.
    """

    values: Array
    action_values: Array


def vtrace(
    rewards: Array, dones: Array, players: Array, actions: Array, values: Array, policy: Array, behaviour: Array,
    bonus: Array, *, clip: float,
) -> Traced:  # fmt: skip
    """Returns v-trace estimates of a stream of games between two players, in the game of transformed rewards.

    Whoever decides at t and takes a gets r_p(t) + b(a), the other r_o(t) - b(a), b(a) = -eta log(pi(a) / rho(a)).
    Backwards, X_p what p gets from t + 1 on, X_p = 0 after the end; w = pi(a) / mu(a) and w_c = min(w, c):

        p decides:      Q(a') = b(a') + V + [a' = a] (r_p + X_p - V) / mu(a)  for every legal a'
                        G     = V + w_c (b(a) + r_p + X_p - V),  X_p <- G
        the other does: X_p <- w (r_p - b(a) + X_p)

    Without c the expectation of Q(a) given a history is its value under pi, whatever V and mu.

    Args:
      rewards: float[T, 2], the game's own.
      dones: bool[T], whether transition t ended a game; the last one does.
      players: int[T], who decided.
      actions: int[T].
      values: V, float[T], to who decided.
      policy: pi, float[T, A], 0 at illegal actions.
      behaviour: mu(a), float[T], of the action taken.
      bonus: b, float[T, A], 0 at illegal actions.
      clip: c.
    Source: Espeholt et al. 2018, eq. 1, with one bound for both of its weights; Perolat et al. 2022, "Mastering the
      game of Stratego", supplement, for two players in turn and for Q.
    """

    def backwards(ahead: Array, step: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        reward, done, player, action, value, pi, mu, b = step
        ahead = reward + jnp.where(done, 0.0, ahead)
        decides = np.arange(2) == player
        later = jnp.sum(jnp.where(decides, ahead, 0.0))
        ratio = pi[action] / mu
        taken = jax.nn.one_hot(action, pi.shape[0], dtype=pi.dtype)
        q = jnp.where(pi > 0, b + value + taken * (later - value) / mu, 0.0)
        traced = value + jnp.minimum(ratio, clip) * (b[action] + later - value)
        return jnp.where(decides, traced, ratio * (ahead - b[action])), (traced, q)

    steps = (rewards, dones, players, actions, values, policy, behaviour, bonus)
    return Traced(*lax.scan(backwards, jnp.zeros(2, rewards.dtype), steps, reverse=True)[1])


def neurd_loss(
    logits: Array, policy: Array, action_values: Array, legal: Array, *, threshold: float, clip: float
) -> Array:
    """Returns NeuRD's loss, whose gradient by a legal logit is the mean legal advantage less its own: float32[...].

        loss = - sum over legal a of y(a) A(a),  A(a) = clip(Q(a) - sum over b of pi(b) Q(b)), y the centred logits,

    with A(a) put to 0 where it would drive y(a) further beyond +-threshold. As y is centred, others' advantages still
    move y(a) there.

    Args:
      logits: float32[..., A]; the rest is taken as constant.
      policy: float32[..., A], 0 at illegal actions.
      action_values: float32[..., A].
      legal: bool[..., A].
      threshold: beta.
      clip: bound on |A(a)|.
    Source: Hennes et al. 2020, "Neural replicator dynamics", section 3; Perolat et al. 2022, supplement (threshold).
    """
    count = jnp.maximum(jnp.sum(legal, axis=-1, keepdims=True), 1)
    centred = jnp.where(legal, logits - jnp.sum(jnp.where(legal, logits, 0.0), axis=-1, keepdims=True) / count, 0.0)
    advantages = action_values - jnp.sum(policy * action_values, axis=-1, keepdims=True)
    advantages = jnp.clip(advantages, -clip, clip)
    beyond = jnp.where(advantages > 0, centred > threshold, centred < -threshold)
    advantages = lax.stop_gradient(jnp.where(legal & ~beyond, advantages, 0.0))
    return -jnp.sum(centred * advantages, axis=-1)
