"""The script that compares beliefs with hands: it stops where it says, and the truth is among what it reports."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import ModuleType

import gin_beliefs
import jax
import pytest
from script_support import called

import envs
from dream.storage.policies import find_player
from envs import Game, Policy


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module, with few worlds."""
    gin_beliefs.SETTINGS = dataclasses.replace(gin_beliefs.SETTINGS, particles=32)
    return gin_beliefs


@pytest.fixture(scope="module")
def game() -> Game:
    """The full game."""
    return envs.make("gin_rummy")


@pytest.fixture(scope="module")
def greedy(game: Game) -> Policy:
    """A player that melds."""
    return find_player("greedy", game)


def test_rounds_stop_at_the_first_decision_after_so_many_actions(
    script: ModuleType, game: Game, greedy: Policy
) -> None:
    """Seat 0 is to act there, one action later at most; or the round is over before."""
    stop = jax.jit(jax.vmap(lambda key: script.stopped(game, greedy, greedy, 9, key)))
    states, asked = jax.device_get(stop(jax.random.split(jax.random.key(1), 16)))
    assert asked.any()
    assert (states.current_player[asked] == 0).all()
    assert (states.current_player[~asked] == -1).all()
    assert ((states.table.actions[asked] >= 9) & (states.table.actions[asked] <= 11)).all()


def test_likely_deals_are_nearer_to_the_truth(script: ModuleType, game: Game, greedy: Policy) -> None:
    """After six turns of a player that melds, with weights and without; the truth has a deadwood of its own."""
    found = script.measured(game, greedy, greedy, 16, 24, 3)
    deadwood = {kind: mean for kind, (mean, _, _) in found["deadwood"].items()}
    assert found["decisions"] == 24
    for kind in ("", ", weighed"):
        off = [abs(deadwood[f"{deals} deals{kind}"] - deadwood["truth"]) for deals in ("likely", "uniform")]
        assert off[0] < off[1] - 5
    assert all(0 < found["log_score"][kind][0] < 1 for kind in script.KINDS)
    assert found["log_score"]["likely deals"][0] < found["log_score"]["uniform deals"][0]


def test_a_table_is_written_whole_and_over_none_of_more_decisions(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C leaves what was there; fewer decisions are one line, before anything is played."""
    out, asked = tmp_path / "beliefs.json", []

    def counted(*arguments: object) -> dict[str, int]:
        asked.append(arguments[4])
        if len(asked) == 5:
            raise KeyboardInterrupt
        return {"decisions": arguments[4]}

    monkeypatch.setattr(script, "measured", counted)
    with pytest.raises(KeyboardInterrupt):
        called(script, "--decisions", 8, "--out", out)
    assert not out.exists()
    assert called(script, "--decisions", 8, "--out", out) == 0
    assert len(json.loads(out.read_text())["beliefs"]) == 9
    before, played = out.read_bytes(), len(asked)
    capsys.readouterr()
    assert called(script, "--decisions", 2, "--out", out) == 2
    assert capsys.readouterr().err == (
        f"error: {out} holds 8 decisions against gin_rummy/points after 12 actions, here are 2; make it as many, or "
        "give another --out\n"
    )
    assert (out.read_bytes(), len(asked)) == (before, played)
