"""Advice: against exact values on small games, and what a belief may weigh."""

from __future__ import annotations

import asyncio
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.networks.policy import ValuedPolicy
from dream.page import counsel
from dream.page.advice import Adviser, Belief, belief_summary, loss, rows
from dream.page.catalogue import Catalogue
from dream.page.compiled import CompiledGame, Player, Position
from dream.page.hub import Hub
from dream.page.refusals import RefusedError
from dream.storage.policies import find_player
from envs import InputError, Policy, boards
from envs.boards import gin_insight


def _kuhn(trained: bool = False) -> tuple[CompiledGame, Adviser]:
    game = envs.make("kuhn_poker")
    random = envs.make_bot("random", game)
    if trained:  # as policies of PPO are that counted a win as five chips more
        random = ValuedPolicy(random.apply, random.params, game, value=lambda params, view: jnp.float32(9), win_bonus=5)
    return CompiledGame(game), Adviser(game, Player("random", random), random)


@pytest.mark.parametrize("trained", [False, True])
def test_expected_points_of_kuhn_poker(trained: bool) -> None:
    """Of a king that may pass or bet, against a random player: 0.75 and 1.5 chips, by hand.

    A bet is called for 2 or folded for 1. A pass is met by a pass, for 1, or a bet; the king then folds, losing 1, or
    calls for 2, so the bet brings 0.5. The mean is 0.75; it is the same whatever the other holds, and whatever a player
    was trained to count a win as.
    """
    compiled, adviser = _kuhn(trained)
    position = compiled.look(compiled.game.from_deck(np.array([2, 0, 1])))
    points = np.concatenate([adviser.values(position.views[0], [0, 1], 0, seed) for seed in range(60)])
    means, errors = points.mean(axis=0), points.std(axis=0) / np.sqrt(len(points))
    assert np.all(np.abs(means - [0.75, 1.5]) < 4 * errors)
    found = rows([0, 1], np.array([0.5, 0.5]), points)
    assert [row["id"] for row in found] == [1, 0]
    assert found[0]["low"] < 1.5 < found[0]["high"]
    assert loss(points, 0).mean == pytest.approx(means[1] - means[0])
    assert loss(points, 1) == (0, 0, 0)


def test_expected_points_are_of_deals_in_which_the_others_would_have_played_so() -> None:
    """A queen that meets a bet in equilibrium loses a chip whether it folds or calls: kings bet three times as often.

    In deals drawn evenly a call would bring nothing, and every fold would be judged to lose a chip.
    """
    game = envs.make("kuhn_poker")
    solved = find_player("solved", game)
    compiled, adviser = CompiledGame(game), Adviser(game, Player("solved", solved), solved)
    position = compiled.step(compiled.look(game.from_deck(np.array([0, 1, 2]))), 1)
    points = np.concatenate([adviser.values(position.views[1], [0, 1], 1, seed) for seed in range(60)])
    assert np.all(points[:, 0] == -1)
    assert points[:, 1].mean() == pytest.approx(-1, abs=0.2)


def test_a_game_that_refuses_to_play_its_actions_again_has_points() -> None:
    """Of deals drawn evenly, as one that does not know how to: a call of a bet with a queen brings nothing."""

    class Forgetful(type(envs.make("kuhn_poker"))):
        def replay_actions(self, state: Any) -> Any:
            raise InputError("not by these rules")

    game = Forgetful()
    random = envs.make_bot("random", envs.make("kuhn_poker"))
    compiled, adviser = CompiledGame(game), Adviser(game, Player("random", random), Policy(random.apply, random.params))
    position = compiled.step(compiled.look(game.from_deck(np.array([0, 1, 2]))), 1)
    points = np.concatenate([adviser.values(position.views[1], [0, 1], 1, seed) for seed in range(20)])
    assert points[:, 1].mean() == pytest.approx(0, abs=0.5)


@pytest.mark.parametrize("actions", [2, 11])
def test_actions_of_equal_worth_lose_nothing(actions: int) -> None:
    """The best of eleven noisy means is better than the others by chance: that is no loss, and surely none."""
    random = np.random.default_rng(actions)
    found = [loss(random.normal(size=(48, actions)), 0) for _ in range(2000)]
    assert abs(np.mean([lost.mean for lost in found])) < 0.02
    assert np.mean([lost.low > 0 for lost in found]) < 0.04


def test_an_interval_of_few_worlds_holds_the_truth() -> None:
    """Of one batch, in 95 % of the cases; 1.96 standard errors do in 93 %."""
    random, none = np.random.default_rng(0), np.ones(2) / 2
    found = [rows([0, 1], none, random.normal(size=(16, 2))) for _ in range(4000)]
    held = [row["low"] <= 0 <= row["high"] for both in found for row in both]
    assert abs(np.mean(held) - 0.95) < 0.01


def test_a_belief_follows_the_others_play() -> None:
    """Against a random player both hidden cards are equally likely; the own card is known."""
    compiled, adviser = _kuhn()
    position = compiled.look(compiled.game.from_deck(np.array([1, 2, 0])))
    shown = belief_summary(compiled.game, position.views[0], 0, adviser.belief(position.views[0], 0, 3))
    (other,) = shown["others"]
    assert shown["own"] == [False, True, False]
    assert sum(other["chances"]) == pytest.approx(1)
    assert other["chances"][1] == 0
    assert other["chances"][2] == pytest.approx(0.5, abs=0.12)
    assert shown["weighted"]


def test_a_player_without_numbers_gives_no_advice() -> None:
    """Neither probabilities, nor expected points, nor a belief: each is refused, none is shown as if it were even."""
    game = envs.make("kuhn_poker")
    broken = Policy(lambda params, view, legal: jnp.full(legal.shape, jnp.nan), game=game)
    player = Player("broken", broken)
    adviser = Adviser(game, player, broken)
    compiled = CompiledGame(game)
    position = compiled.step(compiled.look(game.from_deck(np.array([1, 2, 0]))), 0)
    view = position.views[1]
    with pytest.raises(InputError, match="broken gives probabilities that are not finite"):
        player.probabilities(view, position.legal)
    with pytest.raises(InputError, match="no_numbers player=broken"):
        adviser.belief(view, 1, 0)
    opening = compiled.look(game.from_deck(np.array([1, 2, 0])))
    with pytest.raises(InputError, match="no_numbers player=broken"):
        adviser.values(opening.views[0], [0, 1], 0, 0)


def test_a_game_that_cannot_deal_anew_says_so() -> None:
    """In one line."""
    game = envs.make("mini_gin_rummy", preset="3x4")
    random = envs.make_bot("random", game)
    compiled, adviser = CompiledGame(game), Adviser(game, Player("random", random), random)
    position = compiled.deal(0)
    with pytest.raises(RefusedError, match="cannot_deal game=mini_gin_rummy"):
        adviser.values(position.views[0], [1], 0, 0)


def test_a_rummy_match_has_points_and_beliefs() -> None:
    """To a target, as in a single round; where the stock is made anew of the pile it is refused in one line."""
    rules = {"num_players": 2, "hand_size": 3, "max_turns": 4, "target": 20, "max_rounds": 2}
    for reshuffle in (False, True):
        game = envs.make("rummy500", **rules, reshuffle=reshuffle)
        greedy = envs.make_bot("greedy", game)
        compiled, adviser = CompiledGame(game), Adviser(game, Player("greedy", greedy), greedy)
        position = compiled.deal(1)
        view, seat = position.views[position.current], position.current
        if reshuffle:
            with pytest.raises(RefusedError, match="cannot_deal game=rummy500"):
                adviser.values(view, [0], seat, 0)
            with pytest.raises(RefusedError, match="cannot_deal game=rummy500"):
                adviser.belief(view, seat, 0)
            continue
        assert np.isfinite(adviser.values(view, [0], seat, 0)).all()
        (other,) = belief_summary(game, view, seat, adviser.belief(view, seat, 0))["others"]
        assert sum(other["chances"]) == pytest.approx(3, abs=0.05)


def test_expected_points_are_points_where_the_reward_is_another() -> None:
    """Of the 16-action game with categorical rewards: those of the same game that pays points."""
    found = []
    for reward in ("points", "categorical"):
        game = envs.make("gin_rummy_mdp", reward=reward)
        simple = envs.make_bot("heuristic", game)
        position = CompiledGame(game).deal(3)
        found.append(Adviser(game, Player("heuristic", simple), simple).values(position.views[0], [0, 1], 0, 0))
    np.testing.assert_allclose(found[0], found[1], atol=1e-3)
    assert np.abs(found[0]).max() > 1


def test_openspiels_gin_has_points_and_beliefs() -> None:
    """At the first decision: values of both actions, and a belief that is not weighted by moves, which a view lacks."""
    game = envs.make("gin_rummy_openspiel", num_ranks=5, num_suits=4, hand_size=4)
    random = envs.make_bot("random", game)
    compiled, adviser = CompiledGame(game), Adviser(game, Player("random", random), random)
    position = compiled.deal(3)
    assert adviser.values(position.views[0], [52, 54], 0, 0).shape == (16, 2)
    shown = belief_summary(game, position.views[0], 0, adviser.belief(position.views[0], 0, 1))
    assert not shown["weighted"]
    assert sum(shown["others"][0]["chances"]) == pytest.approx(4, abs=0.05)
    assert len(shown["danger"]) == 4
    assert 0 < shown["outs_chance"] < 1


def _small_hand(knock_limit: int) -> dict[str, Any]:
    """Aces of spades and hearts, twos of diamonds and clubs, of five ranks; 5H on the pile, two worlds of 3 to 1."""
    held = np.zeros((2, 20), bool)
    held[0, [10, 2, 3, 4]] = True  # AD 3S 4S 5S
    held[1, [1, 6, 2, 4]] = True  # 2S 2H 3S 5S
    return gin_insight.of_hand([0, 5, 11, 16], 4, 5, knock_limit, held, np.array([0.75, 0.25]), [9], ())


def test_outs_dangers_and_chances_of_a_hand() -> None:
    """By hand: eleven cards are in the stock, of which two aces and two twos may lower a deadwood of six.

    A two makes a set and leaves an ace; an ace makes one and leaves a two. Each has the share of worlds in which it is
    in the stock, of eleven. The ace of spades melds with 2S 3S in the second world, the twos with 2S 2H.
    """
    found = _small_hand(knock_limit=1)
    assert found["deadwood"] == 6
    assert [(out["card"], out["left"]) for out in found["outs"]] == [("2S", 1), ("2H", 1), ("AC", 2), ("AD", 2)]
    shares = np.array([0.75, 0.75, 1, 0.25]) / 11
    assert [out["chance"] for out in found["outs"]] == pytest.approx(shares, abs=6e-4)
    assert found["outs_chance"] == pytest.approx(shares.sum(), abs=2e-3)
    assert found["danger"] == {"AS": 0.25, "AH": 0, "2D": 0.25, "2C": 0.25}
    assert (found["knock"], found["gin_next"]) == ("no", 0)
    assert found["knock_next"] == pytest.approx(1.5 / 11, abs=6e-4)
    assert (_small_hand(knock_limit=6)["knock"], _small_hand(knock_limit=6)["knock_next"]) == ("draw", 1)


def test_suits_that_a_deck_lacks_are_not_in_the_stock() -> None:
    """Of two suits of five: six cards are unseen, and two of them make a run of 2S 3S."""
    game = envs.make("gin_rummy_openspiel", num_ranks=5, num_suits=2, hand_size=3)
    deck = np.array([1, 2, 9, 4, 6, 7, 5, 0, 3, 8])  # 2S 3S 5C to player 0, AC the upcard
    view = game.view(game.from_deck(deck), 0)
    found = boards.board_of(game).insight(game, view, np.zeros((1, 2, 20), bool), np.ones(1), ())
    assert {(out["card"], out["chance"]) for out in found["outs"] if out["left"] == 0} == {("AS", 0.167), ("4S", 0.167)}
    assert found["gin_next"] == pytest.approx(2 / 6, abs=6e-4)


_GINS = ("gin_rummy", "gin_rummy_mdp", "gin_rummy_openspiel", "mini_gin_rummy")


@pytest.mark.parametrize("name", _GINS)
def test_a_knock_is_said_to_be_possible_where_it_is(name: str) -> None:
    """At every decision of some rounds: now exactly where it is legal, after a draw or a discard that allows it."""
    compiled, said = CompiledGame(boards.make(name, boards.variants(name)[0].key)), set()
    for seed in range(8):
        position = compiled.deal(seed)
        while not position.done:
            when, kinds, plays = _knock(compiled, position)
            said.add(when)
            assert (when == "now") == bool(kinds & {"knock", "gin"})
            if when == "draw" and "stock" in kinds:
                assert _knock(compiled, compiled.step(position, plays["stock"]))[0] in ("now", "discard")
            if when == "discard":
                assert _knock(compiled, compiled.step(position, plays["discard"]))[0] == "now"
            kind = next((one for one in ("discard", "stock") if one in plays), next(iter(plays)))
            position = compiled.step(position, plays[kind])
    assert said >= {"now", "draw", "no"}
    assert ("discard" in said) == (name == "gin_rummy_mdp")


def _knock(compiled: CompiledGame, position: Position) -> tuple[str, set[str], dict[str, int]]:
    """Returns what is said of a knock; the kinds of what is legal; and by kind an action, the best discard."""
    game, seat = compiled.game, position.current
    view, legal = position.views[seat], np.flatnonzero(position.legal)
    board = boards.board_of(game)
    belief = Belief(np.ones((1, 2, len(board.deck(game))), bool), np.ones(1), False)  # no stock: outs are not asked for
    choices = [(boards.choice(game, position.state, view, int(action)), int(action)) for action in legal]
    plays = {one["kind"]: action for one, action in sorted(choices, key=lambda pair: -pair[0].get("left", 0))}
    return belief_summary(game, view, seat, belief, legal)["knock"], set(plays), plays


@pytest.mark.parametrize(
    ("game", "label", "playouts"), [("gin_rummy", "camper", "simple_bot"), ("leduc_poker", "random", "random")]
)
def test_beliefs_name_the_player_that_weighs_them(game: str, label: str, playouts: str) -> None:
    """A quick player in the place of another rule-based one; the advisor itself where the game has none."""

    async def asked() -> counsel.Advised:
        hub = Hub(Catalogue(runs=None))
        try:
            return await counsel.advised(hub, envs.make(game), label)
        finally:
            hub.close()

    found = asyncio.run(asked())
    assert (found.label, found.playout_label) == (label, playouts)
