"""CFR and MMD as algorithms on a phantom game that is not enumerable: state, tables and policies."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import envs
from dream import algorithms
from dream.algorithms.tabular import mmd
from dream.algorithms.tabular.cfr import CfrConfig, make
from dream.algorithms.tabular.mccfr import ExternalConfig
from dream.algorithms.types import Resources
from dream.config import settings
from dream.game_tree.forms import exact_form
from envs import InputError
from envs.game import EnumerableGame
from envs.kuhn_poker import KuhnPoker

OPENING = "012345/24"
"""Six first cells of player 0: few lists are left, but player 1 has too many for a tree to be built; play matters."""


def test_an_iteration_and_its_policies() -> None:
    """Regrets of player 0's entries, then player 1's; tables are those that the policies play; the average improves."""
    game = envs.make("dark_hex", opening=OPENING)
    assert not isinstance(game, EnumerableGame)
    config = CfrConfig("pcfr_plus", updates=2, plus=True, predictive=True, average_power=2.0)
    learner, form = make(config, None, game, Resources()), exact_form(game)
    state = learner.init(jax.random.key(0))
    before = form.values(learner.tables(state)["average"]).nash_conv
    for n in range(3):
        state, metrics = learner.iterate(state)
        assert int(state.iteration) == n + 1
        assert int(state.updates) == 2 * (n + 1)
        assert metrics["nodes"] == 4 * form.num_infosets
    assert all(np.all(np.isfinite(x)) for x in state[:3])
    assert np.all(state.regrets >= 0)
    tables, policies = learner.tables(state), learner.policies(state)
    assert set(tables) == set(policies) == {"current", "average"}
    after = form.values(tables["average"]).nash_conv
    assert after < before / 2
    played = form.tabulate(policies["average"])
    assert form.values(played).nash_conv == pytest.approx(after, abs=1e-6)


def test_mmd_needs_no_tree() -> None:
    """Both players step at once from uniform play; the last policy is the table it plays, and improves."""
    game = envs.make("dark_hex", opening=OPENING)
    learner = mmd.make(mmd.TabularMmdConfig(updates=2, learning_rate=5.0), None, game, Resources())
    form, state = exact_form(game), learner.init(jax.random.key(0))
    before = form.values(learner.tables(state)["current"]).nash_conv
    for n in range(5):
        state, metrics = learner.iterate(state)
        assert (int(state.iteration), int(state.updates)) == (n + 1, 2 * (n + 1))
        assert metrics["nodes"] == 2 * form.num_infosets
        assert 0 < metrics["entropy"] < np.log(9)
    table = learner.tables(state)["current"]
    assert form.values(table).nash_conv < before / 2
    played = form.tabulate(learner.policies(state)["current"])
    assert form.values(played).nash_conv == pytest.approx(form.values(table).nash_conv, abs=1e-6)


class _ForThree(KuhnPoker):
    """Kuhn poker as far as it says for how many it is."""

    num_players = 3


@pytest.mark.parametrize("name", ["cfr_plus", "tabular_mmd", "external_mccfr"])
def test_more_than_two_players_are_refused(name: str) -> None:
    """Before anything is written, and not once the tree is there."""
    build, config = algorithms.read_settings({"name": name})
    with pytest.raises(
        InputError, match=rf"^algo={name} needs a two-player zero-sum game, and kuhn_poker has 3 players; use ppo, "
    ):
        build(config, None, _ForThree(), Resources())


@pytest.mark.parametrize("schema", [CfrConfig, ExternalConfig])
def test_weights_beyond_numbers_are_refused(schema: type) -> None:
    """Iteration 200 to the power of 400 is infinite."""
    with pytest.raises(InputError, match=r"average_power=400\.0 is out of range"):
        settings.read(schema, {"name": "cfr", "average_power": 400.0}, "algo")
