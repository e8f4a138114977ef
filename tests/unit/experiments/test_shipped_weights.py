"""Weights are shipped with the strength that was measured of them, or not at all."""

from __future__ import annotations

import json
import pathlib
import shutil
from types import ModuleType

import pytest
import shipped_weights
from command_support import succeed
from script_support import called

NAME = "kuhn_poker/small"
RECIPE = ("env=kuhn_poker", "algo=cfr_plus", "iterations=2")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of runs, with seed 0 trained for two iterations, and checkpoints of both."""
    folder = tmp_path_factory.mktemp("runs")
    settings = [*RECIPE, "checkpoint.every=1", "checkpoint.keep=2"]
    quiet = ["eval.opponents=[]", "tracking.mode=disabled", f"run_dir={folder / NAME / 'seed0'}"]
    succeed("dream.run", *settings, *quiet, cwd=folder)
    return folder


@pytest.fixture
def script(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script with a small recipe, its files in an empty folder but for weights that were shipped before."""
    monkeypatch.setattr(shipped_weights, "RECIPES", {NAME: shipped_weights.Recipe(RECIPE, ("random", "camper"), 40)})
    monkeypatch.setattr(shipped_weights, "RESULT", tmp_path / "result.json")
    monkeypatch.setattr(shipped_weights, "WEIGHTS", tmp_path / "weights")
    place = tmp_path / "weights" / "kuhn_poker"
    place.mkdir(parents=True)
    for end in ("safetensors", "json"):
        (place / f"small.{end}").write_text("before")
    return shipped_weights


def _files(folder: pathlib.Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_what_was_measured_is_shipped(script: ModuleType, runs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """File and card with the strength, the command, iteration and checksum; nothing else is left."""
    assert called(script, "measure", NAME, "--runs", runs) == 0
    assert called(script, "ship", NAME, "--runs", runs) == 0
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
        assert called(script, "ship", NAME, "--runs", folder) == 2
        line = capsys.readouterr().err
        assert message in line
        assert line.count("\n") == 1
        assert _files(tmp_path / "weights") == before

    refused("holds no measurement of kuhn_poker/small, seed 0")
    refused("nowhere", tmp_path / "nowhere")
    assert called(script, "measure", NAME, "--runs", runs) == 0
    capsys.readouterr()
    stored = json.loads(script.RESULT.read_text())
    for changed, message in (
        ({"strength": {}}, "was not measured against random"),
        ({"iterations": 1}, "is not what was measured: iterations is 1 and 2"),
        ({"checksum": 5}, "is not what was measured: checksum is 5 and "),
    ):
        script.RESULT.write_text(json.dumps({NAME: {"0": stored[NAME]["0"] | changed}}))
        refused(message)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("recipe", "is not what was asked for: algo.average_power is 1.0 and 2.0"),
        ("seed", "is not what was asked for: seed is 0 and 1"),
        ("longer", "is not what was asked for: iterations is 2 and 9"),
        (
            "left",
            "was left before its end; run `python experiments/shipped_weights.py train kuhn_poker/small --seed 0`",
        ),
    ],
)
def test_a_run_of_another_recipe_is_neither_measured_nor_shipped(
    script: ModuleType, runs: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, changed: str, message: str,
) -> None:  # fmt: skip
    """Nor one of another seed, nor one that has not ended: one line, and nothing is written."""
    shutil.copytree(runs, tmp_path / "runs")
    run, more = tmp_path / "runs" / NAME / "seed0", {"recipe": "algo.average_power=2.0", "longer": "iterations=9"}
    if changed in more:
        recipe = script.RECIPES[NAME]._replace(overrides=(*RECIPE, more[changed]))
        monkeypatch.setattr(script, "RECIPES", {NAME: recipe})
    elif changed == "left":
        (run / "evaluation.json").unlink()
    else:
        run.rename(run.with_name("seed1"))
    before = _files(tmp_path)
    for what in ("measure", "ship"):
        assert called(script, what, NAME, "--seed", int(changed == "seed"), "--runs", tmp_path / "runs") == 2
        line = capsys.readouterr().err
        assert (line.count("\n"), message in line) == (1, True)
    assert _files(tmp_path) == before


def test_a_measurement_that_is_cut_off_leaves_the_stored_one(
    script: ModuleType, runs: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All opponents replace it together."""
    script.RESULT.write_text(json.dumps({NAME: {"0": {"strength": {"random": {}, "another": {}}}}}))
    before, play, met = script.RESULT.read_bytes(), script.match, []

    def cut_off(*players: object, **how: object) -> object:
        if met:
            raise KeyboardInterrupt
        met.append(players)
        return play(*players, **how)

    monkeypatch.setattr(script, "match", cut_off)
    monkeypatch.setattr(script, "field", lambda name, game: ["random", "random"])
    with pytest.raises(KeyboardInterrupt):
        called(script, "measure", NAME, "--runs", runs)
    assert script.RESULT.read_bytes() == before
