"""Scripts that train cells or trials, or play gin: what they keep of runs, and what they refuse."""

from __future__ import annotations

import importlib
import json
import pathlib
import shutil
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import corrections
import phantom_solvers
import pytest
import rummy500_shaped
import shipped_weights
from omegaconf import OmegaConf
from result_tables import players
from run_folder import write_config, write_metrics, write_sittings
from script_support import called
from scripting import child_runs

from dream.config.compose import compose_config


@pytest.fixture
def resumed(tmp_path: pathlib.Path) -> pathlib.Path:
    """A run of two sittings that has ended: longer, and of another commit."""
    run = write_config(tmp_path / "seed0", iterations=8)
    write_sittings(run, "run.py -m algo=cfr_plus seed=0,1 iterations=4", "run.py resume=x iterations=8")
    spent = {"seconds": 1.0, "compile_seconds": 0.1, "decisions": 5}
    counted = dict.fromkeys(("episodes", "nodes", "transitions", "network_rows", "gradient_steps"), 1)
    sampling = ("regret_second_moment", "effective_sample_size", "baseline_explained_variance")
    write_metrics(run, [{"iteration": 8, **spent, **counted, **{f"sampling/{name}": 1.0 for name in sampling}}])
    report = {"n": 40, "shared_win_rate": 0.5, "score": 1.0}
    (run / "evaluation.json").write_text(json.dumps({"iteration": 8, "by_opponent": {"random": report}}))
    return run


def test_all_sittings_are_reported(resumed: pathlib.Path) -> None:
    """By each script that keeps what a run was given, and in the tables: what it ended with, and every commit."""
    trained = shipped_weights.training(resumed)
    assert trained["command"] == "python -m dream.run algo=cfr_plus seed=0 iterations=8"
    for found in (trained, *(script.collected(resumed) for script in (corrections, rummy500_shaped))):
        assert found["git_commit"] == "c0"
        (later,) = found["resumed"]
        assert (later["git_commit"], later["started_at_iteration"], later["overrides"]) == ("c1", 2, ["iterations=8"])
        assert found.get("overrides", ["algo=cfr_plus", "seed=0", "iterations=8"])[2] == "iterations=8"
    assert players._commits([trained, {"git_commit": "c0"}]) == "c0 and c1"


@pytest.fixture
def cell(resumed: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pathlib.Path]:
    """Makes a run of a cell of corrections that has ended, in the folder of trace 0, clip 1 and exploration 1."""
    monkeypatch.setattr(corrections, "RESULTS", tmp_path)

    def make(game: str = "gin_rummy", *changed: str) -> pathlib.Path:
        run = tmp_path / "runs" / game / "0_1_1" / "seed0"
        shutil.copytree(resumed, run)
        settings = [*corrections.cell_overrides(game, "0:1", 1.0), *changed]
        OmegaConf.save(compose_config("config", settings).node, run / "config.yaml", resolve=True)
        record, report = (json.loads((run / name).read_text()) for name in ("metrics.jsonl", "evaluation.json"))
        write_metrics(run, [{**record, "iteration": 10, "nodes": 1_000_000}])
        (run / "evaluation.json").write_text(json.dumps({**report, "iteration": 10}))
        return run

    return make


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("seed=1", "seed is 1 and 0"),
        ("algo.correction.trace=0.9", "algo.correction.trace is 0.9 and 0.0"),
        ("algo.exploration=0.5", "algo.exploration is 0.5 and 1.0"),
        ("eval.final_games=512", "eval.final_games is 512 and 1000"),
        ("network.hidden=[8]", "network.hidden is [8] and "),
    ],
)
def test_a_cell_is_what_its_folder_says(
    cell: Callable[..., pathlib.Path], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, changed: str, message: str,
) -> None:  # fmt: skip
    """Neither skipped nor stored otherwise; nor is a folder of another name, which says nothing."""
    monkeypatch.setattr(child_runs, "call", _never)
    run, asked = cell("gin_rummy", changed), ("gin_rummy", "--runs", tmp_path / "runs")
    for more in (["--collect"], ["--cells", "0.9:11", "0:1"]):
        assert called(corrections, *asked, *more) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"error: {run} is not what was asked for: {message}")
        assert line.count("\n") == 1
    run.parent.rename(run.parent.with_name("0_1"))
    assert called(corrections, *asked, "--collect") == 2
    assert "0_1/seed0 is no cell; it must be <trace>_<clip>_<exploration>/seed<n>" in capsys.readouterr().err
    assert not list(tmp_path.glob("corrections_*"))


def test_cells_that_are_not_there_are_kept(
    cell: Callable[..., pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A folder without runs changes no result; one with a cell adds it, and tells where it replaces a stored one."""
    results = tmp_path / "results"
    results.mkdir()
    monkeypatch.setattr(corrections, "RESULTS", results)
    stored = results / "corrections_gin_rummy.json"
    stored.write_text(json.dumps({"0.9_11_1/seed0": {"seconds": 3.0}}))
    before, asked = stored.read_bytes(), ("gin_rummy", "--collect", "--runs", str(tmp_path / "runs"))
    assert called(corrections, *asked) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "gin_rummy holds no finished run; --runs must be" in line
    assert ([path.name for path in results.iterdir()], stored.read_bytes()) == ([stored.name], before)
    cell()
    assert called(corrections, *asked) == 0
    assert not capsys.readouterr().err
    found = json.loads(stored.read_text())
    assert (list(found), found["0.9_11_1/seed0"]) == (["0.9_11_1/seed0", "0_1_1/seed0"], {"seconds": 3.0})
    stored.write_text(json.dumps({"0_1_1/seed0": {"seconds": 3.0}}))
    assert called(corrections, *asked) == 0
    assert capsys.readouterr().err.startswith("warning: 0_1_1/seed0 was stored already")
    assert json.loads(stored.read_text())["0_1_1/seed0"]["seconds"] == 1.0


@pytest.mark.parametrize("change", ["longer", "gone on", "of before"])
def test_a_run_that_goes_on_is_no_cell(
    cell: Callable[..., pathlib.Path], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    """Its final evaluation is of fewer iterations than it was asked for, or has done."""
    run = cell("gin_rummy", *["iterations=11"] * (change == "longer"))
    if change == "gone on":
        record = json.loads((run / "metrics.jsonl").read_text())
        write_metrics(run, [record, {**record, "iteration": 11}])
    elif change == "of before":
        (run / "evaluation.json").write_text(json.dumps({"by_opponent": {}}))
    assert called(corrections, "gin_rummy", "--collect", "--runs", str(tmp_path / "runs")) == 2
    assert "holds no finished run" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.json"))


def test_a_cell_of_leduc_keeps_its_exploitability(cell: Callable[..., pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Its final evaluation has no opponents."""
    exact = {"average": {"nash_conv": 1.0, "exploitability": 0.5}}
    (cell("leduc_poker") / "evaluation.json").write_text(json.dumps({"iteration": 10, "exact": exact}))
    assert called(corrections, "leduc_poker", "--collect", "--runs", str(tmp_path / "runs")) == 0
    assert json.loads((tmp_path / "corrections_leduc_poker.json").read_text())["0_1_1/seed0"]["exploitability"] == 0.5


@pytest.fixture
def shaped(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Callable[..., pathlib.Path], Callable[..., int]]:
    """Makes the run of a seed of rummy 500, of some weights; and calls the script on all of them, for two players."""
    monkeypatch.setattr(child_runs, "call", _never)
    monkeypatch.setattr(
        rummy500_shaped, "find", lambda run: SimpleNamespace(meta=json.loads((run / "meta").read_text()))
    )

    def met(run: pathlib.Path, other: pathlib.Path, deals: int) -> dict[str, object]:
        return {"n": 2 * deals, "of": [rummy500_shaped.find(x).meta for x in (run, other)]}

    monkeypatch.setattr(rummy500_shaped, "met", met)

    def make(seed: int, checksum: int = 0, *changed: str) -> pathlib.Path:
        run = tmp_path / "runs" / "2_players" / f"seed{seed}"
        run.mkdir(parents=True, exist_ok=True)
        settings = [*rummy500_shaped.cell_overrides(2, seed, 60, 3000), *changed]
        OmegaConf.save(compose_config("config", settings).node, run / "config.yaml", resolve=True)
        write_sittings(run, "run.py")
        write_metrics(run, [{"iteration": 60, "seconds": 1.0, "compile_seconds": 0.1, "decisions": 5}])
        report = {"n": 3000, **dict.fromkeys(rummy500_shaped.QUANTITIES, checksum / 10)}
        (run / "evaluation.json").write_text(json.dumps({"iteration": 60, "by_opponent": {"random": report}}))
        (run / "meta").write_text(json.dumps({"checksum": checksum}))
        return run

    def call(*arguments: str) -> int:
        folders = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out.json")]
        return called(rummy500_shaped, "--players", *arguments, *folders)

    return make, call


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["iterations=6"], "iterations is 6 and 60"),
        (["eval.final_games=30"], "eval.final_games is 30 and 3000"),
        (["env.rules.num_players=3"], "rules.num_players is 3 and 2"),
        (["env.rules.card_weight=0.5"], "rules.card_weight is 0.5 and 0.01"),
        (["algo.epochs=9"], "algo.epochs is 9 and 4"),
        (["network.hidden=[8]"], "network.hidden is [8] and [256, 128]"),
        (["seed=1"], "seed is 1 and 0"),
    ],
)
def test_a_run_of_other_settings_is_no_cell(
    shaped: tuple, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], changed: list[str], message: str
) -> None:
    """Whether it was asked for, has yet to go on, or would only be met in a match: one line, and nothing is written."""
    make, call = shaped
    run = make(0, 0, *changed)
    assert (call("2", "--seeds", "0"), call()) == (2, 2)
    (run / "evaluation.json").unlink()
    assert call("2", "--seeds", "0") == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"error: {run} is not what was asked for: {message}; ask for what it is, or give other --runs"] * 3
    assert not (tmp_path / "out.json").exists()


def test_matches_are_those_of_the_weights_that_are_there(
    shaped: tuple, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A seed trained again loses its matches and those against it; one of an older file is known by its finals."""
    make, call = shaped
    for seed in (0, 1, 2):
        make(seed)

    def checksums(*arguments: str) -> list[list[int]]:
        assert call(*arguments) == 0
        stored = json.loads((tmp_path / "out.json").read_text())
        return [[x["checksum"] for one in cell["against_seed"].values() for x in one["of"]] for cell in stored.values()]

    assert checksums("2", "--seeds", "0") == [[0, 0]] * 3
    make(1, 5)
    assert not capsys.readouterr().err
    assert checksums() == [[0, 5], [5, 0], [0, 0]]
    assert capsys.readouterr().err.startswith("warning: 2/seed1 has other weights than were stored")
    stored = json.loads((tmp_path / "out.json").read_text())
    for cell in stored.values():
        del cell["checksum"]
    stored["2/seed2"]["resumed"] = []
    (tmp_path / "out.json").write_text(json.dumps(stored))
    make(2, 7)
    assert checksums() == [[0, 5], [5, 7], [7, 0]]
    assert "resumed" not in json.loads((tmp_path / "out.json").read_text())["2/seed2"]
    assert capsys.readouterr().err.count("warning") == 1


@pytest.mark.parametrize(
    ("fewer", "message"),
    [
        (["--iterations", "1"], "60 iterations of 2/seed0, here are 1"),
        (["--games", "300"], "3,000 evaluated rounds of 2/seed0, here are 300"),
        (["--deals", "50"], "1,000 rounds of the match of 2/seed0, here are 100"),
    ],
)
def test_no_cell_is_replaced_by_a_shorter_one(
    shaped: tuple, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], fewer: list[str], message: str
) -> None:
    """In another folder of runs: one line, before anything is trained; a seed that is not stored may be shorter."""
    make, call = shaped
    assert (make(0), make(1), call()) == (*(tmp_path / "runs/2_players" / name for name in ("seed0", "seed1")), 0)
    out, other = tmp_path / "out.json", ("--runs", str(tmp_path / "other"), "--out", str(tmp_path / "out.json"))
    before = out.read_bytes()
    capsys.readouterr()
    arguments = ("--players", "2", *fewer, *other)
    assert called(rummy500_shaped, *arguments, "--seeds", "0") == 2
    line = f"error: {out} holds {message}; make it as many, or give another --out\n"
    assert (capsys.readouterr().err, out.read_bytes(), (tmp_path / "other").exists()) == (line, before, False)
    with pytest.raises(AssertionError, match="nothing is to be run"):
        called(rummy500_shaped, *arguments, "--seeds", "2")


def test_a_cell_that_was_left_is_gone_on_with(
    shaped: tuple, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose evaluation is of fewer iterations: it is not stored before its end, nor met in a match.

    One without a checkpoint yet starts over.
    """
    make, call = shaped
    run, commands = make(0), []
    (run / "checkpoints" / "40").mkdir(parents=True)
    write_metrics(run, [{"iteration": 59, "seconds": 1.0, "compile_seconds": 0.1, "decisions": 5}])
    monkeypatch.setattr(child_runs, "call", commands.append)
    assert call() == 0
    assert json.loads((tmp_path / "out.json").read_text() if (tmp_path / "out.json").exists() else "{}") == {}
    assert call("2", "--seeds", "0") == 2
    assert commands == [[f"resume={run}"]]
    assert capsys.readouterr().err == f"error: {run} was left before its end; the same command goes on\n"
    (run / "checkpoints" / "40").rename(run / "checkpoints" / "40.orbax-checkpoint-tmp")
    assert call("2", "--seeds", "0") == 2
    assert (commands[1][0], commands[1][-1]) == ("env=rummy500", f"run_dir={run}")
    make(0)
    assert call("2", "--seeds", "0") == 0
    assert list(json.loads((tmp_path / "out.json").read_text())) == ["2/seed0"]


def test_a_player_that_was_left_starts_over_or_goes_on(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whether its run has a checkpoint; of one killed before there is the folder alone."""
    commands = []
    monkeypatch.setattr(child_runs, "call", commands.append)
    shipped_weights.train("gin_rummy/laptop", 0, tmp_path)
    (tmp_path / "checkpoints" / "20").mkdir(parents=True)
    shipped_weights.train("gin_rummy/laptop", 0, tmp_path)
    assert [command[:-1] for command in commands] == [
        ["preset=laptop", "seed=0", f"run_dir={tmp_path}"],
        [f"resume={tmp_path}"],
    ]


@pytest.mark.parametrize(("code", "ends"), [(0, 0), (2, 2), (-15, 143), (-9, 137)])
def test_a_run_that_a_signal_ended_is_told_as_by_a_shell(code: int, ends: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of Python's child is minus the signal, of which a script would make 241 for SIGTERM."""
    child = SimpleNamespace(wait=lambda: code, terminate=lambda: None)
    monkeypatch.setattr(child_runs.subprocess, "Popen", lambda words: child)
    assert child_runs.call(["seed=0"]) == ends


def test_any_folder_can_be_trained_in(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is a value in Hydra's grammar, where a comma would be two values."""
    commands = []
    monkeypatch.setattr(child_runs, "call", commands.append)
    run = tmp_path / "a, b"
    child_runs.go_on(["seed=0"], run)
    (run / "checkpoints" / "20").mkdir(parents=True)
    child_runs.go_on(["seed=0"], run)
    assert commands == [["seed=0", f'run_dir="{run}"'], [f'resume="{run}"']]


@pytest.fixture
def solvers(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Calls the script of solvers for CFR+ on phantom tic-tac-toe, which is not solved: a curve of two points."""
    form = SimpleNamespace(players=[SimpleNamespace(num_infosets=1, num_entries=1)] * 2)
    monkeypatch.setattr(phantom_solvers, "kept_form", lambda game: form)
    monkeypatch.setattr(
        phantom_solvers, "curve", lambda config, form, arguments: iter([{"iteration": 1}, {"iteration": 6}])
    )

    def call(*arguments: str) -> int:
        asked = ("--env", "phantom_ttt", "--algo", "cfr_plus", "--out", str(tmp_path / "results" / "out.json"))
        return called(phantom_solvers, *asked, *arguments)

    return call


@pytest.mark.parametrize("other", [("--target", "0.5"), ("--every", "9"), ("--iterations", "1"), ("--seconds", "1")])
def test_a_stored_result_is_replaced_by_one_of_its_settings(
    solvers: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch, other: tuple[str, str],
) -> None:  # fmt: skip
    """At its end alone; a smaller try is refused, before anything is solved."""
    out = tmp_path / "results" / "out.json"
    assert solvers() == 0
    before = out.read_bytes()
    assert len(json.loads(before)["phantom_ttt classical"]["cfr_plus"]["curve"]) == 2
    capsys.readouterr()
    assert solvers(*other) == 2
    line = capsys.readouterr().err
    assert (line.count("\n"), line.startswith(f"error: {out} holds what came of python experiments/phantom")) == (
        1,
        True,
    )

    def cut_off(*_: object) -> Iterator[dict[str, int]]:
        yield {"iteration": 1}
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(phantom_solvers, "curve", cut_off)
        with pytest.raises(KeyboardInterrupt):
            solvers()
    assert out.read_bytes() == before
    assert solvers("--version", "abrupt", *other) == 0
    assert " ".join(other) in json.loads(out.read_text())["phantom_ttt abrupt"]["cfr_plus"]["command"]


@pytest.mark.parametrize("content", ["[]", '{"phantom_ttt classical": {"unit": "points", "learners": {}}}'])
def test_curves_of_solvers_are_not_added_to_something_else(
    solvers: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    """One line, whether it is a list or the comparison of learners, which has the same games."""
    out = tmp_path / "results" / "out.json"
    out.parent.mkdir()
    out.write_text(content)
    assert solvers() == 2
    line = f"error: {out} holds something else than these results; give another --out\n"
    assert (capsys.readouterr().err, out.read_text()) == (line, content)


def test_wrong_input_is_one_line(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the scripts that play gin and train cells: exit code 2, before anything is played or written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(child_runs, "call", _never)
    for name, arguments, message in (
        ("gin_levels", ["--players", "nope", "--out", "o"], "unknown player 'nope'"),
        ("gin_levels", ["--games", "3", "--out", "o"], "3"),
        ("gin_ladder", ["--processes", "0"], "processes=0"),
        ("corrections", ["leduc_poker", "--cells", "0.9"], "--cells 0.9 is not valid"),
        ("gin_losses", ["--deals", "1", "--out", "o"], "argument --deals: '1' is not valid"),
        ("gin_losses", ["--block", "1", "--out", "o"], "argument --block: '1' is not valid"),
        ("gin_search", ["--deals", "-5", "--out", "o"], "argument --deals: '-5' is not valid"),
        ("gin_search", ["--block", "1", "--out", "o"], "argument --block: '1' is not valid"),
        ("rummy500_players", ["--deals", "1", "--out", "o"], "argument --deals: '1' is not valid; it must be a whole"),
        ("rummy500_shaped", ["--deals", "1", "--out", "o"], "argument --deals: '1' is not valid"),
        ("compare_openspiel_gin", ["--hands", "0"], "argument --hands: '0' is not valid"),
        ("compare_openspiel_gin", ["--batch", "0"], "argument --batch: '0' is not valid"),
        ("phantom_solvers", ["--seconds", "0", "--out", "o"], "argument --seconds: '0' is not valid"),
        ("phantom_solvers", ["--every", "0", "--out", "o"], "argument --every: '0' is not valid"),
        ("phantom_solvers", ["--iterations", "0", "--out", "o"], "argument --iterations: '0' is not valid"),
    ):
        assert called(importlib.import_module(name), *arguments) == 2
        line = capsys.readouterr().err
        assert line.startswith("error: ")
        assert message in line
        assert line.count("\n") == 1
        assert not list(tmp_path.iterdir())


def _never(*_: object) -> SimpleNamespace:
    raise AssertionError("nothing is to be run")
