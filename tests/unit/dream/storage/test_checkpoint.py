"""Checkpoints come back bit for bit, or say in one line why not."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import arrays

from dream.storage import checkpoint_writer
from dream.storage.checkpoint import FOLDER, Checkpoint, find, sound_checkpoint
from dream.storage.checkpoint_arrays import checksum
from dream.storage.checkpoint_meta import FORMAT, META_FILE
from dream.storage.checkpoint_writer import CheckpointWriter
from envs import InputError

# Of what orbax leaves unfinished when it cannot read an array the interpreter tells when that is collected.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
META = {"config": {"seed": 1}, "game": {"name": "coin", "version": "1", "rules": {}}, "counters": {"decisions": 7}}


@pytest.fixture
def _collected() -> Iterator[None]:
    """Collects what orbax has left before another test begins."""
    yield
    gc.collect()


class Nested(NamedTuple):
    """A state with every kind of leaf a learner has."""

    params: dict[str, Any]
    key: jax.Array
    keys: jax.Array
    iteration: jax.Array
    nothing: tuple[()] = ()


def _state(seed: int, width: int = 40) -> Nested:
    rng = np.random.default_rng(seed)
    params = {
        "w": jnp.asarray(rng.normal(size=(300, width)), jnp.float32),
        "half": jnp.asarray(rng.normal(size=9), jnp.bfloat16),
        "mask": jnp.asarray(rng.random(5) < 0.5),
        "small": jnp.asarray([np.float32(3e38), 1e-40, -0.0], jnp.float32),
    }
    key = jax.random.key(seed)
    return Nested(params, key, jax.random.split(key, 3), jnp.int32(seed))


def _assert_equal(one: Any, two: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(two)
    for a, b in zip(arrays(one), arrays(two), strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[CheckpointWriter]:
    """Writes into tmp_path / run and keeps two."""
    made = CheckpointWriter(tmp_path / "run", keep=2)
    yield made
    made.close()


def _run_of_two(folder: Path) -> Path:
    """Writes a run directory with the checkpoints of iterations 5 and 10."""
    made = CheckpointWriter(folder / "run", keep=2)
    for iteration in (5, 10):
        made.save(iteration, _state(iteration), META)
    made.close()
    return folder / "run"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with the checkpoints of iterations 5 and 10; not to be changed."""
    return _run_of_two(tmp_path_factory.mktemp("saved"))


def _refused(action: Any, *parts: str) -> None:
    with pytest.raises(InputError) as error:
        action()
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


def test_round_trip(saved: Path) -> None:
    """Every leaf comes back bit for bit, typed PRNG keys as such, from a state or from its shapes alone."""
    found = find(saved)
    for like in (_state(0), jax.eval_shape(lambda: _state(0))):
        restored = found.restore(like)
        _assert_equal(restored, _state(10))
        assert jax.random.uniform(restored.key) == jax.random.uniform(_state(10).key)
    assert found.meta["iteration"] == 10
    assert found.meta["format"] == FORMAT
    assert {name: found.meta[name] for name in META} == META


def test_references(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run means its latest checkpoint; the folder of checkpoints, one checkpoint and relative paths work too."""
    monkeypatch.chdir(saved.parent)
    for reference in (saved, str(saved), "run", "run/checkpoints", saved / FOLDER / "10"):
        assert find(reference).path == saved / FOLDER / "10"
    assert find("run/checkpoints/5").meta["iteration"] == 5
    _assert_equal(find("run/checkpoints/5").restore(_state(0)), _state(5))


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


@pytest.mark.parametrize("taken", [False, True])
def test_a_replacement_that_was_cut_off_is_ended(saved: Path, tmp_path: Path, taken: bool) -> None:
    """The checkpoint that was moved aside is read while its place is free; the next writer leaves one of the two."""
    run_dir = tmp_path / "run"
    shutil.copytree(saved, run_dir)
    (run_dir / FOLDER / "10").rename(run_dir / FOLDER / "10.replaced")
    shutil.copytree(run_dir / FOLDER / "10.replaced", run_dir / FOLDER / ".rewritten" / "10")
    if taken:
        (run_dir / FOLDER / ".rewritten" / "10").rename(run_dir / FOLDER / "10")
    assert find(run_dir).path.name == ("10" if taken else "10.replaced")
    _assert_equal(find(run_dir).restore(_state(0)), _state(10))
    CheckpointWriter(run_dir, keep=2).close()
    assert sorted(path.name for path in (run_dir / FOLDER).iterdir()) == ["10", "5"]
    _assert_equal(find(run_dir).restore(_state(0)), _state(10))


def test_leftovers_of_a_killed_process_are_passed_over(saved: Path, tmp_path: Path) -> None:
    """Unfinished folders, as orbax leaves them, and files of others are no checkpoints and do not hinder new ones."""
    run_dir = tmp_path / "run"
    shutil.copytree(saved, run_dir)
    for name in ("15.orbax-checkpoint-tmp-1", "15.orbax-checkpoint-tmp"):
        shutil.copytree(run_dir / FOLDER / "10", run_dir / FOLDER / name)
        (run_dir / FOLDER / name / "meta" / "metadata").unlink()
    (run_dir / FOLDER / "evaluation.json").write_text("{}")
    assert find(run_dir).meta["iteration"] == 10
    made = CheckpointWriter(run_dir, keep=2)
    made.save(15, _state(15), META)
    made.close()
    _assert_equal(find(run_dir).restore(_state(0)), _state(15))


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size)


def _use(path: Path) -> Any:
    return find(path).restore(_state(0))


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("damage", ["truncate", "empty", "flip", "deep", "delete"])
def test_a_damaged_file_is_told(saved: Path, tmp_path: Path, damage: str) -> None:
    """Whichever file: the state comes back whole or there is one line; damage to what carries data never passes."""
    reported: list[str] = []
    for number, original in enumerate(_files(saved / FOLDER / "10")):
        copy = tmp_path / str(number)
        shutil.copytree(saved / FOLDER / "10", copy)
        file = copy / original.relative_to(saved / FOLDER / "10")
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0x10
        changed = {"truncate": bytes(data[: len(data) // 2]), "empty": b"", "flip": bytes(data), "deep": b"[" * 100_000}
        file.unlink() if damage == "delete" else file.write_bytes(changed[damage])
        try:
            _assert_equal(_use(copy), _state(10))
        except InputError as error:
            reported.append(str(error))
            assert str(copy) in reported[-1]
            continue
    assert len(reported) >= 3
    assert not any("\n" in line for line in reported)


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("place", [0.05, 0.35, 0.65, 0.95])
def test_a_flipped_byte_of_the_arrays_is_told(saved: Path, tmp_path: Path, place: float) -> None:
    """Anywhere in the largest file."""
    shutil.copytree(saved / FOLDER / "10", tmp_path / "10")
    file = max(_files(tmp_path / "10"), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    data[int(len(data) * place)] ^= 0x01
    file.write_bytes(data)
    _refused(lambda: _use(tmp_path / "10"), str(tmp_path / "10"), "damaged", "use")


def _with_meta(saved: Path, folder: Path, change: Any) -> Path:
    """Copies a checkpoint of format 1, which has no checksum of the meta, and changes its meta."""
    return _with_text(saved, folder, json.dumps(change(_old(saved))))


def _old(saved: Path) -> dict[str, Any]:
    meta = json.loads((saved / FOLDER / "10" / META_FILE).read_text())
    del meta["meta_checksum"]
    return {**meta, "format": 1}


def _with_text(saved: Path, folder: Path, text: str) -> Path:
    if not (folder / "10").exists():
        shutil.copytree(saved / FOLDER / "10", folder / "10")
    (folder / "10" / META_FILE).write_text(text)
    return folder / "10"


def test_a_checkpoint_of_the_format_before_is_read(saved: Path, tmp_path: Path) -> None:
    """Without a checksum of its meta, and without sums of its files."""
    path = _with_meta(saved, tmp_path, lambda meta: meta)
    (path / "files.json").unlink()
    _assert_equal(_use(path), _state(10))


@pytest.mark.parametrize("later", [{"name": "x"}, {"config": {"seed": 2, "devices": 1}}, {"config": {"hosts": {}}}])
def test_the_format_before_is_not_believed_of_a_later_meta(saved: Path, tmp_path: Path, later: dict[str, Any]) -> None:
    """Whose checksum was taken out, and with it what tells of an edit."""
    path = _with_meta(saved, tmp_path, lambda meta: {**meta, **later})
    _refused(
        lambda: find(path), str(path), "was edited", f"format 1, which has no {list(later.get('config', later))[-1]}"
    )


def test_a_renamed_checkpoint_is_told(saved: Path, tmp_path: Path) -> None:
    """Its iteration is in the meta; a copy elsewhere may have any name."""
    shutil.copytree(saved, tmp_path / "run")
    folder = tmp_path / "run" / FOLDER
    (folder / "10").rename(folder / "20")
    for reference in (tmp_path / "run", folder / "20"):
        _refused(
            lambda reference=reference: find(reference), "of iteration 10; the folder must be called 10", "/5, which"
        )
    assert sound_checkpoint(tmp_path / "run").path == folder / "5"
    shutil.copytree(folder / "20", tmp_path / "7")
    assert find(tmp_path / "7").meta["iteration"] == 10


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("sums", [None, "{}"], ids=["none", "of nothing"])
def test_without_sums_of_its_files_a_checkpoint_is_sound_by_its_arrays(tmp_path: Path, sums: str | None) -> None:
    """They are read where one is to be offered; damaged ones are not called sound."""
    run_dir = _run_of_two(tmp_path)
    for iteration in ("5", "10"):
        path = run_dir / FOLDER / iteration / "files.json"
        path.unlink() if sums is None else path.write_text(sums)
    assert sound_checkpoint(run_dir).meta["iteration"] == 10
    for iteration, left in (("10", 5), ("5", None)):
        for file in (run_dir / FOLDER / iteration / "state").rglob("d/*"):
            data = file.read_bytes()
            file.write_bytes(data[: len(data) // 2] + b"?" * 8 + data[len(data) // 2 + 8 :])
        found = sound_checkpoint(run_dir)
        assert (found and found.meta["iteration"]) == left
    _refused(lambda: _use(run_dir), "damaged", "no earlier one that is sound")


@pytest.mark.parametrize("number", [0, FORMAT + 1, "2", None, True])
def test_another_format(saved: Path, tmp_path: Path, number: object) -> None:
    """Of another version of this project, or of nobody."""
    path = _with_meta(saved, tmp_path, lambda meta: {**meta, "format": number})
    _refused(lambda: find(path), f"format {number!r}", f"reads format {FORMAT}")


@pytest.mark.parametrize("change", [lambda m: {"epoch": 3}, lambda m: [1, 2], lambda m: 3], ids=["keys", "list", "3"])
def test_a_foreign_meta(saved: Path, tmp_path: Path, change: Any) -> None:
    """JSON of someone else."""
    path = _with_meta(saved, tmp_path, change)
    _refused(lambda: find(path), "foreign", "checksum")


OTHER = (None, -5, 3, 1.5, "x", [], {}, {"name": 3}, [[[]]])
"""What an entry of the meta is replaced by."""


def test_every_edit_of_the_meta_is_refused(saved: Path, tmp_path: Path) -> None:
    """Each entry left out or replaced, one inside another changed, an entry more, text that is cut off: one line."""
    text = (saved / FOLDER / "10" / META_FILE).read_text()
    meta = json.loads(text)
    edits = [{name: x for name, x in meta.items() if name != left_out} for left_out in meta]
    edits += [{**meta, name: value} for name in meta for value in OTHER if value != meta[name]]
    edits += [
        {**meta, "iteration": 9},
        {**meta, "config": {"seed": 2}},
        {**meta, "counters": {"decisions": 8}},
        {**meta, "format": 1},
        {**meta, "more": 1},
    ]
    texts = [json.dumps(edit) for edit in edits]
    texts += [text[:cut] for cut in range(0, len(text) - 2, 97)] + ["[" * 100_000, "9" * 5000, "\x00"]
    for changed in texts:
        path = _with_text(saved, tmp_path, changed)
        _refused(lambda path=path: find(path), str(path))
    _assert_equal(_use(_with_text(saved, tmp_path, json.dumps(meta, indent=3))), _state(10))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("iteration", -5),
        ("iteration", 5.0),
        ("iteration", True),
        ("checksum", "7"),
        ("arrays", [1]),
        ("arrays", {"w": 3}),
        ("config", {"env": 3}),
        ("config", {"env": {"name": 3}}),
        ("config", []),
        ("game", "kuhn_poker"),
        ("game", {"name": "coin", "rules": []}),
        ("counters", {"nodes": -1}),
        ("counters", {"nodes": 1.5}),
        ("seconds", -1.0),
        ("seconds", None),
        ("compile_seconds", "1"),
        ("choices", {"algo": 3}),
        ("wandb_id", 3),
        ("group", None),
    ],
)
def test_a_meta_of_the_format_before_is_checked_by_type_and_range(
    saved: Path, tmp_path: Path, name: str, value: object
) -> None:
    """It has no checksum; what cannot be is named."""
    path = _with_meta(saved, tmp_path, lambda meta: {**meta, name: value})
    _refused(lambda: find(path), str(path), "damaged", f"{name}=", "must be")


def test_a_wrong_checksum(saved: Path, tmp_path: Path) -> None:
    """The arrays are not those that were written."""
    path = _with_meta(saved, tmp_path, lambda meta: {**meta, "checksum": meta["checksum"] ^ 1})
    _refused(lambda: _use(path), str(path), "damaged", "no earlier one")


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("part", ["meta", "state"])
def test_the_checkpoint_before_a_damaged_one_is_offered(tmp_path: Path, part: str) -> None:
    """By name, if it is sound; where it is damaged too, that is said."""
    run_dir = _run_of_two(tmp_path)

    def damage(iteration: str) -> None:
        file = max(_files(run_dir / FOLDER / iteration / part), key=lambda path: path.stat().st_size)
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))  # another byte, whatever it was

    assert sound_checkpoint(run_dir).path == run_dir / FOLDER / "10"
    assert sound_checkpoint(run_dir, 9).path == run_dir / FOLDER / "5"
    assert sound_checkpoint(run_dir, 4) is None
    damage("10")
    assert sound_checkpoint(run_dir).path == run_dir / FOLDER / "5"
    _refused(lambda: _use(run_dir), str(run_dir / FOLDER / "10"), f"use the earlier one, {run_dir / FOLDER / '5'}")
    damage("5")
    assert sound_checkpoint(run_dir) is None
    _refused(lambda: _use(run_dir), str(run_dir / FOLDER / "10"), "no earlier one that is sound")


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
    _refused(lambda: find(tmp_path / "run").restore({"w": jnp.zeros(4)}), "w is not finite (4 of 4 values)")


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


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("shape", [41, 39])
def test_another_network(saved: Path, shape: int) -> None:
    """Arrays of other shapes, larger or smaller, are neither padded nor cut."""
    _refused(lambda: find(saved).restore(_state(0, shape)), str(saved), "another network")


@pytest.mark.usefixtures("_collected")
def test_a_network_with_another_layer(saved: Path) -> None:
    """A structure with a leaf more or a leaf less."""
    state = _state(0)
    more = state._replace(params={**state.params, "extra": jnp.zeros(3)})
    less = state._replace(params={"w": state.params["w"]})
    for like in (more, less):
        _refused(lambda like=like: find(saved).restore(like), str(saved), "another network")


def test_nothing_there(tmp_path: Path) -> None:
    """Missing paths, empty folders, folders of other things, files."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "run" / FOLDER).mkdir(parents=True)
    (tmp_path / "other" / "3").mkdir(parents=True)
    (tmp_path / "other" / "3" / "weights.bin").write_bytes(b"123")
    (tmp_path / "file.pkl").write_bytes(b"\x80\x04junk")
    for name, reported in (
        ("missing", "does not exist"),
        ("empty", "no complete checkpoint"),
        ("run", "no complete checkpoint"),
        ("other", "not a complete checkpoint"),
        ("other/3", "complete checkpoint"),
        ("file.pkl", "complete checkpoint"),
    ):
        _refused(lambda name=name: find(tmp_path / name), name, reported)


def test_checksum_sees_every_bit() -> None:
    """Values, their order, and a single flipped bit."""
    one = {"a": jnp.arange(6.0), "b": jnp.zeros(2)}
    assert checksum(one) == checksum(jax.tree.map(lambda x: x + 0, one))
    assert checksum(one) != checksum({"a": one["a"][::-1], "b": one["b"]})
    assert checksum(one) != checksum({"a": one["a"].at[3].add(1e-6), "b": one["b"]})


def test_a_checkpoint_is_a_folder_and_its_meta(saved: Path) -> None:
    """What `find` returns is plain data."""
    assert find(saved) == Checkpoint(saved / FOLDER / "10", find(saved).meta)
