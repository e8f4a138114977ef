"""Do the notebooks run from top to bottom, and do they store their outputs and pictures?"""

from __future__ import annotations

import json
import pathlib
import types
import warnings
from typing import Any

import pytest
from omegaconf import OmegaConf
from reproduce_support import DICE, write_run

import dream
import envs
from dream.training import metrics
from dream.training.finished import FinishedRun

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "experiments" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(path: pathlib.Path) -> list[dict[str, Any]]:
    """Returns a notebook's code cells."""
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_there_are_four() -> None:
    """Exact values by a tree and without, sweeps, and rounds of gin."""
    known = ["exactness_on_dark_hex", "exploitability_on_leduc", "gin_round_by_round", "reading_sweeps"]
    assert [path.stem for path in NOTEBOOKS] == known


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_stores_its_outputs(path: pathlib.Path) -> None:
    """Run in order, with text and a picture, without an error; nothing of the machine it ran on."""
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"stream", "display_data"}
    assert {output["name"] for output in outputs if output["output_type"] == "stream"} == {"stdout"}
    assert [output for output in outputs if "image/png" in output.get("data", {})]
    shown = "".join("".join(output.get("text", [])) for output in outputs)
    assert not [text for text in ("/tmp", "/home", "/Users", "/root") if text in shown]
    assert path.stat().st_size < 500_000


def run_cells(path: pathlib.Path) -> dict[str, Any]:
    """Runs all cells in order in one namespace, which is returned."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    namespace: dict[str, Any] = {"__name__": "notebook"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        for cell in code_cells(path):
            exec(compile("".join(cell["source"]), f"{path.name}:{cell['id']}", "exec"), namespace)
    pyplot.close("all")
    return namespace


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All cells, at the tiny size; what it printed is of this run."""
    monkeypatch.setenv("DREAM_NOTEBOOK_TINY", "1")
    monkeypatch.setenv("DREAM_CACHE_DIR", str(tmp_path / "cache"))
    namespace = run_cells(path)
    assert "per hand" in capsys.readouterr().out
    assert namespace["TINY"] is True


def _recorded(folder: pathlib.Path) -> FinishedRun:
    """Returns the run of a folder without a checkpoint."""
    config = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
    game = envs.make(config["env"]["name"])
    return FinishedRun(folder, game, metrics.read(folder), {}, {}, None, types.SimpleNamespace(meta={"config": config}))


@pytest.mark.parametrize("exact", [True, False])
def test_a_sweep_of_a_learner_without_an_average_is_read(
    exact: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its current policy; without exact values one line says so."""
    for seed, values in enumerate(([0.9, 0.4], [0.9, 0.6])):
        write_run(tmp_path / str(seed), values if exact else [None, None], "current", overrides=DICE)
    monkeypatch.setenv("DREAM_NOTEBOOK_SWEEP", str(tmp_path))
    monkeypatch.setattr(dream, "load_run", _recorded)
    if exact:
        run_cells(FOLDER / "reading_sweeps.ipynb")
        shown = capsys.readouterr().out
        assert "plain scale: 0.5000 chips per hand" in shown
        assert "seeds have" not in shown
    else:
        with pytest.raises(SystemExit, match=r"0 has no exact values; it must be"):
            run_cells(FOLDER / "reading_sweeps.ipynb")


def test_a_sweep_with_an_unfinished_run_says_where_its_values_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All seeds are taken where the shortest run ends, and a line says so."""
    for seed, values in enumerate(([0.9, 0.4, 0.1], [0.9, 0.6])):
        write_run(tmp_path / str(seed), values, "current", overrides=DICE)
    monkeypatch.setenv("DREAM_NOTEBOOK_SWEEP", str(tmp_path))
    monkeypatch.setattr(dream, "load_run", _recorded)
    namespace = run_cells(FOLDER / "reading_sweeps.ipynb")
    shown, nodes = capsys.readouterr().out, namespace["values_of"](namespace["runs"])[0][-1]
    assert f": seeds have 2 to 3 values; all are taken at {nodes:,.0f} nodes\n" in shown
    assert "plain scale: 0.5000 chips per hand" in shown
