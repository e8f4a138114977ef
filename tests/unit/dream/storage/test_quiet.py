"""A failure of the writer of arrays is reported once, as its error."""

from __future__ import annotations

import logging

import pytest

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
