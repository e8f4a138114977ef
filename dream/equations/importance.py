"""Returns and weights of a policy pi from games that were played by another one, mu."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax


def reach_ratios(ratios: Array, dones: Array, players: Array, num_players: int) -> tuple[Array, Array]:
    """Returns how much likelier a game's earlier actions are under pi than under mu, the player's own and the others'.

        own(t) = product over earlier decisions k of the game by the player who decides at t of pi(a_k) / mu(a_k)
        others(t) = the same product over the decisions of all other players

    Weighted by `others`, an information set holds its histories as often as in games by pi; the player's own actions
    are known in it and change nothing there. Weighted by both, it is also met as often.

    Args:
      ratios: float32[T], pi(a_t) / mu(a_t).
      dones: bool[T], whether transition t ended a game.
      players: int32[T], who decided at t.
      num_players: P.
    Returns:
      (own float32[T], others float32[T]), at least 0; 1 where all play by pi.
    Source: the importance weights of outcome sampling (Lanctot et al. 2009, section 3.2), in two parts.
    """
    seats = np.arange(num_players)

    def forwards(reach: Array, step: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        ratio, done, player = step
        mine = seats == player
        found = jnp.prod(jnp.where(mine, reach, 1.0)), jnp.prod(jnp.where(mine, 1.0, reach))
        return jnp.where(done, 1.0, jnp.where(mine, reach * ratio, reach)), found

    return lax.scan(forwards, jnp.ones(num_players), (ratios, dones, players))[1]


def corrected_value_targets(values: Array, returns: Array, ratios: Array) -> Array:
    """Returns V + rho (G - V), whose mean over actions drawn from mu is the value under pi: float32[...].

    G itself, fitted to, gives the value under mu. `corrected_lambda_returns` with a lambda below 1 needs that under pi.

    Args:
      values: float32[...], V(s_t) to the player who decided; any function of s_t.
      returns: float32[...], G of the action taken.
      ratios: float32[...], rho, pi(a_t) / mu(a_t).
    """
    return values + ratios * (returns - values)


def corrected_lambda_returns(
    rewards: Array, dones: Array, players: Array, values: Array, ratios: Array, *, discount: float, gae_lambda: float
) -> Array:
    """Returns each decision's lambda-return under pi to the player who took it, from games by mu.

    As `dream.equations.returns.lambda_returns`, each later decision k corrected by rho_k = pi(a_k) / mu(a_k):
      G_p(t) = r_p(t) + discount * W_p(t + 1), W_p = 0 after the end of a game,
      W_p(k) = V(s_k) + gae_lambda * rho_k * (G_p(k) - V(s_k)) where p decides at k,
      W_p(k) = V_p + rho_k * (G_p(k) - V_p) where another does, V_p the value of p's last decision before k.
    As rho has mean 1 under mu, any V leaves the mean of G at gae_lambda = 1 what it is under pi; a good one leaves
    little to rho. Below 1 the mean is that under pi where V is. Mixing in uniform play with a share epsilon bounds rho
    by 1 / (1 - epsilon).

    Args:
      rewards: float32[T, P], paid on transition t.
      dones: bool[T], whether transition t ended a game; the last one does.
      players: int32[T], who decided at t.
      values: float32[T], V(s_t) to that player.
      ratios: float32[T], rho.
      discount: in [0, 1].
      gae_lambda: lambda in [0, 1].
    Returns:
      float32[T], G of the player who decided at t.
    Source: V-trace without its bounds (Espeholt et al. 2018, eq. 1), which is per-decision importance sampling with a
      control variate (Jiang and Li 2016, eq. 10). Deviation: a zero-sum game's other players are corrected for too.
    """
    seats = np.arange(rewards.shape[1])

    def forwards(last: Array, step: tuple[Array, ...]) -> tuple[Array, Array]:
        done, player, value = step
        now = jnp.where(seats == player, value, last)
        return jnp.where(done, 0.0, now), now

    def backwards(ahead: Array, step: tuple[Array, ...]) -> tuple[Array, Array]:
        reward, done, player, ratio, known = step
        returns = reward + discount * jnp.where(done, 0.0, ahead)
        decides = seats == player
        share = ratio * jnp.where(decides, gae_lambda, 1.0)
        return known + share * (returns - known), jnp.sum(jnp.where(decides, returns, 0.0))

    nothing = jnp.zeros(rewards.shape[1])
    known = lax.scan(forwards, nothing, (dones, players, values))[1]
    return lax.scan(backwards, nothing, (rewards, dones, players, ratios, known), reverse=True)[1]
