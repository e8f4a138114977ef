"""One process for one run directory: a lock that names its owner, and goes with it.

The file holds the owner's process, host and start. On one machine the operating system's own lock on the file decides,
which ends with the process. Where a file system has none, or shows the file to other machines, what the file says
decides: a process of this host that is gone, or whose number another one has taken over, has left the lock behind; of
another host nothing can be known, so that its lock stands until the file is deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from dream.storage.files import decoded
from envs.errors import InputError

FILE = "run.lock"


class RunLock:
    """The exclusive lock of a run directory; as a context it is released at the end, after errors too."""

    def __init__(self, folder: Path) -> None:
        """Takes nothing yet.

        Args:
          folder: the run directory, which must exist when the lock is acquired.
        """
        self.path = Path(folder) / FILE
        self._file: int | None = None

    def __enter__(self) -> RunLock:
        """Returns itself, not acquired."""
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Releases."""
        self.release()

    def acquire(self) -> None:
        """Takes the lock, also one that a process of this host left behind; does nothing where it is held already.

        Raises:
          InputError: another process works in the folder, or may do so on another host.
          OSError: the folder cannot be written to.
        """
        while self._file is None:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                left = self._refuse_if_used(file)
                if left is not None:
                    print(f"{self.path.parent}: {_named(left)} has ended without leaving it; going on", file=sys.stderr)
                if self._is_at_path(file):  # else its last owner has just deleted it
                    _write_owner(file)
                    self._file = file
            finally:
                if self._file is None:
                    os.close(file)

    def check_free(self) -> None:
        """Raises InputError where another process works in the folder; takes and changes nothing."""
        try:
            file = os.open(self.path, os.O_RDONLY)
        except OSError:
            return
        try:
            self._refuse_if_used(file)
        finally:
            os.close(file)

    def _refuse_if_used(self, file: int) -> dict[str, Any] | None:
        """Takes the system's lock on the file; returns the owner that left it behind, None where there is none.

        Raises:
          InputError: another process has it.
        """
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(self._refusal(_read_owner(file))) from None
        except OSError:
            pass  # a file system without locks: what the file says decides
        owner = _read_owner(file)
        if owner is None:
            return None
        if owner["host"] != socket.gethostname():
            raise InputError(
                f"{self.path.parent} is in use by {_named(owner)}; if that process has ended, delete {self.path}"
            )
        if _is_running(owner):
            raise InputError(self._refusal(owner))
        return owner

    def _refusal(self, owner: dict[str, Any] | None) -> str:
        who = "another process" if owner is None else _named(owner)
        return f"{self.path.parent} is in use by {who}; wait for its end, or choose another folder"

    def _is_at_path(self, file: int) -> bool:
        """Returns whether the open file is the one at the path."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Gives the lock back; does nothing where it is not held."""
        if self._file is None:
            return
        file, self._file = self._file, None
        with contextlib.suppress(OSError):
            if self._is_at_path(file):
                self.path.unlink()
        os.close(file)


def _write_owner(file: int) -> None:
    """Writes this process into an open lock file."""
    own = os.getpid()
    owner = {
        "pid": own,
        "host": socket.gethostname(),
        "started": _start(own),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    os.ftruncate(file, 0)
    os.pwrite(file, (json.dumps(owner) + "\n").encode(), 0)


def _read_owner(file: int) -> dict[str, Any] | None:
    """Returns what an open lock file says of its owner; None where it says nothing that can be read."""
    try:
        owner = decoded(os.pread(file, 4096, 0))
    except ValueError:
        return None
    if not isinstance(owner, dict) or not isinstance(owner.get("pid"), int) or not isinstance(owner.get("host"), str):
        return None
    return owner


def _named(owner: dict[str, Any]) -> str:
    return f"process {owner['pid']} on {owner['host']} since {owner.get('since')}"


def _is_running(owner: dict[str, Any]) -> bool:
    """Returns whether the owner, a process of this host, is still there: by its number and, where known, its start."""
    try:
        os.kill(owner["pid"], 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return owner.get("started") is None or owner["started"] == _start(owner["pid"])


def _start(pid: int) -> str | None:
    """Returns what a process and a later one of its number differ in, from Linux's /proc; None where there is none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1].split()[19]}"
    except (OSError, IndexError):
        return None
