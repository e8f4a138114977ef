"""The rounds of a match: how deals are mirrored, what is reported of them, and play against a host-side player."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.compiled.agreement import agreed
from dream.equations.distributions import faults
from dream.equations.sampling import sample_action
from dream.evaluation.validity import SCORE, has_opposite_points, refuse_faults, result_names
from envs import Game, HostPlayer, InputError, Policy
from envs.records import points_of, rounded
from envs.totals import settled

ACTIONS = "actions"
"""Among what is reported of rounds, where they are kept: all players' actions in order, -1 after the end."""
WON = "won"
"""The same: what each player won, by seat."""


@functools.partial(jax.jit, static_argnums=(0, 2))
def deals(game: Game, key: Array, pairs: int) -> Any:
    """Deals: states [pairs]; the same key gives the same deals whoever plays."""
    return jax.vmap(game.init)(jax.random.split(jax.random.split(key)[0], pairs))


def seated(game: Game, key: Array, pairs: int) -> tuple[Any, Array, Array]:
    """Returns each deal once for every seat: states [P * pairs], seats int32[P * pairs], the key of the actions."""
    players = game.num_players
    states = jax.tree.map(lambda x: jnp.repeat(x, players, axis=0), deals(game, key, pairs))
    return states, jnp.tile(jnp.arange(players), pairs), jax.random.split(key)[1]


@functools.partial(jax.jit, static_argnums=0)
def results(game: Game, states: Any, seats: Array, rewards: Array, length: Array) -> dict[str, Array]:
    """Reports finished rounds [N] from the side of a seat each: float32[N / P, P] by name."""
    rewards = settled(game, rewards)
    reward = rewards[jnp.arange(len(seats)), seats]
    mine, best_other = _earned(game, states, seats, rewards)
    report = {"win_rate": mine > best_other, "loss_rate": mine < best_other, "tie_rate": mine == best_other}
    report |= {"points_per_hand": reward * game.reward_scale if has_opposite_points(game) else mine}
    report |= {**jax.vmap(game.result)(states, seats), "mean_length": length}
    return {name: x.astype(jnp.float32).reshape(-1, game.num_players) for name, x in report.items()}


def _earned(game: Game, states: Any, seats: Array, rewards: Array) -> tuple[Array, Array]:
    """Returns what a seat's player earned, and the most of any other: float32[N] each.

    Of two players with opposite points it is the reward, else the score where the game reports one.
    """
    players, rounds = np.arange(game.num_players), jnp.arange(len(seats))
    earned = rewards * game.reward_scale
    opposite = game.num_players == 2 and has_opposite_points(game)
    if SCORE in result_names(game) and not opposite:
        earned = jax.vmap(lambda state: jax.vmap(lambda seat: game.result(state, seat)[SCORE])(players))(states)
    mine = earned[rounds, seats]
    return mine, jnp.max(jnp.where(players == seats[:, None], -jnp.inf, earned), axis=1)


@functools.partial(jax.jit, static_argnums=0)
def won(game: Game, states: Any, rewards: Array) -> Array:
    """Returns what each player won in finished rounds [N]: float32[N / P, P, P], the last axis by seat."""
    points = jax.vmap(functools.partial(points_of, game))(states, rewards)
    return points.reshape(-1, game.num_players, game.num_players)


def histories(game: Game, key: Array, stored: dict[str, np.ndarray], first: int, last: int) -> Iterator[dict[str, Any]]:
    """Yields what can be replayed of the rounds of one chunk.

    Args:
      game: what was played.
      key: of the chunk.
      stored: its rounds by name, ACTIONS among them.
      first, last: numbers of its first pair and of the one after the last that counts.
    """
    pairs = len(stored[ACTIONS])
    dealt = jax.device_get(deals(game, key, pairs))
    for pair in range(min(pairs, last - first)):
        deal = jax.tree.map(lambda x, pair=pair: x[pair], dealt)
        for seat in range(game.num_players):
            actions = stored[ACTIONS][pair, seat]
            yield {
                "hand": game.num_players * (first + pair) + seat,
                "pair": first + pair,
                "seat": seat,
                "points": float(stored["points_per_hand"][pair, seat]),
                WON: rounded(stored[WON][pair, seat]),
                **game.history(deal, actions[actions >= 0].tolist()),
            }


def play_on_host(
    game: Game, policy: Policy, opponent: HostPlayer, key: Array, pairs: int, keeps: bool = False
) -> dict[str, Any]:
    """Plays `pairs` deals, each from every seat, the opponent asked on the host.

    Args:
      game: of two players.
      policy: the one whose results are reported.
      opponent: the other.
      key: of deals and the policy's actions.
      pairs: deals.
      keeps: whether ACTIONS are kept, int[pairs, P, T].
    Returns:
      float32[pairs, P] by name.
    Raises:
      InputError: the policy gives no distribution over the legal actions, or the opponent chose an illegal action.
    """
    states, seats, play_key = jax.device_get(seated(game, key, pairs))
    rounds, length, kept = np.arange(len(seats)), np.zeros(len(seats)), []
    rewards, over = np.zeros((len(seats), game.num_players), np.float32), np.zeros(len(seats), bool)
    opponent.begin(states, (1 - seats).tolist())
    while not over.all():
        actions, legal, wrong = map(np.array, _choices(game, policy, states, play_key, len(kept)))
        players = np.asarray(states.current_player)
        refuse_faults(wrong[~over & (players == seats)].any(axis=0)[None], ("the first player's policy",))
        for number in rounds[~over & (players != seats)].tolist():
            actions[number] = agreed("choice", int(opponent.choose(number)))
            if not (0 <= actions[number] < game.num_actions and legal[number, actions[number]]):
                raise InputError(f"the opponent chose {_named(game, int(actions[number]))}, which is not legal there")
        for number in rounds[~over].tolist():
            opponent.see(number, int(players[number]), int(actions[number]))
        kept.append(np.where(over, -1, actions))
        length += ~over
        states, paid, ended = _steps(game, states, actions)
        rewards, over = rewards + np.asarray(paid), np.asarray(ended)
    report = results(game, states, seats, rewards, length)
    if not keeps:
        return report
    return report | {
        ACTIONS: np.stack(kept, axis=1).reshape(pairs, game.num_players, -1),
        WON: won(game, states, rewards),
    }


def _named(game: Game, action: int) -> str:
    known = 0 <= action < game.num_actions
    return f"action {action} ({game.action_name(action)})" if known else f"action {action}"


@functools.partial(jax.jit, static_argnums=0)
def _choices(game: Game, policy: Policy, states: Any, key: Array, t: Array) -> tuple[Array, Array, Array]:
    """Returns what the policy would do in each round, whoever is to act.

    Returns:
      The actions int32[N], the legal ones bool[N, A], and what is wrong with the policy's answer bool[N, 4].
    """
    keys = jax.random.split(jax.random.fold_in(key, t), len(states.current_player))

    def choose(state: Any, key: Array) -> tuple[Array, Array, Array]:
        legal = game.legal_actions(state)
        chances = policy(game.view(state, state.current_player), legal)
        return sample_action(key, chances), legal, faults(chances, legal)

    return jax.vmap(choose)(states, keys)


@functools.partial(jax.jit, static_argnums=0)
def _steps(game: Game, states: Any, actions: Array) -> tuple[Any, Array, Array]:
    """Plays an action in each round."""
    return jax.vmap(game.step)(states, actions)
