"""Rummy 500 to its target: scores carried on, in the game and in the host classes; rules by name; the terminal."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from typing import Any

import jax
import numpy as np
import pytest
import yaml

import envs
from envs import InputError, records
from envs.adapters.gymnasium import observation_box
from envs.rummy500 import MatchRummy500, Rummy500, RummyRules, ShapedRummy500
from envs.rummy500.__main__ import main
from envs.rummy500.host import BOTH, NO_MELD, RUNS, Deck, Hand, RummyGame
from envs.rummy500.host_match import RummyMatch
from envs.rummy500.state import RummyState


@functools.cache
def _functions(game: Rummy500) -> tuple[Any, Any]:
    return jax.jit(game.step), jax.jit(game.legal_actions)


def _round_of(state: Any) -> RummyState:
    """Returns the round under way alone."""
    return RummyState(**{field.name: getattr(state, field.name) for field in dataclasses.fields(RummyState)})


def _play(game: Rummy500, state: Any, rng: np.random.Generator) -> tuple[list[Any], list[int], np.ndarray]:
    """Plays at random, laying whatever can be laid: the states, the actions, the sum of the rewards."""
    step, legal = _functions(game)
    states, actions, paid, done = [jax.device_get(state)], [], np.zeros(game.num_players), False
    while not done:
        allowed = np.flatnonzero(np.asarray(legal(states[-1])))
        lays = allowed[(allowed >= 53) & (allowed < 322)]
        actions.append(int(lays[0] if len(lays) else rng.choice(allowed)))
        state, rewards, done = jax.device_get(step(states[-1], np.int32(actions[-1])))
        states.append(state)
        paid += rewards
    return states, actions, paid


@pytest.fixture(scope="module")
def match() -> tuple[MatchRummy500, list[Any], list[int], np.ndarray]:
    """A match of short rounds, played to its end."""
    game = envs.make("rummy500", num_players=2, max_turns=12, target=60, max_rounds=6)
    return game, *_play(game, jax.jit(game.init)(jax.random.key(1)), np.random.default_rng(0))


def test_scores_are_carried_on(match: tuple[MatchRummy500, list[Any], list[int], np.ndarray]) -> None:
    """Totals are the sums of the rounds' scores, each round begins with a whole deal, and the end is the target's."""
    game, states, _, paid = match
    ends = [n for n in range(1, len(states)) if states[n].rounds > states[n - 1].rounds]
    assert len(ends) == int(states[-1].rounds) >= 2
    assert ends[-1] == len(states) - 1
    single = Rummy500(game.rules)
    total, rewards = np.zeros(2), np.zeros(2)
    for number, n in enumerate(ends):
        before = states[n - 1]
        plain, one_round, over = _functions(single)[0](_round_of(before), np.int32(match[2][n - 1]))
        assert over
        scores = np.asarray(single.scores(plain))
        total, rewards = total + scores, rewards + np.asarray(one_round)
        np.testing.assert_array_equal(states[n].totals, total)
        if n < len(states) - 1:
            assert total.max() < game.target
            assert int(states[n].turns) == 0
            assert np.sum(np.asarray(states[n].zone) >= 4) >= 14
            assert int(states[n].current_player) == (int(states[0].first) + number + 1) % 2
            assert sorted(states[n].deck.tolist()) == list(range(52))
            assert states[n].deck.tolist() != before.deck.tolist()
    assert total.max() >= game.target or len(ends) == game.max_rounds
    np.testing.assert_allclose(paid, rewards, atol=1e-5)
    result = {name: float(value) for name, value in game.result(states[-1], 0).items()}
    assert result["score"] == total[0]
    assert result["rounds"] == len(ends)
    assert result["shared_win_rate"] == (0.5 if total[0] == total[1] else float(total[0] > total[1]))


def test_the_potential_of_a_match_keeps_what_its_rounds_made(
    match: tuple[MatchRummy500, list[Any], list[int], np.ndarray],
) -> None:
    """Its changes sum to the match's score and the first hand: a new deal takes back nothing."""
    game, states, _, _ = match
    potential = jax.jit(game.potential)
    changes = np.diff([[float(potential(state, seat)) for seat in range(2)] for state in states], axis=0)
    dealt, total = np.asarray(game.scores(states[0])), np.asarray(states[-1].totals)
    assert int(states[-1].rounds) >= 2
    np.testing.assert_allclose(changes.sum(axis=0), (total - dealt) / 100, atol=1e-4)
    (end,) = [n for n in range(1, len(states)) if states[n].rounds == 1 > states[n - 1].rounds]
    scores = np.asarray(_functions(game)[0](states[end - 1], np.int32(match[2][end - 1]))[0].totals)
    hands = np.asarray(game.scores(states[end]))
    before = np.array([float(potential(states[end - 1], seat)) for seat in range(2)])
    np.testing.assert_allclose(changes[end - 1], (scores + hands) / 100 - before, atol=1e-5)


def test_a_match_is_recorded_and_shown(match: tuple[MatchRummy500, list[Any], list[int], np.ndarray]) -> None:
    """Its deal makes all later decks again; the picture has the scores."""
    game, states, actions, paid = match
    one = records.record(game, states[0], actions)
    assert one.result["points"] == pytest.approx(paid * 100, abs=1e-2)
    again, last = records.replay(records.parse(records.to_line(one))[0])
    assert again == game
    np.testing.assert_array_equal(last.totals, states[-1].totals)
    assert f"of 60 after {int(states[-1].rounds)} rounds" in game.render(states[-1])
    with pytest.raises(InputError, match="32 bits"):
        game.from_deal((*one.deal[:-1], 2**32))


def test_a_match_keeps_what_a_game_promises(match: tuple[MatchRummy500, list[Any], list[int], np.ndarray]) -> None:
    """The end absorbs; a view is unsigned and its observation has the scores, own first; greedy players know it."""
    game, states, actions, _ = match
    after, rewards, done = _functions(game)[0](states[-1], np.int32(actions[-1]))
    assert done
    assert not np.any(rewards)
    for one, two in zip(jax.tree.leaves(after), jax.tree.leaves(states[-1]), strict=True):
        np.testing.assert_array_equal(one, two)
    view = jax.jit(game.view)(states[-1], 1)
    assert all(np.asarray(leaf).dtype.kind in "ub" for leaf in jax.tree.leaves(view))
    seen = np.asarray(jax.jit(game.encode)(view))
    assert seen.shape == (game.observation_size,)
    np.testing.assert_allclose(seen[-3:-1], states[-1].totals[::-1] / 60, atol=1e-6)
    legal = np.asarray(_functions(game)[1](states[0]))
    first = int(states[0].current_player)
    chances = envs.make_bot("greedy", game)(jax.jit(game.view)(states[0], first), legal)
    assert float(np.sum(chances)) == pytest.approx(1)


def test_a_match_is_dealt_anew(match: tuple[MatchRummy500, list[Any], list[int], np.ndarray]) -> None:
    """In a later round: the same view, totals, rounds and beginner; other hands, later decks of its own; it goes on."""
    game, states, _, _ = match
    state = next(one for one in states if int(one.rounds) == 1 and int(one.turns) >= 3)
    view_of = jax.jit(game.view)
    for seat in range(2):
        view = view_of(state, seat)
        keys = jax.random.split(jax.random.key(seat), 8)
        worlds = jax.device_get(jax.jit(jax.vmap(game.determinize, (None, 0)))(view, keys))
        assert len(np.unique(worlds.seed)) == len(np.unique(worlds.zone, axis=0)) == 8
        for n in range(8):
            world = jax.tree.map(lambda leaf, n=n: leaf[n], worlds)
            jax.tree.map(np.testing.assert_array_equal, view_of(world, seat), view)
            jax.tree.map(lambda a, b: np.testing.assert_equal(a.dtype, b.dtype), world, state)
            for name in ("totals", "rounds", "first", "current_player", "turns"):
                np.testing.assert_array_equal(getattr(world, name), getattr(state, name))
    _, actions, _ = _play(game, world, np.random.default_rng(2))
    assert actions
    game = envs.make("rummy500", reshuffle=True, target=60)
    with pytest.raises(InputError, match="rummy500 with reshuffle cannot redeal"):
        game.determinize(game.view(game.init(jax.random.key(0)), 0), jax.random.key(1))


@pytest.mark.parametrize("totals", [(-100, 3), (-(2**15), 2**15 - 1)])
def test_an_observation_keeps_within_bounds(totals: tuple[int, int]) -> None:
    """Those that adapters promise, however low the target."""
    game = envs.make("rummy500", num_players=2, target=5)
    state = dataclasses.replace(game.init(jax.random.key(0)), totals=np.array(totals, np.int32))
    seen = np.asarray(game.observe(state, 0))
    bound = observation_box(game).high.max()
    assert np.abs(seen).max() == bound
    np.testing.assert_allclose(seen[-3:-1], np.clip(np.array(totals) / 5, -bound, bound))


def test_rules_choose_the_kind() -> None:
    """A round, a match, the shaped reward; identities and rules that `make` takes again."""
    assert envs.make("rummy500") == Rummy500()
    assert envs.make("rummy500", target=0, max_rounds=40, reward="score", card_weight=0.01) == Rummy500()
    assert envs.make("rummy500", max_rounds=9) == MatchRummy500(RummyRules(), max_rounds=9)
    assert envs.make("rummy500", target=200) == MatchRummy500(RummyRules(), target=200)
    shaped = envs.make("rummy500", num_players=4, reward="shaped", win_weight=2)
    assert shaped == ShapedRummy500(RummyRules(num_players=4), win_weight=2.0)
    for game in (Rummy500(), shaped, envs.make("rummy500", target=200)):
        assert envs.make("rummy500", **records.rules_of(game)) == game
    for rules, reason in (
        ({"reward": "shapd"}, "did you mean 'shaped'"),
        ({"reward": "shaped", "target": 500}, "single rounds"),
        ({"card_weight": 0.5, "target": 500}, "single rounds"),
        ({"target": 0, "max_rounds": 9}, "rule max_rounds=9 is of a match; set target, or leave it out"),
        ({"reward": "shaped", "max_rounds": 9, "target": 0}, "rule max_rounds=9 is of a match"),
        ({"target": -1}, "out of range"),
        ({"target": "500"}, "must be an int"),
        ({"taget": 500}, "did you mean 'target'"),
    ):
        with pytest.raises(InputError, match=reason):
            envs.make("rummy500", **rules)


def test_the_configuration_states_the_defaults(repo: pathlib.Path) -> None:
    """The rules in conf/env/rummy500.yaml are those of the game as it is made without any."""
    rules = yaml.safe_load((repo / "conf" / "env" / "rummy500.yaml").read_text())["rules"]
    assert envs.make("rummy500", **rules) == Rummy500()
    shaped = envs.make("rummy500", **(rules | {"reward": "shaped"}))
    assert shaped == ShapedRummy500()


def test_a_match_of_objects() -> None:
    """Rounds of RummyGame by names, scores summed, the beginner moving on, until the target."""
    match, rng = RummyMatch(num_players=2, target=60, seed=3, max_turns=12), np.random.default_rng(1)
    begins, summed = [], [0, 0]
    while not match.is_over:
        begins.append(match.game.current_player)
        while not match.game.is_over:
            names = match.game.players[match.game.current_player].action_names
            assert names == match.game.legal_names()
            lays = [name for name in names.values() if name.startswith("lay")]
            match.step(lays[0] if lays else str(rng.choice(list(names.values()))))
        summed = [a + b for a, b in zip(summed, match.game.scores(), strict=True)]
        assert match.totals == summed
        if not match.is_over:
            match.next_round()
    assert max(match.totals) >= 60
    assert match.winners == [seat for seat in range(2) if summed[seat] == max(summed)]
    assert begins == [(begins[0] + n) % 2 for n in range(len(begins))]
    assert len(match.history) == len(begins)
    with pytest.raises(InputError, match="the match is over"):
        match.next_round()
    with pytest.raises(InputError, match="target=0"):
        RummyMatch(target=0)


def test_a_game_of_objects_shows_its_table() -> None:
    """Melds by the document's names; a name that is no legal action is refused."""
    first = ["7S", "7H", "7D", "2C", "3C", "9H", "KS"]
    deck = [*first, *(card for card in Deck().cards.values() if card not in Deck(first).cards.values())]
    game = RummyGame(num_players=2, deck=deck)
    game.step("draw from the stock")
    game.step("lay the set 7S 7H 7D")
    assert game.melds == [["7Spades", "7Hearts", "7Diamonds"]]
    assert "7S 7H 7D of 0" in str(game)
    with pytest.raises(InputError, match="illegal action 'draw'"):
        game.step("draw")


@pytest.mark.parametrize(
    ("hand", "rule", "summary"),
    [
        ("QC KC AC", "low", (0, NO_MELD, 0)),
        ("QC KC AC", "high", (1, RUNS, 35)),
        ("AC 2C 3C", "high", (0, NO_MELD, 0)),
        ("AC 2C 3C", "low", (1, RUNS, 6)),
        ("AC 2C 3C 5S 5H 5D", "both", (2, BOTH, 21)),
    ],
)
def test_summary_follows_the_tables_rule(hand: str, rule: str, summary: tuple[int, int, int]) -> None:
    """Runs have the ace where the rule has it."""
    assert Hand(hand.split(), rule).summary() == summary
    with pytest.raises(InputError, match="did you mean 'low'"):
        Hand([], "lov")


def test_what_is_no_card_is_in_no_deck() -> None:
    """A word, a number beyond the deck, nothing at all."""
    deck = Deck()
    for value in ("foo", 52, -1, None, 3.5, ""):
        assert value not in deck
    assert "2Clubs" in deck
    assert 0 in deck


def test_command_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong number of players and an unknown opponent."""
    for arguments, reason in (
        (["--players", "9"], "num_players=9"),
        (["--opponent", "gredy"], "did you mean 'greedy'"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert reason in capsys.readouterr().err


def test_command_plays_in_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A draw, a discard, and leaving."""
    answers = iter(["draw", "discard", "1", "q"])

    def read(prompt: str) -> str:
        return next(answers, "q")

    monkeypatch.setattr("builtins.input", read)
    main(["--players", "2", "--opponent", "random", "--seed", "4"])
    shown = capsys.readouterr().out
    assert "Rummy 500: " in shown
    assert shown.rstrip().endswith("left the table")
