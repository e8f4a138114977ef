"""Sizes that the devices do not divide are noted while tracing, and named by the settings that have them."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from dream.commands import ladder_play
from dream.compiled import devices
from dream.training import announce


def test_uneven_sizes_are_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes and split axes alike; even ones and scalars are not."""
    devices.uneven()
    monkeypatch.setattr(devices, "count", lambda: 8)
    monkeypatch.setattr(devices, "_constrained", lambda x, spec: x)
    lanes = np.arange(50)
    assert devices.by_lane(lambda x: x + 1, lanes).tolist() == list(range(1, 51))
    devices.split({"a": np.zeros((16, 6)), "b": np.float32(1)}, axis=1)
    devices.split(np.zeros(64))
    assert devices.uneven() == {50: 8, 6: 8}
    assert devices.uneven() == {}


def test_the_line_names_the_settings() -> None:
    """And the nearest sizes; below the number of devices there is one."""
    algo = {"num_envs": 50, "fit": {"batch_size": 50}, "epochs": 3}
    settings = {"seed": 50, "checkpoint": {"every": 50}, "eval": {"every": 50, "games": 6}, "algo": algo}
    lines = announce.uneven(settings, {50: 8, 6: 8})
    assert lines == [
        "algo.num_envs=50 or algo.fit.batch_size=50 is not divided by 8 devices: each of them computes all of it; "
        "48 and 56 would be split",
        "eval.games=6 is not divided by 8 devices: each of them computes all of it; 8 would be split",
    ]


def test_a_ladder_says_it_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Of its blocks, though every pairing that is compiled anew meets their size again."""
    monkeypatch.setattr(devices, "count", lambda: 8)
    monkeypatch.setattr(devices, "_constrained", lambda x, spec: x)

    def play_hands(*players: Any, games: int, seed: int) -> dict[str, np.ndarray]:
        return {"points_per_hand": devices.split(np.zeros((games, 2)))}

    monkeypatch.setattr(ladder_play, "play_hands", play_hands)
    for number in range(2):
        ladder_play.play_block(None, {"a": None, "b": None}, ("a", "b"), number, 36, 0)
    assert capsys.readouterr().out == (
        "block=36 is not divided by 8 devices: each of them computes all of it; 32 and 40 would be split\n"
    )


def test_one_device_has_no_uneven_sizes() -> None:
    """Nothing is noted."""
    devices.uneven()
    assert devices.count() == 1
    devices.split(jax.numpy.zeros(5))
    assert devices.uneven() == {}
