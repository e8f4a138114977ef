"""Are counters what a count by hand gives? On a game whose every round is a coin and two moves."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import Array

import envs
from dream import algorithms
from dream.algorithms.counters import Counters
from dream.training.metrics import COUNTERS
from envs import EnumerableGame

GAMES, STEPS, BATCH = 8, 3, 4
NETWORK = {"name": "dueling", "hidden": [4]}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """The coin, the first move + 1 (0: none yet), who acts (-1 once over)."""

    coin: Array
    first: Array
    current_player: Array


class View(NamedTuple):
    """The coin to player 0, 2 to player 1; the first move + 1; the seat."""

    coin: Array
    first: Array
    seat: Array


class TwoMoves(EnumerableGame):
    """A coin that player 0 sees; each player moves once. 2 + 4 + 8 histories; each player has 2 information sets."""

    name, version, unit = "two_moves", "1", "points"
    num_actions, observation_size, max_length = 2, 8, 2
    worst_reward, reward_scale = -1.0, 1.0

    def init(self, key: Array) -> State:
        """Tosses the coin."""
        return State(jax.random.bernoulli(key).astype(jnp.int32), jnp.int32(0), jnp.int32(0))

    def initial_outcomes(self) -> tuple[State, Array]:
        """Returns both sides of the coin."""
        return State(jnp.arange(2), jnp.zeros(2, jnp.int32), jnp.zeros(2, jnp.int32)), jnp.full(2, 0.5)

    def step(self, state: State, action: Array) -> tuple[State, Array, Array]:
        """Plays; player 0 wins where the second move is not the coin."""
        is_last, over = state.current_player == 1, state.current_player < 0
        won = jnp.where(action == state.coin, -1.0, 1.0)
        after = State(
            state.coin,
            jnp.where(is_last | over, state.first, action + 1).astype(jnp.int32),
            jnp.where(is_last | over, -1, 1).astype(jnp.int32),
        )
        return after, jnp.where(is_last, jnp.stack([won, -won]), 0.0), after.current_player < 0

    def outcomes(self, state: State, action: Array) -> tuple[State, Array, Array, Array]:
        """Returns the one thing that an action leads to."""
        after, rewards, done = self.step(state, action)
        return jax.tree.map(lambda x: x[None], after), jnp.ones(1), rewards[None], done[None]

    def legal_actions(self, state: State) -> Array:
        """Returns that both are."""
        return jnp.full(2, state.current_player >= 0)

    def view(self, state: State, player: Array) -> View:
        """Returns what a player sees."""
        player = jnp.asarray(player)
        return View(*(x.astype(jnp.uint8) for x in (jnp.where(player == 0, state.coin, 2), state.first, player)))

    def encode(self, view: View) -> Array:
        """Returns one-hot coin 3, first move 3, seat 2."""
        parts = (view.coin == np.arange(3), view.first == np.arange(3), view.seat == np.arange(2))
        return jnp.concatenate(parts).astype(jnp.float32)

    def to_dict(self, state: State) -> dict[str, Any]:
        """Returns the coin."""
        return {"coin": int(state.coin)}


GAME = TwoMoves()


def _counted(config: dict[str, Any]) -> dict[str, float]:
    """Returns the counters of a learner's first iteration."""
    learner = algorithms.make(config, NETWORK, GAME)
    _, metrics = learner.iterate(learner.init(jax.random.key(0)))
    return {name: metrics[name] for name in COUNTERS if name in metrics}


def test_counters_are_those_that_a_run_adds_up() -> None:
    """The same names in the same order; sums go counter by counter."""
    assert Counters._fields == COUNTERS
    assert Counters(1, 2) + Counters(nodes=3, episodes=4) == Counters(5, 2, 3)


@pytest.mark.parametrize(
    ("actor", "baseline", "reads"),
    [("target", "policy", 1), ("target", "value", 2), ("online", "policy", 2), ("online", "value", 3)],
)
def test_dueling_dream(actor: str, baseline: str, reads: int) -> None:
    """Two decisions and a deal a game; the fit reads minibatches, so may the value and a target that did not play."""
    sizes = {"episodes_per_iteration": GAMES, "batch_size": BATCH, "epochs": STEPS}
    assert _counted({"name": "dueling_dream", "actor": actor, "baseline": baseline, **sizes}) == {
        "episodes": GAMES,
        "decisions": 2 * GAMES,
        "nodes": 2 * GAMES,
        "transitions": 3 * GAMES,
        "network_rows": 2 * GAMES + reads * STEPS * BATCH,
        "gradient_steps": STEPS,
    }


def test_dueling_dream_with_a_critic() -> None:
    """Only the fit reads minibatches; the critic's rows are read at h, h' and by the policy at h', histories once."""
    sizes = {"episodes_per_iteration": GAMES, "batch_size": BATCH, "epochs": STEPS}
    critic = {"steps": STEPS, "batch_size": BATCH, "capacity": 64, "policy": "current"}
    found = _counted({
        "name": "dueling_dream", "advantage": "expected_sarsa", "critic": critic, "discount": 1.0, **sizes,
        "shaping": {"scale": {"start": 0.0, "end": 0.0}, "tie_penalty": 0.0},
    })  # fmt: skip
    assert found["network_rows"] == 2 * GAMES + STEPS * BATCH + 3 * STEPS * BATCH + 2 * GAMES
    assert found["gradient_steps"] == 2 * STEPS


@pytest.mark.parametrize("optimism", [0.0, 1.0])
def test_ppo_with_a_critic(optimism: float) -> None:
    """Each of the critic's rows is read at h, at h' and by the policy at h', histories once, by its slow copy too."""
    critic = {"steps": STEPS, "batch_size": BATCH, "capacity": 64, "policy": "current"}
    found = _counted({
        "name": "ppo", "episodes_per_iteration": GAMES, "batch_size": BATCH, "epochs": 1, "critic": critic,
        "advantage": "expected_sarsa", "objective": "all_actions", "optimism": optimism,
    })  # fmt: skip
    reads = 3 if optimism else 2
    assert found["network_rows"] == reads * 2 * GAMES + 2 * GAMES + 3 * STEPS * BATCH


@pytest.mark.parametrize(("opponent", "own", "read"), [("self", 2, 2), ("random", 1, 2), ("past_self", 1, 3)])
def test_ppo_of_whole_games(opponent: str, own: int, read: int) -> None:
    """The network reads both players' decisions; a past self reads its own as well."""
    config = {"name": "ppo", "episodes_per_iteration": GAMES, "batch_size": BATCH, "epochs": 1, "opponents": [opponent]}
    assert _counted(config) == {
        "episodes": GAMES,
        "decisions": own * GAMES,
        "nodes": 2 * GAMES,
        "transitions": 3 * GAMES,
        "network_rows": read * GAMES + own * GAMES,
        "gradient_steps": own * GAMES / BATCH,
    }


@pytest.mark.parametrize("opponent", ["random", "past_self"])
def test_ppo_of_rollouts(opponent: str) -> None:
    """One decision and a deal in every game and step, no decision in the first; the last step ends every game."""
    config = {"name": "ppo", "num_envs": GAMES, "rollout_length": 4, "batch_size": BATCH, "epochs": 1}
    found = _counted(config | {"opponents": [opponent]})
    decided = 3 * GAMES
    others = found["nodes"] - decided
    assert found == {
        "episodes": decided,
        "decisions": decided,
        "nodes": found["nodes"],
        "transitions": found["nodes"] + decided + GAMES,
        "network_rows": 2 * decided + (others if opponent == "past_self" else 0),
        "gradient_steps": decided // BATCH,
    }
    assert 2 * GAMES <= others <= 4 * GAMES, "each game has one move of the opponent"


def test_mmd() -> None:
    """As PPO of whole games, and the magnet reads what is learned from once more where it is a network."""
    config = {"name": "mmd", "episodes_per_iteration": GAMES, "batch_size": BATCH, "epochs": 1}
    plain, moving = (_counted(config | {"magnet": kind}) for kind in ("uniform", "moving_average"))
    for found in (plain, moving):
        assert {name: found[name] for name in ("episodes", "decisions", "nodes", "transitions")} == {
            "episodes": GAMES,
            "decisions": 2 * GAMES,
            "nodes": 2 * GAMES,
            "transitions": 3 * GAMES,
        }
        assert found["gradient_steps"] == 2 * GAMES / BATCH
    assert plain["network_rows"] == 2 * GAMES + 2 * GAMES
    assert moving["network_rows"] == plain["network_rows"] + 2 * GAMES


def test_rnad() -> None:
    """The network plays; in each pass it, its slow copy and both anchors read every decision, padding left out."""
    config = {"name": "rnad", "episodes_per_iteration": GAMES, "batch_games": BATCH, "epochs": STEPS}
    assert _counted(config) == {
        "episodes": GAMES,
        "decisions": 2 * GAMES,
        "nodes": 2 * GAMES,
        "transitions": 3 * GAMES,
        "network_rows": 2 * GAMES + 4 * STEPS * 2 * GAMES,
        "gradient_steps": STEPS * GAMES / BATCH,
    }


def test_rnad_counts_no_padding() -> None:
    """Rounds of Kuhn poker last two moves or three, and all are kept in three rows."""
    learner = algorithms.make(
        {"name": "rnad", "episodes_per_iteration": GAMES, "batch_games": GAMES}, NETWORK, envs.make("kuhn_poker")
    )
    _, metrics = learner.iterate(learner.init(jax.random.key(0)))
    assert metrics["decisions"] < 3 * GAMES
    assert metrics["network_rows"] == 5 * metrics["decisions"]


def test_nfsp() -> None:
    """Both networks read every decision; a step of Q-learning reads its rows and what follows them."""
    sizes = {"best_response": {"steps": STEPS, "batch_size": BATCH}, "average": {"steps": 2, "batch_size": BATCH}}
    assert _counted({"name": "nfsp", "episodes_per_iteration": GAMES, **sizes}) == {
        "episodes": GAMES,
        "decisions": 2 * GAMES,
        "nodes": 2 * GAMES,
        "transitions": 3 * GAMES,
        "network_rows": 2 * 2 * GAMES + 2 * STEPS * BATCH + 2 * BATCH,
        "gradient_steps": STEPS + 2,
    }


DEEP = {
    "fit": {"steps": STEPS, "batch_size": BATCH},
    "memory": {"kind": "reservoir", "capacity": 64},
    "traversals": GAMES,
}
VALUES = {"steps": STEPS, "batch_size": BATCH, "capacity": 64}
TABLE = 2 * 4
"""Both players' networks at all four information sets."""


@pytest.mark.parametrize(
    ("values", "looked_at", "by_row"),
    [({"policy": "stored"}, 0, 2), ({"policy": "current", "chance": "exact"}, 2, 4)],
    ids=["sampled", "enumerated"],
)
def test_outcome_sampling_with_values(values: dict[str, str], looked_at: int, by_row: int) -> None:
    """Both players' networks and the values read every decision, and every outcome looked at that is no end."""
    found = _counted({"name": "dream", **DEEP, "values": VALUES | values})
    assert found == {
        "episodes": 2 * GAMES,
        "decisions": 2 * GAMES,
        "nodes": 2 * 2 * GAMES,
        "transitions": 2 * (3 + looked_at) * GAMES,
        "network_rows": 2 * (3 * (2 + looked_at / 2) * GAMES + STEPS * BATCH + TABLE) + by_row * STEPS * BATCH,
        "gradient_steps": 3 * STEPS,
    }


@pytest.mark.parametrize(("sync_every", "steps"), [(1, 3), (2, 2), (5, 3)])
def test_gradient_steps_of_history_values(sync_every: int, steps: int) -> None:
    """Whole periods of the target network, and no more than asked for: what Adam has counted."""
    config = {"name": "vr_dcfr_plus", **DEEP, "values": VALUES | {"sync_every": sync_every, "reinitialise": False}}
    learner = algorithms.make(config, NETWORK, GAME)
    state, metrics = learner.iterate(learner.init(jax.random.key(0)))
    assert int(optax.tree.get(state.values.optimizer_state, "count")) == steps
    assert metrics["gradient_steps"] == 2 * STEPS + steps


def test_outcome_sampling_with_cumulative_targets() -> None:
    """What a network predicted before is read at each of the player's decisions."""
    found = _counted({"name": "vr_dcfr_plus", **DEEP, "values": VALUES | {"sync_every": 1, "policy": "stored"}})
    assert found["network_rows"] == 2 * (3 * 2 * GAMES + STEPS * BATCH + TABLE + GAMES) + 2 * STEPS * BATCH


@pytest.mark.parametrize("kind", ["reservoir", "infoset_sums"])
def test_external_sampling(kind: str) -> None:
    """Player 0 sees 3 decisions in 5 histories of each traversal, player 1 sees 2 in 4; one is their own."""
    found = _counted({"name": "sd_cfr", **DEEP, "memory": {"kind": kind, "capacity": 64}})
    rows = BATCH if kind == "reservoir" else 2
    assert found == {
        "episodes": 2 * GAMES,
        "decisions": 2 * GAMES,
        "nodes": 5 * GAMES,
        "transitions": 9 * GAMES,
        "network_rows": 2 * (2 * TABLE + STEPS * rows),
        "gradient_steps": 2 * STEPS,
    }


def test_average_networks() -> None:
    """Their fits count in the iteration that fits them, and then no table is made for the average."""
    average = {"source": "network", "every": 1, "capacity": 64, "fit": {"steps": STEPS, "batch_size": BATCH}}
    found = _counted({"name": "deep_cfr", **DEEP, "average": average})
    assert found["network_rows"] == 2 * (TABLE + STEPS * BATCH) + 2 * STEPS * BATCH
    assert found["gradient_steps"] == 4 * STEPS


def test_tabular() -> None:
    """CFR enters all 14 histories twice, 6 of them decisions; a traversal of MCCFR as above."""
    assert _counted({"name": "cfr"}) == {"nodes": 2 * 6, "transitions": 2 * 14}
    found = _counted({"name": "external_mccfr", "trajectories": GAMES, "batch": GAMES})
    assert found == {"episodes": 2 * GAMES, "decisions": 2 * GAMES, "nodes": 5 * GAMES, "transitions": 9 * GAMES}
