"""Are control variates unbiased whatever the value is worth, and do they help when it is worth something?"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import envs
from dream.algorithms.types import Value
from dream.evaluation.control import Controlled, controlled_match
from dream.game_tree import sequence_form
from dream.game_tree.tabular_policy import table_index, table_policy, view_hash
from dream.game_tree.tree import Tree, build_tree
from envs import Policy
from envs.game import Game

pytestmark = pytest.mark.runs_briefly

HANDS = 1 << 15


@functools.cache
def tree_of(name: str) -> Tree:
    """Builds a tree once."""
    return build_tree(envs.make(name))


def random_policy(tree: Tree, seed: int) -> tuple[np.ndarray, Policy]:
    """Returns a random table and the Policy that plays it."""
    weights = np.random.default_rng(seed).exponential(size=tree.legal.shape) * tree.legal
    table = weights / weights.sum(axis=1, keepdims=True)
    return table, table_policy(table_index(tree), table)


def nonsense(view: Any) -> Array:
    """A value that has nothing to do with the game: from -2 to 2 by the view's hash."""
    return view_hash(view, jnp.uint32(7)).astype(jnp.float32) / 2.0**30 - 2


def in_kuhn(view: Any) -> Array:
    """A value that tells a good card from a bad one."""
    return view.card.astype(jnp.float32) - 1.0


def in_leduc(view: Any) -> Array:
    """The same, pairs with the public card counted."""
    return view.card // 2 - 1.0 + 4.0 * (view.card // 2 == view.public // 2)


def sense_of_kuhn(knows: Array, view: Any) -> Array:
    """Returns `in_kuhn` where it knows something, else `nonsense`: one program for both."""
    return jnp.where(knows, in_kuhn(view), nonsense(view))


def sense_of_leduc(knows: Array, view: Any) -> Array:
    """Returns `in_leduc` where it knows something, else `nonsense`: one program for both."""
    return jnp.where(knows, in_leduc(view), nonsense(view))


def value_of(name: str, knows: bool) -> Value:
    """Returns a value for the game, nonsense unless it knows something."""
    return Value({"kuhn_poker": sense_of_kuhn, "leduc_poker": sense_of_leduc}[name], jnp.array(knows))


def measured(name: str, value: Value) -> tuple[Controlled, float]:
    """Returns a match of two random policies and what the first earns exactly, seats in turn."""
    tree = tree_of(name)
    (table, policy), (other, opponent) = (random_policy(tree, seed) for seed in (1, 2))
    found = controlled_match(tree.game, policy, opponent, value, games=HANDS, samples=4)
    return found, earned(tree, table, other)


def earned(tree: Tree, table: np.ndarray, other: np.ndarray) -> float:
    """Returns what the first of two tables earns exactly, seats in turn."""
    mixed = [np.where((tree.owner == seat)[:, None], table, other) for seat in range(2)]
    return sum(sequence_form.expected_value(tree, x)[seat] for seat, x in enumerate(mixed)) / 2


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_any_value_leaves_the_mean_as_it_is(name: str) -> None:
    """Within two 95 % half widths of the exact value, also where V is nonsense."""
    found, truth = measured(name, value_of(name, knows=False))
    for interval in (found.plain, found.controlled):
        assert abs(interval.mean - truth) < 2 * (interval.high - interval.mean)
    assert found.variance_ratio < 1.05


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_a_value_that_knows_something_narrows_the_interval(name: str) -> None:
    """The same mean at less variance."""
    found, truth = measured(name, value_of(name, knows=True))
    assert abs(found.controlled.mean - truth) < 2 * (found.controlled.high - found.controlled.mean)
    assert found.variance_ratio < 0.9


def test_intervals_are_as_wide_as_the_means_spread() -> None:
    """Kuhn poker, one always bets, the other but with the queen: the deal decides nearly all, D's mean is uncertain."""
    tree, pairs = tree_of("kuhn_poker"), 512
    bets = [np.ones(tree.num_infosets, bool), tree.views.card != 1]
    tables = [np.stack([~x, x], axis=1).astype(float) for x in bets]
    players = [table_policy(table_index(tree), table) for table in tables]
    sizes = {"games": 2 * pairs, "samples": 4, "fresh": 3 * pairs}
    found = [
        controlled_match(tree.game, *players, value_of("kuhn_poker", knows=True), **sizes, seed=seed)
        for seed in range(200)
    ]
    truth, spreads = earned(tree, *tables), []
    for kind in ("plain", "controlled"):
        means, lows, highs = np.array([getattr(one, kind) for one in found]).T
        assert 0.9 < np.mean((lows <= truth) & (truth <= highs)) < 0.99, kind
        spreads.append(means.var(ddof=1))
    ratio = np.mean([one.variance_ratio for one in found])
    assert ratio == pytest.approx(spreads[1] / spreads[0], rel=0.2)
    assert ratio < 0.35


@functools.partial(jax.jit, static_argnums=0)
def _redealt(game: Game, key: Array) -> tuple[Array, Array]:
    """Deals 256 times again behind one deal: whether both views stay, and the next card of each."""
    state = game.init(key)
    others = jax.vmap(game.resample_chance, (None, 0))(state, jax.random.split(key, 256))
    seats = jnp.arange(2)
    views = jax.vmap(lambda s: jax.vmap(lambda seat: game.view(s, seat))(seats))(others)
    same = [jnp.all(x == x[:1]) for x in jax.tree.leaves(views)]
    own = jax.vmap(lambda seat: game.view(state, seat))(seats)
    pairs = zip(jax.tree.leaves(views), jax.tree.leaves(own), strict=True)
    same += [jnp.all(x[0] == y) for x, y in pairs]
    return jnp.all(jnp.stack(same)), _next_card(others)


def _next_card(states: Any) -> Array:
    """Returns what chance shows next: Leduc's public card, or the top of the stock."""
    if hasattr(states, "public"):
        return states.public
    table = getattr(states, "table", states)
    return table.deck[:, -_STOCK[table.deck.shape[1]]]


_STOCK = {9: 2, 52: 31}
"""Cards in the stock after the deal, by the deck's size."""


@pytest.mark.parametrize(
    ("name", "rules", "left"),
    [
        ("leduc_poker", {}, 4),
        ("mini_gin_rummy", {"preset": "3x3"}, 2),
        ("gin_rummy", {}, 31),
        ("gin_rummy_mdp", {}, 31),
        ("gin_rummy_openspiel", {}, 31),
        ("rummy500", {"num_players": 2, "hand_size": 10}, 31),
        ("rummy500", {"num_players": 2, "hand_size": 10, "target": 100}, 31),
    ],
)
def test_a_redealt_state_looks_the_same_and_goes_on_otherwise(name: str, rules: dict[str, Any], left: int) -> None:
    """Both views stay bit for bit; each card that is left comes next equally often."""
    same, card = _redealt(envs.make(name, **rules), jax.random.key(3))
    assert same
    counts = np.bincount(np.asarray(card).astype(int))
    np.testing.assert_allclose(counts[counts > 0], [256 / left] * left, atol=5 * np.sqrt(256 / left))
