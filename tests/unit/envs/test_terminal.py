"""Games in the terminal, with scripted people."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import InputError, Policy, records
from envs.terminal import play_in_terminal


def _person(lines: list[str], otherwise: str = "1") -> tuple[Callable[[str], str], list[str]]:
    """Returns one who answers with these lines, then always the same, and the prompts it was shown."""
    left, asked = iter(lines), []

    def read(prompt: str) -> str:
        asked.append(prompt)
        return next(left, otherwise)

    return read, asked


def test_a_hand_of_kuhn_by_name_number_and_hint(tmp_path: pathlib.Path) -> None:
    """Help, a hint and a wrong word do nothing; "be" is bet; the record replays."""
    game, shown = envs.make("kuhn_poker"), []
    read, asked = _person(["?", "h", "fold", "be", "q"])
    bot, file = envs.make_bot("random", game), tmp_path / "hands.jsonl"
    scores = play_in_terminal(game, [None, bot], hint=bot, seed=2, keep=file, read=read, write=shown.append)
    text = "\n".join(shown)
    assert asked[:4] == ["you> "] * 4
    assert "   1  pass\n   2  bet" in text
    assert "50.0 %" in text
    assert "not understood" in text
    assert "player 1: " in text
    assert text.endswith("left the table")
    (one,) = records.read(file)
    records.replay(one)
    assert one.actions[0] == 1
    assert one.players == ("you", "player 1")
    assert scores == one.result["points"]


@pytest.mark.parametrize(
    ("place", "reason"), [(".", "Is a directory"), ("missing/x.jsonl", "No such file or directory")]
)
def test_a_disk_that_refuses_does_not_end_a_match(tmp_path: pathlib.Path, place: str, reason: str) -> None:
    """The person reads it, and the rounds go on."""
    game, shown = envs.make("kuhn_poker"), []
    read, _ = _person([])
    bot = envs.make_bot("random", game)
    play_in_terminal(game, [None, bot], rounds=2, seed=2, keep=tmp_path / place, read=read, write=shown.append)
    assert sum("the round was not kept" in text and reason in text for text in shown) == 2


def test_the_other_hand_is_hidden_until_the_end() -> None:
    """What a person is shown in play has one open card; the sum shows both."""
    game, shown = envs.make("kuhn_poker"), []
    read, _ = _person([], "2")
    play_in_terminal(game, [None, envs.make_bot("random", game)], rounds=3, seed=1, read=read, write=shown.append)
    in_play = [text for text in shown if "to act" in text]
    over = [text for text in shown if "over" in text]
    assert len(over) == 3
    assert all("face down" in text for text in in_play)
    assert not any("face down" in text for text in over)


def test_a_part_of_several_names_is_asked_again() -> None:
    """Of two bids with a six; the full name is one."""
    game, shown = envs.make("liars_dice"), []
    read, _ = _person(["bid", "bid 1-6", "call"], "call")
    play_in_terminal(game, [None, None], rounds=1, seed=1, read=read, write=shown.append)
    text = "\n".join(shown)
    assert "which of bid 1-1, bid 1-2" in text
    assert "player 0: bid 1-6" in text


@pytest.mark.parametrize("name", ["gin_rummy", "gin_rummy_mdp", "rummy500", "leduc_poker"])
def test_a_round_of_every_kind_against_players(name: str, tmp_path: pathlib.Path) -> None:
    """A person who always takes the last choice, among random players."""
    game, shown = envs.make(name), []
    bot = envs.make_bot("random", game)

    def last(prompt: str) -> str:
        return str(shown[-1].count("\n") - _lines_above(shown[-1]))

    play_in_terminal(
        game, [None, *[bot] * (game.num_players - 1)], rounds=1, seed=4, keep=tmp_path / "r.jsonl", read=last,
        write=shown.append,
    )  # fmt: skip
    (one,) = records.read(tmp_path / "r.jsonl")
    records.replay(one)


def _lines_above(text: str) -> int:
    """Returns how many line ends stand above the first choice of a list."""
    return text[: text.index("\n   1 ")].count("\n")


def test_a_draw_from_an_empty_stock_is_the_end_of_the_round() -> None:
    """Of rummy 500: it is listed and named as such; before it there is a card to draw."""
    game, shown = envs.make("rummy500", num_players=6, hand_size=8), []

    def draws(prompt: str) -> str:
        found = [way for way in ("end the round", "draw from the stock") if way in shown[-1]]
        return found[0] if found else str(shown[-1].count("\n") - _lines_above(shown[-1]))

    play_in_terminal(game, [None] * 6, rounds=1, seed=1, read=draws, write=shown.append)
    named = [text.split(": ")[1] for text in shown if text.startswith("player") and "stock" in text]
    assert named == ["draw from the stock"] * 3 + ["end the round (the stock is empty)"]
    assert sum("   1  end the round (the stock is empty)" in text for text in shown) == 1


@pytest.mark.parametrize("name", ["phantom_ttt", "dark_hex"])
def test_an_opponents_failed_tries_are_not_counted(name: str, tmp_path: pathlib.Path) -> None:
    """A line for each of its turns, though it failed and tried again in some."""
    game, shown, file = envs.make(name), [], tmp_path / "games.jsonl"
    read, _ = _person([])
    play_in_terminal(
        game, [None, envs.make_bot("random", game)], rounds=1, seed=1, keep=file, read=read, write=shown.append
    )
    (one,) = records.read(file)
    state, seats = game.from_deal(one.deal), []
    for action in one.actions:
        seats.append(int(state.current_player))
        state, _, _ = game.step(state, np.int32(action))
    turns = sum(seat == 1 and before != 1 for before, seat in itertools.pairwise([0, *seats]))
    assert shown.count("player 1: moves") == turns < seats.count(1)


def test_players_alone_to_a_target() -> None:
    """Without people nothing is asked, all cards are open, and the scores reach the target."""
    game, shown = envs.make("leduc_poker"), []
    bot = envs.make_bot("random", game)

    def nobody(prompt: str) -> str:
        raise AssertionError(prompt)

    scores = play_in_terminal(game, [bot, bot], target=10, seed=3, read=nobody, write=shown.append)
    assert max(scores) >= 10
    assert min(scores) >= 0
    assert not any("1 face down" in text for text in shown if "over" in text and "not turned" not in text)


@pytest.mark.parametrize("rules", [{"num_players": 2}, {"num_players": 3}, {"target": 500, "max_rounds": 2}])
@pytest.mark.parametrize("lot", [True, False])
def test_everyone_begins_equally_often(rules: dict[str, int], lot: bool, tmp_path: pathlib.Path) -> None:
    """After a lot the next player begins; without one seat 0 does, and the players move on. The records replay."""
    game, file = envs.make("rummy500", hand_size=3, max_turns=4, random_first=lot, **rules), tmp_path / "rounds.jsonl"
    bot, count = envs.make_bot("random", game), game.num_players
    play_in_terminal(game, [bot] * count, rounds=2 * count, seed=1, keep=file, write=[].append)
    rounds = records.read(file)
    began = [int(game.from_deal(one.deal).current_player) for one in rounds]
    assert began == [(began[0] + number) % count if lot else 0 for number in range(2 * count)]
    for number, one in enumerate(rounds):
        moved = 0 if lot else number
        assert one.players == tuple(f"player {(seat - moved) % count}" for seat in range(count))
    for one in rounds:
        records.replay(one)


def test_scores_go_with_the_player() -> None:
    """Who moves to another seat keeps the score; the totals name the players of the seats."""
    game, shown = envs.make("kuhn_poker"), []
    check, bet = (Policy(_always(action), ()) for action in (0, 1))
    scores = play_in_terminal(
        game, [bet, check], names=["bets", "checks"], rounds=40, target=1000, seed=3, write=shown.append
    )
    assert scores[0] > 0, "whoever never bets nor calls loses the ante of every round"
    assert scores[1] == 0
    assert {text.splitlines()[-1].split(": ")[1].split()[0] for text in shown if "score" in text} == {"bets", "checks"}


def _always(action: int) -> Callable[[Any, Any, Any], Any]:
    def play(_: Any, view: Any, legal: Any) -> Any:
        return jnp.arange(legal.shape[-1]) == action

    return play


def test_the_end_of_the_input_is_a_way_to_leave() -> None:
    """As is q in the middle of a round, which counts for nothing."""
    game = envs.make("kuhn_poker")

    def gone(prompt: str) -> str:
        raise EOFError

    shown: list[str] = []
    assert play_in_terminal(game, [None, None], read=gone, write=shown.append) == [0, 0]
    assert shown[-1] == "left the table"
    with pytest.raises(InputError, match="1 players; kuhn_poker here has 2 seats"):
        play_in_terminal(game, [None])
    with pytest.raises(InputError, match="'random' is not a player; give one"):
        play_in_terminal(envs.make("kuhn_poker"), ["random", None])
    for seed, reason in (
        (-1, "seed=-1 is not valid; it must be 0 or more"),
        ("a", "it must be a whole number, 0 or more"),
    ):
        with pytest.raises(InputError, match=reason):
            play_in_terminal(envs.make("kuhn_poker"), [None, None], seed=seed)
    with pytest.raises(InputError, match="1 names; kuhn_poker here has 2 seats"):
        play_in_terminal(game, [None, None], names=["Ann"], read=gone, write=shown.append)


def test_rounds_are_not_added_to_a_file_of_another_form(tmp_path: pathlib.Path) -> None:
    """It is refused before anything is played, as what is in it could not be read any more."""
    game, file = envs.make("kuhn_poker"), tmp_path / "games.json"
    file.write_text("[]")
    with pytest.raises(envs.InputError, match=r"games.json is there already and does not hold one record per line"):
        play_in_terminal(game, [envs.make_bot("random", game)] * 2, keep=file, write=[].append)
    assert file.read_text() == "[]"
