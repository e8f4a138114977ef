"""Are exact values of phantom games, computed by cells, those of OpenSpiel, computed by history? On 2 x 2 cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import phantom_lockstep
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability

import envs
from dream.game_tree.placement.form import PlacementForm, Table, placement_form
from envs.adapters import open_spiel

UNIFORM = {"classical": 0.625, "abrupt": 5 / 12}
"""Version -> exploitability of uniform play, by pyspiel 2.0.2."""
View = tuple[int, int, int]
"""Seat, stones and tries, as in our views."""


@pytest.fixture(scope="module", params=UNIFORM)
def form(request: pytest.FixtureRequest) -> PlacementForm:
    """Dark Hex on the small board, each version."""
    return placement_form(envs.make("dark_hex", board_size=2, version=request.param))


def _random(form: PlacementForm, seed: int) -> Table:
    """Returns a table that is different in every information set, with zeros."""
    rng = np.random.default_rng(seed)
    zero, one = (own.normalised(rng.integers(0, 4, own.num_entries).astype(float)) for own in form.players)
    return zero, one


def _rows(form: PlacementForm, table: Table) -> dict[View, list[tuple[int, float]]]:
    """Returns view -> probability of each legal action."""
    rows = {}
    for player, sets, views, cells, stage in form.decisions(1 << 20):
        chosen = table[player][stage.entries].reshape(stage.shape)[:, sets].T
        for view, actions, row in zip(zip(*views, strict=True), cells, chosen, strict=True):
            rows[tuple(int(x) for x in view)] = [(int(a), float(p)) for a, p in zip(actions, row, strict=True)]
    return rows


def _by_string(state: Any, rows: dict[View, list[tuple[int, float]]]) -> dict[str, list[tuple[int, float]]]:
    """Returns pyspiel's information-state string -> the row of the view that its own tries come to."""
    found: dict[str, list[tuple[int, float]]] = {}

    def visit(state: Any, stones: tuple[int, int], tries: tuple[int, int]) -> None:
        if state.is_terminal():
            return
        seat = state.current_player()
        row = rows[seat, stones[seat], tries[seat]]
        assert [action for action, _ in row] == state.legal_actions()
        assert found.setdefault(state.information_state_string(), row) == row
        for cell in state.legal_actions():
            placed = 0 if stones[1 - seat] >> cell & 1 else 1 << cell
            tried = 10 * tries[seat] + cell + 1
            visit(state.child(cell), _with(stones, seat, stones[seat] | placed), _with(tries, seat, tried))

    visit(state, (0, 0), (0, 0))
    return found


def _with(pair: tuple[int, int], seat: int, value: int) -> tuple[int, int]:
    return (value, pair[1]) if seat == 0 else (pair[0], value)


def test_uniform_play_has_pyspiels_exploitability(form: PlacementForm) -> None:
    """5/8 where a failed try keeps the turn, 5/12 where it does not."""
    game = phantom_lockstep.theirs(form.game)
    theirs = pyspiel.exploitability(game, pyspiel.UniformRandomPolicy(game))
    assert theirs == pytest.approx(UNIFORM[form.game.rules.version], abs=1e-12)
    assert form.values(form.uniform()).nash_conv / 2 == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_table_has_pyspiels_values(form: PlacementForm, seed: int) -> None:
    """Value of play and NashConv; the classical strings count the opponent's tries too, of no use on this board."""
    table = _random(form, seed)
    game = phantom_lockstep.theirs(form.game)
    root = game.new_initial_state()
    policy = pyspiel.TabularPolicy(_by_string(root, _rows(form, table)))
    ours = form.values(table)
    np.testing.assert_allclose(ours.expected, pyspiel.expected_returns(root, policy, -1, True), atol=1e-9)
    assert ours.nash_conv == pytest.approx(pyspiel.nash_conv(game, policy), abs=1e-9)


def test_openspiels_best_response_on_our_views(form: PlacementForm) -> None:
    """OpenSpiel's NashConv in Python, on our game through the adapter: its information states are our views."""
    table = _random(form, 4)
    exported = open_spiel.policy(form.policy(table), form.game)
    theirs = exploitability.nash_conv(open_spiel.game(form.game), exported)
    assert form.values(table).nash_conv == pytest.approx(theirs, abs=1e-5)
