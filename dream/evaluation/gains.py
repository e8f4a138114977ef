"""What a player gains over a policy, hand by hand, with the luck of the deal taken out.

Against opponents who play pi, a player wins, by the performance difference lemma,

    J(player) - J(pi) = E[sum over the player's decisions t of A(h_t, a_t)],
    A(h, a) = Q(h, a) - sum over b of pi(b | h) Q(h, b),

with Q(h, a) what the player's seat wins from the history h on if a is played there and then everybody plays pi. A is
the mean over K pairs of playouts, of a and of an action b of pi, both with the same cards to come and the same random
numbers. b is a as often as it can be while each has its own distribution (a maximal coupling), and then the pair adds
0, whatever the deal is worth. J(pi) is 0, as each deal is played from both seats of a zero-sum game. The estimate is
unbiased for any K.
Source: Kakade and Langford 2002, "Approximately optimal approximate reinforcement learning", lemma 6.1.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dream.compiled.options import jit_brief
from dream.equations.distributions import faults
from dream.equations.sampling import sample_action
from dream.evaluation.hands import results, seated
from dream.evaluation.matches import check_games, match_key
from dream.evaluation.validity import refuse_faults, refuse_results
from dream.search.playouts import play_on
from envs import Game, InputError, Policy, check_once, check_plays
from envs.batching import where_needed
from envs.checks import check_two_player_zero_sum
from envs.errors import refuse_name, whole_number

GAIN, CHANGED = "gain", "changed_decisions"
_LANES = 256
"""Playouts made together at least: fewer fill no CPU."""


def play_for_gains(
    game: Game, player: Policy, policy: Policy, *, games: int, seed: int | Array = 0, playouts: int = 8
) -> dict[str, np.ndarray]:
    """Plays mirrored rounds of a player against a policy and estimates what the player gains over it in each.

    Args:
      game: of two players, zero-sum.
      player: whose gains are estimated.
      policy: pi, of the opponent, and of everybody in playouts.
      games: rounds, even, at least 4.
      seed: of everything, or a PRNG key.
      playouts: K, for each decision at which the two differ.
    Returns:
      Every round by name: float32[pairs, 2], the player in seat p; the names that `match` reports, and `gain`, in
      game.unit, and `changed_decisions`, those at which the policy might have done something else.
    Raises:
      InputError: another kind of game, games or playouts out of range, a player of another game, or one that gives no
        distribution over the legal actions.
    """
    refuse_name(game, "game")
    check_two_player_zero_sum(game, "a gain over a policy")
    if (playouts := whole_number("playouts", playouts, "at least 1")) < 1:
        raise InputError(f"playouts={playouts} is not valid; it must be at least 1")
    games = check_games(game, games)
    check_once(game)
    for one in (player, policy):
        check_plays(one, game)
    # Playouts go to the end of the game and count what it pays, whatever the policy's own value says.
    plain = Policy(policy.apply, policy.params, policy.game)
    rounds = jax.device_get(_play(game, player, plain, match_key(seed), games // 2, playouts))
    refuse_faults(rounds.pop("faults"))
    refuse_results(game, rounds)
    if not np.all(np.isfinite(rounds[GAIN])):
        # What the players met themselves was fine.
        refuse_faults(np.array([[True, False, False, False]]), ("in playouts the opponent's policy",))
    return rounds


@jit_brief(lambda game: game, static_argnums=(0, 4, 5))
def _play(game: Game, player: Policy, policy: Policy, key: Array, pairs: int, playouts: int) -> dict[str, Array]:
    """Plays deals from both seats: float32[pairs, 2] by name, and bool[2, 4] what was wrong with the policies."""
    states, seats, play_key = seated(game, key, pairs)
    turn = jax.vmap(functools.partial(_turn, game, player, policy, playouts))

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        states, rewards, sums, over, t, found = carry
        keys = jax.random.split(jax.random.fold_in(play_key, t), len(seats))
        states, gained, added, now_over, wrong = turn(states, seats, keys)
        sums = sums + jnp.concatenate([added, ~over[:, None]], axis=1)
        return states, rewards + gained, sums, now_over, t + 1, found | jnp.any(wrong, axis=0)

    rounds = len(seats)
    nothing = jnp.zeros((rounds, 2)), jnp.zeros((rounds, 3)), jnp.zeros(rounds, bool)
    start = (states, *nothing, jnp.int32(0), jnp.zeros((2, 4), bool))
    states, rewards, sums, _, _, found = lax.while_loop(
        lambda carry: ~jnp.all(carry[3]) & ~jnp.any(carry[5]), body, start
    )
    gain, changed, length = sums.T
    own = {GAIN: gain * game.reward_scale, CHANGED: changed}
    report = results(game, states, seats, rewards, length)
    return report | {name: x.reshape(pairs, 2) for name, x in own.items()} | {"faults": found}


def _turn(
    game: Game, player: Policy, policy: Policy, playouts: int, state: Any, seat: Array, key: Array
) -> tuple[Any, Array, Array, Array, Array]:
    """Plays one action of a round in which `player` has the seat.

    Returns:
      The next state, its pay float32[2], the gain and whether the decision was changed float32[2], the end, and what
      was wrong with the policies, bool[2, 4].
    """
    to_act = state.current_player
    playing = to_act >= 0
    ours = playing & (to_act == seat)
    view, legal = game.view(state, jnp.maximum(to_act, 0)), game.legal_actions(state)
    usual = jnp.where(playing, policy(view, legal), 0.0)
    chances = where_needed(ours, player, usual, view, legal)
    act_key, gain_key = jax.random.split(key)
    action = sample_action(act_key, chances)
    changed = ours & (usual[action] < chances[action])
    smallest = max(1, _LANES // (2 * playouts))
    gain = where_needed(
        changed, functools.partial(_advantage, game, policy, playouts), jnp.float32(0), state, action, chances, usual,
        gain_key, smallest_chunk=smallest,
    )  # fmt: skip
    after, paid, over = game.step(state, action)
    wrong = jnp.stack([faults(chances, legal) & ours, faults(usual, legal) & playing])
    return after, paid, jnp.stack([gain, changed.astype(jnp.float32)]), over, wrong


def _advantage(
    game: Game, policy: Policy, playouts: int, state: Any, action: Array, chances: Array, usual: Array, key: Array
) -> Array:
    """Returns an unbiased estimate of A(state, action), float32, in units of reward."""
    seat = state.current_player

    def playout(key: Array) -> Array:
        deal_key, keep_key, act_key, play_key = jax.random.split(key, 4)
        dealt = game.resample_chance(state, deal_key)
        rest = jnp.maximum(usual - chances, 0.0)
        differs = (jax.random.uniform(keep_key) * chances[action] >= usual[action]) & jnp.any(rest > 0)
        other = jnp.where(differs, sample_action(act_key, rest), action)

        def won(first: Array) -> Array:
            return play_on(game, policy, dealt, first, seat, play_key, game.max_length, differs)

        with_action, without = jax.vmap(won)(jnp.stack([action, other]))
        return with_action - without

    return jnp.mean(jax.vmap(playout)(jax.random.split(key, playouts)))
