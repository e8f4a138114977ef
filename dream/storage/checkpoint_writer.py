"""Writes checkpoints, whole or not at all; checkpoint.py says what they are, and reads them.

Orbax writes into a temporary folder and renames it last, so that a killed process leaves only complete ones. One that
is written again is written beside the old one, which stays until the new one is whole.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import jax

from dream.storage import replacing
from dream.storage.checkpoint_arrays import SUMS_FILE, alone, array_shapes, checksum, file_sums
from dream.storage.checkpoint_meta import FOLDER, first_line, signed
from dream.storage.files import write_json
from dream.storage.finite import not_finite
from dream.storage.quiet import quietly
from envs import keys

_BESIDE = ".rewritten"
"""Among the checkpoints: where one is written whose place is taken."""

_UNFINISHED = ".orbax-checkpoint-tmp"
"""After an iteration: what Orbax calls a checkpoint that it has begun to write."""

_MOST_TRIES, _CLEAN_TRIES, _PAUSE = 60, 6, 0.05
"""How often a refused write's remains are looked for, how often in a row without any, and seconds in between."""

_NUMBER = re.compile(r"os_error_code='(\d{1,4})'")
"""The system's error in what the writer of arrays says."""


class CheckpointWriter:
    """Writes a run's checkpoints and keeps the latest few."""

    def __init__(self, run_dir: Path, keep: int) -> None:
        """Opens the run's checkpoint folder, and deletes what a killed process had begun to write there.

        Args:
          run_dir: of the run, whose lock is held; created if need be.
          keep: how many to keep, at least 1.
        """
        import orbax.checkpoint as ocp

        self._ocp = ocp
        self._folder = Path(run_dir).absolute() / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        for unfinished in (self._folder / _BESIDE, *self._folder.glob(f"[0-9]*{_UNFINISHED}*")):
            shutil.rmtree(unfinished, ignore_errors=True)
        replacing.mend(self._folder)
        self._manager = self._manager_of(self._folder, keep)

    def _manager_of(self, folder: Path, keep: int) -> Any:
        options = self._ocp.CheckpointManagerOptions(
            max_to_keep=keep, create=False, enable_async_checkpointing=False, multiprocessing_options=alone()
        )
        return self._ocp.CheckpointManager(folder, options=options)

    def save(self, iteration: int, state: Any, meta: dict[str, Any]) -> None:
        """Writes one checkpoint, in the place of any of this iteration; returns when it is complete.

        Raises:
          FloatingPointError: the state holds numbers that are not finite; nothing is written.
          OSError: the disk refused; the checkpoints that were there are as they were.
        """
        if (wrong := not_finite(state)) is not None:
            raise FloatingPointError(f"iteration {iteration} is not saved: {wrong}")
        plain = jax.tree.map(keys.plain, state)
        stated = {"iteration": iteration, "checksum": checksum(plain), "arrays": array_shapes(plain)}
        meta = signed({**stated, **meta})
        args = self._ocp.args
        items = args.Composite(state=args.StandardSave(plain), meta=args.JsonSave(meta))
        try:
            quietly(lambda: self._write(iteration, items), _as_os_error)
        except OSError:
            _clear(self._folder, f"{iteration}{_UNFINISHED}*")
            raise

    def _write(self, iteration: int, items: Any) -> None:
        if iteration not in self._manager.all_steps():
            _write_by(self._manager, self._folder / str(iteration), items)
            return
        beside = self._folder / _BESIDE
        beside.mkdir()
        try:
            with self._manager_of(beside, keep=1) as manager:
                _write_by(manager, beside / str(iteration), items)
            replacing.put_in_place(beside / str(iteration), self._folder / str(iteration))
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def drop_after(self, iteration: int) -> list[int]:
        """Deletes the checkpoints past an iteration, those of work that is done anew; returns their iterations."""
        dropped = sorted(step for step in self._manager.all_steps() if step > iteration)
        for later in dropped:
            self._manager.delete(later)
        return dropped

    def close(self) -> None:
        """Frees the writer."""
        self._manager.close()


def _clear(folder: Path, pattern: str) -> None:
    """Deletes what a refused write has left; for a moment its threads may still add to it, or make it once more."""
    clean = 0
    for _ in range(_MOST_TRIES):
        left = list(folder.glob(pattern))
        for unfinished in left:
            shutil.rmtree(unfinished, ignore_errors=True)
        clean = 0 if left else clean + 1
        if clean == _CLEAN_TRIES:
            return
        time.sleep(_PAUSE)


def _write_by(manager: Any, path: Path, items: Any) -> None:
    """Writes a checkpoint by the manager of its folder, then the sums of its files."""
    manager.save(int(path.name), args=items, force=True)
    manager.wait_until_finished()
    write_json(path / SUMS_FILE, file_sums(path))


def _as_os_error(error: BaseException) -> OSError:
    """Returns what a failed write came from: the system's error, which the writer of arrays may have wrapped."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            return OSError(cause.errno, cause.strerror or str(cause))
        cause = cause.__cause__ or cause.__context__
    if found := _NUMBER.search(str(error)):
        return OSError(int(found[1]), os.strerror(int(found[1])))
    return OSError(errno.EIO, first_line(error))
