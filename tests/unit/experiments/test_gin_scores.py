"""What knowing the score is worth: nothing between equals, and what is right on rounds that were not watched."""

from __future__ import annotations

import sys
from pathlib import Path

import gin_scores as script
import numpy as np
import pytest

from envs import MatchRules

RULES = MatchRules(target=100)


def _rounds(size: int, seed: int, won: float = 0.5) -> np.ndarray:
    """Returns rounds that pay `size` points either way, won with a chance."""
    return np.where(np.random.default_rng(seed).random((4096, 2)) < won, size, -size)


def test_nothing_is_gained_between_equals() -> None:
    """The same rounds for both policies: the gain is 0, and so is its interval."""
    found = script.worth([_rounds(30, 0)] * 2, RULES)
    assert found["gain"] == [0.0, 0.0, 0.0]
    assert found["by_score"] == found["alone"][0]


def test_large_rounds_are_for_who_is_behind() -> None:
    """Small rounds with an edge, or large fair ones: the small ones are better alone, and both have their scores."""
    found = script.worth([_rounds(10, 1, won=0.6), _rounds(90, 2)], RULES)
    alone = [found["alone"][number][0] for number in (0, 1)]
    assert found["better_alone"] == 0
    assert alone[0] > 0.7 > 0.55 > alone[1]
    assert 0 < found["gain"][1] <= found["gain"][0] <= found["gain"][2]
    assert min(found["share"]) > 0.02


def test_the_interval_is_as_wide_as_the_chances_differ() -> None:
    """Of many sets of fair rounds: most intervals hold one half, and they are as wide as the estimates differ."""
    rules = MatchRules(target=10)
    found = np.array([script.worth([_rounds(3, n), _rounds(3, 1000 + n)], rules)["alone"][0] for n in range(40)])
    assert np.mean((found[:, 1] < 0.5) & (found[:, 2] > 0.5)) > 0.75
    assert found[:, 0].std() == pytest.approx((found[:, 2] - found[:, 1]).mean() / 3.92, rel=0.35)


@pytest.mark.parametrize("arguments", [["--deals", "64"], ["--players", "nobody"]])
def test_wrong_arguments_are_refused(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, exit code 2, nothing written."""
    out = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["gin_scores.py", "--out", str(out), *arguments])
    with pytest.raises(SystemExit) as stopped:
        script.main()
    assert stopped.value.code == 2
    assert not out.exists()
