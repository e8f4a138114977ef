"""Checkpoints: a training state and what it needs to be understood, written whole or not at all.

A run directory keeps them in checkpoints/<iteration>/, each with `state` (arrays) and `meta` (JSON); orbax writes into
a temporary folder and renames it last, so that a killed process leaves only complete ones.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dream.storage.files import write_json
from dream.storage.old_configs import current_choices, current_config
from envs.errors import InputError

FOLDER = "checkpoints"
FORMAT = 1
"""Version of this layout, in every meta."""
_META_FILE = "meta/metadata"
_SUMS_FILE = "files.json"
"""Size and CRC-32 of every file of the state, written last: damage is found before anything tries to read it."""


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint on disk.

    Attributes:
      path: its folder.
      meta: `format`, `iteration`, `config` (resolved), `game` (identity), `counters`, `seconds`, `checksum` and more.
    """

    path: Path
    meta: dict[str, Any]

    def restore(self, like: Any) -> Any:
        """Returns the stored state.

        Args:
          like: a state, or a pytree of shapes and dtypes, of the same structure.
        Raises:
          InputError: the stored arrays are damaged, or of other shapes.
        """
        import orbax.checkpoint as ocp

        _check_files(self.path)
        keys = jax.tree.map(_is_key, like)
        plain = jax.tree.map(_as_plain_shape, like)
        self._check_arrays(plain)
        try:
            with jax.enable_x64(True), ocp.Checkpointer(ocp.StandardCheckpointHandler()) as reader:
                state = reader.restore(self.path / "state", args=ocp.args.StandardRestore(plain))
        except Exception as error:
            raise InputError(
                f"{self.path} cannot be read as a checkpoint of this network ({_first_line(error)}); "
                f"it is damaged or of another network: use another checkpoint of the run"
            ) from error
        if checksum(state) != self.meta["checksum"]:
            raise InputError(f"{self.path} is damaged: its arrays do not match their checksum; use an earlier one")
        return jax.tree.map(lambda x, is_key: jax.random.wrap_key_data(x) if is_key else x, state, keys)

    def _check_arrays(self, like: Any) -> None:
        """Raises InputError unless the arrays stored are those asked for, before anything is read."""
        stored, wanted = self.meta.get("arrays"), _array_shapes(like)
        if stored is None or stored == wanted:
            return
        differ = [name for name in {**stored, **wanted} if stored.get(name) != wanted.get(name)]
        raise InputError(
            f"{self.path} is a checkpoint of another network or algorithm: {differ[0]} is "
            f"{stored.get(differ[0], 'missing')} there, {wanted.get(differ[0], 'unknown')} here"
        )


class CheckpointWriter:
    """Writes a run's checkpoints and keeps the latest few."""

    def __init__(self, run_dir: Path, keep: int) -> None:
        """Opens the run's checkpoint folder.

        Args:
          run_dir: of the run; created if need be.
          keep: how many to keep, at least 1.
        """
        import orbax.checkpoint as ocp

        options = ocp.CheckpointManagerOptions(max_to_keep=keep, create=True, enable_async_checkpointing=False)
        self._ocp = ocp
        self._folder = Path(run_dir).absolute() / FOLDER
        self._manager = ocp.CheckpointManager(self._folder, options=options)

    def save(self, iteration: int, state: Any, meta: dict[str, Any]) -> None:
        """Writes one checkpoint, in the place of any of this iteration; returns when it is complete."""
        if iteration in self._manager.all_steps():
            self._manager.delete(iteration)
        plain = jax.tree.map(lambda x: jax.random.key_data(x) if _is_key(x) else x, state)
        told = {"format": FORMAT, "iteration": iteration, "checksum": checksum(plain), "arrays": _array_shapes(plain)}
        meta = {**told, **meta}
        args = self._ocp.args
        items = args.Composite(state=args.StandardSave(plain), meta=args.JsonSave(meta))
        self._manager.save(iteration, args=items, force=True)
        self._manager.wait_until_finished()
        path = self._folder / str(iteration)
        write_json(path / _SUMS_FILE, _file_sums(path))

    def drop_after(self, iteration: int) -> None:
        """Deletes the checkpoints past an iteration, those of work that is done anew."""
        for later in [step for step in self._manager.all_steps() if step > iteration]:
            self._manager.delete(later)

    def close(self) -> None:
        """Frees the writer."""
        self._manager.close()


def find(reference: str | Path) -> Checkpoint:
    """Opens a checkpoint.

    Args:
      reference: a run directory, whose latest complete checkpoint is meant, or a checkpoint's folder.
    Raises:
      InputError: there is none, or it is not one of this project's, or its format is unknown.
    """
    path = Path(reference).expanduser().absolute()
    if not path.exists():
        raise InputError(f"{reference} does not exist; it must be a run directory or a checkpoint's folder")
    if (path / FOLDER).is_dir():
        path = path / FOLDER
    if path.is_dir() and not (path / _META_FILE).exists():
        complete = [child for child in path.iterdir() if child.name.isdigit()]
        if not complete:
            raise InputError(
                f"{reference} holds no complete checkpoint; it must be a run directory with {FOLDER}/<iteration>/, "
                "or such a folder"
            )
        path = max(complete, key=lambda child: int(child.name))
    return Checkpoint(path, _read_meta(path))


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads((path / _META_FILE).read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path} is not a complete checkpoint ({_first_line(error)}); it must be a folder this project wrote"
        ) from error
    meta = meta if isinstance(meta, dict) else {}
    needed = {"format", "iteration", "checksum", "config", "game"}
    if not needed <= meta.keys():
        raise InputError(f"{path} is a foreign checkpoint: its meta lacks {', '.join(sorted(needed - set(meta)))}")
    if meta["format"] != FORMAT:
        raise InputError(f"{path} has format {meta['format']}; this version reads format {FORMAT}")
    config = current_config(meta["config"])
    return {**meta, "config": config, "choices": current_choices(meta.get("choices", {}), config)}


def _array_shapes(tree: Any) -> dict[str, str]:
    """Returns dtype and shape of every array, by its path in the tree."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): f"{np.dtype(x.dtype).name}{list(x.shape)}" for path, x in leaves}


def _file_sums(path: Path) -> dict[str, list[int]]:
    """Returns size and CRC-32 of every file of a checkpoint's state, by its path in the checkpoint."""
    files = sorted(file for file in (path / "state").rglob("*") if file.is_file())
    return {str(file.relative_to(path)): [file.stat().st_size, zlib.crc32(file.read_bytes())] for file in files}


def _check_files(path: Path) -> None:
    """Raises InputError where a file of the state is not as it was written; says nothing where no sums were."""
    if not (path / _SUMS_FILE).exists():
        return
    try:
        stored = json.loads((path / _SUMS_FILE).read_text())
        present = _file_sums(path)
        wrong = [name for name in stored if stored[name] != present.get(name)]
    except (OSError, ValueError, TypeError, AttributeError):
        wrong = [_SUMS_FILE]
    if wrong:
        raise InputError(
            f"{path} is damaged: {wrong[0]} is not as it was written; use an earlier checkpoint of the run"
        )


def checksum(tree: Any) -> int:
    """Returns the CRC-32 of all arrays of a pytree, in order."""
    total = 0
    for leaf in jax.tree.leaves(jax.device_get(tree)):
        total = zlib.crc32(np.ascontiguousarray(leaf).tobytes(), total)
    return total


def _is_key(x: Any) -> bool:
    return hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)


def _as_plain_shape(x: Any) -> jax.ShapeDtypeStruct:
    """Returns shape and dtype with keys as words, on the first device, wherever the checkpoint was written."""
    x = jax.eval_shape(jax.random.key_data, x) if _is_key(x) else x
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0]))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:120]}" if lines else type(error).__name__
