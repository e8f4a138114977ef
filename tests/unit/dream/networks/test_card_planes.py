"""Planes of cards: what they show in OpenSpiel's gin rummy, and the network that looks at them as pictures."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame

import envs
from dream.networks import make_network
from envs import InputError

GAME = envs.make("gin_rummy_openspiel", observation="planes")
SMALL = {"name": "card_planes", "channels": 4, "hidden": [16, 8], "head": 8}
SUITS, RANKS = "scdh", "A23456789TJQK"


def _cards(names: list[str]) -> np.ndarray:
    plane = np.zeros(52)
    plane[[13 * SUITS.index(name[1]) + RANKS.index(name[0]) for name in names]] = 1
    return plane


@pytest.fixture(scope="module")
def shown() -> list[tuple[dict[str, Any], int, np.ndarray]]:
    """Decisions of random hands: the state in words, the player to act, its observation."""
    step, legal, observe = jax.jit(GAME.step), jax.jit(GAME.legal_actions), jax.jit(GAME.observe)
    rng, found = np.random.default_rng(5), []
    for seed in range(2):
        state = GAME.init(jax.random.key(seed))
        while int(state.phase) <= 2 and len(found) < 80 * (seed + 1):
            player = int(state.current_player)
            found.append((GAME.to_dict(state), player, np.asarray(observe(state, player))))
            state = step(state, rng.choice(np.flatnonzero(legal(state))))[0]
    return found


def test_planes_show_the_cards(shown: list[tuple[dict[str, Any], int, np.ndarray]]) -> None:
    """Own hand, pile, and the upcard as -1 among the cards the opponent was seen taking."""
    assert GAME.observation_size == 167
    known = 0
    for reported, player, x in shown:
        assert x.shape == (167,)
        np.testing.assert_array_equal(x[:52], _cards(reported["hands"][player]))
        np.testing.assert_array_equal(x[52:104], _cards(reported["pile"]))
        theirs, upcard = x[104:156] > 0, _cards([reported["upcard"]] if reported["upcard"] else [])
        np.testing.assert_array_equal(x[104:156] < 0, upcard)
        assert not np.any(theirs & ~_cards(reported["hands"][1 - player]).astype(bool))
        known += theirs.sum()
    assert known > 10


def test_numbers_beside_the_planes(shown: list[tuple[dict[str, Any], int, np.ndarray]]) -> None:
    """Phase, deadwood with and without the upcard, knock card and stock."""
    from envs.gin_rummy import deadwood, deadwood_after_discard

    after, plain = jax.jit(deadwood_after_discard), jax.jit(deadwood)
    phases = set()
    for reported, player, x in shown[::3]:
        hand = _cards(reported["hands"][player]).astype(bool)
        drawn = reported["phase"] == "discard"
        own = int(after(hand).min()) if drawn else int(plain(hand))
        taken = hand | (_cards([reported["upcard"]]).astype(bool) if reported["upcard"] else False)
        best = own if drawn else min(own, int(after(taken).min()))
        phase = [reported["phase"] == name for name in ("first_upcard", "draw", "discard")]
        stock = len(reported["stock"]) / 31
        expected = [*phase, own / 100, best / 100, best < own, own <= reported["knock_card"]]
        expected += [reported["knock_card"] / 10, stock, reported["passes"] / 2, reported["repeated"]]
        np.testing.assert_allclose(x[156:], np.array(expected, np.float32), rtol=1e-6)
        phases.add(reported["phase"])
    assert phases == {"first_upcard", "draw", "discard"}


def test_recall_adds_the_discards_of_the_opponent() -> None:
    """All its discards and its last one, from the moves played; at the opponent's turn the last is not told."""
    game = envs.make("gin_rummy_openspiel", observation="recall")
    step, legal = jax.jit(game.step), jax.jit(game.legal_actions)
    observe, planes = jax.jit(game.observe), jax.jit(GAME.observe)
    rng, taken_back = np.random.default_rng(7), 0
    for seed in range(4):
        state, shed = game.init(jax.random.key(seed)), [[], []]
        while int(state.phase) <= 2:
            player = int(state.current_player)
            for seat in range(2):
                x, theirs = np.asarray(observe(state, seat)), shed[1 - seat]
                np.testing.assert_array_equal(x[:167], planes(state, seat))
                assert np.flatnonzero(x[167:219]).tolist() == sorted(set(theirs))
                assert np.flatnonzero(x[219:]).tolist() == (theirs[-1:] if seat == player else [])
                taken_back += len(set(theirs) & set(np.flatnonzero(x[:52]).tolist()))
            action = int(rng.choice(np.flatnonzero(legal(state))))
            if int(state.phase) == 2 and action < 52:
                shed[player].append(action)
            state = step(state, action)[0]
    assert taken_back > 20


def test_open_hands_shows_the_other_hand_and_is_another_game() -> None:
    """Planes but for the known cards, which are the opponent's hand; a policy that learned it is not one for planes."""
    game = envs.make("gin_rummy_openspiel", observation="open_hands")
    state = game.init(jax.random.key(1))
    reported, x = game.to_dict(state), np.asarray(game.observe(state, 0))
    expected = np.array(GAME.observe(state, 0))
    assert not np.any(expected[104:156] > 0)
    expected[104:156] += _cards(reported["hands"][1])
    np.testing.assert_array_equal(x, expected)
    assert game.identity != GAME.identity


def test_the_kind_of_observation_is_part_of_the_game() -> None:
    """A policy that reads planes is not one that reads the tensor; an unknown kind is refused."""
    plain = envs.make("gin_rummy_openspiel")
    assert (plain.card_planes, plain.observation_size) == (0, 644)
    assert plain.identity["rules"]["observation"] == "tensor" != GAME.identity["rules"]["observation"]
    with pytest.raises(InputError, match="did you mean 'planes'"):
        envs.make("gin_rummy_openspiel", observation="plane")


def _forward(params: Any, x: np.ndarray) -> tuple[np.ndarray, float]:
    """Returns the network's outputs, written out place by place."""
    layer = {name: (np.asarray(p["w"], np.float64), np.asarray(p["b"], np.float64)) for name, p in params.items()}
    planes, parts = x[:156].reshape(3, 4, 13), [x]
    for name, (down, right) in (("ranks", (0, 1)), ("suits", (1, 0))):
        w, b = layer[name]
        out = np.zeros((4, 13, len(b)))
        for suit in range(4):
            for rank in range(13):
                seen = np.zeros((3, 3))
                for n, step in enumerate((-1, 0, 1)):
                    s, r = suit + step * down, rank + step * right
                    if 0 <= s < 4 and 0 <= r < 13:
                        seen[n] = planes[:, s, r]
                out[suit, rank] = np.maximum(seen.reshape(-1) @ w + b, 0)
        parts.append(out.reshape(-1))

    def dense(name: str, x: np.ndarray) -> np.ndarray:
        return x @ layer[name][0] + layer[name][1]

    features = np.concatenate(parts)
    for name in ("trunk_0", "trunk_1"):
        features = np.maximum(dense(name, features), 0)
    heads = {name: np.maximum(dense(name, features), 0) for name in ("actor", "critic")}
    return dense("logits", heads["actor"]), dense("value", heads["critic"])[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("bfloat16", 0.05)])
def test_forward_pass_written_out(
    dtype: str, tolerance: float, shown: list[tuple[dict[str, Any], int, np.ndarray]]
) -> None:
    """Convolutions over three neighbouring ranks and three neighbouring suits, trunk, separate heads."""
    network = make_network({**SMALL, "dtype": dtype}, GAME)
    params = network.init(jax.random.key(2))
    params = jax.tree.map(lambda p: p + 0.1 * jax.random.normal(jax.random.key(3), p.shape), params)
    apply = jax.jit(network.apply)
    for _, _, x in shown[::20]:
        logits, value = apply(params, x)
        theirs, worth = _forward(params, x)
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(logits, theirs, atol=tolerance * scale)
        assert float(value) == pytest.approx(worth, abs=tolerance * max(scale, abs(worth)))
        assert logits.dtype == value.dtype == jnp.float32
    assert {leaf.dtype for leaf in jax.tree.leaves(params)} == {np.dtype("float32")}


def test_a_game_without_planes_has_the_trunk_alone() -> None:
    """No convolution; the sizes are the game's."""
    network = make_network(SMALL, CoinGame())
    params = network.init(jax.random.key(0))
    assert params.keys() == {"trunk_0", "trunk_1", "actor", "critic", "logits", "value"}
    logits, value = network.apply(params, jnp.zeros(CoinGame().observation_size))
    assert (logits.shape, value.shape) == ((3,), ())
    with pytest.raises(InputError, match=r"network.hidden=\[\] is empty"):
        make_network({**SMALL, "hidden": []}, GAME)
