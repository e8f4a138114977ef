"""How processes of one run meet, agree and hear of each other's end; sockets and threads stand for the processes."""

from __future__ import annotations

import pathlib
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from dream.config.schema import HostsConfig
from dream.config.settings import flat
from dream.training import hosts, link, meeting
from dream.training import start as training_start
from envs import InputError


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"coordinator": "a:1", "index": 0}, "hosts.count is missing; it must be the number of processes"),
        ({"coordinator": "a:1", "count": 2}, "hosts.index is missing; it must be from 0 to 1"),
        ({"coordinator": "a:1", "count": 2, "index": 2}, "hosts.index=2 is too large; it must be at most 1"),
        ({"count": 1, "index": 1}, "hosts.index=1 is too large; it must be at most 0 with hosts.count=1"),
        ({"count": 2, "index": 0}, "hosts.coordinator is missing; it must be address:port"),
        ({"coordinator": "node1", "count": 2, "index": 0}, "hosts.coordinator=node1 is not valid"),
        ({"coordinator": "node1:0", "count": 2, "index": 0}, "hosts.coordinator=node1:0 is not valid"),
        ({"coordinator": "node1:x", "count": 1, "index": 0}, "hosts.coordinator=node1:x is not valid"),
        ({"auto": True, "count": 2}, "hosts.auto=true finds coordinator, count and index"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings: dict[str, Any], line: str) -> None:
    """Before any process is waited for."""
    with pytest.raises(InputError) as error:
        hosts.join(HostsConfig(**settings))
    assert str(error.value).startswith(line)


@pytest.mark.parametrize("settings", [{}, {"count": 1}, {"coordinator": "a:1", "count": 1, "index": 0}])
def test_one_process_is_no_link(settings: dict[str, Any]) -> None:
    """It leads, and agrees with itself."""
    hosts.join(HostsConfig(**settings))
    assert not hosts.several()
    assert hosts.leads()
    hosts.same({"a": 1}, {})
    hosts.end()


def _met(callers: list[dict[str, Any]], count: int, seconds: float = 20.0) -> list[Future[Any]]:
    """Has processes call the first one; returns what became of it and of each of them."""
    with meeting.listen(0) as server, ThreadPoolExecutor() as pool:
        port = server.getsockname()[1]
        first = pool.submit(meeting.receive, server, count, seconds, {"port": 7})
        others = [pool.submit(meeting.call, ["127.0.0.1"], port, seconds, {"name": "x", **said}) for said in callers]
    return [first, *others]


def test_processes_meet() -> None:
    """Each is known by its index, in whatever order they come, and hears what the first says."""
    first, *others = _met([{"index": 2, "count": 3}, {"index": 1, "count": 3}], 3)
    assert sorted(first.result()) == [1, 2]
    assert [other.result()[1] for other in others] == [{"port": 7}, {"port": 7}]
    for peers in (first.result(), *(other.result()[0] for other in others)):
        for connection, _ in peers.values():
            connection.close()


@pytest.mark.parametrize(
    ("callers", "count", "seconds", "line"),
    [
        ([{"index": 1, "count": 3}], 2, 20, "hosts.count=2 on host 0 and 3 on host 1; it must be the same"),
        ([{"index": 1, "count": 3}] * 2, 3, 20, "hosts.index=1 is given to two processes; each must have its own"),
        ([{"index": 1, "count": 3}], 3, 0.5, "host 2 of 3 did not come within 0.5 s"),
    ],
)
def test_processes_that_do_not_fit_together(
    callers: list[dict[str, Any]], count: int, seconds: float, line: str
) -> None:
    """All that came hear why."""
    for process in _met(callers, count, seconds):
        assert str(process.exception()).startswith(line)


def test_a_first_process_that_is_not_there_is_named() -> None:
    """With the address that was tried."""
    port = meeting.free_port()
    with pytest.raises(InputError, match=f"host 0 of 2 did not answer at 127.0.0.1:{port} within 0.3 s"):
        meeting.call(["127.0.0.1"], port, 0.3, {"index": 1, "count": 2, "name": "x"})


def _linked() -> tuple[link.Link, link.Link]:
    """Returns the two ends of a link."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = socket.create_connection(server.getsockname())
        here = server.accept()[0]
    return link.Link(0, 2, {1: (here, "b")}, 20), link.Link(1, 2, {0: (there, "a")}, 20)


def _close(*ends: link.Link) -> None:
    for end in ends:
        end.close()
    for end in ends:
        end.wait_for_ends(10)


def test_values_are_the_first_ones() -> None:
    """In order, whatever the second would say; its own go the other way."""
    first, second = _linked()
    assert [first.of_the_first("turns", n) for n in (3, 5)] == [3, 5]
    assert [second.of_the_first("turns", 9) for _ in range(2)] == [3, 5]
    assert second.gathered({"x": None}) == {}
    assert first.gathered(0) == {1: {"x": None}}
    second.pass_on(15)
    second.gathered(0)
    first.gathered(0)
    assert first.signal == 15
    _close(first, second)


def test_settings_that_differ_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their path, with both values; the same ones pass."""
    first, second = _linked()
    monkeypatch.setattr(hosts, "_link", first)
    settings = {"algo": {"name": "ppo", "tau": 1}, "seed": 0}
    second.gathered({"algo.name": "ppo", "algo.tau": 1, "seed": 0, "jax": "1"})
    hosts.same(settings, {"jax": "1"})
    second.gathered({"algo.name": "ppo", "algo.tau": 2, "seed": 0, "jax": "1"})
    with pytest.raises(
        InputError, match=r"host 1 of 2 \(b\) has algo.tau=2, host 0 has 1; it must be the same for all"
    ):
        hosts.same(settings, {"jax": "1"})
    _close(first, second)


def test_opponents_that_differ_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is another one on another host, though its path is the same."""
    first, second = _linked()
    monkeypatch.setattr(hosts, "_link", first)

    def found(checksum: int) -> dict[str, Any]:
        trained = {"runs/other": {"iteration": 3, "checksum": checksum}}
        return training_start._found(SimpleNamespace(checkpoint=None, parts=SimpleNamespace(trained=trained)))

    second.gathered(flat(found(5)))
    hosts.same({}, found(5))
    second.gathered(flat(found(6)))
    with pytest.raises(InputError, match=r"has players.runs/other.checksum=6, host 0 has 5; it must be the same"):
        hosts.same({}, found(5))
    _close(first, second)


def test_processes_that_part_ways_are_seen() -> None:
    """A value of another name is not taken."""
    first, second = _linked()
    first.of_the_first("turns", 1)
    with pytest.raises(RuntimeError, match="host 0 is at 'turns', host 1 at 'late': they have diverged"):
        second.of_the_first("late", False)
    _close(first, second)


@pytest.mark.parametrize("way", ["gone", "left"])
def test_a_lost_process_ends_this_one(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one line, which says what to do; after a farewell with the code of the one that left."""
    ended, lines = threading.Event(), []
    monkeypatch.setattr(link, "end_process", lambda line, code: (lines.append((line, code)), ended.set()))
    monkeypatch.setattr(link, "_GRACE_SECONDS", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = socket.create_connection(server.getsockname())
        first = link.Link(0, 2, {1: (server.accept()[0], "b")}, 20)
    first.advice = lambda: "go on with resume=x"
    with there:
        if way == "left":
            there.sendall(b'{"leaves": "the loss is nan", "code": 2}\n')
            assert ended.wait(10)
    assert ended.wait(10)
    first.wait_for_ends(10)
    said, code = ("has left: the loss is nan", 2) if way == "left" else ("is gone", 1)
    assert lines == [(f"error: host 1 of 2 (b) {said}; go on with resume=x", code)]


ABORTED = """
import ctypes, socket, sys, threading, time
from dream.training import hosts, link

hosts._LOSS_SECONDS = float(sys.argv[1])
with socket.create_server(("127.0.0.1", 0)) as server:
    there = socket.create_connection(server.getsockname())
    hosts._delay_aborts(link.Link(1, 2, {0: (server.accept()[0], "a")}, 20))
threading.Thread(target=ctypes.CDLL(None).abort).start()
if sys.argv[2] == "lost":
    time.sleep(0.3)
    there.close()
time.sleep(100)
"""


@pytest.mark.parametrize(
    ("way", "seconds", "code", "said"),
    [
        ("lost", 100.0, 1, "error: host 0 of 2 (a) is gone; start all of them again\n"),
        ("kept", 0.3, -signal.SIGABRT, ""),
    ],
)
def test_an_abort_waits_for_the_line_about_a_lost_process(
    way: str, seconds: float, code: int, said: str, repo: pathlib.Path
) -> None:
    """As JAX aborts in the same moment; any other abort goes on after some seconds."""
    command = [sys.executable, "-c", ABORTED, str(seconds), way]
    done = subprocess.run(command, cwd=repo, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, said)
