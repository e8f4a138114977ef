"""Batches of sampled traversals of a game tree: external and outcome sampling with baselines.

A traversal updates one player, p. Chance is sampled from its probabilities and the opponent from its policy; at p's
own histories external sampling follows every action, outcome sampling one action, sampled from

    xi(h, a) = exploration / |A(h)| + (1 - exploration) policy(h, a).

Values are backed up along the branches that were followed; xi is 1 where all actions are followed, and the policy at
the opponent's histories:

    u(h, a) = b(h, a) + [a followed] (u(c) - b(c)) / xi(h, a),   c the history that chance led to after a,
    u(h)    = sum over a of policy(h, a) u(h, a), the payoff to p where the game is over.

b(c) is any function of histories and b(h, a) its mean over chance. E[u(h, a) | h met] is the exact value whatever b
is; with the exact values as b its variance is 0. With 1 / w(h) the product of p's own xi on the way to h,

    E[sum over h met in I of w(h) u(h, a)] = Q(I, a),
    E[sum over h met in I of w(h) policy(I, a)] = X(I, a) * sum over h in I of chance(h)     at the opponent's sets I,

Q the counterfactual values and X the opponent's realisation plan (dream/game_tree/sequence_form.py).
All branches of one traversal share the random numbers of a level: each branch still follows its own probabilities, and
the noise that the values of two actions have in common cancels in their difference, the regret.
Sources: Lanctot et al. 2009, "Monte Carlo sampling for regret minimization in extensive games"; Schmid et al. 2019,
"Variance reduction in MCCFR for extensive form games using baselines", eq. 9-11; Davis et al. 2020, "Low-variance and
zero-variance baselines for extensive-form games" (baselines by history, chance's included).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.compiled import devices
from dream.equations.regret_matching import regret_matching
from dream.game_tree.tree import TERMINAL, Tree
from envs.errors import InputError
from envs.random_play import uniform

BASELINES = ("none", "average", "history")


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["first_child", "chance", "cumulative", "infoset", "payoff"],
    meta_fields=["num_infosets", "first_infoset_of_player1", "actors", "max_outcomes", "widths"],
)
@dataclasses.dataclass(frozen=True)
class SamplingTree:
    """A two-player tree laid out for sampling; N histories, I information sets, A actions, L levels.

    History N, the null history, stands for none; information set I for none, also where a game is over.

    Attributes:
      first_child: int32[N + 1, A], the first history an action leads to, the others follow it; N where it is illegal.
      chance: float64[N + 1], a history's probability among those the action before it leads to.
      cumulative: float64[N + 1], the same summed over those up to it: 1 at the last.
      infoset: int32[N + 1].
      payoff: float64[2, N + 1], 0 where the game goes on.
      num_infosets: I.
      first_infoset_of_player1: player 0's information sets come before it.
      actors: by level but the last, whether player 0 and whether player 1 acts at some history there.
      max_outcomes: by level, the most histories of the level that one action leads to; at level 0 the number of roots.
      widths: by player and level but the last, the most histories in play that external sampling may meet.
    """

    first_child: Array
    chance: Array
    cumulative: Array
    infoset: Array
    payoff: Array
    num_infosets: int
    first_infoset_of_player1: int
    actors: tuple[tuple[bool, bool], ...]
    max_outcomes: tuple[int, ...]
    widths: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def num_draws(self) -> int:
        """Random numbers that a traversal takes: the deal, the actions of every level, chance where it acts."""
        return len(self.max_outcomes) + sum(most > 1 for most in self.max_outcomes[1:])

    @property
    def null_history(self) -> int:
        """N."""
        return self.first_child.shape[0] - 1


@devices.kept(4)
def sampling_tree(tree: Tree) -> SamplingTree:
    """Lays out a tree for sampling, on the device.

    Raises:
      InputError: not two players.
    """
    game, count = tree.game, tree.num_histories
    if game.num_players != 2:
        raise InputError(f"{game.name} has {game.num_players} players; MCCFR is for two players")
    roots = int(tree.levels[1])
    pair = tree.parent.astype(np.int64) * game.num_actions + tree.action
    pair[:roots] = -1
    starts = np.flatnonzero(np.diff(pair, prepend=-2))
    sizes = np.diff(starts, append=count)
    first_child = np.full((count + 1) * game.num_actions, count, np.int32)
    first_child[pair[starts[1:]]] = starts[1:]
    chance = tree.chance / np.where(tree.parent < 0, 1.0, tree.chance[tree.parent])
    summed = np.cumsum(chance)
    cumulative = summed - np.repeat(summed[starts] - chance[starts], sizes)
    cumulative[starts + sizes - 1] = 1.0
    over = tree.infoset == TERMINAL
    with jax.enable_x64(True):
        return SamplingTree(
            first_child=jnp.asarray(first_child.reshape(count + 1, -1)),
            chance=jnp.asarray(np.append(chance, 0.0)),
            cumulative=jnp.asarray(np.append(cumulative, 1.0)),
            infoset=jnp.asarray(np.append(np.where(over, tree.num_infosets, tree.infoset), tree.num_infosets)),
            payoff=jnp.asarray(np.append(np.where(over, tree.payoff.T, 0.0), np.zeros((2, 1)), axis=1)),
            num_infosets=tree.num_infosets,
            first_infoset_of_player1=int(np.searchsorted(tree.owner, 1)),
            actors=tuple(
                tuple(bool(np.any(tree.player[low:high] == player)) for player in range(2))
                for low, high in itertools.pairwise(tree.levels[:-1])
            ),
            max_outcomes=tuple(np.maximum.reduceat(sizes, np.searchsorted(starts, tree.levels[:-1])).tolist()),
            widths=(_widths(tree, pair, 0), _widths(tree, pair, 1)),
        )


def _widths(tree: Tree, pair: np.ndarray, player: int) -> tuple[int, ...]:
    """Returns, by level, the most histories in play that external sampling for a player may meet in one traversal."""
    below, pairs = np.zeros((0, 0), np.int32), np.zeros(0, np.int64)
    for low, high in reversed(list(itertools.pairwise(tree.levels))):
        here = np.zeros((high - low, 1 + below.shape[1]), np.int32)
        here[:, 0] = tree.player[low:high] >= 0
        if len(below):
            starts = np.flatnonzero(np.diff(pairs, prepend=-2))
            by_action = np.maximum.reduceat(below, starts)
            parents = pairs[starts] // tree.game.num_actions
            starts = np.flatnonzero(np.diff(parents, prepend=-2))
            own = tree.player[parents[starts]] == player
            here[parents[starts] - low, 1:] = np.where(
                own[:, None], np.add.reduceat(by_action, starts), np.maximum.reduceat(by_action, starts)
            )
        below, pairs = here, pair[low:high]
    return tuple(int(width) for width in below.max(axis=0) if width)


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How to sample and what to correct by.

    Attributes:
      external: external sampling, else outcome sampling.
      exploration: share of uniform play in what outcome sampling draws the updated player's actions from.
      baseline: "none"; "average": by information set and action, to the player who acts there; "history": by history,
        to player 0. The other player's value is the negative.
    """

    external: bool
    exploration: float
    baseline: str


class Descent(NamedTuple):
    """What B traversals met on the way down at one level, M places each, some empty.

    Attributes:
      history: int32[B, M], N where a place is empty.
      infoset: int32[B, M], I likewise.
      own: bool[B, M], whether the updated player acts.
      weight: float64[B, M], w.
      legal: bool[B, M, A].
      policy: float64[B, M, A], of who acts.
      followed: float64[B, M, A], xi where an action was followed, else 0.
      child: int32[B, M, A], the history that followed, else N.
    """

    history: Array
    infoset: Array
    own: Array
    weight: Array
    legal: Array
    policy: Array
    followed: Array
    child: Array


class Visits(NamedTuple):
    """A Descent with the values that came back up, to the updated player.

    Attributes:
      history, infoset, own, weight, legal, policy, followed, child: as in Descent.
      below: float64[B, M, A], u(c), else 0.
      values: float64[B, M, A], u(h, a).
    """

    history: Array
    infoset: Array
    own: Array
    weight: Array
    legal: Array
    policy: Array
    followed: Array
    child: Array
    below: Array
    values: Array


class _NextLevel(NamedTuple):
    """Where the histories that a level leads to stand in the next one, W places wide.

    Attributes:
      place: int32[B, M, A], of each followed history; W for those that are over or were not followed.
      history: int32[B, W].
      weight: float64[B, W].
    """

    place: Array
    history: Array
    weight: Array


class _Walk(NamedTuple):
    """What stays the same during a batch of traversals; attributes as the arguments of `traverse`."""

    scheme: Scheme
    tree: SamplingTree
    regrets: Array
    baseline: Array
    player: int


def traverse(
    scheme: Scheme, tree: SamplingTree, regrets: Array, baseline: Array, player: int, draws: Array
) -> list[Visits]:
    """Runs B traversals for one player, all with the policy that the same regrets stand for.

    Down the tree level by level, choosing what is followed, and back up with the values.

    Args:
      scheme: how.
      tree: the game.
      regrets: float64[I, A]; a policy stands for itself, as regret matching leaves it unchanged.
      baseline: float64[I, A] of an "average" one, float64[N + 1] of a "history" one, else not used.
      player: who is updated.
      draws: float64[tree.num_draws, B], uniform in [0, 1), in the order of play.
    Returns:
      What they met, by level.
    """
    walk, batch = _Walk(scheme, tree, regrets, baseline, player), draws.shape[1]
    coming = iter(draws)
    deal = jnp.searchsorted(tree.cumulative[: tree.max_outcomes[0]], next(coming), side="right", method="scan_unrolled")
    history, weight = deal.astype(jnp.int32)[:, None], jnp.ones((batch, 1))
    widths = tree.widths[player] if scheme.external else (1,) * len(tree.widths[player])
    descents, places = [], []
    for width, outcomes in zip((*widths[1:], 0), tree.max_outcomes[1:], strict=True):
        descent = _choose(walk, history, weight, next(coming))
        if outcomes > 1:
            descent = descent._replace(child=_outcome(tree, descent.child, next(coming), outcomes))
        place, history, weight = _next_level(walk, descent, width)
        descents.append(descent)
        places.append(place)
    levels, next_values = [], jnp.zeros((batch, 0))
    for descent, place, outcomes in reversed(list(zip(descents, places, tree.max_outcomes[1:], strict=True))):
        visits = _backed_up(walk, descent, place, next_values, outcomes)
        next_values = jnp.sum(visits.policy * visits.values, axis=2)
        levels.append(visits)
    return levels[::-1]


def _choose(walk: _Walk, history: Array, weight: Array, draw: Array) -> Descent:
    """Chooses the actions to follow; `child` is the first history that each leads to."""
    scheme, tree = walk.scheme, walk.tree
    infoset, first_child = tree.infoset[history], tree.first_child[history]
    legal = first_child < tree.null_history
    own = (infoset < tree.num_infosets) & ((infoset >= tree.first_infoset_of_player1) == bool(walk.player))
    policy = jnp.where(legal, regret_matching(walk.regrets[infoset], legal), 0.0)
    behaviour = policy
    if not scheme.external:
        explored = scheme.exploration * uniform(legal) + (1 - scheme.exploration) * policy
        behaviour = jnp.where(own[:, :, None], explored, policy)
    followed = jnp.where(_sampled(behaviour, draw), behaviour, 0.0)
    if scheme.external:
        followed = jnp.where(own[:, :, None], legal.astype(behaviour.dtype), followed)
    child = jnp.where(followed > 0, first_child, tree.null_history)
    return Descent(history, infoset, own, weight, legal, policy, followed, child)


def _sampled(probabilities: Array, draw: Array) -> Array:
    """Returns which action each place's row of probabilities yields for its traversal's draw: bool[B, M, A]."""
    actions = probabilities.shape[2]
    summed = probabilities @ np.triu(np.ones((actions, actions)))
    before = jnp.pad(summed[:, :, :-1], ((0, 0), (0, 0), (1, 0)))
    threshold = draw[:, None, None] * summed[:, :, -1:]
    return (before <= threshold) & (threshold < summed) & (probabilities > 0)


def _outcome(tree: SamplingTree, first: Array, draw: Array, outcomes: int) -> Array:
    """Samples what chance does after each action, among at most so many histories from the first on: int32[B, M, A]."""
    child, further = first, jnp.ones(first.shape, bool)
    for n in range(outcomes - 1):
        further = further & (tree.cumulative[first + n] <= draw[:, None, None])
        child = child + further
    return child


def _next_level(walk: _Walk, descent: Descent, width: int) -> _NextLevel:
    """Gives the followed histories that are in play their places in the next level, in order."""
    tree, batch = walk.tree, descent.infoset.shape[0]
    goes_on = tree.infoset[descent.child] < tree.num_infosets
    if not walk.scheme.external:
        history = jnp.sum(jnp.where(goes_on, descent.child, 0), axis=2, dtype=jnp.int32)
        history = jnp.where(jnp.any(goes_on, axis=2), history, tree.null_history)
        xi = jnp.where(descent.own, jnp.sum(descent.followed, axis=2), 1.0)
        weight = descent.weight / jnp.where(xi > 0, xi, 1.0)
        return _NextLevel(jnp.where(goes_on, 0, width), history[:, :width], weight[:, :width])
    within = jnp.cumsum(goes_on, axis=2, dtype=jnp.int32)
    before = jnp.cumsum(within[:, :, -1], axis=1, dtype=jnp.int32) - within[:, :, -1]
    place = jnp.where(goes_on, before[:, :, None] + within - 1, width)
    history = jnp.full((batch, width), tree.null_history, jnp.int32)
    history = history.at[jnp.arange(batch, dtype=jnp.int32)[:, None, None], place].set(descent.child, mode="drop")
    return _NextLevel(place, history, jnp.ones((batch, width)))


def _backed_up(walk: _Walk, descent: Descent, place: Array, next_values: Array, outcomes: int) -> Visits:
    """Returns a level with its values, from those of the next level's histories, float64[B, W]."""
    below = walk.tree.payoff[walk.player][descent.child]
    if next_values.shape[1]:
        flat = place.reshape(place.shape[0], -1)
        later = jnp.take_along_axis(next_values, flat, axis=1, mode="fill", fill_value=0.0)
        below = below + later.reshape(place.shape)
    mean, at_child = _baselines(walk, descent, outcomes)
    taken = descent.followed > 0
    values = mean + jnp.where(taken, (below - at_child) / jnp.where(taken, descent.followed, 1.0), 0.0)
    return Visits(*descent, below, values)


def _baselines(walk: _Walk, descent: Descent, outcomes: int) -> tuple[Array | float, Array | float]:
    """Returns b(h, a) and b(c) to the updated player: float64[B, M, A] each."""
    tree = walk.tree
    if walk.scheme.baseline == "none":
        return 0.0, 0.0
    if walk.scheme.baseline == "average":
        mean = jnp.where(descent.own[:, :, None], 1.0, -1.0) * walk.baseline[descent.infoset]
        return mean, mean
    baseline = walk.baseline if walk.player == 0 else -walk.baseline
    first = tree.first_child[descent.history]
    mean, further = tree.chance[first] * baseline[first], jnp.ones(first.shape, bool)
    for n in range(1, outcomes):
        further = further & (tree.cumulative[first + n - 1] < 1.0)
        mean = mean + jnp.where(further, tree.chance[first + n] * baseline[first + n], 0.0)
    return mean, baseline[descent.child]
