"""The example of a game from outside: registered in a program, and offered to the commands by an entry point."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import types

import jax
import numpy as np
import pytest
from command_support import REPO, environment

import dream
import envs
from dream import algorithms
from dream.config import registered
from dream.config.compose import compose_config
from dream.game_tree import build_tree, nash_conv, tabulate
from envs import InputError

FOLDER = REPO / "experiments" / "examples" / "nim_game"
SMALL = ["eval.games=4", "eval.final_games=4", "tracking.mode=disabled"]


@pytest.fixture
def nim(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The example's module, registered for one test."""
    spec = importlib.util.spec_from_file_location("nim_game", FOLDER / "nim_game.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "nim_game", module)
    spec.loader.exec_module(module)
    module.register()
    return module


def test_the_rules(nim: types.ModuleType) -> None:
    """The generic check of a game, its size, and the known solution of nim."""
    game = envs.make("nim")
    envs.check_game(game)
    tree = build_tree(game)
    assert tree.num_histories == 33  # the ways to write 0 to 6 as ones and twos in order: 1 + 1 + 2 + 3 + 5 + 8 + 13
    assert nash_conv(tree, tabulate(tree, envs.make_bot("expert", game))) == 0
    assert nash_conv(tree, tree.uniform()) > 0.5
    start = game.init(jax.random.key(0))
    after, rewards, done = game.step(start, 1)
    assert game.to_dict(after) == {"taken": [2], "left": 4, "current_player": 1}
    assert not done
    assert np.asarray(rewards).tolist() == [0, 0]
    with pytest.raises(InputError, match="1 <= most <= heap"):
        envs.make("nim", heap=3, most=4)


def test_it_trains_without_a_yaml_file(nim: types.ModuleType, tmp_path: pathlib.Path) -> None:
    """By name, with rules of its own, on disk and back; its player is an opponent."""
    folder = tmp_path / "run"
    settings = ["env=nim", "env.rules.heap=5", "algo=cfr_plus", "iterations=30", f"run_dir={folder}"]
    run = dream.train([*settings, *SMALL, "eval.opponents=[expert]"], quiet=True)
    assert run.game == nim.Nim(heap=5)
    assert run.exact["average"]["exploitability"] < 0.05
    assert set(run.evaluation) == {"expert"}
    assert dream.evaluate(run, "expert", games=4).points_per_hand.mean == pytest.approx(0, abs=0.6)
    assert dream.load_policy(folder).game == run.game
    with pytest.raises(InputError, match="unknown env 'nimm'"):
        dream.train(["env=nimm"])


def test_sizes_for_a_game_from_outside(nim: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits the game replaces the algorithm's defaults; a preset and the command line replace that in turn."""
    monkeypatch.setattr(registered, "_sizes", [])
    registered.add_sizes(lambda game, algo, network: {"algo": {"batch_size": game.heap}, "network": {"hidden": [7]}})
    chosen = ["algo=dueling_dream", "network=dueling"]
    node = compose_config("config", ["env=nim", *chosen]).node
    assert (node.algo.batch_size, list(node.network.hidden)) == (6, [7])
    assert compose_config("config", ["env=nim", *chosen, "algo.batch_size=9"]).node.algo.batch_size == 9
    assert list(compose_config("config", ["env=nim", *chosen, "preset=tiny"]).node.network.hidden) != [7]
    assert compose_config("config", ["env=kuhn_poker", *chosen]).node.algo.batch_size != 6
    monkeypatch.setattr(registered, "_sizes", [])
    assert compose_config("config", ["env=nim", *chosen]).node.algo.batch_size != 6


@pytest.mark.parametrize("command", ["ladder", "play", "exploit"])
def test_commands_that_train_nothing_take_its_rules(nim: types.ModuleType, command: str) -> None:
    """They choose a game, but no algorithm whose sizes could follow from it; and so with a game of the package."""
    assert compose_config(command, ["env=nim", "env.rules.heap=5"]).node.env == {"name": "nim", "rules": {"heap": 5}}
    assert compose_config(command, ["env=gin_rummy", "env.rules.knock_limit=5"]).node.env.rules.knock_limit == 5


def test_an_algorithm_without_a_yaml_file(nim: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its node holds the defaults of its settings, which overrides change."""
    monkeypatch.setitem(algorithms._REGISTRY, "my_cfr", algorithms._REGISTRY["cfr"])
    composed = compose_config("config", ["env=nim", "algo=my_cfr"])
    schema = algorithms.settings_of("cfr")
    defaults = {f.name: f.default for f in dataclasses.fields(schema) if f.default is not dataclasses.MISSING}
    node = dict(composed.node.algo)
    assert node == {**defaults, "name": "my_cfr"}
    assert composed.choices["algo"] == "my_cfr"
    with pytest.raises(InputError, match="unknown algo 'my_cfrr'"):
        compose_config("config", ["env=nim", "algo=my_cfrr"])


def test_the_commands_find_the_installed_package(tmp_path: pathlib.Path) -> None:
    """Installed next to the project, its entry points are enough for `python -m dream.run env=nim` and its player."""
    pytest.importorskip("hatchling")
    target = tmp_path / "installed"
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*pip, "--target", target, FOLDER], env=offline, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    command = [sys.executable, "-m", "dream.run", "env=nim", "env.rules.heap=5", "algo=cfr", "iterations=2"]
    done = subprocess.run(
        [*command, *SMALL, "eval.opponents=[expert]", "run_dir=run"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=os.pathsep.join([str(target), str(REPO)])),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert report["exact"]["average"]["exploitability"] < 1
    assert "expert" in json.dumps(report)
