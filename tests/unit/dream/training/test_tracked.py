"""An offline W&B run, its files read back: metrics, hands, pictures, policies, tags."""

from __future__ import annotations

import pathlib
import time

import jax.numpy as jnp
import numpy as np
import pytest
from command_support import wandb_history

import dream
import envs
from dream.config.schema import TrackingConfig
from dream.evaluation import match
from dream.training.tracked import HANDS
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
    tracker.log_evaluation(1, "random", report)
    tracker.summarise({"random": report})
    tracker.log_hands(1, game, "random", played)
    (tmp_path / "curves.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    tracker.log_pictures([tmp_path / "curves.svg"])
    table = jnp.arange(6.0).reshape(3, 2)
    tracker.log_policy(7, Policy(lambda params, view, legal: legal / 2, {"table": table}))
    tracker.close()
    (folder,) = tmp_path.glob("wandb/offline-run-*")
    raw, end = b"", time.monotonic() + 20
    while b"iteration-7" not in raw and time.monotonic() < end:  # W&B's own process may still write what came last
        raw = b"".join(path.read_bytes() for path in folder.glob("*.wandb"))
    history = wandb_history(tmp_path)
    assert history[0]["eval/random/points_per_hand"] == 0.25
    names = {name.split("/")[0] for record in history for name in record}
    assert {"evaluation", "hands", "pictures"} <= names
    media = [path.read_text() for path in folder.rglob("*.html")]
    assert sum("Kuhn poker: over" in text for text in media) == 2
    assert all(tag.encode() in raw for tag in ("trial", "cfr", "kuhn_poker", "run one", "policy-abc123"))
    assert b"iteration-7" in raw
    with np.load(folder / "policies" / "7.npz", allow_pickle=False) as kept:
        np.testing.assert_array_equal(kept["['table']"], table)


def test_every_evaluation_and_the_last_policy_are_sent(tmp_path: pathlib.Path) -> None:
    """A table and hands of each evaluation at its iteration, the final one's too, and each checkpoint's policy."""
    run_dir = tmp_path / "run"
    dream.train(
        ["env=kuhn_poker", "algo=cfr_plus", "iterations=5", "checkpoint.every=3", "eval.every=2", "eval.games=64",
         "eval.final_games=64", "tracking.mode=offline", f"run_dir={run_dir}"],
        quiet=True,
    )  # fmt: skip
    history = wandb_history(run_dir)
    tables = [record for record in history if "evaluation/random/nrows" in record]
    hands = [record for record in history if "hands/random/count" in record]
    assert [record["iteration"] for record in tables] == [2, 4, 5, 5]
    assert [record["iteration"] for record in hands] == [2, 4, 5, 5]
    assert {record["hands/random/count"] for record in hands} == {HANDS}
    (folder,) = run_dir.glob("wandb/offline-run-*")
    kept = {path.stem for path in (folder / "policies").iterdir()}
    assert kept == {"3", "5"}
    assert {path.name for path in (run_dir / "checkpoints").iterdir()} >= kept
