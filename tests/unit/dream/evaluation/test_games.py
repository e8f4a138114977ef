"""Games to a target: composed rounds against enumeration, every preset's bonuses by hand, chances from all orders."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import dream
import envs
from dream.evaluation.game_chances import best_by_score, chance_by_score, game_chance
from dream.evaluation.games import OPPONENT, POLICY, Composer, games_report, match_games
from envs import InputError, MatchRules
from envs.gin_rummy.core.rules import MATCHES
from envs.match_rules import Standing, after_round, final_points, is_shutout, winner_of
from envs.records import finished, to_line

RULES = {
    "alternate": MatchRules(target=5),
    "winner": MatchRules(target=5, dealer="winner"),
    "loser": MatchRules(target=4, dealer="loser"),
    "fixed": MatchRules(target=4, dealer="fixed"),
    "boxes": MatchRules(target=6, dealer="winner", box_bonus=2, boxes_count=True),
}
ROUNDS = np.array([[2, -1], [-3, 0], [0, 2], [1, 1]])


def _slow_game(rules: MatchRules, first: int, stream: Any) -> tuple[int, int, list[int]]:
    """Plays one game by the words of the rules: rounds taken, who won, the scores; `stream` yields points by seat."""
    scores, rounds = [0, 0], 0
    while max(scores) < rules.target:
        points = next(stream)[0 if first == 0 else 1]
        rounds += 1
        if points == 0:
            continue
        winner = 0 if points > 0 else 1
        scores[winner] += abs(points) + (rules.box_bonus if rules.boxes_count else 0)
        dealer = 1 - first
        if rules.dealer == "alternate":
            dealer = 1 - dealer
        elif rules.dealer != "fixed":
            dealer = winner if rules.dealer == "winner" else 1 - winner
        first = 1 - dealer
    return rounds, int(scores[1] >= rules.target), scores


@pytest.mark.parametrize("name", RULES)
def test_composed_games_are_those_of_the_rules(name: str) -> None:
    """Each pair takes deals until both games are over, and both are what the rules in words make of these deals."""
    rules, rng = RULES[name], np.random.default_rng(0)
    deals = ROUNDS[rng.integers(len(ROUNDS), size=400)]
    composer, rounds = Composer(rules), []
    for points in deals:
        rounds += list(composer.take(points))
    assert len(composer.finished) > 20
    start = 0
    for pair, games in enumerate(composer.finished):
        taken = []
        for side, standing in enumerate(games):
            count, winner, scores = _slow_game(rules, side, iter(deals[start:]))
            assert (standing.rounds, winner_of(rules, standing), list(standing.scores)) == (count, winner, scores)
            mine = [one for one in rounds if one.game == 2 * pair + side]
            assert [one.deal for one in mine] == list(range(start, start + count))
            assert [one.number for one in mine] == list(range(count))
            assert mine[0].before == (0, 0)
            assert list(mine[-1].after) == scores
            assert all(one.after == two.before for one, two in itertools.pairwise(mine))
            taken.append(count)
        start += max(taken)


def _enumerated(rules: MatchRules, points: np.ndarray, standing: Standing) -> tuple[float, float]:
    """Returns the chance to win and the rounds to come, over all orders of scored rounds; ties only take time."""
    winner = winner_of(rules, standing)
    if winner is not None:
        return float(winner == POLICY), 0.0
    rows = [int(row[standing.first]) for row in points]
    after = [_enumerated(rules, points, after_round(rules, standing, paid)) for paid in rows if paid]
    won, rounds = np.mean(after, axis=0)
    return float(won), float(rounds) + len(rows) / len(after)


@pytest.mark.parametrize("name", RULES)
def test_the_chance_is_that_of_all_orders(name: str) -> None:
    """The dynamic programme against every order of rounds, walked through one by one."""
    rules = RULES[name]
    found = game_chance(ROUNDS, rules)
    assert found is not None
    both = np.array([_enumerated(rules, ROUNDS, Standing(first)) for first in (POLICY, OPPONENT)])
    np.testing.assert_allclose([found.win, found.rounds], both.mean(axis=0), rtol=1e-12)


def _best(rules: MatchRules, policies: list[np.ndarray], standing: Standing) -> float:
    """Returns the chance to win where each round is played by the policy that is best for what follows."""
    winner = winner_of(rules, standing)
    if winner is not None:
        return float(winner == POLICY)
    paid = ([int(row[standing.first]) for row in points if row[standing.first]] for points in policies)
    return max(np.mean([_best(rules, policies, after_round(rules, standing, one)) for one in ones]) for ones in paid)


@pytest.mark.parametrize("name", RULES)
def test_the_choice_by_score_is_the_best_of_all_orders(name: str) -> None:
    """The dynamic programme over policies against every choice in every order; better than either policy alone."""
    rules, policies = RULES[name], [ROUNDS, np.array([[1, -1], [4, -3], [4, -4], [1, 1]])]
    choice = best_by_score(policies, rules)
    exact = np.mean([_best(rules, policies, Standing(first)) for first in (POLICY, OPPONENT)])
    assert chance_by_score(policies, rules, choice) == pytest.approx(exact, rel=1e-12)
    for number, points in enumerate(policies):
        alone = game_chance(points, rules)
        assert alone is not None
        same = np.full_like(choice, number)
        assert chance_by_score(policies, rules, same) == pytest.approx(alone.win, rel=1e-12)
        assert exact > alone.win + 0.1


@pytest.mark.parametrize("name", RULES)
def test_the_influence_is_the_derivative(name: str) -> None:
    """The variance is that of the derivatives by each deal's weight, which counting a deal many times more shows."""
    rules, weight = RULES[name], 4000
    found = game_chance(ROUNDS, rules)
    assert found is not None
    many = np.repeat(ROUNDS, weight, axis=0)
    slopes = []
    for row in ROUNDS:
        moved = game_chance(np.concatenate([many, row[None]]), rules)
        assert moved is not None
        slopes.append((moved.win - found.win) * (len(many) + 1))
    assert found.variance == pytest.approx(np.var(slopes, ddof=1) / len(ROUNDS), rel=5e-3)


def test_the_chance_is_what_games_come_to() -> None:
    """Composed of a long stream of the same rounds: win rate and rounds within their intervals."""
    rules = MatchRules(target=20)
    rng = np.random.default_rng(1)
    points = np.stack([rng.integers(-9, 11, 4000), rng.integers(-11, 10, 4000)], axis=1)
    composer = Composer(rules)
    for row in points[rng.integers(len(points), size=60000)]:
        list(composer.take(row))
    report, found = games_report(rules, composer.finished), game_chance(points, rules)
    assert found is not None
    assert report["game_win_rate"].low < found.win < report["game_win_rate"].high
    assert report["rounds_per_game"].low < found.rounds < report["rounds_per_game"].high
    assert game_chance(np.zeros((3, 2), int), rules) is None


def test_points_are_whole_however_they_are_stored() -> None:
    """`play_hands` returns float32; halves, what is no number, and no policy at all are refused."""
    rules, points = MatchRules(target=10), np.array([[1.0, 2.0], [3.0, -4.0], [-5.0, 6.0]], np.float32)
    assert game_chance(points, rules) == game_chance(points.astype(int), rules)
    assert np.array_equal(best_by_score([points], rules), best_by_score([points.astype(int)], rules))
    for wrong in (points + np.float32(0.5), points * np.nan):
        for call in (lambda x: game_chance(x, rules), lambda x: best_by_score([x], rules)):
            with pytest.raises(InputError, match="rounds are not paid in whole points"):
                call(wrong)
    with pytest.raises(InputError, match="no policy; they must be of one at least"):
        best_by_score([], rules)


GAME = (30, -45, 0, 60, 25)
"""Points of player 0 in the rounds of a game: three won, one lost, one tied."""
FINAL = {
    "dream": (115, 45),
    "r42": (115, 45),
    "eaai": (115, 45),
    "modern": (115 + 3 * 25 + 100, 45 + 25),
    "classic": (115 + 3 * 20 + 100, 45 + 20),
    "palace": (110, 55),  # 40, then 55, then 110: with boxes counted it is over a round earlier
}
SHUT = {
    "dream": (110, 0),
    "r42": (110, 0),
    "eaai": (110, 0),
    "modern": (2 * (110 + 2 * 25 + 100), 0),
    "classic": (110 + 2 * 20 + 100 + 100, 0),
    "palace": (130, 0),
}


@pytest.mark.parametrize("preset", MATCHES)
def test_presets_by_hand(preset: str) -> None:
    """What a game of few rounds comes to, bonuses and boxes included, with and without a shutout; who acts first."""
    rules = MATCHES[preset]
    for rounds, wanted in ((GAME, FINAL), ((50, 60), SHUT)):
        standing, firsts = Standing(0), []
        for points in rounds:
            if winner_of(rules, standing) is None:
                firsts.append(standing.first)
                standing = after_round(rules, standing, points)
        assert winner_of(rules, standing) == 0
        assert final_points(rules, standing) == wanted[preset]
        assert is_shutout(rules, standing) == (rounds is not GAME)
        if rounds is GAME:
            assert firsts == ([0, 1, 0, 0] if preset == "palace" else [0, 1, 0, 0, 1])


@pytest.mark.parametrize("preset", MATCHES)
def test_a_preset_names_rounds_and_games(preset: str) -> None:
    """The game of these rules is the preset's; OpenSpiel's rounds are put together as EAAI's."""
    assert envs.make("gin_rummy", preset=preset).match_rules() == MATCHES[preset]
    assert envs.make("gin_rummy").match_rules(preset) == MATCHES[preset]
    assert envs.make("gin_rummy_openspiel").match_rules() == MATCHES["eaai"]
    with pytest.raises(InputError, match="preset of games"):
        envs.make("gin_rummy").match_rules("eaia")
    with pytest.raises(InputError, match="single rounds"):
        envs.make("kuhn_poker").match_rules()


def test_games_of_players() -> None:
    """Records follow one another, add up, and are those the report counts; a wrong number is refused."""
    game, rules = envs.make("gin_rummy", preset="palace"), MATCHES["palace"]
    records: list[dict[str, Any]] = []
    players = [envs.make_bot(name, game) for name in ("greedy", "eaai_simple")]
    report = match_games(game, *players, rules=rules, games=8, seed=3, on_hand=records.append)
    assert (report["games"], report["game_pairs"]) == (8, 4)
    assert {record["game"] for record in records} == set(range(8))
    won = 0
    for number in range(8):
        mine = [record for record in records if record["game"] == number]
        assert [record["round"] for record in mine] == list(range(len(mine)))
        for record in mine:
            gained = np.subtract(record["scores_after"], record["scores_before"])
            points = round(record["points"])
            assert gained.tolist() == [points + 10 if points > 0 else 0, 10 - points if points < 0 else 0]
        assert max(mine[-1]["scores_before"]) < 100 <= max(mine[-1]["scores_after"])
        won += mine[-1]["scores_after"][0] >= 100
        last = mine[-1]
        about = {name: last[name] for name in ("game", "round", "scores_before", "scores_after")}
        stored = to_line(finished(game, last["deal"], last["actions"], last["won"], about=about))
        assert json.loads(stored)["about"] == about
    assert report["game_win_rate"].mean == won / 8
    assert report["rounds_per_game"].mean == len(records) / 8
    same = dream.evaluate(*players, games=8, seed=3, game=game, target=100)
    assert same["game_win_rate"] == report["game_win_rate"]
    assert same.points_per_hand == report["points_per_hand"]
    with pytest.raises(InputError, match="give target=100 too"):
        dream.evaluate(*players, games=8, game=game, scoring="palace")
    with pytest.raises(InputError, match="games=7 is not valid"):
        match_games(game, *players, rules=rules, games=7)
