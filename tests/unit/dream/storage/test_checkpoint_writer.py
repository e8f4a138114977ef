"""Checkpoints are written whole or not at all; a disk that refuses is reported in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checkpoint_states import META

from dream.storage import checkpoint_writer
from dream.storage.checkpoint import FOLDER, find, sound_checkpoint
from dream.storage.checkpoint_writer import CheckpointWriter
from envs import InputError


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[CheckpointWriter]:
    """Writes into tmp_path / run and keeps two."""
    made = CheckpointWriter(tmp_path / "run", keep=2)
    yield made
    made.close()


def test_keeps_the_latest_two(writer: CheckpointWriter, tmp_path: Path) -> None:
    """Of five checkpoints the last two stay, and they are readable."""
    for iteration in (1, 2, 3, 10, 11):
        writer.save(iteration, {"x": jnp.full(4, iteration)}, META)
    assert sorted(p.name for p in (tmp_path / "run" / FOLDER).iterdir() if p.is_dir()) == ["10", "11"]
    np.testing.assert_array_equal(find(tmp_path / "run").restore({"x": jnp.zeros(4, int)})["x"], 11)


def test_a_later_state_of_the_same_iteration_replaces_the_old_one(writer: CheckpointWriter, tmp_path: Path) -> None:
    """A run that goes on from an earlier checkpoint with other settings must not keep what it left behind."""
    writer.save(4, {"x": jnp.zeros(4)}, META)
    writer.save(4, {"x": jnp.ones(4)}, META)
    np.testing.assert_array_equal(find(tmp_path / "run").restore({"x": jnp.zeros(4)})["x"], 1)


def test_a_checkpoint_stays_until_its_replacement_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only one of a run, written again: what the disk refuses takes nothing, and no moment is without one."""
    run_dir, moves = tmp_path / "run", []
    made, rename = CheckpointWriter(run_dir, keep=1), Path.rename
    made.save(4, {"x": jnp.zeros(4)}, META)

    def moved(path: Path, target: Path) -> Path:
        done = rename(path, target)
        moves.append(sound_checkpoint(run_dir).meta["iteration"])
        return done

    with monkeypatch.context() as patch:
        patch.setattr("orbax.checkpoint.CheckpointManager.save", lambda *_, **__: os.stat("/no/such/place"))
        with pytest.raises(FileNotFoundError):
            made.save(4, {"x": jnp.ones(4)}, META)
    np.testing.assert_array_equal(find(run_dir).restore({"x": jnp.zeros(4)})["x"], 0)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", moved)
        made.save(4, {"x": jnp.ones(4)}, META)
    made.close()
    assert len(moves) >= 2
    assert set(moves) == {4}
    np.testing.assert_array_equal(find(run_dir).restore({"x": jnp.zeros(4)})["x"], 1)
    assert [path.name for path in (run_dir / FOLDER).iterdir()] == ["4"]


def test_what_a_killed_process_began_to_write_is_deleted(writer: CheckpointWriter, tmp_path: Path) -> None:
    """When the next one opens the folder; whole checkpoints stay."""
    writer.save(4, {"x": jnp.ones(4)}, META)
    unfinished = tmp_path / "run" / FOLDER / "101.orbax-checkpoint-tmp"
    (unfinished / "state").mkdir(parents=True)
    CheckpointWriter(tmp_path / "run", keep=2).close()
    assert [path.name for path in (tmp_path / "run" / FOLDER).iterdir()] == ["4"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_state_that_is_not_finite_is_not_saved(writer: CheckpointWriter, tmp_path: Path, value: float) -> None:
    """The array is named, what was saved before stays, and nothing new is there."""
    good = {"params": {"w": jnp.ones((2, 3)), "n": jnp.arange(3)}, "key": jax.random.key(0)}
    writer.save(4, good, META)
    bad = {**good, "params": {**good["params"], "w": good["params"]["w"].at[1, 2].set(value)}}
    with pytest.raises(FloatingPointError, match=r"iteration 4 .*params\.w is not finite \(1 of 6 values\)"):
        writer.save(4, bad, META)
    np.testing.assert_array_equal(find(tmp_path / "run").restore(good)["params"]["w"], 1)


def test_a_stored_state_that_is_not_finite_is_refused(
    writer: CheckpointWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an earlier version of this project could write it."""
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_writer, "not_finite", lambda tree: None)
        writer.save(3, {"w": jnp.full(4, jnp.nan)}, META)
    with pytest.raises(InputError, match=r"w is not finite \(4 of 4 values\)"):
        find(tmp_path / "run").restore({"w": jnp.zeros(4)})


@pytest.mark.parametrize(("error", "number"), [(OSError(28, "No space left on device"), 28), (ValueError("odd"), 5)])
def test_a_disk_that_refuses(
    writer: CheckpointWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, number: int
) -> None:
    """Whatever the writer of arrays makes of it, it is the system's error; the checkpoint before stays sound."""
    writer.save(4, {"x": jnp.ones(4)}, META)

    def fail(*arguments: object, **settings: object) -> None:
        raise RuntimeError("could not write") from error

    monkeypatch.setattr(writer._manager, "save", fail)
    with pytest.raises(OSError, match=r"No space|could not write") as raised:
        writer.save(5, {"x": jnp.ones(4)}, META)
    assert raised.value.errno == number
    assert sound_checkpoint(tmp_path / "run").meta["iteration"] == 4


_FULL = """
import pathlib, resource, sys, threading, time
import jax.numpy as jnp, numpy as np
from dream.storage.checkpoint_writer import CheckpointWriter
from envs import InputError
folder, meta = pathlib.Path(sys.argv[1]), {"config": {"seed": 1}, "game": {"name": "coin"}, "counters": {}}
writer = CheckpointWriter(folder, keep=9)
writer.save(1, {"x": jnp.ones(4)}, meta)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
noise = np.random.default_rng(0)
try:
    writer.save(2, {f"a{n}": jnp.asarray(noise.normal(size=(40, 40)), jnp.float32) for n in range(40)}, meta)
except OSError as error:
    print(error.errno, error.strerror, sorted(path.name for path in (folder / "checkpoints").iterdir()), sep="|")
writer.close()
time.sleep(0.5)
"""
"""Writes a checkpoint, and one that is larger than files may be."""


@pytest.mark.parametrize("most", [200, 4000, 40_000])
def test_a_real_limit_on_files_is_one_line(tmp_path: Path, most: int) -> None:
    """From the system, in its words: no thread and no logger says anything, and nothing unfinished stays."""
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path), str(most)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAX_ENABLE_COMPILATION_CACHE": "false"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout == "27|File too large|['1']\n"
    assert sound_checkpoint(tmp_path).meta["iteration"] == 1


@pytest.mark.parametrize(
    ("text", "number", "words"),
    [
        ("RESOURCE_EXHAUSTED: 3 bytes: No space left on device [os_error_code='28']", 28, "No space left on device"),
        ("odd", 5, "ValueError: odd"),
    ],
)
def test_the_number_of_a_system_error_is_read(text: str, number: int, words: str) -> None:
    """Out of what the writer of arrays says, where it does not raise the system's own."""
    error = checkpoint_writer._as_os_error(ValueError(text))
    assert (error.errno, error.strerror) == (number, words)
