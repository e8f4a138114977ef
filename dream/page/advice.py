"""What a player makes of a position: probabilities, expected points of each action, beliefs about hidden cards.

Everything here is computed from a view. Worlds are deals that would have shown the same view, where the game can draw
such as players come to (`Game.likely_world`), else all alike.

- Expected points of an action: the mean over worlds of what the seat wins when it plays the action and everyone then
  plays by a policy. All actions are tried in the same worlds, so that their differences are paired. As each world is
  played out with its cards fixed, but by policies that see only their views, nobody profits from what it cannot know.
  Where all deals are drawn alike, worlds are resampled by how likely the others' actions so far were by that policy:
  else a bet would say nothing of a hand, and a fold that is right would seem to lose.
- Belief: worlds weighted by how likely the others' actions so far were in them, if they play by a policy and with
  probability `MISTAKES` at random. The effective number of worlds is (sum w)^2 / sum w^2; where it would be less than
  `LEAST_EFFECTIVE`, the weights are raised to a power below one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dream.evaluation.statistics import Interval, mean_interval
from dream.page.compiled import Player
from dream.page.refusals import RefusedError
from dream.search.playouts import points_after
from dream.search.worlds import log_likelihood, tempered
from envs import Game, InputError, Policy, boards
from envs.batching import QUICK
from envs.game import State, View
from envs.sampling import resample

WORLDS, BELIEF_WORLDS = 16, 256
"""Worlds of one batch of values, and of a belief."""
MISTAKES, SLIPS = 0.2, 1e-3
"""Share of uniform play in what the others are taken to have done, in beliefs and in values: values go on by the policy
itself, and have so much alone that no single action rules a world out."""
LEAST_EFFECTIVE = 48.0
"""Effective worlds of a belief; the weights are softened until there are so many."""


class Belief(NamedTuple):
    """Worlds and what they weigh.

    Attributes:
      held: bool[N, P, cards], who holds which card.
      weights: float[N], summing to one.
      is_weighted: whether they follow the others' actions; else all weigh the same.
    """

    held: np.ndarray
    weights: np.ndarray
    is_weighted: bool

    @property
    def effective(self) -> float:
        """The number of equally weighted worlds that would say as much."""
        return float(1.0 / np.sum(self.weights**2))


class Adviser:
    """Advice by one player; what it needs is compiled when it is first asked for."""

    def __init__(self, game: Game, player: Player, playout: Policy) -> None:
        """Takes the player whose probabilities are shown, and the policy by which worlds are played out."""
        self.game, self.player = game, player
        # Points are what the game pays, whatever the policy was trained to count a win as besides.
        # A table's arrays may be of the host, where a compiled function could not index them.
        self._playout = Policy(playout.apply, jax.tree.map(jnp.asarray, playout.params), playout.game)
        self._values = jax.jit(self._batch, compiler_options=QUICK)
        self._belief = jax.jit(self._sampled, static_argnums=2, compiler_options=QUICK)
        self._is_weighted = True
        kind = type(game)
        plain, replays = kind.likely_world is Game.likely_world, kind.replay_actions is not Game.replay_actions
        self._weighs_values = plain and replays

    # --- expected points

    def values(self, view: View, actions: Sequence[int], seat: int, seed: int) -> np.ndarray:
        """Returns what a seat wins by each action in a batch of worlds: float[WORLDS, len(actions)], in game.unit.

        Raises:
          RefusedError: the game cannot redeal what a view does not show, or playing on met what is no number.
        """
        padded = np.zeros(self.game.num_actions, np.int32)
        padded[: len(actions)] = actions
        try:
            points = self._values(view, padded, np.int32(len(actions)), np.int32(seat), jax.random.key(seed))
        except InputError as error:
            if not self._weighs_values:
                raise RefusedError("cannot_deal", game=self.game.name) from error
            self._weighs_values = False  # by these rules it may not keep its actions
            return self.values(view, actions, seat, seed)
        return self._numbers(np.asarray(points, float)[:, : len(actions)])

    def _numbers(self, found: np.ndarray) -> np.ndarray:
        if not np.isfinite(found).all():
            raise RefusedError("no_numbers", player=self.player.name)
        return found

    def _batch(self, view: View, actions: Array, count: Array, seat: Array, key: Array) -> Array:
        """Returns float32[WORLDS, len(actions)], of which the first `count` columns mean something.

        One round after the other, not batched: that compiles sooner, and skips what a round has no need of.
        """
        deal_key, play_key = jax.random.split(key)
        worlds, sound = self._dealt(view, seat, deal_key)

        def in_world(at: tuple[State, Array]) -> Array:
            world, world_key = at
            start = (jnp.int32(0), jnp.zeros(len(actions)))

            def body(carry: tuple[Array, Array]) -> tuple[Array, Array]:
                n, points = carry
                won = points_after(self.game, self._playout, world, actions[n], seat, world_key)
                return n + 1, points.at[n].set(won)

            return lax.while_loop(lambda carry: carry[0] < count, body, start)[1]

        points = lax.map(in_world, (worlds, jax.random.split(play_key, WORLDS)))
        return jnp.where(sound, points, jnp.nan)

    def _dealt(self, view: View, seat: Array, key: Array) -> tuple[State, Array]:
        """Returns the worlds of a batch [WORLDS], and whether what they were chosen by are numbers.

        Weights are softened until as many worlds count as are chosen; a few hidden cards are the same in many.
        """
        if not self._weighs_values:
            return lax.map(lambda one: self.game.likely_world(view, one)[0], jax.random.split(key, WORLDS)), np.True_
        key, draw_key = jax.random.split(key)

        def weighed(one: Array) -> tuple[State, Array]:
            world = self.game.determinize(view, one)
            return world, log_likelihood(self.game, self._playout, world, seat, SLIPS)

        worlds, logs = lax.map(weighed, jax.random.split(key, BELIEF_WORLDS))
        drawn = resample(draw_key, tempered(logs, WORLDS), WORLDS)
        return jax.tree.map(lambda x: x[drawn], worlds), ~jnp.any(jnp.isnan(logs))

    # --- beliefs

    def belief(self, view: View, seat: int, seed: int) -> Belief:
        """Returns worlds and their weights.

        Raises:
          RefusedError: the game cannot redeal what a view does not show or does not say who holds which card, or the
            player gives what is no number.
        """
        if boards.board_of(self.game) is None:
            raise RefusedError("no_beliefs", game=self.game.name)
        try:
            held, logs = self._belief(view, np.int32(seat), self._is_weighted, jax.random.key(seed))
        except InputError as error:
            if not self._is_weighted:
                raise RefusedError("cannot_deal", game=self.game.name) from error
            self._is_weighted = False
            return self.belief(view, seat, seed)
        weights = self._numbers(np.asarray(tempered(logs, LEAST_EFFECTIVE), float))
        return Belief(np.asarray(held), weights, self._is_weighted)

    def _sampled(self, view: View, seat: Array, weighted: bool, key: Array) -> tuple[Array, Array]:
        board = boards.board_of(self.game)

        def one(world_key: Array) -> tuple[Array, Array]:
            world, correction = self.game.likely_world(view, world_key)
            if not weighted:
                return board.hands(self.game, world), jnp.float32(0)
            log = log_likelihood(self.game, self._playout, world, seat, MISTAKES)
            return board.hands(self.game, world), log + correction

        return lax.map(one, jax.random.split(key, BELIEF_WORLDS))


def rows(actions: Sequence[int], probs: np.ndarray, points: np.ndarray | None) -> list[dict[str, Any]]:
    """Returns what is said of each action, the best first.

    Args:
      actions: ids.
      probs: of all actions.
      points: float[N, len(actions)], paired over worlds, or None where there are none.
    Returns:
      id, prob, and with points `mean` and its 95 % interval `low` to `high`.
    """
    found = [{"id": int(action), "prob": round(float(probs[action]), 4)} for action in actions]
    if points is None or len(points) < 2:
        return sorted(found, key=lambda row: -row["prob"])
    for n, row in enumerate(found):
        row["mean"], row["low"], row["high"] = (round(x, 2) for x in mean_interval(points[:, n]))
    return sorted(found, key=lambda row: -row["mean"])


def loss(points: np.ndarray, played: int) -> Interval:
    """Returns how many points an action loses against the best one.

    In each half of the worlds the best one is that of the other half: the best of several noisy means is too good where
    it was chosen, so that actions of equal worth would lose.

    Args:
      points: float[N, actions], paired over worlds.
      played: column of the action.
    """
    halves = np.array_split(points, 2)
    gaps = [own[:, other.mean(axis=0).argmax()] - own[:, played] for own, other in (halves, halves[::-1])]
    return mean_interval(np.concatenate(gaps))


def belief_summary(game: Game, view: View, seat: int, belief: Belief, legal: Sequence[int] = ()) -> dict[str, Any]:
    """Returns a belief as the page shows it.

    Args:
      game: what is played.
      view: of the seat.
      seat: whose belief it is.
      belief: what is shown.
      legal: actions of the seat, none where it is not its turn.
    Returns:
      `deck`; `own`; `others`, the chances of each other seat by card; `insight` of the board, where it has any; and
      how it was come by.
    """
    board = boards.board_of(game)
    shares = np.einsum("n,npc->pc", belief.weights, belief.held.astype(float))
    others = [
        {"seat": other, "chances": shares[other].round(3).tolist()} for other in range(len(shares)) if other != seat
    ]
    insight = {}
    if hasattr(board, "insight"):
        choices = [board.choice(game, view, int(action)) for action in legal]
        insight = board.insight(game, view, belief.held, belief.weights, choices)
    return {
        "deck": list(board.deck(game)),
        "own": [bool(x) for x in belief.held[0, seat]],
        "others": others,
        "worlds": len(belief.weights),
        "effective": round(belief.effective, 1),
        "weighted": belief.is_weighted,
        **insight,
    }
