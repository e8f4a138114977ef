"""Steps of many games at once against fixed players: a step is one decision of the learner in every lane.

A step plays the learner's decision and then, in the same compiled loop, all that comes before its next one: the other
players' moves, those an assistant makes for the learner, the end of a game and the next deal. At most `moves` of them
are played in a step; a lane whose learner is still not to decide sits out until it is. Games go on from one call to the
next, so the last step of a call does not end them; but it lasts until the learner is to decide in every game it has
decided in, where its value is known, or the game is over.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from dream.compiled import devices
from dream.compiled.bounded import long_scan
from dream.equations.sampling import sample_action
from dream.rollout.opponents import Mixture, Seating, assign_seats, is_past_self, policy_at
from dream.rollout.summary import rollout_metrics
from envs import Game, Policy
from envs.batching import where_needed
from envs.totals import settled, tied


class Lane(NamedTuple):
    """A game under way; in use every field has a leading axis of lanes.

    Attributes:
      state: the game's.
      seating: the learner's seat and its opponent.
      awaiting_learner: bool, the learner is to decide.
      credited: bool, it has decided in this game, so that what the game pays is the result of a decision.
      paid: float32[P], what the game has paid so far; () where it pays at its end alone.
    """

    state: Any
    seating: Seating
    awaiting_learner: Array
    credited: Array
    paid: Any = ()


class TransitionSummary(NamedTuple):
    """What the moves of one step add up to.

    Attributes:
      reward: float32, paid to the learner by games it decided in.
      done: bool, whether such a game ended.
      tied: bool, whether it ended without a winner.
      final_reward: float32, what all of it paid the learner.
      results: float32 by name, sums over the games that ended; `games` counts them.
      moves: int32, moves of all players.
      deals: int32, games dealt.
      past_self_moves: int32, moves of the learner as it was.
      potential: float32, the game's potential for the learner after the last move of a game it has decided in, before
        the step where there was none; 0 unless asked for.
    """

    reward: Array
    done: Array
    tied: Array
    final_reward: Array
    results: dict[str, Array]
    moves: Array
    deals: Array
    past_self_moves: Array
    potential: Array


class Step(NamedTuple):
    """One step of one lane; in a record every field has leading axes [T, lanes].

    Attributes:
      valid: bool, whether the learner decided; else the fields on its decision mean nothing.
      view: what it saw.
      legal: uint8[ceil(A / 8)], what it might do, packed by jnp.packbits.
      action: int16.
      potential: float32, the game's potential for it at the start of the step, 0 unless asked for.
      auxiliary: float32, game.auxiliary for it before its move.
      phase: int8, index into game.phases.
      extras: what the actor outputs besides the action.
      summary: of all that happened until the end of the step.
    """

    valid: Array
    view: Any
    legal: Array
    action: Array
    potential: Array
    auxiliary: Array
    phase: Array
    extras: Any
    summary: TransitionSummary


_Carry = tuple[Lane, TransitionSummary, Array]
"""Lanes, what their moves add up to, and the number of the move."""


@dataclasses.dataclass(frozen=True, eq=False)
class Rollouts:
    """How games are played on.

    Attributes:
      game: the game.
      mixture: the fixed players and their shares of games; the learner itself has none.
      assistant: makes some of the learner's decisions for it (envs.make_assistant), or None.
      moves: the most moves of others than the learner in one step.
      potentials: whether they are recorded.
    """

    game: Game
    mixture: Mixture
    assistant: Policy | None
    moves: int
    potentials: bool = True

    def start(self, key: Array, lanes: int) -> Lane:
        """Deals, one game per lane; the first step plays on to where the learner decides.

        To play on here would compile all players a second time.
        """
        return devices.by_lane(jax.vmap(self._deal), jax.random.split(key, lanes))

    def play(
        self, lanes: Lane, act: Callable[[Any, Array, Array], tuple[Array, Any]], key: Array, steps: int
    ) -> tuple[Lane, Step]:
        """Plays steps (jit the caller).

        Args:
          lanes: [N].
          act: (view, legal bool[A], key) -> (action int32, extras), the learner's decision.
          key: consumed.
          steps: T.
        Returns:
          (lanes [N] after them, Step [T, N]).
        """
        decide = jax.vmap(functools.partial(self._decide, act))

        def body(lanes: Lane, at: tuple[Array, Array]) -> tuple[Lane, Step]:
            key, most = at
            act_key, move_key = jax.random.split(key)

            def turn(lanes: Lane, keys: Array) -> tuple[Lane, Step]:
                lanes, step = decide(lanes, keys)
                lanes, summary = self._play_on(lanes, step.summary, move_key, most)
                return lanes, step._replace(summary=summary)

            return devices.by_lane(turn, lanes, jax.random.split(act_key, lanes.awaiting_learner.shape[0]))

        def decision(lanes: Lane, at: tuple[Array, Array]) -> Step:
            """Returns a step as it is before the others' moves, which change none of its shapes."""
            return decide(lanes, jax.random.split(at[0], lanes.awaiting_learner.shape[0]))[1]

        most = jnp.full(steps, self.moves).at[-1].set(max(self.moves, self.game.max_length))
        return long_scan(body, lanes, (jax.random.split(key, steps), most), decision)

    def helped(self, view: Any, legal: Array) -> Array:
        """Returns the assistant's choice, all 0 where the learner is to decide: float32[A]."""
        return jnp.zeros(legal.shape[0]) if self.assistant is None else self.assistant(view, legal)

    def seen(self, lane: Lane) -> Any:
        """Returns the learner's view of a game under way, with the opponent's id where it is shown."""
        view = self.game.view(lane.state, lane.seating.seat)
        if not self.mixture.opponent_id_prob:
            return view
        return self.game.opponent_ids.name(view, lane.seating.opponent_id)

    def _deal(self, key: Array) -> Lane:
        deal_key, seat_key = jax.random.split(key)
        seating = assign_seats(self.mixture, self.game.num_players, seat_key)
        paid = () if self.game.pays_at_end else jnp.zeros(self.game.num_players)
        return Lane(self.game.init(deal_key), seating, jnp.bool_(False), jnp.bool_(False), paid)

    def _results(self, lane: Lane, reward: Array) -> dict[str, Array]:
        """Returns the results of a game that has ended, the learner's side: float32 by name."""
        results = {"reward": reward, "games": True}
        if self.game.num_players == 2 and self.game.zero_sum:
            results |= {"win_rate": reward > 0, "loss_rate": reward < 0, "tie_rate": reward == 0}
        results |= self.game.result(lane.state, lane.seating.seat)
        return {name: jnp.asarray(x, jnp.float32) for name, x in results.items()}

    def _no_moves(self, lane: Lane) -> TransitionSummary:
        zero, none = jnp.float32(0), jnp.int32(0)
        results = dict.fromkeys(jax.eval_shape(self._results, lane, zero), zero)
        no = jnp.bool_(False)
        potential = self._potential(lane.state, lane.seating.seat)
        return TransitionSummary(
            zero, no, no, zero, results, moves=none, deals=none, past_self_moves=none, potential=potential
        )

    def _potential(self, state: Any, seat: Array) -> Array:
        return self.game.potential(state, seat) if self.potentials else jnp.float32(0)

    def _decide(self, act: Callable[..., Any], lane: Lane, key: Array) -> tuple[Lane, Step]:
        """Plays the learner's decision where it has one."""
        game, seat, decides = self.game, lane.seating.seat, lane.awaiting_learner
        view, legal = self.seen(lane), game.legal_actions(lane.state)
        action, extras = act(view, legal, key)
        no_moves = self._no_moves(lane)
        moved = self._step(lane._replace(credited=jnp.bool_(True)), no_moves, action)
        after, summary = jax.tree.map(lambda new, old: jnp.where(decides, new, old), moved, (lane, no_moves))
        step = Step(
            valid=decides,
            view=view,
            legal=jnp.packbits(legal),
            action=action.astype(jnp.int16),
            potential=no_moves.potential,
            auxiliary=game.auxiliary(lane.state, seat) if game.auxiliary else jnp.float32(0),
            phase=game.phase(lane.state).astype(jnp.int8),
            extras=extras,
            summary=summary,
        )
        return after, step

    def _step(self, lane: Lane, summary: TransitionSummary, action: Array) -> tuple[Lane, TransitionSummary]:
        """Plays an action and adds its results to the summary; a game that ends stays as it is until the next deal."""
        state, rewards, over = self.game.step(lane.state, action)
        lane = lane._replace(state=state, awaiting_learner=jnp.bool_(False))
        paid = rewards if self.game.pays_at_end else lane.paid + rewards
        lane = lane._replace(paid=() if self.game.pays_at_end else paid)
        earned = settled(self.game, paid)
        reward, total = rewards[lane.seating.seat], earned[lane.seating.seat]
        results = self._results(lane, total)
        return lane, summary._replace(
            reward=summary.reward + jnp.where(lane.credited, reward, 0.0),
            done=summary.done | (over & lane.credited),
            tied=summary.tied | (over & lane.credited & tied(earned)),
            final_reward=summary.final_reward + jnp.where(over & lane.credited, total, 0.0),
            results={name: total + jnp.where(over, results[name], 0.0) for name, total in summary.results.items()},
            moves=summary.moves + 1,
            potential=jnp.where(lane.credited, self._potential(state, lane.seating.seat), summary.potential),
        )

    def _play_on(
        self, lanes: Lane, summary: TransitionSummary, key: Array, most: Array
    ) -> tuple[Lane, TransitionSummary]:
        """Plays until the learner is to decide in every lane, or as many moves as there may be: leading axis [N].

        Beyond `moves` only games that the learner has decided in are waited for.
        """
        size = lanes.awaiting_learner.shape[0]

        def body(carry: _Carry) -> _Carry:
            lanes, summary, n = carry
            keys = devices.lane_keys(jax.random.fold_in(key, n), size)
            lanes, summary = jax.vmap(self._move)(lanes, summary, keys, self._is_waited_for(lanes, n))
            return lanes, summary, n + 1

        def unfinished(carry: _Carry) -> Array:
            lanes, _, n = carry
            return jnp.any(self._is_waited_for(lanes, n)) & (n < most)

        return lax.while_loop(unfinished, body, (lanes, summary, jnp.int32(0)))[:2]

    def _is_waited_for(self, lanes: Lane, n: Array) -> Array:
        """Returns whether a lane plays move n of a step, which no other lane has a say in: bool[N]."""
        return ~lanes.awaiting_learner & (lanes.credited | (n < self.moves))

    def _move(self, lane: Lane, summary: TransitionSummary, key: Array, plays: Array) -> tuple[Lane, TransitionSummary]:
        """Deals anew where a game is over; then plays the move of whoever is to act, or finds that the learner is.

        Only where `plays`, bool.
        What only some lanes need is gathered from all of them, each part for itself: one within the other would run
        every player for every few lanes in which any of them acts.
        """
        deal_key, act_key = jax.random.split(key)
        is_over = plays & (lane.state.current_player < 0)
        nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(self._seen_by_player, lane))
        lane = where_needed(is_over, self._deal, lane, deal_key)
        summary = summary._replace(deals=summary.deals + is_over)
        view, legal = where_needed(plays, self._seen_by_player, nothing, lane)
        player = lane.state.current_player
        is_own, none = player == lane.seating.seat, jnp.zeros(self.game.num_actions)
        policy = none if self.assistant is None else where_needed(plays & is_own, self.helped, none, view, legal)
        policy = policy_at(self.mixture, lane.seating, player, policy, view, legal, plays)
        decides = plays & is_own & (jnp.sum(policy) == 0)
        past = plays & is_past_self(self.mixture, lane.seating, player)
        summary = summary._replace(past_self_moves=summary.past_self_moves + past)
        lane, summary = where_needed(plays & ~decides, self._act, (lane, summary), lane, summary, policy, act_key)
        return lane._replace(awaiting_learner=lane.awaiting_learner | decides), summary

    def _seen_by_player(self, lane: Lane) -> tuple[Any, Array]:
        return self.game.view(lane.state, lane.state.current_player), self.game.legal_actions(lane.state)

    def _act(self, lane: Lane, summary: TransitionSummary, policy: Array, key: Array) -> tuple[Lane, TransitionSummary]:
        return self._step(lane, summary, sample_action(key, policy))


def step_metrics(game: Game, step: Step, returns: Array) -> dict[str, Array]:
    """Returns the metrics of steps, the learner's side; those of games are of the games that ended.

    Args:
      game: what was played.
      step: [T, N], its extras with `value` and `entropy`.
      returns: float32[T, N], training return of each decision.
    """
    results = {name: jnp.sum(x) for name, x in step.summary.results.items()}
    earned = results.pop("reward")
    shared = rollout_metrics(
        game,
        results=results,
        moves=jnp.sum(step.summary.moves),
        learned=step.valid,
        phase=step.phase,
        returns=returns,
        values=step.extras.value,
        entropies=step.extras.entropy,
    )
    own = {"learner_reward": earned / jnp.maximum(results["games"], 1), "decided_share": jnp.mean(step.valid)}
    return shared | own
