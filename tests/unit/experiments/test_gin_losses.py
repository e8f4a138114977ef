"""Where points go: the causes add up, and a round by hand is counted as what it was."""

from __future__ import annotations

import gin_losses as script
import numpy as np
import pytest

import envs


def test_the_causes_add_up_to_the_points() -> None:
    """Of two rule bots: shares to one, points to the points per hand, knocks to what knocking brought."""
    game = envs.make("gin_rummy")
    rounds = script.played(game, "greedy", "camper", 24, 0)
    found = script.looked_at(rounds, game.rules.undercut_bonus)
    shares = [x["share"] for x in found["causes"].values()]
    assert sum(shares) == pytest.approx(1)
    total = sum(x["per_hand"][0] for x in found["causes"].values())
    assert total == pytest.approx(found["points_per_hand"][0], abs=1e-4)
    own = sum(found["causes"][name]["per_hand"][0] for name in ("gin", "knock", "undercut"))
    assert sum(x["per_hand"][0] for x in found["knocks"].values()) == pytest.approx(own, abs=1e-4)
    assert found["causes"]["knock"]["mean"] > 0 > found["causes"]["undercut"]["mean"]
    # camper holds out for gin: it passes up knocks, and greedy never does.
    assert found["waited"]["opponent"]["share"] > 0.2
    assert found["waited"]["player"]["share"] == 0
    assert found["layoffs"]["opponent"]["saved"] >= 0


def test_a_round_is_counted_by_how_it_ended() -> None:
    """Gin of the player, its undercut, a knock against it with 15 and with 31, gin against it, nobody's."""
    ending = np.array([3, 4, 2, 2, 3, 1])
    knocked = np.array([True, True, False, False, False, False])
    deadwood = np.array([0, 8, 15, 31, 40, 20])
    names = [script.CAUSES[n] for n in script.causes(ending, knocked, deadwood)]
    assert names == [
        "gin", "undercut", "knocked against, 11 to 20", "knocked against, more than 30", "gin against",
        "stock exhausted",
    ]  # fmt: skip
