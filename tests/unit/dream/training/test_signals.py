"""Does a signal end a process whose main thread is inside one long compiled call?"""

from __future__ import annotations

import dataclasses
import pathlib
import signal
import subprocess
import sys
import time

import pytest

SCRIPT = """
import signal, sys, time
from dream.training.signals import StopRequest

def requeue(number, frame):
    print("requeued", flush=True)
    sys.exit(44)

if sys.argv[3] == "requeued":
    signal.signal(signal.SIGUSR2, requeue)
stop = StopRequest(grace=float(sys.argv[1]))
import jax, jax.numpy as jnp

@jax.jit
def long(x):
    return jax.lax.fori_loop(0, int(float(sys.argv[2])), lambda i, x: jnp.sin(x) + i * 1e-9, x)

def rescue():
    if sys.argv[3] == "broken":
        raise OSError("disk full")
    return "saved"

long.lower(jnp.ones(4)).compile()
if sys.argv[3] != "nothing to save":
    stop.protect()
with stop.call(rescue):
    print("inside", flush=True)
    long(jnp.ones(4)).block_until_ready()
stop.protect(False, "left later")
print("over", stop.exit_code, flush=True)
if sys.argv[3] == "later":
    time.sleep(100)
"""


@dataclasses.dataclass(frozen=True)
class Left:
    """How the process ended, and how long that took after the last signal."""

    code: int
    out: str
    err: str
    seconds: float


def leave(grace: float, steps: float, rescue: str, *numbers: int, repo: pathlib.Path) -> Left:
    """Sends signals to a process in a jitted loop of so many steps."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(grace), str(steps), rescue],
        cwd=repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "inside\n", process.communicate()
    if rescue == "later":
        assert process.stdout.readline() == "over 0\n"
    for number in numbers:
        time.sleep(0.3)
        process.send_signal(number)
    began = time.monotonic()
    out, err = process.communicate(timeout=120)
    return Left(process.returncode, out, err, time.monotonic() - began)


ENDLESS = 2e9


def test_a_call_that_is_not_over_within_the_grace_is_left(repo: pathlib.Path) -> None:
    """What was finished is saved, from another thread; the code is the signal's."""
    left = leave(1.0, ENDLESS, "works", signal.SIGTERM, repo=repo)
    assert left.code == 143
    assert left.seconds < 10
    assert left.err.split("\n")[1].startswith("SIGTERM: finishing the iteration and saving, for which it has 1 s")
    assert left.err.endswith("left in the middle of an iteration; saved\n")


def test_a_second_signal_ends_it_at_once(repo: pathlib.Path) -> None:
    """Nothing is saved any more, though the grace is long."""
    left = leave(1000.0, ENDLESS, "works", signal.SIGINT, signal.SIGTERM, repo=repo)
    assert (left.code, left.out) == (143, "")
    assert left.seconds < 10
    assert "left in the middle" not in left.err


def test_a_call_that_ends_within_the_grace_is_finished(repo: pathlib.Path) -> None:
    """The main thread goes on, and the exit code is there for it."""
    left = leave(1000.0, 2e8, "works", signal.SIGINT, repo=repo)
    assert (left.code, left.out) == (0, "over 130\n")


@pytest.mark.parametrize(
    ("rescue", "said"),
    [("broken", "could not be saved (OSError: disk full)\n"), ("nothing to save", ""), ("later", "left later\n")],
)
def test_what_it_says(rescue: str, said: str, repo: pathlib.Path) -> None:
    """A save that fails ends nothing but itself; without anything to save one signal is enough, in or after a call."""
    left = leave(0.2, 1.0 if rescue == "later" else ENDLESS, rescue, signal.SIGTERM, repo=repo)
    assert left.code == 143
    assert left.err.endswith(said)
    assert bool(left.err) == bool(said)
    assert left.seconds < 10


CHAINED = """
import os, signal, sys, time
from dream.training.signals import StopRequest
way, last = sys.argv[1], int(sys.argv[2])

def requeue(number, frame):
    print("requeued", flush=True)
    if way == "refused at once":
        raise RuntimeError("too many times")
    sys.exit(44)

signal.signal(signal.SIGUSR2, requeue)
signal.signal(signal.SIGTERM, lambda number, frame: print("bypassed", flush=True))
StopRequest()  # of an earlier job in the same process
stop = StopRequest(grace=0.3 if way == "left" else 1000.0)
if way in ("finished", "left"):
    stop.protect()
with stop.holding(lambda: print("given back", flush=True)):
    with stop.call(lambda: "saved"):
        print("inside", flush=True)
        until = time.monotonic() + 60
        while time.monotonic() < until and (way != "finished" or stop.received != last):
            time.sleep(0.01)
    stop.protect(False)
print("over", flush=True)
stop.hand_on()
sys.exit(stop.exit_code)
"""


def handed_on(way: str, *numbers: int, repo: pathlib.Path) -> tuple[int, list[str], str]:
    """Sends signals to a process in which others had handlers for them; returns its code, lines and errors."""
    process = subprocess.Popen(
        [sys.executable, "-c", CHAINED, way, str(int(numbers[-1]))],
        cwd=repo, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "inside\n", process.communicate()
    said = ""
    for number in numbers:
        process.send_signal(number)
        if number != numbers[-1]:
            while "finishing the iteration" not in said:
                said += process.stderr.readline()
    out, err = process.communicate(timeout=120)
    return process.returncode, out.splitlines(), said + err


@pytest.mark.parametrize(
    ("numbers", "code", "lines"),
    [
        ([signal.SIGUSR2], 44, ["over", "requeued"]),
        ([signal.SIGTERM], 143, ["over", "bypassed"]),
        ([signal.SIGTERM, signal.SIGUSR2], 44, ["over", "requeued"]),
        ([signal.SIGUSR2, signal.SIGTERM], 143, ["over", "bypassed"]),
    ],
)
def test_an_earlier_handler_is_called_when_all_is_done(
    numbers: list[int], code: int, lines: list[str], repo: pathlib.Path
) -> None:
    """By the newest signal; a second one leaves nothing at once, as schedulers send several."""
    ended = handed_on("finished", *numbers, repo=repo)
    assert ended[:2] == (code, lines)
    assert ended[2].count("finishing the iteration and saving") == 1
    assert "then its earlier handler is called" in ended[2]


@pytest.mark.parametrize(
    ("way", "numbers", "code", "lines", "said"),
    [
        ("left", [signal.SIGUSR2], 44, ["given back", "requeued"], "left in the middle of an iteration; saved\n"),
        ("left", [signal.SIGTERM], 143, ["given back", "bypassed"], "left in the middle of an iteration; saved\n"),
        ("refused at once", [signal.SIGUSR2], 140, ["given back", "requeued"], "RuntimeError: too many times\n"),
        ("at once", [signal.SIGUSR2], 44, ["given back", "requeued"], ""),
        ("finished", [signal.SIGUSR2, signal.SIGINT], 130, ["given back"], "its earlier handler is called\n"),
    ],
)
def test_an_earlier_handler_is_called_where_the_work_is_left(
    way: str, numbers: list[int], code: int, lines: list[str], said: str, repo: pathlib.Path
) -> None:
    """After what was finished is saved and the lock is given back; not by a signal that nobody handled."""
    ended = handed_on(way, *numbers, repo=repo)
    assert ended[:2] == (code, lines)
    assert ended[2].endswith(said)
    assert bool(ended[2]) == bool(said)


def test_an_earlier_handler_is_called_during_a_long_call(repo: pathlib.Path) -> None:
    """Though Python's own handlers would wait for its end."""
    left = leave(0.3, ENDLESS, "requeued", signal.SIGUSR2, repo=repo)
    assert (left.code, left.out) == (44, "requeued\n")
    assert left.seconds < 10
    assert left.err.endswith("left in the middle of an iteration; saved\n")


def test_signals_that_nobody_handles_are_left_alone(repo: pathlib.Path) -> None:
    """SIGUSR2 ends a process as it always does."""
    assert leave(1000.0, ENDLESS, "works", signal.SIGUSR2, repo=repo).code == -signal.SIGUSR2
