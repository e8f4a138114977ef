"""Every file in conf/ loads, every combination composes, and conf/algo tells the code's own defaults."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import pathlib
from typing import Any

import pytest
from omegaconf import OmegaConf

import envs
from dream import algorithms
from dream.algorithms.dueling_dream import DuelingDreamConfig
from dream.algorithms.ppo import PpoConfig
from dream.config import settings
from dream.config.compose import compose_config, config_dir
from dream.networks.dueling import DuelingConfig
from dream.training.start import build_run

CONF = pathlib.Path(__file__).resolve().parents[2] / "conf"


def _options(group: str) -> list[str]:
    return sorted(file.stem for file in (CONF / group).glob("*.yaml"))


FILES = sorted(str(file.relative_to(CONF)) for file in CONF.rglob("*.yaml"))
ALGORITHMS, PRESETS, ENVS, NETWORKS = (_options(group) for group in ("algo", "preset", "env", "network"))


@pytest.mark.parametrize("file", FILES)
def test_file_loads_and_is_commented(file: str) -> None:
    """It is YAML, and a comment says what it is for."""
    assert OmegaConf.load(CONF / file) is not None
    assert "#" in (CONF / file).read_text()


def test_these_are_the_files_in_use() -> None:
    """The package reads the repository's conf/, and the groups of the design are there."""
    assert config_dir() == CONF
    assert {"laptop", "h200", "tiny", "none"} <= set(PRESETS)
    assert {"dream", "dueling_dream"} <= set(ALGORITHMS) == set(algorithms.names())
    assert set(ENVS) == set(envs.names())


@pytest.mark.parametrize(("preset", "algo"), list(itertools.product(PRESETS, ALGORITHMS)))
def test_preset_composes_and_is_valid(preset: str, algo: str) -> None:
    """Every preset with every algorithm; whatever it says can be built."""
    composed = compose_config("config", [f"preset={preset}", f"algo={algo}"])
    config = build_run(composed.node).config
    assert config.algo["name"] == algo
    assert composed.choices["preset"] == preset


@pytest.mark.parametrize(("env", "network"), list(itertools.product(ENVS, NETWORKS)))
def test_game_and_network_compose_and_are_valid(env: str, network: str) -> None:
    """Every game with every network."""
    build_run(compose_config("config", [f"env={env}", f"network={network}"]).node)


@pytest.mark.parametrize("file", _options("algo_env"))
def test_changes_for_a_game_are_found_and_valid(file: str) -> None:
    """conf/algo_env/<algo>_<env>.yaml belongs to an algorithm and a game, and is valid."""
    algo, env = next((algo, env) for algo, env in itertools.product(ALGORITHMS, ENVS) if file == f"{algo}_{env}")
    changed = OmegaConf.load(CONF / "algo_env" / f"{file}.yaml")
    node = compose_config("config", [f"algo={algo}", f"env={env}"]).node
    build_run(node)
    assert OmegaConf.merge(node, changed) == node


@pytest.mark.parametrize("file", _options("network_env"))
def test_changes_of_a_network_for_a_game_are_found_and_valid(file: str) -> None:
    """conf/network_env/<network>_<env>.yaml belongs to a network and a game, and is valid."""
    network, env = next((net, env) for net, env in itertools.product(NETWORKS, ENVS) if file == f"{net}_{env}")
    node = compose_config("config", [f"network={network}", f"env={env}"]).node
    build_run(node)
    assert OmegaConf.merge(node, OmegaConf.load(CONF / "network_env" / f"{file}.yaml")) == node


@pytest.mark.parametrize("file", _options("preset_network"))
def test_changes_of_a_network_in_a_preset_are_found_and_valid(file: str) -> None:
    """conf/preset_network/<preset>_<network>.yaml belongs to a preset and a network, and is valid."""
    preset, network = next((p, net) for p, net in itertools.product(PRESETS, NETWORKS) if file == f"{p}_{net}")
    node = compose_config("config", [f"network={network}", f"preset={preset}"]).node
    build_run(node)
    assert OmegaConf.merge(node, OmegaConf.load(CONF / "preset_network" / f"{file}.yaml")) == node


@pytest.mark.parametrize("file", _options("preset_network_env"))
def test_changes_of_a_network_in_a_preset_for_a_game_are_found_and_valid(file: str) -> None:
    """conf/preset_network_env/<preset>_<network>_<env>.yaml belongs to all three, and is valid."""
    every = itertools.product(PRESETS, NETWORKS, ENVS)
    preset, network, env = next(parts for parts in every if file == "_".join(parts))
    node = compose_config("config", [f"preset={preset}", f"network={network}", f"env={env}", "algo=ppo"]).node
    build_run(node)
    assert OmegaConf.merge(node, OmegaConf.load(CONF / "preset_network_env" / f"{file}.yaml")) == node


@pytest.mark.parametrize("tracking", _options("tracking"))
def test_tracking_composes(tracking: str) -> None:
    """Offline unless asked otherwise."""
    assert build_run(compose_config("config", [f"tracking={tracking}"]).node).config.tracking.mode == "offline"


def test_evaluate_composes() -> None:
    """With a checkpoint named."""
    node = compose_config("evaluate", ["checkpoint=somewhere"]).node
    assert (node.opponent, node.games) == ("random", 10000)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_algorithm_file_tells_every_default(algo: str) -> None:
    """Its file holds each setting of the code, with the same value; variants of one algorithm may change values."""
    node, place = OmegaConf.load(CONF / "algo" / f"{algo}.yaml"), algorithms._REGISTRY[algo]
    module, name = place.split(":")
    schema = getattr(importlib.import_module(module), name)
    defaults = schema(name=algo)
    read = settings.read(schema, node, "algo")
    assert read.name == algo
    assert _shape(OmegaConf.to_container(node)) == _shape(dataclasses.asdict(defaults))
    if list(algorithms._REGISTRY.values()).count(place) == 1:
        assert read == defaults


def _shape(value: Any) -> Any:
    """Returns the names a nested mapping holds."""
    return {key: _shape(item) for key, item in value.items()} if isinstance(value, dict) else None


def test_document_values_of_dream() -> None:
    """The values of the DREAM document, written out."""
    config = compose_config("config", []).node
    algo = settings.read(DuelingDreamConfig, config.algo, "algo")
    assert config.iterations == 800
    assert algo.episodes_per_iteration == 8192
    assert algo.batch_size == 2048
    assert algo.epochs == 40
    assert algo.learning_rate == 2e-3
    assert algo.learning_rate_decay.start == algo.learning_rate_decay.end == 1.0
    assert (algo.discount, algo.gae_lambda) == (0.99, 1.0)
    temperature = algo.temperature
    assert (temperature.start, temperature.end, temperature.transition_steps, temperature.form) == (
        2.0,
        0.1,
        400,
        "linear",
    )
    assert (algo.uniform_iterations, algo.exploration, algo.play_temperature) == (20, 0.0, None)
    assert (algo.tau, algo.target_update_period) == (0.1, 5)
    assert (algo.advantage_clip, algo.max_grad_norm, algo.l2) == (10.0, 1.0, 1e-5)
    assert (algo.value_weight, algo.untaken_weight) == (0.5, 1.0)
    assert algo.shaping.scale.start == algo.shaping.scale.end == 0.5
    assert algo.shaping.tie_penalty == -5.0
    network = settings.read(DuelingConfig, config.network, "network")
    assert network.hidden == (1024, 1024, 512, 256)
    assert network.log_window is None


@pytest.mark.parametrize("file", _options("preset_algo_env"))
def test_changes_of_a_preset_for_a_game_are_found_and_valid(file: str) -> None:
    """conf/preset_algo_env/<preset>_<algo>_<env>.yaml belongs to all three, and is valid."""
    every = itertools.product(PRESETS, ALGORITHMS, ENVS)
    preset, algo, env = next(parts for parts in every if file == "_".join(parts))
    node = compose_config("config", [f"preset={preset}", f"algo={algo}", f"env={env}"]).node
    build_run(node)
    assert OmegaConf.merge(node, OmegaConf.load(CONF / "preset_algo_env" / f"{file}.yaml")) == node


@pytest.mark.parametrize("file", _options("experiment"))
def test_experiment_composes_and_is_valid(file: str) -> None:
    """Every experiment stands as its own file asks."""
    build_run(compose_config("config", [f"experiment={file}"]).node)


@pytest.mark.parametrize("preset", ["none", "laptop", "tiny"])
def test_experiment_r42_is_valid_at_every_size(preset: str) -> None:
    """A preset changes sizes, step size and opponents, not the recipe."""
    node = compose_config("config", ["experiment=r42", f"preset={preset}"]).node
    config = build_run(node).config
    whole = compose_config("config", ["experiment=r42"]).node
    assert (config.env.name, config.network["name"]) == ("gin_rummy_mdp", "simba")
    scaled = {
        "num_envs",
        "rollout_length",
        "episodes_per_iteration",
        "batch_size",
        "learning_rate",
        "learning_rate_decay",
    }
    changed = {name for name in node.algo if node.algo[name] != whole.algo[name]}
    assert changed <= scaled | {"pool_every", "opponents", "shares"}
    assert "past_self" in node.algo.opponents


def test_document_values_of_r42() -> None:
    """The 16-action document's training table, written out."""
    node = compose_config("config", ["experiment=r42"]).node
    algo = settings.read(PpoConfig, node.algo, "algo")
    assert (algo.num_envs, algo.rollout_length, algo.epochs) == (4096, 128, 4)
    assert algo.batch_size == 4096 * 128 // 4
    assert node.iterations * 4096 * 128 == pytest.approx(1.4e9, rel=1e-3)
    assert algo.learning_rate == 2.5e-4
    decay = algo.learning_rate_decay
    assert (decay.start, decay.end, decay.transition_steps, decay.form) == (1.0, 0.0, node.iterations, "linear")
    assert (algo.discount, algo.gae_lambda, algo.clip_epsilon) == (1.0, 0.98, 0.2)
    assert (algo.entropy_weight, algo.value_weight, algo.value_loss) == (0.025, 0.75, "absolute")
    assert (algo.max_grad_norm, algo.auxiliary_weight) == (0.5, 0.1)
    assert algo.shaping.scale.start == algo.shaping.scale.end == algo.shaping.tie_penalty == 0
    assert dict(zip(algo.opponents, algo.shares, strict=True)) == {
        "heuristic": 0.30, "aggressive_knock": 0.15, "meld_builder": 0.10, "early_knock": 0.10, "defensive": 0.10,
        "lv5": 0.10, "past_self": 0.05, "lv4": 0.05, "lv7": 0.05,
    }  # fmt: skip
    assert node.env.rules.reward == "categorical"
    assert (node.network.name, node.network.width, node.network.blocks) == ("simba", 1024, 2)


def test_gin_rummy_mdp_file_tells_its_preset() -> None:
    """The game's file repeats the rules of `r42`."""
    rules = OmegaConf.to_container(OmegaConf.load(CONF / "env" / "gin_rummy_mdp.yaml")).pop("rules")
    assert envs.make("gin_rummy_mdp", **rules) == envs.make("gin_rummy_mdp")
    assert (rules["gin_bonus"], rules["undercut_bonus"], rules["max_actions"]) == (25, 25, 240)


def test_gin_rummy_file_tells_the_rules_of_the_document() -> None:
    """The game's file repeats its preset."""
    rules = OmegaConf.to_container(OmegaConf.load(CONF / "env" / "gin_rummy.yaml")).pop("rules")
    assert envs.make("gin_rummy", **rules) == envs.make("gin_rummy")
    assert rules == {
        "knock_limit": 10, "gin_bonus": 50, "undercut_bonus": 50, "undercut_on_tie": True, "first_offer": True,
        "stock_floor": 2, "max_actions": 80,
    }  # fmt: skip


def test_preset_h200_is_the_documents_own_run() -> None:
    """800 iterations with the document's algorithm untouched; only the arithmetic differs."""
    plain, h200 = (compose_config("config", overrides).node for overrides in ([], ["preset=h200"]))
    assert h200.iterations == 800
    assert h200.algo == plain.algo
    assert h200.network.hidden == plain.network.hidden
    assert h200.env == plain.env
