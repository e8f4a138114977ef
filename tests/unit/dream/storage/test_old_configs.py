"""Do checkpoints and exports from before settings were renamed still load, under the present names?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import envs
from dream.config.compose import compose_config
from dream.storage import checkpoint, policy_file
from dream.storage.old_configs import current_choices, current_config
from dream.storage.policies import game_of, policies_of
from dream.training.start import prepare_run, with_stored_choices

OLD = {
    "dueling_dream": {"episodes_per_iteration": "games_per_iteration", "num_envs": "lanes", "gae_lambda": "trace",
                      "tau": "target_rate", "target_update_period": "target_every", "transition_steps": "over"},
    "dream": {"num_envs": "lanes", "transition_steps": "over"},
    "ppo": {"episodes_per_iteration": "games_per_iteration", "num_envs": "lanes", "rollout_length": "steps",
            "gae_lambda": "trace", "clip_epsilon": "clip", "opponent_id_prob": "tell_opponent",
            "pool_every": "frozen_every", "pool_size": "frozen_slots", "transition_steps": "over"},
}  # fmt: skip
"""Algorithm -> present key -> key of before."""
OLD_NAMES = {"dueling_dream": "dream", "dream": "dream_vr", "ppo": "ppo"}


def _aged(node: Any, keys: dict[str, str]) -> Any:
    """Returns settings under their keys of before."""
    return {keys.get(key, key): _aged(value, keys) for key, value in node.items()} if isinstance(node, dict) else node


def _old_run(folder: Path, algo: str) -> tuple[Path, dict[str, Any]]:
    """Writes a checkpoint's meta as it was before; returns the run and its configuration as it is now."""
    composed = compose_config("config", [f"algo={algo}", "env=kuhn_poker", "iterations=4"])
    now = prepare_run(composed).plain
    meta = {
        "format": 1,
        "iteration": 4,
        "checksum": 0,
        "config": {
            **{name: value for name, value in now.items() if name not in ("devices", "hosts")},
            "algo": {**_aged(now["algo"], OLD[algo]), "name": OLD_NAMES[algo]},
            "network": _aged(now["network"], {"card_scorer_width": "slots"}),
        },
        "choices": {**composed.choices, "algo": OLD_NAMES[algo], "algo_env": f"{OLD_NAMES[algo]}_kuhn_poker"},
        "game": envs.make("kuhn_poker").identity,
    }
    assert meta["config"]["algo"]["shaping"]["scale"].keys() == {"start", "end", "over", "form"}
    assert "slots" in meta["config"]["network"]
    path = folder / "run" / "checkpoints" / "4" / "meta"
    path.mkdir(parents=True)
    (path / "metadata").write_text(json.dumps(meta))
    return folder / "run", now


@pytest.mark.parametrize("algo", OLD)
def test_a_run_from_before_continues(algo: str, tmp_path: Path) -> None:
    """With its own settings; new ones are given under their present names."""
    run, now = _old_run(tmp_path, algo)
    stored = checkpoint.find(run)
    assert stored.meta["config"]["algo"] == now["algo"]
    assert stored.meta["config"]["network"] == now["network"]
    assert stored.meta["choices"]["algo"] == algo
    assert game_of(stored) == envs.make("kuhn_poker")
    start = prepare_run(compose_config("config", with_stored_choices([f"resume={run}", "algo.num_envs=3"])))
    assert start.plain["algo"] == {**now["algo"], "num_envs": 3}


def test_an_export_from_before_loads(tmp_path: Path) -> None:
    """Its card speaks of a learner by old names; the policy is that of the arrays."""
    algo = {
        "name": "dream",
        "games_per_iteration": 8,
        "batch_size": 8,
        "temperature": {"start": 1.0, "end": 1.0, "over": 3},
    }
    card = policy_file.Card(
        env={"name": "kuhn_poker"},
        game=envs.make("kuhn_poker").identity,
        network={"name": "dueling", "hidden": [4]},
        algo={"name": "dueling_dream", "episodes_per_iteration": 8, "batch_size": 8},
    )
    like = policy_file.policy_like(card, envs.make("kuhn_poker"), {})
    arrays = {name: np.ones(leaf.shape, leaf.dtype) for name, leaf in policy_file.named(like.params).items()}
    card.algo.clear()
    card.algo.update(algo)
    file = tmp_path / "old.safetensors"
    file.write_bytes(policy_file.to_bytes(card, arrays))
    found = policy_file.read(file, tmp_path)
    assert found.card.algo["name"] == "dueling_dream"
    assert found.card.algo["temperature"] == {"start": 1.0, "end": 1.0, "transition_steps": 3}
    game = game_of(found)
    state = game.init(jax.random.key(0))
    policy = policies_of(found, game)["current"]
    np.testing.assert_allclose(policy(game.view(state, 0), game.legal_actions(state)), [0.5, 0.5])


def test_settings_that_came_later_are_what_runs_did_without_them() -> None:
    """A dueling agent's run that does not say which network plays was by the online one, and keeps being."""
    stored = {"algo": {"name": "dueling_dream", "unit": "points", "tau": 0.5}}
    assert current_config(stored)["algo"] == {**stored["algo"], "actor": "online", "baseline": "policy"}
    named = {"algo": {"name": "dueling_dream", "unit": "points", "actor": "target", "baseline": "value"}}
    assert current_config(named) == named


def test_what_is_unknown_is_kept() -> None:
    """Nothing is lost or invented: a wrong name is refused later, by name."""
    config = {"env": {"name": "x"}, "algo": {"name": "other", "lanes": 3}, "network": {"name": "other", "slots": 2}}
    assert current_config(config) == config
    assert current_config({"algo": None, "network": None}) == {"algo": None, "network": None}
    assert current_config({"format": 1}) == {"format": 1}


def test_past_selves() -> None:
    """The learner as it was, among its opponents, has another name."""
    stored = {"algo": {"name": "ppo", "opponents": ["self", "frozen"], "shares": [1, 2]}}
    expected = {"name": "ppo", "opponents": ["self", "past_self"], "shares": [1, 2]}
    assert current_config(stored)["algo"] == expected


def test_choices_of_experiments() -> None:
    """An experiment that was renamed, and an algorithm that was not."""
    stored = {"experiment": "dream_slots", "algo": "ppo", "preset": "laptop"}
    assert current_choices(stored, {"algo": {"name": "ppo"}}) == {**stored, "experiment": "dueling_dream_cards"}
