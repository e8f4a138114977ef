"""The one rule of all trials: nothing executes, hangs, takes much memory, or answers with a traceback.

A trial runs in a process of its own (child.py). It holds where the input is read, or refused by an InputError of one
printable line; within five seconds of processor time, two minutes by the clock, as waiting takes no processor, and a
GiB more than the process had; and without starting a process, connecting anywhere, changing a file, or reading one that
the input names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from typing import Any

from envs import InputError

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS, BYTES, LINE = 5.0, 2**30, 1000
"""Of this thread's processor time, of memory, and characters."""
PATIENCE = 120.0
"""Seconds by the clock; a script that starts on a busy machine takes most of a minute."""
_FORBIDDEN = (
    "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.remove", "os.rename", "os.mkdir", "os.rmdir",
    "os.symlink", "os.link", "subprocess.Popen", "socket.connect", "socket.getaddrinfo", "socket.bind", "pty.spawn",
    "shutil.", "urllib.Request", "ctypes.dlopen", "webbrowser.open", "pickle.find_class", "code.__new__",
)  # fmt: skip
CANARIES = ("antigravity", "this", "executed")
"""Modules that attacks name; nothing else imports them."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How one trial went: `why` is what did not hold, else empty."""

    name: str
    refused: bool
    why: str = ""


class _HangError(BaseException):
    """Raised when the seconds are spent; nothing catches it by accident."""


class Watch:
    """Notes what an input makes the process do."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Watches from now on; reading in `folder` is what a trial is for."""
        self.seen: list[str] | None = None
        places = [
            folder,
            ROOT,
            sys.prefix,
            sys.base_prefix,
            sysconfig.get_path("stdlib"),
            "/proc",
            "/sys",
            "/etc",
            os.devnull,
        ]
        self.places = tuple({str(pathlib.Path(place).resolve()) for place in places} | {str(place) for place in places})
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.seen is None:
            return
        if event.startswith(_FORBIDDEN):
            self.seen.append(event)
        elif event == "import" and arguments[0] in CANARIES:
            self.seen.append(f"import of {arguments[0]}")
        elif event == "open" and isinstance(arguments[0], str | os.PathLike):
            path, mode, flags = str(arguments[0]), arguments[1] or "", arguments[2] or 0
            writes = any(c in mode for c in "wax+") or flags & (os.O_WRONLY | os.O_RDWR)
            if writes or not os.path.abspath(path).startswith(self.places):
                self.seen.append(f"opening of {path}")

    def trial(
        self, name: str, read: Callable[[], Any], *, must_be_refused: bool = False, may: tuple[str, ...] = ()
    ) -> Outcome:
        """Runs one trial, in which the events that begin as in `may` are what it is for."""
        self.seen, why, refused = [], "", False
        began = time.thread_time()
        signal.setitimer(signal.ITIMER_PROF, 2 * SECONDS)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        try:
            read()
        except InputError as error:
            refused, why = True, _line(str(error))
        except _HangError as hang:
            why = str(hang)
        except BaseException as error:
            why = f"{type(error).__name__}: {str(error)[:200]}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            done, self.seen = [event for event in self.seen if not event.startswith(may or "\0")], None
        seconds = time.thread_time() - began
        if not why and done:
            why = f"does more than read: {done[0]}"
        if not why and seconds > SECONDS:
            why = f"takes {seconds:.1f} seconds"
        if not why and must_be_refused and not refused:
            why = "is not refused"
        return Outcome(name, refused, why)


def _line(text: str) -> str:
    """Returns what is wrong with a refusal's line."""
    if not text.isprintable():
        return f"answers with more than a printable line: {text[:200]!r}"
    return "" if len(text) <= LINE else f"answers with {len(text)} characters"


def limit(most: int = BYTES) -> None:
    """Lets this process take so many bytes more of address space than it has, and end a trial that hangs."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
    now = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + most, resource.getrlimit(resource.RLIMIT_AS)[1]))

    def hang(number: int, frame: Any) -> None:
        works = number == signal.SIGPROF
        raise _HangError(f"hangs past {SECONDS if works else PATIENCE:g} seconds" + ("" if works else " of waiting"))

    signal.signal(signal.SIGPROF, hang)
    signal.signal(signal.SIGALRM, hang)


@contextlib.contextmanager
def inside(folder: pathlib.Path) -> Iterator[None]:
    """Works in a folder, where an attack would leave its mark."""
    before = pathlib.Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_child(kind: str, count: int, seed: int, folder: pathlib.Path) -> list[Outcome]:
    """Runs trials of a kind in a process of their own.

    Raises:
      RuntimeError: the process ended before the last of them; what it printed is in the message.
    """
    paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "support")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "DREAM_CACHE_DIR": str(folder / "cache")}
    environment["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # its folder is the user's, outside the trial's
    command = [sys.executable, "-m", "trials.child", kind, str(count), str(seed), str(folder)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    outcomes = [Outcome(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        last = outcomes[-1].name if outcomes else "none"
        raise RuntimeError(f"{kind}: the process ended with {done.returncode} after {last!r}: {done.stderr[-2000:]}")
    return outcomes
