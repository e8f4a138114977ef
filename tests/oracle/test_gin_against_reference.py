"""The JAX game in lockstep with a plain Python one written from the rules' text: all players, all endings."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
import pytest
import side_by_side
import slow_gin

import envs
from envs import cards

SMALL = slow_gin.Rules(
    num_ranks=6,
    num_suits=3,
    hand_size=4,
    knock_limit=4,
    gin_bonus=20,
    undercut_bonus=15,
    undercut_on_tie=False,
    first_offer=False,
    stock_floor=1,
    max_actions=21,
)
"""Every rule other than the default, on a small deck."""
ROUNDING = 1e-6
"""What float32 may differ by; a point is 0.01, so rewards agree to the point."""
CASES = {"full": (slow_gin.Rules(), {}, 432), "small": (SMALL, dataclasses.asdict(SMALL), 432)}


@pytest.fixture(scope="module", params=CASES)
def played(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Plays several hundred hands both ways and gathers where they differ, by what differs."""
    rules, named, count = CASES[request.param]
    game = envs.make("gin_rummy", **named)
    decks, actions = side_by_side.sample(rules, count, seed=31)
    differences: collections.Counter = collections.Counter()
    worst = 0.0
    for moment in side_by_side.replay(game, rules, decks, actions):
        hands = moment.hands
        pairs = {
            "legal": (moment.seen["legal"], np.stack([hand.legal() for hand in hands])),
            "player": (moment.seen["player"], [hand.to_act for hand in hands]),
            "phase": (moment.seen["phase"], [hand.phase for hand in hands]),
            "rewards": (moment.rewards, np.float32([hand.rewards for hand in hands])),
            "done": (moment.done, [hand.phase == slow_gin.OVER for hand in hands]),
            "potential": (moment.seen["potential"], _potentials(hands)),
        }
        for name, (ours, theirs) in pairs.items():
            differences[name] += int(np.sum(np.abs(np.float32(ours) - np.float32(theirs)) > ROUNDING))
        n = 5 * moment.t % count
        reported = game.to_dict(jax.tree.map(lambda x, n=n: x[n], moment.states))
        differences["words"] += reported != _words(hands[n], rules.num_ranks)
        worst = max(worst, float(np.max(np.abs(moment.seen["observation"] - moment.observations))))
    return {"game": game, "last": moment, "differences": differences, "worst": worst}


def _potentials(hands: list[slow_gin.Hand]) -> np.ndarray:
    return -np.array([[hand.deadwood(player) for player in range(2)] for hand in hands], np.float32) / np.float32(100)


@pytest.mark.parametrize("what", ["legal", "player", "phase", "rewards", "done", "potential", "words"])
def test_every_step_agrees(played: dict[str, Any], what: str) -> None:
    """Nothing differs at any step of any hand, nor after its end."""
    assert played["differences"][what] == 0


def test_both_observations_agree_at_every_decision(played: dict[str, Any]) -> None:
    """All entries of both players' vectors, within float32 rounding."""
    assert played["worst"] <= ROUNDING


def test_all_endings_were_reached(played: dict[str, Any]) -> None:
    """Stock out, action limit, knock, gin, undercut and tie each ended several hands."""
    endings = collections.Counter(hand.ending for hand in played["last"].hands)
    expected = {"stock", "cap", "knock", "gin", "undercut"} | (
        {"tie"} if played["game"].rules.undercut_on_tie else set()
    )
    assert set(endings) == expected
    assert min(endings.values()) >= 2


def test_the_action_limit_cut_off_turns_at_both_places(played: dict[str, Any]) -> None:
    """After the draw as well as after the discard, where passes make both possible."""
    rules = played["game"].rules
    capped = [hand for hand in played["last"].hands if hand.ending == "cap"]
    sizes = {max(len(cards) for cards in hand.hands) - rules.hand_size for hand in capped}
    assert sizes == ({0, 1} if rules.first_offer else {rules.max_actions % 2})


def test_results_tell_how_each_hand_ended(played: dict[str, Any]) -> None:
    """Knock, gin, undercut and deadwood of both players, as the slow hands tell them."""
    game, last = played["game"], played["last"]
    result = jax.vmap(lambda state: jax.vmap(lambda p: game.result(state, p))(side_by_side.SEATS))(last.states)
    for n, hand in enumerate(last.hands):
        knocked = hand.ending in ("knock", "gin", "undercut", "tie")
        for player in range(2):
            mine = knocked and hand.events[-1][0] == player
            assert result["knock_rate"][n, player] == mine
            assert result["gin_rate"][n, player] == (mine and hand.ending == "gin")
            undercuts = not mine and hand.ending in ("undercut", "tie")
            assert result["undercut_rate"][n, player] == undercuts
            assert result["deadwood"][n, player] == hand.deadwood(player)


def _words(hand: slow_gin.Hand, ranks: int) -> dict[str, Any]:
    """Returns a slow hand in the words of `to_dict`."""
    knocked = hand.ending in ("knock", "gin", "undercut", "tie")
    endings = {"": "in play", "stock": "tie", "cap": "tie", "tie": "undercut"}

    def named(ids: Iterable[int]) -> list[str]:
        return [cards.card_name(card, ranks) for card in ids]

    return {
        "hands": [named(sorted(held)) for held in hand.hands],
        "pile": named(hand.pile),
        "stock": named(hand.stock),
        "phase": ("first_offer", "second_offer", "forced_stock", "draw", "discard", "over")[hand.phase],
        "current_player": hand.to_act,
        "actions": len(hand.events) - 1,
        "deadwood": [hand.deadwood(player) for player in range(2)],
        "knocker": hand.events[-1][0] if knocked else -1,
        "ending": endings.get(hand.ending, hand.ending),
    }
