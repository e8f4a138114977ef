"""The script that compares beliefs with hands: it stops where it says, and the truth is among what it reports."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import ModuleType

import gin_beliefs
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from script_support import called

import envs
from dream.storage.policies import find_player
from envs import Game, InputError, Policy


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
    found = script.averaged(script.looked_at(game, greedy, greedy, 16, 24, 3))
    deadwood = {kind: mean for kind, (mean, _, _) in found["deadwood"].items()}
    assert found["decisions"] == 24
    for kind in ("", ", weighed"):
        off = [abs(deadwood[f"{deals} deals{kind}"] - deadwood["truth"]) for deals in ("likely", "uniform")]
        assert off[0] < off[1] - 5
    assert all(0 < found["log_score"][kind][0] < 1 for kind in script.KINDS)
    assert found["log_score"]["likely deals"][0] < found["log_score"]["uniform deals"][0]


def test_a_mean_of_one_decision_is_refused(script: ModuleType, game: Game, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no interval; the line says how many rounds there were."""
    monkeypatch.setattr(script, "stopped", lambda *arguments: (arguments[-1], jnp.bool_(False)))
    with pytest.raises(InputError, match="0 of 4 rounds came to a decision after 28 actions; there must be two"):
        script.looked_at(game, None, None, 28, 2, 3)


def test_an_interrupted_table_goes_on_and_replaces_none_of_more_decisions(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was computed before Ctrl-C is not computed again; fewer decisions, or kept rows of others, are one line."""
    out, work, asked, stops = tmp_path / "beliefs.json", tmp_path / "work", [], [4]
    command = ("--out", out, "--work", work)

    def counted(*arguments: object) -> dict[str, np.ndarray]:
        if len(asked) in stops:
            stops.clear()
            raise KeyboardInterrupt
        asked.append(arguments[3:])
        return dict.fromkeys(("deadwood", "log_score"), np.full((arguments[4], 5), len(asked), np.float32))

    monkeypatch.setattr(script, "looked_at", counted)
    monkeypatch.setattr(script.blocks, "commit", lambda: "old")
    with pytest.raises(KeyboardInterrupt):
        called(script, "--decisions", 8, *command)
    assert (out.exists(), len(asked)) == (False, 4)
    assert called(script, "--decisions", 8, *command) == 0
    beliefs = json.loads(out.read_text())["beliefs"]
    assert [one["deadwood"]["truth"][0] for one in beliefs] == list(range(1, 10))
    assert len(asked) == len(set(asked)) == 9
    before = out.read_bytes()
    capsys.readouterr()
    assert called(script, "--decisions", 2, *command) == 2
    assert capsys.readouterr().err == (
        f"error: {out} holds 8 decisions against gin_rummy/points after 12 actions, here are 2; make it as many, or "
        "give another --out\n"
    )
    monkeypatch.setattr(script.blocks, "commit", lambda: "new")
    assert called(script, "--decisions", 8, *command) == 2
    line = capsys.readouterr().err
    assert (line.count("\n"), "was played by other players, rules or code: commit is old and new" in line) == (1, True)
    assert (out.read_bytes(), len(asked)) == (before, 9)
