"""Pictures of a run: from its metrics and its tree, and nothing lost where drawing fails."""

from __future__ import annotations

import json
import pathlib
import xml.etree.ElementTree as ET

import jax.numpy as jnp
import pytest

import envs
from dream.game_tree.tree import build_tree
from dream.training import pictures
from envs import Policy

_SVG = "{http://www.w3.org/2000/svg}"


def _run_dir(folder: pathlib.Path, scale: float = 1.0) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"iteration": n, "loss": scale / n, "policy_entropy": 0.5, "eval/exploitability/average": scale / n**2,
         "eval/random/points_per_hand": n, "eval/random/win_rate": 0.5, "self_play/loss_rate": 0.5,
         "entropy_weight": 0.01} for n in range(1, 6)
    ]  # fmt: skip
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "evaluation.json").write_text(json.dumps({"unit": "chips"}))
    return folder


@pytest.mark.parametrize(("name", "situations"), [("kuhn_poker", 12), ("leduc_poker", 288)])
def test_a_run_has_curves_and_its_strategy(tmp_path: pathlib.Path, name: str, situations: int) -> None:
    """One panel per kind of metric; of Kuhn each information set, of Leduc those that differ by more than suits."""
    tree = build_tree(envs.make(name))
    second = Policy(lambda params, view, legal: jnp.arange(len(legal)) == 1)
    found = pictures.draw_run(
        _run_dir(tmp_path), name, "chips", tree, {"current": envs.uniform_policy(), "average": second}
    )
    assert [path.name for path in found] == ["curves.svg", "strategy.svg"]
    curves = ET.parse(found[0]).getroot()
    assert len(list(curves.iter(f"{_SVG}polyline"))) == 5
    headings = {text.text for text in curves.iter(f"{_SVG}text")}
    assert {f"{name}: exploitability, chips per hand", f"{name}: chips per hand", f"{name}: win rate"} <= headings
    titles = [title.text or "" for title in ET.parse(found[1]).getroot().iter(f"{_SVG}title")]
    assert len(titles) == 2 * situations
    assert sum("100 %" in title for title in titles) >= situations
    assert any(title.startswith("K, 0: first: ") for title in titles)
    rows = list(dict.fromkeys(title.split(", ", 1)[1].rpartition(": ")[0] for title in titles))
    assert rows[0] == "0: first"
    assert [len(row.split()) for row in rows if "/" not in row] == sorted(len(r.split()) for r in rows if "/" not in r)


def test_a_game_without_a_chart_has_curves_alone(tmp_path: pathlib.Path) -> None:
    """Liar's dice has thousands of situations; gin has no tree."""
    tree = build_tree(envs.make("liars_dice"))
    for given in (tree, None):
        found = pictures.draw_run(_run_dir(tmp_path), "x", "points", given, {"current": envs.uniform_policy()})
        assert [path.name for path in found] == ["curves.svg"]


def test_what_fails_is_one_line(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damaged metrics: no picture, no exception."""
    (tmp_path / "metrics.jsonl").write_text("{")
    assert pictures.draw_run(tmp_path, "x", "points", None, {}) == []
    assert capsys.readouterr().out.startswith("no curves.svg: JSONDecodeError: ")


def test_a_sweep_is_compared(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Objectives of the jobs that have one, and the curves that all have; of one job nothing."""
    jobs = [(f"seed={n}", float(n), _run_dir(tmp_path / str(n), n)) for n in (1, 2)]
    path = pictures.draw_sweep(tmp_path, [*jobs, ("seed=3", None, tmp_path / "1")])
    assert path == tmp_path / "sweep.svg"
    texts = [text.text for text in ET.parse(path).getroot().iter(f"{_SVG}text")]
    assert {"1. seed=1", "2. seed=2", "objective by job", "eval/random/points_per_hand, chips per hand"} <= set(texts)
    assert {"eval/exploitability/average, chips per hand", "eval/random/win_rate"} <= set(texts)
    assert pictures.draw_sweep(tmp_path, jobs[:1]) is None
