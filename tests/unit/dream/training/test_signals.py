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
import sys, time
from dream.training.signals import StopRequest
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
    left = leave(1000.0, 3e7, "works", signal.SIGINT, repo=repo)
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
