"""Are values, best responses, NashConv and CFR what OpenSpiel computes?"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.algorithms.tabular import cfr
from dream.game_tree import sequence_form, tabular_policy
from dream.game_tree.tabular_policy import average, normalised, table_index, table_policy, tabulate
from dream.game_tree.tree import Tree, build_tree
from envs import InputError

pyspiel = pytest.importorskip("pyspiel")

GAMES = ("kuhn_poker", "leduc_poker")


@functools.cache
def tree_of(name: str) -> Tree:
    """Builds a tree once."""
    return build_tree(envs.make(name))


@functools.cache
def info_states(name: str) -> list[str]:
    """Returns OpenSpiel's string of every information set of our tree, found by playing each set's first history."""
    tree, game = tree_of(name), envs.make(name)
    names: list[str | None] = [None] * tree.num_infosets
    roots = jax.device_get(game.initial_outcomes()[0])
    for history in range(tree.num_histories):
        at = tree.infoset[history]
        if at < 0 or names[at] is not None:
            continue
        names[at] = _pyspiel_state(name, tree, roots, history).information_state_string(int(tree.player[history]))
    return names


def _pyspiel_state(name: str, tree: Tree, roots: object, history: int) -> object:
    """Returns OpenSpiel's state of a history: chance follows the private cards, and the public one in its view."""
    path = [history]
    while tree.parent[path[-1]] >= 0:
        path.append(int(tree.parent[path[-1]]))
    state = pyspiel.load_game(name).new_initial_state()
    hands = [int(card) for card in roots.hands[path[-1]]]
    public = next((int(tree.views.public[tree.infoset[h]]) for h in path if _shows_public(tree, h)), None)
    for node in [*reversed(path[:-1])]:
        _deal(state, hands, public)
        state.apply_action(int(tree.action[node]))
    _deal(state, hands, public)
    return state


def _shows_public(tree: Tree, history: int) -> bool:
    return (
        hasattr(tree.views, "public") and tree.infoset[history] >= 0 and tree.views.public[tree.infoset[history]] < 255
    )


def _deal(state: object, hands: list[int], public: int | None) -> None:
    while state.is_chance_node():
        cards = min(len(state.history()), 2)
        state.apply_action(hands[cards] if cards < 2 else public)


def as_policy(name: str, table: np.ndarray) -> object:
    """Returns a table as OpenSpiel's tabular policy."""
    tree = tree_of(name)
    rows = {
        text: [(int(a), float(table[i, a])) for a in np.flatnonzero(tree.legal[i])]
        for i, text in enumerate(info_states(name))
    }
    return pyspiel.TabularPolicy(rows)


def random_table(tree: Tree, seed: int) -> np.ndarray:
    """Returns a table drawn uniformly from the distributions over legal actions."""
    weights = np.random.default_rng(seed).exponential(size=tree.legal.shape) * tree.legal
    return weights / weights.sum(axis=1, keepdims=True)


def cfr_table(tree: Tree, updates: int, **variant: object) -> np.ndarray:
    """Returns the average policy of some CFR iterations."""
    zeros = np.zeros(tree.legal.shape)
    state = cfr.CfrState(zeros, zeros, zeros, np.int64(0), np.int32(0))
    with jax.enable_x64(True):
        form = sequence_form.sequence_form(tree)
        after, _ = cfr.run_updates(cfr.CfrConfig("cfr", **variant), form, state, updates)
        return normalised(np.asarray(after.weights), tree.legal)


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("kind", ["uniform", "random", "cfr"])
def test_nash_conv_and_values_equal_openspiel(name: str, kind: str) -> None:
    """NashConv and expected value agree within 1e-6."""
    tree = tree_of(name)
    table = {
        "uniform": tree.uniform,
        "random": lambda: random_table(tree, 3),
        "cfr": lambda: cfr_table(tree, 20),
    }[kind]()
    game, policy = pyspiel.load_game(name), as_policy(name, table)
    assert sequence_form.nash_conv(tree, table) == pytest.approx(pyspiel.nash_conv(game, policy), abs=1e-6)
    values = pyspiel.expected_returns(game.new_initial_state(), policy, -1, True)
    np.testing.assert_allclose(sequence_form.expected_value(tree, table), values, atol=1e-6)


@pytest.mark.parametrize("name", GAMES)
def test_a_best_response_earns_its_value(name: str) -> None:
    """Playing the table that best_response returns yields the value it states."""
    tree, table = tree_of(name), random_table(tree_of(name), 5)
    for player in range(2):
        value, answer = sequence_form.best_response(tree, table, player)
        assert sequence_form.expected_value(tree, answer)[player] == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(answer[tree.owner != player], table[tree.owner != player], atol=1e-15)


def test_uniform_liars_dice_has_the_known_nash_conv() -> None:
    """1.561489, as OpenSpiel computes."""
    tree = tree_of("liars_dice")
    assert sequence_form.nash_conv(tree, tree.uniform()) == pytest.approx(1.561489, abs=1e-6)


@pytest.mark.parametrize(
    ("variant", "after"),
    [
        ({}, {10: 0.889, 100: 0.0957, 1000: 0.01182}),
        ({"plus": True, "average_power": 1.0}, {10: 0.610, 100: 0.0134, 1000: 0.000257}),
    ],
)
def test_cfr_has_openspiels_exploitability_on_leduc(variant: dict, after: dict[int, float]) -> None:
    """CFR and CFR+ after 10, 100 and 1,000 iterations; the last of CFR+ depends on rounding."""
    tree = tree_of("leduc_poker")
    for updates, expected in after.items():
        value = sequence_form.nash_conv(tree, cfr_table(tree, updates, **variant)) / 2
        assert value == pytest.approx(expected, rel=0.1 if expected < 1e-3 else 6e-3)


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"plus": True, "average_power": 1.0},
        {"average_power": 1.0, "positive_power": 1.0, "negative_power": 1.0},
        {"average_power": 2.0, "positive_power": 1.5, "negative_power": 0.0},
        {"average_power": 2.0, "positive_power": math.inf, "negative_power": -math.inf},
        {"plus": True, "predictive": True, "average_power": 2.0},
    ],
)
def test_every_variant_finds_kuhns_value(variant: dict) -> None:
    """-1/18 to the first player, within each variant's exploitability after 2,000 iterations."""
    tree = tree_of("kuhn_poker")
    table = cfr_table(tree, 2000, **variant)
    gap = sequence_form.nash_conv(tree, table)
    assert gap < 2e-3
    assert sequence_form.expected_value(tree, table)[0] == pytest.approx(-1 / 18, abs=gap)


@pytest.mark.parametrize("name", GAMES)
def test_a_table_survives_being_played_as_a_policy(name: str) -> None:
    """tabulate(table_policy(table)) is the table, up to float32."""
    tree = tree_of(name)
    table = random_table(tree, 7)
    again = tabulate(tree, table_policy(table_index(tree), table.astype(np.float32)))
    np.testing.assert_allclose(again, table, atol=1e-6)


def test_the_average_earns_the_mean_of_what_is_averaged() -> None:
    """Against any opponent, the average's value is the weighted mean of the tables' values."""
    tree = tree_of("leduc_poker")
    tables, weights = [random_table(tree, seed) for seed in range(3)], [1.0, 2.0, 5.0]
    mean = average(tree, tables, weights)
    opponent = random_table(tree, 11)
    for player in range(2):
        values = [
            sequence_form.expected_value(tree, np.where((tree.owner == player)[:, None], table, opponent))[player]
            for table in [*tables, mean]
        ]
        assert values[-1] == pytest.approx(np.average(values[:-1], weights=weights), abs=1e-12)


def test_what_cannot_be_exact_is_refused_in_one_line() -> None:
    """A game that is not enumerable, a tree too large, a policy that is no distribution."""
    with pytest.raises(InputError, match="not enumerable"):
        build_tree(envs.make("gin_rummy"))
    with pytest.raises(InputError, match=r"too large: .* histories after"):
        build_tree(envs.make("leduc_poker"), max_gib=1e-4)
    tree = tree_of("kuhn_poker")
    with pytest.raises(InputError, match="not a distribution over the legal actions in 12 of 12"):
        sequence_form.nash_conv(tree, 2.0 * tree.uniform())
    with pytest.raises(InputError, match="shape"):
        sequence_form.nash_conv(tree, tree.uniform()[:3])


def test_views_whose_first_hashes_are_alike_are_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """With only 16 first hashes for Leduc's 936 sets, every set finds its own row."""
    tree, whole = tree_of("leduc_poker"), tabular_policy.view_hash
    few = lambda view, salt: jnp.where(salt == 0, whole(view, salt) & 15, whole(view, salt))  # noqa: E731
    monkeypatch.setattr(tabular_policy, "view_hash", few)
    table, index = random_table(tree, 9), table_index(tree)
    assert len(index["probes"]) > 936 / 16
    np.testing.assert_allclose(tabulate(tree, table_policy(index, table.astype(np.float32))), table, atol=1e-6)
