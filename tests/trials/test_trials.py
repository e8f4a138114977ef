"""A part of the trials, each kind in a process of its own: all hold. experiments/trials.py runs them at length."""

from __future__ import annotations

import base64
import json
import pathlib

import pytest

from dream.storage.foreign.networks import read_network
from trials import attacks, hold, inputs, kills, records, weights

PART = {"attacks": 0, "mutations": 300, "weights": 0, "records": 0, "checkpoints": 12, "inputs": 24}
"""Kind -> how many, 0 for all."""
LEAST = {
    "attacks": 150, "mutations": 10_000, "weights": 60, "records": 40, "checkpoints": 80, "inputs": 150, "kills": 20,
}  # fmt: skip
"""Kind -> how many the stored result must hold at least."""
STORED = json.loads((pathlib.Path(__file__).parent / "stored.json").read_text())


@pytest.mark.parametrize("kind", PART)
def test_all_hold(tmp_path: pathlib.Path, kind: str) -> None:
    """Nothing executes, hangs, takes much memory or answers with a traceback; what is wrong is refused."""
    outcomes = hold.run_child(kind, PART[kind], 1, tmp_path)
    assert [one for one in outcomes if one.why] == []
    assert len(outcomes) >= (PART[kind] or LEAST[kind])


def test_one_kill_holds(tmp_path: pathlib.Path) -> None:
    """What was saved before it is there, and is that of a run left alone."""
    assert [one.why for one in kills.run(1, 1, tmp_path)] == [""]


@pytest.mark.parametrize("kind", LEAST)
def test_the_stored_result_is_of_the_promised_size(kind: str) -> None:
    """And nothing in it did not hold; a new run of the trials must try as many."""
    stored = json.loads((hold.ROOT / "experiments" / "results" / "trials.json").read_text())[kind]
    assert stored["tried"] >= LEAST[kind]
    assert stored["held"] == stored["tried"]
    assert stored["failed"] == []


def test_what_does_not_hold_is_seen(tmp_path: pathlib.Path) -> None:
    """The rule itself: a file opened, a process, a hang, a traceback, two lines, memory, silence."""
    script = (
        "import pathlib, subprocess, sys, os\nfrom trials import hold\nfrom envs import InputError\n"
        "folder = pathlib.Path(sys.argv[1])\nwatch = hold.Watch(folder)\nhold.limit()\nhold.SECONDS = 0.5\n"
        "import time\nhold.PATIENCE = 10.0\n"
        "def lines():\n    raise InputError('a\\nb')\n"
        "def spin():\n    n = 0\n    while True:\n        n += 1\n"
        "for name, read in {'open': lambda: open(folder / 'mark', 'w').close(), 'run': lambda: os.system('true'),\n"
        "    'spin': spin, 'traceback': lambda: 1 / 0, 'lines': lines, 'memory': lambda: bytearray(2**31),\n"
        "    'silent': lambda: None, 'wait': lambda: time.sleep(100)}.items():\n"
        "    print(name, '|', watch.trial(name, read, must_be_refused=True).why)\n"
    )
    done = hold.subprocess.run(
        [hold.sys.executable, "-c", script, str(tmp_path)],
        env={**hold.os.environ, "PYTHONPATH": f"{hold.ROOT}:{hold.ROOT / 'tests'}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    printed = dict(line.split(" | ") for line in done.stdout.splitlines())
    expected = {
        "open": "does more than read: opening of",
        "run": "does more than read: os.system",
        "spin": "hangs past",
        "traceback": "ZeroDivisionError",
        "lines": "more than a printable line",
        "memory": "MemoryError",
        "silent": "is not refused",
        "wait": "hangs past 10 seconds of waiting",
    }
    assert printed.keys() == expected.keys()
    for name, part in expected.items():
        assert part in printed[name], name


@pytest.mark.parametrize("name", STORED)
def test_stored_pickles_of_others_are_read(tmp_path: pathlib.Path, name: str) -> None:
    """As Haiku's, Flax's and JAX's own code wrote them once, whatever versions are installed here."""
    path = tmp_path / "foreign.pkl"
    path.write_bytes(base64.b64decode(STORED[name]))
    foreign = read_network(path)
    assert foreign.game["name"] == "leduc_poker"
    assert foreign.network["hidden"] == [8, 6]


def test_the_corpora_are_of_the_promised_size(tmp_path: pathlib.Path) -> None:
    """Under names of their own; those of checkpoints are made of a run, and damage and kills are drawn."""
    for module in (attacks, weights, records, inputs):
        names = [name for name, _, _ in module.cases(0, 0, tmp_path)]
        assert len(names) >= LEAST[module.__name__.rpartition(".")[2]]
        assert module is inputs or len(set(names)) == len(names)
