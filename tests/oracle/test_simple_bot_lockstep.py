"""The simple bot in lockstep with OpenSpiel's: whole hands against itself and others, decision by decision."""

from __future__ import annotations

import functools
import random
from typing import Any

import jax
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


@functools.partial(jax.jit, static_argnums=(0, 1))
def _choices(game: Any, faithful: bool, decks: Array, actions: Array) -> Array:
    """Returns what the bot would do at every decision of the hands, -1 where its two forms differ: int32[T, N]."""
    apply, choose = simple_bot.make(game, faithful).apply, simple_bot.choice(game, faithful)

    def one(state: Any, action: Array) -> tuple[Any, Array]:
        view = game.view(state, state.turn)
        probs, chosen = apply((), view, game.legal_actions(state)), choose(view, game.legal_words(state))
        agree = (probs.sum() == 1) & (probs.argmax() == chosen)
        return game.step(state, action)[0], jax.numpy.where(agree, chosen, -1)

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


def _disagreements(faithful: bool, hands: tuple[list[lockstep.Record], list[list[bool]]]) -> tuple[int, int, int]:
    """Returns decisions on which our bot differs from OpenSpiel's, the bot's decisions, and the hands concerned."""
    game = envs.make("gin_rummy_openspiel")
    differ, decisions, concerned = 0, 0, 0
    records, mine = hands
    for first in range(0, len(records), LANES):
        batch = records[first : first + LANES]
        actions = np.full((game.max_length, LANES), 54, np.int32)
        watched = np.zeros((game.max_length, LANES), bool)
        for n, record in enumerate(batch):
            actions[: len(record.actions), n] = record.actions
            watched[: len(record.actions), n] = mine[first + n]
        decks = np.array([record.deck for record in batch])
        wrong = (np.asarray(_choices(game, faithful, decks, actions)) != actions) & watched
        differ += int(wrong.sum())
        decisions += int(watched.sum())
        concerned += int(wrong.any(axis=0).sum())
    return differ, decisions, concerned


def test_faithful_bot_agrees_at_every_decision(hands: tuple[list[lockstep.Record], list[list[bool]]]) -> None:
    """More than 2,000 hands, no disagreement."""
    differ, decisions, _ = _disagreements(True, hands)
    assert differ == 0
    assert decisions > 30_000


def test_mended_bot_differs_against_gin_alone(hands: tuple[list[lockstep.Record], list[list[bool]]]) -> None:
    """One decision a hand: the pass that ends it before the melds are laid; and in hands that gin ended."""
    differ, _, concerned = _disagreements(False, hands)
    gins = sum("gin" in record.events for record in hands[0])
    assert differ == concerned
    assert 10 < concerned <= gins
