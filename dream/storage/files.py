"""Small files: JSON and JSON lines, written whole or not at all; and what to say where a disk refuses."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from envs.errors import InputError

CONFIG_FILE, VERSIONS_FILE, EVALUATION_FILE = "config.yaml", "versions.json", "evaluation.json"
"""In a run directory."""
_FULL = {errno.ENOSPC, errno.EDQUOT}
_CLOSED = {errno.EACCES, errno.EPERM, errno.EROFS}


class StorageError(RuntimeError):
    """A write failed while work was under way: one line with what failed, what is safe and what to do."""


def why_not(error: OSError) -> tuple[str, str]:
    """Returns why the system refused, and what to do about it, in words."""
    reason = error.strerror or str(error).splitlines()[0]
    if error.errno in _FULL:
        return reason, "make room on the disk"
    if error.errno in _CLOSED:
        return reason, "make the folder writable"
    if error.errno == errno.EFBIG:
        return reason, "raise the limit on the size of a file (ulimit -f)"
    if error.errno == errno.ENOENT:
        return reason, "the folder is gone; put it back"
    return reason, "check the disk"


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns what the system says of a failed write of a report into a StorageError."""
    try:
        yield
    except OSError as error:
        reason, mend = why_not(error)
        raise StorageError(f"{path} cannot be written ({reason}); {mend}") from error


def append_lines(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Adds a line for each record to a file, in one write; values that are not finite become null."""
    text = "".join(json.dumps(_finite(record)) + "\n" for record in records)
    rest = memoryview(text.encode())
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        while rest:  # a disk that fills up takes a part, and refuses the next
            rest = rest[os.write(file, rest) :]
    finally:
        os.close(file)


def read_lines(path: Path, fits: Callable[[dict[str, Any]], bool] = bool) -> list[dict[str, Any]]:
    """Returns the records of a file: its sound lines.

    A last line that was cut off is left out, as a killed process leaves it. Other damaged lines are left out too, and
    their number is printed on stderr.

    Args:
      path: of the file; one that does not exist has no records.
      fits: whether a record is sound; any that is not empty by default.
    Raises:
      InputError: it cannot be read as a file.
    """
    records, damaged = scan_lines(path, fits)
    if damaged:
        lines = f"{damaged} damaged line" + "s" * (damaged > 1)
        print(f"warning: {path} has {lines}, left out; {len(records)} are sound", file=sys.stderr)
    return records


def scan_lines(path: Path, fits: Callable[[dict[str, Any]], bool] = bool) -> tuple[list[dict[str, Any]], int]:
    """Returns the sound records of a file and how many lines are damaged, a last line that was cut off not counted."""
    lines = _content(path).split(b"\n")
    records, damaged = [], 0
    for number, line in enumerate(lines):
        record = _record(line)
        if record is not None and fits(record):
            records.append(record)
        elif line.strip() and number < len(lines) - 1:
            damaged += 1
    return records, damaged


def ends_cut_off(path: Path) -> bool:
    """Returns whether a file's last line was cut off, so that it holds no record."""
    last = _content(path).rpartition(b"\n")[2]
    return bool(last.strip()) and _record(last) is None


def _content(path: Path) -> bytes:
    """Returns what a file holds, nothing where there is none; raises InputError where it cannot be read."""
    try:
        if not path.exists():
            return b""
        if not path.is_file():
            raise InputError(f"{path} is not a file; it must be a file with a record on each line")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({why_not(error)[0]}); it must be a file that can") from error


def decoded(text: str | bytes) -> Any:
    """Returns what a JSON text says; raises ValueError where it is none, or nests too deep to read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that nests too deep") from None


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        record = decoded(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file whole or not at all."""
    write_text(path, json.dumps(_finite(value), indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return _finite(value._asdict()) if hasattr(value, "_asdict") else [_finite(item) for item in value]
    return value
