"""Sampled walks of a game's tree, many at once: external and outcome sampling with baselines.

A traversal updates one player, p. Chance is sampled by its probabilities and the opponent by its policy; at p's own
histories external sampling follows every action, outcome sampling one, drawn from

    xi(h, a) = exploration / |A(h)| + (1 - exploration) policy(h, a).

Values go up the branches that were followed, xi being 1 where all actions are and the policy at the opponent's:

    u(h, a) = b(h, a) + [a followed] (u(c) - b(c)) / xi(h, a),   c the history that chance led to after a,
    u(h)    = sum over a of policy(h, a) u(h, a), the payoff to p where the game is over.

b(c) is any function of histories and b(h, a) its mean over chance. E[u(h, a) | h met] is the exact value whatever b
is; with the exact values as b no variance is left in it. With 1 / w(h) the product of p's own xi on the way to h,

    E[sum over h met in I of w(h) u(h, a)] = Q(I, a),
    E[sum over h met in I of w(h) policy(I, a)] = X(I, a) * sum over h in I of chance(h)     at the opponent's sets I,

Q the counterfactual values and X the opponent's realisation plan (dream/game_tree/sequence_form.py).
All branches of one traversal share the draws of a level: each still goes by its own probabilities, and the values of
two actions have more of their noise in common, which their difference, the regret, loses.
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

from dream.equations.regret_matching import regret_matching
from dream.game_tree.tree import TERMINAL, Tree
from envs.errors import InputError
from envs.random_play import uniform

BASELINES = ("none", "average", "history")


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["first", "chance", "cumulative", "infoset", "payoff"],
    meta_fields=["infosets", "second", "actors", "outcomes", "widths"],
)
@dataclasses.dataclass(frozen=True)
class Branches:
    """A two-player tree laid out for sampling; N histories, I information sets, A actions, L levels.

    History N stands for none; information set I for none, also where a game is over.

    Attributes:
      first: int32[N + 1, A], the first history an action leads to, the others follow it; N where it is illegal.
      chance: float64[N + 1], a history's probability among those the action before it leads to.
      cumulative: float64[N + 1], the same summed over those up to it: 1 at the last.
      infoset: int32[N + 1].
      payoff: float64[2, N + 1], 0 where the game goes on.
      infosets: I.
      second: the first information set of player 1; player 0's come before.
      actors: by level but the last, whether player 0 and whether player 1 acts at some history there.
      outcomes: by level, the most histories of the level that one action leads to; at level 0 the number of roots.
      widths: by player and level but the last, the most histories in play that external sampling may meet.
    """

    first: Array
    chance: Array
    cumulative: Array
    infoset: Array
    payoff: Array
    infosets: int
    second: int
    actors: tuple[tuple[bool, bool], ...]
    outcomes: tuple[int, ...]
    widths: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def draws(self) -> int:
        """Random numbers that a traversal takes: the deal, the actions of every level, chance where it acts."""
        return len(self.outcomes) + sum(most > 1 for most in self.outcomes[1:])

    @property
    def nothing(self) -> int:
        """N."""
        return self.first.shape[0] - 1


@functools.lru_cache(maxsize=4)
def branches(tree: Tree) -> Branches:
    """Lays out a tree for sampling, on the device.

    Raises:
      InputError: not two players.
    """
    game, count = tree.game, tree.num_histories
    if game.num_players != 2:
        raise InputError(f"{game.name} has {game.num_players} players; MCCFR is for two")
    roots = int(tree.levels[1])
    pair = tree.parent.astype(np.int64) * game.num_actions + tree.action
    pair[:roots] = -1
    starts = np.flatnonzero(np.diff(pair, prepend=-2))
    sizes = np.diff(starts, append=count)
    first = np.full((count + 1) * game.num_actions, count, np.int32)
    first[pair[starts[1:]]] = starts[1:]
    chance = tree.chance / np.where(tree.parent < 0, 1.0, tree.chance[tree.parent])
    summed = np.cumsum(chance)
    cumulative = summed - np.repeat(summed[starts] - chance[starts], sizes)
    cumulative[starts + sizes - 1] = 1.0
    over = tree.infoset == TERMINAL
    with jax.enable_x64(True):
        return Branches(
            first=jnp.asarray(first.reshape(count + 1, -1)),
            chance=jnp.asarray(np.append(chance, 0.0)),
            cumulative=jnp.asarray(np.append(cumulative, 1.0)),
            infoset=jnp.asarray(np.append(np.where(over, tree.num_infosets, tree.infoset), tree.num_infosets)),
            payoff=jnp.asarray(np.append(np.where(over, tree.payoff.T, 0.0), np.zeros((2, 1)), axis=1)),
            infosets=tree.num_infosets,
            second=int(np.searchsorted(tree.owner, 1)),
            actors=tuple(
                tuple(bool(np.any(tree.player[low:high] == player)) for player in range(2))
                for low, high in itertools.pairwise(tree.levels[:-1])
            ),
            outcomes=tuple(np.maximum.reduceat(sizes, np.searchsorted(starts, tree.levels[:-1])).tolist()),
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


class Visits(NamedTuple):
    """Histories in play met by B traversals at one level, M places each, some empty; values to the updated player.

    Attributes:
      history: int32[B, M], N where a place is empty.
      infoset: int32[B, M], I likewise.
      own: bool[B, M], whether the updated player acts.
      weight: float64[B, M], w.
      legal: bool[B, M, A].
      policy: float64[B, M, A], of who acts.
      followed: float64[B, M, A], xi where an action was followed, else 0.
      child: int32[B, M, A], the history that followed, else N.
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


class _Walk(NamedTuple):
    """What stays the same during a batch of traversals; attributes as the arguments of `traverse`."""

    scheme: Scheme
    tree: Branches
    regrets: Array
    baseline: Array
    player: int


def traverse(
    scheme: Scheme, tree: Branches, regrets: Array, baseline: Array, player: int, draws: Array
) -> list[Visits]:
    """Runs B traversals for one player, all with the policy that the same regrets stand for.

    Args:
      scheme: how.
      tree: the game.
      regrets: float64[I, A].
      baseline: float64[I, A] of an "average" one, float64[N + 1] of a "history" one, else not used.
      player: who is updated.
      draws: float64[tree.draws, B], uniform in [0, 1), in the order of play.
    Returns:
      What they met, by level.
    """
    walk = _Walk(scheme, tree, regrets, baseline, player)
    coming = iter(draws)
    deal = jnp.searchsorted(tree.cumulative[: tree.outcomes[0]], next(coming), side="right", method="scan_unrolled")
    history, weight = deal.astype(jnp.int32)[:, None], jnp.ones((draws.shape[1], 1))
    widths = tree.widths[player] if scheme.external else (1,) * len(tree.widths[player])
    levels, places = [], []
    for width, outcomes in zip((*widths[1:], 0), tree.outcomes[1:], strict=True):
        visits = _visit(walk, history, weight, next(coming))
        if outcomes > 1:
            visits = visits._replace(child=_outcome(tree, visits.child, next(coming), outcomes))
        place, history, weight = _arrange(walk, visits, width)
        levels.append(visits)
        places.append(place)
    ahead = jnp.zeros((draws.shape[1], 0))
    for n in reversed(range(len(levels))):
        levels[n] = _valued(walk, levels[n], places[n], ahead, tree.outcomes[n + 1])
        ahead = jnp.sum(levels[n].policy * levels[n].values, axis=2)
    return levels


def _visit(walk: _Walk, history: Array, weight: Array, draw: Array) -> Visits:
    """Chooses the actions to follow; `child` is the first history each leads to."""
    scheme, tree = walk.scheme, walk.tree
    infoset, first = tree.infoset[history], tree.first[history]
    legal = first < tree.nothing
    own = (infoset < tree.infosets) & ((infoset >= tree.second) == bool(walk.player))
    policy = jnp.where(legal, regret_matching(walk.regrets[infoset], legal), 0.0)
    chance = policy
    if not scheme.external:
        explored = scheme.exploration * uniform(legal) + (1 - scheme.exploration) * policy
        chance = jnp.where(own[:, :, None], explored, policy)
    followed = jnp.where(_drawn(chance, draw), chance, 0.0)
    if scheme.external:
        followed = jnp.where(own[:, :, None], legal.astype(chance.dtype), followed)
    child = jnp.where(followed > 0, first, tree.nothing)
    unknown = jnp.zeros_like(policy)
    return Visits(history, infoset, own, weight, legal, policy, followed, child, unknown, unknown)


def _drawn(chance: Array, draw: Array) -> Array:
    """Returns which action each place's row of probabilities yields for its lane's draw: bool[B, M, A]."""
    actions = chance.shape[2]
    summed = chance @ np.triu(np.ones((actions, actions)))
    before = jnp.pad(summed[:, :, :-1], ((0, 0), (0, 0), (1, 0)))
    threshold = draw[:, None, None] * summed[:, :, -1:]
    return (before <= threshold) & (threshold < summed) & (chance > 0)


def _outcome(tree: Branches, first: Array, draw: Array, outcomes: int) -> Array:
    """Draws what chance does after each action, among at most so many histories from the first on: int32[B, M, A]."""
    child, further = first, jnp.ones(first.shape, bool)
    for n in range(outcomes - 1):
        further = further & (tree.cumulative[first + n] <= draw[:, None, None])
        child = child + further
    return child


def _arrange(walk: _Walk, visits: Visits, width: int) -> tuple[Array, Array, Array]:
    """Gives the followed histories that are in play their places in the next level, in order.

    Returns:
      (place int32[B, M, A], `width` for those without; history int32[B, width]; weight float64[B, width]).
    """
    tree, lanes = walk.tree, visits.infoset.shape[0]
    goes_on = tree.infoset[visits.child] < tree.infosets
    if not walk.scheme.external:
        history = jnp.sum(jnp.where(goes_on, visits.child, 0), axis=2, dtype=jnp.int32)
        history = jnp.where(jnp.any(goes_on, axis=2), history, tree.nothing)
        chance = jnp.where(visits.own, jnp.sum(visits.followed, axis=2), 1.0)
        weight = visits.weight / jnp.where(chance > 0, chance, 1.0)
        return jnp.where(goes_on, 0, width), history[:, :width], weight[:, :width]
    within = jnp.cumsum(goes_on, axis=2, dtype=jnp.int32)
    before = jnp.cumsum(within[:, :, -1], axis=1, dtype=jnp.int32) - within[:, :, -1]
    place = jnp.where(goes_on, before[:, :, None] + within - 1, width)
    history = jnp.full((lanes, width), tree.nothing, jnp.int32)
    history = history.at[jnp.arange(lanes, dtype=jnp.int32)[:, None, None], place].set(visits.child, mode="drop")
    return place, history, jnp.ones((lanes, width))


def _valued(walk: _Walk, visits: Visits, place: Array, ahead: Array, outcomes: int) -> Visits:
    """Fills in `below` and `values` from the values of the next level's histories: float64[B, width]."""
    below = walk.tree.payoff[walk.player][visits.child]
    if ahead.shape[1]:
        flat = place.reshape(place.shape[0], -1)
        there = jnp.take_along_axis(ahead, flat, axis=1, mode="fill", fill_value=0.0)
        below = below + there.reshape(place.shape)
    mean, at_child = _baselines(walk, visits, outcomes)
    taken = visits.followed > 0
    values = mean + jnp.where(taken, (below - at_child) / jnp.where(taken, visits.followed, 1.0), 0.0)
    return visits._replace(below=below, values=values)


def _baselines(walk: _Walk, visits: Visits, outcomes: int) -> tuple[Array | float, Array | float]:
    """Returns b(h, a) and b(c) to the updated player: float64[B, M, A] each."""
    tree = walk.tree
    if walk.scheme.baseline == "none":
        return 0.0, 0.0
    if walk.scheme.baseline == "average":
        mean = jnp.where(visits.own[:, :, None], 1.0, -1.0) * walk.baseline[visits.infoset]
        return mean, mean
    baseline = walk.baseline if walk.player == 0 else -walk.baseline
    first = tree.first[visits.history]
    mean, further = tree.chance[first] * baseline[first], jnp.ones(first.shape, bool)
    for n in range(1, outcomes):
        further = further & (tree.cumulative[first + n - 1] < 1.0)
        mean = mean + jnp.where(further, tree.chance[first + n] * baseline[first + n], 0.0)
    return mean, baseline[visits.child]
