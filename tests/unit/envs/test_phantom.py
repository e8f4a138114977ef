"""Phantom games: rules by hand, winning sets, openings, names and drawings."""

from __future__ import annotations

import itertools
from typing import Any
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.game import EnumerableGame, Game
from envs.phantom import boards


def _played(game: Game, *actions: int) -> Any:
    state = game.init(jax.random.key(0))
    for action in actions:
        assert bool(game.legal_actions(state)[action])
        state, rewards, _ = game.step(state, jnp.int32(action))
    return state, rewards


@pytest.mark.parametrize(("version", "players"), [("classical", [1, 1, 0]), ("abrupt", [1, 0, 1])])
def test_a_failed_try_keeps_the_turn_in_the_classical_version_only(version: str, players: list[int]) -> None:
    """Player 0 takes the centre, player 1 tries it in vain and then a corner."""
    game = envs.make("phantom_ttt", version=version)
    seen = [int(_played(game, *actions)[0].current_player) for actions in ((4,), (4, 4), (4, 4, 0))]
    assert seen == players
    state, _ = _played(game, 4, 4)
    assert np.flatnonzero(~game.legal_actions(state)).tolist() == [4]
    assert int(game.view(state, 1).tries) == 5
    assert int(game.view(state, 1).stones) == 0


def test_three_in_a_row_win_and_a_full_board_is_a_draw() -> None:
    """Won with the last stone of a row; drawn by x o x / x o o / o x x."""
    game = envs.make("phantom_ttt")
    state, rewards = _played(game, 0, 3, 1, 4, 2)
    assert int(state.current_player) == -1
    assert rewards.tolist() == [1, -1]
    assert game.winner(state) == 0
    state, rewards = _played(game, 0, 1, 2, 4, 3, 5, 7, 6, 8)
    assert int(state.current_player) == -1
    assert rewards.tolist() == [0, 0]
    assert game.winner(state) is None
    assert "draw" in game.render(state)


def _joined(stones: int, size: int, player: int) -> bool:
    """Returns whether stones join a player's edges, by walking from one of them."""
    near = boards.hex_neighbours(size)
    start = [n if player == 0 else n * size for n in range(size)]
    reached, open_cells = set(), [cell for cell in start if stones >> cell & 1]
    while open_cells:
        cell = open_cells.pop()
        if cell not in reached:
            reached.add(cell)
            open_cells += [other for other in near[cell] if stones >> other & 1]
    return any((cell // size if player == 0 else cell % size) == size - 1 for cell in reached)


@pytest.mark.parametrize("size", [2, 3])
def test_chains_are_what_walking_from_edge_to_edge_finds(size: int) -> None:
    """Of every set of stones; and a full board has exactly one winner."""
    chains, full = boards.hex_chains(size), (1 << size * size) - 1
    for stones in range(full + 1):
        won = [any(stones & chain == chain for chain in chains[player]) for player in range(2)]
        assert won == [_joined(stones, size, player) for player in range(2)]
        other = any((full ^ stones) & chain == chain for chain in chains[1])
        assert won[0] != other


def test_rows_of_three() -> None:
    """Eight lines of three, no two of which share more than a cell."""
    lines = boards.rows_of_three()
    assert len(set(lines)) == 8
    assert all(line.bit_count() == 3 for line in lines)
    assert all((one & two).bit_count() <= 1 for one, two in itertools.combinations(lines, 2))


def test_an_opening_forces_first_tries_and_makes_the_game_walkable() -> None:
    """Player 0 must try b2 then a1; with three tries each the tree can be listed."""
    game = envs.make("dark_hex", opening="40/8")
    assert not isinstance(game, EnumerableGame)
    state = game.init(jax.random.key(0))
    assert np.flatnonzero(game.legal_actions(state)).tolist() == [4]
    state, _ = _played(game, 4)
    assert np.flatnonzero(game.legal_actions(state)).tolist() == [8]
    state, _ = _played(game, 4, 8)
    assert np.flatnonzero(game.legal_actions(state)).tolist() == [0]
    state, _ = _played(game, 4, 8, 0)
    assert np.flatnonzero(game.legal_actions(state)).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert isinstance(envs.make("dark_hex", opening="408/123"), EnumerableGame)
    assert isinstance(envs.make("dark_hex", board_size=2), EnumerableGame)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"version": "cdh"}, "version='cdh' is not valid; it must be one of classical, abrupt"),
        ({"opening": "99/1"}, "opening='99/1' is not valid"),
        ({"opening": "11/2"}, "opening='11/2' is not valid"),
        ({"opening": "123"}, "opening='123' is not valid"),
        ({"opening": "4/", "board_size": 2}, "digits of 0 to 3"),
        ({"board_size": 4}, "board_size=4 is out of range"),
    ],
)
def test_wrong_rules_are_one_line(rules: dict[str, Any], message: str) -> None:
    """Naming what is wrong and what would be right."""
    with pytest.raises(envs.InputError, match=message) as caught:
        envs.make("dark_hex", **rules)
    assert "\n" not in str(caught.value)


def test_a_game_starts_from_the_empty_board_alone() -> None:
    """A record with stones placed, or with a player who does not exist, is no record of it."""
    game = envs.make("phantom_ttt")
    empty = game.deal_of(game.init(jax.random.key(0)))
    assert game.deal_of(game.from_deal(empty)) == empty
    for deal in ((3, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 5), ()):
        with pytest.raises(envs.InputError, match="not the empty board"):
            game.from_deal(deal)


def test_views_of_lists_are_the_games_own() -> None:
    """`view_of` makes from a list of tries what `view` makes from the state."""
    game = envs.make("dark_hex", version="abrupt")
    state, _ = _played(game, 4, 4, 0, 8, 8, 1)
    for seat, tries in ((0, [4, 0, 8]), (1, [4, 8, 1])):
        stones = int(state.stones[seat])
        listed = game.view_of(seat, np.array([tries]), np.array([stones]))
        for one, two in zip(listed, game.view(state, seat), strict=True):
            assert one.dtype == two.dtype
            assert one[0] == two
    view = game.view(state, 1)
    assert game.tried_cells(view).tolist() == [4, 8, 1, -1, -1, -1, -1, -1, -1]


def test_drawings_show_what_a_player_knows() -> None:
    """All stones without a viewer; a viewer's own and those it has run into; SVG is well formed."""
    game = envs.make("dark_hex")
    state, _ = _played(game, 0, 0, 4, 4)
    assert game.symbols(state) == "x...o...."
    assert game.symbols(state, 0) == "x...o...."
    state, _ = _played(game, 0, 4)
    assert game.symbols(state, 0) == "x........"
    assert game.symbols(state, 1) == "....o...."
    assert "player 0 (x) to move, as player 1 sees it" in game.render(state, 1)
    assert [game.action_name(cell) for cell in (0, 5, 8)] == ["a1", "c2", "c3"]
    for name in ("dark_hex", "phantom_ttt"):
        svg = envs.make(name).render_svg(state, 0)
        assert ElementTree.fromstring(svg).tag.endswith("svg")
        assert svg.count("<circle") == 1
    for viewer, draw in ((2, game.render), (-1, game.render_svg), (-1, game.symbols), ("0", game.render)):
        with pytest.raises(envs.InputError, match=r"^viewer=.* a seat from 0 to 1, or None for all cards$"):
            draw(state, viewer)
