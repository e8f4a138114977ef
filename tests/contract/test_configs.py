"""conf/: every file loads and is commented, every combination builds or is refused, values are those of the sources."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from omegaconf import OmegaConf

import envs
from dream import algorithms
from dream.algorithms.dueling_dream import DuelingDreamConfig
from dream.algorithms.ppo import PpoConfig
from dream.algorithms.tabular.cfr import CfrConfig
from dream.config import settings
from dream.config.compose import compose_config, config_dir, groups_of
from dream.config.tuned import FOLDER, OWNERS, parse_choices, presets_of, tuned_settings
from dream.networks.dueling import DuelingConfig
from dream.training.start import build_run
from envs import EnumerableGame, InputError

CONF = pathlib.Path(__file__).resolve().parents[2] / "conf"
GROUPS = groups_of("config")
ALGORITHMS, PRESETS, ENVS, NETWORKS, EXPERIMENTS = (
    GROUPS[group] for group in ("algo", "preset", "env", "network", "experiment")
)
FILES = sorted(str(file.relative_to(CONF)) for file in CONF.rglob("*.yaml"))
DEEP_ON_TREES = {"deep_cfr", "sd_cfr"}
TABULAR = {name for name in ALGORITHMS if "cfr" in name or "tabular" in name} - {
    "os_sd_cfr",
    "vr_dcfr_plus",
    *DEEP_ON_TREES,
}
BY_EXACT_FORM = {name for name in TABULAR if "mccfr" not in name}
WITH_HISTORY_VALUES = {"dream", "escher", "vr_dcfr_plus"}


@pytest.mark.parametrize("file", FILES)
def test_file_loads_and_says_what_it_is_for(file: str) -> None:
    """It is YAML, and begins with a comment."""
    assert OmegaConf.load(CONF / file) is not None
    assert any(line.startswith("# ") for line in (CONF / file).read_text().splitlines()[:2])


@pytest.mark.parametrize("file", [file for file in FILES if not re.match("tuned|preset|experiment", file)])
def test_every_key_is_commented(file: str) -> None:
    """On its line or, for a list of options, above; the settings of Hydra and of other files aside."""
    text = (CONF / file).read_text()
    lines = re.sub(r"(?m)^(defaults|hydra|  algo):.*\n((?:  .*|    .*)\n)*", "", text).splitlines()
    for before, line in itertools.pairwise(lines):
        if re.match(r" *\w+:", line) and line.rstrip() not in ("checkpoint:", "eval:", "rules:"):
            assert "#" in line or before.lstrip().startswith("#"), line


def test_these_are_the_files_in_use() -> None:
    """The package reads the repository's conf/, and the groups of the design are there."""
    assert config_dir() == CONF
    assert {"laptop", "h200", "tiny", "none"} <= set(PRESETS)
    assert {"dream", "dueling_dream"} <= set(ALGORITHMS) == set(algorithms.names())
    assert set(ENVS) == set(envs.names())


def _sections() -> Iterator[tuple[str, str, Any]]:
    for file in sorted((CONF / FOLDER).glob("*.yaml")):
        for key, changes in OmegaConf.to_container(OmegaConf.load(file)).items():
            yield file.stem, key, changes


def test_tuned_files_name_what_there_is() -> None:
    """Each belongs to one game, preset or experiment, and its sections name groups and options that exist."""
    for name, key, _ in _sections():
        assert sum(name in GROUPS[owner] for owner in OWNERS) == 1, name
        for group, options in parse_choices(key).items():
            assert set(options) <= set(GROUPS[group]), (name, key)


def test_what_is_tuned_for_one_network_names_it() -> None:
    """Settings of a network other than what all of them have stand in a section of that network."""
    shared = set.intersection(*(set(OmegaConf.load(CONF / "network" / f"{name}.yaml")) for name in NETWORKS))
    assert shared == {"name", "dtype"}
    for name, key, changes in _sections():
        (network,) = parse_choices(key).get("network", (None,))
        known = shared if network is None else set(OmegaConf.load(CONF / "network" / f"{network}.yaml"))
        assert set(changes.get("network", {})) <= known, (name, key)
    for group in ("preset", "experiment", "env"):
        for option in GROUPS[group]:
            assert set(_file(group, option).get("network", {})) <= shared


@functools.cache
def _file(group: str, option: str) -> Any:
    """Returns a file's settings from the root, as Hydra places them."""
    content = OmegaConf.to_container(OmegaConf.load(CONF / group / f"{option}.yaml"))
    content.pop("defaults", None)
    return content if group in ("", "preset", "experiment") else {group: content}


def _merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = _merged(merged[key], value) if both else value
    return merged


def _composed(choices: dict[str, str]) -> dict[str, Any]:
    """Composes without Hydra, a hundred times faster: the layers in the order of conf/config.yaml's defaults."""
    base = {key: value for key, value in _file("", "config").items() if key != "hydra"}
    parts = [_file(group, choices[group]) for group in ("env", "algo", "network")]
    for_game, for_preset = (OmegaConf.to_container(tuned_settings(owner, choices)) for owner in ("env", "preset"))
    found = _merged(*parts, _file("tracking", "wandb"), base, for_game, _file("preset", choices["preset"]), for_preset)
    return OmegaConf.to_container(OmegaConf.create(found), resolve=True) if "${" in str(for_game) else found


PRODUCT = [
    dict(zip(("env", "algo", "network", "preset"), options, strict=True))
    for options in itertools.product(ENVS, ALGORITHMS, NETWORKS, PRESETS)
]


@pytest.mark.parametrize("choices", PRODUCT[::37], ids=lambda choices: "-".join(choices.values()))
def test_hydra_composes_these_layers(choices: dict[str, str]) -> None:
    """What the product is tested with is what Hydra makes of the same choices."""
    node = compose_config("config", [f"{group}={option}" for group, option in choices.items()]).node
    assert OmegaConf.to_container(node, resolve=True) == _composed(choices)


def _refusal(env: str, algo: str, network: str) -> str | None:
    """Returns part of the message that a combination is refused with; None where it can be built."""
    game = envs.make(env)
    deep = DEEP_ON_TREES | WITH_HISTORY_VALUES | {"os_sd_cfr"}
    if algo in deep | {"rnad"} and game.num_players != 2:
        return f"algo={algo} needs a two-player zero-sum game, and "
    if algo in BY_EXACT_FORM and game.hidden_placement is not None:
        return None
    if algo in DEEP_ON_TREES | TABULAR and not isinstance(game, EnumerableGame):
        return f"algo={algo} needs the whole tree of its game"
    if algo in WITH_HISTORY_VALUES and network != "dueling":
        return "a value of histories needs network=dueling"
    return None


@pytest.mark.parametrize("env", ENVS)
def test_every_combination_builds_or_is_refused_for_its_subject(env: str) -> None:
    """Every algorithm, network and preset with a game: whatever is composed is built, all but the training."""
    for choices in (choices for choices in PRODUCT if choices["env"] == env):
        expected = _refusal(env, choices["algo"], choices["network"])
        if expected is None:
            config = build_run(_composed(choices)).config
            assert (config.algo["name"], config.env.name) == (choices["algo"], env)
        else:
            with pytest.raises(InputError, match=expected):
                build_run(_composed(choices))


@functools.cache
def _node(*overrides: str) -> Any:
    """Returns the configuration of overrides, composed once for all that ask for it."""
    return compose_config("config", [*overrides]).node


def _overrides(experiment: str, preset: str) -> list[str]:
    return [f"experiment={experiment}", f"preset={preset}"]


def _allowed(experiment: str, preset: str) -> set[str]:
    """Returns the settings, by their paths, that an experiment's own file lets a preset change."""
    sections = OmegaConf.to_container(OmegaConf.load(CONF / FOLDER / f"{experiment}.yaml"))
    own = [changes for key, changes in sections.items() if preset in parse_choices(key).get("preset", ())]
    return {path for changes in own for path in _paths(changes)}


def _paths(node: Any, prefix: str = "") -> dict[str, Any]:
    """Returns the leaves of nested mappings by their paths."""
    if not isinstance(node, dict):
        return {prefix: node}
    return {path: leaf for key, value in node.items() for path, leaf in _paths(value, f"{prefix}.{key}").items()}


@pytest.mark.parametrize(("experiment", "preset"), list(itertools.product(EXPERIMENTS, PRESETS)))
def test_an_experiment_is_a_whole_recipe(experiment: str, preset: str) -> None:
    """A preset is refused in one line, or changes of an experiment what the experiment's own file says, alone."""
    if preset not in presets_of(experiment):
        words = f"preset={preset} cannot be combined with experiment={experiment}"
        with pytest.raises(InputError, match=words) as refused:
            compose_config("config", _overrides(experiment, preset))
        assert "\n" not in str(refused.value)
        return
    plain, changed = (
        _paths(OmegaConf.to_container(_node(*_overrides(experiment, name)), resolve=True)) for name in ("none", preset)
    )
    differ = {path for path in plain.keys() | changed.keys() if plain.get(path) != changed.get(path)}
    follows = {".algo.learning_rate_decay.transition_steps"}  # from the number of iterations
    assert differ <= _allowed(experiment, preset) | follows
    for network in (None, *NETWORKS):
        node = _node(*_overrides(experiment, preset), *([] if network is None else [f"network={network}"]))
        wants = None if network in (None, "dueling") else _wants_dueling(plain)
        if wants is not None:
            with pytest.raises(InputError, match=wants):
                build_run(node)
        else:
            build_run(node)


def _wants_dueling(recipe: dict[str, object]) -> str | None:
    """Returns what a recipe says of another network; None where it takes any."""
    if recipe.get(".algo.accumulate") == "mirror_descent":
        return "no policy head next to its advantages; it must be network=dueling"
    if recipe.get(".algo.advantage") == "expected_sarsa":
        return "a value of histories needs network=dueling"
    return None


def test_every_experiment_has_a_size_for_tests() -> None:
    """preset=tiny goes with each of them."""
    assert all("tiny" in presets_of(experiment) for experiment in EXPERIMENTS)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_learner_from_games_is_tiny(algo: str) -> None:
    """With preset=tiny few games, small minibatches and buffers on every game, whatever the game's file asks for."""
    off = {"critic"} | ({"average"} if algo == "dueling_dream" else set())
    most = {"episodes_per_iteration": 16, "batch_games": 8, "batch_size": 32, "capacity": 512}
    for env in ENVS:
        node = _composed({"env": env, "algo": algo, "network": "dueling", "preset": "tiny"})["algo"]
        sizes = _paths({name: value for name, value in node.items() if name not in off})
        for path, size in sizes.items():
            name = path.rpartition(".")[2]
            assert name not in most or size is None or size <= most[name], (env, path)


@pytest.mark.parametrize("tracking", GROUPS["tracking"])
def test_tracking_composes(tracking: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline unless asked otherwise."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    assert build_run(compose_config("config", [f"tracking={tracking}"]).node).config.tracking.mode == "offline"


def test_evaluate_composes() -> None:
    """With a checkpoint named."""
    node = compose_config("evaluate", ["checkpoint=somewhere"]).node
    assert (node.opponent, node.games) == ("random", 10000)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_algorithm_file_holds_every_default(algo: str) -> None:
    """Its file holds each setting of the code, with the same value; variants of one algorithm may change values."""
    node, schema = OmegaConf.load(CONF / "algo" / f"{algo}.yaml"), algorithms.settings_of(algo)
    defaults = schema(name=algo)
    read = settings.read(schema, node, "algo")
    assert read.name == algo
    assert _shape(OmegaConf.to_container(node)) == _shape(dataclasses.asdict(defaults))
    if schema is not CfrConfig:
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
    assert (algo.unit, algo.shaping.form, algo.epoch_unit) == ("points", "literal", "minibatches"), "left open"
    network = settings.read(DuelingConfig, config.network, "network")
    assert network.hidden == (1024, 1024, 512, 256)
    assert network.log_window is None


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
    per_checkpoint = algo.pool_every * 4096 * 128
    assert per_checkpoint == pytest.approx(1e8, rel=0.01)
    assert algo.pool_size == 14 == node.iterations // algo.pool_every + 1
    assert (node.checkpoint.every, node.checkpoint.keep) == (algo.pool_every, algo.pool_size)
    assert node.env.rules.reward == "categorical"
    assert (node.network.name, node.network.width, node.network.blocks) == ("simba", 1024, 2)


def test_gin_rummy_mdp_file_states_its_preset() -> None:
    """The game's file repeats the rules of `r42`."""
    rules = OmegaConf.to_container(OmegaConf.load(CONF / "env" / "gin_rummy_mdp.yaml")).pop("rules")
    assert envs.make("gin_rummy_mdp", **rules) == envs.make("gin_rummy_mdp")
    assert (rules["gin_bonus"], rules["undercut_bonus"], rules["max_actions"]) == (25, 25, 240)


def test_gin_rummy_file_states_the_rules_of_the_document() -> None:
    """The game's file names the preset of the document, whose values are these."""
    rules = OmegaConf.to_container(OmegaConf.load(CONF / "env" / "gin_rummy.yaml")).pop("rules")
    game = envs.make("gin_rummy", **rules)
    assert game == envs.make("gin_rummy")
    values = dataclasses.asdict(game.rules)
    assert {name: values[name] for name in values if name not in ("num_ranks", "num_suits", "hand_size")} == {
        "knock_limit": 10, "gin_bonus": 50, "big_gin_bonus": 0, "undercut_bonus": 50, "undercut_on_tie": True,
        "first_offer": True, "layoff": "exact", "stock_floor": 2, "max_actions": 80,
    }  # fmt: skip


def test_document_small_is_the_documents_recipe() -> None:
    """Half the games, each decision read once, a step that falls, a narrower network, one weight; nothing else."""
    small, whole = (compose_config("config", overrides).node for overrides in (["experiment=document_small"], []))
    assert (small.iterations, whole.iterations) == (450, 800)
    assert {name for name in whole.algo if small.algo[name] != whole.algo[name]} == {
        "episodes_per_iteration",
        "epochs",
        "epoch_unit",
        "learning_rate_decay",
        "untaken_weight",
    }
    assert {name for name in whole.network if small.network[name] != whole.network[name]} == {"hidden", "log_window"}


def test_preset_h200_is_the_documents_own_run() -> None:
    """800 iterations with the document's algorithm; each decision is read once, and the arithmetic differs."""
    plain, h200 = (compose_config("config", overrides).node for overrides in ([], ["preset=h200"]))
    assert h200.iterations == 800
    assert {name for name in plain.algo if h200.algo[name] != plain.algo[name]} == {"epochs", "epoch_unit"}
    assert (h200.algo.epochs, h200.algo.epoch_unit) == (1, "passes")
    assert h200.network.hidden == plain.network.hidden
    assert h200.env == plain.env


def test_the_recipe_that_learns_has_the_documents_size_too() -> None:
    """`preset=h200 experiment=document_small` is `preset=h200` but for a weight, the fall of the step, and the end."""
    document, ours = (
        compose_config("config", ["preset=h200", *more]).node for more in ([], ["experiment=document_small"])
    )
    changed = {name for name in document.algo if ours.algo[name] != document.algo[name]}
    assert changed == {"learning_rate_decay", "untaken_weight"}
    assert ours.network == document.network
    assert (ours.env, ours.eval, ours.iterations) == (document.env, document.eval, 450)
