"""A trained player in one file: an export of this project (.safetensors) or a documented pickle of another.

An export holds the arrays of the policy's parameters, named by their place in it, joined by dots, and in its metadata a
card in JSON: the game, how to build the policy, and where it comes from (card.py). Arrays come back bit for bit, or
are refused by their checksum; they are read once the file's header says that they are those of the card's policy.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import envs
from dream.storage.card import Card, parse, policy_like
from dream.storage.checkpoint_arrays import checksum
from dream.storage.finite import not_finite
from dream.storage.foreign.networks import check_arrays, read_network
from envs import Game, Policy
from envs.errors import InputError, shown

SUFFIX = ".safetensors"
_KEY = "dream_card"
"""Of the card in the file's metadata, which has no other: safetensors writes several in any order."""
_MAX_HEADER = 2**23
"""Bytes of names, shapes and card that are read."""
_CHUNK = 2**22
_DTYPES = {
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64",
}  # fmt: skip
"""Names of dtypes in a header; of others arrays are not made."""


class Entry(NamedTuple):
    """An array by a file's header: its shape, and its dtype by name where numpy has none."""

    shape: tuple[int, ...]
    dtype: np.dtype | str


@dataclasses.dataclass(frozen=True)
class PolicyFile:
    """A trained player in one file.

    Attributes:
      path: of the file.
      card: what is known of it.
      entries: its parameters by name, as shapes and dtypes.
      load: reads them.
      folder: for reports on it.
      checksum: the file's CRC-32.
    """

    path: Path
    card: Card
    entries: Mapping[str, Any]
    load: Callable[[], dict[str, np.ndarray]]
    folder: Path
    checksum: int

    @property
    def meta(self) -> dict[str, Any]:
        """What is known of it, under the names of a checkpoint's meta."""
        config = {"env": self.card.env, "network": self.card.network, "algo": self.card.algo}
        stored = {"game": self.card.game, "iteration": self.card.iteration, "checksum": self.checksum}
        return {**stored, "config": config}

    @property
    def report_name(self) -> str:
        """What names it in reports: the file's name; with game and checksum where other files' reports come too."""
        own = self.path.parent.resolve() == self.folder.resolve()
        name = self.path.name.removesuffix(SUFFIX)
        return name if own else f"{self.card.game['name']}_{name}-{self.checksum:08x}"

    def make(self, game: Game) -> Policy:
        """Builds the policy.

        Raises:
          InputError: a wrong card, arrays that are not those of the policy it names, or not finite.
        """
        try:
            like = policy_like(self.card, game, self.entries)
        except InputError as error:
            raise InputError(f"{self.path} has a wrong card: {error}") from error
        wanted = named(like.params)
        check_arrays(self.path, self.entries, wanted)
        arrays = self.load()
        if (wrong := not_finite(arrays)) is not None:
            raise InputError(f"{self.path} is unusable: {wrong}; export the policy from an earlier checkpoint")
        params = jax.tree.structure(like.params).unflatten(_placed(arrays[name]) for name in wanted)
        return dataclasses.replace(like, params=params, game=game)


def _placed(array: np.ndarray) -> Any:
    """Returns an array on the device, or on the host where JAX would round it: a table in double precision."""
    return jax.device_put(array) if jax.dtypes.canonicalize_dtype(array.dtype) == array.dtype else array


def named(params: Any) -> dict[str, Any]:
    """Returns a pytree's leaves by their place in it, joined by dots, in the tree's order."""
    leaves = jax.tree_util.tree_flatten_with_path(params)[0]
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def read(path: Path, folder: Path) -> PolicyFile:
    """Reads a trained player's file; the arrays are checked when a policy is made of them.

    Args:
      path: of the file.
      folder: for reports on it.
    Raises:
      InputError: a file of another kind, damaged, or refused, or with numbers that are not finite.
    """
    try:
        with path.open("rb") as file:
            start = file.read(2)
        if path.suffix != SUFFIX and start[:1] != b"\x80":
            raise InputError(
                f"{path} is not a complete checkpoint, nor a policy's file; it must be a run directory, a checkpoint's "
                f"folder, a {SUFFIX} file of this project, or a pickle of protocol 2 to 5"
            )
        card, entries, load = read_export(path) if path.suffix == SUFFIX else _read_pickle(path)
        return PolicyFile(path, card, entries, load, folder, _checksum(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error


def _checksum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            total = zlib.crc32(chunk, total)
    return total


Loaded = tuple[Card, Mapping[str, Any], Callable[[], dict[str, np.ndarray]]]
"""A card, what its arrays are, and what reads them."""


def _read_pickle(path: Path) -> Loaded:
    foreign = read_network(path)
    identity = envs.make(foreign.game["name"], **foreign.game["rules"]).identity
    card = Card(
        env=foreign.game,
        game={part: identity[part] for part in ("name", "version")},
        network=foreign.network,
        acts=dataclasses.asdict(foreign.acts),
        source=f"a pickle of another project, {shown(path.name)}",
        parameters=sum(array.size for array in foreign.params.values()),
    )
    return card, foreign.params, lambda: foreign.params


def read_export(path: Path) -> Loaded:
    """Reads the card of an export, and shapes and dtypes of its arrays; the arrays themselves are left where they are.

    Raises:
      InputError: damaged, or no export of this project.
    """
    text, entries = _opened(path, _header)
    if text is None:
        raise InputError(f"{path} is not an export of this project: its metadata contain no card under {_KEY!r}")
    try:
        card = parse(text)
        return card, entries, lambda: _undamaged(path, _opened(path, _arrays), card.checksum)
    except InputError as error:
        raise InputError(f"{path} has a wrong card: {error}") from error


def _undamaged(path: Path, arrays: dict[str, np.ndarray], expected: str) -> dict[str, np.ndarray]:
    """Returns the arrays; raises InputError where they are not those that were written. Old exports do not tell."""
    if expected and expected != _sum_of(arrays):
        raise InputError(f"{path} is damaged: its arrays do not match their checksum; export the policy again")
    return arrays


def _sum_of(arrays: Mapping[str, np.ndarray]) -> str:
    """Returns the CRC-32 of arrays in the order of their names, in hexadecimal digits."""
    return f"{checksum([arrays[name] for name in sorted(arrays)]):08x}"


def _opened(path: Path, read: Callable[[Any], Any]) -> Any:
    """Returns what is read out of a safetensors file."""
    import safetensors

    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > _MAX_HEADER:
        raise InputError(f"{path} has a header of {size} bytes; it must have {_MAX_HEADER} at most")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            return read(file)
    except (safetensors.SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        text = shown(" ".join(str(error).split()), 120)
        raise InputError(f"{path} is not a readable safetensors file ({text}); export the policy again") from error


def _header(file: Any) -> tuple[str | None, dict[str, Entry]]:
    entries = {}
    for name in file.keys():  # noqa: SIM118 - no mapping
        part = file.get_slice(name)
        kind = part.get_dtype()
        entries[name] = Entry(tuple(part.get_shape()), np.dtype(_DTYPES[kind]) if kind in _DTYPES else kind)
    return (file.metadata() or {}).get(_KEY), entries


def _arrays(file: Any) -> dict[str, np.ndarray]:
    return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping


def to_bytes(card: Card, arrays: dict[str, np.ndarray]) -> bytes:
    """Returns an export's contents; raises InputError where an array is not finite."""
    if (wrong := not_finite(arrays)) is not None:
        raise InputError(f"the policy is not exported: {wrong}")
    from safetensors.numpy import save

    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return save(plain, metadata={_KEY: json.dumps(with_checksum(card, plain).as_json())})


def with_checksum(card: Card, arrays: Mapping[str, np.ndarray]) -> Card:
    """Returns the card of an export of these arrays."""
    return dataclasses.replace(card, checksum=_sum_of(arrays))
