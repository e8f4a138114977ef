"""Suits named by their holder: the same game to the point, on a tree that is smaller by the number of namings."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator
from typing import Any

import jax
import mini_walk
import numpy as np
import pytest

import envs
from dream.game_tree.sequence_form import expected_value, nash_conv
from dream.game_tree.tree import Tree, build_tree
from envs.gin_rummy.mini import suits
from envs.gin_rummy.mini.game import MiniGinRummy

NUM_HANDS = 512
SUITS = 4
CARD_BITS = np.uint16(63)


@dataclasses.dataclass(frozen=True)
class EveryDeal(MiniGinRummy):
    """The game from every deal, and from every way for each player to name its alike suits: what `init` draws from."""

    def _deals(self) -> Iterator[tuple]:
        plain = dataclasses.replace(self, rules=dataclasses.replace(self.rules, suit_symmetry=False))
        rules, size = self.rules, self.rules.hand_size
        for deck, _, _ in MiniGinRummy._deals(plain):
            hands = deck[:size], deck[size : 2 * size]
            ways = [list(suits.all_labels(hand, deck[2 * size], rules.num_ranks, rules.num_suits)) for hand in hands]
            for labels in itertools.product(*ways):
                yield deck, labels, 1 / (len(ways[0]) * len(ways[1]))


def _game(preset: str, suit_symmetry: bool = True, kind: type = MiniGinRummy) -> MiniGinRummy:
    made = envs.make("mini_gin_rummy", preset=preset, knock_form="best_discard", suit_symmetry=suit_symmetry)
    return kind(made.rules)


def _random_table(tree: Tree, seed: int) -> np.ndarray:
    """Returns a table far from uniform: float64[I, A]."""
    table = tree.legal * np.random.default_rng(seed).exponential(size=tree.legal.shape) ** 3
    return table / table.sum(axis=1, keepdims=True)


@functools.cache
def _tree(preset: str) -> Tree:
    return build_tree(_game(preset))


@pytest.mark.parametrize(("preset", "measured"), [("4x2", 24.38564), ("3x3", 28.63974)])
def test_uniform_play_has_the_same_nash_conv(preset: str, measured: float) -> None:
    """As measured without symmetry; in points."""
    tree = _tree(preset)
    assert 100 * nash_conv(tree, tree.uniform()) == pytest.approx(measured, abs=6e-6)


def test_one_deal_of_those_that_look_alike_stands_for_all() -> None:
    """Any policy of 3x3: value and NashConv are those of the tree of every deal, on the same information sets."""
    tree, every = _tree("3x3"), build_tree(_game("3x3", kind=EveryDeal))
    assert every.num_histories > 5 * tree.num_histories
    place = {key: n for n, key in enumerate(mini_walk.packed(tree.views))}
    order = np.array([place[key] for key in mini_walk.packed(every.views)])
    assert sorted(order.tolist()) == list(range(tree.num_infosets))
    np.testing.assert_array_equal(every.legal, tree.legal[order])
    table = _random_table(tree, 94)
    np.testing.assert_allclose(expected_value(every, table[order]), expected_value(tree, table), atol=1e-8)
    assert nash_conv(every, table[order]) == pytest.approx(nash_conv(tree, table), abs=1e-8)


def test_a_policy_stands_for_one_of_the_game_without_renaming() -> None:
    """Any table of 3x3, played in the plain game with a naming picked at random: the same value and NashConv."""
    tree, plain = _tree("3x3"), build_tree(_game("3x3", suit_symmetry=False))
    table = _random_table(tree, 95)
    lifted = _lifted(tree, plain, table)
    np.testing.assert_allclose(expected_value(plain, lifted), expected_value(tree, table), atol=1e-8)
    assert nash_conv(plain, lifted) == pytest.approx(nash_conv(tree, table), abs=1e-8)


def _lifted(tree: Tree, plain: Tree, table: np.ndarray) -> np.ndarray:
    """Returns the plain game's table of picking a naming that fits, once, and then playing `table`."""
    reach = np.ones(tree.num_infosets)
    actions = tree.game.num_actions
    for n, before in enumerate(tree.before):
        if before:
            parent, action = divmod(int(before) - 1, actions)
            reach[n] = reach[parent] * table[parent, action]
    place = {key: n for n, key in enumerate(mini_walk.packed(tree.views))}
    played, ranks = np.zeros(plain.legal.shape), plain.game.rules.num_ranks
    fits = np.zeros(plain.num_infosets, int)
    for called in itertools.permutations(range(plain.game.rules.num_suits)):
        labels = *called, *range(len(called), SUITS)
        found = [place.get(key, -1) for key in mini_walk.packed(_renamed(plain.views, labels, ranks))]
        fit = np.flatnonzero(_in_order(plain.views, labels, ranks))
        there = np.array(found)[fit]
        assert there.min() >= 0
        cards = [3 + suit * ranks + rank for suit in called for rank in range(ranks)]
        played[fit] += reach[there, None] * table[there][:, [0, 1, 2, *cards, actions - 1]]
        fits[fit] += 1
    assert {1, 2} <= set(fits.tolist())
    return played / played.sum(axis=1, keepdims=True)


def _cards(log: np.ndarray) -> np.ndarray:
    return (log & CARD_BITS).astype(int) - 1


def _renamed(views: Any, labels: tuple[int, ...], ranks: int) -> Any:
    """Returns views with suit s called labels[s], worked out here anew."""

    def rename(cards: np.ndarray) -> np.ndarray:
        return np.where(cards < 0, cards, np.array(labels)[cards // ranks] * ranks + cards % ranks)

    masks = {name: getattr(views, name)[:, np.argsort(labels)] for name in ("hand", "pile", "known")}
    log = (views.log & ~CARD_BITS) | (rename(_cards(views.log)) + 1).astype(np.uint16)
    top = np.where(views.top == 255, 255, rename(np.minimum(views.top, 4 * ranks - 1).astype(int)))
    return views._replace(**masks, log=log, top=top.astype(np.uint8))


def _in_order(views: Any, labels: tuple[int, ...], ranks: int) -> np.ndarray:
    """Returns where the hand dealt and the upcard, so renamed, come in descending order of suits: bool[I]."""
    views = _renamed(views, labels, ranks)
    dealt = views.hand.astype(int)
    card, actor, kind = _cards(views.log), views.log >> 9, views.log >> 6 & 7
    own = (actor == views.seat[:, None]) & (kind >= 1) & (kind <= 4)
    row, slot = np.nonzero(own)
    np.bitwise_xor.at(dealt, (row, card[row, slot] // ranks), 1 << card[row, slot] % ranks)
    upcard = np.where(card[:, :1] // ranks == np.arange(SUITS), 1 << card[:, :1] % ranks, 0)
    code = dealt << ranks | upcard
    return np.all(np.diff(code, axis=1) <= 0, axis=1)


@pytest.fixture(scope="module")
def both() -> list[dict[str, np.ndarray]]:
    """Random hands of 3x4, a knock for each discard, with and without symmetry: what is seen at every step of each."""
    plain, named = (envs.make("mini_gin_rummy", preset="3x4", suit_symmetry=symmetry) for symmetry in (False, True))
    rng = np.random.default_rng(96)
    decks = np.array([rng.permutation(12) for _ in range(NUM_HANDS)])
    states, other = (mini_walk.each(game.from_deck, decks) for game in (plain, named))
    labels, steps = other.labels, []
    rewards = np.zeros((2, NUM_HANDS, 2))
    for _ in range(plain.max_length + 1):
        legal, legal_named = mini_walk.each(plain.legal_actions, states), mini_walk.each(named.legal_actions, other)
        seen = {"legal": legal, "legal_named": legal_named, "player": states.current_player, "labels": labels}
        seen |= {"plain": mini_walk.observations(plain, states), "named": mini_walk.observations(named, other)}
        steps.append(seen | {"rewards": rewards})
        acts = np.maximum(states.current_player, 0)
        chosen = np.argmax(legal * rng.random(legal.shape), axis=1).astype(np.int32)
        renamed = [_action(a, labels[n, acts[n]]) for n, a in enumerate(chosen.tolist())]
        states, one, _ = mini_walk.each(plain.step, states, chosen)
        other, two, _ = mini_walk.each(named.step, other, np.array(renamed, np.int32))
        rewards = np.stack([one, two])
    return steps


def _action(action: int, labels: np.ndarray) -> int:
    """Returns an action of 3x4 in a player's names."""
    if action < 3:
        return action
    block, card = divmod(action - 3, 12)
    return 3 + 12 * block + int(labels[card // 3]) * 3 + card % 3


def _columns(labels: np.ndarray, legal: bool) -> np.ndarray:
    """Returns where a plain vector's entries stand in a renamed one: legal actions or an observation of 3x4."""
    called = labels.astype(int)[np.arange(12) // 3] * 3 + np.arange(12) % 3
    if legal:
        return np.r_[0:3, 3 + called, 15 + called]
    events = [np.r_[0:6, 6 + called, 18] + 36 + 19 * event for event in range(6)]
    return np.r_[called, 12 + called, 24 + called, np.concatenate(events), 150:161]


def test_everything_is_told_in_the_player_s_names(both: list[dict[str, np.ndarray]]) -> None:
    """Legal actions and observations are those of the plain game with the cards renamed; rewards are the same."""
    namings = set()
    for seen in both:
        np.testing.assert_array_equal(seen["rewards"][0], seen["rewards"][1])
        for n, player in enumerate(seen["player"].tolist()):
            labels = seen["labels"][n]
            for seat in range(2):
                columns = _columns(labels[seat], legal=False)
                np.testing.assert_array_equal(seen["named"][n, seat, columns], seen["plain"][n, seat])
            if player >= 0:
                columns = _columns(labels[player], legal=True)
                np.testing.assert_array_equal(seen["legal_named"][n, columns], seen["legal"][n])
                namings.add(tuple(labels[player].tolist()))
    assert len(namings) == 24
    assert np.any(both[-1]["rewards"] == 0)
    assert sum(np.any(seen["rewards"] != 0) for seen in both) > 2


def test_names_follow_from_the_deal() -> None:
    """Codes of the suits, largest first, as the host lists them; every hand of four and upcard of 3x4."""
    rows = [
        (hand, upcard) for hand in itertools.combinations(range(12), 4) for upcard in range(12) if upcard not in hand
    ]
    decks = [[*hand, *sorted({*range(12)} - {*hand, upcard})[:4], upcard] for hand, upcard in rows]
    decks = np.array([[*deck, *sorted({*range(12)} - {*deck})] for deck in decks])
    labels = mini_walk.each(_game("3x4").from_deck, decks).labels[:, 0]
    ways = [list(suits.all_labels(hand, upcard, 3, 4)) for hand, upcard in rows]
    assert [tuple(row) for row in labels.tolist()] == [way[0] for way in ways]
    listed = [suits.orbit(hand, upcard, 3, 4) for hand, upcard in rows]
    assert sum(listed) == len(rows) == 3_960
    assert all(len(way) * orbit == 24 for way, orbit in zip(ways, listed, strict=True) if orbit)


def test_init_names_alike_suits_at_random() -> None:
    """In 3x4, as often one way as the other, and each player for itself; others by their codes."""
    game = _game("3x4")
    states = mini_walk.each(game.init, jax.random.split(jax.random.key(97), 1 << 14))
    code = states.table.hands.astype(int) << 3 | states.table.pile_cards[:, None]
    np.testing.assert_array_equal(np.sort(states.labels, axis=2), np.broadcast_to(np.arange(4), states.labels.shape))
    in_names = np.take_along_axis(code, np.argsort(states.labels, axis=2), axis=2)
    assert np.all(np.diff(in_names, axis=2) <= 0)
    alike = np.all(code[:, :, 0] == code[:, :, 1], axis=1)
    first = states.labels[alike, :, 0] < states.labels[alike, :, 1]
    bound = 4 * 0.5 / np.sqrt(np.sum(alike))
    assert bound < 0.2
    np.testing.assert_allclose(np.mean(first, axis=0), 0.5, atol=bound)
    assert np.mean(first[:, 0] == first[:, 1]) == pytest.approx(0.5, abs=bound)


def test_words_tell_the_suits() -> None:
    """What each player calls S, H, D and C."""
    state = _game("3x4").from_deck(np.array([9, 10, 11, 6, 0, 1, 2, 3, 7, 4, 5, 8]))
    words = _game("3x4").to_dict(state)
    assert words["hands"][0] == ["AD", "AC", "2C", "3C"]
    assert words["suits"] == ["CDSH", "SHDC"]
    assert words["stock_in_order"]


def test_a_round_is_replayed_by_the_names_of_who_acted() -> None:
    """Rounds of random play: the deal and its actions lead to the state they are taken from."""
    game = envs.make("mini_gin_rummy", preset="3x4")
    step, legal, replay = jax.jit(game.step), jax.jit(game.legal_actions), jax.jit(game.replay_actions)
    renamed = 0
    for seed in range(8):
        rng, state, after, done = np.random.default_rng(seed), None, game.init(jax.random.key(seed)), False
        while not done:
            state = after
            after, _, done = step(state, np.int32(rng.choice(np.flatnonzero(legal(state)))))
        again, actions, count = replay(state)
        for action in actions[: int(count)]:
            again = step(again, action)[0]
        for one, two in zip(jax.tree.leaves(again), jax.tree.leaves(state), strict=True):
            np.testing.assert_array_equal(one, two)
        renamed += bool(np.any(np.asarray(state.labels) != np.arange(SUITS)))
    assert renamed
