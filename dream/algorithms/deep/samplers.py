"""Games sampled for one player's regrets: by outcome sampling on any game, by external sampling on a game's tree."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.deep.history_values import Transition, expected_next_value, transitions
from dream.algorithms.deep.regret_networks import Row
from dream.buffers.reservoir import MOST_POWER
from dream.compiled import devices
from dream.config.settings import number
from dream.equations import estimators
from dream.equations.reward_shaping import ShapingConfig, shaping_at, training_rewards
from dream.equations.sampling import sample_action
from dream.game_tree.sampling import SamplingTree, Scheme, sampling_tree, traverse
from dream.game_tree.tree import Tree
from dream.rollout import self_play
from dream.rollout.summary import masked_mean, masked_variance
from envs import Game

PolicyOf = Callable[[Any, Array, Array], Array]
"""(view, legal bool[A], player int32) -> float32[A]."""
ValuesOf = Callable[[Any, Array], Array]
"""(views of all players, legal bool[A]) -> float32[A], Q of a history to player 0."""


@dataclasses.dataclass(frozen=True)
class WeightConfig:
    """Weights of samples, of regrets or of the average policy.

    Attributes:
      power: iteration t counts t^power; 1 is linear CFR.
      importance: whether a sample counts 1 / (product of xi(a) |A| over the updated player's earlier decisions).
      clip: the most that factor may be; null for no bound.
    """

    power: float = number(1.0, 0, MOST_POWER)
    importance: bool = True
    clip: float | None = number(None, 0, above=True)


@dataclasses.dataclass(frozen=True)
class CorrectionConfig:
    """How far sampled games correct what the history value function says (estimators.traced_values).

    Attributes:
      trace: share of a correction that reaches the decision before.
      clip: upper bound of 1 / xi(a), with which an action's value is corrected; 0 reads regrets off the value
        function alone (ESCHER); null, with trace 1, corrects in full (DREAM).
    """

    trace: float = number(1.0, 0, 1)
    clip: float | None = number(None, 0)

    @property
    def is_full(self) -> bool:
        """Whether estimates are unbiased whatever the value function says."""
        return self.trace == 1 and self.clip is None

    @property
    def is_none(self) -> bool:
        """Whether regrets are those of the value function."""
        return self.clip == 0


class Sampled(NamedTuple):
    """What a batch of traversals for one player yields; rows have one leading axis.

    Attributes:
      regrets, own: rows of instantaneous regrets at the player's decisions, and which are valid.
      strategy, others: rows of the opponent's policy at its decisions, and which are valid.
      moves, moved: transitions of the games, and which are valid; None where no history value function is learned.
      metrics: of the estimates.
      counters: of the sampling.
    """

    regrets: Row
    own: Array
    strategy: Row
    others: Array
    moves: Transition | None
    moved: Array | None
    metrics: dict[str, Array]
    counters: Counters


class ActorOutput(NamedTuple):
    """What the actor outputs besides the action.

    Attributes:
      policy: float32[A], of who decides.
      behaviour: float32[A], what the action was sampled from.
    """

    policy: Array
    behaviour: Array


@dataclasses.dataclass(frozen=True)
class OutcomeSampler:
    """One trajectory per traversal, on any two-player game.

    Attributes:
      game: what is played.
      traversals, num_envs: games, and how many at once.
      exploration: share of uniform play in what the updated player's actions are sampled from.
      weights: of the regrets.
      strategy_weights: of the opponent's policy; by default without a clip, so that an iteration's share of the average
        does not depend on how the updated player played.
      correction: of the history value function by the trajectory.
      chance_in_baseline: whether all that an action can lead to is enumerated, so that the baseline covers chance too.
      shaping: of the rewards learned from; None for the game's own.
    """

    game: Game
    traversals: int
    num_envs: int
    exploration: float
    weights: WeightConfig
    strategy_weights: WeightConfig = WeightConfig()
    correction: CorrectionConfig = CorrectionConfig()
    chance_in_baseline: bool = False
    shaping: ShapingConfig | None = None

    def __call__(
        self, policy: PolicyOf, values: ValuesOf | None, player: Array, iteration: Array, key: Array
    ) -> Sampled:
        """Plays and estimates.

        Args:
          policy: of both players.
          values: the history value function; None for a baseline of 0.
          player: int32, whose regrets are sampled.
          iteration: int32, from 0.
          key: consumed.
        """
        record = self_play.play(
            self.game, self._actor(policy, player), key, games=self.traversals, num_envs=self.num_envs,
            all_views=values is not None, outcomes=self.chance_in_baseline,
        )  # fmt: skip
        d, valid = record.decisions, record.valid
        legal = jnp.unpackbits(d.legal, axis=-1, count=self.game.num_actions).astype(bool)
        own = valid & (d.player == player)
        sign = jnp.where(player == 0, 1.0, -1.0)
        baseline = jnp.zeros(legal.shape) if values is None else sign * jax.vmap(jax.vmap(values))(d.views, legal)
        action, done = d.action.astype(jnp.int32), d.done | ~valid
        behaviour_prob = jnp.take_along_axis(d.extras.behaviour, action[..., None], axis=-1)[..., 0]
        behaviour_prob = jnp.where(valid, behaviour_prob, 1.0)
        behaviour = jnp.where(valid[..., None], d.extras.behaviour, 1.0)
        to_first = jnp.where(valid, self._rewards(d, iteration), 0.0)
        rewards = sign * to_first
        by_lane = functools.partial(jax.vmap, in_axes=1, out_axes=1)
        steps = (d.extras.policy, behaviour, action, baseline, rewards, done)
        if self.chance_in_baseline:
            expected = jax.vmap(jax.vmap(functools.partial(expected_next_value, values, policy)))(d.outcomes)
            steps = (*steps, jnp.where(valid, sign * expected, 0.0))
        q_values, value = self._estimated(steps)
        regrets = estimators.regrets(q_values, d.extras.policy, legal)
        uniform_ratio = behaviour_prob * jnp.sum(legal, axis=-1)
        reach = by_lane(estimators.sampling_reach)(jnp.where(valid, uniform_ratio, 1.0), own, done)
        weight = _weights(self.weights, reach, iteration)
        strategy_weight = _weights(self.strategy_weights, reach, iteration)
        moves, moved = (None, None) if values is None else transitions(record, d.extras.policy, to_first)
        return Sampled(
            *_flat((
                Row(d.view, d.legal, regrets, weight), own,
                Row(d.view, d.legal, d.extras.policy, strategy_weight), valid & ~own,
                moves, moved,
            )),
            _weight_metrics(own, weight, regrets) | (
                {} if values is None else {"sampling/baseline_explained_variance": _explained(steps, valid, value)}
            ),
            self._counters(record, own, values is not None),
        )  # fmt: skip

    def _estimated(self, steps: tuple[Array, ...]) -> tuple[Array, Array]:
        """Returns values of actions and of histories, corrected as far as asked for: float32[T, N, A], [T, N]."""
        if self.correction.is_none:
            policy, _, _, baseline, *_ = steps
            return baseline, jnp.sum(policy * baseline, axis=-1)
        trace, clip = self.correction.trace, self.correction.clip

        def estimated(*lane: Array) -> tuple[Array, Array]:
            if self.correction.is_full:
                return estimators.corrected_values(*lane)
            return estimators.traced_values(*lane[:6], trace, clip, *lane[6:])

        return jax.vmap(estimated, in_axes=1, out_axes=1)(*steps)

    def _counters(self, record: self_play.Record, own: Array, with_values: bool) -> Counters:
        """Counts the games; both players' networks read each decision, and so does the history value function."""
        nodes, games = jnp.sum(record.valid), record.results["games"]
        by_decision = 3 if with_values else 2
        transitions, rows = nodes + games, by_decision * nodes
        if self.chance_in_baseline:
            outcomes = record.decisions.outcomes
            possible = record.valid[..., None] & (outcomes.chance > 0)
            transitions += jnp.sum(possible)
            rows += by_decision * jnp.sum(possible & ~outcomes.done)
        return Counters(episodes=games, decisions=jnp.sum(own), nodes=nodes, transitions=transitions, network_rows=rows)

    def _rewards(self, d: self_play.Decision, iteration: Array) -> Array:
        """Returns the rewards to learn from, to player 0: half the difference of the players' training rewards.

        What is zero-sum stays as it is; shaping, which is not, becomes so.
        """
        if self.shaping is None:
            return d.rewards[..., 0]
        both = training_rewards(
            shaping_at(self.shaping, iteration), d.rewards, d.potentials, d.done,
            unit=self.game.reward_scale, discount=1.0, paid=d.paid,
        )  # fmt: skip
        return (both[..., 0] - both[..., 1]) / 2

    def _actor(self, policy: PolicyOf, player: Array) -> self_play.Actor:
        def act(carry: Any, view: Any, legal: Array, decider: Array, key: Array) -> tuple[Array, Any, ActorOutput]:
            sigma = policy(view, legal, decider)
            xi = jnp.where(decider == player, estimators.exploring(sigma, legal, self.exploration), sigma)
            return sample_action(key, xi), carry, ActorOutput(sigma, xi)

        return self_play.Actor(lambda key: (), act)


def _weights(config: WeightConfig, reach: Array, iteration: Array) -> Array:
    """Returns t^power / reach, the second factor clipped, or left out: float32 like `reach`; t counts from 1."""
    inverse = 1.0 / reach if config.importance else jnp.ones_like(reach)
    if config.clip is not None:
        inverse = jnp.minimum(inverse, config.clip)
    return (iteration + 1.0) ** config.power * inverse


def _weight_metrics(own: Array, weight: Array, regrets: Array) -> dict[str, Array]:
    """Returns how unequal the importance weights of own decisions are, and how large their regret estimates."""
    square = jnp.sum(regrets**2, axis=-1)
    relative = weight / jnp.maximum(masked_mean(weight, own), 1e-30)
    return {
        "sampling/effective_sample_size": estimators.effective_sample_size(weight, own),
        "sampling/largest_weight": jnp.max(jnp.where(own, relative, 0.0)),
        "sampling/regret_second_moment": masked_mean(square, own),
        "sampling/weighted_second_moment": masked_mean(relative**2 * square, own),
    }


def _explained(steps: tuple[Array, ...], valid: Array, value: Array) -> Array:
    """Returns how much of the variance of what followed the actions the baseline explains: float32, 1 for all of it.

    What followed is r + u(h'), or c(h, a) + u(h') - b(h') where chance is enumerated, as in the estimates in use
    (dream.equations.estimators.corrected_values).

    Args:
      steps: policy, behaviour, action, baseline, rewards, done and, where chance is enumerated, c: leading axes [T, N].
      valid: bool[T, N].
      value: u(h), float32[T, N].
    """
    policy, _, action, baseline, rewards, done, *expected = steps
    later = value - jnp.sum(policy * baseline, axis=-1) if expected else value
    followed = (expected[0] if expected else rewards) + jnp.where(done, 0.0, jnp.roll(later, -1, axis=0))
    predicted = jnp.take_along_axis(baseline, action[..., None], axis=-1)[..., 0]
    left = masked_mean((followed - predicted) ** 2, valid)
    return 1.0 - left / jnp.maximum(masked_variance(followed, valid), 1e-12)


def _flat(tree: Any) -> Any:
    """Puts time and lanes into one axis."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)


@dataclasses.dataclass(frozen=True, eq=False)
class ExternalSampler:
    """Follows every action of the updated player and one of everybody else, on a game's tree.

    Attributes:
      tree: of the game.
      traversals: started at once.
      weights: of the regrets; external sampling needs no importance weights.
      strategy_weights: of the opponent's policy, the same.
    """

    tree: Tree
    traversals: int
    weights: WeightConfig
    strategy_weights: WeightConfig = WeightConfig()

    @functools.cached_property
    def sampling_tree(self) -> SamplingTree:
        """The tree laid out for sampling."""
        return sampling_tree(self.tree)

    def __call__(self, table: Array, player: int, iteration: Array, key: Array) -> Sampled:
        """Traverses.

        Args:
          table: float32[I, A], the policy of both players at all information sets.
          player: whose regrets are sampled.
          iteration: int32, from 0.
          key: consumed.
        """
        tree = self.sampling_tree
        bits = jax.random.bits(key, (tree.num_draws, self.traversals), jnp.uint32)
        with jax.enable_x64(True):
            met = _traversed(Scheme(True, 0.0, "none"), tree, jnp.asarray(table, jnp.float64), player, bits)
        weight, strategy_weight = (
            jnp.full(met.infoset.shape, (iteration + 1.0) ** weights.power, jnp.float32)
            for weights in (self.weights, self.strategy_weights)
        )
        row = jnp.minimum(met.infoset, self.tree.num_infosets - 1)
        view = jax.tree.map(lambda x: jnp.asarray(x)[row], self.tree.views)
        legal = jnp.packbits(jnp.asarray(self.tree.legal), axis=-1)[row]
        return Sampled(
            Row(view, legal, met.regrets, weight), met.own, Row(view, legal, met.policy, strategy_weight), met.others,
            None, None, {"sampling/regret_second_moment": met.regret_second_moment},
            met.counters._replace(episodes=self.traversals),
        )  # fmt: skip


class _Met(NamedTuple):
    """What a batch of traversals met, in one leading axis; infoset int32, own and others bool, the rest float32[A]."""

    infoset: Array
    own: Array
    regrets: Array
    policy: Array
    others: Array
    regret_second_moment: Array
    counters: Counters


@functools.partial(jax.jit, static_argnums=(0, 3))
def _traversed(scheme: Scheme, tree: SamplingTree, table: Array, player: int, bits: Array) -> _Met:
    """Runs the traversals whose random words are bits, uint32[draws, B]."""
    draws = bits.astype(jnp.float64) * 2.0**-32
    levels = traverse(scheme, tree, table, jnp.zeros(1), player, devices.split(draws, axis=1))
    parts, nodes, followed = [], 0, 0
    for met in levels:
        value = jnp.sum(met.policy * met.values, axis=2, keepdims=True)
        regrets = jnp.where(met.legal & met.own[:, :, None], met.values - value, 0.0)
        playing = met.infoset < tree.num_infosets
        parts.append((met.infoset, met.own, regrets, met.policy, playing & ~met.own))
        nodes, followed = nodes + jnp.sum(playing), followed + jnp.sum(met.followed > 0)
    infoset, own, regrets, policy, others = (
        jnp.concatenate([x.reshape(-1, *x.shape[2:]) for x in column]) for column in zip(*parts, strict=True)
    )
    second_moment = jnp.sum(regrets**2) / jnp.maximum(jnp.sum(own), 1)
    counters = Counters(decisions=jnp.sum(own), nodes=nodes, transitions=followed + bits.shape[1])
    return _Met(
        infoset.astype(jnp.int32), own, regrets.astype(jnp.float32), policy.astype(jnp.float32), others,
        second_moment.astype(jnp.float32), counters,
    )  # fmt: skip
