"""Checkpoints come back bit for bit, or say in one line why not."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from checkpoint_states import META, assert_equal, random_state

from dream.storage.checkpoint import FOLDER, Checkpoint, find, sound_checkpoint
from dream.storage.checkpoint_arrays import checksum
from dream.storage.checkpoint_meta import FORMAT, META_FILE
from dream.storage.checkpoint_writer import CheckpointWriter
from envs import InputError

# Of what orbax leaves unfinished when it cannot read an array the interpreter tells when that is collected.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def _collected() -> Iterator[None]:
    """Collects what orbax has left before another test begins."""
    yield
    gc.collect()


def _run_of_two(folder: Path) -> Path:
    """Writes a run directory with the checkpoints of iterations 5 and 10."""
    made = CheckpointWriter(folder / "run", keep=2)
    for iteration in (5, 10):
        made.save(iteration, random_state(iteration), META)
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
    for like in (random_state(0), jax.eval_shape(lambda: random_state(0))):
        restored = found.restore(like)
        assert_equal(restored, random_state(10))
        assert jax.random.uniform(restored.key) == jax.random.uniform(random_state(10).key)
    assert found.meta["iteration"] == 10
    assert found.meta["format"] == FORMAT
    assert {name: found.meta[name] for name in META} == META


def test_references(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run means its latest checkpoint; the folder of checkpoints, one checkpoint and relative paths work too."""
    monkeypatch.chdir(saved.parent)
    for reference in (saved, str(saved), "run", "run/checkpoints", saved / FOLDER / "10"):
        assert find(reference).path == saved / FOLDER / "10"
    assert find("run/checkpoints/5").meta["iteration"] == 5
    assert_equal(find("run/checkpoints/5").restore(random_state(0)), random_state(5))


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
    assert_equal(find(run_dir).restore(random_state(0)), random_state(10))
    CheckpointWriter(run_dir, keep=2).close()
    assert sorted(path.name for path in (run_dir / FOLDER).iterdir()) == ["10", "5"]
    assert_equal(find(run_dir).restore(random_state(0)), random_state(10))


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
    made.save(15, random_state(15), META)
    made.close()
    assert_equal(find(run_dir).restore(random_state(0)), random_state(15))


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size)


def _use(path: Path) -> Any:
    return find(path).restore(random_state(0))


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
            assert_equal(_use(copy), random_state(10))
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
    assert_equal(_use(path), random_state(10))


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
    assert_equal(_use(_with_text(saved, tmp_path, json.dumps(meta, indent=3))), random_state(10))


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


@pytest.mark.usefixtures("_collected")
@pytest.mark.parametrize("shape", [41, 39])
def test_another_network(saved: Path, shape: int) -> None:
    """Arrays of other shapes, larger or smaller, are neither padded nor cut."""
    _refused(lambda: find(saved).restore(random_state(0, shape)), str(saved), "another network")


@pytest.mark.usefixtures("_collected")
def test_a_network_with_another_layer(saved: Path) -> None:
    """A structure with a leaf more or a leaf less."""
    state = random_state(0)
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
