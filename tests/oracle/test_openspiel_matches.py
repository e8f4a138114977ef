"""Matches against pyspiel's own bots, and histories that pyspiel replays."""

from __future__ import annotations

from typing import Any

import pytest

import envs
from dream.evaluation import match
from dream.rollout.opponents import make_mixture
from dream.storage.policies import find_opponent, find_player
from envs import Game, InputError
from envs.adapters.open_spiel_bots import native_game

SIMPLE = "open_spiel:simple_gin_rummy_bot"


@pytest.fixture(scope="module")
def game() -> Game:
    """OpenSpiel's gin rummy."""
    return envs.make("gin_rummy_openspiel")


@pytest.fixture(scope="module")
def played(game: Game) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Our simple bot with OpenSpiel's fault against OpenSpiel's: report and hands."""
    hands: list[dict[str, Any]] = []
    bot = envs.make_bot("simple_bot", game, faithful=True)
    return match(game, bot, find_opponent(SIMPLE, game), games=200, seed=11, on_hand=hands.append), hands


def test_openspiels_bot_ties_ours(played: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    """They play alike, so each mirrored pair sums to 0 exactly, and seats make the difference."""
    report, hands = played
    assert (report["n"], report["n_pairs"]) == (200, 100)
    assert report["points_per_hand"] == (0, 0, 0)
    assert report["win_rate"].mean == report["loss_rate"].mean > 0.4
    assert any(hand["points"] for hand in hands)


def test_histories_replay_in_pyspiel(game: Game, played: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    """Each hand's history, chance included, leads pyspiel's game to its end with the points told."""
    _, hands = played
    assert [(hand["hand"], hand["pair"], hand["seat"]) for hand in hands] == [(n, n // 2, n % 2) for n in range(200)]
    for hand in hands:
        state = native_game(game).new_initial_state()
        for action in hand["history"]:
            assert action in state.legal_actions()
            state.apply_action(action)
        assert state.is_terminal()
        assert state.returns()[hand["seat"]] == pytest.approx(hand["points"], abs=1e-3)
    assert hands[0]["deal"] == hands[1]["deal"] != hands[2]["deal"]


def test_histories_of_a_match_in_jax_replay_too() -> None:
    """With other rules, between two policies; the hands' mean is the report's."""
    game = envs.make("gin_rummy_openspiel", oklahoma=True, gin_bonus=20)
    hands: list[dict[str, Any]] = []
    player, bot = envs.make_bot("random", game), envs.make_bot("simple_bot", game)
    report = match(game, bot, player, games=64, seed=12, on_hand=hands.append)
    assert len(hands) == 64
    for hand in hands:
        state = native_game(game).new_initial_state()
        for action in hand["history"]:
            state.apply_action(action)
        assert state.is_terminal()
        assert state.returns()[hand["seat"]] == pytest.approx(hand["points"], abs=1e-3)
    assert sum(hand["points"] for hand in hands) / 64 == pytest.approx(report["points_per_hand"].mean, abs=1e-3)


def test_a_uniform_bot_of_openspiel_loses_to_the_simple_bot(game: Game) -> None:
    """Another bot by name, over the same host loop."""
    bot = envs.make_bot("simple_bot", game, faithful=True)
    report = match(game, bot, find_opponent("open_spiel:uniform_random", game), games=200)
    assert report["win_rate"].low > 0.5


def test_wrong_references(game: Game) -> None:
    """Unknown bots, other games and training are refused in one line."""
    with pytest.raises(InputError, match="did you mean 'simple_gin_rummy_bot'"):
        find_opponent("open_spiel:simple_gin_bot", game)
    with pytest.raises(InputError, match="they play gin_rummy_openspiel"):
        find_opponent(SIMPLE, envs.make("leduc_poker"))
    with pytest.raises(InputError, match="only be the opponent of a match"):
        make_mixture((SIMPLE,), None, game, find_player)
    with pytest.raises(InputError, match=r"num_suits=4 and num_ranks=9 fails .*; num_ranks must be 13, or num_suits"):
        find_opponent(SIMPLE, envs.make("gin_rummy_openspiel", num_ranks=9, hand_size=7))
    for rules in ({"num_suits": 3, "num_ranks": 9, "hand_size": 7}, {"hand_size": 8}, {"num_suits": 2, "hand_size": 5}):
        with pytest.raises(InputError, match=r"fails with num_ranks=.*; num_ranks must be 13 and hand_size one of 6"):
            find_opponent(SIMPLE, envs.make("gin_rummy_openspiel", **rules))
    assert native_game(envs.make("gin_rummy_openspiel", num_suits=3, num_ranks=9, hand_size=7)).num_players() == 2
    with pytest.raises(InputError, match="unknown player 'pyspiel:x'"):
        find_opponent("pyspiel:x", game)
