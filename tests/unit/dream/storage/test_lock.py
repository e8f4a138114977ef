"""One process for one run directory: who may have it, and what is said to the others."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dream.storage import lock
from dream.storage.lock import FILE, RunLock
from envs import InputError

HOLD = """
import sys
from dream.storage.lock import RunLock
held = RunLock(sys.argv[1])
held.acquire()
print("held", flush=True)
input()
"""


def _refused(folder: Path, *parts: str) -> None:
    with pytest.raises(InputError) as error:
        RunLock(folder).acquire()
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


def _left(folder: Path, **owner: object) -> None:
    known = {"pid": os.getpid(), "host": socket.gethostname(), "started": lock._start(os.getpid()), "since": "then"}
    (folder / FILE).write_text(json.dumps({**known, **owner}))


def test_it_is_taken_once_and_released(tmp_path: Path) -> None:
    """A second one is refused while the first holds it, and gets it afterwards; no file stays."""
    with RunLock(tmp_path) as one:
        one.acquire()
        one.acquire()
        owner = json.loads((tmp_path / FILE).read_text())
        assert (owner["pid"], owner["host"]) == (os.getpid(), socket.gethostname())
        _refused(tmp_path, f"in use by process {os.getpid()} on {socket.gethostname()}", "choose another folder")
    assert not (tmp_path / FILE).exists()
    with RunLock(tmp_path) as two:
        two.acquire()


def test_a_look_takes_and_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder in use is refused; a free one, or one whose owner is gone, stays as it is."""
    RunLock(tmp_path).check_free()
    assert list(tmp_path.iterdir()) == []
    with RunLock(tmp_path) as one:
        one.acquire()
        with pytest.raises(InputError, match="is in use by process"):
            RunLock(tmp_path).check_free()
    _left(tmp_path, pid=2**22 + 1)
    before = (tmp_path / FILE).read_bytes()
    RunLock(tmp_path).check_free()
    assert (tmp_path / FILE).read_bytes() == before
    assert capsys.readouterr().err == ""


def test_it_is_released_after_an_error(tmp_path: Path) -> None:
    """Whatever the error is."""

    def fail() -> None:
        with RunLock(tmp_path) as one:
            one.acquire()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_another_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused by name while it lives; once it was killed its lock is taken over, and that is said."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    _refused(tmp_path, f"in use by process {process.pid}")
    process.kill()
    process.communicate()
    assert (tmp_path / FILE).exists()
    with RunLock(tmp_path) as mine:
        mine.acquire()
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert f"process {process.pid}" in said
    assert not (tmp_path / FILE).exists()


def test_a_number_that_another_process_has_now(tmp_path: Path) -> None:
    """The start differs: whoever left the lock is gone, although its number is in use."""
    _left(tmp_path, started="another boot 17")
    with RunLock(tmp_path) as mine:
        mine.acquire()


def test_without_locks_of_the_system_the_file_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on some network file systems: a living owner is refused, a dead one's lock is taken over."""

    def none(file: int, how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(lock.fcntl, "flock", none)
    _left(tmp_path)
    _refused(tmp_path, f"in use by process {os.getpid()}", "since then")
    _left(tmp_path, pid=2**22 + 5)
    with RunLock(tmp_path) as mine:
        mine.acquire()


def test_another_host(tmp_path: Path) -> None:
    """Nothing can be known of its process: the file to delete is named, and stays."""
    _left(tmp_path, host="elsewhere", pid=1)
    _refused(tmp_path, "process 1 on elsewhere", f"delete {tmp_path / FILE}")
    assert (tmp_path / FILE).exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "1"}', "\x00" * 9, "[" * 4096])
def test_a_file_that_says_nothing(tmp_path: Path, text: str) -> None:
    """As a process killed while it wrote it leaves it: nobody has it."""
    (tmp_path / FILE).write_text(text)
    with RunLock(tmp_path) as mine:
        mine.acquire()
        assert json.loads((tmp_path / FILE).read_text())["pid"] == os.getpid()
