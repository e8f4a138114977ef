"""OpenSpiel's own histories, read as records: the same points, and written back to the number."""

from __future__ import annotations

import numpy as np
import pytest

from envs import records

pyspiel = pytest.importorskip("pyspiel")

GAMES = (
    "gin_rummy",
    "gin_rummy(oklahoma=True,gin_bonus=20)",
    "kuhn_poker",
    "leduc_poker",
    "liars_dice",
    "phantom_ttt",
    "phantom_ttt(gameversion=abrupt)",
    "dark_hex(board_size=2)",
    "dark_hex(gameversion=adh,obstype=reveal-nothing)",
)


@pytest.mark.parametrize("text", GAMES)
def test_histories_are_read_and_written(text: str) -> None:
    """Random games, by their numbers and by what OpenSpiel serialises."""
    game, rng = pyspiel.load_game(text), np.random.default_rng(3)
    for n in range(30 if "gin" not in text else 4):
        state = game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(int(rng.choice(state.legal_actions())))
        one = records.of_history(str(game), state.history())
        assert one.result["points"] == pytest.approx(state.returns(), abs=1e-3), n
        assert records.to_history(one) == state.history()
        (again,) = records.parse(pyspiel.serialize_game_and_state(game, state))
        assert again.as_json() == one.as_json()
        assert records.replay(again)[0].name == one.game
