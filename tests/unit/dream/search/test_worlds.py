"""Weights of worlds, and worlds drawn by them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.evaluation import local
from dream.search.worlds import log_likelihood, tempered
from envs.gin_rummy.core import table

LEAST = 48.0
GAME = envs.make("gin_rummy_mdp")


def test_weights_are_softened_until_enough_worlds_count() -> None:
    """A belief that one world would rule alone, and one that needs nothing."""
    steep = np.asarray(tempered(np.linspace(0, 200, 256), LEAST))
    assert 1 / np.sum(steep**2) == pytest.approx(LEAST, rel=0.01)
    assert np.all(np.diff(steep) > 0)
    mild = np.linspace(0, 0.5, 256)
    assert np.allclose(tempered(mild, LEAST), np.exp(mild) / np.exp(mild).sum())


def test_all_worlds_count_alike_if_all_must_count() -> None:
    """As many effective worlds as there are."""
    weights = np.asarray(tempered(np.array([0.0, -1.0, -2.0]), 3.0))
    assert np.allclose(weights, 1 / 3, atol=1e-3)


def test_worlds_that_cannot_be_weigh_nothing_unless_all_cannot() -> None:
    """However much the others are softened; a number that is none still shows."""
    weights = np.asarray(tempered(np.array([-3.0, -np.inf, -80.0, -np.inf]), 4.0))
    assert np.allclose(weights, [0.5, 0, 0.5, 0], atol=1e-3)
    assert weights[1] == weights[3] == 0
    assert np.allclose(tempered(np.full(4, -np.inf), 2.0), 0.25)
    assert np.all(np.isnan(np.asarray(tempered(np.array([0.0, np.nan, -np.inf]), 2.0))))


def _declined(state: Any, kind: int) -> Any:
    """Returns a world in whose log the last entry is of another kind."""
    log = state.table.log
    other = table.entry(0, kind, jnp.int32(-1))
    return dataclasses.replace(
        state, table=dataclasses.replace(state.table, log=log.at[state.table.actions].set(other))
    )


def test_a_world_that_contradicts_its_actions_is_impossible() -> None:
    """After two turns; then with a knock declined that was not possible, as its opponent and as its player sees it.

    The local best response weighs deals by a likelihood of its own, of the opponent's actions alone.
    """
    policy = envs.make_bot("random", GAME)
    find = jax.jit(lambda world, seat: log_likelihood(GAME, policy, world, seat, 0.05))
    weigh = jax.jit(functools.partial(local._Local(GAME, local.LocalConfig())._log_likelihood, policy))
    state = GAME.init(jax.random.key(0))
    for action in (0, 2, 0, 2, 0):
        state = jax.jit(GAME.step)(state, action)[0]
    assert int(state.current_player) == 0
    assert np.isfinite(find(state, 0))
    assert np.isfinite(find(state, 1))
    assert local._IMPOSSIBLE < weigh(state) < 0
    turned = dataclasses.replace(state, current_player=jnp.int32(1))
    for world in (_declined(state, table.PASS), turned):
        assert find(world, 0) == find(world, 1) == -np.inf
        assert weigh(world) == local._IMPOSSIBLE


def test_what_a_policy_answers_after_a_contradiction_is_no_fault_of_its_own() -> None:
    """A knock declined before any card was drawn: impossible, though the policy knows no answer from there on."""

    def lost(params: Any, view: Any, legal: jax.Array) -> jax.Array:
        chances = legal / jnp.maximum(jnp.sum(legal), 1)
        return jnp.where(table.read(view.log[1]).type == table.PASS, jnp.nan, chances)

    believer = local._Local(GAME, local.LocalConfig())
    weigh = jax.jit(functools.partial(believer._log_likelihood, envs.Policy(lost)))
    state = GAME.init(jax.random.key(0))
    for action in (0, 2, 0, 2, 0):
        state = jax.jit(GAME.step)(state, action)[0]
    log = state.table.log.at[1].set(table.entry(0, table.PASS, jnp.int32(-1)))
    world = dataclasses.replace(state, table=dataclasses.replace(state.table, log=log))
    assert local._IMPOSSIBLE < weigh(state) < 0
    assert weigh(world) == local._IMPOSSIBLE
