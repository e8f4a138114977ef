"""`gin_rummy_mdp` in lockstep with a plain Python one written from the rules' text: all players, all endings."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
import slow_mdp

import envs
from envs import cards

OTHER = slow_mdp.Rules(
    knock_limit=8,
    gin_bonus=20,
    undercut_bonus=15,
    undercut_on_tie=False,
    stock_floor=5,
    max_actions=61,
    layoff="exact",
    reward="categorical",
)
"""Every rule other than the default."""
CASES = {"r42": (slow_mdp.Rules(), {}, 90), "other": (OTHER, dataclasses.asdict(OTHER), 50)}
ROUNDING = 1e-6
SEATS = np.arange(2, dtype=np.int32)


@pytest.fixture(scope="module", params=CASES)
def played(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Plays hands both ways, past their end with actions of all kinds, and gathers where they differ."""
    rules, named, count = CASES[request.param]
    game = envs.make("gin_rummy_mdp", **named)
    decks, actions = slow_mdp.sample(rules, count, seed=31)
    look = jax.jit(jax.vmap(lambda state: _sight(game, state)))
    step = jax.jit(jax.vmap(game.step))
    states = jax.jit(jax.vmap(game.from_deck))(decks)
    hands = [slow_mdp.Hand(deck, rules) for deck in decks]
    observations = np.stack([_both(hand) for hand in hands])
    rewards, done = np.zeros((count, 2), np.float32), np.zeros(count, bool)
    differences: collections.Counter = collections.Counter()
    worst = np.zeros(game.observation_size)
    for t in range(max(len(played) for played in actions) + 2):
        seen = {name: np.asarray(value) for name, value in look(states).items()}
        pairs = {
            "legal": (seen["legal"], np.stack([hand.legal() for hand in hands])),
            "player": (seen["player"], [hand.to_act for hand in hands]),
            "phase": (seen["phase"], [hand.phase for hand in hands]),
            "rewards": (rewards, np.float32([hand.rewards for hand in hands])),
            "done": (done, [hand.phase == slow_mdp.OVER for hand in hands]),
            "potential": (seen["potential"], -_deadwood(hands)),
            "auxiliary": (seen["auxiliary"], _deadwood(hands)[:, ::-1]),
        }
        for name, (ours, theirs) in pairs.items():
            differences[name] += int(np.sum(np.abs(np.float32(ours) - np.float32(theirs)) > ROUNDING))
        reported = game.to_dict(jax.tree.map(lambda x, n=t % count: x[n], states))
        differences["words"] += reported != _words(hands[t % count])
        worst = np.maximum(worst, np.abs(seen["observation"] - observations).max(axis=(0, 1)))
        now = [played[t] if t < len(played) else (7 * t + n) % 16 for n, played in enumerate(actions)]
        for n, hand in enumerate(hands):
            changes = hand.phase != slow_mdp.OVER
            hand.play(now[n])
            if changes:
                observations[n] = _both(hand)
        states, rewards, done = (np.asarray(x) if n else x for n, x in enumerate(step(states, np.array(now, np.int32))))
    result = jax.vmap(lambda state: jax.vmap(lambda p: game.result(state, p))(SEATS))(states)
    return {"rules": rules, "hands": hands, "differences": differences, "worst": worst, "result": result}


def _sight(game: envs.Game, state: Any) -> dict[str, Any]:
    def both(function: Any) -> Any:
        return jax.vmap(lambda seat: function(state, seat))(SEATS)

    return {
        "legal": game.legal_actions(state),
        "player": state.current_player,
        "phase": game.phase(state),
        "observation": both(game.observe),
        "potential": both(game.potential),
        "auxiliary": both(game.auxiliary),
    }


def _both(hand: slow_mdp.Hand) -> np.ndarray:
    return np.stack([hand.observation(player) for player in range(2)])


def _deadwood(hands: list[slow_mdp.Hand]) -> np.ndarray:
    return np.array([[hand.deadwood(player) for player in range(2)] for hand in hands], np.float32) / np.float32(100)


@pytest.mark.parametrize("what", ["legal", "player", "phase", "rewards", "done", "potential", "auxiliary", "words"])
def test_every_step_agrees(played: dict[str, Any], what: str) -> None:
    """Nothing differs at any step of any hand, nor after its end."""
    assert played["differences"][what] == 0


def test_both_observations_agree_at_every_step(played: dict[str, Any]) -> None:
    """All entries of both players' vectors, within float32 rounding."""
    assert np.flatnonzero(played["worst"] > 2 * ROUNDING).tolist() == []


def test_all_endings_were_reached(played: dict[str, Any]) -> None:
    """Stock out, action limit, knock, gin and undercut each ended several hands."""
    endings = collections.Counter(hand.ending for hand in played["hands"])
    assert set(endings) == {"stock", "cap", "knock", "gin", "undercut"}
    assert min(endings.values()) >= 2, endings


def test_results_tell_how_each_hand_ended(played: dict[str, Any]) -> None:
    """Points, knock, gin, undercut and deadwood of both players, whatever the reward is."""
    for n, hand in enumerate(played["hands"]):
        for player in range(2):
            mine = hand.knocker == player
            points = hand.points if mine else -hand.points
            expected = {
                "points_per_hand": points,
                "knock_rate": mine,
                "gin_rate": mine and hand.ending == "gin",
                "undercut_rate": not mine and hand.ending == "undercut",
                "deadwood": hand.deadwood(player),
            }
            assert {name: float(value[n, player]) for name, value in played["result"].items()} == expected


def _words(hand: slow_mdp.Hand) -> dict[str, Any]:
    """Returns a slow hand in the words of `to_dict`."""
    endings = {"": "in play", "stock": "tie", "cap": "tie"}
    return {
        "hands": [[cards.card_name(card) for card in hand.slots(player)] for player in range(2)],
        "pile": [cards.card_name(card) for card in hand.pile],
        "stock": [cards.card_name(card) for card in hand.stock],
        "phase": ("draw", "discard", "knock", "over")[hand.phase],
        "current_player": hand.to_act,
        "actions": hand.actions,
        "deadwood": [hand.deadwood(player) for player in range(2)],
        "knocker": hand.knocker,
        "ending": endings.get(hand.ending, hand.ending),
        "turns": sum(hand.discards),
        "points": hand.points,
    }
