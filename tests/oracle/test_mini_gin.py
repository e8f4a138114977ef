"""Gin rummy on reduced decks: sizes and values measured with another engine; plain Python on every history."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import jax
import mini_walk
import numpy as np
import pytest
import slow_gin
import slow_mini_gin

import envs
from dream.game_tree.sequence_form import expected_value, nash_conv
from dream.game_tree.tree import Tree, build_tree
from envs.gin_rummy.mini.game import UNDECIDED, MiniGinRummy
from envs.random_play import play_random

FORCED_STOCK = 2
STOCK = 0
ROUNDING = 1e-6
MEASURED = {
    "4x2": {
        "histories": 93_761,
        "terminal": 60_160,
        "infosets": 13_440,
        "infoset_actions": 50_832,
        "endings": [0.0959, 0.0974, 0.0052, 0.0, 0.8015],
        "nash_conv": 24.38564,
    },
    "3x3": {
        "histories": 1_108_561,
        "terminal": 760_800,
        "infosets": 49_896,
        "infoset_actions": 205_368,
        "endings": [0.1620, 0.1201, 0.0185, 0.0224, 0.6769],
        "nash_conv": 28.63974,
    },
    "5x2": {
        "histories": 768_201,
        "terminal": 528_800,
        "infosets": 86_940,
        "infoset_actions": 400_440,
        "endings": [0.0745, 0.0273, 0.0101, 0.0045, 0.8835],
        "nash_conv": 12.14233,
    },
}
"""Peers' figures with one knock action: histories with the deal and each stock draw as chance nodes and no node for the
forced draw; knocks won (gin apart), gin, undercut, tie and dead hands under uniform play; NashConv in points."""


@functools.cache
def _tree(preset: str) -> Tree:
    return build_tree(_game(preset))


def _game(preset: str) -> MiniGinRummy:
    return envs.make("mini_gin_rummy", preset=preset, knock_form="best_discard", suit_symmetry=False)


@pytest.fixture(scope="module", params=MEASURED)
def preset(request: pytest.FixtureRequest) -> str:
    """Each preset measured whole."""
    return request.param


def _points(tree: Tree, table: np.ndarray) -> float:
    return nash_conv(tree, table) * tree.game.reward_scale


def test_sizes_are_those_measured(preset: str) -> None:
    """Histories, ends, information sets and their actions, the forced draw of player 0 counted as chance's."""
    tree, measured = _tree(preset), MEASURED[preset]
    forced = tree.views.phase == FORCED_STOCK
    in_forced = np.sum(forced[tree.infoset[tree.player >= 0]])
    draws = len(np.unique(tree.parent[(tree.action == STOCK) & (tree.parent >= 0)]))
    assert tree.num_histories - in_forced + draws + 1 == measured["histories"]
    assert np.sum(tree.player < 0) == measured["terminal"]
    assert tree.num_infosets - np.sum(forced) == measured["infosets"]
    assert tree.legal[~forced].sum() == measured["infoset_actions"]
    assert np.flatnonzero(tree.legal[forced].any(axis=0)).tolist() == [STOCK]


def test_nash_conv_of_uniform_play_is_that_measured(preset: str) -> None:
    """In points, to all digits measured."""
    tree = _tree(preset)
    assert _points(tree, tree.uniform()) == pytest.approx(MEASURED[preset]["nash_conv"], abs=6e-6)


def test_both_values_are_the_plain_sum_over_histories(preset: str) -> None:
    """Of uniform play, each player's by its own sweep: an error in one side's indices shows here."""
    tree = _tree(preset)
    over = tree.player < 0
    plain = _reach(tree)[over] @ tree.payoff[over]
    np.testing.assert_allclose(expected_value(tree, tree.uniform()), plain, atol=1e-12)


def test_uniform_play_ends_as_measured(preset: str) -> None:
    """How often a knocker wins, goes gin, is undercut, ties, and a hand dies."""
    tree = _tree(preset)
    reach = _reach(tree)
    over = tree.player < 0
    knocked = over & (tree.action == tree.game.num_actions - 1)
    before = np.maximum(tree.parent, 0)
    won = np.round(tree.payoff[np.arange(len(over)), np.maximum(tree.player[before], 0)] * 100)
    groups = [
        knocked & (won > 0) & (won < 25),
        knocked & (won >= 25),
        knocked & (won < 0),
        knocked & (won == 0),
        over & ~knocked,
    ]
    np.testing.assert_allclose([reach[group].sum() for group in groups], MEASURED[preset]["endings"], atol=5.1e-5)


def _reach(tree: Tree) -> np.ndarray:
    """Returns the probability of every history under uniform play."""
    reach = tree.chance.copy()
    choices = np.where(tree.infoset >= 0, tree.legal.sum(axis=1)[tree.infoset], 1)
    own = np.ones(tree.num_histories)
    for low, high in itertools.pairwise(tree.levels[1:]):
        up = tree.parent[low:high]
        own[low:high] = own[up] / choices[up]
    return reach * own


@pytest.fixture(scope="module", params=["best_discard", "each_discard"])
def whole(request: pytest.FixtureRequest) -> mini_walk.Walk:
    """All histories of 4x2, from the deals the game lists."""
    game = envs.make("mini_gin_rummy", preset="4x2", knock_form=request.param)
    rules = slow_mini_gin.Rules(one_knock=request.param == "best_discard")
    states, probs = jax.device_get(game.initial_outcomes())
    assert len(probs) == 1_120
    assert np.all(probs == np.float32(1 / 1_120))
    assert np.all(states.table.deck[:, rules.hand_size * 2 + 1 :] == UNDECIDED)
    decks = [_filled(deck, rules.num_cards) for deck in states.table.deck.tolist()]
    return mini_walk.walk(game, rules, decks, states)


def _filled(deck: list[int], num_cards: int) -> list[int]:
    """Puts the cards missing from a deck behind those that are decided."""
    decided = [card for card in deck if card < num_cards]
    return decided + sorted(set(range(num_cards)) - set(decided))


def _check(walk: mini_walk.Walk) -> None:
    """Asserts that all that is told of every history is what the slow hands tell."""
    hands = walk.hands
    np.testing.assert_array_equal(walk.legal, np.stack([hand.legal() for hand in hands]))
    np.testing.assert_array_equal(walk.states.current_player, [hand.to_act for hand in hands])
    np.testing.assert_array_equal(walk.states.phase, [hand.phase for hand in hands])
    np.testing.assert_array_equal(walk.done, [hand.phase == slow_gin.OVER for hand in hands])
    np.testing.assert_allclose(walk.rewards, [hand.rewards for hand in hands], atol=ROUNDING)
    np.testing.assert_array_equal(walk.rewards.sum(axis=1), 0)
    np.testing.assert_allclose(walk.chance, walk.slow_chance, rtol=1e-7)


def test_every_history_agrees_with_plain_python(whole: mini_walk.Walk) -> None:
    """Legal actions, player, phase, end, rewards, and an outcome for each card of the stock."""
    one_knock = whole.game.rules.knock_form == "best_discard"
    assert len(whole.hands) == (87_040 if one_knock else 88_800)
    _check(whole)
    endings = {hand.ending for hand in whole.hands}
    assert endings == {"", "stock", "turns", "knock", "gin", "undercut"}


def test_observations_agree_with_plain_python(whole: mini_walk.Walk) -> None:
    """Both players' vectors on every eleventh history."""
    some = np.arange(0, len(whole.hands), 11)
    ours = mini_walk.observations(whole.game, jax.tree.map(lambda x: x[some], whole.states))
    theirs = np.stack([[whole.hands[n].observation(seat) for seat in range(2)] for n in some])
    np.testing.assert_allclose(ours, theirs, atol=ROUNDING)


def test_a_view_is_what_its_player_has_seen(whole: mini_walk.Walk) -> None:
    """Equal where and only where own cards and events seen are equal: nothing leaks, nothing is forgotten."""
    for seat in range(2):
        _assert_views_are_knowledge(whole, seat)


def _assert_views_are_knowledge(walk: mini_walk.Walk, seat: int) -> None:
    in_play = np.flatnonzero(~walk.done)
    keys = mini_walk.keys(walk.game, seat, walk.states)
    pairs = {(keys[n], walk.hands[n].knowledge(seat)) for n in in_play}
    assert len(pairs) == len({key for key, _ in pairs}) == len({known for _, known in pairs}) < len(in_play) / 2


@pytest.mark.parametrize(("preset", "seat"), [("3x3", 1), ("3x4", 0), ("3x4", 1)])
def test_all_deals_to_one_hand(preset: str, seat: int) -> None:
    """What one player may meet with one hand and upcard, stocks of several cards and layoffs included."""
    rules = slow_mini_gin.PRESETS[preset]
    walk = mini_walk.walk(_game(preset), rules, _deals_around(rules, seat))
    _check(walk)
    _assert_views_are_knowledge(walk, seat)


def _deals_around(rules: slow_mini_gin.Rules, seat: int) -> list[list[int]]:
    """Lists the deals of one hand with one upcard to a seat, with every hand of the other."""
    rng = np.random.default_rng(91)
    own, upcard = np.split(rng.permutation(rules.num_cards)[: rules.hand_size + 1], [rules.hand_size])
    left = sorted(set(range(rules.num_cards)) - {*own.tolist(), *upcard.tolist()})
    decks = []
    for other in itertools.combinations(left, rules.hand_size):
        hands = [own.tolist(), list(other)] if seat == 0 else [list(other), own.tolist()]
        decks.append([*hands[0], *hands[1], *upcard.tolist(), *sorted(set(left) - set(other))])
    return decks


def test_random_play_returns_what_the_tree_says() -> None:
    """From random deals with the whole deck decided: mean reward within four standard errors of the exact value."""
    tree = _tree("4x2")
    reach, over = _reach(tree), tree.player < 0
    assert reach[over].sum() == pytest.approx(1, abs=1e-9)
    mean = np.sum(reach[over] * tree.payoff[over, 0])
    spread = math.sqrt(np.sum(reach[over] * tree.payoff[over, 0] ** 2) - mean**2)
    np.testing.assert_allclose(expected_value(tree, tree.uniform()), [mean, -mean], atol=1e-12)
    games = 1 << 17
    played = play_random(tree.game, jax.random.key(92), games)
    assert float(played.rewards[0]) / games == pytest.approx(mean, abs=4 * spread / math.sqrt(games))


def test_a_stock_decided_by_init_changes_nothing_before_it_is_drawn() -> None:
    """`outcomes` of a state from a deck offers every card of the stock, and `step` draws the deck's next."""
    game = _game("3x3")
    states = jax.device_get(jax.vmap(game.init)(jax.random.split(jax.random.key(93), 64)))
    draws = np.full(64, STOCK, np.int32)
    after, probs, _, _ = mini_walk.each(game.outcomes, states, draws)
    stock = np.sort(states.table.deck[:, 7:], axis=1)
    assert np.all(probs == 0.5)
    np.testing.assert_array_equal(after.table.deck[:, :, 7], stock)
    assert np.all(after.table.deck[:, :, 8] == UNDECIDED)
    drawn, _, _ = mini_walk.each(game.step, states, draws)
    same = np.argmax(stock == states.table.deck[:, 7:8], axis=1)
    ours = jax.tree.map(lambda x: x[np.arange(64), same], after)
    for seat in range(2):
        assert mini_walk.keys(game, seat, drawn) == mini_walk.keys(game, seat, ours)


def _message(**rules: Any) -> str:
    with pytest.raises(envs.InputError) as error:
        envs.make("mini_gin_rummy", **rules)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_wrong_rules_are_answered_in_one_line() -> None:
    """Preset, knock form, turns, rules that follow from others, a deck too large to be listed."""
    assert "did you mean '4x2'?" in _message(preset="4x3")
    assert "best_discard, each_discard" in _message(knock_form="any")
    assert "[1, 124]" in _message(max_turns=0)
    assert "'max_actions'" in _message(max_actions=8)
    assert "do not fit" in _message(preset="4x2", hand_size=4)
    with pytest.raises(envs.InputError, match="too large to be listed: 18,729,838,400 deals"):
        envs.make("mini_gin_rummy", num_ranks=13, num_suits=4).initial_outcomes()


def test_rules_replace_those_of_the_preset() -> None:
    """4x2 unless another is named; num_actions by knock form, max_actions by turns and offers."""
    plain = envs.make("mini_gin_rummy")
    assert plain == envs.make("mini_gin_rummy", preset="4x2")
    assert plain.num_actions == 3 + 2 * 8
    assert envs.make("mini_gin_rummy", preset="3x4", knock_form="best_discard").num_actions == 4 + 12
    longer = envs.make("mini_gin_rummy", preset="5x2", max_turns=3)
    assert (longer.rules.hand_size, longer.rules.knock_limit, longer.max_length) == (4, 3, 8)
    assert envs.make("mini_gin_rummy", first_offer=False).max_length == 4
