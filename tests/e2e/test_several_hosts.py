"""Two processes as one run: the games of one process, an end that leaves a sound checkpoint, and wrong settings."""

from __future__ import annotations

import dataclasses
import pathlib
import signal
import socket
import subprocess
import time

import pytest
from command_support import TINY, command, finish, start, succeed, wait_for

from dream.storage.checkpoint import find, newest, sound_checkpoint
from dream.training import metrics
from dream.training.metrics import COUNTERS

PPO = (
    *TINY, "env=kuhn_poker", "algo=ppo", "algo.opponents=[random]", "algo.rollout_length=4", "algo.num_envs=8",
    "algo.batch_size=32", "checkpoint.every=1", "eval.every=1000000", "eval.games=8", "eval.final_games=8",
)  # fmt: skip


def _pair(*arguments: str, cwd: pathlib.Path) -> list[subprocess.Popen[str]]:
    """Starts a command in two processes that are one run, a device each."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"hosts.coordinator=127.0.0.1:{server.getsockname()[1]}"
    ours = (place, "hosts.count=2", "hosts.wait_seconds=120")
    return [start("dream.run", *arguments, *ours, f"hosts.index={index}", cwd=cwd) for index in range(2)]


def _played(run_dir: pathlib.Path, count: int) -> list[dict[str, float]]:
    """Returns what the first records say of the games."""
    kept = [record for record in metrics.read(run_dir) if record["iteration"] <= count]
    return [{k: x for k, x in record.items() if k in COUNTERS or k.startswith("self_play/")} for record in kept]


@dataclasses.dataclass
class Killed:
    """A run of two processes after the second was killed: what the first said, and how long it took to end."""

    run_dir: pathlib.Path
    done: subprocess.CompletedProcess[str]
    seconds: float


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Killed after three iterations at least."""
    folder = tmp_path_factory.mktemp("killed")
    first, second = _pair(*PPO, "run_dir=run", "iterations=1000000", cwd=folder)
    wait_for(lambda: (newest(folder / "run") or 0) >= 3, first)
    second.kill()
    began = time.monotonic()
    done = finish(first)
    seconds = time.monotonic() - began
    finish(second)
    return Killed(folder / "run", done, seconds)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The same for two iterations, by one process with two devices."""
    folder = tmp_path_factory.mktemp("alone")
    succeed("dream.run", *PPO, "run_dir=run", "iterations=2", cwd=folder, JAX_NUM_CPU_DEVICES="2")
    return folder / "run"


def test_a_killed_process_ends_the_other(killed: Killed) -> None:
    """Within a minute, in one line of its own, with a checkpoint to go on from and the folder given up."""
    assert killed.done.returncode == 1
    assert killed.seconds < 60
    lines = [line for line in killed.done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert lines[0].startswith("error: host 1 of 2 (process ")
    kept = sound_checkpoint(killed.run_dir)
    assert f" is gone; {kept.path}, of iteration {kept.meta['iteration']}, is sound" in lines[0]
    assert lines[0].endswith(f"go on with resume={killed.run_dir}")
    assert "Traceback" not in killed.done.stderr
    assert not (killed.run_dir / "run.lock").exists()


def test_two_hosts_play_what_one_does(killed: Killed, alone: pathlib.Path) -> None:
    """Counters and games of two iterations, with as many devices in all; two terms add up alike in either order."""
    played = _played(alone, 2)
    assert len(played) == 2
    assert played[1]["episodes"] > played[0]["episodes"] > 0
    assert _played(killed.run_dir, 2) == played


def test_a_run_of_two_hosts_goes_on_on_one(killed: Killed) -> None:
    """From the checkpoint that the killed one left; nothing of the hosts is kept in its settings."""
    before = find(killed.run_dir)
    done = before.meta["iteration"]
    assert before.meta["config"]["hosts"]["count"] is None
    succeed("dream.run", f"resume={killed.run_dir}", f"iterations={done + 1}", cwd=killed.run_dir.parent)
    after = find(killed.run_dir)
    assert after.meta["iteration"] == done + 1
    assert after.meta["counters"]["episodes"] > before.meta["counters"]["episodes"]


def test_a_run_of_one_host_goes_on_on_two(killed: Killed, alone: pathlib.Path) -> None:
    """To its end: evaluated, saved and said by the first alone."""
    before = find(alone).meta["counters"]["episodes"]
    ended = [finish(process) for process in _pair(f"resume={alone}", "iterations=3", cwd=alone.parent)]
    for done in ended:
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert "of 2 hosts" in ended[0].stdout
    assert "iteration 3 against random" in ended[0].stdout
    assert "iteration" not in ended[1].stdout
    assert find(alone).meta["iteration"] == 3
    assert find(alone).meta["counters"]["episodes"] > before
    assert (alone / "evaluation.json").is_file()
    assert [record["iteration"] for record in metrics.read(alone)] == [1, 2, 3]


def test_a_signal_to_one_host_is_one_to_all(tmp_path: pathlib.Path) -> None:
    """The second is asked to leave; both come to the same end, and the first saves."""
    quick = (*TINY, "env=kuhn_poker", "algo=cfr", "eval.opponents=[]", "eval.every=1000000000")
    pair = _pair(*quick, "run_dir=run", "iterations=1000000000", cwd=tmp_path)
    wait_for(lambda: (tmp_path / "run" / metrics.FILE).exists() and bool(metrics.read(tmp_path / "run")), pair[0])
    pair[1].send_signal(signal.SIGTERM)
    ended = [finish(process) for process in pair]
    assert [done.returncode for done in ended] == [143, 143], [done.stderr for done in ended]
    assert find(tmp_path / "run").meta["iteration"] == metrics.read(tmp_path / "run")[-1]["iteration"]


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
