"""Players of gin_rummy at OpenSpiel's table: the same facts, the same decisions, legal to the end of every round."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import envs
from envs.gin_rummy.core import table
from envs.gin_rummy.event_log.state import DRAW
from envs.gin_rummy.openspiel import ids
from envs.gin_rummy.players import rule_based, translation

GAME = envs.make("gin_rummy_openspiel")
OTHER = translation.original(GAME)
ROUNDS = 24
SUITS = np.array([0, 3, 2, 1])
CARDS = (SUITS[:, None] * 13 + np.arange(13)).reshape(-1)


@functools.partial(jax.jit, static_argnums=0)
def _rounds(name: str, key: jax.Array) -> tuple[Any, ...]:
    """Plays rounds of a translated player with itself, next to the same rounds in gin_rummy, to the first knock."""
    assert OTHER is not None
    theirs, ours = envs.make_bot(name, GAME), envs.make_bot(name, OTHER)

    def one(key: jax.Array) -> tuple[Any, ...]:
        deck = jax.random.permutation(key, 52)
        start = GAME.from_deck(deck), OTHER.from_deck(jnp.asarray(CARDS)[deck])

        def body(carry: tuple[Any, Any, jax.Array], _: Any) -> tuple[Any, Any]:
            spiel, gin, together = carry
            seat, legal = spiel.current_player, GAME.legal_actions(spiel)
            view, seen = GAME.view(spiel, seat), OTHER.view(gin, seat)
            chances = theirs(view, legal)
            action = jnp.argmax(chances)
            playing = together & (spiel.phase <= ids.DISCARD) & (gin.phase <= 4)
            as_seen, as_legal = translation.as_seen(view)
            wanted = ours(seen, OTHER.legal_actions(gin))
            their_action = jnp.argmax(wanted)
            checks = {
                "hand": jnp.all(as_seen.hand == seen.hand),
                "pile": jnp.all(as_seen.pile == seen.pile),
                "known": jnp.all(as_seen.known == seen.known),
                "top": (as_seen.top == seen.top) | (seen.phase != DRAW),
                "stock": as_seen.stock == seen.stock,
                "phase": as_seen.phase == seen.phase,
                "deadwood": as_seen.deadwood == seen.deadwood,
                "turn": rule_based.turn_of(as_seen) == rule_based.turn_of(seen),
                "opponent's turn": _turns(as_seen, 1 - seat) == _turns(seen, 1 - seat),
                "last": (_last(as_seen) == _last(seen)) | (seen.phase != 4),
                "legal": jnp.all(as_legal == OTHER.legal_actions(gin)),
                "action": _action(their_action) == action,
            }
            wrong = {name: playing & ~ok for name, ok in checks.items()}
            odd = (jnp.abs(jnp.sum(chances) - 1) > 1e-5) | jnp.any((chances > 0) & ~legal)
            after, paid, _ = GAME.step(spiel, action)
            gin, _, _ = OTHER.step(gin, their_action)
            told = (wrong, odd & (seat >= 0), playing, paid)
            return (after, gin, playing), told

        (end, _, _), told = lax.scan(body, (*start, jnp.bool_(True)), length=150)
        return (end.current_player, *told)

    return jax.vmap(one)(jax.random.split(key, ROUNDS))


def _turns(view: Any, seat: jax.Array) -> jax.Array:
    actor, kind, _ = table.read(view.log)
    return jnp.sum((actor == seat) & (kind == table.DISCARD))


def _last(view: Any) -> jax.Array:
    """Returns how the player came by its last card, and which where it took it."""
    _, kind, card = table.read(view.log[view.length.astype(jnp.int32) - 1])
    return 64 * kind + jnp.where(kind == table.DRAW_DISCARD, card, 0)


def _action(action: jax.Array) -> jax.Array:
    """Returns an action of gin_rummy as one of OpenSpiel's."""
    draws = jnp.array([ids.STOCK, ids.TAKE, ids.PASS])[jnp.minimum(action, 2)]
    card = jnp.asarray(CARDS)[jnp.clip(action - 3, 0, 51)]
    return jnp.where(action < 3, draws, jnp.where(action < 55, card, ids.KNOCKS))


@pytest.mark.parametrize("name", ["marjj"])
def test_the_same_play_at_both_tables(name: str) -> None:
    """All that a player reads, its legal actions and choices agree until a knock; rounds end, legally throughout."""
    last, wrong, odd, playing, paid = jax.device_get(_rounds(name, jax.random.key(0)))
    assert playing.sum() > 10 * ROUNDS
    for what, flags in wrong.items():
        assert not flags.any(), what
    assert not odd.any()
    assert np.all(last == -1)
    assert np.count_nonzero(paid[..., 0].sum(axis=1)) > ROUNDS // 2


def test_who_can_be_seated() -> None:
    """All players of gin_rummy, but not with a reduced deck or open hands; OpenSpiel's own bot stays its own."""
    assert OTHER is not None
    assert {*envs.bot_names(OTHER)} <= {*envs.bot_names(GAME)}
    for rules in ({"num_ranks": 9}, {"observation": "open_hands"}):
        assert "greedy" not in envs.bot_names(envs.make("gin_rummy_openspiel", **rules))
    assert "Translated" not in type(envs.make_bot("simple_bot", GAME).apply).__qualname__
