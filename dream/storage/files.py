"""Small files: JSON and JSON lines, written whole or not at all."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

CONFIG_FILE, VERSIONS_FILE, EVALUATION_FILE = "config.yaml", "versions.json", "evaluation.json"
"""In a run directory."""


def append_line(path: Path, record: dict[str, Any]) -> None:
    """Adds one line to a file; values that are not finite become null."""
    with path.open("a") as file:
        file.write(json.dumps(_finite(record)) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the records of a file, leaving out a last line that was cut off."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return records


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON file whole or not at all."""
    write_text(path, json.dumps(_finite(value), indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return _finite(value._asdict())
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
