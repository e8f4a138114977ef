"""Result files of several seeds: made of run directories, and added to."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
from collections.abc import Callable

import collect_runs as script
import matplotlib as mpl
import pytest
from run_folder import write_config, write_metrics, write_sittings
from script_support import called


@pytest.fixture
def run(tmp_path: pathlib.Path) -> Callable[[int], pathlib.Path]:
    """Makes the finished run of a seed."""

    def make(seed: int) -> pathlib.Path:
        folder = write_config(tmp_path / f"seed{seed}", seed=seed)
        rates = dict.fromkeys(("win_rate", "points_per_hand", "knock_rate"), 0.5 + seed / 10)
        (folder / "evaluation.json").write_text(json.dumps({"opponent": "random", "iteration": 4, **rates}))
        write_sittings(folder, f"run experiment=x seed={seed} run_dir=y")
        spent = {"seconds": 1.0, "compile_seconds": 0.5, "decisions": 7}
        record = {"iteration": 4, **spent, **{f"eval/random/{name}": rate for name, rate in rates.items()}}
        write_metrics(folder, [record])
        return folder

    return make


def test_further_seeds_come_after_the_stored_ones(run: Callable[[int], pathlib.Path], tmp_path: pathlib.Path) -> None:
    """And a seed twice, or one left out, changes nothing, since tables number the runs by their place."""
    target = tmp_path / "result"
    assert called(script, target, run(0), run(1)) == 0
    before = json.loads((tmp_path / "result.json").read_text())["runs"]
    assert called(script, target, run(2), "--keep") == 0
    after = json.loads((tmp_path / "result.json").read_text())["runs"]
    assert after[:2] == before
    assert [one["final"]["win_rate"] for one in after] == pytest.approx([0.5, 0.6, 0.7])
    for wrong in (tmp_path / "seed1", run(4)):
        assert called(script, target, wrong, "--keep") == 2
    assert json.loads((tmp_path / "result.json").read_text())["runs"] == after
    assert called(script, tmp_path / "other", tmp_path / "seed0", "--keep") == 2


def test_a_run_comes_once(
    run: Callable[[int], pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By any path, and as a copy of it; nothing is written."""
    first = run(0)
    assert called(script, tmp_path / "result", first, first / ".." / "seed0") == 2
    assert "given twice" in capsys.readouterr().err
    shutil.copytree(first, tmp_path / "copy")
    assert called(script, tmp_path / "result", first, tmp_path / "copy") == 2
    assert "are both seed 0 of cfr_plus on kuhn_poker" in capsys.readouterr().err
    assert not list(tmp_path.glob("result*"))


def test_curves_are_named_by_the_seed(run: Callable[[int], pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Not by the place: seeds 3 and 5 are 3 and 5."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(mpl.rcParams, "svg.fonttype", "none")
        assert called(script, tmp_path / "result", run(3), run(5)) == 0
    labels = re.findall(r"seed \d", (tmp_path / "result.svg").read_text())
    assert set(labels) == {"seed 3", "seed 5"}
    assert [one["seed"] for one in json.loads((tmp_path / "result.json").read_text())["runs"]] == [3, 5]


def test_jobs_of_a_sweep_can_be_added(run: Callable[[int], pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Their seeds are those of their configurations; an older file that holds the sweep's command is refused."""
    folders = [run(0), run(1)]
    for folder in folders:
        write_sittings(folder, "run -m seed=0,1 run_dir=y")
    target = tmp_path / "result"
    assert called(script, target, folders[0]) == 0
    assert called(script, target, folders[1], "--keep") == 0
    runs = json.loads((tmp_path / "result.json").read_text())["runs"]
    assert [one["overrides"] for one in runs] == [["seed=0"], ["seed=1"]]
    older = [{name: value for name, value in runs[0].items() if name != "seed"} | {"overrides": ["seed=0,1"]}]
    (tmp_path / "result.json").write_text(json.dumps({"runs": older}))
    assert called(script, target, folders[1], "--keep") == 2


def test_other_games_are_collected_too(
    run: Callable[[int], pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without knock rate where the game has none; a run that met nobody is refused."""
    folder = run(0)
    record = json.loads((folder / "metrics.jsonl").read_text())
    del record["eval/random/knock_rate"]
    write_metrics(folder, [record])
    assert called(script, tmp_path / "result", folder) == 0
    (point,) = json.loads((tmp_path / "result.json").read_text())["runs"][0]["curve"]
    assert "knock_rate" not in point
    (folder / "evaluation.json").write_text(json.dumps({"iteration": 4}))
    assert called(script, tmp_path / "none", folder) == 2
    assert "was evaluated against nobody" in capsys.readouterr().err


def test_runs_of_several_settings_are_refused(
    run: Callable[[int], pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one go and with --keep, in one line; an older file does not tell its setting, which is said."""
    first, other = run(0), run(1)
    for changed, message in (
        ({"env__name": "leduc_poker"}, "another game: name is kuhn_poker and leduc_poker"),
        ({"algo__name": "outcome_mccfr"}, "another recipe: algo.name is cfr_plus and outcome_mccfr"),
        ({"iterations": 2}, "another budget: iterations is 4 and 2"),
    ):
        write_config(other, seed=1, **changed)
        assert called(script, tmp_path / "mixed", first, other) == 2
        assert called(script, tmp_path / "result", first) == 0
        before = (tmp_path / "result.json").read_bytes()
        assert called(script, tmp_path / "result", other, "--keep") == 2
        lines = capsys.readouterr().err.splitlines()
        assert [message in line for line in lines] == [True, True]
        assert (tmp_path / "result.json").read_bytes() == before
    assert not (tmp_path / "mixed.json").exists()
    stored = json.loads(before)
    del stored["setting"]
    (tmp_path / "result.json").write_text(json.dumps(stored))
    assert called(script, tmp_path / "result", other, "--keep") == 0
    assert "result.json does not tell its setting" in capsys.readouterr().err
    assert "setting" not in json.loads((tmp_path / "result.json").read_text())


def test_runs_that_met_other_opponents_are_refused(
    run: Callable[[int], pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Their curves and rates are of different matches; in one go and with --keep, in one line."""
    first, other = run(0), run(1)
    report = json.loads((other / "evaluation.json").read_text())
    for met in (["solved"], ["random", "solved"], ["solved", "random"]):
        changed = {"opponent": met[0], "by_opponent": {name: {"win_rate": 0.6} for name in met}}
        (other / "evaluation.json").write_text(json.dumps(report | changed))
        assert called(script, tmp_path / "mixed", first, other) == 2
        assert called(script, tmp_path / "result", first) == 0
        assert called(script, tmp_path / "result", other, "--keep") == 2
        message = f"error: seed 0 was evaluated against random, seed 1 against {', '.join(met)}; it must be the same"
        assert [line.startswith(message) for line in capsys.readouterr().err.splitlines()] == [True, True]
    assert not (tmp_path / "mixed.json").exists()
    assert [one["seed"] for one in json.loads((tmp_path / "result.json").read_text())["runs"]] == [0]


@pytest.mark.parametrize(
    "content",
    ['{"a": 1}', '{"runs', "[1]", '{"runs": []}', '{"runs": [{"x": 1}]}', '{"runs": [{"seed": 0, "final": {}}]}'],
)
def test_a_file_of_something_else_is_not_added_to(
    run: Callable[[int], pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    content: str,
) -> None:
    """One line that names it; it stays as it was."""
    (tmp_path / "other.json").write_text(content)
    assert called(script, tmp_path / "other", run(1), "--keep") == 2
    line = capsys.readouterr().err
    assert (line.count("\n"), line.startswith(f"error: {tmp_path}/other.json ")) == (1, True)
    assert (tmp_path / "other.json").read_text() == content


def test_a_run_that_is_to_go_on_is_refused(
    run: Callable[[int], pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Evaluated at its former end, it is no run of the iterations that its configuration tells now."""
    write_config(run(0), seed=0, iterations=9)
    assert called(script, tmp_path / "result", tmp_path / "seed0") == 2
    assert "seed0 has done 4 of 9 iterations; finish it with resume=" in capsys.readouterr().err
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize("content", ["{}", "[1]", '"iteration"', '{"iter'])
def test_an_evaluation_that_is_none_is_refused(
    run: Callable[[int], pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    content: str,
) -> None:
    """One line that names the file."""
    (run(0) / "evaluation.json").write_text(content)
    assert called(script, tmp_path / "result", tmp_path / "seed0") == 2
    line = capsys.readouterr().err
    assert (line.count("\n"), line.startswith(f"error: {tmp_path}/seed0/evaluation.json ")) == (1, True)


def test_a_target_keeps_its_whole_name(run: Callable[[int], pathlib.Path], tmp_path: pathlib.Path) -> None:
    """A point in it is no ending, so that two targets are two results; .json may be given, and is."""
    for target in ("rate_0.1", "rate_0.2.json"):
        assert called(script, tmp_path / target, run(0)) == 0
        assert called(script, tmp_path / target, run(1), "--keep") == 0
    wanted = [f"rate_{rate}.{ending}" for rate in (0.1, 0.2) for ending in ("json", "svg")]
    assert sorted(path.name for path in tmp_path.glob("rate*")) == wanted


def test_a_target_in_no_folder_is_refused(
    run: Callable[[int], pathlib.Path],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line."""
    assert called(script, tmp_path / "nowhere" / "result", run(0)) == 2
    line = capsys.readouterr().err
    assert line == f"error: {tmp_path}/nowhere is no folder; the target must be in one that is there\n"
