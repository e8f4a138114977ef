"""Does a run go on with its own configuration, whatever the defaults are?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import envs
from dream.config.compose import compose_config
from dream.training.start import prepare_run, with_stored_choices
from envs import InputError


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A run of PPO on Leduc that belonged to a sweep; its checkpoint holds the meta alone."""
    composed = compose_config("config", ["algo=ppo", "env=leduc_poker", "iterations=4"])
    start = prepare_run(composed)
    meta = {
        "format": 1,
        "iteration": 4,
        "checksum": 0,
        "config": start.plain,
        "choices": composed.choices,
        "game": envs.make("leduc_poker").identity,
        "group": "some_sweep",
    }
    folder = tmp_path / "run" / "checkpoints" / "4" / "meta"
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps(meta))
    return tmp_path / "run"


def test_settings_of_the_runs_own_algorithm_apply(stored: Path) -> None:
    """`algo.clip_epsilon` is PPO's; the default algorithm does not know it."""
    given = [f"resume={stored}", "algo.clip_epsilon=0.1", "iterations=8"]
    start = prepare_run(compose_config("config", with_stored_choices(given)))
    assert start.parts.config.algo["clip_epsilon"] == 0.1
    assert start.parts.config.env.name == "leduc_poker"
    assert start.parts.config.iterations == 8
    with pytest.raises(InputError, match=r"algo\.clip"):
        compose_config("config", given)


def test_a_resumed_job_stays_in_its_sweeps_group(stored: Path) -> None:
    """The W&B group is the stored one, not that of a run on its own."""
    start = prepare_run(compose_config("config", with_stored_choices([f"resume={stored}"])))
    assert start.group == "some_sweep"


def test_choices_that_are_given_stay(stored: Path) -> None:
    """Nothing is put before what the user said; without resume= nothing changes at all."""
    assert with_stored_choices([f"resume={stored}", "algo=dueling_dream"])[-1] == "algo=dueling_dream"
    assert "algo=ppo" not in with_stored_choices([f"resume={stored}", "algo=dueling_dream"])
    assert with_stored_choices(["seed=3"]) == ["seed=3"]
    with pytest.raises(InputError, match=r"algo=dueling_dream cannot be changed by resume="):
        prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", "algo=dueling_dream"])))


def test_a_setting_newer_than_the_checkpoint_takes_its_default(stored: Path) -> None:
    """And can be given beside resume=."""
    path = stored / "checkpoints" / "4" / "meta" / "metadata"
    meta = json.loads(path.read_text())
    del meta["config"]["budget"]
    path.write_text(json.dumps(meta))
    for given, nodes in (([], None), (["budget.nodes=5"], 5.0)):
        start = prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", *given])))
        assert (start.parts.config.budget.nodes, start.parts.config.budget.episodes) == (nodes, None)
