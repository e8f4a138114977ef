"""Matches over mirrored deals: every deck is played once from each seat, and these rounds together are the sample."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dream.compiled import devices
from dream.compiled.options import jit_brief
from dream.equations.distributions import faults
from dream.equations.sampling import sample_action
from dream.evaluation.hands import ACTIONS, WON, histories, play_on_host, results, seated, won
from dream.evaluation.statistics import Interval, mean_interval, rate_interval
from dream.evaluation.validity import refuse_faults, refuse_results
from envs import Game, HostPlayer, Policy, check_once, check_plays
from envs.batching import where_needed
from envs.errors import InputError, refuse_name, whole_number

CHUNK = 1024
"""Pairs of rounds played at once."""
_MOST_SEED = 2**32 - 1
_FAULTS, _NO_FAULTS = "faults", np.zeros((2, 4), bool)
"""Among what is returned of rounds: what was wrong with the two policies."""


def match(
    game: Game,
    policy: Policy,
    opponent: Policy | HostPlayer,
    *,
    games: int,
    seed: int | Array = 0,
    progress: Callable[[int], None] = lambda played: None,
    on_hand: Callable[[dict[str, Any]], None] | None = None,
    hands: int | None = None,
) -> dict[str, Any]:
    """Plays a match of two players and reports it from the first one's side.

    Args:
      game, policy, opponent, games, seed, progress, on_hand, hands: as of `play_hands`.
    Returns:
      `n` rounds, `n_pairs` deals, and an Interval for each of `win_rate`, `loss_rate`, `tie_rate`, `points_per_hand`
      (in game.unit), `mean_length` and the names of game.result.
    Raises:
      InputError: as `play_hands`.
    """
    values = play_hands(game, policy, opponent, games=games, seed=seed, progress=progress, on_hand=on_hand, hands=hands)
    return hands_report(values)


def hands_report(values: dict[str, np.ndarray]) -> dict[str, Any]:
    """Returns what `match` reports of rounds float[pairs, P] by name."""
    pairs, seats = next(iter(values.values())).shape
    return {"n": pairs * seats, "n_pairs": pairs} | {name: interval(name, x) for name, x in values.items()}


def play_hands(
    game: Game,
    policy: Policy,
    opponent: Policy | HostPlayer,
    *,
    games: int,
    seed: int | Array = 0,
    progress: Callable[[int], None] = lambda played: None,
    on_hand: Callable[[dict[str, Any]], None] | None = None,
    hands: int | None = None,
) -> dict[str, np.ndarray]:
    """Plays mirrored rounds of two players.

    Args:
      game: what is played; with more than two players the opponent has all the other seats.
      policy, opponent: who plays.
      games: rounds, a multiple of the players: each deal is played from every seat.
      seed: of deals and actions, 0 to 2^32 - 1, or a PRNG key; that of a seed is `jax.random.key(seed)`.
      progress: called with the number of rounds played so far.
      on_hand: called with every round: its number `hand`, `pair`, the policy's `seat` and `points`, what each player
        `won`, and game.history.
      hands: the rounds that on_hand hears of, the first so many; None: all.
    Returns:
      Every round by name: float32[pairs, P], the policy in seat p; the names are those that `match` reports.
    Raises:
      InputError: games is not such a multiple, of two deals at least; another seed; a player of another game; a player
        asked on the host in a game for more than two; a policy that gives no distribution over the legal actions
        somewhere; or a game that does not keep what it promises.
    """
    games = check_games(game, games)
    check_once(game)
    for player in (policy, opponent):
        check_plays(player, game)
    seats = game.num_players
    if isinstance(opponent, HostPlayer) and seats != 2:
        raise InputError(f"{game.name} has {seats} players; a player that is asked on the host plays with one other")
    pairs, key = games // seats, match_key(seed)
    play = functools.partial(play_on_host if isinstance(opponent, HostPlayer) else _play_pairs, game, policy, opponent)
    parts, played = [], 0
    for chunk in range(-(-pairs // CHUNK)):
        # A chunk is always full, so that one compiled program serves all; what is too many is dropped below.
        size = CHUNK if pairs > CHUNK else pairs
        chunk_key = jax.random.fold_in(key, chunk)
        part = jax.device_get(play(chunk_key, size, on_hand is not None))
        refuse_faults(part.pop(_FAULTS, _NO_FAULTS))
        refuse_results(game, part)
        if on_hand is not None:
            left = None if hands is None else max(hands - seats * played, 0)
            for history in itertools.islice(histories(game, chunk_key, part, played, pairs), left):
                on_hand(history)
            part = {name: x for name, x in part.items() if name not in (ACTIONS, WON)}
        parts.append(part)
        played = min(pairs, played + size)
        progress(seats * played)
    return {name: np.concatenate([part[name] for part in parts])[:pairs] for name in parts[0]}


def play_blocks(
    game: Game, policy: Policy, opponent: Policy, *, games: int, seed: int | Array, block: int
) -> Iterator[dict[str, np.ndarray]]:
    """Yields the rounds that `play_hands` returns, a block at a time, for players that take long.

    Args:
      game, policy, opponent, games, seed: as of `play_hands`.
      block: deals in a block.
    """
    games = check_games(game, games)
    pairs, key = games // game.num_players, match_key(seed)
    for chunk in range(-(-pairs // CHUNK)):
        size, chunk_key = min(CHUNK, pairs), jax.random.fold_in(key, chunk)
        wanted = min(size, pairs - chunk * CHUNK)
        for start in range(0, wanted, min(block, size)):
            # The last block begins early enough to be a whole one, so that one compiled program serves all.
            first = min(start, size - min(block, size))
            part = jax.device_get(_play_pairs(game, policy, opponent, chunk_key, size, False, min(block, size), first))
            refuse_faults(part.pop(_FAULTS))
            refuse_results(game, part)
            yield {name: x[start - first : wanted - first] for name, x in part.items()}


def match_key(seed: int | Array) -> Array:
    """Returns the PRNG key of a match's deals and actions from its seed, or the key that is given.

    Raises:
      InputError: a seed that is no whole number from 0 to 2^32 - 1, as other numbers share their keys with those.
    """
    if isinstance(seed, Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        return seed
    number = whole_number("seed", seed, f"0 to {_MOST_SEED}")
    if not 0 <= number <= _MOST_SEED:
        raise InputError(f"seed={number} is not valid; it must be 0 to {_MOST_SEED}")
    return jax.random.key(number)


def check_games(game: Game, games: int) -> int:
    """Returns a number of rounds as an int; raises InputError unless they can be mirrored.

    That is a multiple of the players, of two deals at least.
    """
    refuse_name(game, "game")
    seats = game.num_players
    games = whole_number("games", games, f"a multiple of {seats}")
    if games < 2 * seats or games % seats:
        raise InputError(
            f"games={games} is not valid; it must be a multiple of {seats}, at least {2 * seats}: "
            "every deal is played from every seat"
        )
    return games


def interval(name: str, values: np.ndarray) -> Interval:
    """Returns the interval of a quantity from its values float[pairs, P]; names that end in `_rate` are rates."""
    samples = values.mean(axis=1)
    return rate_interval(samples, values.shape[1]) if name.endswith("_rate") else mean_interval(samples)


@jit_brief(lambda game: game, static_argnums=(0, 4, 5, 6))
def _play_pairs(
    game: Game,
    policy: Policy,
    opponent: Policy,
    key: Array,
    pairs: int,
    keeps: bool = False,
    block: int | None = None,
    first: int | Array = 0,
) -> dict[str, Array]:
    """Plays `pairs` deals, each from every seat: float32[pairs, P] by name; with `keeps`, ACTIONS too.

    Given a block, plays so many of them from the first on, each as it would be played among all. A fault of a policy
    ends the play, as nothing that follows has a meaning: _FAULTS, bool[2, 4].
    """
    states, seats, play_key = seated(game, key, pairs)
    players, whole = game.num_players, len(seats)
    rounds = players * (pairs if block is None else block)

    def mine(x: Array) -> Array:
        return x if block is None else lax.dynamic_slice_in_dim(x, players * first, rounds)

    states, seats = jax.tree.map(mine, (states, seats))
    turn = jax.vmap(functools.partial(_turn, game, policy, opponent))
    kept = jnp.full((game.max_length if keeps else 0, rounds), -1, jnp.int16)

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        states, rewards, length, over, t, kept, found = carry
        keys = mine(jax.random.split(jax.random.fold_in(play_key, t), whole))
        states, action, gained, now_over, wrong = devices.by_lane(turn, states, seats, keys)
        if keeps:
            kept = kept.at[t].set(jnp.where(over, -1, action).astype(jnp.int16))
        return states, rewards + gained, length + ~over, now_over, t + 1, kept, found | jnp.any(wrong, axis=0)

    nothing = jnp.zeros((2, 4), bool)
    start = (
        states,
        jnp.zeros((rounds, players)),
        jnp.zeros(rounds),
        jnp.zeros(rounds, bool),
        jnp.int32(0),
        kept,
        nothing,
    )
    states, rewards, length, _, _, kept, found = lax.while_loop(
        lambda carry: ~jnp.all(carry[3]) & ~jnp.any(carry[6]), body, start
    )
    report = results(game, states, seats, rewards, length) | {_FAULTS: found}
    kept_too = {ACTIONS: kept.T.reshape(pairs, players, -1), WON: won(game, states, rewards)} if keeps else {}
    return devices.whole(report | kept_too)


def _turn(
    game: Game, policy: Policy, opponent: Policy, state: Any, seat: Array, key: Array
) -> tuple[Any, Array, Array, Array, Array]:
    """Plays one action of a round in which `policy` has the seat.

    Returns:
      The next state, the action, its pay, the end, and what was wrong with the policies, bool[2, 4].
    """
    player = state.current_player
    view, legal = game.view(state, player), game.legal_actions(state)
    nothing = jnp.zeros(game.num_actions)
    ours, playing = player == seat, player >= 0
    # A player that thinks long is asked only where it is to act.
    chances = where_needed(ours & playing, policy, nothing, view, legal)
    chances = where_needed(~ours & playing, opponent, chances, view, legal)
    wrong = faults(chances, legal) & playing
    action = sample_action(key, chances)
    after, paid, over = game.step(state, action)
    return after, action, paid, over, jnp.stack([wrong & ours, wrong & ~ours])
