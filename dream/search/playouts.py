"""A game played on by a policy, to its end or for a few actions and then judged by the policy's own value.

The value is asked where the player itself is to act: what it knows there is more than it knows now, so that the mean of
the value over likely worlds and play is what the first action is worth. What the others expect knows nothing of the own
hand, and their mean is not.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from dream.equations.reward_shaping import win_bonus
from dream.equations.sampling import sample_action
from dream.networks.policy import ValuedPolicy
from envs import Game, Policy
from envs.game import State


def play_on(
    game: Game,
    policy: Policy,
    state: State,
    action: Array,
    seat: Array,
    key: Array,
    cut: Array | int,
    needed: Array | bool = True,
    opponent: Policy | None = None,
) -> Array:
    """Plays an action, and then everyone plays by a policy that sees its own view alone.

    Args:
      game: what is played.
      policy: the player's; if a ValuedPolicy that knows a value, a game is left where it stands at the player's
        first decision after `cut` actions, and is worth what the player expects there.
      state: in play.
      action: int32, the first one.
      seat: int32, whose rewards are returned.
      key: of all that is sampled.
      cut: int32, actions after the first before the value is asked; a policy without value plays to the end.
      needed: whether anybody asks; if not, nothing is played.
      opponent: the others' policy; the player's own if None.
    Returns:
      float32, rewards from here on, and the policy's win_bonus if the end pays the player, the negative if it costs;
      NaN where what the policy gave was not finite; what it gives once the game is over does not count.
    """
    _, won = _played(game, policy, state, action, seat, key, cut, needed, opponent)
    return won


def points_after(game: Game, policy: Policy, state: State, action: Array, seat: Array, key: Array) -> Array:
    """Plays an action, and then everyone plays by a policy to the end; returns the points that a seat wins: float32.

    Points are those that the game reports, where it pays something else; NaN as in `play_on`.
    """
    end, won = _played(game, policy, state, action, seat, key, game.max_length, True, None)
    points = game.result(end, seat).get("points_per_hand", won * game.reward_scale)
    return jnp.where(jnp.isfinite(won), points, jnp.nan)


def _played(
    game: Game,
    policy: Policy,
    state: State,
    action: Array,
    seat: Array,
    key: Array,
    cut: Array | int,
    needed: Array | bool,
    opponent: Policy | None,
) -> tuple[State, Array]:
    """Returns where `play_on` left the game, and what it came to."""
    bonus = policy.win_bonus if isinstance(policy, ValuedPolicy) else 0.0
    knows_value = isinstance(policy, ValuedPolicy) and policy.value is not None

    def body(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        t, state, action, won, _, _ = carry
        state, rewards, done = game.step(state, action)
        to_act = jnp.maximum(state.current_player, 0)
        view = game.view(state, to_act)
        legal = game.legal_actions(state)
        probs = policy(view, legal)
        if opponent is not None:
            probs = jnp.where(to_act == seat, probs, opponent(view, legal))
        action = sample_action(jax.random.fold_in(key, t), probs)
        rest, is_left = jnp.float32(0), jnp.bool_(False)
        if knows_value:
            is_left = ~done & (t >= cut) & (to_act == seat)
            rest = jnp.where(is_left, policy.value(policy.params, view), 0.0)
        gained = rewards[seat] + win_bonus(rewards[seat], done, bonus)
        gained = jnp.where(done | jnp.isfinite(jnp.sum(probs)), gained, jnp.nan)
        return t + 1, state, action, won + gained, rest, done | is_left

    start = (jnp.int32(0), state, jnp.int32(action), jnp.float32(0), jnp.float32(0), ~jnp.bool_(needed))
    _, end, _, won, rest, _ = lax.while_loop(lambda carry: ~carry[-1], body, start)
    return end, won + rest
