"""Discounted returns of interleaved players."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def lambda_returns(
    rewards: Array, dones: Array, players: Array, values: Array, *, discount: Array | float, gae_lambda: float
) -> Array:
    """Returns each decision's lambda-return to the player who took it.

    Walking one stream of transitions backwards, for every player p at once:
      G_p(t) = r_p(t) + discount(t) * W_p(t + 1), W_p = 0 after the end of a game,
      W_p(t) = (1 - gae_lambda) * V(s_t) + gae_lambda * G_p(t) where p decides at t, else G_p(t).
    So rewards that come on the other's moves count, each transition with its discount, and p's own decisions are the
    steps of the lambda-return. gae_lambda = 1 is the plain discounted return.

    Args:
      rewards: float32[T, P], paid on transition t.
      dones: bool[T], whether transition t ended a game; the last one does.
      players: int32[T], who decided at t; -1: nobody whose value is known, a move of the environment.
      values: float32[T], V(s_t) to that player.
      discount: in [0, 1], of all transitions or float32[T], of each.
      gae_lambda: lambda in [0, 1].
    Returns:
      float32[T], G of the player who decided at t; 0 where nobody did.
    Source: Sutton and Barto 2018, eq. 12.18, with the other player's moves as part of the environment.
    """

    def backwards(ahead: Array, step: tuple[Array, ...]) -> tuple[Array, Array]:
        reward, done, player, value, gamma = step
        returns = reward + gamma * jnp.where(done, 0.0, ahead)
        decides = np.arange(rewards.shape[1]) == player
        ahead = jnp.where(decides, (1 - gae_lambda) * value + gae_lambda * returns, returns)
        return ahead, jnp.sum(jnp.where(decides, returns, 0.0))

    discounts = jnp.broadcast_to(jnp.asarray(discount, rewards.dtype), dones.shape)
    stream = (rewards, dones, players, values, discounts)
    return lax.scan(backwards, jnp.zeros(rewards.shape[1], rewards.dtype), stream, reverse=True)[1]


def lambda_returns_over_all(
    rewards: Array, dones: Array, players: Array, values: Array, *, discount: Array | float, gae_lambda: float
) -> Array:
    """Returns lambda-returns in a zero-sum game for two whose steps are the decisions of both players.

    With sign 1 where player 0 decides and -1 where player 1 does, and V what the player who decides expects:
      G(t) = sign(t) G_0(t),
      G_0(t) = r_0(t) + discount(t) * ((1 - gae_lambda) * sign(t + 1) V(s_(t+1)) + gae_lambda * G_0(t + 1)).
    V of the other's decision is conditional on what the other sees. Averaged over what a player does not see, it is not
    that player's expectation: with gae_lambda < 1 exact values leave a bias in games of imperfect information.

    Args:
      rewards, dones, players, values, discount, gae_lambda: as of `lambda_returns`; every decision's value is known.
    Returns:
      float32[T], G to the player who decided at t.
    Source: Rudolph et al. 2026, "Reevaluating policy gradient methods for imperfect-information games", its code.
    """
    sign = jnp.where(players == 0, 1.0, -1.0)
    of_one = jnp.zeros_like(players)
    return sign * lambda_returns(rewards[:, :1], dones, of_one, sign * values, discount=discount, gae_lambda=gae_lambda)


def expected_sarsa(
    rewards: Array,
    dones: Array,
    taken: Array,
    values: Array,
    ratios: Array | None = None,
    *,
    discount: float,
    gae_lambda: float,
) -> Array:
    """Returns each decision's lambda-return from action values, the policy averaged over wherever it is bootstrapped.

        delta_t = r_t + gamma V(h_{t+1}) - Q(h_t, a_t),  V = 0 after the end,
        G_t     = Q(h_t, a_t) + sum over k >= t of (gamma lambda)^(k - t) rho_{t+1} ... rho_k delta_k

    With exact Q and V nothing varies in G_t but chance, whatever lambda. lambda = 1 is the plain discounted return plus
    V - Q of every later decision, a control variate that any Q makes unbiased. In games by another policy mu the ratios
    rho = pi(a) / mu(a) of later decisions keep that so; with lambda = 0 none is needed.

    Args:
      rewards: float32[T], to one player, paid on transition t.
      dones: bool[T], whether transition t ended a game; the last one does.
      taken: float32[T], Q(h_t, a_t) to that player, whoever decides.
      values: float32[T], V(h_t) = sum over a of pi(a | h_t) Q(h_t, a).
      ratios: float32[T], rho; None: pi played.
      discount: gamma in [0, 1].
      gae_lambda: lambda in [0, 1].
    Returns:
      float32[T], G to that player.
    Source: Fan and Farina 2026, "GAE falls short in imperfect-information self-play reinforcement learning", section 4;
      van Seijen et al. 2009 (expected SARSA); ratios: Jiang and Li 2016, eq. 10.
    """

    def backwards(ahead: tuple[Array, Array], step: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        correction, value_after = ahead
        reward, done, q, value, *ratio = step
        delta = reward + discount * jnp.where(done, 0.0, value_after) - q
        correction = delta + discount * gae_lambda * jnp.where(done, 0.0, correction)
        return (ratio[0] * correction if ratio else correction, value), q + correction

    nothing = jnp.zeros((), values.dtype)
    steps = (rewards, dones, taken, values, *(() if ratios is None else (ratios,)))
    return lax.scan(backwards, (nothing, nothing), steps, reverse=True)[1]
