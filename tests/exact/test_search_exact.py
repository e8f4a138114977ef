"""Search on games with a tree: beliefs are Bayes' rule, and the values of actions converge to the exact ones."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trajectories import random_table
from tree_values import action_values, history_values, tree_of

from dream.game_tree.tabular_policy import row_of, table_index
from dream.game_tree.tree import Tree
from dream.networks.policy import ValuedPolicy
from dream.search import SearchSettings, halving, make_search, worlds
from envs import Policy
from envs.random_play import uniform

pytestmark = pytest.mark.runs_briefly

NAMES = ("kuhn_poker", "leduc_poker")
WORLDS, PULLS = 4096, 4096
MISTAKES, WIN_BONUS = 0.1, 0.5


class Exact(NamedTuple):
    """A tree, a policy on it, and what follows for each information set I.

    Attributes:
      tree: its payoffs have the bonus for wins in them.
      policy: the table as a ValuedPolicy that knows the exact values.
      opponent: the others' table; None: the same.
      belief: float64[N], each history's chance given its information set, by Bayes' rule.
      values: float64[I, A], of each action to the set's owner, everyone playing by table afterwards.
      next_sets: float64[I, A, I], chances of the opponent's next information set, where it is the next to act.
    """

    tree: Tree
    policy: ValuedPolicy
    opponent: Policy | None
    belief: np.ndarray
    values: np.ndarray
    next_sets: np.ndarray


def _exact(name: str, mistakes: float, fully_mixed: bool = False, opponent: int | None = None) -> Exact:
    """Works everything out from the tree.

    Args:
      name: of the game.
      mistakes: the others' share of uniform play in beliefs alone.
      fully_mixed: whether the table leaves nothing out.
      opponent: seed of the others' table.
    """
    tree = tree_of(name)
    tree = dataclasses.replace(tree, payoff=tree.payoff + WIN_BONUS * np.sign(tree.payoff))
    table = random_table(tree, 5)
    if fully_mixed:
        table = 0.8 * table + 0.2 * uniform(tree.legal)
    theirs = table if opponent is None else random_table(tree, opponent)
    believed = (1 - mistakes) * theirs + mistakes * uniform(tree.legal)
    reach = np.ones((tree.num_histories, 2))
    for n in range(tree.levels[1], tree.num_histories):
        up = tree.parent[n]
        reach[n] = reach[up]
        reach[n, tree.player[up]] *= believed[tree.infoset[up], tree.action[n]]
    inside = np.flatnonzero(tree.infoset >= 0)
    sets, owner = tree.infoset[inside], tree.player[inside]
    weight = np.zeros(tree.num_histories)
    weight[inside] = tree.chance[inside] * reach[inside, 1 - owner]
    total = np.bincount(sets, weight[inside], tree.num_infosets)
    belief = np.where(tree.infoset >= 0, weight / np.where(total > 0, total, 1)[tree.infoset], 0.0)
    values, next_sets = np.zeros(tree.legal.shape), np.zeros((*tree.legal.shape, tree.num_infosets))
    owners = np.zeros(tree.num_infosets, int)
    owners[sets] = owner
    played = [np.where((owners == seat)[:, None], table, theirs) for seat in (0, 1)]  # by whose search it is
    of_actions, of_histories = ([f(tree, one) for one in played] for f in (action_values, history_values))
    q = np.where((tree.player == 0)[:, None], of_actions[0][:-1], -of_actions[1][:-1])
    np.add.at(values, sets, belief[inside, None] * q[inside])
    later = np.arange(tree.levels[1], tree.num_histories)
    later = later[(tree.infoset[later] >= 0) & (tree.player[later] != tree.player[tree.parent[later]])]
    up = tree.parent[later]
    share = belief[up] * tree.chance[later] / tree.chance[up]
    np.add.at(next_sets, (tree.infoset[up], tree.action[later], tree.infoset[later]), share)
    history = np.where(tree.player == 0, of_histories[0], -of_histories[1])
    of_set = np.bincount(sets, belief[inside] * history[inside], tree.num_infosets)
    params = jax.tree.map(jnp.asarray, {**table_index(tree), "table": table, "values": of_set})
    other = None if opponent is None else Policy(_play, {**params, "table": jnp.asarray(theirs)}, tree.game)
    return Exact(tree, ValuedPolicy(_play, params, tree.game, _value, WIN_BONUS), other, belief, values, next_sets)


def _play(params: Any, view: Any, legal: Any) -> Any:
    row, _ = row_of(params, view)
    return params["table"][row]


def _value(params: Any, view: Any) -> Any:
    return params["values"][row_of(params, view)[0]]


def _sets(tree: Tree, exact: Exact, count: int) -> list[int]:
    """Chooses information sets that are reached, with more than one action."""
    reached = np.bincount(tree.infoset[tree.infoset >= 0], exact.belief[tree.infoset >= 0], tree.num_infosets) > 0.5
    found = np.flatnonzero(reached & (tree.legal.sum(axis=1) > 1))
    return [int(one) for one in np.random.default_rng(1).choice(found, min(count, len(found)), replace=False)]


@pytest.mark.parametrize("name", NAMES)
def test_beliefs_are_bayes_rule_on_the_tree(name: str) -> None:
    """The chances of the opponent's next information set after each action, in weighted worlds and on the tree."""
    exact = _exact(name, MISTAKES)
    tree, game, policy = exact.tree, exact.tree.game, exact.policy

    @jax.jit
    def next_rows(view: Any, action: Any, key: Any) -> Any:
        belief = worlds.sample_belief(
            game,
            policy,
            view,
            key,
            count=WORLDS,
            mistakes=jnp.float32(MISTAKES),
            least_effective=jnp.float32(0),
            likely=True,
        )
        after, _, _ = jax.vmap(game.step, (0, None))(belief.worlds, action)
        others = jax.vmap(lambda state: game.view(state, 1 - view.seat.astype(jnp.int32)))(after)
        rows = jax.vmap(lambda one: row_of(policy.params, one)[0])(others)
        return rows, jnp.where(after.current_player == 1 - view.seat.astype(jnp.int32), belief.weights, 0.0)

    moved = 0
    for infoset in _sets(tree, exact, 12):
        view = jax.tree.map(lambda x, n=infoset: x[n], tree.views)
        for action in np.flatnonzero(tree.legal[infoset]):
            wanted = exact.next_sets[infoset, action]
            rows, weights = next_rows(view, int(action), jax.random.key(infoset))
            found = np.bincount(rows, weights, tree.num_infosets)
            # Worlds are drawn uniformly: the error is that of shares of WORLDS draws, and weights that vary fourfold.
            np.testing.assert_allclose(found, wanted, atol=5 * np.sqrt(0.25 / WORLDS))
            alike = np.where(wanted > 0, wanted.sum() / max((wanted > 0).sum(), 1), 0)
            moved += np.abs(wanted - alike).max() > 5 * np.sqrt(0.25 / WORLDS)
    assert moved >= 3, "the policy says nothing of the hidden cards; the test would pass without weights"


@pytest.mark.parametrize("opponent", [None, 6])
@pytest.mark.parametrize("name", NAMES)
def test_values_of_actions_converge_to_the_exact_ones(name: str, opponent: int | None) -> None:
    """Against its own policy or another, to the end or cut at the player's next decision by the exact value there."""
    exact = _exact(name, 0.0, opponent=opponent)
    tree, game = exact.tree, exact.tree.game
    settings = SearchSettings(
        worlds=PULLS, pulls=PULLS, particles=WORLDS, candidates=game.num_actions, least_probability=0.0, mistakes=0.0,
        effective_share=0.0, counts_bonus=True,
    )  # fmt: skip

    @functools.partial(jax.jit, static_argnums=0)
    def look(search: Any, params: Any, view: Any, legal: Any) -> Any:
        actions = jnp.argsort(~legal, stable=True).astype(jnp.int32)
        question = search.begin(params, view, actions, legal[actions])
        tally = search.bracket(params, question, jnp.int32(0), halving.empty(len(actions)))
        return actions, question.valid, tally

    largest = np.abs(tree.payoff).max()
    for cut in (-1, 0, 1):
        player, errors = make_search(exact.policy, game, dataclasses.replace(settings, cut=cut), exact.opponent), []
        for infoset in _sets(tree, exact, 8):
            view = jax.tree.map(lambda x, n=infoset: x[n], tree.views)
            actions, valid, tally = jax.device_get(look(player.apply, player.params, view, tree.legal[infoset]))
            wanted = exact.values[infoset, actions[valid]]
            allowed = 4.5 * largest / np.sqrt(tally.count[valid])
            assert np.all(np.abs(tally.value[valid] - wanted) < allowed)
            gain = tally.mean[valid] - (wanted - wanted[0])
            assert np.all(np.abs(gain) < 4.5 * tally.error[valid] + 0.03 * largest)
            errors.append(np.abs(tally.value[valid] - wanted).mean())
        assert np.mean(errors) < 0.03 * largest, cut


def test_the_best_action_is_found_where_the_policy_errs() -> None:
    """On Kuhn poker, with much evidence asked for: nowhere worse than the policy's choice, and better somewhere."""
    exact = _exact("kuhn_poker", 0.0, fully_mixed=True)
    tree = exact.tree
    settings = SearchSettings(
        worlds=2048, pulls=512, particles=2048, least_probability=0.0, cut=-1, evidence=4.0, mistakes=0.0,
        effective_share=0.0,
    )  # fmt: skip
    table = np.asarray(exact.policy.params["table"])
    policy = dataclasses.replace(exact.policy, value=None)
    player = make_search(policy, tree.game, settings)
    chosen = np.asarray(jax.jit(jax.vmap(player))(tree.views, tree.legal)).argmax(axis=1)
    rows = np.arange(tree.num_infosets)
    gain = exact.values[rows, chosen] - exact.values[rows, table.argmax(axis=1)]
    assert gain.min() > -1e-9
    # Differences of half a chip are plain in 2048 worlds.
    lost = exact.values.max(axis=1, where=tree.legal, initial=-9) - exact.values[rows, chosen]
    assert lost.max() < 0.5
    assert gain.max() > 0.1
