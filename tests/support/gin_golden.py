"""Whole hands of `gin_rummy` as stored inputs and outputs.

Run as a script, `python tests/support/gin_golden.py`, it writes them anew with the slow reference.
"""

from __future__ import annotations

import json
import pathlib
import random
from typing import Any

import numpy as np
import slow_gin
import slow_players

FILE = pathlib.Path(__file__).resolve().parent.parent / "golden" / "gin_rummy.json"
WANTED = ("stock", "cap", "knock", "gin", "undercut", "tie")
"""One stored hand for each ending; the plain knock is one where a layoff counts."""


def checksum(observation: np.ndarray) -> float:
    """Returns a number that changes with any entry: the dot product with weights in [0.5, 1.5)."""
    index = np.arange(len(observation), dtype=np.int64)
    weights = 0.5 + (index * 7919 % 10007) / 10007
    return float(np.asarray(observation, np.float64) @ weights)


def _record(deck: list[int], actions: list[int]) -> dict[str, Any]:
    """Plays a hand with the slow reference and writes down what it shows."""
    hand = slow_gin.Hand(deck)
    checks, legal = [], []
    for action in (*actions, None):
        checks.append([round(checksum(hand.observation(player)), 5) for player in range(2)])
        legal.append(np.flatnonzero(hand.legal()).tolist())
        if action is not None:
            hand.play(action)
    return {
        "ending": hand.ending,
        "deck": deck,
        "actions": actions,
        "rewards": list(hand.rewards),
        "legal": legal,
        "observation_checksums": checks,
    }


def _layoff_counts(deck: list[int], actions: list[int]) -> bool:
    """Returns whether the defender of a knock lays off something."""
    hand = slow_gin.Hand(deck)
    for action in actions:
        hand.play(action)
    margin = hand.deadwood(1 - hand.events[-1][0]) - hand.deadwood(hand.events[-1][0])
    return round(abs(hand.rewards[0]) * 100) < margin


def write() -> None:
    """Plays until there is a hand for each ending, and stores them."""
    rng, found = random.Random(7), {}
    pairings = slow_players.PAIRINGS
    while len(found) < len(WANTED):
        for pairing in pairings:
            deck = rng.sample(range(52), 52)
            actions = slow_players.play(deck, pairing, rng, slow_gin.Rules())
            record = _record(deck, actions)
            if record["ending"] == "knock" and not _layoff_counts(deck, actions):
                continue
            found.setdefault(record["ending"], record)
    hands = [found[ending] for ending in WANTED]
    rows = ",\n".join("  {" + ",\n   ".join(f'"{k}": {json.dumps(v)}' for k, v in h.items()) + "}" for h in hands)
    FILE.write_text('{"game": "gin_rummy", "version": "1", "hands": [\n' + rows + "\n]}\n")


if __name__ == "__main__":
    write()
