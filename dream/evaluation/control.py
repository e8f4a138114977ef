"""Less noise in a match: control variates from a learned value, unbiased whatever the value is worth.

With u(h) = V(view of the player's seat) at a history h in play, 0 at its end, and r the reward of a step,

    c_t = r_t + u(h_t+1) - mean over K of (r' + u(h')),    C = sum over t of c_t,    D = u(h_0),

the K samples (r', h') drawn anew from h_t as the true step was: an action of the acting player's policy, and all that
chance has not revealed yet dealt again (`Game.resample_chance`). Each c_t has mean 0 given h_t, and D has the mean of
fresh deals, so

    points - beta_C C - beta_D (D - mean D on fresh deals)

has the mean of the points for any fixed beta. Each half of the pairs gets the betas that least squares finds on the
other. A pair of mirrored rounds is one sample; the interval counts the uncertainty of D's mean.
Source: Burch et al. 2018, "AIVAT". Deviations: expectations over actions and chance are means over K samples, so that
no list of actions or cards is needed, and the corrections carry fitted factors.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dream.algorithms.types import Value
from dream.compiled.options import jit_brief
from dream.equations.distributions import faults
from dream.equations.sampling import sample_action
from dream.evaluation.matches import check_games, match_key
from dream.evaluation.statistics import Interval, mean_interval
from dream.evaluation.validity import refuse_faults, refuse_rewards
from envs import Game, InputError, Policy, check_plays
from envs.errors import refuse_name, whole_number

CHUNK = 512
"""Pairs of rounds played at once."""
FEWEST_GAMES = 8
"""Of a match: each half of its pairs gets the factors that the other half gives."""


class Controlled(NamedTuple):
    """A match with and without control variates, in rewards times game.reward_scale: in game.unit if they are points.

    Attributes:
      plain: the mean of the rounds.
      controlled: the same expectation, less noisy where the value is informative.
      variance_ratio: the controlled estimate's variance over the plain one's.
    """

    plain: Interval
    controlled: Interval
    variance_ratio: float


def _check(game: Game, games: int, samples: int, fresh: int) -> int:
    """Returns `games` as an int; raises InputError for more than two players, and for numbers out of range."""
    refuse_name(game, "game")
    if game.num_players != 2:
        raise InputError(f"{game.name} has {game.num_players} players; control variates are for two players")
    games = check_games(game, games)
    if games < FEWEST_GAMES:
        raise InputError(f"games={games} is too small for control variates; it must be at least {FEWEST_GAMES}")
    for name, given, least in (("samples", samples, 1), ("fresh", fresh, 2)):
        if whole_number(name, given, f"at least {least}") < least:
            raise InputError(f"{name}={given} is too small; it must be at least {least}")
    return games


def controlled_match(
    game: Game,
    policy: Policy,
    opponent: Policy,
    value: Value,
    *,
    games: int,
    seed: int | Array = 0,
    samples: int = 8,
    fresh: int = 1 << 15,
) -> Controlled:
    """Plays mirrored rounds of two players and estimates what the first earns, with a value's control variates.

    Args:
      game: for two players.
      policy, opponent: who plays.
      value: of a view to its player, in units of reward; any function is allowed.
      games: rounds, even, at least 8.
      seed: of everything, or a PRNG key.
      samples: K.
      fresh: deals on which the mean of D is taken, at least 2.
    Raises:
      InputError: a game for more players, games is odd or too small, samples or fresh is too small, a player of another
        game, a policy gives no distribution over the legal actions, or a reward or the value is not finite.
    """
    games = _check(game, games, samples, fresh)
    for player in (policy, opponent):
        check_plays(player, game)
    pairs, key = games // 2, match_key(seed)
    parts = [
        jax.device_get(_play(game, policy, opponent, value, jax.random.fold_in(key, n), min(CHUNK, pairs), samples))
        for n in range(-(-pairs // CHUNK))
    ]
    *parts, wrong = zip(*parts, strict=True)
    refuse_faults(np.any(wrong, axis=0))
    points, play, deal = (np.concatenate(x)[:pairs].astype(np.float64) for x in parts)
    refuse_rewards(game, points)
    anew = np.asarray(_deals(game, value, jax.random.fold_in(key, 1 << 30), fresh), np.float64)
    if not all(np.isfinite(x).all() for x in (play, deal, anew)):
        raise InputError("the value that serves as control variate is not finite")
    controls = np.stack([play, deal - anew.mean()], axis=1)
    left, beta = np.empty(pairs), np.zeros(2)
    for half in range(2):
        fit, use = np.arange(pairs) % 2 != half, np.arange(pairs) % 2 == half
        design = np.column_stack([np.ones(fit.sum()), controls[fit]])
        # The mean over fresh deals is uncertain too, which calls for so much less of D.
        factors = np.linalg.lstsq(design, points[fit], rcond=None)[0][1:] * [1, fresh / (fresh + pairs)]
        left[use], beta = points[use] - controls[use] @ factors, beta + factors / 2
    extra = beta[1] ** 2 * anew.var(ddof=1) / anew.size
    plain, inner = (mean_interval(x * game.reward_scale) for x in (points, left))
    variance = left.var(ddof=1) / pairs + extra
    wider = np.sqrt(variance / max(left.var(ddof=1) / pairs, 1e-300))
    low, high = (inner.mean + wider * (bound - inner.mean) for bound in inner[1:])
    ratio = variance / max(points.var(ddof=1) / pairs, 1e-300)
    return Controlled(plain, Interval(inner.mean, float(low), float(high)), float(ratio))


@jit_brief(lambda game: game, static_argnums=(0, 5, 6))
def _play(
    game: Game, policy: Policy, opponent: Policy, value: Value, key: Array, pairs: int, samples: int
) -> tuple[Array, Array, Array, Array]:
    """Plays pairs of mirrored rounds.

    Returns:
      Points, C and D of each pair's mean, float32[pairs] each, and what was wrong with the policies, bool[2, 4].
    """
    deal_key, play_key = jax.random.split(key)
    deals = jax.vmap(game.init)(jax.random.split(deal_key, pairs))
    states = jax.tree.map(lambda x: jnp.repeat(x, 2, axis=0), deals)
    seats = jnp.tile(jnp.arange(2), pairs)
    turn = jax.vmap(functools.partial(_turn, game, policy, opponent, value, samples))

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        states, points, controls, over, t, found = carry
        keys = jax.random.split(jax.random.fold_in(play_key, t), 2 * pairs)
        after, reward, control, now_over, wrong = turn(states, seats, keys)
        points, controls = points + jnp.where(over, 0, reward), controls + jnp.where(over, 0, control)
        return after, points, controls, now_over, t + 1, found | jnp.any(wrong & ~over[:, None, None], axis=0)

    nothing = jnp.zeros(2 * pairs)
    start = (states, nothing, nothing, jnp.zeros(2 * pairs, bool), jnp.int32(0), jnp.zeros((2, 4), bool))
    _, points, controls, _, _, found = lax.while_loop(
        lambda carry: ~jnp.all(carry[3]) & ~jnp.any(carry[5]), body, start
    )
    first = jax.vmap(lambda state, seat: value(game.view(state, seat)))(states, seats)
    return *(jnp.mean(x.reshape(pairs, 2), axis=1) for x in (points, controls, first)), found


def _turn(
    game: Game, policy: Policy, opponent: Policy, value: Value, samples: int, state: Any, seat: Array, key: Array
) -> tuple[Any, Array, Array, Array, Array]:
    """Plays one action and K others like it.

    Returns:
      The state, the seat's reward, the correction c, whether it is over, and what was wrong with the policies,
      bool[2, 4].
    """
    player = state.current_player
    view, legal = game.view(state, player), game.legal_actions(state)
    chances = jnp.where(player == seat, policy(view, legal), opponent(view, legal))
    wrong = faults(chances, legal)
    act_key, *keys = jax.random.split(key, 1 + samples)

    def step(state: Any, key: Array) -> tuple[Any, Array, Array, Array]:
        after, rewards, done = game.step(state, sample_action(key, chances))
        ahead = jnp.where(done, 0.0, value(game.view(after, seat)))
        return after, rewards[seat], rewards[seat] + ahead, done

    def again(key: Array) -> Array:
        deal_key, step_key = jax.random.split(key)
        return step(game.resample_chance(state, deal_key), step_key)[2]

    after, reward, total, done = step(state, act_key)
    correction = total - jnp.mean(jax.vmap(again)(jnp.stack(keys)))
    return after, reward, correction, done, jnp.stack([wrong & (player == seat), wrong & (player != seat)])


@functools.partial(jax.jit, static_argnums=(0, 3))
def _deals(game: Game, value: Value, key: Array, count: int) -> Array:
    """Returns D of fresh mirrored deals: float32[count]."""

    def one(key: Array) -> Array:
        state = game.init(key)
        return jnp.mean(jax.vmap(lambda seat: value(game.view(state, seat)))(jnp.arange(2)))

    return lax.map(one, jax.random.split(key, count), batch_size=min(count, 4096))
