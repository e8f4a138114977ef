"""experiments/reproduce/run.py: a row is run, shortened, gone on with, interrupted and not done twice."""

from __future__ import annotations

import json
import pathlib
import signal

import pytest
from command_support import REPO, command, finish, snapshot, start, succeed, wait_for

from dream.storage.checkpoint import find
from dream.training import metrics

RUN = str(REPO / "experiments" / "reproduce" / "run.py")
WHERE = ("--runs", "runs", "--results", "results")


def _result(folder: pathlib.Path, row: str) -> dict:
    return json.loads((folder / "results" / f"{row}.json").read_text())


@pytest.fixture(scope="module")
def shortened(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder in which a row of 1,000 iterations was run for four."""
    folder = tmp_path_factory.mktemp("reproduce")
    succeed(RUN, "kuhn_cfr", "iterations=4", *WHERE, cwd=folder)
    return folder


def test_a_row_is_run(shortened: pathlib.Path) -> None:
    """The result has what was measured at the last iteration, and says how far it got."""
    reported, record = _result(shortened, "kuhn_cfr"), metrics.read(shortened / "runs" / "kuhn_cfr" / "seed0")[-1]
    assert reported["mean"] == reported["low"] == reported["high"]
    assert reported["mean"] == pytest.approx(1000 * record["eval/exploitability/average"], rel=1e-5)
    assert {name: reported[name] for name in ("nodes", "transitions")} == {
        n: record[n] for n in ("nodes", "transitions")
    }
    assert (reported["game"], reported["algorithm"], reported["iterations"]) == ("kuhn_poker", "cfr", 4)
    assert reported["shortened"] == "stopped at 4 of 1,000 iterations"


def test_what_is_done_is_not_done_again(shortened: pathlib.Path) -> None:
    """The same order reads the run; a longer one goes on with it."""
    run = shortened / "runs" / "kuhn_cfr" / "seed0"
    before, one = snapshot(run), _result(shortened, "kuhn_cfr")
    succeed(RUN, "kuhn_cfr", "iterations=4", *WHERE, cwd=shortened)
    assert snapshot(run) == before
    assert _result(shortened, "kuhn_cfr") == one
    succeed(RUN, "kuhn_cfr", "iterations=6", *WHERE, cwd=shortened)
    assert [record["iteration"] for record in metrics.read(run)] == [1, 2, 3, 4, 5, 6]
    assert _result(shortened, "kuhn_cfr")["iterations"] == 6


def test_a_run_of_other_settings_is_not_gone_on_with(shortened: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """One line, exit code 2, nothing written."""
    (tmp_path / "runs").mkdir()
    (shortened / "runs" / "kuhn_cfr").rename(tmp_path / "runs" / "kuhn_cfr_plus")
    before = snapshot(tmp_path)
    done = command(RUN, "kuhn_cfr_plus", *WHERE, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "is a run of another algo than the row's" in done.stderr
    assert snapshot(tmp_path) == before


def test_an_interrupted_row_keeps_what_it_has(tmp_path: pathlib.Path) -> None:
    """SIGTERM lets the run save and ends the command without a result; what is there can be collected."""
    run = tmp_path / "runs" / "kuhn_external_mccfr" / "seed1"
    process = start(RUN, "kuhn_external_mccfr", "seeds=1", *WHERE, cwd=tmp_path)
    wait_for(lambda: len(metrics.read(run)) >= 2, process)
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert find(run).meta["iteration"] == len(metrics.read(run))
    assert not (tmp_path / "results").exists()
    succeed(RUN, "kuhn_external_mccfr", "seeds=1", "--collect", *WHERE, cwd=tmp_path)
    reported = _result(tmp_path, "kuhn_external_mccfr")
    assert reported["seeds"] == 1
    assert "of 2 M nodes; 1 of 5 seeds" in reported["shortened"]


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["kuhn_cfrr"], "did you mean 'kuhn_cfr'"),
        (["kuhn_cfr", "--collect"], "no evaluation"),
    ],
)
def test_wrong_input(tmp_path: pathlib.Path, arguments: list[str], reported: str) -> None:
    """One line, exit code 2, nothing written."""
    done = command(RUN, *arguments, *WHERE, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert reported in done.stderr
    assert list(tmp_path.iterdir()) == []
