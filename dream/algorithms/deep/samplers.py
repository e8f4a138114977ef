"""Games sampled for one player's regrets: by outcome sampling on any game, by external sampling on a game's tree."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dream.algorithms.deep.history_values import Transition, expected_next_value, transitions
from dream.algorithms.deep.regret_networks import Row
from dream.config.settings import number
from dream.equations import estimators, schedules
from dream.equations.reward_shaping import ShapingConfig, training_rewards
from dream.equations.sampling import sample_action
from dream.game_tree.sampling import Branches, Scheme, branches, traverse
from dream.game_tree.tree import Tree
from dream.rollout import self_play
from envs import Game, InputError

PolicyOf = Callable[[Any, Array, Array], Array]
"""(view, legal bool[A], player int32) -> float32[A]."""
ValuesOf = Callable[[Any, Array], Array]
"""(views of all players, legal bool[A]) -> float32[A], Q of a history to player 0."""


@dataclasses.dataclass(frozen=True)
class WeightConfig:
    """Weights of samples in the fit of regrets.

    Attributes:
      power: iteration t counts t^power; 1 is linear CFR.
      importance: whether a sample counts 1 / (product of xi(a) |A| over the player's own earlier decisions).
      clip: the most that factor may be; null for no bound.
    """

    power: float = number(1.0, 0)
    importance: bool = True
    clip: float | None = number(None, 0, above=True)


class Sampled(NamedTuple):
    """What a batch of traversals for one player yields; rows have one leading axis.

    Attributes:
      regrets, own: rows of instantaneous regrets at the player's decisions, and which are valid.
      strategy, others: rows of the opponent's policy at its decisions, and which are valid.
      moves, moved: transitions of the games, and which are valid; None where values of histories are not learned.
      told: diagnostics and counters.
    """

    regrets: Row
    own: Array
    strategy: Row
    others: Array
    moves: Transition | None
    moved: Array | None
    told: dict[str, Array]


class _Thought(NamedTuple):
    """What the actor notes: the policy of who decides, and what the action was drawn from, float32[A] each."""

    policy: Array
    sampled: Array


@dataclasses.dataclass(frozen=True)
class OutcomeSampler:
    """One trajectory a traversal, on any two-player game.

    Attributes:
      game: what is played.
      traversals, num_envs: games, and how many at once.
      exploration: share of uniform play in what the updated player's actions are drawn from.
      weights: of the samples.
      direct: whether regrets are read off the value of histories, q(h, a) - sum over b of policy(b) q(h, b), instead
        of estimated from the trajectory with it as the baseline.
      chance: whether all that an action can lead to is enumerated, so that the baseline covers chance too.
      shaping: of the rewards learned from; None for the game's own.
    """

    game: Game
    traversals: int
    num_envs: int
    exploration: float
    weights: WeightConfig
    direct: bool = False
    chance: bool = False
    shaping: ShapingConfig | None = None

    def __call__(
        self, policy: PolicyOf, values: ValuesOf | None, player: Array, iteration: Array, key: Array
    ) -> Sampled:
        """Plays and estimates.

        Args:
          policy: of both players.
          values: of histories; None for a baseline of 0.
          player: int32, whose regrets are sampled.
          iteration: int32, from 0.
          key: consumed.
        """
        record = self_play.play(
            self.game, self._actor(policy, player), key,
            games=self.traversals, num_envs=self.num_envs, all_views=values is not None, outcomes=self.chance,
        )  # fmt: skip
        d, valid = record.decisions, record.valid
        legal = jnp.unpackbits(d.legal, axis=-1, count=self.game.num_actions).astype(bool)
        own = valid & (d.player == player)
        sign = jnp.where(player == 0, 1.0, -1.0)
        baseline = jnp.zeros(legal.shape) if values is None else sign * jax.vmap(jax.vmap(values))(d.views, legal)
        action, done = d.action.astype(jnp.int32), d.done | ~valid
        drawn = jnp.take_along_axis(d.note.sampled, action[..., None], axis=-1)[..., 0]
        drawn = jnp.where(valid, drawn, 1.0)
        sampled = jnp.where(valid[..., None], d.note.sampled, 1.0)
        to_first = jnp.where(valid, self._rewards(d, iteration), 0.0)
        rewards = sign * to_first
        by_lane = functools.partial(jax.vmap, in_axes=1, out_axes=1)
        steps = (d.note.policy, sampled, action, baseline, rewards, done)
        if self.chance:
            ahead = jax.vmap(jax.vmap(functools.partial(expected_next_value, values, policy)))(d.outcomes)
            steps = (*steps, jnp.where(valid, sign * ahead, 0.0))
        u, value = by_lane(estimators.corrected_values)(*steps)
        rated = baseline if self.direct else u
        regrets = estimators.regrets(rated, d.note.policy, legal)
        factor = drawn * jnp.sum(legal, axis=-1) if self.weights.importance else jnp.ones_like(drawn)
        reach = by_lane(estimators.sampling_reach)(jnp.where(valid, factor, 1.0), own, done)
        weight = _weights(self.weights, reach, iteration)
        moves, moved = (None, None) if values is None else transitions(record, d.note.policy, to_first)
        told = _told(self.weights, own, valid, weight, regrets, baseline, rewards, value, done, action)
        return _flat(Sampled(
            Row(d.view, d.legal, regrets, weight), own,
            Row(d.view, d.legal, d.note.policy, weight), valid & ~own,
            moves, moved, told,
        ))._replace(told=told | {"episodes": record.results["games"]})  # fmt: skip

    def _rewards(self, d: self_play.Decision, iteration: Array) -> Array:
        """Returns what is learned from, to player 0: half the difference of the players' training rewards.

        What is zero-sum stays as it is; shaping, which is not, becomes so.
        """
        if self.shaping is None:
            return d.rewards[..., 0]
        scale = schedules.at(self.shaping.scale, iteration)
        both = training_rewards(
            self.shaping, d.rewards, d.potentials, d.done, unit=self.game.reward_scale, scale=scale, discount=1.0
        )
        return (both[..., 0] - both[..., 1]) / 2

    def _actor(self, policy: PolicyOf, player: Array) -> self_play.Actor:
        def act(memory: Any, view: Any, legal: Array, decider: Array, key: Array) -> tuple[Array, Any, _Thought]:
            sigma = policy(view, legal, decider)
            xi = jnp.where(decider == player, estimators.exploring(sigma, legal, self.exploration), sigma)
            return sample_action(key, xi), memory, _Thought(sigma, xi)

        return self_play.Actor(lambda key: (), act)


def _weights(config: WeightConfig, reach: Array, iteration: Array) -> Array:
    """Returns t^power / reach, the second factor clipped: float32 like `reach`; t counts from 1."""
    inverse = 1.0 / reach
    if config.clip is not None:
        inverse = jnp.minimum(inverse, config.clip)
    return (iteration + 1.0) ** config.power * inverse


def _told(
    config: WeightConfig, own: Array, valid: Array, weight: Array, regrets: Array, baseline: Array,
    rewards: Array, value: Array, done: Array, action: Array,
) -> dict[str, Array]:  # fmt: skip
    """Returns counters and what tells whether the estimates are of use: see PHASE_NOTES.md on sampling."""

    def mean(x: Array, where: Array) -> Array:
        return jnp.sum(jnp.where(where, x, 0.0)) / jnp.maximum(jnp.sum(where), 1)

    below = rewards + jnp.where(done, 0.0, jnp.roll(value, -1, axis=0))
    guessed = jnp.take_along_axis(baseline, action[..., None], axis=-1)[..., 0]
    spread = mean((below - mean(below, valid)) ** 2, valid)
    square = jnp.sum(regrets**2, axis=-1)
    relative = weight / jnp.maximum(mean(weight, own), 1e-30)
    return {
        "decisions": jnp.sum(own),
        "nodes": jnp.sum(valid),
        "transitions": jnp.sum(valid),
        "sampling/effective_sample_size": estimators.effective_sample_size(weight, own),
        "sampling/largest_weight": jnp.max(jnp.where(own, relative, 0.0)),
        "sampling/regret_second_moment": mean(square, own),
        "sampling/weighted_second_moment": mean(relative**2 * square, own),
        "sampling/baseline_explained_variance": 1.0 - mean((below - guessed) ** 2, valid) / jnp.maximum(spread, 1e-12),
    }


def _flat(sampled: Sampled) -> Sampled:
    """Puts time and lanes into one axis."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]) if x.ndim >= 2 else x, sampled._replace(told={}))


@dataclasses.dataclass(frozen=True, eq=False)
class ExternalSampler:
    """Follows every action of the updated player and one of everybody else, on a game's tree.

    Attributes:
      tree: of the game.
      traversals: started at once.
      weights: of the samples; external sampling needs no importance weights.
    """

    tree: Tree
    traversals: int
    weights: WeightConfig

    @functools.cached_property
    def branches(self) -> Branches:
        """The tree laid out for sampling."""
        return branches(self.tree)

    def __call__(self, table: Array, player: int, iteration: Array, key: Array) -> Sampled:
        """Traverses.

        Args:
          table: float32[I, A], the policy of both players at all information sets.
          player: whose regrets are sampled.
          iteration: int32, from 0.
          key: consumed.
        """
        bits = jax.random.bits(key, (self.branches.draws, self.traversals), jnp.uint32)
        with jax.enable_x64(True):
            found = _traversed(Scheme(True, 0.0, "none"), self.branches, jnp.asarray(table, jnp.float64), player, bits)
        sets, own, regrets, policies, others, told = found
        weight = jnp.full(sets.shape, (iteration + 1.0) ** self.weights.power, jnp.float32)
        row = jnp.minimum(sets, self.tree.num_infosets - 1)
        view = jax.tree.map(lambda x: jnp.asarray(x)[row], self.tree.views)
        legal = jnp.packbits(jnp.asarray(self.tree.legal), axis=-1)[row]
        told = told | {"episodes": jnp.float32(self.traversals)}
        return Sampled(
            Row(view, legal, regrets, weight), own, Row(view, legal, policies, weight), others, None, None, told
        )


@functools.partial(jax.jit, static_argnums=(0, 3))
def _traversed(scheme: Scheme, tree: Branches, table: Array, player: int, bits: Array) -> tuple[Any, ...]:
    """Returns the information sets met, their validity and samples, in one leading axis."""
    draws = bits.astype(jnp.float64) * 2.0**-32
    levels = traverse(scheme, tree, table, jnp.zeros(1), player, draws)
    parts, nodes, followed = [], 0, 0
    for met in levels:
        value = jnp.sum(met.policy * met.values, axis=2, keepdims=True)
        regrets = jnp.where(met.legal & met.own[:, :, None], met.values - value, 0.0)
        playing = met.infoset < tree.infosets
        parts.append((met.infoset, met.own, regrets, met.policy, playing & ~met.own))
        nodes, followed = nodes + jnp.sum(playing), followed + jnp.sum(met.followed > 0)
    sets, own, regrets, policies, others = (
        jnp.concatenate([x.reshape(-1, *x.shape[2:]) for x in column]) for column in zip(*parts, strict=True)
    )
    told = {
        "decisions": jnp.sum(own),
        "nodes": nodes,
        "transitions": followed + bits.shape[1],
        "sampling/regret_second_moment": jnp.sum(regrets**2) / jnp.maximum(jnp.sum(own), 1),
    }
    told = {name: x.astype(jnp.float32) for name, x in told.items()}
    return sets.astype(jnp.int32), own, regrets.astype(jnp.float32), policies.astype(jnp.float32), others, told


def two_players(game: Game) -> None:
    """Raises InputError unless a game is for two."""
    if game.num_players != 2:
        raise InputError(f"{game.name} has {game.num_players} players; these regret minimisers are for two")
