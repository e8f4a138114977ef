"""A trained player in one file: an export of this project (.safetensors) or a documented pickle of another.

An export holds the arrays of the policy's parameters, named by their place in it, joined by dots, and in its metadata a
card in JSON: the game, how to build the policy, and where it comes from. Arrays come back bit for bit.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np

import envs
from dream import algorithms
from dream.algorithms.types import Resources
from dream.config import settings
from dream.config.schema import EnvConfig
from dream.networks import make_network
from dream.networks.policy import Acts, make_network_policy
from dream.storage.foreign.networks import check_arrays, read_network
from dream.storage.old_configs import current_config
from dream.storage.tree_cache import stored_tree
from envs import Game, Policy
from envs.errors import InputError

SUFFIX = ".safetensors"
FORMAT = 1
"""Version of the card."""
_KEY = "dream_card"
"""Of the card in the file's metadata."""


@dataclasses.dataclass(frozen=True)
class Card:
    """What an export tells of its policy.

    Attributes:
      env: name and rules of its game, as `envs.make` takes them.
      game: that game's identity; `rules` may be missing where they are not known.
      network: the network's node.
      algo: the learner's node, whose policy it is; None where it is a network that acts by `acts`.
      acts: how the network acts; None where `algo` tells it.
      policy: its name among the learner's policies.
      iteration: completed when it was saved; None if unknown.
      source: what it was made from, in words.
      parameters: numbers in all arrays.
      format: of the card.
    """

    env: dict[str, Any]
    game: dict[str, Any]
    network: Any = None
    algo: Any = None
    acts: Any = None
    policy: str = "current"
    iteration: int | None = None
    source: str = ""
    parameters: int = 0
    format: int = FORMAT


@dataclasses.dataclass(frozen=True)
class PolicyFile:
    """A trained player in one file.

    Attributes:
      path: of the file.
      card: what is known of it.
      arrays: its parameters by name.
      folder: for reports on it.
      checksum: the file's CRC-32.
    """

    path: Path
    card: Card
    arrays: dict[str, np.ndarray]
    folder: Path
    checksum: int

    @property
    def meta(self) -> dict[str, Any]:
        """What is known of it, under the names of a checkpoint's meta."""
        config = {"env": self.card.env, "network": self.card.network, "algo": self.card.algo}
        told = {"game": self.card.game, "iteration": self.card.iteration, "checksum": self.checksum}
        return {**told, "config": config}

    def make(self, game: Game) -> Policy:
        """Builds the policy.

        Raises:
          InputError: arrays that are not those the card tells of.
        """
        like = policy_like(self.card, game)
        wanted = named(like.params)
        check_arrays(self.path, self.arrays, wanted)
        params = jax.tree.structure(like.params).unflatten(_placed(self.arrays[name]) for name in wanted)
        return dataclasses.replace(like, params=params)


def _placed(array: np.ndarray) -> Any:
    """Returns an array on the device, or on the host where JAX would round it: a table in double precision."""
    return jax.device_put(array) if jax.dtypes.canonicalize_dtype(array.dtype) == array.dtype else array


def named(params: Any) -> dict[str, Any]:
    """Returns a pytree's leaves by their place in it, joined by dots, in the tree's order."""
    leaves = jax.tree_util.tree_flatten_with_path(params)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def policy_like(card: Card, game: Game) -> Policy:
    """Builds the policy a card tells of, with arrays of the right shapes for parameters.

    Raises:
      InputError: a wrong setting in the card.
    """
    if card.algo is None:
        network = make_network(card.network, game)
        shapes = jax.eval_shape(network.init, jax.random.key(0))
        return make_network_policy(game, network, shapes, settings.read(Acts, card.acts, "acts"))
    learner = algorithms.make(card.algo, card.network, game, Resources(find_tree=stored_tree))

    def policies_at_start(key: jax.Array) -> dict[str, Policy]:
        return learner.policies(learner.init(key))

    try:
        policies = jax.eval_shape(policies_at_start, jax.random.key(0))
    except jax.errors.JAXTypeError:  # a tabular learner, which works on the host
        policies = policies_at_start(jax.random.key(0))
    if card.policy not in policies:
        raise InputError(f"a {card.algo['name']} learner has no policy {card.policy!r}; it has {', '.join(policies)}")
    return policies[card.policy]


def read(path: Path, folder: Path) -> PolicyFile:
    """Reads a trained player's file; the arrays are checked when a policy is made of them.

    Args:
      path: of the file.
      folder: for reports on it.
    Raises:
      InputError: a file of another kind, damaged, or refused.
    """
    try:
        with path.open("rb") as file:
            start = file.read(2)
        if path.suffix != SUFFIX and start[:1] != b"\x80":
            raise InputError(
                f"{path} is not a complete checkpoint, nor a policy's file; it must be a run directory, a checkpoint's "
                f"folder, a {SUFFIX} file of this project, or a pickle of protocol 2 to 5"
            )
        card, arrays = read_export(path) if path.suffix == SUFFIX else _read_pickle(path)
        return PolicyFile(path, card, arrays, folder, zlib.crc32(path.read_bytes()))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error


def _read_pickle(path: Path) -> tuple[Card, dict[str, np.ndarray]]:
    foreign = read_network(path)
    identity = envs.make(foreign.game["name"], **foreign.game["rules"]).identity
    card = Card(
        env=foreign.game,
        game={part: identity[part] for part in ("name", "version")},
        network=foreign.network,
        acts=dataclasses.asdict(foreign.acts),
        source=f"a pickle of another project, {path.name}",
        parameters=sum(array.size for array in foreign.params.values()),
    )
    return card, foreign.params


def read_export(path: Path) -> tuple[Card, dict[str, np.ndarray]]:
    """Reads the card and the arrays of an export.

    Raises:
      InputError: damaged, or no export of this project.
    """
    import safetensors

    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            told = (file.metadata() or {}).get(_KEY)
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (safetensors.SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        text = " ".join(str(error).split())[:120]
        raise InputError(f"{path} is no readable safetensors file ({text}); export the policy anew") from error
    try:
        node = None if told is None else json.loads(told)
    except json.JSONDecodeError:
        node = None
    if not isinstance(node, dict):
        raise InputError(f"{path} is no export of this project: its metadata hold no card under {_KEY!r}")
    if node.get("format") != FORMAT:
        raise InputError(f"{path} has a card of format {node.get('format')!r}; this version reads format {FORMAT}")
    try:
        card = settings.read(Card, current_config(node), "card")
        settings.read(EnvConfig, card.env, "card.env")
        return card, arrays
    except InputError as error:
        raise InputError(f"{path} has a wrong card: {error}") from error


def to_bytes(card: Card, arrays: dict[str, np.ndarray]) -> bytes:
    """Returns an export's contents."""
    from safetensors.numpy import save

    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return save(plain, metadata={_KEY: json.dumps(dataclasses.asdict(card))})
