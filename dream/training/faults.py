"""What to say when a run cannot go on: what happened, what is safe, and what to do."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

from dream.config.compose import as_value
from dream.storage.checkpoint import newest, sound_checkpoint
from dream.storage.files import StorageError, why_not
from dream.storage.lock import RunLock
from envs.errors import InputError


def diverged(run_dir: Path, iteration: int, what: str) -> FloatingPointError:
    """Returns the error of a training whose numbers are no longer finite.

    Args:
      run_dir: of the run.
      iteration: in which it happened; checkpoints before it are from before the fault, as each was looked at.
      what: what is not finite.
    """
    before = sound_checkpoint(run_dir, iteration - 1)
    if before is None:
        after = "there is no sound checkpoint from before it; begin anew with other settings, a lower learning rate say"
    else:
        after = (
            f"{before.path}, of iteration {before.meta['iteration']}, is sound and from before it: go on from there "
            f"with other settings, resume={_argument(before.path)}"
        )
    return FloatingPointError(f"iteration {iteration}: {what}; {after}")


def write_failed(run_dir: Path, iteration: int, saved: int, error: OSError) -> StorageError:
    """Returns the error of a run whose folder refuses to be written to.

    Args:
      run_dir: of the run.
      iteration: completed before.
      saved: of the last checkpoint that was written to its end; 0 for none.
      error: the system's.
    """
    reason, mend = why_not(error)
    if not run_dir.is_dir():
        reason = "the folder is gone"
    kept = sound_checkpoint(run_dir, saved)
    safe = "no checkpoint is left there"
    if kept is not None:
        safe = f"safe is {kept.path}, of iteration {kept.meta['iteration']}"
        mend += f", then go on with resume={_argument(run_dir)}"
    return StorageError(f"after iteration {iteration}: {run_dir} cannot be written ({reason}); {safe}; {mend}")


@contextlib.contextmanager
def memory_explained() -> Iterator[None]:
    """Raises a MemoryError with a line to go by where the memory of a device or of the host is spent."""
    try:
        yield
        return
    except MemoryError as error:
        reason, cause = str(error), error
    except RuntimeError as error:  # of jax
        code, _, reason = str(error).partition(": ")
        if code != "RESOURCE_EXHAUSTED" or "memory" not in reason.lower():
            raise
        cause = error
    line = (reason.splitlines() or [""])[0].rstrip(".")
    raise MemoryError(
        f"the memory is spent ({line or 'the system gives no detail'}); ask for less at once: in training fewer games "
        "(algo.num_envs, algo.episodes_per_iteration), smaller minibatches, buffers or networks"
    ) from cause


@contextlib.contextmanager
def closed_output_noted(run_dir: Path) -> Iterator[None]:
    """Adds to the error of an output that nobody reads any more what is saved of a run, and how it goes on."""
    try:
        yield
    except BrokenPipeError as error:
        kept = newest(run_dir)
        if kept is None:
            error.add_note(f"nothing is saved yet; the same command with run_dir={_argument(run_dir)} starts over")
        else:
            error.add_note(f"iteration {kept} is saved; go on with resume={_argument(run_dir)}")
        raise


def host_lost(run_dir: Path, lock: RunLock) -> str:
    """Gives the run directory up where another host is gone; returns from where the run can go on."""
    kept = sound_checkpoint(run_dir)
    lock.release()
    if kept is None:
        return f"no checkpoint was written yet; the same command with run_dir={_argument(run_dir)} starts over"
    return f"{kept.path}, of iteration {kept.meta['iteration']}, is sound: go on with resume={_argument(run_dir)}"


def cannot_begin(run_dir: Path, error: OSError) -> InputError:
    """Returns the error of a run directory that cannot be written to from the start."""
    reason, mend = why_not(error)
    return InputError(f"run_dir={run_dir} cannot be written ({reason}); {mend}, or choose another folder")


def _argument(folder: Path) -> str:
    """Returns a folder as the value of a setting on a command line of the shell."""
    return shlex.quote(as_value(str(folder)))
