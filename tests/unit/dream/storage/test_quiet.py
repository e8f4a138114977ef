"""A failure of the writer of arrays is reported once, as its error."""

from __future__ import annotations

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
