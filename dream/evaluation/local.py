"""A local best response: Bayes over what the opponent may hold, one step of look-ahead, rollouts; nothing is learned.

At each own decision, from the view v alone:

1. `proposals` deals are drawn among those consistent with v, with density q(d), and weighted by the chance that the
   frozen policy would have done what the opponent did on them, w(d) = 1 / q(d) times the product over its past
   decisions of (1 - e) policy(action | its view on d) + e / legal actions, e = `opponent_epsilon`; `particles` of them
   are drawn by these weights. With `likely` q is that of Game.likely_world; else it is uniform.
2. Each action is played on every particle, then the round goes on for `horizon` actions: the opponent by the frozen
   policy, the own side by a simple player. What is left undecided is worth the difference of the two potentials, in
   gin rummy that of the deadwoods. Where a rule of the game makes the points it reports its rewards, it is played for
   points.
3. The action of the highest mean is taken, if it is better than that player's own by `evidence` standard errors of
   their difference on the same particles; otherwise the player's own. With few particles the best of a dozen noisy
   means is mostly noise: the answer then plays worse than the player that it rolls out.

All of it is a function of the view (its randomness is a hash of the view), so it is one strategy among all, and what
it earns bounds the policy's exploitability from below, however rough belief and rollouts are. It may be negative; then
playing the policy itself, which earns 0, is the better bound. Where the policy gives no probabilities on a deal or in a
rollout the answer is NaN throughout, which a match refuses.
Source: Lisy and Bowling 2017, "Equilibrium approximation quality of current no-limit poker bots". Deviations: particles
instead of the exact range, rollouts by a player and by deadwood where theirs check and call, and evidence.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_batching import custom_vmap

from dream.config.settings import number
from dream.equations.distributions import faults
from dream.equations.sampling import sample_action
from dream.evaluation.matches import hands_report, play_blocks
from dream.evaluation.statistics import Interval, mean_interval
from dream.evaluation.validity import paid_in_points
from dream.game_tree.tabular_policy import view_hash
from envs import EnumerableGame, Game, InputError, Policy, bot_names, check_plays, make_bot
from envs.errors import unknown
from envs.sampling import resample

_LEAST, _IMPOSSIBLE = 1e-30, -1e9
"""What stands for an action's chance of 0 in logarithms, and for the logarithm of an impossible deal's chance."""
THE_POLICY = "policy"
"""The rollout player that plays as the frozen policy does."""
_PLAYER = "greedy"
"""The rollout player of games that have it."""
_BLOCK = 64
"""Deals between two reports of progress."""
_EVIDENCE = 2.0
"""Standard errors, on games that cannot be enumerated."""


@dataclasses.dataclass(frozen=True)
class LocalConfig:
    """Settings of the local best response; conf/exploit.yaml says what each does."""

    proposals: int = number(64, 1)
    particles: int = number(16, 1)
    likely: bool = True
    horizon: int = number(8, 0)
    actions: int = number(24, 1)
    opponent_epsilon: float = number(0.02, 0, 1)
    player: str | None = None
    evidence: float | None = number(None, 0)
    games: int = number(2000, 4)
    seed: int = number(0, 0, 2**31 - 1)

    def sized(self, game: Game) -> LocalConfig:
        """Returns the settings with all that was left open."""
        named = self.player or (_PLAYER if _PLAYER in bot_names(game) else THE_POLICY)
        evidence = 0.0 if isinstance(game, EnumerableGame) else _EVIDENCE
        return dataclasses.replace(self, player=named, evidence=evidence if self.evidence is None else self.evidence)


def local_best_response(game: Game, policy: Policy, config: LocalConfig) -> Policy:
    """Builds the local best response to a frozen policy, as a Policy that gives one action all the chance.

    Args:
      game: for two players, with `determinize` and `replay_actions`.
      policy: frozen.
      config: sizes.
    Raises:
      InputError: the game cannot redeal what a view does not show, an unknown rollout player, or a policy of
        another game.
    """
    check_plays(policy, game)
    if game.num_players != 2:
        raise InputError(f"{game.name} has {game.num_players} players; a local best response is for two players")
    jax.eval_shape(functools.partial(_particle, game), jax.random.key(0))
    config = config.sized(game)
    if config.player != THE_POLICY and config.player not in bot_names(game):
        raise unknown("rollout player", config.player, [*bot_names(game), THE_POLICY])
    player = policy if config.player == THE_POLICY else make_bot(config.player, game)
    return Policy(_Local(paid_in_points(game), config).act, {"opponent": policy, "player": player})


def local_match(
    game: Game,
    local: Policy,
    policy: Policy,
    config: LocalConfig,
    progress: Callable[[int, Interval], None] = lambda played, points: None,
) -> dict[str, Any]:
    """Plays the local best response against the frozen policy.

    Args:
      game, local, policy, config: as of `local_best_response`, and what it returned.
      progress: called with the rounds played so far and the points per hand in them, every few deals.
    Returns:
      The report of `match`.
    Raises:
      InputError: the policy gives no distribution over the legal actions somewhere.
    """
    parts: list[dict[str, np.ndarray]] = []
    for part in play_blocks(game, local, policy, games=config.games, seed=config.seed, block=_BLOCK):
        parts.append(part)
        points = np.concatenate([part["points_per_hand"] for part in parts])
        if len(points) > 1:
            progress(points.size, mean_interval(points.mean(axis=1)))
    return hands_report({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


def _particle(game: Game, key: Array) -> Any:
    """Does what a game must be able to do; raises InputError where it cannot."""
    state = game.init(key)
    return game.replay_actions(game.determinize(game.view(state, state.current_player), key))


@dataclasses.dataclass(frozen=True)
class _Local:
    """The strategy's fixed half; policies come as parameters."""

    game: Game
    config: LocalConfig

    def act(self, params: dict[str, Policy], view: Any, legal: Array) -> Array:
        """Returns the action taken, one-hot: float32[A]."""

        # Lanes, deals and actions share one axis: nested ones cost many times the compilation.
        @custom_vmap
        def one(view: Any, legal: Array) -> Array:
            return self._acts(params, jax.tree.map(lambda x: x[None], view), legal[None])[0]

        @one.def_vmap
        def _rule(size: int, batched: Any, *seen: Any) -> tuple[Array, bool]:
            views = jax.tree.map(lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), seen, tuple(batched))
            return self._acts(params, *views), True

        return one(jax.tree.map(jnp.asarray, view), legal)

    def _acts(self, params: dict[str, Policy], views: Any, legal: Array) -> Array:
        """Returns the actions taken at L decisions: float32[L, A]."""
        game, config = self.game, self.config
        lanes, width = legal.shape[0], min(config.actions, game.num_actions)
        salts = jax.vmap(view_hash, (0, None))(views, jnp.uint32(config.seed))
        keys = jax.vmap(lambda salt: jax.random.split(jax.random.key(salt), 3))(salts)
        deal = game.likely_world if config.likely else lambda view, key: (game.determinize(view, key), jnp.float32(0))
        deals, corrections = jax.vmap(deal)(_repeat(views, config.proposals), _split(keys[:, 0], config.proposals))
        logs = jax.vmap(functools.partial(self._log_likelihood, params["opponent"]))(deals) + corrections
        weights = jax.nn.softmax(logs.reshape(lanes, -1))
        chosen = jax.vmap(functools.partial(resample, count=config.particles))(keys[:, 1], weights)
        chosen = (chosen + config.proposals * np.arange(lanes)[:, None]).reshape(-1)
        particles = _repeat(jax.tree.map(lambda x: x[chosen], deals), width)
        actions = jax.vmap(functools.partial(_tried, width=width))(jax.vmap(params["player"])(views, legal), legal)
        # All actions meet the same luck on one particle.
        luck = _repeat(_split(keys[:, 2], config.particles), width)
        tried = jnp.repeat(actions[:, None], config.particles, axis=1).reshape(-1)
        values = jax.vmap(functools.partial(self._value, params))(particles, tried, luck)
        values = values.reshape(lanes, config.particles, width)
        place = jax.vmap(functools.partial(_chosen, evidence=config.evidence))(values)
        best = jnp.take_along_axis(actions, place[:, None], axis=1)
        known = jnp.all(jnp.isfinite(values), axis=(1, 2)) & jnp.all(jnp.isfinite(logs.reshape(lanes, -1)), axis=1)
        return jnp.where(known[:, None], (np.arange(game.num_actions) == best).astype(jnp.float32), jnp.nan)

    def _log_likelihood(self, opponent: Policy, deal: Any) -> Array:
        """Returns the log of the chance that who is not to act did what it did on a deal: float32.

        `_IMPOSSIBLE` for a deal that contradicts its own actions: one of them, anyone's, was not legal, or another
        player is to act.
        """
        game, epsilon = self.game, self.config.opponent_epsilon
        start, actions, count = game.replay_actions(deal)

        def body(carry: tuple[Array, Any, Array, Array]) -> tuple[Array, Any, Array, Array]:
            t, state, log, fine = carry
            legal = game.legal_actions(state)
            chances = opponent(game.view(state, state.current_player), legal)
            chance = (1 - epsilon) * chances[actions[t]] + epsilon / jnp.maximum(jnp.sum(legal), 1)
            fine = fine & legal[actions[t]]
            # What a policy answers where nobody can come to is no fault of its own.
            counts = fine & (state.current_player != deal.current_player)
            log = log + jnp.where(counts, jnp.log(jnp.maximum(chance, _LEAST)), 0.0)
            log = jnp.where(counts & jnp.any(faults(chances, legal)), jnp.nan, log)
            return t + 1, game.step(state, actions[t])[0], log, fine

        carry = jnp.int32(0), start, jnp.float32(0), jnp.bool_(True)
        _, state, log, fine = lax.while_loop(lambda carry: carry[0] < count, body, carry)
        fine = fine & (state.current_player == deal.current_player)
        return jnp.where(fine, log, _IMPOSSIBLE)

    def _value(self, params: dict[str, Policy], start: Any, action: Array, key: Array) -> Array:
        """Returns what an action comes to for the player to act, in units of reward: float32."""
        game, player = self.game, start.current_player

        def body(carry: tuple[Array, Any, Array, Array]) -> tuple[Array, Any, Array, Array]:
            t, state, total, _ = carry
            seat = state.current_player
            view, legal = game.view(state, seat), game.legal_actions(state)
            chances = jnp.where(seat == player, params["player"](view, legal), params["opponent"](view, legal))
            drawn = sample_action(jax.random.fold_in(key, t), chances)
            total = jnp.where((t > 0) & jnp.any(faults(chances, legal)), jnp.nan, total)
            state, rewards, done = game.step(state, jnp.where(t == 0, action, drawn))
            return t + 1, state, total + rewards[player], done

        _, state, total, done = lax.while_loop(
            lambda carry: (carry[0] <= self.config.horizon) & ~carry[3],
            body,
            (jnp.int32(0), start, jnp.float32(0), jnp.bool_(False)),
        )
        return total + jnp.where(done, 0.0, game.potential(state, player) - game.potential(state, 1 - player))


def _tried(chances: Array, legal: Array, width: int) -> Array:
    """Returns the actions to try: int32[width], first the player's most probable one, then the lowest legal ones."""
    own = jnp.argmax(jnp.where(legal, chances, -1))
    others = jnp.where(legal & (np.arange(legal.shape[0]) != own), np.arange(legal.shape[0]), legal.shape[0])
    lowest = jnp.sort(others)[: width - 1]
    return jnp.concatenate([own[None], jnp.where(lowest < legal.shape[0], lowest, own)])


def _chosen(values: Array, evidence: float) -> Array:
    """Returns the place of the action that is taken, among values by particle and action: int32, from float32[K, n]."""
    more = values - values[:, :1]
    error = jnp.std(more, axis=0) / np.sqrt(max(values.shape[0] - 1, 1))
    gain = jnp.mean(more, axis=0)
    return jnp.argmax(jnp.where(gain > evidence * error, gain, 0.0))


def _repeat(tree: Any, times: int) -> Any:
    """Repeats each row so many times: [n * times, ...], from [n, ...]."""
    return jax.tree.map(lambda x: jnp.repeat(x, times, axis=0), tree)


def _split(keys: Array, count: int) -> Array:
    """Splits each key: [n * count], from [n]."""
    return jax.vmap(lambda key: jax.random.split(key, count))(keys).reshape(-1)
