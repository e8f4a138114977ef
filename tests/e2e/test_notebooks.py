"""Do the notebooks run from top to bottom, and store no outputs?"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(path: Path) -> list[dict]:
    """Returns a notebook's code cells."""
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def test_there_are_three() -> None:
    """Exploitability, an agent, sweeps."""
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_stores_no_outputs(path: Path) -> None:
    """No outputs, no counts: a difference in one is a difference in its text."""
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code_cells(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All cells in order in one namespace, at the tiny budget."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.setenv("DREAM_NOTEBOOK_TINY", "1")
    monkeypatch.setenv("DREAM_NOTEBOOK_SWEEP", str(tmp_path / "sweep"))
    monkeypatch.setenv("DREAM_CACHE_DIR", str(tmp_path / "cache"))
    namespace: dict = {"__name__": "notebook"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        for cell in code_cells(path):
            exec(compile("".join(cell["source"]), f"{path.name}:{cell['id']}", "exec"), namespace)
