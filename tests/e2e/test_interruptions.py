"""A run that is killed, stopped and resumed over and over loses nothing that was saved, and equals one left alone."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import jax
import pytest
from command_support import TINY, environment, finish, start, wait_for

import dream
import envs
from dream import algorithms
from dream.storage.checkpoint import FOLDER, find
from dream.storage.checkpoint_arrays import checksum
from dream.training import metrics

ENDLESS = (*TINY, "iterations=1000000", "checkpoint.every=1", "eval.every=1000000", "eval.opponents=[]")
CAUGHT = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM}


def _lines(run_dir: pathlib.Path) -> int:
    path = run_dir / "metrics.jsonl"
    return len(path.read_text().splitlines()) if path.exists() else 0


def _unfinished(run_dir: pathlib.Path) -> set[pathlib.Path]:
    """Returns the checkpoints that are being written."""
    return {path for path in (run_dir / FOLDER).iterdir() if not path.name.isdigit()}


def _left_cleanly(process: subprocess.Popen[str], number: int) -> str:
    """Checks that a process that got a signal ended as it should; returns what it said on stderr."""
    done = finish(process)
    assert done.returncode in (0, 128 + number), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert "KeyboardInterrupt" not in done.stderr
    return done.stderr


@dataclasses.dataclass
class Chain:
    """One run, interrupted again and again; after each stage the latest checkpoint's iteration."""

    run_dir: pathlib.Path
    stages: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    said: dict[str, str] = dataclasses.field(default_factory=dict)

    def go_on(self, iterations: int) -> subprocess.Popen[str]:
        """Starts or resumes the run and waits until it has recorded some iterations more."""
        target = (self.stages[-1][1] if self.stages else 0) + iterations
        how = (f"resume={self.run_dir}",) if self.stages else (*ENDLESS, f"run_dir={self.run_dir}")
        process = start("dream.run", *how, cwd=self.run_dir.parent)
        wait_for(lambda: _lines(self.run_dir) >= target, process)
        return process

    def ended(self, name: str) -> None:
        """Notes where a stage has left the run."""
        self.stages.append((name, find(self.run_dir).meta["iteration"]))


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Chain:
    """Killed between two saves, killed while a checkpoint is being written, stopped by SIGTERM, by SIGINT."""
    chain = Chain(tmp_path_factory.mktemp("chain") / "run")
    process = chain.go_on(3)
    process.kill()
    finish(process)
    chain.ended("kill")
    process = chain.go_on(2)
    known = _unfinished(chain.run_dir)
    wait_for(lambda: bool(_unfinished(chain.run_dir) - known), process)
    process.kill()
    finish(process)
    chain.ended("kill while saving")
    for name, number in CAUGHT.items():
        process = chain.go_on(2)
        process.send_signal(number)
        chain.said[name] = _left_cleanly(process, number)
        assert _lines(chain.run_dir) == find(chain.run_dir).meta["iteration"], "all that was done is saved"
        chain.ended(name)
    return chain


def test_every_interruption_leaves_a_checkpoint_to_go_on_from(chain: Chain) -> None:
    """Each stage found the last one's work and went on from it; killing loses at most the iteration under way."""
    iterations = [iteration for _, iteration in chain.stages]
    assert len(iterations) == 4
    assert iterations[0] >= 2
    assert all(after > before for before, after in zip([0, *iterations], iterations, strict=False))


def test_signals_say_what_happens(chain: Chain) -> None:
    """Named, once, in one line."""
    for name, said in chain.said.items():
        assert [name in line for line in said.splitlines()].count(True) == 1


def test_an_interrupted_run_equals_one_left_alone(chain: Chain) -> None:
    """The last state's checksum is that of as many iterations in one process; the record has each iteration once."""
    checkpoint = find(chain.run_dir)
    config, iteration = checkpoint.meta["config"], checkpoint.meta["iteration"]
    learner = algorithms.make(config["algo"], config["network"], envs.make("gin_rummy", **config["env"]["rules"]))
    state, reported = learner.init(jax.random.key(config["seed"])), []
    for _ in range(iteration):
        state, record = learner.iterate(state)
        reported.append(record["loss"])
    plain = jax.tree.map(
        lambda x: jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x, state
    )
    assert checksum(plain) == checkpoint.meta["checksum"]
    records = metrics.read(chain.run_dir)
    assert [record["iteration"] for record in records] == list(range(1, iteration + 1))
    assert [record["loss"] for record in records] == reported
    assert [record["episodes"] for record in records] == [16 * n for n in range(1, iteration + 1)]


def test_an_interrupted_runs_policy_can_be_loaded(chain: Chain) -> None:
    """By its folder, whatever lies beside the checkpoints."""
    assert callable(dream.load_policy(chain.run_dir))
    kept = sorted(int(path.name) for path in (chain.run_dir / FOLDER).iterdir() if path.name.isdigit())
    assert kept[-1] == chain.stages[-1][1]
    assert len(kept) <= 3


@pytest.fixture
def compiling(tmp_path: pathlib.Path) -> Iterator[tuple[subprocess.Popen[str], pathlib.Path]]:
    """A run that has made its folder but done no iteration."""
    run_dir = tmp_path / "run"
    process = start("dream.run", *ENDLESS, f"run_dir={run_dir}", cwd=tmp_path)
    wait_for(lambda: (run_dir / "metrics.jsonl").exists(), process)
    yield process, run_dir
    process.kill()


def test_a_signal_during_the_first_iteration(compiling: tuple[subprocess.Popen[str], pathlib.Path]) -> None:
    """The iteration is finished and saved; where compiling takes longer than the grace, the run can start over."""
    process, run_dir = compiling
    process.send_signal(signal.SIGTERM)
    said = _left_cleanly(process, signal.SIGTERM)
    assert json.loads((run_dir / "versions.json").read_text())["started_at_iteration"] == 0
    if "left in the middle of an iteration" in said:
        assert f"run_dir={run_dir} starts over" in said
        assert _lines(run_dir) == 0
    else:
        assert find(run_dir).meta["iteration"] == _lines(run_dir)


def test_a_second_signal_leaves_at_once(compiling: tuple[subprocess.Popen[str], pathlib.Path]) -> None:
    """Without a traceback, whatever the process is at; the folder is given up, for another machine too."""
    process, run_dir = compiling
    wait_for(lambda: _lines(run_dir) >= 2, process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _left_cleanly(process, signal.SIGINT)
    assert not (run_dir / "run.lock").exists()
    assert find(run_dir).meta["iteration"] >= 1


KUHN = (
    "preset=tiny",
    "env=kuhn_poker",
    "algo=cfr",
    "tracking.mode=disabled",
    "eval.opponents=[]",
    "eval.every=1000000",
)


def test_a_run_killed_before_its_first_checkpoint_starts_over(tmp_path: pathlib.Path) -> None:
    """By the command that made it; its record begins anew."""
    arguments = (*KUHN, "run_dir=run", "iterations=1000000", "checkpoint.every=1000000")
    file = tmp_path / "run" / "versions.json"
    for number in (signal.SIGKILL, signal.SIGTERM):
        old = file.stat().st_mtime_ns if file.exists() else 0
        process = start("dream.run", *arguments, cwd=tmp_path)
        wait_for(lambda old=old: file.exists() and file.stat().st_mtime_ns > old, process)
        wait_for(lambda: _lines(tmp_path / "run") >= 3, process)
        process.send_signal(number)
        done = finish(process)
        assert ("starts over" in done.stdout) == (number == signal.SIGTERM)
    records = metrics.read(tmp_path / "run")
    assert [record["iteration"] for record in records] == list(range(1, find(tmp_path / "run").meta["iteration"] + 1))


def test_a_long_iteration_is_left(tmp_path: pathlib.Path) -> None:
    """Between two of its calls, within seconds; what was done before it is saved, and the run can go on."""
    process = start("dream.run", *KUHN, "run_dir=run", "algo.updates=1000000000", cwd=tmp_path)
    wait_for(lambda: (tmp_path / "run" / "metrics.jsonl").exists(), process)
    time.sleep(3)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    done = finish(process)
    assert done.returncode == 143
    assert time.monotonic() - began < 30
    assert done.stdout.startswith("cfr on kuhn_poker · 4 iterations · full updates per iteration: 1,000,000,000\n")
    assert "the iteration under way is left\n" in done.stdout
    assert find(tmp_path / "run").meta["iteration"] == 0


def _read(terminal: int) -> bytes:
    """Returns what has been printed on a terminal, as one that shows it does."""
    with contextlib.suppress(BlockingIOError):
        return os.read(terminal, 1 << 16)
    return b""


@pytest.mark.parametrize("ignored", [False, True])
def test_a_closed_terminal_loses_nothing(tmp_path: pathlib.Path, ignored: bool) -> None:
    """As where ssh loses its connection: the terminal is gone, and SIGHUP follows unless it is ignored (nohup)."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    arguments = (*KUHN, "run_dir=run", "iterations=1000000000", "checkpoint.every=1000000000")
    command = [sys.executable, "-m", "dream.run", *arguments]
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    # The process inherits how SIGHUP is taken, whatever the tests were started by.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), **streams) as process:
        signal.signal(signal.SIGHUP, before)
        try:
            os.close(theirs)
            wait_for(lambda: _read(ours) is not None and _lines(tmp_path / "run") >= 3, process)
            os.close(ours)
            process.send_signal(signal.SIGHUP)
            if ignored:
                done = _lines(tmp_path / "run")
                time.sleep(12)  # lines of progress are printed every few seconds
                wait_for(lambda: _lines(tmp_path / "run") > done, process)
                process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 128 + (signal.SIGTERM if ignored else signal.SIGHUP)
        finally:
            process.kill()
    assert find(tmp_path / "run").meta["iteration"] == _lines(tmp_path / "run")
    assert not (tmp_path / "run" / "run.lock").exists()


def _handles(process: subprocess.Popen[str], number: int) -> bool:
    """Returns whether a process has taken a signal over, from Linux's /proc."""
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's /proc")
@pytest.mark.parametrize(("name", "delay"), [("SIGTERM", 0.0), ("SIGINT", 0.4), ("SIGTERM", 1.0)])
def test_a_signal_while_starting(tmp_path: pathlib.Path, name: str, delay: float) -> None:
    """Before there is anything to save the process just ends, within seconds and without a traceback.

    SIGTERM is waited for, as Python itself takes SIGINT over when it starts.
    """
    process = start("dream.run", *ENDLESS, "run_dir=run", cwd=tmp_path)
    wait_for(lambda: _handles(process, signal.SIGTERM), process)
    time.sleep(delay)
    process.send_signal(CAUGHT[name])
    _left_cleanly(process, CAUGHT[name])
    assert not (tmp_path / "run").exists() or (tmp_path / "run" / "metrics.jsonl").exists()
