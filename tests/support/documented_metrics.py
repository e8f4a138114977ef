"""The names of metrics that docs/metrics.md explains."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
_FIRST_CELL = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)


def documented() -> list[str]:
    """Returns the names in the first column of the page's tables, in order."""
    return [name for cell in _FIRST_CELL.findall(PAGE.read_text()) for name in re.findall(r"`([^`]+)`", cell)]


def is_documented(metric: str) -> bool:
    """Returns whether the page explains a metric; a part in angle brackets there stands for any name."""
    return any(re.fullmatch(re.sub("<[a-z]+>", "[^/]+", name), metric) for name in documented())
