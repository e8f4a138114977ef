"""Behaviour cloning: a policy and a value function learned by supervised learning from games of other players.

    loss = mean over decisions of  - log pi(a | view) + w_v (V(view) - G)^2 / var(G),

a the action taken, G the return of its player from there on, var(G) over the minibatch. The games come from a file of
records (`records`), as written by the browser page and `python -m dream.evaluate histories=`, or are played in each
iteration by a player (`player`) against itself: this distils a search player into a network that plays without search.
An iteration consists of `epochs` passes over its decisions.
`unseen_accuracy` and `unseen_cross_entropy` are measured on decisions not yet used for learning: those of the last
games of the file, a share `held_out` of it, or those of the games just played.
Source: Pomerleau 1991, "Efficient training of artificial neural networks for autonomous navigation"; the value next to
the policy as in Silver et al. 2017, "Mastering the game of Go without human knowledge", methods.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
import zlib
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from dream.algorithms.counters import Counters
from dream.algorithms.types import Algorithm, Metrics, Resources, Value
from dream.buffers.replay import Replay, batches_per_pass, collect, nth_of_passes
from dream.compiled.bounded import BoundedCalls, whole
from dream.config.settings import number
from dream.equations.regret_matching import masked_log_softmax
from dream.equations.sampling import sample_action
from dream.networks import Network, make_network
from dream.networks.fit import adam, fit
from dream.networks.policy import Acts, make_network_policy
from dream.rollout import recorded, self_play
from dream.rollout.recorded import Shown
from dream.rollout.summary import masked_mean
from envs import Game, InputError, Policy
from envs.records import Record, counted_once, to_line

_JUDGED = 2048
"""Decisions at most that `unseen_accuracy` is a mean of."""


def _spread(count: Array, size: int) -> Array:
    """Returns places evenly spread from 0 to `count`: int32[size]; 0, 1, 2 and so on where there are at most `size`."""
    n = np.arange(size)
    ranks = n * (count // size) + n * (count % size) // size  # n * count // size, without its large product
    return jnp.where(count > size, ranks, n)


@dataclasses.dataclass(frozen=True)
class BehaviourCloningConfig:
    """Settings of behaviour cloning; conf/algo/behaviour_cloning.yaml says what each does."""

    name: str = "behaviour_cloning"
    records: str | None = None
    imitated: tuple[str, ...] | None = None
    held_out: float = number(0.1, 0, 0.9)
    player: str = "random"
    episodes_per_iteration: int = number(256, 1)
    num_envs: int | None = number(None, 1)
    batch_size: int = number(512, 1)
    epochs: int = number(1, 1)
    learning_rate: float = number(1e-3, 0, above=True)
    value_weight: float = number(0.5, 0)
    l2: float = number(0.0, 0)
    max_grad_norm: float = number(1.0, 0, above=True)


class CloningState(NamedTuple):
    """All that a run needs to go on.

    Attributes:
      params, optimizer_state: of the network.
      key: not consumed.
      iteration: int32, completed ones.
    """

    params: Any
    optimizer_state: Any
    key: Array
    iteration: Array


class Lessons(NamedTuple):
    """What an iteration learns from.

    Attributes:
      replay: of Shown, the decisions to be learned.
      unseen: of Shown, the decisions judged before that; None: there are none.
      counters: of the play.
    """

    replay: Replay
    unseen: Replay | None
    counters: Counters


def make(config: BehaviourCloningConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds the learner.

    Raises:
      InputError: no readable records of this game, none by the players named, players named without records, an unknown
        player, or a wrong network.
    """
    if config.imitated is not None and config.records is None:
        raise InputError(
            f"algo.imitated={list(config.imitated)} chooses among the players of records, and algo.records is null; "
            "give the records, or imitate one player by algo.player"
        )
    num_envs = self_play.num_envs_for(config.num_envs, config.episodes_per_iteration)
    records = None if config.records is None else _readable(config, resources.find_records(config.records, game))
    player = resources.find_player(config.player, game) if records is None else None
    learner = _Cloning(config, game, make_network(network, game), num_envs, player, records)
    return Algorithm(
        learner.init, learner.iterate, learner.policies, learner.value, learner.calls, traceable=True,
        counts=("nodes", "episodes") if records is None else (),
        fixed={} if records is None else _split(config, records),
    )  # fmt: skip


def _split(config: BehaviourCloningConfig, records: Sequence[Record]) -> dict[str, float]:
    """Returns what decides which decisions are learned and which are unseen: a share, and a checksum of the games."""
    games = "\n".join(to_line(one) for one in records)
    return {"held_out": config.held_out, "records": zlib.crc32(games.encode())}


def _readable(config: BehaviourCloningConfig, records: Sequence[Record]) -> tuple[Record, ...]:
    """Returns the records, each round once; raises InputError where there is nothing in them to learn from."""
    if not records:
        raise InputError(f"algo.records={config.records} holds no records")
    players = sorted({name for one in records for name in one.players})
    for name in config.imitated or ():
        if name not in players:
            raise InputError(
                f"algo.imitated names {name!r}; players in {config.records}: {', '.join(players) or 'not named there'}"
            )
    return tuple(counted_once(records))


@dataclasses.dataclass(frozen=True, eq=False)
class _Cloning:
    """The learner; the network's advantage head holds the policy's logits."""

    config: BehaviourCloningConfig
    game: Game
    network: Network
    num_envs: int
    player: Policy | None
    records: tuple[Record, ...] | None

    @functools.cached_property
    def optimizer(self) -> optax.GradientTransformation:
        return adam(max_grad_norm=self.config.max_grad_norm, l2=self.config.l2)

    @functools.partial(jax.jit, static_argnums=0)
    def init(self, key: Array) -> CloningState:
        """Initialises the network; nothing is read or played."""
        key, network_key = jax.random.split(key)
        params = self.network.init(network_key)
        return CloningState(params, self.optimizer.init(params), key, jnp.int32(0))

    @functools.cached_property
    def _play_calls(self) -> BoundedCalls:
        return BoundedCalls.of(self.play, game=self.game)

    @functools.cached_property
    def _learn_calls(self) -> BoundedCalls:
        return BoundedCalls.of(self.learn, game=self.game)

    def iterate(self, state: CloningState) -> tuple[CloningState, Metrics]:
        return whole(self.calls(state))

    def calls(self, state: CloningState) -> Generator[None, None, tuple[CloningState, Metrics]]:
        began = time.perf_counter()
        if self.player is None:
            lessons = self._read
        else:
            lessons = jax.block_until_ready((yield from self._play_calls(state, self.player)))
        played = time.perf_counter()
        learned = yield from self._learn_calls(state, lessons.replay, lessons.unseen)
        state, metrics, counters = jax.block_until_ready(learned)
        seconds = {"seconds_generate": played - began, "seconds_fit": time.perf_counter() - played}
        numbers = jax.device_get({**metrics, **(lessons.counters + counters).metrics()})
        return state, {**{name: float(x) for name, x in numbers.items()}, **seconds}

    def policies(self, state: CloningState) -> dict[str, Policy]:
        return {"current": make_network_policy(self.game, self.network, state.params, Acts("softmax"))}

    def value(self, state: CloningState) -> Value:
        return Value(self._value, state.params)

    def _value(self, params: Any, view: Any) -> Array:
        return self.network.apply_inputs(params, self.network.inputs.of_view(view))[1]

    def _keys(self, state: CloningState) -> Array:
        return jax.random.split(jax.random.fold_in(state.key, state.iteration))

    @functools.cached_property
    def _read(self) -> Lessons:
        """The decisions of the records, those of the last games apart; made once, when they are first needed."""
        rows, numbers = recorded.decisions(self.game, self.records, self.config.imitated)
        held_out = min(math.ceil(self.config.held_out * len(self.records)), len(self.records) - 1)
        seen = numbers < len(self.records) - held_out
        if not len(numbers):
            raise InputError(f"algo.records={self.config.records} holds no decision to learn from")
        if not seen.any():
            raise InputError(
                f"algo.held_out={self.config.held_out} holds out every game of algo.records={self.config.records} "
                "with a decision to learn from; it must be lower"
            )

        def those(where: np.ndarray) -> Replay | None:
            return collect(jax.tree.map(lambda x: x[None], rows), where[None]) if where.any() else None

        return Lessons(those(seen), those(~seen), Counters())

    @functools.partial(jax.jit, static_argnums=0)
    def play(self, state: CloningState, player: Policy) -> Lessons:
        """Plays an iteration's games of the player against itself."""
        key, _ = self._keys(state)

        def act(carry: tuple[()], view: Any, legal: Array, _: Array, key: Array) -> tuple[Array, Any, Any]:
            return sample_action(key, player(view, legal)), carry, ()

        games = self.config.episodes_per_iteration
        actor = self_play.Actor(lambda key: (), act)
        record = self_play.play(self.game, actor, key, games=games, num_envs=self.num_envs)
        d, count = record.decisions, jnp.sum(record.valid)
        returns = jax.vmap(recorded.own_returns, in_axes=1, out_axes=1)(
            d.rewards, d.done | ~record.valid, d.player.astype(jnp.int32)
        )
        replay = collect(Shown(d.view, d.legal, d.action, returns), record.valid)
        dealt = record.results["games"]
        counters = Counters(episodes=dealt, decisions=count, nodes=count, transitions=count + dealt)
        return Lessons(replay, replay, counters)

    @functools.partial(jax.jit, static_argnums=0)
    def learn(
        self, state: CloningState, replay: Replay, unseen: Replay | None
    ) -> tuple[CloningState, dict[str, Array], Counters]:
        """Judges the network on the unseen decisions, then fits it; returns state, metrics and counters."""
        config, (_, key) = self.config, self._keys(state)
        steps = config.epochs * batches_per_pass(replay, config.batch_size)

        def batch(n: Array) -> Shown:
            return nth_of_passes(replay, key, n, config.batch_size)

        judged, new = ({}, 0) if unseen is None else self._judged(state.params, unseen)
        params, optimizer_state, metrics = fit(
            self._loss, self.optimizer, state.params, state.optimizer_state, batch,
            learning_rate=config.learning_rate, steps=steps,
        )  # fmt: skip
        counters = Counters(gradient_steps=steps, network_rows=config.epochs * replay.count + new)
        return CloningState(params, optimizer_state, state.key, state.iteration + 1), metrics | judged, counters

    def _judged(self, params: Any, unseen: Replay) -> tuple[dict[str, Array], Array]:
        """Returns cross-entropy and accuracy on decisions spread over the unseen ones, and how many those are."""
        size = min(_JUDGED, unseen.index.shape[0])
        count = jnp.minimum(unseen.count, size)
        valid = np.arange(size) < count
        places = unseen.index[_spread(unseen.count, size)]
        info = self._compared(params, jax.tree.map(lambda x: x[places], unseen.rows))
        return {f"unseen_{name}": masked_mean(info[name], valid) for name in ("cross_entropy", "accuracy")}, count

    def _compared(self, params: Any, rows: Shown) -> dict[str, Array]:
        """Returns for each decision how the network compares with what was done and won there: float32[B] by name."""
        inputs = jax.vmap(self.network.inputs.of_view)(rows.view)
        logits, value = self.network.apply_inputs(params, inputs)
        legal = jnp.unpackbits(rows.legal, axis=-1, count=self.game.num_actions).astype(bool)
        logs = masked_log_softmax(logits, legal)
        action = rows.action.astype(jnp.int32)
        return {
            "cross_entropy": -jnp.take_along_axis(logs, action[:, None], axis=-1)[:, 0],
            "accuracy": (jnp.argmax(jnp.where(legal, logs, -jnp.inf), axis=-1) == action).astype(jnp.float32),
            "loss_value": (value - rows.returns) ** 2,
        }

    def _loss(self, params: Any, rows: Shown) -> tuple[Array, dict[str, Array]]:
        info = {name: jnp.mean(x) for name, x in self._compared(params, rows).items()}
        relative = info["loss_value"] / jnp.maximum(jnp.var(rows.returns), 1e-6)
        loss = info["cross_entropy"] + self.config.value_weight * relative
        return loss, info | {"loss": loss}
