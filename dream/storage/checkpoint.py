"""Checkpoints: a training state and what it needs to be understood, as a run directory keeps them.

They are in checkpoints/<iteration>/, each with `state` (arrays) and `meta` (JSON), written whole or not at all
(checkpoint_writer.py).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from dream.compiled import devices
from dream.storage import old_states, replacing
from dream.storage.checkpoint_arrays import SUMS_FILE, alone, array_shapes, checksum, file_sums
from dream.storage.checkpoint_meta import FOLDER, FORMAT, META_FILE, DamagedMetaError, first_line, read_meta
from dream.storage.files import decoded
from dream.storage.finite import not_finite
from dream.storage.old_configs import current_choices, current_config
from envs import keys
from envs.errors import InputError


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint on disk.

    Attributes:
      path: its folder.
      meta: `format`, `iteration`, `config` (resolved), `game` (identity), `counters`, `seconds`, `checksum` (of the
        arrays), `meta_checksum` (of all the rest) and more.
    """

    path: Path
    meta: dict[str, Any]

    @property
    def run_dir(self) -> Path:
        """The directory of the run that it is of.

        Raises:
          InputError: it lies outside of a run, as a copy does.
        """
        if self.path.parent.name != FOLDER:
            raise InputError(
                f"{self.path} is a checkpoint outside of a run; "
                f"it must be in {FOLDER}/ of a run directory, {FOLDER}/{self.meta['iteration']} say"
            )
        return self.path.parent.parent

    def restore(self, like: Any) -> Any:
        """Returns the stored state.

        Args:
          like: a state, or a pytree of shapes and dtypes, of the same structure; arrays are put on the devices where
            its own are, whatever wrote them.
        Raises:
          InputError: the stored arrays are damaged, of other shapes, or hold numbers that are not finite.
        """
        _check_files(self.path)
        plain = jax.tree.map(_as_plain_shape, like)
        renamed = self._check_arrays(plain)
        try:
            state, arrays = self._restored(plain, renamed)
        except Exception as error:
            raise InputError(
                f"{self.path} cannot be read as a checkpoint of this network ({first_line(error)}); "
                f"it is damaged or of another network: {offer(self.path)}"
            ) from error
        if checksum(arrays) != self.meta["checksum"]:
            raise InputError(f"{self.path} is damaged: its arrays do not match their checksum; {offer(self.path)}")
        with jax.enable_x64(True):
            state = devices.as_laid_out(jax.device_get(state), jax.tree.map(_as_plain, like))
        if (wrong := not_finite(state)) is not None:
            raise InputError(f"{self.path} is unusable: {wrong}; {offer(self.path)}")
        return jax.tree.map(keys.rewrapped, state, like)

    def _restored(self, like: Any, renamed: dict[str, str] | None) -> tuple[Any, list[Any]]:
        """Returns the state, and its arrays in the order in which they were stored.

        A state may have got fields since that hold no arrays here, such as PPO's `average`: then it is put together by
        the arrays' names.
        """
        if renamed is None:
            try:
                state = _without_event_loop(lambda: self._read(like))
                return state, jax.tree.leaves(state)
            except ValueError:
                if self.meta.get("arrays") is None:
                    raise
                renamed = {name: name for name in self.meta["arrays"]}
        stored = self._by_path()
        arrays = [stored[old_states.path_of(name)] for name in self.meta["arrays"]]
        return old_states.reassembled(like, stored, renamed), arrays

    def is_sound(self) -> bool:
        """Returns whether the files, or where their sums do not cover them the arrays, are as they were written."""
        if (covered := _covered(self.path)) is not None:
            return covered
        try:
            stored = self._by_path()
            return checksum([stored[old_states.path_of(name)] for name in self.meta["arrays"]]) == self.meta["checksum"]
        except Exception:  # whatever orbax makes of damage
            return False

    def _by_path(self) -> dict[Any, Any]:
        """Returns the stored arrays by their paths, whatever network they are of."""
        return old_states.by_path(_without_event_loop(lambda: self._read(None)))

    def _read(self, like: Any) -> Any:
        """Returns the stored arrays in the structure asked for, or for None as nested dictionaries and lists."""
        import orbax.checkpoint as ocp

        own = alone()
        handler = ocp.StandardCheckpointHandler(multiprocessing_options=own)
        with jax.enable_x64(True), ocp.Checkpointer(handler, multiprocessing_options=own) as reader:
            return reader.restore(self.path / "state", args=ocp.args.StandardRestore(like))

    def _check_arrays(self, like: Any) -> dict[str, str] | None:
        """Compares the arrays stored with those asked for, before anything is read.

        Returns:
          The stored name of each in a checkpoint of format 1, where parts without arrays have other names too; else
          None.
        Raises:
          InputError: other arrays.
        """
        stored, wanted = self.meta.get("arrays"), array_shapes(like)
        if stored is None or (stored == wanted and self.meta["format"] == FORMAT):
            return None
        renamed = old_states.old_names(wanted, stored)
        if renamed is not None:
            stored = {name: stored[old] for name, old in renamed.items()}
            if stored == wanted:
                return renamed
        differ = [name for name in {**stored, **wanted} if stored.get(name) != wanted.get(name)]
        raise InputError(
            f"{self.path} is a checkpoint of another network or algorithm: {differ[0]} is "
            f"{stored.get(differ[0], 'missing')} there, {wanted.get(differ[0], 'unknown')} here"
        )


def _without_event_loop(function: Callable[[], Any]) -> Any:
    """Calls a function in a thread without an event loop, another one in a notebook.

    Where a loop runs, orbax reads in a thread of its own, to which jax.enable_x64 does not reach: it would round double
    precision.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def find(reference: str | os.PathLike[str]) -> Checkpoint:
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
    if path.is_dir() and not (path / META_FILE).exists():
        complete = _complete(path)
        if not complete:
            raise InputError(
                f"{reference} holds no complete checkpoint; it must be a run directory with {FOLDER}/<iteration>/, "
                "or such a folder"
            )
        if jobs := [job for job, folder in complete.items() if has_checkpoint(folder)]:
            job = path / str(min(jobs))
            raise InputError(f"{reference} is a sweep's folder; name one of its jobs, such as {job}")
        path = complete[max(complete)]
    return Checkpoint(path, _read_meta(path))


def sound_checkpoint(run_dir: str | Path, last: int | None = None) -> Checkpoint | None:
    """Returns the newest checkpoint of a run whose meta and arrays are as they were written; None where none is.

    Args:
      run_dir: of the run.
      last: the newest iteration that counts; None for any.
    """
    for iteration, path in sorted(_complete(Path(run_dir).absolute() / FOLDER).items(), reverse=True):
        if last is not None and iteration > last:
            continue
        try:
            found = Checkpoint(path, _current_meta(path))
        except InputError:
            continue
        if found.is_sound():
            return found
    return None


def offer(path: Path) -> str:
    """Returns what to do about a checkpoint that cannot be used: the one before it by name, if one is sound."""
    earlier = None
    if path.name.isdigit() and path.parent.name == FOLDER:
        earlier = sound_checkpoint(path.parent.parent, int(path.name) - 1)
    if earlier is None:
        return "there is no earlier one that is sound; use another run's, or begin anew"
    return f"use the earlier one, {earlier.path}, which is sound"


def has_checkpoint(run_dir: Path) -> bool:
    """Returns whether a run directory holds a checkpoint, sound or damaged; one half-written does not count."""
    return bool(_complete(Path(run_dir) / FOLDER))


def newest(run_dir: str | Path) -> int | None:
    """Returns the iteration of a run's newest checkpoint, sound or damaged; None where there is none."""
    return max(_complete(Path(run_dir) / FOLDER), default=None)


def _complete(folder: Path) -> dict[int, Path]:
    """Returns iteration -> folder of the checkpoints that were written to their end.

    One that was moved aside counts where nothing has taken its place yet.
    """
    if not folder.is_dir():
        return {}
    children = list(folder.iterdir())
    aside = {name: child for child in children if (name := replacing.aside_of(child)) is not None}
    named = aside | {child.name: child for child in children}
    return {int(name): child for name, child in named.items() if name.isdigit() and name.isascii()}


def _read_meta(path: Path) -> dict[str, Any]:
    """Reads a checkpoint's meta; raises InputError, which names an earlier checkpoint where this one is damaged."""
    try:
        return _current_meta(path)
    except DamagedMetaError as error:
        raise InputError(f"{error}; {offer(path)}") from error


def _current_meta(path: Path) -> dict[str, Any]:
    """Reads and checks a checkpoint's meta; raises InputError where anything is not as this project writes it."""
    meta = read_meta(path)
    try:
        config = current_config(meta["config"])
        return {**meta, "config": config, "choices": current_choices(meta.get("choices", {}), config)}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged: its configuration cannot be read ({first_line(error)})") from error


def _check_files(path: Path) -> None:
    """Raises InputError where a file of the state is not as it was written."""
    if (wrong := _damaged_file(path)) is not None:
        raise InputError(f"{path} is damaged: {wrong} is not as it was written; {offer(path)}")


def _covered(path: Path) -> bool | None:
    """Returns whether the files of the state are as they were written; None where not all of them have a sum."""
    try:
        sums = decoded((path / SUMS_FILE).read_bytes())
        known = isinstance(sums, dict) and sums.keys() >= file_sums(path).keys()
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return False
    return _damaged_file(path) is None if known else None


def _damaged_file(path: Path) -> str | None:
    """Returns the first file of the state that is not as it was written; None where none is, or no sums were."""
    if not (path / SUMS_FILE).exists():
        return None
    try:
        stored = decoded((path / SUMS_FILE).read_bytes())
        present = file_sums(path)
        return next((name for name in stored if stored[name] != present.get(name)), None)
    except (OSError, ValueError, TypeError, AttributeError):
        return SUMS_FILE


def _as_plain(x: Any) -> Any:
    """Returns keys as words; shapes of keys have no words, and say nothing of where."""
    return keys.plain(x) if isinstance(x, jax.Array) else x


def _as_plain_shape(x: Any) -> jax.ShapeDtypeStruct:
    """Returns shape and dtype with keys as words, on the first device, wherever the checkpoint was written."""
    x = keys.plain_shape(x)
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=jax.sharding.SingleDeviceSharding(jax.local_devices()[0]))
