"""Lambda-returns of two players whose moves alternate, against a slow reference."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dream.equations.returns import lambda_returns, lambda_returns_over_all

DISCOUNT = 0.9


def slow_returns(
    rewards: np.ndarray, dones: np.ndarray, players: np.ndarray, values: np.ndarray, discount: float, gae_lambda: float
) -> np.ndarray:
    """Forward view: each decision's return as the weighted sum of its n-step returns, game by game, player by player.

    With own decisions t = t_0 < t_1 < ... of a game that ends after move e, the n-step return is the discounted reward
    up to t_n plus the discounted V(t_n), and the last one the whole return; weights (1 - l) l^(n - 1) and the rest.
    """
    out = np.zeros(len(dones))
    for t in range(len(dones)):
        player, end = players[t], t + int(np.argmax(dones[t:]))
        own = [u for u in range(t + 1, end + 1) if players[u] == player]

        def upto(stop: int, t: int = t, player: int = player) -> float:
            return sum(discount ** (u - t) * rewards[u, player] for u in range(t, stop))

        steps = [upto(u) + discount ** (u - t) * values[u] for u in own]
        weights = [(1 - gae_lambda) * gae_lambda**n for n in range(len(own))]
        out[t] = sum(w * g for w, g in zip(weights, steps, strict=True)) + gae_lambda ** len(own) * upto(end + 1)
    return out


def streams(seed: int, length: int = 60) -> tuple[np.ndarray, ...]:
    """Returns a random stream of several games: rewards, dones, players, values; players now and then move twice."""
    rng = np.random.default_rng(seed)
    dones = rng.random(length) < 0.15
    dones[-1] = True
    players = rng.integers(0, 2, length)
    return rng.normal(size=(length, 2)).astype(np.float32), dones, players, rng.normal(size=length).astype(np.float32)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("discount", [DISCOUNT, 1.0])
def test_equals_the_slow_reference(gae_lambda: float, discount: float) -> None:
    """Random streams with several games a lane, both players, lanes side by side as a run has them."""
    lanes = [streams(seed) for seed in range(12)]
    assert all(lane[1].sum() > 3 for lane in lanes)
    batch = [jnp.stack([jnp.asarray(lane[n]) for lane in lanes], axis=1) for n in range(4)]
    found = jax.jit(
        jax.vmap(
            lambda r, d, p, v: lambda_returns(r, d, p, v, discount=discount, gae_lambda=gae_lambda),
            in_axes=1,
            out_axes=1,
        )
    )(*batch)
    for n, lane in enumerate(lanes):
        np.testing.assert_allclose(found[:, n], slow_returns(*lane, discount, gae_lambda), rtol=1e-4, atol=1e-5)


def test_each_transition_may_have_its_discount() -> None:
    """By hand: 1 + 0.5 (2 + 1 (4)), whoever decides."""
    rewards, players = np.array([[1], [2], [4]], np.float32), np.array([0, -1, 0])
    found = lambda_returns(
        rewards, np.array([False, False, True]), players, np.zeros(3, np.float32), discount=np.float32([0.5, 1, 0]),
        gae_lambda=1.0,
    )  # fmt: skip
    np.testing.assert_array_equal(found, [4, 0, 4])


def test_written_out() -> None:
    """Moves by 0, 1, 1, 0; the game pays on 1's moves too; then another game."""
    rewards = np.array([[1, -1], [2, -2], [0, 0], [4, -4], [8, -8]], np.float32)
    dones = np.array([False, False, False, True, True])
    players = np.array([0, 1, 1, 0, 1])
    values = np.array([10, 20, 30, 40, 50], np.float32)

    def returns(gae_lambda: float) -> np.ndarray:
        return np.asarray(lambda_returns(rewards, dones, players, values, discount=0.5, gae_lambda=gae_lambda))

    whole = [1 + 0.5 * 2 + 0.125 * 4, -2 - 0.25 * 4, -0.5 * 4, 4, -8]
    one_step = [1 + 0.5 * 2 + 0.125 * 40, -2 + 0.5 * 30, -0.5 * 4, 4, -8]
    np.testing.assert_allclose(returns(1.0), whole)
    np.testing.assert_allclose(returns(0.0), one_step)
    np.testing.assert_allclose(returns(0.5), (np.array(whole) + one_step) / 2)


def test_full_trace_is_the_plain_discounted_return() -> None:
    """With lambda 1 the values do not matter: the sum of the player's discounted rewards to the end of the game."""
    rewards, dones, players, values = streams(99)
    found = lambda_returns(rewards, dones, players, 1e3 * values, discount=DISCOUNT, gae_lambda=1.0)
    for t in range(len(dones)):
        end = t + int(np.argmax(dones[t:]))
        plain = sum(DISCOUNT ** (u - t) * rewards[u, players[t]] for u in range(t, end + 1))
        assert found[t] == pytest.approx(plain, abs=1e-4)


def test_over_all_decisions_is_generalised_advantage_estimation() -> None:
    """As the benchmark's code has it: player 0's rewards and values, one sum of errors, the sign of who decided."""
    rewards, dones, players, values = streams(5)
    rewards[:, 1] = -rewards[:, 0]
    found = lambda_returns_over_all(rewards, dones, players, values, discount=DISCOUNT, gae_lambda=0.8)
    sign = np.where(players == 0, 1.0, -1.0)
    of_zero, advantage, expected = sign * values, 0.0, np.zeros(len(dones))
    for t in reversed(range(len(dones))):
        goes_on = not dones[t]
        after = of_zero[t + 1] if goes_on else 0.0
        advantage = rewards[t, 0] + DISCOUNT * after - of_zero[t] + DISCOUNT * 0.8 * advantage * goes_on
        expected[t] = sign[t] * advantage
    np.testing.assert_allclose(found - values, expected, rtol=1e-4, atol=1e-5)


def test_nothing_crosses_the_end_of_a_game() -> None:
    """Rewards and values of the next game do not change those of the one before."""
    rewards, dones, players, values = streams(5)
    first = int(np.argmax(dones)) + 1
    changed = rewards.copy(), dones, players, values.copy()
    changed[0][first:] += 100
    changed[3][first:] -= 100
    for gae_lambda in (0.0, 0.5, 1.0):
        before = lambda_returns(rewards, dones, players, values, discount=DISCOUNT, gae_lambda=gae_lambda)
        after = lambda_returns(*changed, discount=DISCOUNT, gae_lambda=gae_lambda)
        np.testing.assert_array_equal(before[:first], after[:first])
        assert not np.array_equal(before[first:], after[first:])
