"""Matches: turns, scores, and what a person is shown."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from page_support import chosen, hidden_cards, words

import envs
from dream.page import review
from dream.page.compiled import Shelf
from dream.page.match import Chair, Match, Settings
from dream.page.refusals import RefusedError
from envs import boards, records
from envs.batching import QUICK

_SHELF = Shelf()
_GAMES = {"gin_rummy": "heuristic", "gin_rummy_mdp": "heuristic", "gin_rummy_openspiel": "simple_bot",
          "mini_gin_rummy": "random", "rummy500": "greedy", "kuhn_poker": "random", "leduc_poker": "random",
          "liars_dice": "random", "phantom_ttt": "random"}  # fmt: skip


def _match(name: str, person: bool = True, seed: int = 0, target: int | None = None) -> Match:
    game = boards.make(name, boards.variants(name)[0].key)
    player = Chair(_GAMES[name], _SHELF.player(_GAMES[name], game))
    chairs = [Chair() if person else player, *[player] * (game.num_players - 1)]
    return Match(_SHELF.game(game), chairs, Settings("", target=target, seed=seed))


def _to_my_turn(match: Match) -> None:
    while match.to_act is not None and match.to_act.player is not None:
        match.act(match.choose())


@pytest.mark.parametrize("name", _GAMES)
def test_a_round_ends_and_is_scored(name: str) -> None:
    """Played by sensible actions; points sum to zero, chairs change seats, and the sum spelled out is what was paid."""
    match = _match(name)
    for number in range(4):
        _to_my_turn(match)
        while not match.round.position.done:
            match.act(chosen(match.snapshot()))
            _to_my_turn(match)
        shown = match.snapshot()
        assert shown["done"]
        assert sum(shown["points"]) == pytest.approx(0, abs=1e-3)
        settlement = shown["board"].get("settlement", {})
        if "total" in settlement and settlement["winner"] is not None:
            assert shown["points"][settlement["winner"]] == pytest.approx(settlement["total"])
        assert shown["chairs"][0]["seat"] == number % len(shown["chairs"])
        if number < 3:
            match.next_round()
    assert len(match.finished) == 4


def test_players_answer_anew_in_each_branch() -> None:
    """Uniform play after the same raise, twelve times from one position: not always alike."""
    match = _match("leduc_poker")
    while not match.round.position.done:
        _to_my_turn(match)
        if not match.round.position.done:
            match.act(chosen(match.snapshot()))
    played = match.finished_round(0)
    positions = review.positions(match.compiled, played.deal, played.actions)
    answers = set()
    for _ in range(12):
        branch = match.branch(played, positions, 0, match.chairs[1].player)
        branch.act(2)
        answers.add(branch.choose())
    assert len(answers) > 1


_FEW = {"hand_size": 3, "max_turns": 4}


@pytest.mark.parametrize("rules", [{"num_players": 2}, {"num_players": 4}, {"target": 500, "max_rounds": 2}])
def test_after_a_lot_the_next_chair_begins(rules: dict[str, int]) -> None:
    """Round for round, so that everyone begins equally often; the records of such rounds replay."""
    game = envs.make("rummy500", **_FEW, **rules)
    count, player = game.num_players, Chair("random", _SHELF.player("random", game))
    match = Match(_SHELF.game(game), [player] * count, Settings("", seed=3))
    began = []
    for number in range(2 * count):
        if number:
            match.next_round()
        began.append(match.chair(match.round.position.current))
        while not match.round.position.done:
            match.act(match.choose())
        played = match.finished[-1]
        records.replay(records.finished(game, played.deal, played.actions, match.points_by_seat(played)))
    assert began == [(began[0] + number) % count for number in range(2 * count)]


def test_the_lot_draws_who_begins_the_first_round() -> None:
    """Either chair in some match; without a lot it is the first seat, whose chair changes."""
    game, plain = (envs.make("rummy500", num_players=2, random_first=lot, **_FEW) for lot in (True, False))
    player = Chair("random", _SHELF.player("random", game))
    matches = [Match(_SHELF.game(game), [player] * 2, Settings("", seed=seed)) for seed in range(8)]
    assert {match.round.position.current for match in matches} == {0, 1}
    match = Match(_SHELF.game(plain), [player] * 2, Settings(""))
    for number in range(4):
        assert (match.round.position.current, match.chair(0)) == (0, number % 2)
        while not match.round.position.done:
            match.act(match.choose())
        match.next_round()


@pytest.mark.parametrize("name", [name for name in _GAMES if name != "phantom_ttt"])
def test_a_person_is_shown_no_hidden_card(name: str) -> None:
    """At no decision of a round does a card that the person cannot know occur in what is sent."""
    match = _match(name, seed=5)
    _to_my_turn(match)
    while not match.round.position.done:
        shown = match.snapshot()
        hidden = hidden_cards(match.game, match.round.position, match.seat(match.person))
        if name not in ("liars_dice", "leduc_poker"):
            assert hidden
        if name != "liars_dice":
            assert not words(shown) & hidden
        match.act(chosen(shown))
        _to_my_turn(match)
    assert not match.snapshot()["choices"]


@pytest.mark.parametrize(
    "name",
    ["gin_rummy", "gin_rummy_mdp", "gin_rummy_openspiel", "kuhn_poker", "leduc_poker", "liars_dice", "mini_gin_rummy"],
)
def test_what_is_shown_depends_on_the_view_alone(name: str) -> None:
    """With everything hidden dealt anew the message is the same, letter by letter."""
    match = _match(name, seed=2)
    redeal = jax.jit(match.game.determinize, compiler_options=QUICK)
    _to_my_turn(match)
    changed = 0
    while not match.round.position.done:
        before, position = match.snapshot(), match.round.position
        view = position.views[match.seat(match.person)]
        state = redeal(view, jax.random.key(match.round.number + len(match.round.actions)))
        match.round.position = match.compiled.look(state)
        assert match.snapshot() == before
        same = jax.tree.map(lambda a, b: np.array_equal(a, b), jax.device_get(state), jax.device_get(position.state))
        changed += not all(jax.tree.leaves(same))
        match.round.position = position
        match.act(chosen(before))
        _to_my_turn(match)
    assert changed or name in ("kuhn_poker", "leduc_poker", "liars_dice")


def test_an_opponents_secret_moves_stay_secret() -> None:
    """Of a game without a board only the own actions are in the log until it is over."""
    match = _match("phantom_ttt", seed=1)
    _to_my_turn(match)
    while not match.round.position.done:
        shown = match.snapshot()
        assert {move["seat"] for move in shown["log"]} <= {match.seat(0)}
        assert [move["ply"] for move in shown["log"]] == list(range(shown["ply"]))
        match.act(chosen(shown))
        _to_my_turn(match)


@pytest.mark.parametrize("name", ["phantom_ttt", "dark_hex"])
def test_an_opponents_failed_tries_show_nowhere(name: str) -> None:
    """What is sent is the same, letter by letter, whether it failed first or not; a failure itself is not sent."""
    game, shown = envs.make(name), []
    player = Chair("random", _SHELF.player("random", game))
    for tries in ((3,), (0, 3)):
        match = Match(_SHELF.game(game), [Chair(), player], Settings("", seed=1))
        match.act(0)
        for cell in tries:
            shown.append({**match.snapshot(), "id": ""})
            match.act(cell)
            assert match.is_quiet == (cell == 0)
        shown.append({**match.snapshot(), "id": ""})
        match.act(3)
        shown.append({**match.snapshot(), "id": ""})
    assert shown[:3] == [shown[3], *shown[5:]]
    assert shown[3] == shown[4]


def test_a_match_ends_at_its_target() -> None:
    """The winner's points add up until they reach it; then nothing is dealt any more."""
    match = _match("kuhn_poker", person=False, target=5)
    for _ in range(200):
        while not match.round.position.done:
            match.act(match.choose())
        if match.is_over:
            break
        match.next_round()
    assert max(match.scores) >= 5
    with pytest.raises(RefusedError, match="match_over"):
        match.next_round()


def test_points_are_points_where_the_reward_is_another() -> None:
    """Of the 16-action game with categorical rewards: as with points, and the round's record is read again."""
    won = {}
    for reward in ("points", "categorical"):
        game = envs.make("gin_rummy_mdp", reward=reward)
        player = Chair("heuristic", _SHELF.player("heuristic", game))
        match = Match(_SHELF.game(game), [player, player], Settings("", target=500, seed=5))
        while not match.round.position.done:
            match.act(match.choose())
        (played,) = match.finished
        kept = records.finished(game, played.deal, played.actions, points=played.points)
        assert records.replay(kept)[0] == game
        won[reward] = match.snapshot()["points"], match.scores
    assert won["categorical"] == won["points"]
    assert max(won["points"][1]) > 1


def test_a_rummy_match_shows_its_totals() -> None:
    """To its target within one game: what the finished rounds made, in play and in the settlement, by seat."""
    game = envs.make("rummy500", num_players=2, hand_size=5, max_turns=20, target=500, max_rounds=2)
    player = Chair("greedy", _SHELF.player("greedy", game))
    match = Match(_SHELF.game(game), [player, Chair()], Settings("", seed=3))
    seen = []
    while not match.round.position.done:
        if match.to_act.player is None:
            state, shown = match.round.position.state, match.snapshot()["board"]["carried"]
            assert shown["totals"] == np.asarray(state.totals).tolist()
            assert (shown["rounds"], shown["target"]) == (int(state.rounds), 500)
            seen.append(shown["totals"])
            match.act(chosen(match.snapshot()))
        else:
            match.act(match.choose())
    assert seen[0] == [0, 0]
    assert seen[-1] != [0, 0]
    settled = match.snapshot()["board"]
    assert settled["carried"]["totals"] == [int(score) for score in match.scores]
    last = [one["score"] for one in settled["settlement"]["scores"]]
    assert settled["carried"] == {
        "totals": [before + score for before, score in zip(seen[-1], last, strict=True)], "rounds": 2, "target": 500
    }  # fmt: skip


def test_wrong_actions_change_nothing() -> None:
    """An illegal action, one after the end, a new round too early."""
    match = _match("kuhn_poker")
    with pytest.raises(RefusedError, match="not_legal action=7"):
        match.act(7)
    with pytest.raises(RefusedError, match="round_not_over"):
        match.next_round()
    assert match.round.actions == []
    game = envs.make("kuhn_poker")
    with pytest.raises(RefusedError, match="wrong_seats game=kuhn_poker given=1 needed=2"):
        Match(_SHELF.game(game), [Chair()], Settings(""))
    with pytest.raises(RefusedError, match="two_people"):
        Match(_SHELF.game(game), [Chair(), Chair()], Settings(""))
