"""The game `gin_rummy_openspiel` in lockstep with pyspiel: every decision of thousands of hands of all kinds."""

from __future__ import annotations

import collections
import functools
import random

import openspiel_lockstep as lockstep
import pytest

import envs

LANES = 700
NOTHING = {"player": 0, "legal": 0, "tensor": 0, "returns": 0, "done": 0}
VARIANTS = {
    "oklahoma": {"oklahoma": True, "gin_bonus": 20, "undercut_bonus": 10},
    "three suits": {"num_ranks": 9, "num_suits": 3, "hand_size": 7},
    "two suits": {"num_suits": 2, "hand_size": 5, "knock_card": 4},
    "tiny": {"num_ranks": 3, "num_suits": 3, "hand_size": 2, "knock_card": 3},
}


def _records(count: int, seed: int) -> list[lockstep.Record]:
    """Plays hands of all kinds of players, half of them on decks rich in melds."""
    rng = random.Random(seed)
    noisy = functools.partial(lockstep.greedy, noise=0.3)
    plain = [lockstep.uniform, lockstep.eager, lockstep.shuttling, lockstep.greedy, lockstep.patient]
    rich = [lockstep.greedy, lockstep.eager, noisy, lockstep.patient]
    hands = []
    for n in range(count):
        if n % 2:
            hands.append(lockstep.play(lockstep.rich_deck(rng), rich[n // 2 % 4], rng))
        else:
            hands.append(lockstep.play(rng.sample(range(52), 52), plain[n // 2 % 5], rng))
    return hands


@pytest.fixture(scope="module")
def records() -> list[lockstep.Record]:
    """2,800 hands."""
    return _records(4 * LANES, seed=71)


def test_every_decision_agrees(records: list[lockstep.Record]) -> None:
    """Player to act, legal actions, both players' tensors, returns and the end, at every decision of every hand."""
    found = lockstep.differences(envs.make("gin_rummy_openspiel"), records, LANES)
    assert found.pop("decisions") > 100_000
    assert found == NOTHING


def test_the_hands_show_every_rule(records: list[lockstep.Record]) -> None:
    """Each ending and each rare rule occurs, and pyspiel never gets stuck on the full deck."""
    seen = collections.Counter(event for record in records for event in record.events)
    least = {"repeated": 20, "capped": 20, "wall": 100, "wall_knock": 3, "gin": 30, "undercut": 20, "tie": 3,
             "layoff": 100, "chain": 5, "long_run": 20}  # fmt: skip
    assert {name: seen[name] for name in least if seen[name] < least[name]} == {}
    assert not any(record.stuck for record in records)


@pytest.mark.parametrize("name", VARIANTS)
def test_parameters_agree(name: str) -> None:
    """The same with other parameters, on reduced decks too; where pyspiel gets stuck, up to there."""
    rules = VARIANTS[name]
    game = envs.make("gin_rummy_openspiel", **rules)
    text = ",".join(f"{key}={value}" for key, value in rules.items())
    rng = random.Random(72)
    ranks, suits = game.rules.num_ranks, game.rules.num_suits
    size = ranks * suits
    greedy = functools.partial(lockstep.greedy, parameters=text)
    choosers = [lockstep.uniform, lockstep.eager, greedy, lockstep.shuttling]
    decks = [lockstep.rich_deck(rng, ranks, suits) if n % 3 == 0 else rng.sample(range(size), size) for n in range(400)]
    records = [lockstep.play(deck, choosers[n % 4], rng, text) for n, deck in enumerate(decks)]
    found = lockstep.differences(game, records, len(records))
    assert found.pop("decisions") > 2_000
    assert found == NOTHING
    assert sum(record.stuck for record in records) < len(records) / 2
