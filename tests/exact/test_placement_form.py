"""Phantom games, exact by cells: equal to their tree of histories, and to values computed elsewhere."""

from __future__ import annotations

import functools
import itertools
import json
import pathlib
from typing import Any

import jax
import numpy as np
import pytest
from small_phantom import FiveCells, FiveRules, LoneCells

import envs
from dream.algorithms.tabular import mmd
from dream.algorithms.tabular.cfr import CfrConfig, CfrState, run_updates, run_updates_without_tree
from dream.algorithms.types import Resources
from dream.game_tree.exact import round_robin
from dream.game_tree.forms import TreeForm
from dream.game_tree.placement.form import PlacementForm, kept_form, placement_form
from dream.game_tree.sequence_form import sequence_form
from dream.game_tree.tree import build_tree
from envs import Policy

pytestmark = pytest.mark.runs_briefly

SMALL = {
    "hex-classical": lambda: envs.make("dark_hex", board_size=2),
    "hex-abrupt": lambda: envs.make("dark_hex", board_size=2, version="abrupt"),
    "five-classical": lambda: FiveCells(FiveRules(version="classical")),
    "five-abrupt": lambda: FiveCells(FiveRules(version="abrupt")),
    "five-opening": lambda: FiveCells(FiveRules(version="abrupt", opening="2/04")),
    "lone-classical": lambda: LoneCells(FiveRules(version="classical")),
    "lone-abrupt": lambda: LoneCells(FiveRules(version="abrupt")),
    "ttt-opening": lambda: envs.make("phantom_ttt", opening="083/418"),
}


@functools.cache
def _forms(name: str) -> tuple[TreeForm, PlacementForm]:
    game = SMALL[name]()
    return TreeForm(build_tree(game)), placement_form(game)


@pytest.fixture(scope="module", params=SMALL)
def forms(request: pytest.FixtureRequest) -> tuple[TreeForm, PlacementForm]:
    """A game small enough for its tree, both ways."""
    return _forms(request.param)


def _odd(params: Any, view: Any, legal: Any) -> Any:
    """A policy that is different everywhere, deterministic in places."""
    code = (
        view.tries.astype("uint32") * np.uint32(2654435761)
        + view.stones.astype("uint32") * np.uint32(40503)
        + view.seat
    )
    weights = ((code[None] >> np.arange(legal.shape[0], dtype=np.uint32)) % 5).astype("float32")
    weights = jax.numpy.where(legal, weights * weights, 0)
    total = weights.sum()
    even = legal / legal.sum()
    return jax.numpy.where(total > 0, weights / jax.numpy.maximum(total, 1e-9), even)


@pytest.mark.parametrize("policy", [envs.uniform_policy(), Policy(_odd)], ids=["uniform", "odd"])
def test_values_are_those_of_the_tree(forms: tuple[TreeForm, PlacementForm], policy: Policy) -> None:
    """Value of play and best response of each player, to rounding; the tree lists histories one by one."""
    by_tree, by_cells = (form.values(form.tabulate(policy)) for form in forms)
    np.testing.assert_allclose(by_cells.expected, by_tree.expected, atol=1e-6)  # the policy is float32
    np.testing.assert_allclose(by_cells.best, by_tree.best, atol=1e-6)
    assert by_cells.nash_conv == pytest.approx(by_tree.nash_conv, abs=1e-6)
    assert sum(by_cells.expected) == pytest.approx(0, abs=1e-12)


def test_a_best_response_earns_its_value(forms: tuple[TreeForm, PlacementForm]) -> None:
    """Played against the table it answers, as the tree's does."""
    for player in range(2):
        earned = []
        for form in forms:
            value, table = form.best_response(form.tabulate(Policy(_odd)), player)
            assert form.values(table).expected[player] == pytest.approx(value, abs=1e-12)
            earned.append(value)
        assert earned[0] == pytest.approx(earned[1], abs=1e-6)


def test_a_round_robin_is_the_values_of_its_pairs(forms: tuple[TreeForm, PlacementForm]) -> None:
    """Each cell is the value of play with the first player's part of one table and the second's of the other."""
    for form in forms:
        uniform = form.tabulate(envs.uniform_policy())
        tables = [uniform, form.tabulate(Policy(_odd)), form.best_response(uniform, 0)[1]]
        found = round_robin(form, [form.plans(table) for table in tables])
        pairs = {
            (i, j): form.values(form.mixed(tables[i], tables[j])).expected
            for i, j in itertools.product(range(3), repeat=2)
        }
        assert found.shape == (3, 3)
        for (i, j), value in np.ndenumerate(found):
            assert value == pytest.approx((pairs[i, j][0] + pairs[j, i][1]) / 2, abs=1e-12)


def test_information_sets_are_those_of_the_tree(forms: tuple[TreeForm, PlacementForm]) -> None:
    """The same views, each once; with an opening also some that the opponent's first tries rule out."""
    tree, form = forms[0].tree, forms[1]
    ours, theirs = (
        {tuple(int(x) for x in row) for row in zip(*views, strict=True)} for views in (form.views, tree.views)
    )
    assert len(ours) == form.num_infosets
    assert theirs <= ours
    if not form.game.rules.opening:
        assert ours == theirs


@pytest.mark.parametrize("variant", ["cfr", "cfr_plus", "dcfr", "dcfr forgetting", "dcfr of high power", "pcfr_plus"])
def test_every_iterate_of_cfr_is_that_on_the_tree(variant: str) -> None:
    """Regrets, averages and last regrets after 1, 2 and 7 iterations, in every information set."""
    tree_form, form = _forms("five-abrupt")
    config = {
        "cfr": CfrConfig("cfr"),
        "cfr_plus": CfrConfig("cfr_plus", plus=True, average_power=1.0),
        "dcfr": CfrConfig("dcfr", average_power=2.0, positive_power=1.5, negative_power=0.0),
        "dcfr forgetting": CfrConfig("dcfr", average_power=2.0, positive_power=1.5, negative_power=-0.5),
        "dcfr of high power": CfrConfig("dcfr", positive_power=400.0, negative_power=-400.0),
        "pcfr_plus": CfrConfig("pcfr_plus", plus=True, predictive=True, average_power=2.0),
    }[variant]
    tree = tree_form.tree
    zeros, entries = np.zeros(tree.legal.shape), sum(own.num_entries for own in form.players)
    by_tree = CfrState(zeros, zeros, zeros, np.int64(0), np.int32(0))
    by_cells = CfrState(*np.zeros((3, entries)), np.int64(0), np.int32(0))
    rows = _rows(tree.views)
    for updates in (1, 1, 5):
        with jax.enable_x64(True):
            by_tree = jax.device_get(run_updates(config, sequence_form(tree), by_tree, updates)[0])
        by_cells = run_updates_without_tree(config, form, by_cells, updates)
        assert by_cells.updates == by_tree.updates
        for name in ("regrets", "weights", "last"):
            dense = _dense(form, getattr(by_cells, name), rows, tree.legal.shape)
            np.testing.assert_allclose(dense, getattr(by_tree, name) * tree.legal, atol=1e-12)


def test_every_iterate_of_mmd_is_that_on_the_tree() -> None:
    """Logarithms of policy and magnet after 1, 2 and 7 updates, with a magnet that moves and steps that fall."""
    tree_form, form = _forms("five-abrupt")
    tree = tree_form.tree
    config = mmd.TabularMmdConfig(learning_rate=2.0, halving=3.0, learning_rate_falls=True, magnet_tau=0.1)
    by_tree = mmd.make(config, None, tree_form.game, Resources())
    one, other = by_tree.init(jax.random.key(0)), mmd.TabularMmdState(*_uniform_logs(form), np.int64(0), np.int32(0))
    rows = _rows(tree.views)
    for updates in (1, 1, 5):
        for _ in range(updates):
            one = by_tree.iterate(one)[0]
        other = mmd.run_updates_without_tree(config, form, other, updates)
        assert other.updates == one.updates
        for name in ("logs", "magnet"):
            dense = _dense(form, getattr(other, name), rows, tree.legal.shape)
            np.testing.assert_allclose(dense, np.where(tree.legal, getattr(one, name), 0.0), atol=1e-10)


def test_great_steps_of_mmd_leave_a_distribution() -> None:
    """Logits of a thousand and more, whose exponential is no float64."""
    _, form = _forms("five-abrupt")
    state = mmd.TabularMmdState(*_uniform_logs(form), np.int64(0), np.int32(0))
    after = mmd.run_updates_without_tree(mmd.TabularMmdConfig(learning_rate=1e4, magnet_weight=1e-6), form, state, 3)
    assert np.ptp(after.logs) > 1000
    for own, logs in zip(form.players, form.halves(after.logs), strict=True):
        np.testing.assert_allclose(own.total(np.exp(logs)), 1.0, atol=1e-9)


def _uniform_logs(form: PlacementForm) -> tuple[np.ndarray, np.ndarray]:
    """Returns logarithms of uniform play and of the magnet at the start."""
    uniform = np.concatenate([own.uniform() for own in form.players])
    return np.log(uniform), np.zeros_like(uniform)


def _rows(views: Any) -> dict[tuple[int, ...], int]:
    return {tuple(int(x) for x in row): n for n, row in enumerate(zip(*views, strict=True))}


def _dense(form: PlacementForm, entries: np.ndarray, rows: dict[tuple[int, ...], int], shape: Any) -> np.ndarray:
    """Returns the entries of both players as a table of the tree."""
    cut, table = form.players[0].num_entries, np.zeros(shape)
    parts = entries[:cut], entries[cut:]
    for player, sets, views, cells, stage in form.decisions(1 << 20):
        block = parts[player][stage.entries].reshape(stage.shape)[:, sets]
        at = [rows[tuple(int(x) for x in row)] for row in zip(*views, strict=True)]
        table[np.array(at)[:, None], cells] = block.T
    return table


def test_a_table_played_as_a_policy_is_that_table() -> None:
    """`policy` and `tabulate` undo each other."""
    form = _forms("five-classical")[1]
    table = form.tabulate(Policy(_odd))
    for one, two in zip(form.tabulate(form.policy(table)), table, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-7)


def test_a_policy_that_is_none_is_refused() -> None:
    """Probabilities that do not sum to 1, and probability on a cell tried before."""
    form = _forms("hex-classical")[1]
    for apply in (
        lambda params, view, legal: legal * np.float32(0.3),
        lambda params, view, legal: legal * 0 + np.float32(0.25),
    ):
        with pytest.raises(envs.InputError, match="not a distribution over the legal actions"):
            form.tabulate(Policy(apply))


_FILE = pathlib.Path(__file__).resolve().parents[1] / "golden" / "phantom_games.json"
GOLDEN = json.loads(_FILE.read_text())["games"]


@pytest.fixture(scope="module", params=["dark_hex", "phantom_ttt"])
def classical(request: pytest.FixtureRequest) -> tuple[PlacementForm, dict[str, Any]]:
    """A whole classical game, and what is known of it."""
    return placement_form(envs.make(request.param)), GOLDEN[f"{request.param} classical"]


def test_whole_games_have_the_known_counts_and_values(classical: tuple[PlacementForm, dict[str, Any]]) -> None:
    """Information sets by depth, sequences, and of uniform play the value, best responses and values of sequences."""
    form, known = classical
    for own, sets, sequences, depths in zip(
        form.players, known["infosets"], known["sequences_legal"], known["depth_counts"], strict=True
    ):
        assert own.num_infosets == sets
        assert 1 + own.num_entries == sequences + 1
        assert [len(stage.lists) for stage in own.stages] == depths
    table = form.uniform()
    values = form.values(table)
    assert values.expected[0] == pytest.approx(float(known["uniform"]["ev0"]), abs=1e-9)
    assert values.best == pytest.approx([float(x) for x in known["uniform"]["br_value"]], abs=1e-9)
    assert values.nash_conv == pytest.approx(float(known["uniform"]["nash_conv"]), abs=1e-9)
    plans = [own.realisation(policy) for own, policy in zip(form.players, table, strict=True)]
    for sample in known["infosets_sample"]:
        own = form.players[sample["player"]]
        gains = own.terminal_values(plans[1 - sample["player"]]) if own not in _KEPT else _KEPT[own]
        _KEPT.setdefault(own, gains)
        cells, entries = _entries(form, sample)
        assert cells == sample["legal"]
        known_gains = [float(x) for x in sample["uniform_gradient_legal"]]
        np.testing.assert_allclose(gains[1 + entries], known_gains, atol=1e-9)
    _KEPT.clear()


_KEPT: dict[Any, np.ndarray] = {}


def _entries(form: PlacementForm, sample: dict[str, Any]) -> tuple[list[int], np.ndarray]:
    """Returns an information set's legal cells and entries, found by its own tries."""
    text, seat = sample["desc"], sample["player"]
    tries = int("0" + "".join(str(int(cell) + 1) for cell in text[::2]))
    stones = sum(1 << int(cell) for cell, mark in zip(text[::2], text[1::2], strict=True) if mark == "*")
    stage = form.players[seat].stages[len(text) // 2]
    (row,) = np.flatnonzero((stage.lists.tries == tries) & (stage.lists.stones == stones))
    tried = {int(cell) for cell in text[::2]}
    cells = [cell for cell in range(9) if cell not in tried]
    return cells, stage.entries.start + np.arange(stage.width) * len(stage.lists) + row


def test_a_kept_form_is_of_what_the_game_does_now() -> None:
    """The same game, in which other cells have come to win since."""

    class Changing(FiveCells):
        """Each wins with two cells alone, once that is said."""

    game = Changing(FiveRules())
    form = kept_form(game)
    assert kept_form(game) is form
    Changing.winning = ((0b00011,), (0b01001,))
    after, anew = kept_form(game), placement_form(game)
    assert after is not form
    assert after.values(after.uniform()) == anew.values(anew.uniform()) != form.values(form.uniform())
