"""Does the cost model count what the measured program computes, and do its seconds follow from the measured parts?"""

from __future__ import annotations

import json
import pathlib

import cost_model as model
import pytest
from script_support import called

SIZES = {
    "parameters": 10,
    "weights": 9,
    "first_layer": 4,
    "carried": 3,
    "record_rows": 8,
    "row_bytes": 5,
    "batch_size": 4,
    "gradient_steps": 3,
    "reads": 2,
    "turns": 7,
}


@pytest.mark.parametrize(("devices", "depth"), [(1, 0), (2, 1), (5, 3), (8, 3)])
def test_operations_bytes_and_messages(devices: int, depth: int) -> None:
    """By hand, of sizes that are made up; alone a device receives nothing."""
    assert model.costs(SIZES, devices) == {
        "play_operations": 2 * 6 * 8 / devices,
        "fit_operations": 2 * (4 * 9 - 4) * 4 * 3 / devices,
        "record_bytes": pytest.approx(8 * 5 * (devices - 1) / devices),
        "gradient_bytes": pytest.approx(8 * 10 * 3 * (devices - 1) / devices),
        "messages": depth * (7 + 1 + 2 * 3),
    }


def test_seconds_of_machines_like_the_measured_one() -> None:
    """Play and fit at the rates of the measured parts, the exchange at those of the link."""
    measured = {"generate_tflop": 96e-12, "seconds_generate": 2.0, "fit_tflop": 768e-12, "seconds_fit": 6.0}
    rate = model.rates(measured)
    assert rate == {"play": pytest.approx(48.0), "fit": pytest.approx(128.0)}
    alone, four = (model.seconds(rate, model.costs(SIZES, n), link=10.0, latency=0.5) for n in (1, 4))
    assert alone == pytest.approx({"play": 2.0, "fit": 6.0, "exchange": 0.0, "iteration": 8.0})
    exchange = 0.75 * (40 + 240) / 10.0 + 2 * 14 * 0.5
    assert four == pytest.approx({"play": 0.5, "fit": 1.5, "exchange": exchange, "iteration": 2.0 + exchange})


def test_the_measured_program_has_the_products_of_the_model() -> None:
    """Of the document's size: the fit's to the last one, play's but for the draw of an action."""
    measured = json.loads(model.RESULT.with_name("iteration.json").read_text())
    size = model.sizes(measured["overrides"].split())
    assert model.costs(size, 1)["fit_operations"] == pytest.approx(1e12 * measured["fit_tflop"], rel=1e-12)
    played = model.costs(size | {"record_rows": 1}, 1)["play_operations"] + 2 * 107**2
    decisions = 1e12 * measured["generate_tflop"] / played
    assert measured["decisions_min"] <= round(decisions) <= measured["decisions_max"]
    assert decisions == pytest.approx(round(decisions), abs=1e-3)
    assert measured["decisions_max"] <= size["record_rows"]


def test_a_recipe_is_timed_by_an_iteration_of_its_sizes_alone() -> None:
    """The stored one is of the document's sizes; one of others is not told for it."""
    size = model.sizes([])
    by_devices = {n: model.costs(size, n) for n in (1, 2)}
    found = model.timed(size, by_devices, model.LINK, model.LATENCY)
    assert "iteration" in found
    assert found["iteration"]["seconds_by_devices"].keys() == {"1", "2"}
    assert model.timed(size | {"turns": 81}, by_devices, model.LINK, model.LATENCY) == {}


def test_passes_are_counted_in_minibatches() -> None:
    """One pass over 8,192 games of at most 80 moves is 320 minibatches of 2,048; 40 minibatches are 40."""
    steps = [model.sizes(overrides)["gradient_steps"] for overrides in ([], ["preset=h200"])]
    assert steps == [40, 320]


@pytest.mark.parametrize(("name", "text"), [("--link", "0"), ("--link", "inf"), ("--link", "x"), ("--latency", "-1")])
def test_links_take_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    """One line, nothing is written."""
    monkeypatch.setattr(model, "RESULT", tmp_path / "stored.json")
    assert called(model, name, text, "--out", tmp_path / "mine.json") == 2
    assert capsys.readouterr().err == f"error: argument {name}: '{text}' is not valid; it must be a number above 0\n"
    assert not list(tmp_path.iterdir())


def test_another_link_is_kept_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """With --out the file that the tables are made of stays as it was."""
    monkeypatch.setattr(model, "RECIPES", {})
    monkeypatch.setattr(model, "RESULT", tmp_path / "stored.json")
    monkeypatch.setattr("sys.argv", ["cost_model.py", "--link", "1e9", "--out", str(tmp_path / "mine.json")])
    model.main()
    assert json.loads((tmp_path / "mine.json").read_text())["link"] == 1e9
    assert not (tmp_path / "stored.json").exists()
