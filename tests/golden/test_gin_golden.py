"""Stored hands replay to the same legal actions, rewards and observations: the game has not changed by accident.

A deliberate change of the game needs a new `version` and new goldens (tests/support/gin_golden.py).
"""

from __future__ import annotations

import json
from typing import Any

import gin_golden
import jax
import numpy as np
import pytest
import side_by_side

from envs.game import Game

GOLDEN = json.loads(gin_golden.FILE.read_text())
HANDS = GOLDEN["hands"]


@pytest.fixture(scope="module")
def replayed(game: Game) -> list[dict[str, np.ndarray]]:
    """Replays all hands at once: what is seen before each action and after the last, and the rewards paid till then."""
    look = jax.jit(jax.vmap(lambda state: side_by_side.sight(game, state)))
    step = jax.jit(jax.vmap(game.step))
    states = jax.jit(jax.vmap(game.from_deck))(np.array([hand["deck"] for hand in HANDS]))
    total = np.zeros((len(HANDS), 2), np.float32)
    moments = []
    for t in range(game.max_length + 1):
        moments.append({**jax.device_get(look(states)), "rewards": total})
        now = [hand["actions"][t] if t < len(hand["actions"]) else 0 for hand in HANDS]
        states, rewards, _ = step(states, np.array(now, np.int32))
        total = total + rewards
    return moments


def test_goldens_belong_to_this_version(game: Game) -> None:
    """A new version of the game has new goldens."""
    assert (GOLDEN["game"], GOLDEN["version"]) == (game.name, game.version)
    assert [hand["ending"] for hand in HANDS] == list(gin_golden.WANTED)


def _moments(replayed: list[dict[str, np.ndarray]], hand: dict[str, Any]) -> list[dict[str, np.ndarray]]:
    """Returns what one hand showed, up to its end."""
    n = HANDS.index(hand)
    return [{name: value[n] for name, value in now.items()} for now in replayed[: len(hand["actions"]) + 1]]


@pytest.mark.parametrize("hand", HANDS, ids=gin_golden.WANTED)
def test_stored_hand_replays(replayed: list[dict[str, np.ndarray]], hand: dict[str, Any]) -> None:
    """Legal actions, both observations' checksums and rewards at every step of a hand."""
    for t, now in enumerate(_moments(replayed, hand)):
        assert np.flatnonzero(now["legal"]).tolist() == hand["legal"][t]
        sums = [gin_golden.checksum(observation) for observation in now["observation"]]
        np.testing.assert_allclose(sums, hand["observation_checksums"][t], rtol=0, atol=3e-5)
        paid = hand["rewards"] if t == len(hand["actions"]) else [0, 0]
        np.testing.assert_allclose(now["rewards"], paid, rtol=0, atol=1e-6)
    assert now["player"] == -1
