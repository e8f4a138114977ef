"""Estimates of the regrets of the player p that a game was sampled for: one equation, one function.

All functions work on one lane of self-play, T transitions of games played one after the other; `done` marks the last
transition of each. Values and rewards are to p, and policies belong to whoever decides. p samples its own actions from
xi, everybody else from sigma.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from envs.random_play import uniform


def exploring(policy: Array, legal: Array, exploration: Array | float) -> Array:
    """Returns xi(a) = exploration / |A| + (1 - exploration) policy(a) over legal actions: float32[..., A]."""
    return exploration * uniform(legal).astype(policy.dtype) + (1 - exploration) * policy


def corrected_values(
    policy: Array, sampled: Array, action: Array, baseline: Array, rewards: Array, done: Array,
    expected_next: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Returns unbiased estimates of every action's value, from the one that was taken.

        u(h, a) = b(h, a)                                       where a was not taken,
        u(h, a) = b(h, a) + (r + u(h') - b(h, a)) / xi(a)       where it was, r and h' what came of it,
        u(h)    = sum over a of sigma(a) u(h, a);  0 after the end.

    For any b the expectation of u(h, a) given h is the exact value; with the exact values as b nothing but chance's
    later cards varies in it. What b expects of them can be taken out too: with

        c(h, a) = expectation over chance of r + b(h'),   b(h') = sum over a' of sigma(a') b(h', a'),

    r + u(h') becomes c(h, a) + u(h') - b(h'), and nothing at all varies with the exact values as b.

    Args:
      policy: sigma, float[T, A].
      sampled: what the action was sampled from, float[T, A]: xi at p's own decisions, sigma at others'.
      action: int[T].
      baseline: b, float[T, A].
      rewards: float[T].
      done: bool[T].
      expected_next: c at the actions taken, float[T]; None where chance is not enumerated.
    Returns:
      (u(h, a) float[T, A], u(h) float[T]).
    Source: Steinberger, Lerer and Brown 2020, "DREAM", eq. 6-7; Schmid et al. 2019, eq. 9-11; chance as in Davis et
      al. 2020, "Low-variance and zero-variance baselines for extensive-form games", section 4.
    """
    first = rewards if expected_next is None else expected_next

    def backwards(later: Array, step: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        sigma, xi, a, b, start, over = step
        values = b.at[a].add((start + jnp.where(over, 0.0, later) - b[a]) / xi[a])
        value = jnp.dot(sigma, values, precision="highest")
        return value if expected_next is None else value - jnp.dot(sigma, b, precision="highest"), (values, value)

    nothing = jnp.zeros((), baseline.dtype)
    return lax.scan(backwards, nothing, (policy, sampled, action, baseline, first, done), reverse=True)[1]


def traced_values(
    policy: Array, sampled: Array, action: Array, baseline: Array, rewards: Array, done: Array,
    trace: float, clip: float | None, expected_next: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Returns estimates of every action's value that trade the variance of long games for the baseline's error.

    With d(h, a) = r + u(h') - b(h, a) for the action a that was taken, and 0 for the others,

        u(h, a) = b(h, a) + min(1 / xi(a), clip) d(h, a),
        u(h)    = sum over b of sigma(b) b(h, b) + trace min(1, sigma(a) / xi(a)) d(h, a).

    Without a clip neither ratio is bounded. Trace 1 without a clip is `corrected_values`, which no baseline biases;
    clip 0 is the baseline alone. Between them, with D(h, a) the expectation of d(h, a) given h and a,

        expectation of u(h, a) = b(h, a) + min(1, clip xi(a)) D(h, a),
        expectation of u(h)    = sum over a of sigma(a) b(h, a) + trace min(xi(a), sigma(a)) D(h, a):

    exact for every trace and clip where b is (D = 0), and otherwise biased by the share of D that is left out.

    Args:
      policy, sampled, action, baseline, rewards, done, expected_next: as in `corrected_values`.
      trace: lambda, share of a correction that reaches the decision before, in [0, 1].
      clip: upper bound of 1 / xi(a), at least 0; None for no bound on either ratio.
    Returns:
      (u(h, a) float[T, A], u(h) float[T]).
    Source: Munos et al. 2016, "Safe and efficient off-policy reinforcement learning" (Retrace), eq. 3-4; here the
      first correction is that of DREAM, bounded apart from the trace.
    """
    first = rewards if expected_next is None else expected_next

    def backwards(later: Array, step: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        sigma, xi, a, b, start, over = step
        error = start + jnp.where(over, 0.0, later) - b[a]
        correction, ratio = 1 / xi[a], sigma[a] / xi[a]
        if clip is not None:
            correction, ratio = jnp.minimum(correction, clip), jnp.minimum(ratio, 1.0)
        below = trace * ratio * error
        value = jnp.dot(sigma, b, precision="highest") + below
        return value if expected_next is None else below, (b.at[a].add(correction * error), value)

    nothing = jnp.zeros((), baseline.dtype)
    return lax.scan(backwards, nothing, (policy, sampled, action, baseline, first, done), reverse=True)[1]


def regrets(values: Array, policy: Array, legal: Array) -> Array:
    """Returns r(a) = u(a) - sum over b of policy(b) u(b) at legal actions, 0 elsewhere: float[..., A]."""
    return jnp.where(legal, values - jnp.sum(policy * values, axis=-1, keepdims=True), 0.0)


def sampling_reach(factors: Array, own: Array, done: Array) -> Array:
    """Returns the product of the factors of p's own decisions of the same game before each transition: float[T].

    With factor xi(a) it is p's own sampling reach; with xi(a) |A| the same relative to uniform play. The number of
    legal actions on the way to an information set is a constant of it, so the second changes no expected regret by
    more than a positive factor of the set, which regret matching ignores, and keeps weights near 1.

    Args:
      factors: float[T], positive.
      own: bool[T], whether p decides.
      done: bool[T].
    """

    def forwards(reach: Array, step: tuple[Array, ...]) -> tuple[Array, Array]:
        factor, mine, over = step
        after = jnp.where(over, 1.0, reach * jnp.where(mine, factor, 1.0))
        return after.astype(reach.dtype), reach

    return lax.scan(forwards, jnp.ones((), factors.dtype), (factors, own, done))[1]


def effective_sample_size(weights: Array, valid: Array) -> Array:
    """Returns (sum of w)^2 / sum of w^2 as a share of the number of valid samples: float32 in (0, 1]."""
    weights = jnp.where(valid, weights, 0.0)
    count = jnp.maximum(jnp.sum(valid), 1)
    return jnp.sum(weights) ** 2 / jnp.maximum(count * jnp.sum(weights**2), 1e-30)
