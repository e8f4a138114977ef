"""Stored hands of `gin_rummy_mdp` replay to the same legal actions, rewards and observations.

A deliberate change of the game needs a new `version` and new goldens (tests/support/slow_mdp.py).
"""

from __future__ import annotations

import json

import gin_golden
import jax
import numpy as np
import pytest
import slow_mdp

import envs

GOLDEN = json.loads(slow_mdp.FILE.read_text())
HANDS = {hand["ending"]: hand for hand in GOLDEN["hands"]}
GAME = envs.make("gin_rummy_mdp")
SEATS = np.arange(2, dtype=np.int32)


@pytest.fixture(scope="module")
def replayed() -> dict[str, dict[str, np.ndarray]]:
    """What each hand shows before every action and after the last: legal actions, observations, rewards, player."""
    length = max(len(hand["actions"]) for hand in HANDS.values())
    padded = np.array([hand["actions"] + [0] * (length + 1 - len(hand["actions"])) for hand in HANDS.values()])

    def one(deck: jax.Array, actions: jax.Array) -> dict[str, jax.Array]:
        def body(carry: tuple, action: jax.Array) -> tuple:
            state, rewards = carry
            seen = jax.vmap(lambda seat: GAME.observe(state, seat))(SEATS)
            now = {"legal": GAME.legal_actions(state), "seen": seen, "rewards": rewards, "player": state.current_player}
            return GAME.step(state, action)[:2], now

        return jax.lax.scan(body, (GAME.from_deck(deck), np.zeros(2, np.float32)), actions)[1]

    decks = np.array([hand["deck"] for hand in HANDS.values()])
    shown = jax.device_get(jax.jit(jax.vmap(one))(decks, padded.astype(np.int32)))
    return {ending: jax.tree.map(lambda x, n=n: x[n], shown) for n, ending in enumerate(HANDS)}


def test_goldens_belong_to_this_version() -> None:
    """A new version of the game has new goldens."""
    assert (GOLDEN["game"], GOLDEN["version"]) == (GAME.name, GAME.version)
    assert tuple(HANDS) == slow_mdp.WANTED


@pytest.mark.parametrize("ending", slow_mdp.WANTED)
def test_stored_hand_replays(replayed: dict[str, dict[str, np.ndarray]], ending: str) -> None:
    """Legal actions, both observations' checksums and the reward at every step of a hand."""
    hand, shown = HANDS[ending], replayed[ending]
    end = len(hand["actions"])
    for t in range(end + 1):
        assert np.flatnonzero(shown["legal"][t]).tolist() == hand["legal"][t]
        sums = [gin_golden.checksum(observation) for observation in shown["seen"][t]]
        np.testing.assert_allclose(sums, hand["observation_checksums"][t], rtol=0, atol=3e-5)
    np.testing.assert_allclose(shown["rewards"][end], hand["rewards"], rtol=0, atol=1e-6)
    assert not shown["rewards"][:end].any()
    assert shown["player"][end] == -1
