"""Two processes as one run or match: what one process does, an end that leaves a sound checkpoint, wrong settings."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest
from command_support import TINY, command, finish, start, succeed, wait_for

from dream.storage.checkpoint import FOLDER, find, newest, sound_checkpoint
from dream.storage.reports import EVALUATIONS
from dream.training import metrics
from dream.training.metrics import COUNTERS

QUIET = (*TINY, "env=kuhn_poker", "checkpoint.every=1", "checkpoint.keep=5", "eval.opponents=[]", "eval.exact=false")
PPO = (
    *QUIET, "algo=ppo", "algo.opponents=[random]", "algo.rollout_length=4", "algo.num_envs=8", "algo.batch_size=32",
)  # fmt: skip
NFSP = (
    *QUIET, "algo=nfsp", "algo.anticipation=0.5", "algo.best_response.capacity=64", "algo.average.capacity=16",
)  # fmt: skip
"""Both buffers are full after the second iteration."""


def _pair(*arguments: str, cwd: pathlib.Path, module: str = "dream.run") -> list[subprocess.Popen[str]]:
    """Starts a command in two processes that are one run or match, a device each."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"hosts.coordinator=127.0.0.1:{server.getsockname()[1]}"
    ours = (place, "hosts.count=2", "hosts.wait_seconds=120")
    return [start(module, *arguments, *ours, f"hosts.index={index}", cwd=cwd) for index in range(2)]


def _finished(pair: list[subprocess.Popen[str]]) -> list[subprocess.CompletedProcess[str]]:
    """Waits for two processes that must succeed."""
    ended = [finish(process) for process in pair]
    assert [done.returncode for done in ended] == [0, 0], [done.stderr for done in ended]
    return ended


def _played(run_dir: pathlib.Path) -> list[dict[str, float]]:
    """Returns what the records say of the games."""
    counted = (*COUNTERS, "iteration")
    return [
        {name: x for name, x in record.items() if name in counted or name.startswith("self_play/")}
        for record in metrics.read(run_dir)
    ]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Three iterations by one process with two devices."""
    folder = tmp_path_factory.mktemp("alone")
    succeed("dream.run", *PPO, "run_dir=run", "iterations=3", cwd=folder, JAX_NUM_CPU_DEVICES="2")
    return folder / "run"


@dataclasses.dataclass
class Killed:
    """A run of two processes of which one was killed: how the other ended, and after how many seconds.

    Attributes:
      index: of the killed process.
      out: what the first process printed.
    """

    run_dir: pathlib.Path
    index: int
    done: subprocess.CompletedProcess[str]
    out: str
    seconds: float


@pytest.fixture(scope="module", params=[1, 0], ids=["second", "first"])
def killed(request: pytest.FixtureRequest, alone: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Two processes go on from the first iteration of one, and one of them is killed after three at least."""
    run_dir = tmp_path_factory.mktemp("killed") / "run"
    shutil.copytree(alone, run_dir)
    for later in ("2", "3"):
        shutil.rmtree(run_dir / FOLDER / later)
    pair = _pair(f"resume={run_dir}", "iterations=1000000", cwd=run_dir.parent)
    wait_for(lambda: (newest(run_dir) or 0) >= 4, pair[0])
    pair[request.param].kill()
    began = time.monotonic()
    done = finish(pair[1 - request.param])
    seconds = time.monotonic() - began
    gone = finish(pair[request.param])
    return Killed(run_dir, request.param, done, (gone if request.param == 0 else done).stdout, seconds)


def test_a_killed_process_ends_the_other(killed: Killed) -> None:
    """Within a minute, in one line of its own, with a checkpoint to go on from and the folder given up."""
    assert killed.done.returncode == 1
    assert killed.seconds < 60
    lines = [line for line in killed.done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert lines[0].startswith(f"error: host {killed.index} of 2 (")
    kept = sound_checkpoint(killed.run_dir)
    assert f" is gone; {kept.path}, of iteration {kept.meta['iteration']}, is sound" in lines[0]
    assert lines[0].endswith(f"go on with resume={killed.run_dir}")
    assert "Traceback" not in killed.done.stderr
    assert (killed.run_dir / "run.lock").exists() == (killed.index == 0), "a killed process leaves it behind"


def test_two_hosts_go_on_as_one_does(killed: Killed, alone: pathlib.Path) -> None:
    """Counters and games after a checkpoint of one, with as many devices in all; two terms add up alike either way."""
    assert "of 2 hosts" in killed.out
    played = _played(alone)
    assert len(played) == 3
    assert played[2]["episodes"] > played[1]["episodes"] > 0
    assert _played(killed.run_dir)[:3] == played


def test_a_run_of_two_hosts_goes_on_on_one(killed: Killed) -> None:
    """From the checkpoint that the killed one left; nothing of the hosts is kept in its settings."""
    before = sound_checkpoint(killed.run_dir)
    done = before.meta["iteration"]
    assert before.meta["config"]["hosts"]["count"] is None
    succeed("dream.run", f"resume={killed.run_dir}", f"iterations={done + 1}", cwd=killed.run_dir.parent)
    after = find(killed.run_dir)
    assert after.meta["iteration"] == done + 1
    assert after.meta["counters"]["episodes"] > before.meta["counters"]["episodes"]


def test_two_hosts_come_to_an_end(tmp_path: pathlib.Path) -> None:
    """A signal to the second is one to both; going on they end in good order, and the first alone speaks and writes."""
    quick = (*TINY, "env=kuhn_poker", "algo=cfr", "eval.every=1000000000", "checkpoint.every=1000000000")
    run_dir = tmp_path / "run"
    pair = _pair(*quick, "run_dir=run", "iterations=1000000000", cwd=tmp_path)
    wait_for(lambda: (run_dir / metrics.FILE).exists() and bool(metrics.read(run_dir)), pair[0])
    pair[1].send_signal(signal.SIGTERM)
    ended = [finish(process) for process in pair]
    assert [done.returncode for done in ended] == [143, 143], [done.stderr for done in ended]
    saved = find(run_dir).meta["iteration"]
    assert saved == metrics.read(run_dir)[-1]["iteration"]
    first, second = _finished(_pair("resume=run", f"iterations={saved + 2}", cwd=tmp_path))
    assert f"iteration {saved + 2} (average) against random" in first.stdout
    assert "iteration" not in second.stdout
    assert (run_dir / "evaluation.json").is_file()
    assert [record["iteration"] for record in metrics.read(run_dir)] == list(range(1, saved + 3))


def test_buffers_split_over_two_hosts_are_those_of_one(tmp_path: pathlib.Path) -> None:
    """A replay, a reservoir and what is fitted to them, to the last bit, as two terms add up alike in either order."""
    succeed("dream.run", *NFSP, "run_dir=alone", "iterations=2", cwd=tmp_path, JAX_NUM_CPU_DEVICES="2")
    for asked in ((*NFSP, "run_dir=pair", "iterations=1"), ("resume=pair", "iterations=2")):
        _finished(_pair(*asked, cwd=tmp_path))
    alone, pair = ([find(tmp_path / name / FOLDER / str(n)).meta for n in (1, 2)] for name in ("alone", "pair"))
    assert [meta["checksum"] for meta in pair] == [meta["checksum"] for meta in alone]
    assert [meta["counters"] for meta in pair] == [meta["counters"] for meta in alone]
    assert alone[1]["counters"]["decisions"] > alone[0]["counters"]["decisions"] > 0


def test_a_match_of_two_hosts_is_that_of_one(alone: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Every round and the report; the first host alone speaks and writes."""
    asked = ("checkpoint=run", "opponent=random", "games=64", "histories=rounds.jsonl")
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        shutil.copytree(alone, folder / "run")
    succeed("dream.evaluate", *asked, cwd=one, JAX_NUM_CPU_DEVICES="2")
    first, second = _finished(_pair(*asked, cwd=two, module="dream.evaluate"))
    assert "against random" in first.stdout
    assert "against random" not in second.stdout
    (report,), rounds = (one / "run" / EVALUATIONS).iterdir(), one / "rounds.jsonl"
    assert json.loads(report.read_text())["n"] == len(rounds.read_text().splitlines()) == 64
    for path in (report, rounds):
        assert (two / path.relative_to(one)).read_text() == path.read_text()


def test_a_host_that_does_not_come_is_named(tmp_path: pathlib.Path) -> None:
    """In one line, before anything is written."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ours = (f"hosts.coordinator=127.0.0.1:{port}", "hosts.count=3", "hosts.index=0", "hosts.wait_seconds=0.5")
    done = command("dream.run", *PPO, *ours, "run_dir=run", cwd=tmp_path)
    assert done.returncode == 2
    line = "error: hosts 1, 2 of 3 did not come within 0.5 s (hosts.wait_seconds); start every process with the same "
    assert done.stderr.splitlines() == [f"{line}hosts.coordinator"]
    assert not any(tmp_path.iterdir())
