"""Steps of many games at once against fixed players: a step is one decision of the learner in every lane.

A step plays the learner's decision and then, in the same compiled loop, whatever lies before its next one: the other
players' moves, those an assistant makes for the learner, the end of a game and the next deal. At most `moves` of them
are played in a step; a lane whose learner is still not to decide sits out until it is. Games go on from one call to the
next, so the last step of a call does not end them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dream.equations.sampling import sample_action
from dream.rollout.opponents import Mixture, Table, policy_at, seat
from envs import Game, Policy
from envs.batching import where_needed


class Lane(NamedTuple):
    """A game under way; in use every field has a leading axis of lanes.

    Attributes:
      state: the game's.
      table: the learner's seat and its opponent.
      ready: bool, the learner is to decide.
      owed: bool, it has decided in this game, so that what the game pays is the result of a decision.
    """

    state: Any
    table: Table
    ready: Array
    owed: Array


class Passed(NamedTuple):
    """What moves add up to.

    Attributes:
      reward: float32, paid to the learner by games it decided in.
      done: bool, whether such a game ended.
      drawn: bool, whether it ended without a winner.
      ending: float32, what its last move paid the learner.
      results: float32 by name, sums over the games that ended; `games` counts them.
      moves: int32, moves of all players.
    """

    reward: Array
    done: Array
    drawn: Array
    ending: Array
    results: dict[str, Array]
    moves: Array


class Step(NamedTuple):
    """One step of one lane; in a record every field has leading axes [T, lanes].

    Attributes:
      valid: bool, whether the learner decided; else the fields on its decision mean nothing.
      view: what it saw.
      legal: uint8[ceil(A / 8)], what it might do, packed by jnp.packbits.
      action: int16.
      potentials: float32[2], the game's potential for it before and after its move, 0 unless asked for.
      auxiliary: float32, game.auxiliary for it before its move.
      phase: int8, index into game.phases.
      note: what the actor adds.
      passed: what happened until the end of the step.
    """

    valid: Array
    view: Any
    legal: Array
    action: Array
    potentials: Array
    auxiliary: Array
    phase: Array
    note: Any
    passed: Passed


@dataclasses.dataclass(frozen=True, eq=False)
class Rollouts:
    """How games are played on.

    Attributes:
      game: the game.
      mixture: the fixed players and their shares of games; the learner itself has none.
      assistant: makes some of the learner's decisions for it (envs.make_assistant), or None.
      moves: the most moves of others than the learner in one step.
      potentials: whether they are told.
    """

    game: Game
    mixture: Mixture
    assistant: Policy | None
    moves: int
    potentials: bool = True

    def start(self, key: Array, lanes: int) -> Lane:
        """Deals, one game a lane, and plays on."""
        deal_key, play_key = jax.random.split(key)
        dealt = jax.vmap(self._deal)(jax.random.split(deal_key, lanes))
        return self._play_on(dealt, jax.vmap(self._nothing)(dealt), play_key)[0]

    def play(
        self, lanes: Lane, act: Callable[[Any, Array, Array], tuple[Array, Any]], key: Array, steps: int
    ) -> tuple[Lane, Step]:
        """Plays steps (jit the caller).

        Args:
          lanes: [N].
          act: (view, legal bool[A], key) -> (action int32, note), the learner's decision.
          key: consumed.
          steps: T.
        Returns:
          (lanes [N] after them, Step [T, N]).
        """

        def body(lanes: Lane, key: Array) -> tuple[Lane, Step]:
            act_key, move_key = jax.random.split(key)
            keys = jax.random.split(act_key, lanes.ready.shape[0])
            lanes, step = jax.vmap(functools.partial(self._decide, act))(lanes, keys)
            lanes, passed = self._play_on(lanes, step.passed, move_key)
            return lanes, step._replace(passed=passed)

        return lax.scan(body, lanes, jax.random.split(key, steps))

    def helped(self, view: Any, legal: Array) -> Array:
        """Returns the assistant's choice, all 0 where the learner is to decide: float32[A]."""
        return jnp.zeros(legal.shape[0]) if self.assistant is None else self.assistant(view, legal)

    def seen(self, lane: Lane) -> Any:
        """Returns the learner's view of a game under way, the opponent named where it is told of it."""
        view = self.game.view(lane.state, lane.table.seat)
        return self.game.opponent_ids.name(view, lane.table.named) if self.mixture.told else view

    def _deal(self, key: Array) -> Lane:
        deal_key, seat_key = jax.random.split(key)
        table = seat(self.mixture, self.game.num_players, seat_key)
        return Lane(self.game.init(deal_key), table, jnp.bool_(False), jnp.bool_(False))

    def _results(self, lane: Lane, reward: Array) -> dict[str, Array]:
        """Tells a game that has ended from the learner's side: float32 by name."""
        told = {"win_rate": reward > 0, "loss_rate": reward < 0, "draw_rate": reward == 0}
        told |= {"points": reward * self.game.reward_scale, "games": True}
        told |= self.game.result(lane.state, lane.table.seat)
        return {name: jnp.asarray(x, jnp.float32) for name, x in told.items()}

    def _nothing(self, lane: Lane) -> Passed:
        names = jax.eval_shape(self._results, lane, jnp.float32(0))
        none = {name: jnp.float32(0) for name in names}
        return Passed(jnp.float32(0), jnp.bool_(False), jnp.bool_(False), jnp.float32(0), none, jnp.int32(0))

    def _decide(self, act: Callable[..., Any], lane: Lane, key: Array) -> tuple[Lane, Step]:
        """Plays the learner's decision where it has one."""
        game, mine, ready = self.game, lane.table.seat, lane.ready
        view, legal = self.seen(lane), game.legal_actions(lane.state)
        action, note = act(view, legal, key)
        nothing = self._nothing(lane)
        moved = self._step(lane._replace(owed=jnp.bool_(True)), nothing, action)
        after, passed = jax.tree.map(lambda new, old: jnp.where(ready, new, old), moved, (lane, nothing))
        potentials = jnp.zeros(2)
        if self.potentials:
            potentials = jnp.stack([game.potential(state, mine) for state in (lane.state, after.state)])
        step = Step(
            valid=ready,
            view=view,
            legal=jnp.packbits(legal),
            action=action.astype(jnp.int16),
            potentials=potentials,
            auxiliary=game.auxiliary(lane.state, mine) if game.auxiliary else jnp.float32(0),
            phase=game.phase(lane.state).astype(jnp.int8),
            note=note,
            passed=passed,
        )
        return after, step

    def _step(self, lane: Lane, passed: Passed, action: Array) -> tuple[Lane, Passed]:
        """Plays an action and adds up what it brings; a game that ends stays as it is until the next deal."""
        state, paid, over = self.game.step(lane.state, action)
        lane = lane._replace(state=state, ready=jnp.bool_(False))
        reward, results = paid[lane.table.seat], self._results(lane, paid[lane.table.seat])
        return lane, Passed(
            reward=passed.reward + jnp.where(lane.owed, reward, 0.0),
            done=passed.done | (over & lane.owed),
            drawn=passed.drawn | (over & lane.owed & jnp.all(paid == 0)),
            ending=passed.ending + jnp.where(over & lane.owed, reward, 0.0),
            results={name: total + jnp.where(over, results[name], 0.0) for name, total in passed.results.items()},
            moves=passed.moves + 1,
        )

    def _play_on(self, lanes: Lane, passed: Passed, key: Array) -> tuple[Lane, Passed]:
        """Plays until the learner is to decide in every lane, or as many moves as there may be: leading axis [N]."""
        size = lanes.ready.shape[0]

        def body(carry: tuple[Lane, Passed, Array]) -> tuple[Lane, Passed, Array]:
            lanes, passed, n = carry
            keys = jax.random.split(jax.random.fold_in(key, n), size)
            lanes, passed = jax.vmap(self._move)(lanes, passed, keys)
            return lanes, passed, n + 1

        def unfinished(carry: tuple[Lane, Passed, Array]) -> Array:
            return ~jnp.all(carry[0].ready) & (carry[2] < self.moves)

        return lax.while_loop(unfinished, body, (lanes, passed, jnp.int32(0)))[:2]

    def _move(self, lane: Lane, passed: Passed, key: Array) -> tuple[Lane, Passed]:
        """Deals anew where a game is over; then plays the move of whoever is to act, or finds the learner ready."""
        return where_needed(~lane.ready, self._advance, (lane, passed), lane, passed, key)

    def _advance(self, lane: Lane, passed: Passed, key: Array) -> tuple[Lane, Passed]:
        deal_key, act_key = jax.random.split(key)
        lane = where_needed(lane.state.current_player < 0, self._deal, lane, deal_key)
        player = lane.state.current_player
        view, legal = self.game.view(lane.state, player), self.game.legal_actions(lane.state)
        mine, nothing = player == lane.table.seat, jnp.zeros(self.game.num_actions)
        chances = nothing if self.assistant is None else where_needed(mine, self.helped, nothing, view, legal)
        chances = policy_at(self.mixture, lane.table, player, chances, view, legal)
        ready = mine & (jnp.sum(chances) == 0)
        moved = self._step(lane, passed, sample_action(act_key, chances))
        waits = (lane._replace(ready=jnp.bool_(True)), passed)
        return jax.tree.map(lambda kept, new: jnp.where(ready, kept, new), waits, moved)


def describe(game: Game, step: Step, returns: Array) -> dict[str, Array]:
    """Returns what the steps tell a researcher; `selfplay/` names are of the games that ended, the learner's side.

    Args:
      game: what was played.
      step: [T, N], its notes with `value` and `entropy`.
      returns: float32[T, N], training return of each decision.
    """
    sums = {name: jnp.sum(x) for name, x in step.passed.results.items()}
    games, valid = sums.pop("games"), step.valid

    def mean(x: Array, where: Array = valid) -> Array:
        return jnp.sum(jnp.where(where, x, 0.0)) / jnp.maximum(jnp.sum(where), 1)

    def variance(x: Array) -> Array:
        return mean((x - mean(x)) ** 2)

    moves, spread = jnp.sum(step.passed.moves), variance(returns)
    reward = sums["points"] / game.reward_scale
    return {
        "episodes": games,
        "decisions": jnp.sum(valid),
        "nodes": moves,
        "transitions": moves,
        **{f"selfplay/{name}": total / jnp.maximum(games, 1) for name, total in sums.items()},
        "selfplay/length": moves / jnp.maximum(games, 1),
        "learner_reward": reward / jnp.maximum(games, 1),
        "decided_share": jnp.mean(valid),
        "training_return_mean": mean(returns),
        "training_return_spread": jnp.sqrt(spread),
        "value_explained_variance": 1.0 - variance(returns - step.note.value) / jnp.maximum(spread, 1e-12),
        **{f"entropy/{name}": mean(step.note.entropy, valid & (step.phase == n)) for n, name in enumerate(game.phases)},
    }
