"""Checkpoints and their runs' files, edited or damaged: read or refused in one line; never another exception."""

from __future__ import annotations

import json
import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from command_support import succeed

import dream
from dream.storage import checkpoint
from dream.training import metrics

_VALUES = (None, -5, "x\n\x1b[31m", [], {}, 10**30, True, "../../../etc")
_META = ("meta", "metadata")


def _leaves(node: Any, path: tuple = ()) -> Iterator[tuple]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield (*path, key)
            yield from _leaves(value, (*path, key))


def _edited(text: str, path: tuple, value: Any) -> str:
    """Returns JSON with a place's value replaced, or taken out where the value is `...`."""
    whole = json.loads(text)
    node = whole
    for key in path[:-1]:
        node = node[key]
    if value is ...:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return json.dumps(whole)


def _damages(data: bytes, rng: np.random.Generator) -> Iterator[tuple[str, bytes | None]]:
    """Yields what may happen to a file."""
    yield "taken away", None
    yield "emptied", b""
    yield "cut in half", data[: len(data) // 2]
    changed = bytearray(data)
    if changed:
        changed[int(rng.integers(len(changed)))] ^= 0x40
        yield "with a byte changed", bytes(changed)
    yield "deep lists", b"[" * 100_000


def _newest(run: pathlib.Path) -> pathlib.Path:
    return max((path for path in (run / checkpoint.FOLDER).iterdir() if path.name.isdigit()), key=lambda p: int(p.name))


def cases(count: int, seed: int, folder: pathlib.Path) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yields name, folder name, and what returns what makes the folder; `count` of them, spread over all."""
    rng, run = np.random.default_rng(seed), folder / "run"
    found: list[tuple[str, str, Callable[[], Any]]] = []

    def changed(file: pathlib.Path, data: bytes | None) -> Callable[[], Any]:
        def make(path: pathlib.Path) -> None:
            shutil.copytree(run, path, symlinks=True)
            target = path / file.relative_to(run)
            target.unlink()
            if data is not None:
                target.write_bytes(data)

        return lambda: make

    newest = _newest(run)
    meta = newest.joinpath(*_META)
    text = meta.read_text()
    for n, place in enumerate(_leaves(json.loads(text))):
        for value in (..., _VALUES[n % len(_VALUES)]):
            what = "taken out" if value is ... else repr(value)
            name = f"metadata {'.'.join(map(str, place))} {what}"
            edited = _edited(text, place, value)
            if json.loads(edited) != json.loads(text):
                found.append((name, "run", changed(meta, edited.encode())))
    files = [path for path in sorted(newest.rglob("*")) if path.is_file()]
    files += [path for path in sorted(run.iterdir()) if path.is_file()]
    for file in files:
        for what, data in _damages(file.read_bytes(), rng):
            found.append((f"{file.relative_to(run)} {what}", "run", changed(file, data)))
    if count:
        found = [found[n] for n in np.linspace(0, len(found) - 1, count).astype(int)]
    yield from found


def warm_up(folder: pathlib.Path) -> None:
    """Makes a run of four iterations with its checkpoints."""
    small = ("env=kuhn_poker", "preset=tiny", "iterations=4", "checkpoint.every=2", "tracking.mode=disabled")
    succeed("dream.run", *small, "run_dir=run", cwd=folder)
    read(folder / "run")


def read(path: pathlib.Path) -> None:
    """Loads the run's player, and its record."""
    dream.load_policy(path)
    metrics.read(path)


def must_be_refused(name: str) -> bool:
    """Metadata that were edited; a file of the state that is gone or short may be one of orbax' own that none needs."""
    return name.startswith("metadata")
