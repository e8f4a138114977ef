"""Dealing anew what a player cannot see: the view stays, the hand can be replayed, all such deals are as likely."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import gin_actors
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax

import envs
from envs import InputError
from envs.game import Game
from envs.gin_rummy.core import determinize, likely
from envs.gin_rummy.event_log.state import DISCARD
from envs.random_play import uniform_action

NUM_HANDS, STEPS = 48, 48
SEATS = np.arange(2, dtype=np.int32)
REDUCED = {"5x2": "mini_gin_rummy"}


def _same(one: Any, two: Any) -> Array:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return jnp.all(jnp.stack([jnp.all(a == b) & jnp.asarray(a.dtype == b.dtype) for a, b in pairs]))


def _replayed(game: Game, state: Any) -> Any:
    """Plays the actions that led to a state once more on its deal."""
    deal, actions, count = game.replay_actions(state)

    def body(t: Array, state: Any) -> Any:
        return jax.tree.map(lambda a, b: jnp.where(t < count, b, a), state, game.step(state, actions[t])[0])

    return lax.fori_loop(0, min(len(actions), STEPS + 1), body, deal)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _checks(game: Game, is_likely: bool, key: Array, style: Array) -> dict[str, Array]:
    """Plays a hand and deals anew for both players before each action: what holds, bool[T, 2], and whether in play."""
    deal_key, play_key, hidden_key = jax.random.split(key, 3)

    def body(state: Any, t: Array) -> tuple[Any, dict[str, Array]]:
        def one(seat: Array) -> dict[str, Array]:
            view = game.view(state, seat)
            other_key = jax.random.fold_in(hidden_key, 2 * t + seat)
            other = game.likely_world(view, other_key)[0] if is_likely else game.determinize(view, other_key)
            acts = state.current_player == seat
            return {
                "view": _same(view, game.view(other, seat)),
                "legal": ~acts | jnp.all(game.legal_actions(state) == game.legal_actions(other)),
                "replay": _same(_replayed(game, other), other),
                "other": jnp.any(other.table.hands != state.table.hands),
            }

        checked = jax.vmap(one)(SEATS)
        bits = jax.random.bits(jax.random.fold_in(play_key, t))
        if game.name == "gin_rummy":
            action = gin_actors.mixed(game, state, bits, style)
        else:
            legal = game.legal_actions(state)
            action = jnp.where(jnp.any(legal), uniform_action(bits, legal), 0)
        return game.step(state, action)[0], checked | {"in_play": state.current_player >= 0}

    return lax.scan(body, game.init(deal_key), jnp.arange(min(game.max_length, STEPS)))[1]


@pytest.fixture(scope="module", params=["gin_rummy", *REDUCED, "gin_rummy, likely", "5x2, likely"])
def checked(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    """What holds at the decisions of many hands: bool[decisions, 2]."""
    name, is_likely, _ = request.param.partition(", likely")
    game = envs.make(REDUCED[name], preset=name) if name in REDUCED else envs.make(name)
    keys = jax.random.split(jax.random.key(7), NUM_HANDS)
    found = jax.device_get(jax.vmap(functools.partial(_checks, game, bool(is_likely)))(keys, jnp.arange(NUM_HANDS)))
    in_play = found.pop("in_play")
    return {what: held[in_play] for what, held in found.items()}


def test_the_view_is_the_same_to_the_bit(checked: dict[str, np.ndarray]) -> None:
    """For the player to act as for the one who waits; and so are the legal actions."""
    assert len(checked["view"]) > 4 * NUM_HANDS
    assert checked["view"].all()
    assert checked["legal"].all()


def test_the_hand_could_have_gone_that_way(checked: dict[str, np.ndarray]) -> None:
    """The logged actions played on the new deck lead to the very state, every field of it."""
    assert checked["replay"].all()


def test_cards_are_dealt_anew(checked: dict[str, np.ndarray]) -> None:
    """The opponent nearly always holds other cards; on ten cards it has no choice now and then."""
    assert checked["other"].mean() > 0.4


def _history() -> tuple[Game, Any, list[int]]:
    """A hand on twelve cards: the opponent of player 0 shows a card of its deal or its first draw, then another."""
    game = envs.make("gin_rummy", num_ranks=4, num_suits=3, hand_size=3, knock_limit=0, stock_floor=0)
    deck = np.array([0, 5, 10, 1, 7, 8, 3, 2, 4, 6, 9, 11])
    return game, deck, [2, 2, 0, 3 + 10, 0, 3 + 7, 0, 3 + 0, 0, 3 + 1]


def test_all_consistent_deals_are_equally_likely() -> None:
    """Sampled decks against the list of all decks that look the same, on a hand of twelve cards."""
    game, deck, actions = _history()
    free = [3, 4, 5, 8, 10, 11]
    decks = np.array([deck] * 721)
    decks[1:, free] = list(itertools.permutations(deck[free]))

    def play(deck: Array) -> tuple[Any, Array]:
        def body(carry: tuple, action: Array) -> tuple:
            state, fine = carry
            return (game.step(state, action)[0], fine & game.legal_actions(state)[action]), None

        (state, fine), _ = lax.scan(body, (game.from_deck(deck), jnp.bool_(True)), jnp.array(actions))
        return game.view(state, 0), fine

    views, legal = jax.jit(jax.vmap(play))(decks)
    view, others = jax.tree.map(lambda x: x[0], views), jax.tree.map(lambda x: x[1:], views)
    alike = np.asarray(jax.vmap(lambda other: _same(view, other))(others))
    listed = decks[1:][alike & np.asarray(legal[1:])]
    # The deal's order within a hand means nothing: compare what was dealt, drawn and left, by place.
    listed[:, 3:6].sort(axis=1)
    kinds, counts = np.unique(listed, axis=0, return_counts=True)
    assert len(kinds) > 20
    assert np.all(counts == 6)
    keys = jax.random.split(jax.random.key(1), 200 * len(kinds))
    sampled = np.array(jax.jit(jax.vmap(lambda key: game.determinize(view, key).table.deck))(keys))
    sampled[:, 3:6].sort(axis=1)
    sampled[:, :3] = deck[:3]
    found, seen = np.unique(sampled, axis=0, return_counts=True)
    np.testing.assert_array_equal(found, kinds)
    chi_square = np.sum((seen - 200) ** 2 / 200)
    assert abs(chi_square - len(kinds)) < 5 * np.sqrt(2 * len(kinds))


def test_likely_deals_have_the_density_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same hand: each deal as often as exp(-b deadwood) among all of them, and all alike once weighed."""
    monkeypatch.setattr(likely, "_MOST_SHARPNESS", 0.3)
    monkeypatch.setattr(likely, "_SHARPNESS_PER_TURN", 0.3)
    game, deck, actions = _history()
    state = functools.reduce(lambda state, action: game.step(state, action)[0], actions, game.from_deck(deck))
    view = game.view(state, 0)
    draw = jax.jit(jax.vmap(lambda key: determinize.sample_likely(game.rules, view, view.phase == DISCARD, key)))
    boards, logs = draw(jax.random.split(jax.random.key(2), 40_000))
    decks, deadwood = np.array(boards.deck), np.asarray(boards.deadwood)[:, 1]
    np.testing.assert_allclose(logs, 0.3 * deadwood, rtol=1e-6)
    decks[:, 3:6].sort(axis=1)
    decks[:, :3] = deck[:3]
    _, first, kind = np.unique(decks, axis=0, return_index=True, return_inverse=True)
    assert len(first) > 20
    wanted = np.exp(-0.3 * deadwood[first]) / np.exp(-0.3 * deadwood[first]).sum()
    assert wanted.max() > 2 * wanted.min()
    expected = wanted * len(decks)
    chi_square = np.sum((np.bincount(kind) - expected) ** 2 / expected)
    assert abs(chi_square - len(first)) < 5 * np.sqrt(2 * len(first))
    weighed = np.bincount(kind, np.exp(logs)) / np.exp(logs).sum()
    np.testing.assert_allclose(weighed, 1 / len(first), rtol=0.3)


def test_a_game_that_cannot_says_so() -> None:
    """Suits under names of the players' own."""
    with pytest.raises(InputError, match="cannot redeal"):
        envs.make("mini_gin_rummy", preset="3x4").determinize(None, jax.random.key(1))


@pytest.mark.parametrize(
    ("name", "actions", "seat", "hidden"),
    [
        ("kuhn_poker", [0, 1], 0, 2),
        ("leduc_poker", [1, 1, 2], 0, 4),
        ("leduc_poker", [1], 1, 20),
        ("liars_dice", [3], 1, 6),
    ],
)
def test_small_games_deal_anew(name: str, actions: list[int], seat: int, hidden: int) -> None:
    """The player's view stays, to the bit, and every deal behind it comes as often."""
    game = envs.make(name)
    state = functools.reduce(lambda state, action: game.step(state, action)[0], actions, game.init(jax.random.key(3)))
    view = game.view(state, seat)
    others = jax.jit(jax.vmap(functools.partial(game.determinize, view)))(jax.random.split(jax.random.key(4), 6000))
    assert np.all(jax.vmap(lambda other: _same(view, game.view(other, seat)))(others))
    assert np.all(jax.vmap(lambda other: _same(game.legal_actions(state), game.legal_actions(other)))(others))
    rows = np.concatenate([np.asarray(x).reshape(6000, -1) for x in jax.tree.leaves(others)], axis=1)
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    assert len(counts) == hidden
    expected = 6000 / hidden
    assert np.sum((counts - expected) ** 2 / expected) < hidden - 1 + 5 * np.sqrt(2 * hidden)
