"""Players of gin_rummy at OpenSpiel's table: the same facts, the same decisions, legal to the end of every round."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.gin_rummy.core import table
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.event_log.game import GinRummy
from envs.gin_rummy.event_log.state import DISCARD, DRAW
from envs.gin_rummy.openspiel import ids
from envs.gin_rummy.players import rule_based, translation

GAME = envs.make("gin_rummy_openspiel")
OTHER = translation.original(GAME)
ROUNDS = 24
SUITS = np.array([0, 3, 2, 1])
CARDS = (SUITS[:, None] * 13 + np.arange(13)).reshape(-1)


@functools.cache
def _players() -> tuple[envs.Policy, envs.Policy]:
    assert OTHER is not None
    return envs.make_bot("patient", GAME), envs.make_bot("patient", OTHER)


@jax.jit
@jax.vmap
def _step(spiel: Any, gin: Any, together: jax.Array) -> tuple[Any, ...]:
    """Plays one action of the same round at both tables, for as long as both are before the knock."""
    theirs, ours = _players()
    seat, legal = spiel.current_player, GAME.legal_actions(spiel)
    view, seen = GAME.view(spiel, seat), OTHER.view(gin, seat)
    chances = theirs(view, legal)
    action = jnp.argmax(chances)
    playing = together & (spiel.phase <= ids.DISCARD) & (gin.phase <= DISCARD)
    as_seen, as_legal = translation.as_seen(view)
    their_action = jnp.argmax(ours(seen, OTHER.legal_actions(gin)))
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
        "last": (_last(as_seen) == _last(seen)) | (seen.phase != DISCARD),
        "legal": jnp.all(as_legal == OTHER.legal_actions(gin)),
        "action": _action(their_action) == action,
    }
    wrong = {name: playing & ~ok for name, ok in checks.items()}
    odd = (jnp.abs(jnp.sum(chances) - 1) > 1e-5) | jnp.any((chances > 0) & ~legal)
    after, paid, _ = GAME.step(spiel, action)
    return after, OTHER.step(gin, their_action)[0], playing, wrong, odd & (seat >= 0), paid


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


def test_the_same_play_at_both_tables() -> None:
    """All that a player reads, its legal actions and choices agree until a knock; rounds end, legally throughout."""
    decks = np.stack([np.random.default_rng(seed).permutation(52) for seed in range(ROUNDS)])
    spiel, gin = jax.jit(jax.vmap(GAME.from_deck))(decks), jax.jit(jax.vmap(OTHER.from_deck))(CARDS[decks])
    playing, shared, points = np.ones(ROUNDS, bool), 0, np.zeros(ROUNDS)
    for _ in range(GAME.max_length):
        spiel, gin, playing, wrong, odd, paid = _step(spiel, gin, playing)
        for what, flags in jax.device_get(wrong).items():
            assert not flags.any(), what
        assert not np.any(odd)
        shared, points = shared + int(np.sum(playing)), points + np.asarray(paid)[:, 0]
        if np.all(spiel.current_player == -1):
            break
    assert np.all(spiel.current_player == -1)
    assert shared > 10 * ROUNDS
    assert np.count_nonzero(points) > ROUNDS // 2


@jax.jit
def _oklahoma_rounds(decks: jax.Array) -> Any:
    """Returns views and legal actions of rounds that two simple bots play, and which are before the knock."""
    game = envs.make("gin_rummy_openspiel", oklahoma=True)
    simple = envs.make_bot("simple_bot", game)

    def body(states: Any, _: Any) -> Any:
        seats = states.current_player
        views, legal = jax.vmap(game.view)(states, seats), jax.vmap(game.legal_actions)(states)
        after, _, _ = jax.vmap(game.step)(states, jnp.argmax(jax.vmap(simple)(views, legal), axis=1))
        return after, (views, legal, (seats >= 0) & (states.phase <= ids.DISCARD))

    return jax.lax.scan(body, jax.vmap(game.from_deck)(decks), None, 40)[1]


@functools.cache
def _oklahoma(upcard: int) -> tuple[Any, Any]:
    """Returns views and legal actions of 12 rounds with an upcard, up to the knock."""
    rest = np.array([card for card in range(52) if card != upcard])
    decks = np.stack([np.insert(np.random.default_rng(seed).permutation(rest), 20, upcard) for seed in range(12)])
    views, legal, keep = jax.device_get(_oklahoma_rounds(decks))
    return jax.tree.map(lambda x: x[keep], views), legal[keep]


@jax.jit
def _chances(policy: envs.Policy, views: Any, legal: jax.Array) -> jax.Array:
    return jax.vmap(policy)(views, legal)


_as_seen = jax.jit(jax.vmap(translation.as_seen))


@pytest.mark.parametrize(
    ("name", "options", "upcard", "most"),
    [
        ("lookahead", {}, 13, 400),
        ("lookahead", {}, 4, 400),
        ("defensive", {}, 13, 400),
        ("lv5", {"worlds": 4, "turns": 12}, 0, 60),
        ("mc:64", {"worlds": 4, "turns": 12}, 4, 60),
    ],
)
def test_under_oklahoma_they_plan_by_the_rounds_knock_card(
    name: str, options: dict[str, Any], upcard: int, most: int
) -> None:
    """The actions are those of the same player of `gin_rummy` with that limit in its rules; an ace means gin."""
    limit = {0: 0, 4: 5}[upcard % 13]
    rules = {"gin_bonus": 25, "undercut_bonus": 25, "undercut_on_tie": False, "max_actions": 250}
    fixed = GinRummy(GinRules(**rules, knock_limit=limit))
    theirs = envs.make_bot(name, fixed, **options)
    ours = envs.make_bot(name, envs.make("gin_rummy_openspiel", oklahoma=True), **options)
    count = min(most, len(_oklahoma(upcard)[1]))
    views, legal = jax.tree.map(lambda x: x[np.arange(most) % count], _oklahoma(upcard))
    assert np.all(views.knock_card == limit)
    chances, wanted = np.asarray(_chances(ours, views, legal)), np.asarray(_chances(theirs, *_as_seen(views)))
    to_act = wanted.sum(axis=1) > 0
    assert to_act[:count].sum() > 40
    np.testing.assert_array_equal(chances.sum(axis=1)[to_act], 1)
    wanted_here = np.asarray(jax.vmap(_action)(wanted.argmax(axis=1)))
    np.testing.assert_array_equal(chances.argmax(axis=1)[to_act], wanted_here[to_act])


def test_who_can_be_seated() -> None:
    """All players of gin_rummy, but not with a reduced deck or open hands; OpenSpiel's own bot stays its own."""
    assert OTHER is not None
    assert {*envs.bot_names(OTHER)} <= {*envs.bot_names(GAME)}
    for rules in ({"num_ranks": 9}, {"observation": "open_hands"}):
        assert "greedy" not in envs.bot_names(envs.make("gin_rummy_openspiel", **rules))
    assert "Translated" not in type(envs.make_bot("simple_bot", GAME).apply).__qualname__
