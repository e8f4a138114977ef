"""Is a sweep's job on its own, so that one that fails ends nothing else?"""

from __future__ import annotations

import json
import pathlib
import shlex
import shutil
import sys
import time
import types
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.sweeper import Sweeper

from dream import algorithms
from dream.commands.evaluate import play_match, prepare_match
from dream.commands.exploit import exploit, prepare_exploit
from dream.commands.main import run_command
from dream.config.compose import Composed, compose_config
from dream.storage.checkpoint import find
from dream.training.beginning import Start
from dream.training.faults import closed_output_noted
from dream.training.loop import train
from dream.training.objective import objective
from dream.training.signals import StopRequest
from dream.training.start import job_name, prepare_run, with_stored_choices
from envs import InputError, registry

Result = tuple[int, str, str]


def _prepare(composed: Composed) -> Composed:
    if composed.node.seed == 3:
        raise InputError("seed=3 is not lucky; it must be another")
    return composed


def _job(composed: Composed) -> float | None:
    seed = composed.node.seed
    if seed == 2:
        raise FloatingPointError("iteration 7: the loss is nan")
    if seed == 4:
        raise RuntimeError("out of memory\nwhile trying")
    if seed == 5:
        sys.exit(143)
    if seed == 10:
        jnp.zeros(2**46)
    return None if seed == 6 else 0.25 * seed


@pytest.fixture
def sweep(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Result]:
    """Runs `-m` with arguments in this process; returns exit code and output."""
    monkeypatch.chdir(tmp_path)

    def run(
        *arguments: str, name: str = "config", prepare: Any = _prepare, job: Any = _job, complete: Any = list
    ) -> Result:
        monkeypatch.setattr(sys, "argv", ["dream.run", "-m", *arguments])
        code = 0
        try:
            run_command(name, prepare, job, complete)
        except SystemExit as left:
            code = left.code
        return code, *capfd.readouterr()

    return run


def test_failures_are_listed_and_the_others_run(sweep: Callable[..., Result], tmp_path: pathlib.Path) -> None:
    """A diverging, a refused and a broken job: the first and the last still run, and the table has all five."""
    code, out, err = sweep("seed=1,2,3,4,8", "algo=cfr", "run_dir=sweep")
    assert code == 1
    assert [line for line in out.splitlines() if line.startswith("job ") and ":" in line] == [
        f"job {n} ({n + 1} of 5): seed={seed}" for n, seed in enumerate((1, 2, 3, 4, 8))
    ]
    table = [line.split(maxsplit=2) for line in out.splitlines()[-5:]]
    assert table == [
        ["0", "seed=1", "0.25"],
        ["1", "seed=2", "failed"],
        ["2", "seed=3", "refused"],
        ["3", "seed=4", "failed"],
        ["4", "seed=8", "2"],
    ]
    listed = [line for line in err.splitlines() if line.startswith("error: job ")]
    assert listed == [
        "error: job 1 (seed=2): failed: iteration 7: the loss is nan",
        "error: job 2 (seed=3): refused: seed=3 is not lucky; it must be another",
        "error: job 3 (seed=4): failed: RuntimeError: out of memory",
    ]
    assert not (tmp_path / "sweep" / "2").exists(), "a refused job leaves no folder"


def test_a_job_that_asks_for_too_much_memory(sweep: Callable[..., Result]) -> None:
    """Its line says what to ask less of, without a traceback, and the next job runs."""
    code, out, err = sweep("seed=10,8", "algo=cfr")
    assert code == 1
    assert [line.split(maxsplit=2)[2] for line in out.splitlines()[-2:]] == ["failed", "2"]
    assert "): failed: the memory is spent (Out of memory allocating 281474976710656 bytes); ask for" in err
    assert "Traceback" not in err


def test_a_job_that_does_not_compose_is_refused_alone(sweep: Callable[..., Result]) -> None:
    """A setting that only some of the algorithms have, whichever comes first."""
    code, out, err = sweep("algo=cfr,ppo,cfr_plus", "env=kuhn_poker", "algo.clip_epsilon=0.1", "seed=8")
    assert code == 1
    assert [line.split(maxsplit=2)[2] for line in out.splitlines()[-3:]] == ["refused", "2", "refused"]
    assert err.count("): refused: unknown setting 'algo.clip_epsilon'") == 2


def test_a_wrong_value_among_others_is_told_before_the_first_job(sweep: Callable[..., Result]) -> None:
    """A line for each reason, which names its jobs; the others run; what breaks otherwise is reported in its turn."""

    def prepare(composed: Composed) -> Composed:
        if composed.node.seed == 9:
            raise RuntimeError("broken")
        return _prepare(composed)

    code, out, err = sweep("algo=cfr,cfr_pluss", "seed=3,9,8", prepare=prepare)
    assert code == 1
    lucky, unknown, first_job, *_ = err.splitlines()
    reason = "seed=3 is not lucky; it must be another"
    assert lucky == f"warning: job 0 (algo=cfr seed=3) will be refused: {reason}"
    assert unknown.startswith("warning: jobs 3, 4, 5 (algo=cfr_pluss seed=3 and so on) will be refused: unknown algo")
    assert first_job == f"refused: {reason}"
    rows = [line.split()[-1] for line in out.splitlines()[-6:]]
    assert rows == ["refused", "failed", "2", "refused", "refused", "refused"]


def test_a_wrong_value_is_told_before_the_first_job_of_a_launcher(sweep: Callable[..., Result]) -> None:
    """Also where Hydra runs the jobs, which checks none of them."""
    code, out, err = sweep("algo=cfr", "seed=8,3", "hydra/launcher=basic")
    assert code == 1
    reason = "seed=3 is not lucky; it must be another"
    assert err.splitlines()[0] == f"warning: job 1 (seed=3) will be refused: {reason}"
    assert [line.split()[-1] for line in out.splitlines()[-2:]] == ["2", "refused"]


def test_a_sweep_without_failures_ends_well(sweep: Callable[..., Result]) -> None:
    """Exit code 0; a job without an objective says so."""
    code, out, err = sweep("seed=6,8")
    assert (code, err) == (0, "")
    assert out.splitlines()[-2:] == ["  0  seed=6     none", "  1  seed=8     2"]


def test_a_sweep_that_is_refused_whole_writes_nothing(sweep: Callable[..., Result], tmp_path: pathlib.Path) -> None:
    """One line, as for a single job."""
    code, out, err = sweep("seed=3", "iterations=1,2", "run_dir=sweep")
    assert (code, out, err) == (2, "", "error: seed=3 is not lucky; it must be another\n")
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize("launcher", [(), ("hydra/launcher=basic",)])
def test_a_job_given_twice_is_refused(
    sweep: Callable[..., Result], tmp_path: pathlib.Path, launcher: tuple[str, ...]
) -> None:
    """One and the same run is no second sample; nothing is written."""
    code, out, err = sweep("algo=cfr", "seed=6,8,6", "run_dir=sweep", *launcher)
    same = "jobs 0 and 2 are both algo=cfr seed=6 run_dir=sweep; give each value once"
    assert (code, out, err) == (2, "", f"error: {same}\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("launcher", [(), ("hydra/launcher=basic",)])
def test_a_sweep_has_one_folder(
    sweep: Callable[..., Result], tmp_path: pathlib.Path, launcher: tuple[str, ...]
) -> None:
    """All jobs would be in the first of several, and half of them be the others once more."""
    code, out, err = sweep("seed=6,8", "run_dir=one,two", *launcher)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: run_dir= has 2 values; a sweep has one folder")
    assert not list(tmp_path.iterdir())
    assert sweep("seed=6,8", "run_dir='one,two'")[0] == 0


def test_a_launcher_knows_games_and_algorithms_from_outside(
    sweep: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hydra composes the jobs of its launchers itself; an algorithm that cannot be loaded is in nobody's way."""
    monkeypatch.setattr(registry, "_registered", {"penny": "no_such_module:make"})
    own = algorithms._REGISTRY["cfr"]
    known = {"penny_cfr": (own, None), "broken": ("no_such_module:Config", None)}
    monkeypatch.setattr(algorithms, "_registered", known)
    code, out, _ = sweep("env=penny,kuhn_poker", "algo=penny_cfr,cfr", "seed=8", "hydra/launcher=basic")
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines()[-4:]] == ["2"] * 4


def test_a_range_without_end_needs_a_sweeper(sweep: Callable[..., Result]) -> None:
    """Hydra's own sweeper cannot try all of an interval: one line."""
    code, out, err = sweep("seed=interval(1,9)")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "hydra/sweeper=optuna" in err


@pytest.mark.parametrize(("folder", "given"), [([], ""), (["run_dir='a b'"], """ 'run_dir='"'"'a b'"'"''""")])
def test_a_signal_ends_the_sweep_with_its_table(
    sweep: Callable[..., Result], folder: list[str], given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The jobs that were not run are in it, and how to go on, but no fault; the code is the signal's."""
    monkeypatch.setattr(time, "strftime", lambda pattern: "now")
    code, out, err = sweep("seed=1,2,5,8", "algo=cfr", *folder)
    assert code == 143
    *rows, way_on = out.splitlines()[-5:]
    assert [line.split()[1:] for line in rows] == [
        ["seed=1", "0.25"], ["seed=2", "failed"], ["seed=5", "stopped"], ["seed=8", "not", "run"],
    ]  # fmt: skip
    assert way_on == f"go on: python -m dream.run -m seed=1,2,5,8 algo=cfr{given or ' run_dir=runs/now_sweep'}"
    assert [line.split(":")[1] for line in err.splitlines() if line.startswith("error: ")] == [" job 1 (seed=2)"]


@pytest.mark.parametrize("launcher", [(), ("hydra/launcher=basic",)])
def test_what_follows_from_a_jobs_overrides_is_added(sweep: Callable[..., Result], launcher: tuple[str, ...]) -> None:
    """Whoever runs the jobs, as with the game of a ladder's players; each has its folder all the same."""
    done = []

    def complete(overrides: list[str]) -> list[str]:
        return ["env=kuhn_poker" if "seed=1" in overrides else "env=leduc_poker", *overrides]

    def job(composed: Composed) -> None:
        done.append((composed.node.env.name, composed.node.seed, composed.sweep_dir.name))

    code, _, err = sweep("seed=1,8", "algo=cfr", *launcher, job=job, complete=complete)
    assert (code, err) == (0, "")
    assert done == [("kuhn_poker", 1, "0"), ("leduc_poker", 8, "1")]


def test_a_closed_output_ends_the_sweep(sweep: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no fault of the job, and the error says how all of them go on, and not that one alone."""
    jobs = []

    def broken(composed: Composed) -> None:
        jobs.append(composed)
        with closed_output_noted(composed.sweep_dir):
            raise BrokenPipeError

    monkeypatch.setattr("dream.commands.sweep.output_is_closed", lambda: True)
    with pytest.raises(BrokenPipeError) as error:
        sweep("seed=1,2", "algo=cfr", "run_dir=sweep", job=broken)
    assert len(jobs) == 1
    assert error.value.__notes__ == [
        "nothing is saved yet",
        "all jobs go on with python -m dream.run -m seed=1,2 algo=cfr run_dir=sweep",
    ]


@pytest.mark.parametrize("launcher", [(), ("hydra/launcher=basic",)])
def test_an_interrupted_sweep_goes_on_by_the_command_it_names(
    sweep: Callable[..., Result], launcher: tuple[str, ...]
) -> None:
    """In the same folder, where the finished job is not done again."""

    def interrupted(start: Start) -> float | None:
        return _train(start) if start.parts.config.iterations == 1 else sys.exit(130)

    command = ("algo=cfr", "env=kuhn_poker", "iterations=1,2", "eval.opponents=[]", *launcher)
    code, out, err = sweep(*command, prepare=prepare_run, job=interrupted)
    assert (code, err) == (130, "")
    (line,) = [line for line in out.splitlines() if line.startswith("go on: ")]
    arguments = shlex.split(line.removeprefix("go on: python -m dream.run -m "))
    code, out, err = sweep(*arguments, prepare=prepare_run, job=_train)
    assert (code, err, "from iteration 1 to 1" in out, "go on" in out) == (0, "", True, False)


class Adaptive(Sweeper):
    """Picks the next jobs by what the last ones returned, as Optuna's sweeper does."""

    __module__ = "hydra_plugins.adaptive"

    def setup(self, *, hydra_context: Any, task_function: Any, config: Any) -> None:
        """Keeps the launcher."""
        self.config = config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> list[float]:
        """Tries three seeds, then one past the best."""
        fixed = [text for text in arguments if not text.startswith("seed=")]
        jobs = self.launcher.launch([[*fixed, f"seed={seed}"] for seed in (2, 8, 7)], initial_job_idx=0)
        values = [float(job.return_value) for job in jobs]
        self.launcher.launch([[*fixed, f"seed={(2, 8, 7)[values.index(min(values))] + 2}"]], initial_job_idx=3)
        return values


def test_a_sweeper_gets_the_objectives(sweep: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """A float for each job, infinite for a failed one, so that the sweeper goes on and prefers another."""
    package, module = types.ModuleType("hydra_plugins"), types.ModuleType("hydra_plugins.adaptive")
    package.__path__, package.adaptive, module.Adaptive = [], module, Adaptive
    monkeypatch.setitem(sys.modules, "hydra_plugins", package)
    monkeypatch.setitem(sys.modules, "hydra_plugins.adaptive", module)
    Plugins.instance().register(Adaptive)
    target = {"_target_": "hydra_plugins.adaptive.Adaptive"}
    ConfigStore.instance().store(group="hydra/sweeper", name="adaptive", node=target)
    code, out, _ = sweep("hydra/sweeper=adaptive", "seed=interval(1,9)", "algo=cfr")
    assert code == 1
    assert [line.split()[-1] for line in out.splitlines()[-4:]] == ["failed", "2", "1.75", "2.25"], out
    assert "job 3: " in out


def test_objective() -> None:
    """Exploitability of the average where it is exact, else what is lost against the first opponent."""
    exact = {"current": {"exploitability": 0.5}, "average": {"exploitability": 0.25}}
    assert objective(exact, [3.0, 9.0]) == 0.25
    assert objective({"current": {"exploitability": 0.5}}, []) == 0.5
    assert objective({}, [3.0, 9.0]) == -3.0
    assert objective({}, []) is None


def test_matches_and_exploitabilities_are_compared(sweep: Callable[..., Result], tmp_path: pathlib.Path) -> None:
    """What the reports say: minus the points per hand, and the exploitability of each policy."""
    made = ["algo=cfr", "env=kuhn_poker", "iterations=3", "eval.opponents=[]", f"run_dir={tmp_path / 'run'}"]
    _train(prepare_run(compose_config("config", made)))
    against = ("checkpoint=run", "opponent=random,solved", "games=64")
    code, out, _ = sweep(*against, name="evaluate", prepare=prepare_match, job=play_match)
    matches = [json.loads(path.read_text()) for path in sorted((tmp_path / "run" / "evaluations").glob("*.json"))]
    points = [match["points_per_hand"]["mean"] for match in matches]
    assert (code, _values(out)) == (0, [f"{-mean:.6g}" for mean in points])
    code, out, _ = sweep(
        "checkpoint=run", "policy=current,average", name="exploit", prepare=prepare_exploit, job=exploit
    )
    reports = [
        json.loads((tmp_path / "run" / "exploitability" / f"exact_{policy}_3.json").read_text())
        for policy in ("current", "average")
    ]
    assert (code, _values(out)) == (0, [f"{report['exploitability']:.6g}" for report in reports])


def _values(out: str) -> list[str]:
    """Returns the objectives of a table of two jobs."""
    return [line.split()[-1] for line in out.splitlines()[-2:]]


def test_job_name() -> None:
    """What W&B calls a job: its overrides without the folder, short enough for W&B."""
    assert job_name(("algo=cfr", "run_dir=x", "seed=2")) == "algo=cfr,seed=2"
    assert len(job_name(("eval.opponents=[" + "random," * 40 + "]",))) == 128
    assert job_name(("run_dir=x",)) == "job"


def test_a_sweep_in_a_folder_that_is_there(sweep: Callable[..., Result], tmp_path: pathlib.Path) -> None:
    """The same command finishes it, in a folder with any name; a run's own folder is no place for a sweep."""
    command = ("algo=cfr", "env=kuhn_poker", "iterations=1,2", "run_dir='the=sweep'", "eval.opponents=[]")
    folder = tmp_path / "the=sweep"
    code, first, _ = sweep(*command, prepare=prepare_run, job=_train)
    assert code == 0
    (folder / "9").mkdir()  # of a job without a checkpoint yet
    with pytest.raises(InputError, match=f"is a sweep's folder; name one of its jobs, such as {folder / '0'}"):
        find(folder)
    shutil.rmtree(folder / "1")
    for launcher in ((), ("hydra/launcher=basic",)):
        code, out, err = sweep(*command, *launcher, prepare=prepare_run, job=_train)
        assert (code, err) == (0, "")
        assert "from iteration 1 to 1" in out
        assert [line.split()[-1] for line in _rows(out)] == [line.split()[-1] for line in _rows(first)]
    command = [f"run_dir='{tmp_path / 'sweep'}'" if "run_dir" in text else text for text in command]
    assert sweep(*command, prepare=prepare_run, job=_train)[0] == 0
    code, _, err = sweep(*command[:3], f"run_dir={tmp_path / 'sweep' / '0'}", prepare=prepare_run, job=_train)
    assert (code, "holds a run; a sweep needs a folder of its own" in err) == (2, True)


def _rows(out: str) -> list[str]:
    """Returns the rows of a table of two jobs, which nothing but a picture's path may follow."""
    return [line for line in out.splitlines() if " iterations=" in line][-2:]


@pytest.mark.parametrize("launcher", [(), ("hydra/launcher=basic",)])
def test_a_job_does_not_go_on_under_other_settings(
    sweep: Callable[..., Result], tmp_path: pathlib.Path, launcher: tuple[str, ...]
) -> None:
    """What it would report is the old settings' number; more iterations it may have."""
    fixed = ("algo=cfr_plus", "env=kuhn_poker", "run_dir=sweep", "eval.opponents=[]", *launcher)
    assert sweep("algo.average_power=1,2", "iterations=2", *fixed, prepare=prepare_run, job=_train)[0] == 0
    code, _, err = sweep("algo.average_power=1,8", "iterations=3", *fixed, prepare=prepare_run, job=_train)
    assert code == 1
    assert "holds a job 1 with algo.average_power=2" in err
    assert "not 8" in err
    assert err.count("error: ") == 1
    assert [find(tmp_path / "sweep" / job).meta["iteration"] for job in "01"] == [3, 2]


@pytest.mark.parametrize("launcher", [(), ("hydra/launcher=basic",)])
def test_a_run_is_gone_on_with_once(
    sweep: Callable[..., Result], tmp_path: pathlib.Path, launcher: tuple[str, ...]
) -> None:
    """Two jobs on one run would follow each other; two runs may go on, with settings of their own algorithm."""
    for seed in (0, 1):
        made = ["algo=cfr_plus", "env=kuhn_poker", "iterations=1", f"seed={seed}", "eval.opponents=[]"]
        _train(prepare_run(compose_config("config", [*made, f"run_dir={tmp_path / str(seed)}"])))
    asked = ("resume=0", "iterations=2,3", *launcher)
    code, out, err = sweep(*asked, prepare=prepare_run, job=_train, complete=with_stored_choices)
    assert (code, "job " in out) == (2, False)
    assert err == "error: resume=0 is given to 2 jobs; a sweep can go on with a run only once\n"
    alike = ("resume=0,./0/,0/checkpoints/1", "iterations=2", *launcher)
    code, _, err = sweep(*alike, prepare=prepare_run, job=_train, complete=with_stored_choices)
    named = "resume=0, resume=./0/, resume=0/checkpoints/1"
    assert (code, err) == (2, f"error: {named} is given to 3 jobs; a sweep can go on with a run only once\n")
    code, _, err = sweep("hydra/sweeper=optuna", "resume=0", "seed=interval(1,9)", prepare=prepare_run, job=_train)
    assert (code, err) == (2, "error: resume= is not for a sweeper that picks its own jobs; they are new runs\n")
    if not launcher:
        both = ("resume=0,1", "iterations=2", "algo.average_power=3")
        assert sweep(*both, prepare=prepare_run, job=_train, complete=with_stored_choices)[0] == 0
        assert [find(tmp_path / job).meta["iteration"] for job in "01"] == [2, 2]


def _train(start: Start) -> float | None:
    return train(start, StopRequest(listen=False)).objective


def test_a_job_that_would_replace_anothers_file_is_refused(
    sweep: Callable[..., Result], tmp_path: pathlib.Path
) -> None:
    """Two jobs of the commands that measure have one report's name: the first one's stays."""

    def prepare(composed: Composed) -> types.SimpleNamespace:
        return types.SimpleNamespace(files=(tmp_path / "report.json",), seed=composed.node.seed)

    def job(prepared: types.SimpleNamespace) -> None:
        prepared.files[0].write_text(str(prepared.seed))

    code, _, err = sweep("seed=1,2", "algo=cfr", prepare=prepare, job=job)
    assert (code, (tmp_path / "report.json").read_text()) == (1, "1")
    assert f"refused: {tmp_path / 'report.json'} is the result of job 0" in err
