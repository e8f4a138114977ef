"""A failure of the writer of arrays is reported once, as its error."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from command_support import REPO

from dream.storage.quiet import quietly


async def _unfinished() -> None:
    """Stands for a part of an array that a failed write never came to."""


def test_a_coroutine_left_by_a_failure_is_not_reported(recwarn: pytest.WarningsRecorder) -> None:
    """Whether it goes with its last name, or later, with a cycle."""

    def write() -> None:
        cycle: list[object] = [_unfinished()]
        cycle.append(cycle)
        _unfinished()
        raise ValueError("no space")

    with pytest.raises(OSError, match="no space"):
        quietly(write, lambda error: OSError(str(error)))
    assert [str(warning.message) for warning in recwarn] == []


_AT_EXIT = """
from dream.storage.quiet import quietly

async def serialize_from_host(): pass
async def own(): pass

kept = []

def write():
    kept.extend((serialize_from_host(), own()))
    raise ValueError("no space")

try:
    quietly(write, lambda error: OSError(str(error)))
except OSError as error:
    print(error)
"""
"""Fails a write of which coroutines are left until the process ends."""


def test_a_write_that_is_collected_at_exit_is_not_reported() -> None:
    """As orbax' coroutines are named; others are reported."""
    done = subprocess.run([sys.executable, "-c", _AT_EXIT], cwd=REPO, capture_output=True, text=True, check=True)
    assert done.stdout == "no space\n"
    reported = [line for line in done.stderr.splitlines() if "never awaited" in line]
    assert [line.split("coroutine ")[1] for line in reported] == ["'own' was never awaited"]


def test_a_task_that_ends_after_the_failure_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """As asyncio says it of orbax' tasks; of others it is, and so is all else."""

    def write() -> None:
        raise ValueError("no space")

    asyncio = logging.getLogger("asyncio")
    before = list(asyncio.filters)
    try:
        with pytest.raises(OSError, match="no space"):
            quietly(write, lambda error: OSError(str(error)))
        asyncio.error("Task exception was never retrieved\nfuture: <Task defined at /orbax/serialization.py:188>")
        asyncio.error("Task exception was never retrieved\nfuture: <Task defined at /own.py:1>")
        asyncio.error("Unclosed transport of orbax")
    finally:
        asyncio.filters[:] = before
    assert [record.getMessage().split()[-1] for record in caplog.records] == ["/own.py:1>", "orbax"]


def test_a_future_collected_after_the_failure_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """One that failed as the write did, wherever it was defined; another failure is."""
    asyncio = logging.getLogger("asyncio")
    before = list(asyncio.filters)
    try:
        with pytest.raises(OSError, match="File too large"):
            quietly(lambda: (_ for _ in ()).throw(OSError(27, "File too large")), lambda error: error)
        for error in (OSError(27, "File too large"), OSError(2, "No such file")):
            asyncio.error("Future exception was never retrieved", exc_info=error)
    finally:
        asyncio.filters[:] = before
    assert [record.exc_info[1].errno for record in caplog.records] == [2]
