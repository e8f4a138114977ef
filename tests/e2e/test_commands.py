"""The commands, run as a user runs them: what they leave on disk, and that a run goes on where it was."""

from __future__ import annotations

import json
import pathlib
import shutil
import signal
import subprocess

import jax
import numpy as np
import pytest
from command_support import PATIENCE, REPO, TINY, command, start, succeed, wandb_history, wandb_records, without_seconds
from omegaconf import OmegaConf

import dream
import envs
from dream.storage.checkpoint import find
from dream.training import metrics

RATES = ("win_rate", "loss_rate", "tie_rate", "knock_rate", "gin_rate", "undercut_rate")


def _runs(run_dir: pathlib.Path) -> list:
    """Returns what each offline W&B run of a run directory says of itself."""
    return [next(r.run for r in records if r.HasField("run")) for records in wandb_records(run_dir)]


def test_files_of_a_run(whole: pathlib.Path) -> None:
    """The resolved configuration, versions with the git commit, the record, two checkpoints, the final evaluation."""
    config = OmegaConf.load(whole / "config.yaml")
    assert (config.iterations, config.env.name, config.algo.name) == (4, "gin_rummy", "dueling_dream")
    assert config.algo.episodes_per_iteration == 16
    versions = json.loads((whole / "versions.json").read_text())
    assert versions["jax"] == jax.__version__
    head = subprocess.run(["git", "-C", str(REPO), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    assert versions["git_commit"] == (head.stdout.strip() or None)
    assert sorted(p.name for p in (whole / "checkpoints").iterdir()) == ["2", "4"]
    assert find(whole).meta["iteration"] == 4
    assert find(whole).meta["game"] == envs.make("gin_rummy").identity
    left = {"config.yaml", "versions.json", "metrics.jsonl", "evaluation.json", "checkpoints", "wandb", "curves.svg"}
    assert {p.name for p in whole.iterdir()} == left
    assert {p.name for p in whole.parent.iterdir()} == {"whole", "stdout"}


def test_a_run_is_evaluated_and_exported_with_programs_as_users_have_them(tmp_path: pathlib.Path) -> None:
    """Optimised, as programs of other tests are not: PPO on gin, whose programs have compiler options then."""
    usual = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "0", "XLA_FLAGS": ""}
    succeed("dream.run", *TINY, "algo=ppo", "env=gin_rummy", "iterations=1", "eval.final_games=4", "run_dir=run",
            cwd=tmp_path, **usual)  # fmt: skip
    succeed("dream.export", "checkpoint=run", "out=run.safetensors", cwd=tmp_path, **usual)
    succeed(
        "dream.evaluate", "checkpoint=run.safetensors", "opponent=gin_rummy/points", "games=4", cwd=tmp_path, **usual
    )
    assert [json.loads(path.read_text())["n"] for path in tmp_path.rglob("evaluations/*.json")] == [4]


READER_LEFT = {
    "help": (["--help"], ""),
    "run": (
        ["algo=cfr", "env=kuhn_poker", *TINY, "run_dir=run"],
        "stopped, as its output was closed; nothing is saved yet; the same command with run_dir={} starts over\n",
    ),
}


@pytest.mark.parametrize("name", READER_LEFT)
def test_a_reader_that_leaves_ends_the_command(tmp_path: pathlib.Path, name: str) -> None:
    """As `| head` does; the exit code is that of other programs, and a run says what is saved of it."""
    arguments, said = READER_LEFT[name]
    process = start("dream.run", *arguments, cwd=tmp_path)
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (128 + signal.SIGPIPE, said.format(tmp_path / "run"))


def test_a_reader_that_leaves_later_loses_nothing_of_a_run(tmp_path: pathlib.Path) -> None:
    """What was learned until then is saved, between two checkpoints too."""
    arguments = ["algo=cfr", "env=kuhn_poker", "iterations=100000000", "checkpoint.every=100000000", "eval.every=20000",
                 "tracking.mode=disabled", "run_dir=run"]  # fmt: skip
    process = start("dream.run", *arguments, cwd=tmp_path)
    for line in process.stdout:
        if line.startswith("iteration "):
            break
    process.stdout.close()
    process.stdout = None
    _, errors = process.communicate(timeout=PATIENCE)
    saved = find(tmp_path / "run").meta["iteration"]
    assert saved > 0
    way_on = f"iteration {saved} is saved; go on with resume={tmp_path / 'run'}"
    assert (process.returncode, errors) == (128 + signal.SIGPIPE, f"stopped, as its output was closed; {way_on}\n")


def test_record_of_a_run(whole: pathlib.Path) -> None:
    """One line an iteration with counters and seconds that grow, diagnostics, and evaluations where due."""
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4]
    for name in ("seconds", "episodes", "decisions", "transitions", "network_rows", "gradient_steps"):
        values = [line[name] for line in lines]
        assert values == sorted(values)
        assert values[0] > 0
    assert [line["episodes"] for line in lines] == [16, 32, 48, 64]
    for line in lines:
        assert ("eval/random/win_rate" in line) == (line["iteration"] % 2 == 0)
        reported = {"loss", "loss_advantage", "loss_value", "target_rms", "advantage_rms", "value_explained_variance"}
        reported |= {"gradient_norm", "target_drift", "temperature", "self_play/length", "self_play/deadwood"}
        reported |= {f"self_play/{kind}_rate" for kind in ("knock", "gin", "undercut", "tie")} | {"entropy/discard"}
        assert reported <= line.keys()


def _check_report(report: dict, hands: int) -> None:
    assert (report["n"], report["n_pairs"]) == (hands, hands // 2)
    for name in (*RATES, "points_per_hand", "mean_length"):
        assert report[name].keys() == {"mean", "low", "high"}
        assert report[name]["low"] <= report[name]["mean"] <= report[name]["high"]
    for name in RATES:
        assert report[name]["low"] >= 0
        assert report[name]["high"] <= 1
    assert sum(report[name]["mean"] for name in ("win_rate", "loss_rate", "tie_rate")) == pytest.approx(1)


def test_final_evaluation_of_a_run(whole: pathlib.Path) -> None:
    """evaluation.json, and the same as a table; a plain line for every evaluated iteration."""
    report = json.loads((whole / "evaluation.json").read_text())
    _check_report(report, 32)
    assert (report["iteration"], report["opponent"]) == (4, "random")
    assert report["by_opponent"]["random"]["win_rate"] == report["win_rate"]
    shown = (whole.parent / "stdout").read_text()
    assert f"{report['mean_length']['mean']:.2f}" in shown
    assert "iteration 2/4" in shown
    assert "iteration 4/4" in shown
    assert "\x1b[" not in shown


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The same run as `whole`, ended after two iterations and resumed to four."""
    folder = tmp_path_factory.mktemp("halves")
    succeed("dream.run", "preset=tiny", "iterations=2", "run_dir=run", cwd=folder)
    assert find(folder / "run").meta["iteration"] == 2
    succeed("dream.run", "resume=run", "iterations=4", cwd=folder)
    return folder / "run"


def test_two_halves_are_a_whole(whole: pathlib.Path, halves: pathlib.Path) -> None:
    """2 + resume + 2 iterations equal 4: the state bit for bit, the record and the evaluation but for seconds."""
    one, two = find(whole), find(halves)
    assert (one.meta["iteration"], one.meta["checksum"]) == (two.meta["iteration"], two.meta["checksum"])
    assert one.meta["counters"] == two.meta["counters"]
    records = [[without_seconds(record) for record in metrics.read(run)] for run in (whole, halves)]
    assert len(records[0]) == 4
    assert records[0] == records[1]
    assert (whole / "evaluation.json").read_text() == (halves / "evaluation.json").read_text()
    assert OmegaConf.load(halves / "config.yaml") == OmegaConf.load(whole / "config.yaml")
    seconds = [record["seconds"] for record in metrics.read(halves)]
    assert seconds == sorted(seconds)
    versions = json.loads((halves / "versions.json").read_text())
    assert "preset=tiny iterations=2" in versions["command"]
    assert [(one["started_at_iteration"], "resume=run" in one["command"]) for one in versions["resumed"]] == [(2, True)]


def test_wandb_of_a_resumed_run(whole: pathlib.Path, halves: pathlib.Path) -> None:
    """Both offline parts have one id, group and job type; another run has another id in the same group."""
    first, second = _runs(halves)
    assert first.run_id == second.run_id == find(halves).meta["wandb_id"]
    for run in (first, second):
        assert (run.run_group, run.job_type, run.project, run.display_name) == (
            "dueling_dream_gin_rummy", "train", "dream", "run",
        )  # fmt: skip
    (other,) = _runs(whole)
    assert other.run_group == first.run_group
    assert other.run_id != first.run_id


def test_wandb_holds_the_record(whole: pathlib.Path) -> None:
    """One W&B history entry an iteration with the three axes, and the table of the evaluation."""
    (records,) = wandb_records(whole)
    history = wandb_history(whole)
    rows = [entry for entry in history if "loss" in entry]
    for entry, line in zip(rows, metrics.read(whole), strict=True):
        for name in ("iteration", "decisions", "seconds", "loss"):
            assert entry[name] == line[name]
    assert any(name.startswith("evaluation/random/") for entry in history for name in entry)
    config = {item.key: json.loads(item.value_json) for r in records for item in r.run.config.update}
    assert config["algo"]["episodes_per_iteration"] == 16


def test_resume_from_an_earlier_checkpoint(whole: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """With another setting: the run's later checkpoint, record and evaluation are those of the new work."""
    run_dir = tmp_path / "run"
    shutil.copytree(whole, run_dir)
    earlier = run_dir / "checkpoints" / "2"
    succeed("dream.run", f"resume={earlier}", "algo.learning_rate=0.5", "tracking.mode=disabled", cwd=tmp_path)
    assert [record["iteration"] for record in metrics.read(run_dir)] == [1, 2, 3, 4]
    rates = [record["learning_rate"] for record in metrics.read(run_dir)]
    assert rates == pytest.approx([2e-3, 2e-3, 0.5, 0.5])
    assert find(run_dir).meta["iteration"] == 4
    assert find(run_dir).meta["config"]["algo"]["learning_rate"] == 0.5
    assert find(run_dir).meta["checksum"] != find(whole).meta["checksum"]


def test_sweep(tmp_path: pathlib.Path) -> None:
    """-m seed=1,2 runs two jobs into two folders of one sweep, each a whole run of its own seed."""
    kuhn = ("algo=external_mccfr", "env=kuhn_poker", "eval.final_games=4")
    succeed("dream.run", "-m", *TINY, *kuhn, "seed=1,2", "iterations=1", cwd=tmp_path)
    (sweep,) = (tmp_path / "runs").iterdir()
    assert sweep.name.endswith("_sweep")
    jobs = sorted(path for path in sweep.iterdir() if path.is_dir())
    assert [job.name for job in jobs] == ["0", "1"]
    for seed, job in zip((1, 2), jobs, strict=True):
        assert OmegaConf.load(job / "config.yaml").seed == seed
        assert (job / "evaluation.json").exists()
        assert len(metrics.read(job)) == 1
    assert len({find(job).meta["checksum"] for job in jobs}) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"runs"}


def _evaluated(folder: pathlib.Path, whole: pathlib.Path, *arguments: str) -> tuple[dict, str]:
    """Evaluates a copy of the run, named `run`, and returns the only report written and what was shown."""
    shutil.copytree(whole, folder / "run")
    done = succeed("dream.evaluate", *arguments, "games=64", "seed=3", cwd=folder)
    (path,) = (folder / "run" / "evaluations").glob("*.json")
    assert (folder / "run" / "evaluation.json").read_bytes() == (whole / "evaluation.json").read_bytes()
    assert {p.name for p in folder.iterdir()} == {"run"}
    assert find(folder / "run").meta["iteration"] == 4
    report = json.loads(path.read_text())
    _check_report(report, 64)
    assert (report["seed"], report["iteration"], report["unit"]) == (3, 4, "points")
    return report, done.stdout


@pytest.fixture(scope="module")
def against_random(whole: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, str]:
    """The finished run against uniform random play."""
    return _evaluated(tmp_path_factory.mktemp("evaluated"), whole, "checkpoint=run", "opponent=random")


def test_evaluate(against_random: tuple[dict, str]) -> None:
    """The report is kept with the run, next to the run's own, and the table shows the same."""
    report, shown = against_random
    assert report["opponent"] == "random"
    assert f"{report['points_per_hand']['mean']:.2f}" in shown
    assert "95 %" in shown
    assert "64" in shown


def test_evaluate_a_checkpoint_against_a_run(whole: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Both players by their folders; the report lies in the run they belong to."""
    report, _ = _evaluated(tmp_path, whole, "checkpoint=run/checkpoints/4", "opponent=run")
    assert report["opponent"] == "run"


def test_evaluation_script_is_the_command(
    whole: pathlib.Path, against_random: tuple[dict, str], tmp_path: pathlib.Path
) -> None:
    """experiments/evaluate_vs_random.py writes what python -m dream.evaluate writes."""
    shutil.copytree(whole, tmp_path / "run")
    script = REPO / "experiments" / "evaluate_vs_random.py"
    succeed(str(script), "run", "--games", "64", "--seed", "3", cwd=tmp_path)
    (path,) = (tmp_path / "run" / "evaluations").iterdir()
    assert json.loads(path.read_text()) == against_random[0]


def test_load_policy(whole: pathlib.Path) -> None:
    """A run or a checkpoint as a Policy: .params, .apply, callable; a distribution over legal actions."""
    game = envs.make("gin_rummy")
    view, legal = jax.jit(lambda s: (game.view(s, 0), game.legal_actions(s)))(jax.jit(game.init)(jax.random.key(1)))
    references = (whole, str(whole / "checkpoints" / "4"), whole / "checkpoints" / "2")
    policies = [dream.load_policy(reference) for reference in references]
    ask = jax.jit(lambda policy, view, legal: policy(view, legal))
    chances = [np.asarray(ask(policy, view, legal)) for policy in policies]
    assert chances[0].sum() == pytest.approx(1)
    assert np.all(chances[0][~np.asarray(legal)] == 0)
    assert np.all(chances[0][np.asarray(legal)] > 0)
    np.testing.assert_array_equal(chances[0], chances[1])
    assert not np.array_equal(chances[0], chances[2])
    np.testing.assert_array_equal(jax.jit(policies[0].apply)(policies[0].params, view, legal), chances[0])
    assert sum(x.size for x in jax.tree.leaves(policies[0].params)) > 4887 * 16


def test_losing_wandb_ends_nothing(tmp_path: pathlib.Path) -> None:
    """With a wandb that cannot be used the run says so once and goes on; the folder has its default name."""
    broken = tmp_path / "path" / "wandb"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("def init(*a, **k):\n    raise RuntimeError('no W&B today')\n")
    where = tmp_path / "here"
    where.mkdir()
    path = f"{broken.parent}"
    arguments = ("preset=tiny", "algo=cfr", "env=kuhn_poker", "iterations=1", "seed=7", "eval.final_games=4")
    done = succeed("dream.run", *arguments, cwd=where, PYTHONPATH=path)
    assert done.stderr.count("W&B is lost") == 1
    (run_dir,) = (where / "runs").iterdir()
    assert run_dir.name.endswith("_cfr_kuhn_poker_seed7")
    assert len(metrics.read(run_dir)) == 1
    assert (run_dir / "evaluation.json").exists()


def test_export_and_evaluate_the_file(
    whole: pathlib.Path, against_random: tuple[dict, str], tmp_path: pathlib.Path
) -> None:
    """The file plays as the run does: the same match, hand for hand."""
    done = succeed("dream.export", f"checkpoint={whole}", "out=agent.safetensors", cwd=tmp_path)
    assert done.stdout.splitlines()[-2:] == [str(tmp_path / "agent.safetensors"), str(tmp_path / "agent.json")]
    done = succeed("dream.evaluate", "checkpoint=agent.safetensors", "games=64", "seed=3", cwd=tmp_path)
    by_file, by_run = json.loads(pathlib.Path(done.stdout.splitlines()[-1]).read_text()), dict(against_random[0])
    file, checkpoint = (report.pop("measured")["checkpoint"] for report in (by_file, by_run))
    assert file["iteration"] == checkpoint["iteration"] == 4
    assert file["checksum"] != checkpoint["checksum"]  # of the file, and of the whole state
    assert [report.pop("player") for report in (by_file, by_run)] == ["agent.safetensors", against_random[0]["player"]]
    assert by_file == by_run


def test_a_sweep_with_a_refused_job(tmp_path: pathlib.Path) -> None:
    """The other job runs; one table, one line for the failure, the W&B run named after the job's overrides."""
    arguments = ("-m", "preset=tiny", "env=kuhn_poker", "algo=cfr", "eval.final_games=32,33", "run_dir=sweep")
    done = command("dream", "run", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    header, first, second = done.stdout.splitlines()[-3:]
    assert header.split()[:3] == ["job", "overrides", "objective"]
    exact = json.loads((tmp_path / "sweep" / "0" / "evaluation.json").read_text())["exact"]["average"]
    assert first.split() == ["0", "eval.final_games=32", f"{exact['exploitability']:.6g}"]
    assert second.split() == ["1", "eval.final_games=33", "refused"]
    last = "error: job 1 (eval.final_games=33): refused: eval.final_games=33 is odd"
    assert done.stderr.splitlines()[-1].startswith(last)
    (run,) = _runs(tmp_path / "sweep" / "0")
    assert run.display_name == "preset=tiny,env=kuhn_poker,algo=cfr,eval.final_games=32"
    assert run.run_group == "sweep"


def test_a_run_says_what_comes_next(whole: pathlib.Path) -> None:
    """What it is about to do first, the commands for what it has done last."""
    lines = (whole.parent / "stdout").read_text().splitlines()
    assert lines[0].startswith("dueling_dream on gin_rummy · 4 iterations · episodes per iteration: ")
    assert lines[1].startswith("network dueling, ")
    assert any(line.startswith("the first iteration took ") for line in lines)
    assert lines[-1].endswith("wandb sync whole/wandb/offline-run-*")
    assert lines[-4].endswith("python -m dream.evaluate checkpoint=whole opponent=random")
