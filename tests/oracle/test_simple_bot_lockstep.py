"""The simple bot in lockstep with OpenSpiel's: whole hands against itself and others, decision by decision."""

from __future__ import annotations

import functools
import random
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import openspiel_lockstep as lockstep
import pyspiel
import pytest
from jax import Array, lax

import envs
from envs.gin_rummy.players import simple_bot

LANES = 1_050


class Watched:
    """Plays with OpenSpiel's bot in one or both seats; notes which decisions were the bot's."""

    def __init__(self, other: lockstep.Chooser | None) -> None:
        """Builds the bots; `other` plays player 1 in their stead."""
        parameters = lockstep.root()[0].get_parameters()
        self._bots = [pyspiel.make_simple_gin_rummy_bot(parameters, seat) for seat in range(2)]
        self._other = other
        self.mine: list[bool] = []

    def start(self) -> None:
        """Begins a new hand."""
        self.mine = []
        for bot in self._bots:
            bot.restart()

    def __call__(self, state: Any, legal: list[int], rng: random.Random) -> int:
        """Chooses an action."""
        seat = state.current_player()
        self.mine.append(self._other is None or seat == 0)
        return self._bots[seat].step(state) if self.mine[-1] else self._other(state, legal, rng)


@functools.partial(jax.jit, static_argnums=0)
def _choices(game: Any, decks: Array, actions: Array) -> Array:
    """Returns what the bot, mended and faithful, would do at every decision of the hands: int32[T, N, 2].

    -1 stands where the bot as a policy and as a function of packed actions differ.
    """
    bots = [(simple_bot.make(game, faithful).apply, simple_bot.choice(game, faithful)) for faithful in (False, True)]

    def one(state: Any, action: Array) -> tuple[Any, Array]:
        view, legal, words = game.view(state, state.turn), game.legal_actions(state), game.legal_words(state)
        made = []
        for apply, choose in bots:
            probs, chosen = apply((), view, legal), choose(view, words)
            agree = (probs.sum() == 1) & (probs.argmax() == chosen)
            made.append(jnp.where(agree, chosen, -1))
        return game.step(state, action)[0], jnp.stack(made)

    states = jax.vmap(game.from_deck)(decks)
    return lax.scan(lambda states, now: jax.vmap(one)(states, now), states, actions)[1]


@pytest.fixture(scope="module")
def hands() -> tuple[list[lockstep.Record], list[list[bool]]]:
    """2,100 hands: bot against bot, against players of all kinds, and on decks rich in melds."""
    rng = random.Random(81)
    others = [None, None, lockstep.patient, lockstep.eager, lockstep.uniform, None, lockstep.patient]
    players = [Watched(other) for other in others]
    records, mine = [], []
    for n in range(2 * LANES):
        player = players[n % len(players)]
        player.start()
        deck = lockstep.rich_deck(rng) if n % 3 == 0 else rng.sample(range(52), 52)
        records.append(lockstep.play(deck, player, rng))
        mine.append(player.mine)
    return records, mine


class Compared(NamedTuple):
    """Decisions on which our bot differs from OpenSpiel's and hands concerned, each [mended, faithful]; decisions."""

    differ: np.ndarray
    concerned: np.ndarray
    decisions: int


@pytest.fixture(scope="module")
def compared(hands: tuple[list[lockstep.Record], list[list[bool]]]) -> Compared:
    """What our bot does at the decisions of OpenSpiel's."""
    game = envs.make("gin_rummy_openspiel")
    differ, concerned, decisions = np.zeros(2, int), np.zeros(2, int), 0
    records, mine = hands
    for first in range(0, len(records), LANES):
        batch = records[first : first + LANES]
        actions = np.full((game.max_length, LANES), 54, np.int32)
        watched = np.zeros((game.max_length, LANES), bool)
        for n, record in enumerate(batch):
            actions[: len(record.actions), n] = record.actions
            watched[: len(record.actions), n] = mine[first + n]
        decks = np.array([record.deck for record in batch])
        wrong = (np.asarray(_choices(game, decks, actions)) != actions[..., None]) & watched[..., None]
        differ += wrong.sum(axis=(0, 1))
        concerned += wrong.any(axis=0).sum(axis=0)
        decisions += int(watched.sum())
    return Compared(differ, concerned, decisions)


def test_faithful_bot_agrees_at_every_decision(compared: Compared) -> None:
    """More than 2,000 hands, no disagreement."""
    assert compared.differ[1] == 0
    assert compared.decisions > 30_000


def test_mended_bot_differs_against_gin_alone(
    compared: Compared, hands: tuple[list[lockstep.Record], list[list[bool]]]
) -> None:
    """One decision a hand: the pass that ends it before the melds are laid; and in hands that gin ended."""
    gins = sum("gin" in record.events for record in hands[0])
    assert compared.differ[0] == compared.concerned[0]
    assert 10 < compared.concerned[0] <= gins
