"""Run directories made by hand, as scripts read them: configuration, sittings and metrics."""

from __future__ import annotations

import copy
import json
import pathlib
from typing import Any

import yaml

_CONFIG = {
    "env": {"name": "kuhn_poker", "rules": {}},
    "algo": {"name": "cfr_plus"},
    "network": {"name": "dueling"},
    "iterations": 4,
    "budget": {"nodes": None},
    "seed": 0,
}


def write_config(folder: pathlib.Path, **changed: Any) -> pathlib.Path:
    """Writes the configuration of a run of CFR+ on Kuhn poker.

    Args:
      folder: of the run; made if it is not there.
      **changed: settings by dotted name, a double underscore for the dot.
    Returns:
      The folder.
    """
    config = copy.deepcopy(_CONFIG)
    for name, value in changed.items():
        *parents, leaf = name.split("__")
        inside = config
        for parent in parents:
            inside = inside.setdefault(parent, {})
        inside[leaf] = value
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder


def write_sittings(folder: pathlib.Path, *commands: str, choices: dict[str, str] | None = None) -> None:
    """Writes by what a run was made: a sitting for each command, of commits c0, c1 and so on."""
    first, *later = [
        {"command": command, "git_commit": f"c{n}", "device": "cpu", "jax": "1", "load_1_minute": n, "cores": 1}
        | {"choices": choices or {}, "started_at_iteration": 2 * n}
        for n, command in enumerate(commands)
    ]
    (folder / "versions.json").write_text(json.dumps(first | ({"resumed": later} if later else {})))


def write_metrics(folder: pathlib.Path, rows: list[dict[str, Any]]) -> None:
    """Writes a run's records."""
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
