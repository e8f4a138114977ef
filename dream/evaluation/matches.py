"""Matches over mirrored deals: every deck is played once from each seat, and these hands together are the sample."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dream.evaluation.statistics import Interval, mean_interval, rate_interval
from dream.sampling import sample_action
from envs import Game, Policy
from envs.batching import where_needed
from envs.errors import InputError

CHUNK = 1024
"""Pairs of hands played at once."""


def match(
    game: Game,
    policy: Policy,
    opponent: Policy,
    *,
    games: int,
    seed: int = 0,
    progress: Callable[[int], None] = lambda played: None,
) -> dict[str, Any]:
    """Plays a match of two players and reports it from the first one's side.

    Args:
      game, policy, opponent, games, seed, progress: as of `play_hands`.
    Returns:
      `n` hands, `n_pairs` deals, and an Interval for each of `win_rate`, `loss_rate`, `draw_rate`, `points_per_hand`
      (in game.unit), `mean_length` and the names of game.result.
    Raises:
      InputError: as `play_hands`.
    """
    hands = play_hands(game, policy, opponent, games=games, seed=seed, progress=progress)
    return {"n": games, "n_pairs": games // game.num_players} | {name: interval(name, x) for name, x in hands.items()}


def play_hands(
    game: Game,
    policy: Policy,
    opponent: Policy,
    *,
    games: int,
    seed: int = 0,
    progress: Callable[[int], None] = lambda played: None,
) -> dict[str, np.ndarray]:
    """Plays mirrored hands of two players.

    Args:
      game: what is played; with more than two players the opponent has all the other seats.
      policy, opponent: who plays.
      games: hands, a multiple of the players: each deal is played from every seat.
      seed: of deals and actions.
      progress: called with the number of hands played so far.
    Returns:
      Every hand by name: float32[pairs, P], the policy in seat p; the names are those that `match` reports.
    Raises:
      InputError: games is not such a multiple, of two deals at least.
    """
    check_games(game, games)
    seats = game.num_players
    pairs, key = games // seats, jax.random.key(seed)
    parts, played = [], 0
    for chunk in range(-(-pairs // CHUNK)):
        # A chunk is always full, so that one compiled program serves all; what is too many is dropped below.
        size = CHUNK if pairs > CHUNK else pairs
        parts.append(jax.device_get(_play_pairs(game, policy, opponent, jax.random.fold_in(key, chunk), size)))
        played = min(pairs, played + size)
        progress(seats * played)
    return {name: np.concatenate([part[name] for part in parts])[:pairs] for name in parts[0]}


def check_games(game: Game, games: int) -> None:
    """Raises InputError unless `games` hands can be mirrored: a multiple of the players, of two deals at least."""
    seats = game.num_players
    if games < 2 * seats or games % seats:
        raise InputError(
            f"games={games} is not valid; it must be a multiple of {seats}, at least {2 * seats}: "
            "every deal is played from every seat"
        )


def interval(name: str, hands: np.ndarray) -> Interval:
    """Returns the interval of a quantity from its values float[pairs, P]; names that end in `_rate` are rates."""
    samples = hands.mean(axis=1)
    return rate_interval(samples, hands.shape[1]) if name.endswith("_rate") else mean_interval(samples)


@functools.partial(jax.jit, static_argnums=(0, 4))
def _play_pairs(game: Game, policy: Policy, opponent: Policy, key: Array, pairs: int) -> dict[str, Array]:
    """Plays `pairs` deals, each from every seat: float32[pairs, P] by name."""
    players, hands = game.num_players, game.num_players * pairs
    deal_key, play_key = jax.random.split(key)
    deals = jax.vmap(game.init)(jax.random.split(deal_key, pairs))
    states = jax.tree.map(lambda x: jnp.repeat(x, players, axis=0), deals)
    seats = jnp.tile(jnp.arange(players), pairs)
    turn = jax.vmap(functools.partial(_turn, game, policy, opponent))

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        states, rewards, length, over, t = carry
        keys = jax.random.split(jax.random.fold_in(play_key, t), hands)
        states, gained, now_over = turn(states, seats, keys)
        return states, rewards + gained, length + ~over, now_over, t + 1

    start = (states, jnp.zeros((hands, players)), jnp.zeros(hands), jnp.zeros(hands, bool), jnp.int32(0))
    states, rewards, length, _, _ = lax.while_loop(lambda carry: ~jnp.all(carry[3]), body, start)
    reward = rewards[jnp.arange(hands), seats]
    told = {
        "win_rate": reward > 0,
        "loss_rate": reward < 0,
        "draw_rate": reward == 0,
        "points_per_hand": reward * game.reward_scale,
        **jax.vmap(game.result)(states, seats),
        "mean_length": length,
    }
    return {name: x.astype(jnp.float32).reshape(pairs, players) for name, x in told.items()}


def _turn(
    game: Game, policy: Policy, opponent: Policy, state: Any, seat: Array, key: Array
) -> tuple[Any, Array, Array]:
    """Plays one action of a hand in which `policy` has the seat."""
    player = state.current_player
    view, legal = game.view(state, player), game.legal_actions(state)
    nothing = jnp.zeros(game.num_actions)
    ours, playing = player == seat, player >= 0
    # A player that thinks long is asked only where it is to act.
    chances = where_needed(ours & playing, policy, nothing, view, legal)
    chances = where_needed(~ours & playing, opponent, chances, view, legal)
    return game.step(state, sample_action(key, chances))
