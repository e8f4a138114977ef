"""Are training states of version 0.1.0 read, whose parts had other names?"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from dream_support import arrays

import envs
from dream import algorithms
from dream.storage import old_states
from dream.storage.checkpoint import FOLDER, find
from dream.storage.checkpoint_meta import META_FILE
from dream.storage.checkpoint_writer import CheckpointWriter
from envs import InputError

OldPpo = namedtuple("OldPpo", "params optimizer_state key iteration lanes ring")
OldLane = namedtuple("OldLane", "state table ready owed")
OldTable = namedtuple("OldTable", "seat opponent named")
OldRing = namedtuple("OldRing", "params pushed")
OldDeep = namedtuple("OldDeep", "networks fitted scales memories values plans average key iteration")

NETWORK = {"name": "dueling", "hidden": [4]}
META = {"config": {"seed": 1}, "game": {"name": "kuhn_poker", "version": "1", "rules": {}}}
DEEP = {
    "memory": {"kind": "reservoir", "capacity": 16},
    "traversals": 4,
    "average": {"source": "network", "capacity": 8},
}


def _old_ppo(state: Any) -> OldPpo:
    """Returns a PPO state as 0.1.0 had it: games under way, and past parameters."""
    lanes, ring = state.lanes, state.pool
    if lanes != ():
        lanes = OldLane(lanes.state, OldTable(*lanes.seating), lanes.awaiting_learner, lanes.credited)
    return OldPpo(*state[:4], lanes, OldRing(*ring) if ring != () else ())


def _old_deep(state: Any) -> OldDeep:
    """Returns a deep regret minimiser's state as 0.1.0 had it: flat, with pairs and triples in place of records."""
    values, average = (None if part is None else tuple(part)[:3] for part in (state.values, state.average))
    return OldDeep(*state.networks, state.buffers, values, state.plans, average, state.key, state.iteration)


CASES: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "ppo of whole games": ({"name": "ppo"}, _old_ppo),
    "ppo of rollouts": ({"name": "ppo", "num_envs": 4, "rollout_length": 2, "opponents": ["past_self"]}, _old_ppo),
    "dream": ({"name": "dream", **DEEP}, _old_deep),
    "sd_cfr": ({"name": "sd_cfr", "memory": {"kind": "infoset_sums"}}, _old_deep),
}


def _written(folder: Path, state: Any) -> Path:
    """Writes a checkpoint as 0.1.0 did: format 1, without a checksum of the meta."""
    writer = CheckpointWriter(folder, keep=1)
    writer.save(3, state, META)
    writer.close()
    path = folder / FOLDER / "3" / META_FILE
    meta = json.loads(path.read_text())
    del meta["meta_checksum"]
    path.write_text(json.dumps({**meta, "format": 1}))
    return folder


@pytest.mark.parametrize("case", CASES)
def test_a_state_comes_back_under_its_present_names(case: str, tmp_path: Path) -> None:
    """Bit for bit; where it was changed, by its checksum it is refused as any other."""
    config, old = CASES[case]
    learner = algorithms.make(config, NETWORK, envs.make("kuhn_poker"))
    state = learner.init(jax.random.key(5))
    restored = find(_written(tmp_path / "run", old(state))).restore(learner.init(jax.random.key(6)))
    assert jax.tree.structure(restored) == jax.tree.structure(state)
    for a, b in zip(arrays(restored), arrays(state), strict=True):
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())


def _first(record: Any, fields: int) -> Any:
    """Returns a record as it was when it had its first fields alone."""
    return namedtuple("Earlier", record._fields[:fields])(*record[:fields])


EARLIER: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "ppo without an average": ({"name": "ppo"}, lambda state: _first(state, 8)),
    "ppo without what may be added": ({"name": "ppo"}, lambda state: _first(state, 5)),
    "values without a slow copy": (
        {"name": "dream", **DEEP},
        lambda state: state._replace(values=_first(state.values, 3)),
    ),
}


@pytest.mark.parametrize("case", EARLIER)
def test_a_state_without_later_fields_comes_back(case: str, tmp_path: Path) -> None:
    """Of the present format, written before the last fields of the state or of a part were there, without arrays."""
    config, earlier = EARLIER[case]
    learner = algorithms.make(config, NETWORK, envs.make("kuhn_poker"))
    state = learner.init(jax.random.key(5))
    writer = CheckpointWriter(tmp_path / "run", keep=1)
    writer.save(3, earlier(state), META)
    writer.close()
    restored = find(tmp_path / "run").restore(learner.init(jax.random.key(6)))
    assert jax.tree.structure(restored) == jax.tree.structure(state)
    for a, b in zip(arrays(restored), arrays(state), strict=True):
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes())


def test_a_changed_array_is_found(tmp_path: Path) -> None:
    """The checksum is that of the arrays in their old order."""
    config, old = CASES["dream"]
    learner = algorithms.make(config, NETWORK, envs.make("kuhn_poker"))
    state = learner.init(jax.random.key(5))
    path = _written(tmp_path / "run", old(state)) / FOLDER / "3" / META_FILE
    meta = json.loads(path.read_text())
    path.write_text(json.dumps({**meta, "checksum": meta["checksum"] ^ 1}))
    with pytest.raises(InputError, match="do not match their checksum"):
        find(tmp_path / "run").restore(state)


def test_another_network_is_named_by_its_present_name(tmp_path: Path) -> None:
    """Wider than the one asked for."""
    config, old = CASES["sd_cfr"]
    game = envs.make("kuhn_poker")
    wide = algorithms.make(config, {"name": "dueling", "hidden": [6]}, game).init(jax.random.key(5))
    found, narrow = find(_written(tmp_path / "run", old(wide))), algorithms.make(config, NETWORK, game)
    like = narrow.init(jax.random.key(5))
    with pytest.raises(InputError, match=r"of another network or algorithm: \.networks\.params\["):
        found.restore(like)


def test_names() -> None:
    """A game's field inside games under way; a network's layer of that name stays; other states are not 0.1.0's."""
    assert old_states.path_of(".optimizer_state[2].mu['first']['w']") == ("optimizer_state", "2", "mu", "first", "w")
    wanted = [".lanes.state.discarded", ".networks.params['discarded']['w']"]
    stored = [".networks['discarded']['w']", ".lanes.state.shed"]
    assert old_states.old_names(wanted, stored) == dict(zip(wanted, reversed(stored), strict=True))
    assert old_states.old_names(wanted, [".lanes.state.shed"]) is None
    assert old_states.old_names([".key"], [".key", ".more"]) is None
    leaves = old_states.by_path({"a": [jnp.int32(1), jnp.int32(2)]})
    assert {path: int(x) for path, x in leaves.items()} == {("a", "0"): 1, ("a", "1"): 2}
