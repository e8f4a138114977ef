"""Runs the project's commands as a user would: in their own process, in an empty folder."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

REPO = pathlib.Path(__file__).resolve().parents[2]
TINY = ("preset=tiny", "tracking.mode=disabled")
PATIENCE = 600.0
"""Seconds after which a command counts as hanging; a cold compilation cache on a busy machine included."""


def environment(**changes: str) -> dict[str, str]:
    """Returns the environment of a command: the tests' cache, quick compiling, no terminal colours, `changes`."""
    return {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "COLUMNS": "200", "WANDB_SILENT": "true", **changes}


def start(module: str, *arguments: str, cwd: pathlib.Path, **changes: str) -> subprocess.Popen[str]:
    """Starts `python -m module arguments` (or a script, if `module` ends in .py)."""
    code = [module] if module.endswith(".py") else ["-m", module]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(
        [sys.executable, *code, *arguments], cwd=cwd, env=environment(**changes), text=True, **pipes
    )


def finish(process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """Waits for a command and returns its exit code and output."""
    out, err = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def command(module: str, *arguments: str, cwd: pathlib.Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    return finish(start(module, *arguments, cwd=cwd, **changes))


def succeed(module: str, *arguments: str, cwd: pathlib.Path, **changes: str) -> subprocess.CompletedProcess[str]:
    """Runs a command that must succeed, without a traceback."""
    done = command(module, *arguments, cwd=cwd, **changes)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Waits until a condition holds while a process runs."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def snapshot(folder: pathlib.Path) -> dict[str, str]:
    """Returns every path under a folder and, for files, a digest and the time of change.

    A folder's own time changes where a lock was held in it for a moment.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        file = path.is_file()
        digest = f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}" if file else "folder"
        found[str(path.relative_to(folder))] = digest
    return found


def without_seconds(record: dict) -> dict:
    """Returns a record without what differs from machine to machine."""
    return {name: value for name, value in record.items() if "seconds" not in name}


def wandb_records(run_dir: pathlib.Path) -> list[Any]:
    """Returns the records of each offline W&B run of a run directory, oldest first: one list of protobufs a file.

    The file is a log of 32 KiB blocks after a header of 7 bytes, as LevelDB's format tells: each piece has a checksum
    of 4 bytes, a length of 2 and a kind of 1 (whole, first, middle, last).
    """
    from wandb.proto import wandb_internal_pb2

    found = []
    for file in sorted(run_dir.glob("wandb/offline-run-*/run-*.wandb")):
        data, place, whole, records = file.read_bytes(), 7, b"", []
        while place + 7 <= len(data):
            if (left := 32768 - place % 32768) < 7:
                place += left
                continue
            _, length, kind = struct.unpack_from("<IHB", data, place)
            whole += data[place + 7 : place + 7 + length]
            place += 7 + length
            if kind in (1, 4):
                records.append(wandb_internal_pb2.Record.FromString(whole))
                whole = b""
        found.append(records)
    return found


def wandb_history(run_dir: pathlib.Path) -> list[dict[str, Any]]:
    """Returns what the offline W&B runs of a run directory logged, one record a call."""
    logged = [one.history for records in wandb_records(run_dir) for one in records if one.HasField("history")]
    return [{x.key or "/".join(x.nested_key): json.loads(x.value_json) for x in one.item} for one in logged]
