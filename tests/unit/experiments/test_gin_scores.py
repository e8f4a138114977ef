"""What knowing the score is worth: nothing between equals, and what is right on rounds that were not watched."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gin_scores as script
import numpy as np
import pytest
from script_support import called

from envs import MatchRules

RULES = MatchRules(target=100)


def _rounds(size: int, seed: int, won: float = 0.5, deals: int = 4096) -> np.ndarray:
    """Returns rounds that pay `size` points either way, won with a chance."""
    return np.where(np.random.default_rng(seed).random((deals, 2)) < won, size, -size)


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


def test_intervals_of_chances_end_at_0_and_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the jackknife gives them, of few deals that one side mostly wins; one of a difference goes on below 0."""
    given = [[0.999, 0.997, 1.001], [0.999, 0.997, 1.001], [0.003, -0.002, 0.008], [0.0, -0.004, 0.004]]
    monkeypatch.setattr(script, "_jackknife", lambda values, count: given)
    found = script.worth([_rounds(30, seed, deals=128) for seed in (0, 1)], RULES)
    assert found["by_score"] == [0.999, 0.997, 1.0]
    assert found["alone"] == [[0.999, 0.997, 1.0], [0.003, 0.0, 0.008]]
    assert found["gain"] == [0.0, -0.004, 0.004]


def test_no_match_is_replaced_by_one_of_fewer_deals_or_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, before anything is played; as many deals of the same players, in any order, replace them."""

    def rounds(*_: object, games: int, seed: int) -> dict[str, np.ndarray]:
        return {"points_per_hand": np.zeros((games // 2, 2))}

    def never(*_: object, **__: object) -> None:
        raise AssertionError("nothing is to be played")

    out = tmp_path / "found.json"
    monkeypatch.setattr(script, "play_hands", rounds)
    monkeypatch.setattr(script, "worth", lambda points, rules: {"by_score": [0.5, 0.4, 0.6]})
    players, opponents = ["--players", "greedy", "camper"], ["--opponents", "random", "marjj"]

    def run(*arguments: str) -> int:
        return called(script, "--out", out, "--work", tmp_path / "work", *arguments)

    assert run("--deals", "256", *players, *opponents) == 0
    before = out.read_bytes()
    monkeypatch.setattr(script, "play_hands", never)
    capsys.readouterr()
    for arguments, message in (
        (("128", *players, *opponents), "256 deals against random, here are 128; make it as many, or give another"),
        (("256", *players, "--opponents", "random"), "a match against marjj; add it to --opponents, or give another"),
        (
            ("256", "--players", "greedy", "patient", *opponents),
            "matches of greedy and camper, these are of greedy and patient; give another",
        ),
    ):
        assert run("--deals", *arguments) == 2
        assert capsys.readouterr().err == f"error: {out} holds {message} --out\n"
        assert out.read_bytes() == before
    monkeypatch.setattr(script, "play_hands", rounds)
    assert run("--deals", "512", "--players", "camper", "greedy", *opponents, "lookahead") == 0
    assert [one["deals"] for one in json.loads(out.read_text())["matches"]] == [512] * 3


def test_what_was_played_is_not_played_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that was stopped goes on with what is missing; other rounds in its place are refused, none is played."""
    heard = []

    def rounds(game: object, player: object, opponent: object, games: int, seed: int) -> dict[str, np.ndarray]:
        heard.append(opponent)
        if len(heard) == 3:
            raise KeyboardInterrupt
        return {"points_per_hand": np.full((games // 2, 2), len(heard))}

    monkeypatch.setattr(script, "play_hands", rounds)
    monkeypatch.setattr(script, "worth", lambda points, rules: {"mean": [float(one.mean()) for one in points]})
    out, work = tmp_path / "found.json", tmp_path / "work"
    asked = ["--out", out, "--work", work, "--deals", "128", "--players", "greedy", "camper", "--opponents"]
    with pytest.raises(KeyboardInterrupt):
        called(script, *asked, "random", "marjj")
    assert not out.exists()
    assert called(script, *asked, "random", "marjj") == 0
    assert len(heard) == 5
    assert [one["mean"] for one in json.loads(out.read_text())["matches"]] == [[1.0, 2.0], [4.0, 5.0]]
    before = out.read_bytes()
    monkeypatch.setattr(script.blocks, "commit", lambda: "another")
    assert called(script, *asked, "random", "marjj") == 2
    assert "was played by other players, rules or code: commit" in capsys.readouterr().err
    assert (len(heard), out.read_bytes()) == (5, before)


@pytest.mark.parametrize("arguments", [["--deals", "64"], ["--players", "nobody"]])
def test_wrong_arguments_are_refused(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, exit code 2, nothing written."""
    out = tmp_path / "found.json"
    monkeypatch.setattr(sys, "argv", ["gin_scores.py", "--out", str(out), "--work", str(tmp_path / "work"), *arguments])
    with pytest.raises(SystemExit) as stopped:
        script.main()
    assert stopped.value.code == 2
    assert not out.exists()
