"""A run that cannot go on says in one line what happened, what is safe and what to do; nothing wrong is saved."""

from __future__ import annotations

import dataclasses
import errno
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from dream.config.compose import compose_config, given_values
from dream.evaluation import match
from dream.storage import lock
from dream.storage.checkpoint import FOLDER, Checkpoint, find
from dream.storage.checkpoint_writer import CheckpointWriter
from dream.storage.files import StorageError, write_json, writing
from dream.storage.lock import RunLock
from dream.training import loop, metrics
from dream.training.beginning import Start
from dream.training.faults import closed_output_noted
from dream.training.finished import load_run
from dream.training.loop import train
from dream.training.signals import StopRequest
from dream.training.start import prepare_run, with_stored_choices
from envs import InputError

SETTINGS = (
    "env=kuhn_poker",
    "algo=external_mccfr",
    "algo.trajectories=8",
    "algo.batch=8",
    "tracking.mode=disabled",
    "eval.exact=false",
)
SETTINGS += ("eval.opponents=[]", "eval.every=1000", "checkpoint.every=2", "checkpoint.keep=9", "iterations=5")
NEVER = StopRequest(listen=False)


def _start(run_dir: Path, *overrides: str) -> Start:
    return prepare_run(compose_config("config", [*SETTINGS, f"run_dir={run_dir}", *overrides]))


def _resume(run_dir: Path, *overrides: str) -> Start:
    return prepare_run(compose_config("config", with_stored_choices([f"resume={run_dir}", *overrides])))


def _poisoned(start: Start, at: int, poison: Callable[[Any, dict[str, Any]], tuple[Any, dict[str, Any]]]) -> Start:
    """Returns a start whose learner's iteration of that number gives what `poison` makes of it."""
    algorithm, count = start.parts.algorithm, [0]

    def iterate(state: Any) -> tuple[Any, dict[str, Any]]:
        count[0] += 1
        state, reported = algorithm.iterate(state)
        return poison(state, reported) if count[0] == at else (state, reported)

    parts = dataclasses.replace(
        start.parts, algorithm=dataclasses.replace(algorithm, iterate=iterate, several=None, most=1)
    )
    return dataclasses.replace(start, parts=parts)


def _nan_state(state: Any, reported: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Spoils one number of the first floating array."""
    leaves, structure = jax.tree.flatten(state)
    n = next(n for n, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.floating) and x.ndim)
    with jax.enable_x64(True):
        leaves[n] = jnp.asarray(leaves[n]).at[(0,) * leaves[n].ndim].set(jnp.nan)
    return jax.tree.unflatten(structure, leaves), reported


def _largest(checkpoint: Path) -> Path:
    """Returns the largest file of a checkpoint's state."""
    files = [path for path in (checkpoint / "state").rglob("*") if path.is_file()]
    return max(files, key=lambda path: path.stat().st_size)


def _nan_loss(state: Any, reported: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    return state, {**reported, "loss": float("nan")}


@pytest.mark.parametrize(("poison", "what"), [(_nan_state, "is not finite (1 of "), (_nan_loss, "the loss is nan")])
def test_a_state_that_is_not_finite_ends_the_run(tmp_path: Path, poison: Any, what: str) -> None:
    """The iteration, the array and a sound checkpoint from before are named; none of the fault is saved."""
    run_dir = tmp_path / "run"
    with pytest.raises(FloatingPointError) as error:
        train(_poisoned(_start(run_dir), 4, poison), NEVER)
    text = str(error.value)
    assert text.startswith("iteration 4: ")
    assert what in text
    assert f"{run_dir / FOLDER / '2'}, of iteration 2, is sound" in text
    assert [path.name for path in (run_dir / FOLDER).iterdir()] == ["2"]
    assert [record["iteration"] for record in metrics.read(run_dir)] == [1, 2, 3]
    assert not (run_dir / lock.FILE).exists()
    train(_resume(run_dir / FOLDER / "2"), NEVER)
    assert find(run_dir).meta["iteration"] == 5


@pytest.mark.parametrize(
    ("damaged", "reported"),
    [((), "/4, of iteration 4, is"), (("4",), "/2, of iteration 2, is"), (("4", "2"), "no sound")],
)
def test_a_damaged_checkpoint_is_not_named_as_sound(tmp_path: Path, damaged: tuple[str, ...], reported: str) -> None:
    """Of two from before the fault the newest that is sound is named, looked at when the fault shows."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=4"), NEVER)

    def poison(state: Any, reported: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        for iteration in damaged:
            file = _largest(run_dir / FOLDER / iteration)
            file.write_bytes(file.read_bytes() + b"?")
        return _nan_loss(state, reported)

    with pytest.raises(FloatingPointError) as error:
        train(_poisoned(_resume(run_dir, "iterations=6"), 1, poison), NEVER)
    assert reported in str(error.value)


@pytest.mark.parametrize(
    ("number", "mend"),
    [(errno.ENOSPC, "make room on the disk"), (errno.EROFS, "make the folder writable"), (errno.EIO, "check the disk")],
)
def test_a_disk_that_refuses_while_a_run_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, mend: str
) -> None:
    """In its record, with a checkpoint of iteration 2: that one is named, and the run can be gone on with."""
    run_dir, append = tmp_path / "run", metrics.append

    def refuse(folder: Path, *records: dict[str, Any]) -> None:
        if records[-1]["iteration"] == 4:
            raise OSError(number, "the disk's words")
        append(folder, *records)

    with monkeypatch.context() as patch:
        patch.setattr(loop.metrics, "append", refuse)
        with pytest.raises(StorageError) as error:
            train(_start(run_dir), NEVER)
    text = str(error.value)
    assert "\n" not in text
    for part in ("after iteration 4", "the disk's words", str(run_dir / FOLDER / "2"), mend, f"resume={run_dir}"):
        assert part in text
    train(_resume(run_dir), NEVER)
    assert [record["iteration"] for record in metrics.read(run_dir)] == [1, 2, 3, 4, 5]


def test_a_checkpoint_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one: nothing is safe yet, and that is said."""

    def refuse(self: CheckpointWriter, iteration: int, state: Any, meta: dict[str, Any]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(CheckpointWriter, "save", refuse)
    with pytest.raises(StorageError, match=r"No space left.*no checkpoint is left there; make room"):
        train(_start(tmp_path / "run"), NEVER)


@pytest.mark.parametrize("name", ["run", "a run", "a (run)"])
def test_a_closed_output_names_the_folder_as_a_command_line_takes_it(tmp_path: Path, name: str) -> None:
    """In the quotes of the shell and of Hydra's grammar, where it needs them."""
    with pytest.raises(BrokenPipeError) as error, closed_output_noted(tmp_path / name):
        raise BrokenPipeError
    (note,) = error.value.__notes__
    arguments = shlex.split(note)
    given = [text for text in arguments if text.startswith("run_dir=")]
    assert given_values(given) == {"run_dir": str(tmp_path / name)}


def test_a_run_directory_that_vanishes(tmp_path: Path) -> None:
    """Under a run: one line."""
    run_dir = tmp_path / "run"

    def vanish(state: Any, reported: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        shutil.rmtree(run_dir)
        return state, reported

    with pytest.raises(StorageError, match=r"the folder is gone.*no checkpoint is left there"):
        train(_poisoned(_start(run_dir), 3, vanish), NEVER)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the start: wrong input, as another folder may do."""
    start = _start(tmp_path / "run")

    def refuse(*arguments: object, **settings: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError, match=r"run_dir=.*cannot be written \(Read-only file system\); make the folder"):
        train(start, NEVER)


def test_a_run_directory_in_use(tmp_path: Path) -> None:
    """A second process on it is refused, new or resumed, and changes nothing; afterwards it may."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=4"), NEVER)
    before = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*") if path.is_file()}
    second = _resume(run_dir, "iterations=6")
    with RunLock(run_dir) as held:
        held.acquire()
        with pytest.raises(InputError, match="is in use by process"):
            train(second, NEVER)
        with pytest.raises(InputError, match="is in use by process"):
            _start(run_dir, "iterations=5")
        held.path.unlink()
        after = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*") if path.is_file()}
        assert after == before
    train(second, NEVER)
    assert find(run_dir).meta["iteration"] == 6
    new = _start(tmp_path / "new")
    (tmp_path / "new").mkdir()
    with RunLock(tmp_path / "new") as held:
        held.acquire()
        with pytest.raises(InputError, match="is in use by process"):
            train(new, NEVER)


def test_a_run_that_went_on_elsewhere_is_not_taken_back(tmp_path: Path) -> None:
    """What was read before the lock was held is read again under it: a newer checkpoint, or another meta."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=2"), NEVER)
    late = _resume(run_dir, "iterations=6")
    train(_resume(run_dir, "iterations=4"), NEVER)
    with pytest.raises(InputError, match=f"{run_dir} has been changed by another process just now; give the same"):
        train(late, NEVER)
    assert find(run_dir).meta["iteration"] == 4
    assert not (run_dir / lock.FILE).exists()
    edited = dataclasses.replace(_resume(run_dir), checkpoint=Checkpoint(find(run_dir).path, {}))
    with pytest.raises(InputError, match="has been changed by another process"):
        train(edited, NEVER)


def test_an_evaluation_of_an_earlier_iteration_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that went on and was stopped before its final matches: whoever reads the old file says so."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=2", "eval.opponents=[random]", "eval.final_games=8"), NEVER)
    assert load_run(run_dir).evaluated == 2
    assert "warning" not in capsys.readouterr().err
    stopped = StopRequest(listen=False)
    start = _resume(run_dir, "iterations=9")

    def interrupted(state: Any, reported: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        stopped.received = 15
        return state, reported

    train(_poisoned(start, 2, interrupted), stopped)
    assert "evaluation.json there is of an earlier iteration" in capsys.readouterr().out
    found = load_run(run_dir)
    assert (found.iteration, found.evaluated) == (4, 2)
    assert "evaluation.json is of iteration 2, the checkpoint of iteration 4" in capsys.readouterr().err


def test_resuming_changes_nothing_until_it_can_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged state leaves records past it alone; a sound one says what it drops."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=4"), NEVER)
    path = run_dir / metrics.FILE
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{damaged", *lines[1:]]) + "\n")
    text = path.read_text()
    file = _largest(run_dir / FOLDER / "4")
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(InputError, match=f"use the earlier one, {run_dir / FOLDER / '2'}"):
        train(_resume(run_dir), NEVER)
    assert path.read_text() == text
    assert sorted(path.name for path in (run_dir / FOLDER).iterdir()) == ["2", "4"]
    capsys.readouterr()
    train(_resume(run_dir / FOLDER / "2"), NEVER)
    said = capsys.readouterr().out
    assert "2 later records and 1 damaged line\n" in said
    assert f"deleted from {run_dir}: the later checkpoints 4\n" in said
    assert [record["iteration"] for record in metrics.read(run_dir)] == [1, 2, 3, 4]


def test_a_crash_while_later_work_is_dropped_leaves_no_gap(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints go first: without them the next resume drops the records that are left."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=4"), NEVER)

    def killed(*_: Any) -> None:
        raise SystemExit

    drop_after = metrics.drop_after
    monkeypatch.setattr(metrics, "drop_after", killed)
    with pytest.raises(SystemExit):
        train(_resume(run_dir / FOLDER / "2"), NEVER)
    monkeypatch.setattr(metrics, "drop_after", drop_after)
    assert [path.name for path in (run_dir / FOLDER).iterdir()] == ["2"]
    capsys.readouterr()
    train(_resume(run_dir), NEVER)
    assert "2 later records" in capsys.readouterr().out
    assert [record["iteration"] for record in metrics.read(run_dir)] == [1, 2, 3, 4]


def test_resuming_says_that_a_cut_off_record_is_dropped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a crash leaves it: the record of an iteration that is not done again is gone for good."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=2"), NEVER)
    path = run_dir / metrics.FILE
    path.write_bytes(path.read_bytes()[:-9])
    capsys.readouterr()
    train(_resume(run_dir, "iterations=3"), NEVER)
    assert f"dropped from {path}: a last line that was cut off\n" in capsys.readouterr().out
    assert [record["iteration"] for record in metrics.read(run_dir)] == [1, 3]


@pytest.mark.parametrize("line", ['{"iteration": null}', '{"iteration": "x"}', '{"iteration": [1]}'])
def test_resuming_drops_records_without_an_iteration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    """As any damaged line."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=2"), NEVER)
    with (run_dir / metrics.FILE).open("a") as file:
        file.write(line + "\n")
    train(_resume(run_dir, "iterations=3"), NEVER)
    assert "dropped from" in capsys.readouterr().out
    assert [record["iteration"] for record in metrics.read(run_dir)] == [1, 2, 3]


def test_resuming_a_run_whose_record_is_a_folder(tmp_path: Path) -> None:
    """Refused before anything is written."""
    run_dir = tmp_path / "run"
    train(_start(run_dir, "iterations=2"), NEVER)
    (run_dir / metrics.FILE).unlink()
    (run_dir / metrics.FILE).mkdir()
    before = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="is not a file"):
        train(_resume(run_dir, "iterations=3"), NEVER)
    assert {path: path.stat().st_mtime_ns for path in run_dir.rglob("*") if path.is_file()} == before


def test_the_final_evaluation_has_deals_of_its_own(tmp_path: Path) -> None:
    """As many hands as were watched, of the same policy and seed: other hands, and others in a later match."""
    games = ("eval.opponents=[random]", "eval.games=400", "eval.final_games=400", "iterations=1", "seed=7")
    run = train(_start(tmp_path / "run", *games), NEVER)
    watched = metrics.read(run.run_dir)[-1]["eval/random/points_per_hand"]
    final = json.loads((run.run_dir / "evaluation.json").read_text())
    later = match(run.game, run.policy(), run.opponents["random"], games=400, seed=7)["points_per_hand"].mean
    assert len({watched, later, final["by_opponent"]["random"]["points_per_hand"]["mean"]}) == 3


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    """By a command that measures: one line, and code 1 as for a run's own files."""
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "exploitability.json"
    with (
        pytest.raises(StorageError, match=r"exploitability\.json cannot be written \(Not a directory\); check"),
        writing(path),
    ):
        write_json(path, {})


def test_a_setting_that_changes_what_is_stored_is_named(tmp_path: Path) -> None:
    """Going on is refused by the setting that was changed, not as with another network or algorithm."""
    asked = ("algo=mmd", "env=kuhn_poker", "preset=tiny", "iterations=1", "tracking.mode=disabled", "eval.opponents=[]")
    train(
        prepare_run(compose_config("config", [*asked, "algo.average_tau=null", f"run_dir={tmp_path / 'run'}"])), NEVER
    )
    with pytest.raises(InputError, match=r"^algo.average_tau cannot be changed by resume=") as caught:
        train(_resume(tmp_path / "run", "algo.average_tau=0.1", "iterations=2"), NEVER)
    assert "begin a new run" in str(caught.value)
