"""The script that runs the trials at length: what it stores of them, and when it makes the table of the docs."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command_support import REPO
from script_support import called


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, by its path as tests/trials has its name; its files are in a folder, and nothing is tried."""
    spec = importlib.util.spec_from_file_location("trials_script", REPO / "experiments" / "trials.py")
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    spec.loader.exec_module(found)

    def tried(kind: str, count: int, seed: int) -> dict[str, Any]:
        return {"tried": count or 9, "held": count or 9, "refused": 0, "failed": []}

    monkeypatch.setattr(found, "tried", tried)
    monkeypatch.setattr(found, "RESULTS", tmp_path / "trials.json")
    monkeypatch.setattr(found, "PAGE", tmp_path / "page.md")
    return found


def _never(*_: object) -> None:
    raise AssertionError("nothing is to be tried")


def test_no_kind_is_replaced_by_one_of_fewer_trials(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, before anything is tried; as many replace it, and so do all there are."""
    out = tmp_path / "trials.json"
    assert called(script, "--kinds", "kills", "attacks") == 0
    assert {kind: one["tried"] for kind, one in json.loads(out.read_text()).items()} == {"attacks": 9, "kills": 20}
    before = [path.read_bytes() for path in (out, script.PAGE)]
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(script, "tried", _never)
        assert called(script, "--kinds", "mutations", "kills", "--count", "5") == 2
    assert capsys.readouterr().err == (
        f"error: {out} holds 20 trials of kills, here are 5; make it as many, or give another --out\n"
    )
    assert [path.read_bytes() for path in (out, script.PAGE)] == before
    assert called(script, "--kinds", "kills", "attacks", "--count", "21") == 0


def test_results_of_something_else_stay(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, before anything is tried."""
    monkeypatch.setattr(script, "tried", _never)
    out = tmp_path / "comparison.json"
    out.write_text('{"dark_hex classical": {"learners": {}}}')
    before = out.read_bytes()
    assert called(script, "--kinds", "kills", "--out", str(out)) == 2
    line = f"error: {out} holds something else than these results; give another --out\n"
    assert (capsys.readouterr().err, out.read_bytes()) == (line, before)


def test_another_file_has_no_table(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The docs and the stored results stay; the table of another file is refused."""
    other = tmp_path / "new" / "other.json"
    assert called(script, "--kinds", "kills", "--count", "5", "--out", other) == 0
    assert json.loads(other.read_text())["kills"]["tried"] == 5
    assert list(tmp_path.iterdir()) == [other.parent]
    capsys.readouterr()
    assert called(script, "--table", "--out", other) == 2
    assert capsys.readouterr().err == f"error: --table is of {script.RESULTS}; leave out --out\n"
