"""Property tests draw the same examples in every run, also those with settings of their own."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.skipif(os.environ.get("DREAM_RANDOM_EXAMPLES") == "1", reason="examples are asked to be random")
def test_examples_are_the_same_in_every_run() -> None:
    """Two runs of one property see the same numbers in the same order; nothing is kept on disk for the next run."""
    assert (settings().derandomize, settings().deadline) == (True, None)
    runs: list[list[int]] = []

    def seen(number: int) -> None:
        runs[-1].append(number)

    for _ in range(2):
        runs.append([])
        settings(max_examples=10)(given(st.integers())(seen))()
    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 5
