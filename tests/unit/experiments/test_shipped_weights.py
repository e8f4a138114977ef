"""Weights are shipped with the strength that was measured of them, or not at all."""

from __future__ import annotations

import importlib
import json
import pathlib
import shutil
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace

import pytest
from command_support import REPO, succeed
from run_folder import write_config, write_metrics, write_sittings

NAME = "kuhn_poker/small"


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    """The script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPO / "experiments")
        yield importlib.import_module("shipped_weights")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of runs, with seed 0 trained for two iterations, and checkpoints of both."""
    folder = tmp_path_factory.mktemp("runs")
    settings = ["env=kuhn_poker", "algo=cfr_plus", "iterations=2", "checkpoint.every=1", "checkpoint.keep=2"]
    quiet = ["eval.opponents=[]", "tracking.mode=disabled", f"run_dir={folder / NAME / 'seed0'}"]
    succeed("dream.run", *settings, *quiet, cwd=folder)
    return folder


@pytest.fixture
def script(module: ModuleType, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with a small recipe, its files in an empty folder but for weights that were shipped before."""
    monkeypatch.setattr(module, "RECIPES", {NAME: module.Recipe(("algo=cfr_plus",), ("random", "camper"), 40)})
    monkeypatch.setattr(module, "RESULT", tmp_path / "result.json")
    monkeypatch.setattr(module, "WEIGHTS", tmp_path / "weights")
    place = tmp_path / "weights" / "kuhn_poker"
    place.mkdir(parents=True)
    for end in ("safetensors", "json"):
        (place / f"small.{end}").write_text("before")
    return module


def _called(script: ModuleType, what: str, runs: pathlib.Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["shipped_weights.py", what, NAME, "--runs", str(runs)])
        try:
            script.main()
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


def _files(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_was_measured_is_shipped(script: ModuleType, runs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """File and card with the strength, the command, iteration and checksum; nothing else is left."""
    assert _called(script, "measure", runs) == 0
    assert _called(script, "ship", runs) == 0
    place = tmp_path / "weights" / "kuhn_poker"
    assert sorted(path.name for path in place.iterdir()) == ["small.json", "small.safetensors"]
    card = json.loads((place / "small.json").read_text())
    assert list(card["strength"]) == ["random"]
    assert card["file"] == "small.safetensors"
    assert card["training"]["iterations"] == 2
    assert card["training"]["command"].startswith("python -m dream.run env=kuhn_poker algo=cfr_plus iterations=2")
    assert "resumed" not in card["training"]


def test_nothing_is_replaced_by_what_was_not_measured(
    script: ModuleType, runs: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither measured at all, nor whole, nor trained further, nor other weights of the same iteration, nor no run."""
    before = _files(tmp_path / "weights")

    def refused(message: str, folder: pathlib.Path = runs) -> None:
        assert _called(script, "ship", folder) == 2
        line = capsys.readouterr().err
        assert message in line
        assert line.count("\n") == 1
        assert _files(tmp_path / "weights") == before

    refused("holds no measurement of kuhn_poker/small, seed 0")
    refused("nowhere", tmp_path / "nowhere")
    assert _called(script, "measure", runs) == 0
    capsys.readouterr()
    stored = json.loads(script.RESULT.read_text())
    for changed, message in (
        ({"strength": {}}, "was not measured against random"),
        ({"iterations": 1}, "is not what was measured: iterations is 1 and 2"),
        ({"checksum": 5}, "is not what was measured: checksum is 5 and "),
    ):
        script.RESULT.write_text(json.dumps({NAME: {"0": stored[NAME]["0"] | changed}}))
        refused(message)


@pytest.fixture
def resumed(tmp_path: pathlib.Path) -> pathlib.Path:
    """A run of two sittings that has ended: longer, and of another commit."""
    run = write_config(tmp_path / "seed0", iterations=8)
    write_sittings(run, "run.py -m algo=cfr_plus seed=0,1 iterations=4", "run.py resume=x iterations=8")
    spent = {"seconds": 1.0, "compile_seconds": 0.1, "decisions": 5}
    counted = dict.fromkeys(("episodes", "nodes", "transitions", "network_rows", "gradient_steps"), 1)
    sampling = ("regret_second_moment", "effective_sample_size", "baseline_explained_variance")
    write_metrics(run, [{"iteration": 8, **spent, **counted, **{f"sampling/{name}": 1.0 for name in sampling}}])
    report = {"n": 40, "win_rate": 0.5, "score": 1.0}
    (run / "evaluation.json").write_text(json.dumps({"by_opponent": {"random": report}}))
    return run


def test_all_sittings_are_reported(module: ModuleType, resumed: pathlib.Path) -> None:
    """By each script that keeps what a run was given, and in the tables: what it ended with, and every commit."""
    trained = module.training(resumed)
    assert trained["command"] == "python -m dream.run algo=cfr_plus seed=0 iterations=8"
    scripts = [importlib.import_module(name) for name in ("corrections", "rummy500_shaped")]
    for found in (trained, *(script.collected(resumed) for script in scripts)):
        assert found["git_commit"] == "c0"
        (later,) = found["resumed"]
        assert (later["git_commit"], later["started_at_iteration"], later["overrides"]) == ("c1", 2, ["iterations=8"])
        assert found.get("overrides", ["algo=cfr_plus", "seed=0", "iterations=8"])[2] == "iterations=8"
    tables = importlib.import_module("player_tables")
    assert tables._commits([trained, {"git_commit": "c0"}]) == "c0 and c1"


def test_cells_that_are_not_there_are_kept(
    module: ModuleType,
    resumed: pathlib.Path,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder without runs changes no result; one with a cell adds it, and tells where it replaces a stored one."""
    script = importlib.import_module("corrections")
    results = tmp_path / "results"
    results.mkdir()
    monkeypatch.setattr(script, "RESULTS", results)
    stored = results / "corrections_gin_rummy.json"
    stored.write_text(json.dumps({"0.9_11_1/seed0": {"seconds": 3.0}}))
    before = _files(results)
    monkeypatch.setattr(sys, "argv", ["corrections.py", "gin_rummy", "--collect", "--runs", str(tmp_path / "runs")])
    with pytest.raises(SystemExit) as ended:
        script.main()
    line = capsys.readouterr().err
    assert (ended.value.code, line.count("\n")) == (2, 1)
    assert "gin_rummy holds no finished run; --runs must be" in line
    assert _files(results) == before
    shutil.copytree(resumed, tmp_path / "runs" / "gin_rummy" / "0_1_1" / "seed0")
    script.main()
    assert not capsys.readouterr().err
    found = json.loads(stored.read_text())
    assert (list(found), found["0.9_11_1/seed0"]) == (["0.9_11_1/seed0", "0_1_1/seed0"], {"seconds": 3.0})
    stored.write_text(json.dumps({"0_1_1/seed0": {"seconds": 3.0}}))
    script.main()
    assert capsys.readouterr().err.startswith("warning: 0_1_1/seed0 was stored already")
    assert json.loads(stored.read_text())["0_1_1/seed0"]["seconds"] == 1.0


def test_wrong_input_is_one_line(
    module: ModuleType, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the scripts that play gin and train cells: exit code 2, before anything is played or written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.import_module("subprocess"), "call", _never)
    for name, arguments, message in (
        ("gin_levels", ["--players", "nope", "--out", "o"], "unknown player 'nope'"),
        ("gin_levels", ["--games", "3", "--out", "o"], "3"),
        ("gin_ladder", ["--processes", "0"], "processes=0"),
        ("corrections", ["leduc_poker", "--cells", "0.9"], "--cells 0.9 is not valid"),
        ("gin_losses", ["--deals", "0", "--out", "o"], "--deals 0 is not valid"),
    ):
        script = importlib.import_module(name)
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            script.main()
        line = capsys.readouterr().err
        assert ended.value.code == 2
        assert line.startswith("error: ")
        assert message in line
        assert line.count("\n") == 1
        assert not list(tmp_path.iterdir())


def _never(*_: object) -> SimpleNamespace:
    raise AssertionError("nothing is to be run")
