"""Do games that nobody has tuned meet learners of a sensible size?"""

from __future__ import annotations

from typing import Any

import jax
import pytest
from dream_support import CoinGame

import envs
from dream import algorithms
from dream.algorithms.sizes import size_of, suggested
from dream.config import settings
from dream.networks import make_network

DEEP = ("deep_cfr", "sd_cfr", "os_sd_cfr", "dream", "escher", "vr_dcfr_plus")


def _leaves(node: dict[str, Any], path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.items():
        found |= _leaves(value, f"{path}{key}.") if isinstance(value, dict) else {f"{path}{key}": value}
    return found


def test_size_is_read_off_the_game() -> None:
    """Six cards are small, a game of middling observations is in between, gin rummy is large."""
    assert [size_of(game) for game in (CoinGame(), envs.make("kuhn_poker"), envs.make("mini_gin_rummy"))] == [
        "small"
    ] * 3
    assert size_of(envs.make("gin_rummy_mdp")) == "medium"
    assert size_of(envs.make("gin_rummy")) == "large"


@pytest.mark.parametrize("name", sorted(algorithms.names()))
def test_suggestions_are_settings(name: str) -> None:
    """Every suggested key and value is one that the algorithm and the network take."""
    for game in (CoinGame(), envs.make("kuhn_poker"), envs.make("gin_rummy_mdp")):
        found = suggested(game, name)
        settings.read(algorithms.settings_of(name), {**found["algo"], "name": name}, "algo")
        make_network({"name": "dueling", **found["network"]}, game)
    sizes = suggested(envs.make("gin_rummy"), name)
    assert set(sizes["algo"]) == ({"shaping"} if name == "dueling_dream" else set())
    assert sizes["network"] == {}


@pytest.mark.parametrize("name", ["kuhn_poker", "gin_rummy_mdp", "gin_rummy"])
def test_no_tie_penalty_by_default(name: str) -> None:
    """Five points are a twentieth of a reward in gin rummy; in chips they may be more than any loss."""
    assert suggested(envs.make(name), "dueling_dream")["algo"]["shaping"] == {"tie_penalty": 0.0}


@pytest.mark.parametrize("name", DEEP)
def test_small_games_meet_no_gin_sized_learners(name: str) -> None:
    """100,000 rows and 500 steps at most, and sums by information set where the tree is tiny."""
    for game in (CoinGame(), envs.make("kuhn_poker"), envs.make("liars_dice")):
        leaves = _leaves(suggested(game, name)["algo"])
        assert all(value <= 100_000 for key, value in leaves.items() if key.endswith("capacity"))
        assert all(value <= 500 for key, value in leaves.items() if key.endswith("steps"))
        assert leaves["memory.kind"] == ("infoset_sums" if game.name == "kuhn_poker" else "reservoir")


def test_unknown_names_keep_their_own_sizes() -> None:
    """An algorithm or a network from elsewhere is left alone."""
    assert suggested(CoinGame(), "elsewhere", "elsewhere") == {"algo": {}, "network": {}}


@pytest.mark.parametrize("name", ["ppo", "escher"])
def test_a_learner_of_the_suggested_size_iterates(name: str) -> None:
    """On a game it has never seen, in one go."""
    game = CoinGame()
    found = suggested(game, name)
    learner = algorithms.make({"name": name, **found["algo"]}, found["network"], game)
    _, metrics = learner.iterate(learner.init(jax.random.key(0)))
    assert metrics["network_rows"] < 1_000_000
