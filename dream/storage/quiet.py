"""Silence around a library that reports a failure in its own threads and loggers, besides raising it."""

from __future__ import annotations

import contextlib
import gc
import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

_LOGGERS = ("absl", "asyncio")
_LATE = "Event loop is closed"
_UNFINISHED = "coroutine .* was never awaited"
_UNFINISHED_WRITE = r"coroutine '[\w.<>]*serialize[\w.<>]*' was never awaited"
_PATIENCE = 5.0
"""Seconds for what is still at work after a failure."""


def quietly(write: Callable[[], None], explained: Callable[[Exception], OSError]) -> None:
    """Calls a function, and raises what its failure comes to; all other reports of it are dropped.

    Args:
      write: may use threads, and orbax.
      explained: returns the error to raise in the place of one that `write` raised.
    Raises:
      OSError: as explained.
    """
    failure: OSError | None = None
    running = set(threading.enumerate())
    threads, unraisable = threading.excepthook, sys.unraisablehook
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    threading.excepthook, sys.unraisablehook = _nothing, _but_late(unraisable)
    for logger in loggers:
        logger.addFilter(_no_error)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _UNFINISHED, RuntimeWarning)
            try:
                write()
            except Exception as error:
                failure = explained(error)
            if failure is not None:
                _await(set(threading.enumerate()) - running)
                gc.collect()  # what nobody has asked for reports its failure when it is collected
    finally:
        for logger in loggers:
            logger.removeFilter(_no_error)
        threading.excepthook = threads
        if failure is None:  # else a thread that is no Python's may still find its loop closed, or end its task
            sys.unraisablehook = unraisable
        else:
            late = logging.getLogger("asyncio")
            earlier = [one for one in late.filters if not isinstance(one, _NoLateTask)]
            late.filters[:] = [*earlier, _NoLateTask(failure.errno)]
            # What is only collected when the process ends.
            warnings.filterwarnings("ignore", _UNFINISHED_WRITE, RuntimeWarning)
    if failure is not None:
        raise failure


def _await(threads: set[threading.Thread]) -> None:
    """Waits until threads have ended, some seconds at most; those of a pool, or of another language, never do."""
    end = time.monotonic() + _PATIENCE
    for thread in threads:
        if not thread.daemon:
            with contextlib.suppress(Exception):  # orbax' own raise again what they ended by
                thread.join(max(0.0, end - time.monotonic()))


def _nothing(failure: Any) -> None:
    """Reports nothing."""


def _no_error(record: logging.LogRecord) -> bool:
    return record.levelno < logging.ERROR


class _NoLateTask(logging.Filter):
    """Leaves out tasks of orbax, and what failed by the same number as the last write and is collected later."""

    def __init__(self, number: int | None) -> None:
        super().__init__()
        self.number = number

    def filter(self, record: logging.LogRecord) -> bool:
        """Returns whether a record is kept."""
        message, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
        same = isinstance(error, OSError) and error.errno == self.number
        return "was never retrieved" not in message or not (same or "orbax" in message)


def _but_late(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a hook that leaves out what is met after the failure: a closed loop, and orbax' coroutines put away."""

    def report(what: Any) -> None:
        code = getattr(what.object, "cr_code", None)
        if str(what.exc_value) != _LATE and "orbax" not in getattr(code, "co_filename", ""):
            hook(what)

    return report
