"""Card features: what is said of each card held, the scorer that all cards share, and what it learns by that."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame

import envs
from dream.networks import make_history_network, make_network
from dream.networks.fit import adam, fit
from envs import InputError
from envs.gin_rummy.mdp import card_features
from envs.gin_rummy.mdp.encoding import LAYOUT

GAME = envs.make("gin_rummy_mdp")
FIRST, SLOTS, WHOLE, EACH = 2, 11, 80, 43
SMALL = {"name": "dueling", "hidden": [16, 8], "card_scorer_width": 12}
VALUES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10]


@pytest.fixture(scope="module")
def seen() -> np.ndarray:
    """Observations of the player to act along rounds that get rid of deadwood and never knock: float32[N, 342]."""

    def play(key: jax.Array) -> jax.Array:
        def step(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
            x = GAME.observe(state, state.current_player)
            likes = jnp.zeros(16).at[FIRST : FIRST + SLOTS].set(-300.0 * x[slice(*LAYOUT["left"])]).at[14:].set(-100.0)
            action = jax.random.categorical(key, jnp.where(GAME.legal_actions(state), likes, -1e9))
            return GAME.step(state, action)[0], jnp.where(state.current_player < 0, -1.0, x)

        return jax.lax.scan(step, GAME.init(key), jax.random.split(key, 60))[1]

    x = np.asarray(jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 8))).reshape(-1, 342)
    return x[x[:, 0] >= 0]


def _around(plane: np.ndarray, card: int) -> list[float]:
    """Returns what a plane holds around a card."""
    suit, rank = divmod(card, 13)
    near = [plane[card + step] if 0 <= rank + step < 13 else 0.0 for step in (-2, -1, 1, 2)]
    return [*near, sum(plane[13 * s + rank] for s in range(4) if s != suit) / 3]


def _of_card(part: dict[str, np.ndarray], card: int) -> list[float]:
    around = [x for name in ("hand", "pile", "picked", "declined") for x in _around(part[name], card)]
    return [1.0, VALUES[card % 13] / 10, *np.eye(13)[card % 13], *around]


def _melds(hand: np.ndarray, card: int) -> bool:
    low2, low1, high1, high2, others = _around(hand, card)
    return bool((low2 and low1) or (low1 and high1) or (high1 and high2) or others > 0.5)


def _expected(x: np.ndarray) -> tuple[list[float], list[list[float]]]:
    """Returns the module's tables, written out number by number."""
    part = {name: x[first:end].astype(np.float64) for name, (first, end) in LAYOUT.items()}
    left, held = 100 * part["left"], np.flatnonzero(part["hand"])
    cards = [[0.0] * EACH for _ in range(SLOTS)]
    for k, card in enumerate(held):
        least = min(left)
        own = [min((left[k] - least) / 10, 3), left[k] < least + 0.5, min(left[k], 50) / 25, min(left[k], 10) / 10]
        own += [left[k] < 0.5, part["safety"][k], part["melded"][k], 2 * part["connectors"][k]]
        cards[k] = [*own, *_of_card(part, card)]
    names = ["phase", "hand_size", "pile_size", "stock", "turns", "can_knock", "undercut_risk", "melded_share"]
    whole = [v for name in [*names, "from_gin", "margin", "activity"] for v in part[name]]
    deadwood, taken, estimate = (100 * part[name][0] for name in ("deadwood", "with_top", "estimate"))
    for points in (deadwood, taken, estimate, min(left)):
        whole += [min(points, 50) / 25, min(points, 10) / 10]
    whole += [min(max((deadwood - taken) / 10, -2), 2), taken < deadwood - 0.5]
    top = np.flatnonzero(part["top"])
    whole += [_melds(part["hand"], top[0]), *_of_card(part, top[0])] if len(top) else [0.0] * 36
    return [*whole, *part["opponent"]], cards


def test_the_features_are_those_of_the_tables(seen: np.ndarray) -> None:
    """Every number of decisions in random hands, in all phases, and the tables' counts."""
    whole, cards, actions = jax.jit(jax.vmap(GAME.card_features.of_observation))(seen)
    assert (whole.shape[1:], cards.shape[1:]) == ((WHOLE,), (SLOTS, EACH))
    counts = [int(n) for n in re.findall(r"\| (\d+) \|$", card_features.__doc__, re.MULTILINE)]
    assert (sum(counts[:5]), sum(counts[5:])) == (EACH, WHOLE)
    for n in range(0, len(seen), 3):
        expected = _expected(seen[n])
        np.testing.assert_allclose(whole[n], np.array(expected[0], np.float32), atol=2e-5)
        np.testing.assert_allclose(cards[n], np.array(expected[1], np.float32), atol=2e-5)
        held = len(np.flatnonzero(seen[n, slice(*LAYOUT["hand"])]))
        assert actions[n, :, 0].tolist() == ([FIRST + k for k in range(SLOTS)] if held == SLOTS else [-1] * SLOTS)
    assert np.all(np.any(seen[::3, 157:160] > 0, axis=0))


def _random(network: Any, key: int) -> Any:
    params = jax.jit(network.init)(jax.random.key(key))
    return jax.tree.map(lambda p: p + 0.2 * jax.random.normal(jax.random.key(p.size), p.shape), params)


def test_forward_pass_written_out(seen: np.ndarray) -> None:
    """In NumPy, card by card; a batch at once is the same."""
    network = make_network(SMALL, GAME)
    params = _random(network, 1)
    layer = {name: [np.asarray(leaf[part]) for part in ("w", "b") if part in leaf] for name, leaf in params.items()}

    def dense(name: str, x: np.ndarray) -> np.ndarray:
        w, *b = layer[name]
        return x @ w + (b[0] if b else 0)

    rows, apply = jax.jit(jax.vmap(network.inputs.of_observation))(seen[::40]), jax.jit(network.apply)
    batch = jax.jit(network.apply_inputs)(params, rows)
    for n, x in enumerate(seen[::40]):
        whole, cards = np.asarray(rows[n][:WHOLE]), np.asarray(rows[n][WHOLE:-SLOTS]).reshape(SLOTS, EACH)
        each = [np.maximum(dense("slot", card), 0) for card in cards]
        features = np.r_[whole, np.mean(each, axis=0)]
        for name in ("trunk_0", "trunk_1"):
            features = np.maximum(dense(name, features), 0)
        context = dense("joint_trunk", features)
        scores = [dense("rating", np.maximum(dense("joint_slot", e) + context, 0))[0] for e in each]
        advantages = dense("advantages", features)
        if rows[n][-1] >= 0:
            advantages[FIRST : FIRST + SLOTS] += scores
        answer = apply(params, x)
        np.testing.assert_allclose(answer[0], advantages, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(answer[1], dense("value", features)[0], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(batch[0][n], answer[0], rtol=1e-4, atol=1e-4)


def test_of_a_history_every_player_has_a_score_of_its_own() -> None:
    """Discards of player 0 and 1 are scored by their own last layer, from their own cards."""
    network = make_history_network(SMALL, GAME)
    params = _random(network, 2)
    step = jax.jit(GAME.step)
    drawn = step(GAME.init(jax.random.key(5)), 0)[0]
    acts = {0: drawn, 1: step(step(drawn, FIRST)[0], 0)[0]}

    @jax.jit
    def rated(params: Any, state: Any) -> jax.Array:
        return network.apply(params, jax.vmap(GAME.observe, (None, 0))(state, np.arange(2)))[0]

    for player, state in acts.items():
        assert int(state.current_player) == player
        assert bool(GAME.legal_actions(state)[FIRST])
        before = rated(params, state)
        for p in range(2):
            other = {**params, f"rating_{p}": jax.tree.map(lambda x: x + 1, params[f"rating_{p}"])}
            changed = np.flatnonzero(np.abs(rated(other, state) - before) > 1e-3).tolist()
            assert changed == (list(range(FIRST, FIRST + SLOTS)) if p == player else [])


def test_play_starts_near_uniform(seen: np.ndarray) -> None:
    """The advantages of a fresh network differ by less than 0.1."""
    network = make_network(SMALL, GAME)
    apply = jax.jit(jax.vmap(network.apply, in_axes=(None, 0)))
    advantages, _ = apply(jax.jit(network.init)(jax.random.key(0)), seen[::20])
    assert 0 < np.ptp(advantages, axis=1).max() < 0.1


def test_where_there_are_no_card_features() -> None:
    """A game without them, a width of none, or a window besides, is refused."""
    message = r"network.card_scorer_width=12 scores actions by card features, and coin has none; it must be null"
    with pytest.raises(InputError, match=message):
        make_network(SMALL, CoinGame())
    with pytest.raises(InputError, match=r"network\.recall=true reads what .* which gin_rummy_mdp"):
        make_network({**SMALL, "recall": True}, GAME)
    with pytest.raises(InputError, match=r"network\.recall=true goes with a card scorer"):
        make_network({"name": "dueling", "hidden": [8], "recall": True}, GAME)
    with pytest.raises(InputError, match=r"network\.card_scorer_width=0"):
        make_network({**SMALL, "card_scorer_width": 0}, GAME)
    with pytest.raises(InputError, match=r"log_window=2 cannot be combined with network\.card_scorer_width=12"):
        make_network({**SMALL, "log_window": 2}, envs.make("gin_rummy"))


def test_one_scorer_for_all_discards_is_learned_at_once() -> None:
    """After 6,400 hands, each seen once, nine of ten discards of new hands leave the least deadwood."""
    network = make_network({"name": "dueling", "hidden": [32], "card_scorer_width": 32}, GAME)
    size, steps = 64, 100

    def dealt(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        view = GAME.view(GAME.step(GAME.init(key), jnp.int32(0))[0], 0)
        return network.inputs.of_view(view), view.left.astype(jnp.float32)

    x, left = jax.jit(jax.vmap(dealt))(jax.random.split(jax.random.key(4), size * steps + 512))

    def rated(params: Any, x: jax.Array) -> jax.Array:
        return network.apply_inputs(params, x)[0][:, FIRST : FIRST + SLOTS]

    def loss(params: Any, rows: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, dict[str, jax.Array]]:
        best = rows[1] == jnp.min(rows[1], axis=1, keepdims=True)
        chances = jax.nn.softmax(rated(params, rows[0]))
        return -jnp.mean(jnp.log(jnp.sum(jnp.where(best, chances, 0.0), axis=1))), {}

    def batch(n: jax.Array) -> tuple[jax.Array, jax.Array]:
        return tuple(jax.lax.dynamic_slice_in_dim(part, n * size, size) for part in (x, left))

    @jax.jit
    def learn(params: Any) -> Any:
        optimizer = adam(max_grad_norm=1.0, l2=0.0)
        return fit(loss, optimizer, params, optimizer.init(params), batch, learning_rate=3e-3, steps=steps)[0]

    fitted = learn(jax.jit(network.init)(jax.random.key(0)))
    new, rest = x[size * steps :], np.asarray(left[size * steps :])
    chosen = np.argmax(rated(fitted, new), axis=1)
    assert np.mean(rest[np.arange(512), chosen] == rest.min(axis=1)) > 0.9
