"""Checkpoints and their runs' files, edited or damaged: read or refused in one line; never another exception.

Some runs are gone on with too: with no traceback, and with nothing changed where that is refused.
"""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from command_support import snapshot, succeed

import dream
from dream.config.compose import compose_config
from dream.storage import checkpoint
from dream.training import metrics
from dream.training.loop import train
from dream.training.signals import StopRequest
from dream.training.start import prepare_run, with_stored_choices
from envs import InputError
from trials.hold import BYTES

MOST_BYTES = 4 * BYTES
"""For all runs that are gone on with together: what each compiles stays reserved."""
_QUICK = (
    "env=kuhn_poker", "algo=external_mccfr", "algo.trajectories=8", "algo.batch=8", "tracking.mode=disabled",
    "eval.exact=false", "eval.opponents=[]", "eval.every=1000", "checkpoint.every=2", "iterations=4",
)  # fmt: skip
_SHARE = 4
"""One in so many trials goes on with a run, as long as there are such."""
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


def _line(text: str) -> Callable[[pathlib.Path], None]:
    """Returns what puts a line between a run's records."""

    def put(run: pathlib.Path) -> None:
        lines = (run / metrics.FILE).read_text().splitlines()
        (run / metrics.FILE).write_text("\n".join([lines[0], text, *lines[1:]]) + "\n")

    return put


def _folder(name: str) -> Callable[[pathlib.Path], None]:
    """Returns what puts a folder in the place of a run's file."""

    def put(run: pathlib.Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).mkdir()

    return put


def _content(name: str, data: bytes) -> Callable[[pathlib.Path], Any]:
    return lambda run: (run / name).write_bytes(data)


def _as_format_1(run: pathlib.Path) -> None:
    """Gives the newest checkpoint another seed, and takes what tells of it."""
    path = _newest(run).joinpath(*_META)
    meta = json.loads(path.read_text())
    del meta["meta_checksum"]
    path.write_text(json.dumps({**meta, "format": 1, "config": {**meta["config"], "seed": 99}}))


def _without_sums(run: pathlib.Path) -> None:
    """Damages the arrays of all checkpoints, and takes the sums of their files away."""
    for checkpoint_dir in (run / checkpoint.FOLDER).iterdir():
        (checkpoint_dir / "files.json").unlink()
        for file in (checkpoint_dir / "state").rglob("d/*"):
            data = file.read_bytes()
            file.write_bytes(data[: len(data) // 2] + b"?" * 8 + data[len(data) // 2 + 8 :])


_ODD = ("null", '"x"', "[1]", "{}", "NaN", "true", "-5", "2.5", "1e400", "9" * 4000, "9" * 5000)
RESUMED: dict[str, Callable[[pathlib.Path], Any]] = {
    **{
        f"a record of iteration {value:.9}, {len(value)} characters": _line(f'{{"iteration": {value}}}')
        for value in _ODD
    },
    "a record that is a folder": _folder(metrics.FILE),
    "a configuration that is a folder": _folder("config.yaml"),
    "a configuration of bytes": _content("config.yaml", b"\xff\xfe\x00: ["),
    "versions that are no JSON": _content("versions.json", b"{"),
    "a lock that is no JSON": _content("run.lock", b"\xff{"),
    "a lock of another process": _content("run.lock", b'{"pid": -1, "host": "x"}'),
    "a lock that is a folder": _folder("run.lock"),
    "an empty checkpoint": lambda run: (run / checkpoint.FOLDER / "9").mkdir(),
    "a renamed checkpoint": lambda run: (run / checkpoint.FOLDER / "4").rename(run / checkpoint.FOLDER / "8"),
    "another seed, as of format 1": _as_format_1,
    "damaged arrays without sums": _without_sums,
    "a checkpoint that is a file": _content(f"{checkpoint.FOLDER}/9", b"x"),
}
"""What is done to a run that is then gone on with."""
REFUSED = (
    "a record that is a folder", "a configuration that is a folder", "an empty checkpoint", "a renamed checkpoint",
    "another seed, as of format 1", "damaged arrays without sums",
)  # fmt: skip
"""Those of them that cannot be gone on with."""


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
    resumed = [(f"resumed with {what}", "resumed", _made(folder / "other", do)) for what, do in RESUMED.items()]
    if count:
        few = min(len(resumed), -(-count // _SHARE))
        found, resumed = _spread(found, count - few), _spread(resumed, few)
    yield from found + resumed


def _spread(items: list[Any], count: int) -> list[Any]:
    return [items[n] for n in np.linspace(0, len(items) - 1, count).astype(int)]


def _made(run: pathlib.Path, change: Callable[[pathlib.Path], Any]) -> Callable[[], Any]:
    """Returns what returns what makes a changed copy of a run."""

    def make(path: pathlib.Path) -> None:
        shutil.copytree(run, path, symlinks=True)
        change(path)

    return lambda: make


def warm_up(folder: pathlib.Path) -> None:
    """Makes a run of four iterations with its checkpoints, and one by a quick learner, which is gone on with."""
    small = ("env=kuhn_poker", "preset=tiny", "iterations=4", "checkpoint.every=2", "tracking.mode=disabled")
    succeed("dream.run", *small, "run_dir=run", cwd=folder)
    read(folder / "run")
    _train(*_QUICK, f"run_dir={folder / 'other'}")
    shutil.copytree(folder / "other", folder / "resumed", symlinks=True)
    read(folder / "resumed")


def read(path: pathlib.Path) -> None:
    """Loads the run's player, and its record; or goes on with the run."""
    if path.name == "resumed":
        _go_on(path)
    else:
        dream.load_policy(path)
        metrics.read(path)


def _go_on(run: pathlib.Path) -> None:
    before = snapshot(run)
    try:
        _train(*with_stored_choices([f"resume={run}", "iterations=5"]))
    except InputError:
        assert snapshot(run) == before, "changes files"
        raise
    assert [record["iteration"] for record in metrics.read(run)] == [1, 2, 3, 4, 5]


def _train(*overrides: str) -> None:
    """Runs in this process, silently; what begins a line with a brace on stdout is a trial's outcome."""
    with contextlib.redirect_stdout(io.StringIO()):
        train(prepare_run(compose_config("config", list(overrides))), StopRequest(listen=False))


def must_be_refused(name: str) -> bool:
    """Metadata that were edited; a file of the state that is gone or short may be one of orbax' own that none needs."""
    return name.startswith("metadata") or name.removeprefix("resumed with ") in REFUSED


def may(name: str) -> tuple[str, ...]:
    """A run that is gone on with is written to."""
    return ("",) if name.startswith("resumed") else ()
