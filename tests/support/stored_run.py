"""A run as its checkpoint's meta alone has it, for tests of how runs go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dream.config.compose import compose_config
from dream.training.beginning import Start
from dream.training.start import prepare_run, with_stored_choices


def write_meta(run: Path, start: Start, **more: Any) -> None:
    """Writes the meta of a run's checkpoint after four iterations."""
    meta = {
        "format": 1,
        "iteration": 4,
        "checksum": 0,
        "config": {name: value for name, value in start.plain.items() if name not in ("devices", "hosts")},
        "choices": start.choices,
        "game": start.parts.game.identity,
        **more,
    }
    folder = run / "checkpoints" / "4" / "meta"
    folder.mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps(meta))


def changed(stored: Path, **changed: Any) -> None:
    """Changes the meta of the stored run's checkpoint, by dotted name with __ for dots."""
    meta_file = stored / "checkpoints" / "4" / "meta" / "metadata"
    meta = json.loads(meta_file.read_text())
    for name, value in changed.items():
        *path, last = name.split("__")
        part = meta
        for key in path:
            part = part[key]
        part[last] = value
    meta_file.write_text(json.dumps(meta))


def resumed(stored: Path, *given: str) -> Start:
    """Returns the start of the run that goes on with these overrides."""
    return prepare_run(compose_config("config", with_stored_choices([f"resume={stored}", *given])))
