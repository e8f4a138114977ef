"""The server on the wire: which messages are refused, and what goes on when a tab is lost."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import pathlib
import resource
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pytest
from page_support import PATIENCE, Client, act, chosen, hidden_cards, open_socket, served, words
from websockets.exceptions import ConnectionClosed

import envs
from dream.page import hub as hub_module
from dream.page.compiled import Position
from dream.page.hub import Hub
from dream.page.match import Match
from dream.page.opened import LISTED
from envs import Game, records
from envs.batching import QUICK
from envs.game import State
from envs.kuhn_poker import KuhnPoker


@pytest.fixture(scope="module")
def page() -> Iterator[tuple[Hub, int]]:
    """A server that all tests here share."""
    with served() as (hub, port):
        yield hub, port


def test_wrong_messages_are_answered_and_the_tab_lives_on(page: tuple[Hub, int]) -> None:
    """Each is one error; the game is as before."""
    client = Client(page[1])
    match = client.new("kuhn_poker", [None, "random"])
    good = act(match, match["choices"][0]["id"])
    kuhn = {"type": "new", "game": "kuhn_poker", "variant": "standard", "seats": [None], "target": None, "pace": 0}
    wrong = [
        "{", "[]", {"type": "boom"}, good | {"action": 99}, good | {"ply": 7}, good | {"match": "other"},
        {"type": "new", "game": "nothing", "variant": "", "seats": [None], "target": None, "pace": 0},
        kuhn | {"seats": [None, "nobody"]}, kuhn | {"seats": [None]}, kuhn | {"seats": [None, "../x"]},
        kuhn | {"variant": "none"},
        {"type": "next", "match": match["id"], "round": 0},
    ]  # fmt: skip
    for message in wrong:
        error = client.ask(message, "error")
        assert error["code"] != "library"
        assert all(str(value).isprintable() for value in error["params"].values())
    client.send({"type": "open", "match": match["id"]})
    assert client.my_turn() == match
    assert client.play(match)["done"]


def test_an_oversized_message_ends_the_connection(page: tuple[Hub, int]) -> None:
    """It is not read."""
    client = Client(page[1])
    client.send("x" * 2_000_000)
    with pytest.raises(ConnectionClosed):
        client.receive()


def test_the_first_message_must_be_hello(page: tuple[Hub, int]) -> None:
    """Before it, nothing is answered."""
    with open_socket(page[1]) as socket:
        socket.send(json.dumps({"type": "open", "match": "x"}))
        assert json.loads(socket.recv(20)) == {"type": "error", "code": "hello_first", "params": {}}


class _HousePoker(KuhnPoker):
    name = "house_poker"


def test_a_game_from_outside_goes_by_its_own_name(page: tuple[Hub, int]) -> None:
    """And its actions by its own words, as the page has no board of it."""
    envs.register("house_poker", _HousePoker)
    client = Client(page[1])
    (sent,) = [one for one in client.welcome["games"] if one["game"] == "house_poker"]
    assert [one["key"] for one in sent["variants"]] == ["standard"]
    match = client.new("house_poker", [None, "random"])
    assert (match["game"], match["variant"]) == ("house_poker", "standard")
    assert [choice["label"] for choice in match["choices"]] == ["pass", "bet"]
    assert client.play(match)["done"]


def _send_file(client: Client, text: str, size: int = 40_000) -> dict[str, Any]:
    """Sends a file in parts and returns the review of its first round."""
    for start in range(0, len(text), size):
        client.send({"type": "record", "text": text[start : start + size], "more": start + size < len(text)})
    return client.wait("review")


def test_a_file_of_thousands_of_rounds(page: tuple[Hub, int]) -> None:
    """Any of them can be asked for; no message holds more than some of them, and the text is all that is kept."""
    client, game = Client(page[1]), envs.make("kuhn_poker")
    lines = [records.to_line(records.record(game, [2, 0, 1], moves, ["anna", "bo"])) for moves in ([1, 1], [0, 0])]
    text = "".join(lines) * 2500
    first = _send_file(client, text)
    assert (first["round"], first["rounds"]["count"], first["file"]) == (0, 5000, True)
    ask = {"type": "review", "match": first["match"], "advisor": "random"}
    for number in (4999, 199, 0):
        client.sent.clear()
        review = client.ask({**ask, "round": number}, "review")
        client.wait("judged", lambda message: message["final"])
        assert review["round"] == number
        assert review["points"] == ([1, -1] if number % 2 else [2, -2])
        start = number // LISTED * LISTED
        assert [one["round"] for one in review["rounds"]["listed"]] == list(range(start, start + LISTED))
        assert max(map(len, client.sent)) < 16_384
    assert client.ask({**ask, "round": 5000}, "error")["code"] == "no_round"
    archive = page[0].matches[first["match"]]
    assert archive.nbytes < len(text) + 20 * 5000
    again = Client(page[1], key=client.key)
    assert again.welcome["matches"] == [{"id": archive.id, "game": "kuhn_poker", "rounds": 5000}]
    assert again.ask({"type": "open", "match": archive.id}, "review")["round"] == 0
    branch = again.ask({"type": "branch", "match": archive.id, "round": 199, "ply": 1, "action": None}, "match")
    assert branch["match"]["ply"] == 1
    assert again.ask({"type": "next", "match": archive.id, "round": 0}, "error")["code"] == "no_match"


def test_old_files_are_forgotten(page: tuple[Hub, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all that are kept have more bytes than the limit; the last one stays."""
    monkeypatch.setattr(hub_module, "MOST_FILE_BYTES", 3000)
    client, game = Client(page[1]), envs.make("kuhn_poker")
    line = records.to_line(records.record(game, [2, 0, 1], [1, 1]))
    opened = [_send_file(client, line * 5)["match"] for _ in range(4)]
    assert [one for one in opened if one in page[0].matches] == opened[-3000 // len(line * 5) + 1 :]


_SEATS = {"gin_rummy": ["heuristic"], "gin_rummy_openspiel": ["simple_bot"], "gin_rummy_mdp": ["heuristic"],
          "rummy500": ["greedy", "greedy"], "kuhn_poker": ["random"], "leduc_poker": ["random"]}  # fmt: skip


def _redealt(match: Match, positions: list[Position], ply: int, seed: int) -> Match:
    """Returns the first round of a match as it stood at a ply, all that its person could not see dealt anew."""
    played, seat = match.round, match.seat(match.person)
    state = _determinize(match.game)(positions[ply].views[seat], jax.random.key(seed))
    other = copy.copy(match)
    other.finished, other.scores = [], [0.0] * len(match.chairs)
    other.round = dataclasses.replace(played, deal=state, position=match.compiled.look(state),
                                      actions=played.actions[:ply], actors=played.actors[:ply],
                                      said=played.said[:ply])  # fmt: skip
    return other


@functools.cache
def _determinize(game: Game) -> Callable[..., State]:
    return jax.jit(game.determinize, compiler_options=QUICK)


@pytest.mark.parametrize("name", _SEATS)
def test_no_message_depends_on_what_is_hidden(page: tuple[Hub, int], name: str) -> None:
    """Each is letter by letter that of another deal which the person could not tell apart, and names no hidden card."""
    client = Client(page[1])
    variant = "players_3" if name == "rummy500" else None
    client.play(client.new(name, [None, *_SEATS[name]], variant))
    match = page[0].matches[json.loads(client.sent[-1])["match"]["id"]]
    positions = [match.compiled.look(match.round.deal)]
    for action in match.round.actions:
        positions.append(match.compiled.step(positions[-1], action))
    messages = [json.loads(text) for text in client.sent]
    assert {message["type"] for message in messages} <= {"welcome", "match", "thinking"}
    assert all(message.keys() == {"type", "match", "name", "usual"} for message in messages if "usual" in message)
    shown = [message["match"] for message in messages if message["type"] == "match" and not message["match"]["done"]]
    assert len({one["ply"] for one in shown}) == len(positions) - 1
    for seed, one in enumerate(shown):
        other = _redealt(match, positions, one["ply"], seed)
        assert json.dumps(one) == json.dumps(page[0].snapshot(other))
        assert not words(one) & hidden_cards(match.game, positions[one["ply"]], one["viewer"])


def test_a_solved_game_is_advised_by_its_solution(page: tuple[Hub, int]) -> None:
    """The hint of Kuhn poker: the solution's probabilities, and then the expected chips of both actions."""
    client = Client(page[1])
    match = client.new("kuhn_poker", [None, "random"])
    client.send({"type": "hint", "match": match["id"], "advisor": None})
    first = client.wait("hint")
    assert first["advisor"] == "solved"
    assert sum(row["prob"] for row in first["rows"]) == pytest.approx(1, abs=1e-3)
    valued = client.wait("hint", lambda message: message["worlds"] > 0)
    assert all("mean" in row for row in valued["rows"])
    client.send({"type": "stop", "match": match["id"]})


def test_a_player_that_takes_its_time_is_said_to_think(page: tuple[Hub, int]) -> None:
    """The page shows who thinks, and from the second decision on how long that usually takes."""
    client = Client(page[1])
    match = client.new("gin_rummy", [None, "mc:64"])
    slow = page[0].matches[match["id"]].chairs[1].player
    assert slow is not None
    end = time.monotonic() + 2 * PATIENCE
    while slow.seconds is None and time.monotonic() < end:  # it is still compiled
        time.sleep(0.1)
    quick = slow.probabilities

    def slowly(view: Any, legal: Any) -> Any:
        time.sleep(0.4)  # on a quick machine 64 worlds might take less than is worth a message
        return quick(view, legal)

    slow.probabilities, slow.seconds = slowly, 0.4
    while not match["done"] and not any('"thinking"' in text for text in client.sent):
        match = client.act(match, chosen(match))
    thinking = next(json.loads(text) for text in client.sent if '"thinking"' in text)
    assert (thinking["match"], thinking["name"]) == (match["id"], "mc:64")
    assert thinking["usual"] >= 0.3


def test_another_sessions_game_does_not_exist(page: tuple[Hub, int]) -> None:
    """Neither to be seen nor to be played; the answer is the same as for none."""
    mine, other = Client(page[1]), Client(page[1])
    match = mine.new("kuhn_poker", [None, "random"])
    for message in ({"type": "open", "match": match["id"]}, act(match, 0), {"type": "leave", "match": match["id"]}):
        stolen = other.ask(message, "error")
        assert stolen["code"] == "no_match"
        assert stolen == other.ask({**message, "match": "nothing"}, "error")
    guessed = Client(page[1], key="x")
    assert guessed.key != "x"


def test_a_reload_goes_on(page: tuple[Hub, int]) -> None:
    """A lost connection's key opens the match as it was, and it is in the list of tables."""
    client = Client(page[1])
    match = client.new("leduc_poker", [None, "random"])
    client.close()
    again = Client(page[1], key=client.key)
    assert [one["id"] for one in again.welcome["matches"]] == [match["id"]]
    again.send({"type": "open", "match": match["id"]})
    assert again.my_turn() == match
    assert again.play(match)["done"]


def test_two_tabs_show_the_same(page: tuple[Hub, int]) -> None:
    """What is played in one is seen in the other, and a move counts once."""
    one = Client(page[1])
    match = one.new("leduc_poker", [None, "random"])
    two = Client(page[1], key=one.key)
    two.send({"type": "open", "match": match["id"]})
    assert two.my_turn() == match
    message = act(match, chosen(match))
    one.send(message)
    two.send(message)
    seen = two.wait("match", lambda m: m["match"]["ply"] > match["ply"])["match"]
    assert seen["log"][match["ply"]]["seat"] == match["viewer"]
    own = [move for move in one.my_turn()["log"] if move["seat"] == match["viewer"]]
    assert len(own) == 1


def test_an_opponents_failed_tries_send_nothing(page: tuple[Hub, int]) -> None:
    """Every move of the person is answered by two messages at most, however often the opponent tried in its turn."""
    client = Client(page[1])
    match = client.new("phantom_ttt", [None, "random"])
    for _ in range(4):
        while not match["done"]:
            before = len(client.sent)
            match = client.act(match, match["choices"][0]["id"])
            answers = [json.loads(text)["type"] for text in client.sent[before:]]
            assert answers.count("match") <= 2
            assert answers.count("thinking") <= 1
        client.send({"type": "next", "match": match["id"], "round": match["round"]})
        match = client.my_turn()


def test_players_play_each_other(page: tuple[Hub, int]) -> None:
    """At a pace, and not while they are paused."""
    client = Client(page[1])
    client.send({"type": "new", "game": "kuhn_poker", "variant": "standard", "seats": ["random", "random"],
                 "target": None, "pace": 0.01})  # fmt: skip
    match = client.wait("match", lambda m: m["match"]["round"] == 1)["match"]
    client.send({"type": "pace", "match": match["id"], "pace": 0, "paused": True})
    client.wait("match", lambda m: m["match"]["paused"])
    client.send({"type": "pace", "match": match["id"], "pace": 0, "paused": False})
    client.wait("match", lambda m: m["match"]["round"] == 2)
    client.send({"type": "leave", "match": match["id"]})
    assert match["id"] not in [one["id"] for one in client.wait("welcome")["matches"]]


_LONGEST = 2.5
"""Seconds in which 95 of 100 moves made at once are answered. They take some 0.25 s of one core together, so that this
holds on a core with ten others at work; a server that gave 50 ms to one move after the other would take 5 s."""
_MORE_MEMORY = 4
"""MiB by which the process may grow with 100 moves while tables go on: rounds played are a few numbers each."""


def _resident() -> float:
    """Returns the memory that the process holds now, in MiB."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


class _Table:
    """A person at a table, who makes one move in every wave of moves."""

    def __init__(self, port: int, number: int) -> None:
        """Takes a seat; the first table plays gin."""
        self.client = Client(port)
        game, player = ("leduc_poker", "random") if number else ("gin_rummy", "heuristic")
        self.match = self.client.new(game, [None, player])

    def move(self, wave: threading.Barrier) -> float:
        """Moves when all others do; returns the seconds until it is the person's turn again."""
        while self.match["done"]:  # the other may have folded at once
            self.client.send({"type": "next", "match": self.match["id"], "round": self.match["round"]})
            self.match = self.client.my_turn()
        action = chosen(self.match)
        self.client.sent.clear()
        wave.wait(PATIENCE)
        began = time.perf_counter()
        self.match = self.client.act(self.match, action)
        return time.perf_counter() - began


def test_a_hundred_games_answer_in_time() -> None:
    """A hundred moves at once, ten times: 95 % within the bound, each by its own clock; memory stays as it is."""
    count, waves, memory = 100, [], []
    with served() as (hub, port), ThreadPoolExecutor(count) as people:
        tables = [_Table(port, number) for number in range(count)]
        wave = threading.Barrier(count)
        for _ in range(10):
            waves.append(sorted(people.map(lambda table: table.move(wave), tables)))
            memory.append(_resident())
        assert len(hub.matches) == count
        assert {table.match["round"] > 0 for table in tables[1:]} == {True}
        for table in tables:
            table.client.close()
    # A machine that stalls or compiles disturbs some waves, a server that is slow or keeps too much all of them.
    assert np.median([seconds[int(0.95 * count)] for seconds in waves]) < _LONGEST
    assert np.median(np.diff(memory)) < _MORE_MEMORY
