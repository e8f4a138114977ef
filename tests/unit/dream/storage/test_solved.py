"""The player `solved`: of small games alone, as good as its name, and found wherever players are named."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import dream
import envs
from dream.game_tree import nash_conv, tabulate
from dream.page.catalogue import Catalogue
from dream.storage import solved
from dream.storage.policies import find_player, player_names
from dream.storage.tree_cache import stored_tree
from envs import InputError
from envs.kuhn_poker import KuhnPoker

BET = 1
"""In Kuhn poker also to call."""


def test_a_king_that_faces_a_bet_calls() -> None:
    """With more than 95 %, after a bet and after check and bet; and a jack never does."""
    game = envs.make("kuhn_poker")
    player = find_player("solved", game)
    for actions in ([BET], [0, BET]):
        for card, least, most in ((2, 0.95, 1.0), (0, 0.0, 0.05)):
            deck = [card, 1] if len(actions) == 2 else [1, card]
            state = game.from_deck(np.array([*deck, 2 - card]))
            for action in actions:
                state, _, _ = game.step(state, action)
            chance = player(game.view(state, state.current_player), game.legal_actions(state))[BET]
            assert least <= float(chance) <= most


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker"])
def test_it_can_lose_next_to_nothing(name: str) -> None:
    """Less than 0.01 chips a hand against a best response; it is solved once in a process."""
    game = envs.make(name)
    tree, player = stored_tree(game), find_player("solved", game)
    assert tree.num_histories == game.num_histories
    assert nash_conv(tree, tabulate(tree, player)) / 2 < 0.01
    assert find_player("solved", game) is player


def test_games_that_are_solved() -> None:
    """Those whose tree is known to be small; of others the name is unknown, and no tree is built to find that out."""
    for name in ("kuhn_poker", "leduc_poker", "liars_dice", "mini_gin_rummy"):
        assert "solved" in player_names(envs.make(name))
    larger = [envs.make("mini_gin_rummy", preset=preset) for preset in ("3x3", "5x2", "3x4")]
    for game in (*map(envs.make, ("phantom_ttt", "dark_hex", "gin_rummy", "rummy500")), *larger):
        assert not solved.plays(game)
        with pytest.raises(InputError, match="unknown player 'solved'"):
            find_player("solved", game)


def test_games_that_are_not_zero_sum_are_not_solved() -> None:
    """CFR+ finds no equilibrium of them, small as their trees are."""

    @dataclasses.dataclass(frozen=True)
    class Shared(KuhnPoker):
        zero_sum = False

    assert solved.plays(KuhnPoker())
    assert not solved.plays(Shared())
    assert "solved" not in player_names(Shared())


def test_it_is_named_as_other_players_are() -> None:
    """In matches, measurements, and on the page, where it is an opponent and the advisor."""
    kuhn, catalogue = envs.make("kuhn_poker"), Catalogue(runs=None)
    assert dream.exploit("solved", game=kuhn).exploitability < 0.01
    assert dream.evaluate("solved", "random", games=2000, game=kuhn).points_per_hand.low > 0
    for name in ("kuhn_poker", "leduc_poker", "liars_dice", "mini_gin_rummy"):
        game = envs.make(name)
        assert catalogue.advisor(game) == "solved"
        assert catalogue.reference("solved", game) == "solved"
        assert "solved" in catalogue.players(game)
    assert catalogue.advisor(envs.make("phantom_ttt")) == "random"
    assert catalogue.advisor(envs.make("gin_rummy")) == "lookahead"
