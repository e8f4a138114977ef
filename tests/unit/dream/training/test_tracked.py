"""An offline W&B run, its files read back: metrics, hands, pictures, policies, tags."""

from __future__ import annotations

import pathlib
import time

import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.config.schema import TrackingConfig
from dream.evaluation import match
from dream.training import wandb_offline
from dream.training.tracking import Tracker
from envs import Policy

wandb = pytest.importorskip("wandb")


def test_an_offline_run_holds_hands_pictures_and_policies(tmp_path: pathlib.Path) -> None:
    """What was logged stands in the run's files: tables, pictures with cards, the parameters to the bit."""
    game, bot = envs.make("kuhn_poker"), envs.uniform_policy()
    settings = {"algo": {"name": "cfr"}, "env": {"name": "kuhn_poker"}}
    tracker = Tracker(
        TrackingConfig(tags=("trial",)), tmp_path, group="g", name="run one", run_id="abc123", settings=settings
    )
    played: list[dict] = []
    report = match(game, bot, bot, games=8, on_hand=played.append, hands=2)
    assert len(played) == 2
    tracker.log({"iteration": 1, "eval/random/points_per_hand": 0.25})
    tracker.log_evaluation("random", report)
    tracker.log_hands(game, "random", played)
    (tmp_path / "curves.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    tracker.log_pictures([tmp_path / "curves.svg"])
    table = jnp.arange(6.0).reshape(3, 2)
    tracker.log_policy(7, Policy(lambda params, view, legal: legal / 2, {"table": table}))
    tracker.close()
    (folder,) = tmp_path.glob("wandb/offline-run-*")
    raw, end = b"", time.monotonic() + 20
    while b"iteration-7" not in raw and time.monotonic() < end:  # W&B's own process may still write what came last
        raw = b"".join(path.read_bytes() for path in folder.glob("*.wandb"))
    history = wandb_offline.read_offline(tmp_path)
    assert history[0]["eval/random/points_per_hand"] == 0.25
    names = {name.split("/")[0] for record in history for name in record}
    assert {"evaluation", "hands", "pictures"} <= names
    media = [path.read_text() for path in folder.rglob("*.html")]
    assert sum("Kuhn poker: over" in text for text in media) == 2
    assert all(tag.encode() in raw for tag in ("trial", "cfr", "kuhn_poker", "run one", "policy-abc123"))
    assert b"iteration-7" in raw
    with np.load(folder / "policies" / "7.npz", allow_pickle=False) as kept:
        np.testing.assert_array_equal(kept["['table']"], table)
