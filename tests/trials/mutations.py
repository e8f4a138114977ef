"""Sound files with bytes changed, cut, doubled or moved: read or refused, never anything else."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

import numpy as np

import dream
from trials import networks, records

_ODD = [
    b"\x00" * 4,
    b"\xff" * 4,
    b"\xff\xff\xff\x7f",
    b"\x80\x04",
    b".",
    b"R",
    b"\x93",
    b"b",
    b"\x81",
    b"(",
    b"}",
    b"{",
]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """Returns data with one to four changes."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        size = max(len(changed), 1)
        # Half of the changes are among the first bytes, where headers and names are.
        at = int(rng.integers(min(size, 400) if rng.random() < 0.5 else size))
        length = int(rng.integers(1, 9))
        how = rng.integers(7)
        if how == 0:
            changed[at : at + 1] = bytes([rng.integers(256)])
        elif how == 1:
            del changed[at : at + length]
        elif how == 2:
            changed[at:at] = rng.bytes(length)
        elif how == 3:
            changed[at : at + 4] = _ODD[rng.integers(len(_ODD))]
        elif how == 4:
            changed[at:at] = changed[at : at + 10 * length]
        elif how == 5:
            other = int(rng.integers(size))
            part = changed[at : at + length]
            changed[other : other + length] = part
        else:
            del changed[max(at, 1) :]
    return bytes(changed)


def cases(count: int, seed: int, folder: pathlib.Path) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """Yields `count` mutations: pickles, exports and hand records by turns."""
    rng = np.random.default_rng(seed)
    sound = [(name, "foreign.pkl", data) for name, data in networks.pickles().items()]
    sound += [("export", "policy.safetensors", networks.export())] * 2 + [("hand", "hand.json", records.sound())]
    for n in range(count):
        name, file, data = sound[n % len(sound)]
        changed = mutated(data, rng)
        yield f"{name}, mutation {n}", file, lambda changed=changed: changed


def warm_up(folder: pathlib.Path) -> None:
    """Imports and compiles what reading needs."""
    for file, data in (("a.pkl", networks.pickles()["haiku"]), ("a.safetensors", networks.export())):
        (folder / file).write_bytes(data)
        dream.load_policy(folder / file)
    records.warm_up(folder)


def read(path: pathlib.Path) -> None:
    """Reads a file of either kind."""
    records.read(path) if path.suffix == ".json" else dream.load_policy(path)


def must_be_refused(name: str) -> bool:
    """A changed number is another number: nothing tells that a weight is not what it was."""
    return False
