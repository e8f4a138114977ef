"""Algorithms of other packages: registered in the process, or named by an installed package."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from omegaconf import OmegaConf

import dream
import envs
from dream import algorithms
from dream.algorithms.ppo import PpoConfig
from dream.algorithms.types import Algorithm, Resources
from dream.config import settings
from dream.config.compose import config_dir
from envs import Game, InputError, Policy


@dataclasses.dataclass(frozen=True)
class IdleConfig:
    """Settings of a learner that learns nothing."""

    name: str = "idle"
    bias: float = 0.0


def make(config: IdleConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
    """Builds a learner whose metrics show its settings and that its resources arrived."""
    found = resources.find_player("random", game)

    def iterate(state: int) -> tuple[int, dict[str, float]]:
        return state + 1, {"bias": config.bias, "episodes": 0.0}

    def policies(state: int) -> dict[str, Policy]:
        return {"current": found}

    return Algorithm(lambda key: 0, iterate, policies)


@pytest.mark.parametrize("settings_class", [IdleConfig, f"{__name__}:IdleConfig"])
def test_a_registered_algorithm_is_built_as_any_other(settings_class: type | str) -> None:
    """By class or by path, with the module's own `make`; its settings are checked; it is listed."""
    algorithms.register("idle", settings_class)
    assert "idle" in algorithms.names()
    assert algorithms.settings_of("idle") is IdleConfig
    learner = algorithms.make({"name": "idle", "bias": 0.5}, {}, envs.make("kuhn_poker"))
    _, metrics = learner.iterate(learner.init(jax.random.key(0)))
    assert metrics["bias"] == 0.5
    with pytest.raises(InputError, match=r"unknown setting 'algo\.bais'"):
        algorithms.make({"name": "idle", "bais": 0.5}, {}, envs.make("kuhn_poker"))


def test_a_state_that_cannot_be_stored_is_refused_before_training(tmp_path: pathlib.Path) -> None:
    """Not at the first checkpoint, which would be the end of all iterations before it."""
    algorithms.register("idle", IdleConfig)
    settings = ["env=kuhn_poker", "algo=idle", "iterations=1", "tracking.mode=disabled", f"run_dir={tmp_path / 'run'}"]
    with pytest.raises(InputError, match="algo=idle: the state that init returns holds 0; it must hold arrays"):
        dream.train(settings, quiet=True)
    assert not (tmp_path / "run").exists()


WRONG = {
    "no current policy": ({}, ["average"], r"algo=odd: policies of a state are \['average'\]; 'current' must be among"),
    "a metric of several numbers": ({"gap": np.zeros(2)}, ["current"], r"'gap', is an array of shape \[2\]; it must"),
    "no metric": ({"gap": None}, ["current"], "a metric of the learner, 'gap', is None; it must be one number"),
    "an array of losses": ({"loss": np.zeros(2)}, ["current"], r"'loss', is an array of shape \[2\]; it must"),
    "the run's count": ({"iteration": 5}, ["current"], "a metric of the learner is named 'iteration', which the run"),
    "the run's results": ({"eval/x": 5}, ["current"], "a metric of the learner is named 'eval/x', which the run"),
}
"""Metrics of a learner, names of its policies, and the line that refuses one of them."""


@pytest.mark.parametrize("case", WRONG)
def test_a_learner_that_breaks_its_word_is_refused(case: str, tmp_path: pathlib.Path) -> None:
    """By one line, and not by what its fault leads to; one number may be an array of one."""
    extra, policies, line = WRONG[case]

    def make_odd(config: IdleConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
        found = dict.fromkeys(policies, resources.find_player("random", game))
        return Algorithm(
            lambda key: np.int32(0), lambda state: (state + 1, {"one": np.ones(1)} | extra), lambda state: found
        )

    algorithms.register("odd", IdleConfig, make_odd)
    given = ["env=kuhn_poker", "algo=odd", "iterations=1", "tracking.mode=disabled", f"run_dir={tmp_path / 'run'}"]
    with pytest.raises(InputError, match=line):
        dream.train(given, quiet=True)


class Counted(NamedTuple):
    """A state of one's own."""

    iteration: Any
    table: Any


ITERATIONS = {
    "nothing": (lambda state: None, "an iteration returned NoneType; it must return \\(state, metrics by name\\)"),
    "a state alone": (lambda state: state, "an iteration returned Counted; it must return"),
    "no array": (lambda state: (Counted(1, state.table), {}), "the state that iterate returns holds 1 at .iteration"),
    "another shape": (
        lambda state: (Counted(state.iteration + 1, np.zeros(3)), {}),
        r"has float64\[3\] at .table, and float64\[2\] before; both must be alike",
    ),
    "no count": (lambda state: (state, {}), "`iteration` of the state grew by 0 in 1 iterations; iterate must count"),
}
"""What a learner does in an iteration, and the line that refuses it."""


@pytest.mark.parametrize("case", ITERATIONS)
def test_an_iteration_that_is_none_is_refused(case: str, tmp_path: pathlib.Path) -> None:
    """After the first one, not at the first checkpoint or never."""
    iterate, line = ITERATIONS[case]

    def make_odd(config: IdleConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
        found = {"current": resources.find_player("random", game)}
        return Algorithm(lambda key: Counted(np.int32(0), np.zeros(2)), iterate, lambda state: found)

    algorithms.register("odd", IdleConfig, make_odd)
    given = ["env=kuhn_poker", "algo=odd", "iterations=1", "tracking.mode=disabled", f"run_dir={tmp_path / 'run'}"]
    with pytest.raises(InputError, match=line):
        dream.train(given, quiet=True)


def test_policies_that_are_no_dict_are_refused(tmp_path: pathlib.Path) -> None:
    """Such as a policy alone."""

    def make_odd(config: IdleConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
        found = resources.find_player("random", game)
        return Algorithm(lambda key: np.int32(0), lambda state: (state + 1, {}), lambda state: found)

    algorithms.register("odd", IdleConfig, make_odd)
    given = ["env=kuhn_poker", "algo=odd", "iterations=1", "tracking.mode=disabled", f"run_dir={tmp_path / 'run'}"]
    with pytest.raises(InputError, match="policies of a state are Policy; they must be a dict of policies by name"):
        dream.train(given, quiet=True)


def test_every_learner_can_be_left_in_an_iteration() -> None:
    """Its iterations come in calls of bounded length, so that a budget in seconds or a signal ends them."""
    kuhn, network = envs.make("kuhn_poker"), {"name": "dueling", "hidden": [4]}
    given = {"behaviour_cloning": {"player": "random"}}
    learners = {
        name: algorithms.make({"name": name, **given.get(name, {})}, network, kuhn) for name in algorithms.names()
    }
    assert [name for name, learner in learners.items() if learner.calls is None and learner.several is None] == []


@pytest.mark.parametrize("name", sorted(algorithms._REGISTRY))
def test_a_name_alone_has_the_settings_of_its_file(name: str) -> None:
    """A caller that says cfr_plus gets CFR+, as on the command line, not CFR under its name."""
    schema, node = algorithms.settings_of(name), OmegaConf.load(config_dir() / "algo" / f"{name}.yaml")
    assert algorithms.read_settings({"name": name})[1] == settings.read(schema, node, "algo")


def test_what_is_given_comes_before_the_file() -> None:
    """Of a node of the configuration as of a dict."""
    for given in (dict, OmegaConf.create):
        read = algorithms.read_settings(given({"name": "cfr_plus", "average_power": 2.0}))[1]
        assert (read.plus, read.average_power) == (True, 2.0)


def test_a_group_given_in_part_keeps_the_rest_of_the_file() -> None:
    """As `algo.average.every=1` does on the command line; the class holds other values for other algorithms."""
    whole = algorithms.read_settings({"name": "deep_cfr"})[1]
    part = algorithms.read_settings({"name": "deep_cfr", "average": {"fit": {"steps": 7}}})[1]
    assert not whole.average.importance  # what the file alone says
    fit = dataclasses.replace(whole.average.fit, steps=7)
    assert part == dataclasses.replace(whole, average=dataclasses.replace(whole.average, fit=fit))


@pytest.mark.parametrize("name", sorted(algorithms._REGISTRY))
def test_another_default_keeps_the_range(name: str) -> None:
    """Settings that a class takes over with a default of its own are checked as before."""
    module, settings_class = algorithms._REGISTRY[name].split(":")
    schema = getattr(importlib.import_module(module), settings_class)
    own = {field.name: field for field in dataclasses.fields(schema)}
    for base in filter(dataclasses.is_dataclass, schema.__mro__[1:]):
        for field in dataclasses.fields(base):
            assert own[field.name].metadata or not field.metadata, f"{name}: {field.name} has lost its range"


def test_another_builder_may_be_given() -> None:
    """In the place of the module's `make`."""
    built = []

    def other(config: IdleConfig, network: Any, game: Game, resources: Resources) -> Algorithm:
        built.append(config)
        return make(config, network, game, resources)

    algorithms.register("idle", IdleConfig, other)
    algorithms.make({"name": "idle"}, {}, envs.make("kuhn_poker"))
    assert built == [IdleConfig()]


def test_what_cannot_be_registered_is_refused() -> None:
    """One line each: a name that is taken, something that is no settings class, a path that leads nowhere."""
    with pytest.raises(InputError, match="'ppo' is one of this project's own"):
        algorithms.register("ppo", IdleConfig)
    for wrong in (dict, "no path", IdleConfig()):
        with pytest.raises(InputError, match="must be a dataclass or 'module:Class'"):
            algorithms.register("idle", wrong)
    algorithms.register("idle", "no_such_module_anywhere:Config")
    with pytest.raises(InputError, match="'idle' is registered but cannot be loaded: ModuleNotFoundError"):
        algorithms.settings_of("idle")


def test_settings_of_the_projects_own() -> None:
    """Every name has a settings dataclass; an unknown name is answered with the nearest."""
    assert algorithms.settings_of("ppo") is PpoConfig
    for name in algorithms.names():
        assert dataclasses.is_dataclass(algorithms.settings_of(name))
    with pytest.raises(InputError, match="unknown algorithm 'pppo'; did you mean 'ppo'"):
        algorithms.settings_of("pppo")


@pytest.fixture
def installed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """An installed distribution "other-learners" with a sound and a broken algorithm."""
    info = tmp_path / "other_learners-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-learners\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{algorithms.ENTRY_POINTS}]\nelsewhere = other_learners_sound:Config\nbroken = other_learners_broken:Config\n"
    )
    (tmp_path / "other_learners_sound.py").write_text(
        "import dataclasses\nfrom dream.algorithms.types import Algorithm\n"
        "@dataclasses.dataclass(frozen=True)\nclass Config:\n    name: str = 'elsewhere'\n"
        "def make(config, network, game, resources):\n"
        "    return Algorithm(lambda key: 0, lambda state: (state, {}), lambda state: {})\n"
    )
    (tmp_path / "other_learners_broken.py").write_text("raise RuntimeError('half\\ninstalled')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("other_learners_sound", "other_learners_broken"):
        sys.modules.pop(name, None)


def test_algorithms_of_installed_packages(installed: pathlib.Path) -> None:
    """Listed without being imported; built by name; a broken one is one line that names its distribution."""
    assert {"elsewhere", "broken"} <= set(algorithms.names())
    assert "other_learners_sound" not in sys.modules
    learner = algorithms.make({"name": "elsewhere"}, {}, envs.make("kuhn_poker"))
    assert learner.init(jax.random.key(0)) == 0
    with pytest.raises(InputError, match=r"'broken' of other-learners .*RuntimeError: half") as caught:
        algorithms.make({"name": "broken"}, {}, envs.make("kuhn_poker"))
    assert "\n" not in str(caught.value)
    assert "uninstall other-learners" in str(caught.value)
