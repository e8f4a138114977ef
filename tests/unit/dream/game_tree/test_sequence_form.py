"""Are entries ordered as the picture in the module shows?"""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import envs
from dream.game_tree import (
    best_response,
    build_tree,
    nash_conv,
    sequence_form,
    table_index,
    table_policy,
    tabulate,
)
from dream.game_tree.exact import is_exact
from dream.game_tree.forms import exact_form
from dream.game_tree.placement.lists import digits, empty_list, tried_by
from dream.game_tree.tabular_policy import average
from envs import InputError
from envs.game import HiddenPlacement


def test_the_picture() -> None:
    """Sets a and b have two of three actions, c has three and follows action 1 of a."""
    legal = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], bool)
    game = SimpleNamespace(num_actions=3)
    tree = SimpleNamespace(
        owner=np.zeros(3, int), legal=legal, depth=np.array([0, 0, 1]), before=np.array([0, 0, 1 + 1]), game=game
    )
    layout = sequence_form._layout(tree, 0)
    assert layout.blocks == (((2, 2),), ((3, 1),))
    assert layout.flat_index.tolist() == [0, 4, 1, 5, 6, 7, 8]
    assert layout.entry_of.tolist() == [[0, 2, 7], [7, 1, 3], [4, 5, 6]]
    infoset_of, parent_entry, child_sums = sequence_form._depths(tree, layout, 0, 3)
    assert infoset_of.tolist() == [0, 1, 0, 1, 2, 2, 2]
    assert [x.tolist() for x in parent_entry] == [[2, 2, 2]]
    with jax.enable_x64(True):
        assert sequence_form.gather_sum(child_sums[0], np.array([5.0])).tolist() == [0, 0, 5, 0]


def test_a_player_that_never_decides_is_named() -> None:
    """Its part of the form would be empty, and nothing could be computed."""

    class Tree(SimpleNamespace):
        __hash__ = object.__hash__

    tree = Tree(owner=np.zeros(3, int), game=SimpleNamespace(num_players=2, name="solitaire"))
    with pytest.raises(InputError, match="solitaire: player 1 never decides"):
        sequence_form.sequence_form(tree)


def test_what_is_no_table_of_the_tree_is_named() -> None:
    """A game for its tree, a policy for its table, another player; a table of other rows was played without a word."""
    game = envs.make("kuhn_poker")
    tree, policy = build_tree(game), envs.make_bot("random", game)
    table, index = tree.uniform(), table_index(tree)
    calls = (
        (lambda: nash_conv(game, table), r"^the game kuhn_poker is not a tree; build_tree\(game\) makes one$"),
        (lambda: nash_conv(tree, policy), r"^a policy is not a table; tabulate\(tree, policy\) makes one$"),
        (lambda: best_response(tree, table, 2), "^player=2 is not valid; it must be 0 or 1$"),
        (lambda: best_response(tree, table, 1.0), "^player=1.0 is not valid; it must be a whole number, 0 or 1$"),
        (lambda: table_policy(index, table[:5]), r"^a table of shape \(5, 2\) does not fit .* it must have 12 rows$"),
        (lambda: table_policy(tree, table), r"^a Tree is not an index; table_index\(tree\) makes one$"),
    )
    for call, line in calls:
        with pytest.raises(InputError, match=line):
            call()
    for weights in ([0, 0], [np.nan, 1], [2, -1], [np.inf, 1], [1], [1, 1, 1]):
        with pytest.raises(
            InputError, match="of 2 tables are not valid; there must be one for each, finite, 0 or more"
        ):
            average(tree, [table, table], weights)
    assert average(tree, iter([table, table]), iter([0, 2])) == pytest.approx(table)
    assert nash_conv(tree, tabulate(tree, table_policy(index, table.tolist()))) == pytest.approx(nash_conv(tree, table))


def test_a_board_of_more_cells_than_digits_has_no_exact_values() -> None:
    """Lists of tries are decimal numbers: 0 and then 9 would be read as 1 and then -1."""
    tried = tried_by(tried_by(empty_list(), np.array([0], np.uint8), True, 0), np.array([8], np.uint8), True, 1)
    assert digits(tried.tries, 2).tolist() == [[0, 8]]
    rules = HiddenPlacement(
        cells=9, winning=((1,), (1,)), failure_keeps_turn=False, forced=((), ()), view=lambda *_: ()
    )
    for cells, exact in ((9, True), (10, False)):
        game = SimpleNamespace(name="wide", num_players=2, hidden_placement=dataclasses.replace(rules, cells=cells))
        assert is_exact(game) is exact
    with pytest.raises(InputError, match="wide has 10 cells: exact values of phantom games are computed for at most 9"):
        exact_form(game)
