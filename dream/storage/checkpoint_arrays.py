"""What is stored of a state's arrays, for who writes checkpoints and who reads them: names, shapes, checksums.

Also the options by which orbax does either in this process alone.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np

from envs.errors import InputError

SUMS_FILE = "files.json"
"""Size and CRC-32 of every file of the state, written last: damage is found before anything tries to read it."""


def array_shapes(tree: Any) -> dict[str, str]:
    """Returns dtype and shape of every array, by its path in the tree."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): f"{np.dtype(x.dtype).name}{list(x.shape)}" for path, x in leaves}


def check_arrays(tree: Any, what: str) -> None:
    """Raises InputError where a tree that is to be stored holds something else than arrays; `what` names it."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if not (hasattr(leaf, "dtype") and hasattr(leaf, "shape")):
            place = f" at {jax.tree_util.keystr(path)}" if path else ""
            raise InputError(f"{what} holds {leaf!r}{place}; it must hold arrays alone, as np.int32(0)")


def file_sums(path: Path) -> dict[str, list[int]]:
    """Returns size and CRC-32 of every file of a checkpoint's state, by its path in the checkpoint."""
    files = sorted(file for file in (path / "state").rglob("*") if file.is_file())
    return {str(file.relative_to(path)): [file.stat().st_size, zlib.crc32(file.read_bytes())] for file in files}


def checksum(tree: Any) -> int:
    """Returns the CRC-32 of all arrays of a pytree, in order."""
    total = 0
    for leaf in jax.tree.leaves(jax.device_get(tree)):
        total = zlib.crc32(np.ascontiguousarray(leaf).tobytes(), total)
    return total


def alone() -> Any:
    """Returns options of orbax that have this process read and write by itself, whether there are others or not."""
    import orbax.checkpoint as ocp

    own = jax.process_index()
    prefix = f"host{own}" if jax.process_count() > 1 else None
    return ocp.options.MultiprocessingOptions(
        primary_host=own, active_processes={own} if prefix else None, barrier_sync_key_prefix=prefix
    )
