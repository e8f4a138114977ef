"""Sound files to start from: a small network as an export, and as pickles under three projects' names."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import jax
import numpy as np

import envs
from dream.networks import make_network
from dream.storage.card import Card
from dream.storage.policy_file import named, to_bytes

GAME = "leduc_poker"
NETWORK = {"name": "dueling", "hidden": [8, 6]}


def parameters() -> dict[str, dict[str, np.ndarray]]:
    """Returns the network's parameters."""
    return jax.tree.map(np.asarray, make_network(NETWORK, envs.make(GAME)).init(jax.random.key(0)))


def card(**changes: Any) -> Card:
    """Returns the card of the network, with changes."""
    network = {"env": {"name": GAME, "rules": {}}, "game": envs.make(GAME).identity, "network": NETWORK}
    acts = {"by": "softmax", "temperature": 1.0}
    return dataclasses.replace(Card(**network, acts=acts, source="a trial", parameters=1), **changes)


def export(**changes: Any) -> bytes:
    """Returns an export of the network."""
    return to_bytes(card(**changes), named(parameters()))


def pickles() -> dict[str, bytes]:
    """Returns pickles of the network by name."""
    own, config = parameters(), {"env": {"name": GAME}, "hidden": [8, 6], "rate": 1e-3}
    layers = ("first", "trunk_1", "advantages", "value")
    haiku = {f"net/~/linear{f'_{n}' if n else ''}": own[layer] for n, layer in enumerate(layers)}
    flax = {f"Dense_{n}": {"kernel": own[layer]["w"], "bias": own[layer]["b"]} for n, layer in enumerate(layers)}
    as_jax = jax.tree.map(jax.numpy.asarray, haiku)
    return {
        "own, protocol 2": pickle.dumps({"params": own, "config": config}, 2),
        "own, protocol 5": pickle.dumps({"params": own, "config": config}, 5),
        "haiku": pickle.dumps({"params": haiku, "config": config}, 4),
        "jax": pickle.dumps({"params": as_jax, "config": config}, 4),
        "flax": pickle.dumps({"params": {"params": flax}, "config": config}, 4),
    }
