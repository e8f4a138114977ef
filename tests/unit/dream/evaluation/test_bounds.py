"""A lower bound of exploitability is at least 0, and says when nothing was found."""

from __future__ import annotations

import pytest

from dream.evaluation.bounds import lower_bound, method_in_words
from dream.evaluation.statistics import Interval


@pytest.mark.parametrize(
    ("points", "bound"),
    [
        ((-0.4, -0.6, -0.2), (0.0, 0.0, 0.0)),
        ((-0.1, -0.3, 0.1), (0.0, 0.0, 0.1)),
        ((0.1, -0.1, 0.3), (0.1, 0.0, 0.3)),
        ((0.4, 0.2, 0.6), (0.4, 0.2, 0.6)),
    ],
)
def test_lower_bound(points: tuple[float, ...], bound: tuple[float, ...]) -> None:
    """What the answer earns, and at least what the policy earns against itself."""
    assert lower_bound(Interval(*points)) == bound


def test_nothing_found_is_said() -> None:
    """With how hard it was looked; a bound that is surely positive needs no such words."""
    assert method_in_words("search", Interval(0.3, 0.1, 0.5), "3 trainings") == "search, a lower bound"
    for points in ((-0.4, -0.6, -0.2), (0.1, -0.1, 0.3)):
        said = method_in_words("search", Interval(*points), "3 trainings")
        assert "nothing surely above 0 was found by 3 trainings" in said
        assert "\n" not in said
