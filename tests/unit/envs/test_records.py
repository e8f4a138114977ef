"""Games as JSON: written, read back, replayed through their game, and refused where they cannot be."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import resource
import signal
import xml.etree.ElementTree as ET
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import envs
from envs import InputError, records, registry
from tests.support.keyed_game import KeyedGame

DECK = np.random.default_rng(11).permutation(52).tolist()


def _hand(game: envs.Game, rng: np.random.Generator) -> list[int]:
    """Plays a hand at random but for knocks, which are taken as soon as they come."""
    legal_actions, step = jax.jit(game.legal_actions), jax.jit(game.step)
    state, actions, done = jax.jit(game.from_deck)(np.array(DECK)), [], False
    while not done:
        legal = np.nonzero(np.asarray(legal_actions(state)))[0]
        actions.append(int(legal[-1] if legal[-1] >= 55 else rng.choice(legal)))
        state, _, done = step(state, actions[-1])
    return actions


@pytest.fixture(scope="module")
def made() -> records.Record:
    """A hand of `gin_rummy` cut short by its rules."""
    game = envs.make("gin_rummy", max_actions=12, knock_limit=60)
    return records.record(game, DECK, _hand(game, np.random.default_rng(1)), players=("anna", "lv5"))


def test_a_record_tells_the_hand(made: records.Record) -> None:
    """Game, version, rules, deal, actions, result and players; the points are the hand's own, zero-sum."""
    reported = made.as_json()
    assert (reported["format"], reported["game"], reported["version"], reported["preset"]) == (
        2,
        "gin_rummy",
        "1",
        None,
    )
    assert reported["rules"]["max_actions"] == 12
    assert reported["deal"] == DECK
    assert reported["players"] == ["anna", "lv5"]
    assert sum(reported["result"]["points"]) == 0
    assert reported["result"]["ending"] in ("tie", "knock", "gin", "undercut")


@pytest.mark.parametrize("players", ["anna", ("anna",), ("anna", "otto", "lv5")])
def test_names_of_more_or_fewer_players_are_refused(players: Any, tmp_path: pathlib.Path) -> None:
    """Else they would be lost, and rounds of different people counted as one's; in files too."""
    game, file = envs.make("kuhn_poker"), tmp_path / "games.jsonl"
    with pytest.raises(InputError, match=r"players=.* is not valid; it must be 2 names, or none"):
        records.record(game, (2, 0, 1), (1, 1), players)
    made = records.record(game, (2, 0, 1), (1, 1), ("anna", "otto"))
    records.write(file, [dataclasses.replace(made, players=tuple(players))])
    (read,) = records.read(file)
    with pytest.raises(InputError, match=rf"players holds {len(players)} names; it must hold 2"):
        records.replay(read)


def test_an_action_that_is_no_whole_number_is_refused() -> None:
    """Instead of another game being recorded."""
    game = envs.make("kuhn_poker")
    with pytest.raises(InputError, match=r"action=1.7 is not valid; it must be a whole number"):
        records.record(game, (2, 0, 1), (1.7, 1))
    assert records.record(game, (2, 0, 1), (np.int8(1), jnp.int32(1))).actions == (1, 1)


@pytest.mark.parametrize(("key", "entries"), [("actions", [1, None]), ("deal", [2, None, 1]), ("players", ["a", None])])
def test_a_null_among_the_entries_is_refused(key: str, entries: list) -> None:
    """Where the record is read, like any other entry of another kind."""
    made = records.record(envs.make("kuhn_poker"), (2, 0, 1), (1, 1), ("anna", "otto")).as_json()
    with pytest.raises(InputError, match=f"text, record 1: {key} holds None; it must hold n"):
        records.parse(json.dumps(made | {key: entries}))


def test_what_is_written_can_be_read(tmp_path: pathlib.Path) -> None:
    """Numbers of NumPy and JAX beside a record are plain ones; what no file can hold is refused when it is made."""
    game, file = envs.make("kuhn_poker"), tmp_path / "games.jsonl"
    about = {"pair": np.int64(3), "share": np.float32(0.5), "seat": jnp.int32(1), "scores": (np.int8(1), 2), "by": "me"}
    one = records.record(game, (2, 0, 1), (1, 1), ("anna", "otto"), about=about)
    records.write(file, [one])
    (read,) = records.read(file)
    assert read.about == {"pair": 3, "share": 0.5, "seat": 1, "scores": [1, 2], "by": "me"}
    for wrong in ({"x": {"a": 1}}, {"x": np.arange(3)}, {"x": object()}):
        with pytest.raises(InputError, match=r"^about x is .*; it must be a text, a number or a few of them$"):
            records.record(game, (2, 0, 1), (1, 1), about=wrong)
    for wrong in (math.nan, math.inf, [1, -math.inf]):
        with pytest.raises(
            InputError, match=r"^about x is .*(nan|inf).*; it must be a text, a number or a few of them$"
        ):
            records.record(game, (2, 0, 1), (1, 1), about={"x": wrong})
    with pytest.raises(InputError, match=r"^players=\(1, 2\) is not valid; it must be 2 names, or none$"):
        records.record(game, (2, 0, 1), (1, 1), (1, 2))
    with pytest.raises(InputError, match=r"^a single record was given; give a list of them, \[record\]$"):
        records.write(file, one)
    with pytest.raises(
        InputError, match=r"none/games.jsonl cannot be written; it must be a file in an existing folder"
    ):
        records.write(tmp_path / "none" / "games.jsonl", [one])


@pytest.mark.parametrize(
    ("about", "line"),
    [
        ({f"x{n}": n for n in range(65)}, "the record: about holds 65 entries; it must hold 64 at most"),
        (
            {f"{n:900}": ["y" * 1000] * 16 for n in range(64)},
            "the record has .* characters; it must have 1048576 at most",
        ),
    ],
)
def test_a_record_that_is_too_large_to_be_read_is_not_written(
    about: dict[str, Any], line: str, tmp_path: pathlib.Path
) -> None:
    """One such line would make the whole file unreadable."""
    one = records.record(envs.make("kuhn_poker"), (2, 0, 1), (1, 1), about=about)
    for write in (lambda file: records.write(file, [one]), lambda file: records.append(file, one)):
        with pytest.raises(InputError, match=f"^{line}$"):
            write(tmp_path / "games.jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("count", [1, 2])
def test_a_record_is_not_added_to_a_file_of_another_form(
    count: int, indent: int | None, tmp_path: pathlib.Path
) -> None:
    """A list of records, or one over several lines, could not be read any more; a line of JSON is a form of its own."""
    path = tmp_path / "games.json"
    one = records.record(envs.make("kuhn_poker"), (2, 0, 1), (1, 1))
    path.write_text(json.dumps(one.as_json() if count == 1 else [one.as_json()] * count, indent=indent))
    if (count, indent) == (1, None):
        records.append(path, one)
    else:
        with pytest.raises(InputError, match=r"games.json is there already and does not hold one record per line"):
            records.append(path, one)
    assert len(records.read(path)) == (2 if count == 2 or indent is None else 1)


@pytest.mark.parametrize("points", [[1.0], [1.0, -1.0, 0.0]])
def test_points_of_more_or_fewer_players_are_refused(points: list[float]) -> None:
    """As names are; no points at all say that they are not known."""
    game = envs.make("kuhn_poker")
    with pytest.raises(InputError, match=r"^points=.* is not valid; it must be 2 numbers, or none$"):
        records.finished(game, (2, 0, 1), (1, 1), points)
    assert records.finished(game, (2, 0, 1), (1, 1), ()).result == {"points": []}


def test_presets_go_by_name(made: records.Record) -> None:
    """Each game's own preset is known, and kept when read back."""
    assert envs.make("gin_rummy").preset == "dream"
    assert envs.make("gin_rummy_mdp").preset == "r42"
    assert envs.make("mini_gin_rummy", preset="3x3").preset == "3x3"
    assert envs.make("gin_rummy", gin_bonus=49).preset is None
    assert envs.make("kuhn_poker").preset is None
    named = dataclasses.replace(made, preset="dream")
    assert records.parse(json.dumps(named.as_json()))[0].preset == "dream"


def test_written_read_and_replayed(made: records.Record, tmp_path: pathlib.Path) -> None:
    """One a line, appended, or a JSON list: the same records, and each replays to its result."""
    path = tmp_path / "hands.jsonl"
    records.write(path, [made])
    records.append(path, made)
    (tmp_path / "list.json").write_text(json.dumps([made.as_json()], indent=1))
    (tmp_path / "one.json").write_text(json.dumps(made.as_json(), indent=1))
    found = records.read(path) + records.read(tmp_path / "list.json") + records.read(tmp_path / "one.json")
    assert [one.as_json() for one in found] == [made.as_json()] * 4
    game, state = records.replay(found[1])
    assert game.rules.max_actions == 12
    assert int(state.current_player) == -1


def test_a_hand_of_the_sixteen_action_game() -> None:
    """Its record names its preset and replays; a knock decision is an action of its own; a tie was once a "draw"."""
    game = envs.make("gin_rummy_mdp", max_actions=6)
    made = records.record(game, DECK, [0, 2, 0, 2, 0, 2])
    assert made.rules["reward"] == "points"
    assert made.result["ending"] == "tie"
    assert records.replay(made)[0] == game
    assert records.replay(dataclasses.replace(made, result={**made.result, "ending": "draw"}))[0] == game


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "action": (
        {"actions": (0,)},
        "action 1, 0 (draw from the stock), is not legal; legal are 1 (take the top of the pile), 2 (pass)",
    ),
    "no action": ({"actions": (2, 500)}, "action 2, 500, is not one of 0 to 106"),
    "short": ({"actions": (2, 2)}, "not over after its 2 actions"),
    "deck": ({"deal": (1, *DECK[1:])}, "not each of the cards 0 to 51 once"),
    "version": ({"version": "0"}, "version 0; this project has version 1"),
    "game": ({"game": "gin_rumy"}, "did you mean 'gin_rummy'"),
    "rule": ({"rules": {"knock_limt": 10}}, "did you mean 'knock_limit'"),
    "result": ({"result": {"points": [1.0, -1.0], "ending": "gin"}}, "the game played gives"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_record_that_cannot_be_is_refused(made: records.Record, tmp_path: pathlib.Path, what: str) -> None:
    """The file, the record's number and the reason are in the line."""
    changes, reason = WRONG[what]
    records.write(tmp_path / "hands.jsonl", [made, dataclasses.replace(made, **changes)])
    first, second = records.read(tmp_path / "hands.jsonl")
    records.replay(first)
    with pytest.raises(InputError) as reported:
        records.replay(second)
    assert f"{tmp_path / 'hands.jsonl'}, record 2: " in str(reported.value)
    assert reason in str(reported.value)


def test_actions_after_the_end_are_refused(made: records.Record) -> None:
    """One more than the hand took."""
    assert len(made.actions) < 12
    with pytest.raises(InputError, match=f"action {len(made.actions) + 1}, 0, comes after the end"):
        records.replay(dataclasses.replace(made, actions=(*made.actions, 0)))


BAD_FILES = {
    "no json": ("{'a': 1}", "record 1: no JSON"),
    "a list of numbers": ("[1.5]", "record 1: a float; it must be an object"),
    "another format": ('{"format": 3}', "format 3; it must be 2"),
    "no deck": ('{"format": 1, "game": "g", "version": "1", "rules": {}}', "deck is None"),
    "no deal": ('{"format": 2, "game": "g", "version": "1", "rules": {}}', "deal is None"),
    "a history": ("[1, 2]", "does not name its game; give game="),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_of_something_else_is_refused(tmp_path: pathlib.Path, what: str) -> None:
    """What is wrong, and in which record."""
    text, reason = BAD_FILES[what]
    (tmp_path / "file.jsonl").write_text(text)
    with pytest.raises(InputError, match=reason):
        records.read(tmp_path / "file.jsonl")


def test_an_added_record_has_a_line_of_its_own(made: records.Record, tmp_path: pathlib.Path) -> None:
    """Also after a line without an end."""
    path = tmp_path / "hands.jsonl"
    records.append(path, made)
    path.write_text(path.read_text().rstrip("\n"))
    records.append(path, made)
    assert len(path.read_text().splitlines()) == len(records.read(path)) == 2
    records.check_lines(path)


def test_a_record_is_added_whole_or_not_at_all(made: records.Record, tmp_path: pathlib.Path) -> None:
    """A disk that takes a part of a line leaves the file as it was, and readable once there is room again."""
    path = tmp_path / "hands.jsonl"
    records.append(path, made)
    before, usual = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, usual[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            records.append(path, made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert path.read_bytes() == before
    records.append(path, made)
    assert len(records.read(path)) == 2


def test_a_file_of_other_content_is_not_written_to(made: records.Record, tmp_path: pathlib.Path) -> None:
    """Judged by its first line; one that is not there, or is empty, may be."""
    path = tmp_path / "file"
    records.check_lines(path)
    path.touch()
    records.check_lines(path)
    for content in (f"[{records.to_line(made)}]", '{"iteration": 1}\n', "name: run\n", '{"format": 2'):
        path.write_text(content)
        with pytest.raises(envs.InputError, match="choose another file"):
            records.check_lines(path)
    with pytest.raises(envs.InputError, match="choose another file"):
        records.check_lines(tmp_path)


def test_what_is_no_regular_file_is_refused(tmp_path: pathlib.Path) -> None:
    """A pipe, on which reading would wait for ever, and a folder."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError

    os.mkfifo(tmp_path / "pipe")
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 10)
    try:
        for path in (tmp_path / "pipe", tmp_path):
            with pytest.raises(InputError, match=f"^{path} is not a regular file; it must be a file of records$"):
                records.read(path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_keys_and_numbers_are_checked(made: records.Record, tmp_path: pathlib.Path) -> None:
    """An unknown key, and a deck of text."""
    for change, reason in (({"dck": []}, "unknown key 'dck'"), ({"deal": ["AS"]}, "deal holds 'AS'")):
        (tmp_path / "file.json").write_text(json.dumps(made.as_json() | change))
        with pytest.raises(InputError, match=reason):
            records.read(tmp_path / "file.json")
    with pytest.raises(InputError, match="cannot be read"):
        records.read(tmp_path / "missing.json")


EVERY: list[tuple[str, dict[str, Any]]] = [
    ("kuhn_poker", {}),
    ("leduc_poker", {}),
    ("liars_dice", {}),
    ("mini_gin_rummy", {"preset": "3x4"}),
    ("mini_gin_rummy", {"preset": "4x2", "knock_form": "best_discard"}),
    ("gin_rummy_openspiel", {"oklahoma": True, "observation": "planes"}),
    ("rummy500", {"num_players": 3, "hand_size": 5, "max_turns": 30}),
]


def _played(game: envs.Game, seed: int) -> tuple[Any, list[int], np.ndarray]:
    """A game at random: the deal, the actions, and what all were paid."""
    legal_actions, step = jax.jit(game.legal_actions), jax.jit(game.step)
    rng, deal = np.random.default_rng(seed), jax.jit(game.init)(jax.random.key(seed))
    state, actions, paid, done = deal, [], np.zeros(game.num_players), False
    while not done:
        actions.append(int(rng.choice(np.flatnonzero(np.asarray(legal_actions(state))))))
        state, rewards, done = step(state, actions[-1])
        paid += np.asarray(rewards)
    return deal, actions, paid


@pytest.fixture(scope="module", params=EVERY, ids=lambda given: "-".join([given[0], *map(str, given[1].values())]))
def every(request: pytest.FixtureRequest) -> tuple[envs.Game, list[tuple[Any, records.Record, np.ndarray]]]:
    """A game, and a few rounds of it with their records."""
    game = envs.make(request.param[0], **request.param[1])
    names = [f"seat {seat}" for seat in range(game.num_players)]
    made = []
    for seed in range(3):
        deal, actions, paid = _played(game, seed)
        made.append((deal, records.record(game, deal, actions, names, about={"round": seed}), paid))
    return game, made


def test_every_game_is_recorded_and_replayed(
    every: tuple[envs.Game, list[tuple[Any, records.Record, np.ndarray]]], tmp_path: pathlib.Path
) -> None:
    """The deal comes back to the bit, the game with its rules, and the points are those paid."""
    game, made = every
    records.write(tmp_path / "rounds.jsonl", [one for _, one, _ in made])
    found = records.read(tmp_path / "rounds.jsonl")
    for (deal, one, paid), back in zip(made, found, strict=True):
        assert back.as_json() == one.as_json()
        assert back.about["round"] == one.about["round"]
        assert back.result["points"] == pytest.approx(paid * game.reward_scale, abs=1e-3)
        same, states = records.positions(back)
        assert same == game
        assert len(states) == len(one.actions) + 1
        for ours, theirs in zip(jax.tree.leaves(states[0]), jax.tree.leaves(deal), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert len(records.moves(back)) == len(one.actions)
        assert records.moves(back)[0].startswith(f"seat {int(states[0].current_player)}: ")


def _draws_and_discards(game: envs.Game, seed: int) -> tuple[Any, list[int]]:
    """A game in which the stock is drawn from and a card discarded, turn for turn: the deal and the actions."""

    def act(carry: tuple[Any, jax.Array, jax.Array]) -> tuple[Any, jax.Array, jax.Array]:
        state, count, actions = carry
        discards = jnp.flip(game.legal_actions(state))
        action = jnp.where(state.drew, game.num_actions - 1 - jnp.argmax(discards), 0)
        return game.step(state, action)[0], count + 1, actions.at[count].set(action)

    deal = jax.jit(game.init)(jax.random.key(seed))
    start = (deal, jnp.int32(0), jnp.zeros(game.max_length, jnp.int32))
    _, count, actions = jax.jit(lambda carry: lax.while_loop(lambda one: one[0].current_player >= 0, act, carry))(start)
    return deal, actions[:count].tolist()


def test_a_long_match_is_read_again(tmp_path: pathlib.Path) -> None:
    """Of rummy 500, where nobody lays a card. The bound holds for the longest that rules allow, and is one."""
    game = envs.make("rummy500", num_players=2, target=500, reshuffle=True)
    deal, actions = _draws_and_discards(game, 0)
    assert len(actions) > 10_000
    one = records.record(game, deal, actions)
    records.write(tmp_path / "match.jsonl", [one])
    (back,) = records.read(tmp_path / "match.jsonl")
    assert back.as_json() == one.as_json()
    records.replay(back)
    longest = envs.make("rummy500", target=10_000, max_rounds=200, max_turns=200).max_length
    assert longest == 90_400 <= records.MOST_ACTIONS
    for count, kept in ((longest, True), (records.MOST_ACTIONS + 1, False)):
        made = dataclasses.replace(one, actions=(321,) * count)
        for keep in (records.to_line, lambda made: records.parse(json.dumps(made.as_json()))):
            with contextlib.nullcontext() if kept else pytest.raises(InputError, match="it must hold 100000 at most"):
                keep(made)


def test_a_result_that_is_another_is_refused_in_every_game(
    every: tuple[envs.Game, list[tuple[Any, records.Record, np.ndarray]]],
) -> None:
    """Points off by one, and of too few players."""
    _, made = every
    one = made[0][1]
    for points in ([x + 1 for x in one.result["points"]], one.result["points"][1:], "none"):
        with pytest.raises(InputError, match="result points="):
            records.replay(dataclasses.replace(one, result={"points": points}))


def test_a_game_from_outside_is_recorded_by_its_state() -> None:
    """Its deal is all numbers of the state; numbers that no state has are refused."""

    class Plain(type(envs.make("leduc_poker"))):
        name = "plain_leduc"
        deal_of, from_deal = envs.Game.deal_of, envs.Game.from_deal

    game = Plain()
    envs.register("plain_leduc", Plain)
    deal, actions, paid = _played(game, 5)
    one = records.record(game, deal, actions)
    assert len(one.deal) == sum(np.size(leaf) for leaf in jax.tree.leaves(deal))
    assert records.replay(records.parse(records.to_line(one))[0])[0] == game
    assert one.result["points"] == pytest.approx(paid)
    for wrong, reason in (
        (one.deal[1:], "it must have"),
        ((2**40, *one.deal[1:]), "not int32"),
        ((0.5, *one.deal[1:]), "not int32"),
    ):
        with pytest.raises(InputError, match=reason):
            records.replay(dataclasses.replace(one, deal=wrong))


def test_the_first_format_is_read(made: records.Record) -> None:
    """Its deal is called deck."""
    old = made.as_json() | {"format": 1, "deck": list(made.deal)}
    del old["deal"]
    (back,) = records.parse(json.dumps(old))
    assert back.as_json() == made.as_json()
    records.replay(back)


def test_a_record_draws_itself_with_hostile_names(made: records.Record) -> None:
    """Names are escaped and cut; the moves stand below the last position."""
    one = dataclasses.replace(made, players=("<script>alert(1)</script>", "x" * 500))
    svg = one._repr_svg_()
    assert "<script" not in svg
    assert "x" * 41 not in svg
    text = "".join(ET.fromstring(svg).itertext())
    assert "1. <script>alert(1)</script>: " in text
    assert str(made.result["points"][0])[:-2] in text


def test_actions_are_named_in_messages(made: records.Record) -> None:
    """Of what was played, and of what would have been legal."""
    with pytest.raises(InputError, match=r"action 1, 3 \(discard AS\), is not legal; legal are 1 \(take the top"):
        records.replay(dataclasses.replace(made, actions=(3, *made.actions[1:])))


def test_histories_of_openspiel_need_no_openspiel() -> None:
    """Numbers alone, in JSON with the game, or as its serialised text; what cannot be is one line."""
    (first,) = records.parse("2 0 1 1\n", "kuhn_poker")
    (second,) = records.parse('{"game": "kuhn_poker(players=2)", "history": [2, 0, 1, 1]}')
    (third,) = records.parse("# Automatically\n[Meta]\nVersion: 1\n\n[Game]\nkuhn_poker()\n\n[State]\n2\n0\n1\n1\n")
    both = records.parse("[2, 0, 1, 1]\n[0, 1, 0, 0]\n", envs.make("kuhn_poker"))
    assert first.as_json() == second.as_json() == third.as_json() == both[0].as_json()
    assert (first.deal, first.actions, first.result["points"]) == ((2, 0, 1), (1, 1), [2.0, -2.0])
    assert both[1].result["points"] == [-1.0, 1.0]
    assert records.to_history(first) == [2, 0, 1, 1]
    for text, reason in (
        ('{"game": "whist()", "history": [1]}', "unknown game of OpenSpiel"),
        ('{"game": "kuhn_poker(players=3)", "history": [0, 1, 0]}', "players=2 is"),
        ('{"game": "kuhn_poker", "history": [0, 0, 1, 1]}', "each once"),
        ('{"game": "kuhn_poker", "history": [0, 1, 1]}', "not over after its 1 actions"),
        ("[Game]\nkuhn_poker()\n\n[State]\n2\nx\n", "no list of actions"),
        ('{"game": "phantom_ttt(gameversion=x)", "history": [0]}', "gameversion=classical or gameversion=abrupt is"),
        ('{"game": "dark_hex(obstype=reveal-numturns)", "history": [0]}', "obstype=reveal-nothing is"),
    ):
        with pytest.raises(InputError, match=reason):
            records.parse(text)


def test_records_of_a_text_are_read_one_by_one(made: records.Record) -> None:
    """Lines, a list, one record over several lines, histories: as `parse` reads them, each when it is asked for."""
    line = records.to_line(dataclasses.replace(made, players=("anna \ud83c", "ünï 🂡")))
    value = json.loads(line)
    several = (f" [{line},\n{line} ,{line}]\n", f"{line}\n \n{line}", json.dumps(value, indent=2))
    for text in (line, *several, "[ ]", "", "\n"):
        lazy = records.LazyRecords(text)
        assert list(lazy) == records.parse(text) == lazy[:]
        assert {one.players for one in lazy} <= {("anna \ud83c", "ünï 🂡")}
    assert [one.place for one in lazy] == []
    assert records.LazyRecords(f"{line}\n{line}")[-1].place == "text, record 3"
    assert len(records.LazyRecords("2 0 1 1\n[2, 0, 1, 1]\n", "kuhn_poker")) == 2
    assert len(records.LazyRecords(" [2,\n0, 1, 1]\n", "kuhn_poker")) == 1
    wrong = records.LazyRecords(f"{line}{{\n{line}")
    assert [wrong[0].place, wrong[2].place] == ["text, record 1", "text, record 3"]
    with pytest.raises(InputError, match="text, record 2: no JSON"):
        wrong[1]
    with pytest.raises(IndexError):
        wrong[3]
    for text, reason in (
        (f"[{line}, {{]", "text, record 2: no JSON"),
        (f"[{line}] 1", "text, record 1: no JSON"),
        (f"[{line}", "text, record 1: no JSON"),
        ("[" * 100_000, "nests too deep"),
        ("[{}, {}, {}]", "text holds more than 2 records"),
    ):
        with pytest.raises(InputError, match=reason):
            records.LazyRecords(text, most=2)


def test_a_deal_with_a_typed_key_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a game from outside whose rolls follow from a key in its state: the key's numbers are part of the deal."""
    game = KeyedGame()
    monkeypatch.setitem(registry._registered, game.name, KeyedGame)
    made = records.record(game, game.init(jax.random.key(3)), [1, 1, 1, 1])
    (read,) = records.parse(records.to_line(made))
    _, last = records.replay(read)
    other = records.record(game, game.init(jax.random.key(4)), [1, 1, 1, 1])
    assert read.deal == (0, 3, 0, 0, 0, 0)
    assert (game.to_dict(last), len(records.moves(read))) == (game.to_dict(records.replay(made)[1]), 4)
    assert game.to_dict(last) != game.to_dict(records.replay(other)[1])
    with pytest.raises(InputError, match=r"the deal holds a number that is not uint32"):
        game.from_deal((0, -1, 0, 0, 0, 0))
