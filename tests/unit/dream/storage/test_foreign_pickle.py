"""Foreign pickles: numpy arrays and plain containers come back as written; all else is refused, and nothing runs."""

from __future__ import annotations

import pathlib
import pickle
import struct
import subprocess
import sys
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from trials.attacks import BOMBS, PLAIN, REFUSED

from dream.storage.foreign.opcodes import read_pickle
from envs import InputError


def _same(one: Any, two: Any) -> bool:
    if isinstance(two, np.ndarray | np.generic):
        return one.dtype == two.dtype and np.shape(one) == two.shape and bool(np.all(one == two))
    if isinstance(two, dict):
        return isinstance(one, dict) and list(one) == list(two) and all(_same(one[key], two[key]) for key in two)
    if isinstance(two, list | tuple):
        return type(one) is type(two) and len(one) == len(two) and all(map(_same, one, two))
    return one == two


def _numpy_1(data: bytes) -> bytes:
    """Renames numpy's modules to those of numpy 1, lengths of short texts included."""
    for module in (b"multiarray", b"numeric"):
        new, old = b"numpy._core." + module, b"numpy.core." + module
        data = data.replace(b"\x8c" + bytes([len(new)]) + new, b"\x8c" + bytes([len(old)]) + old)
        data = data.replace(b"c" + new + b"\n", b"c" + old + b"\n")
    return data


@pytest.mark.parametrize("numpy_1", [False, True])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_contents_come_back(tmp_path: pathlib.Path, protocol: int, numpy_1: bool) -> None:
    """Of every protocol, under the module names of numpy 1 and 2."""
    data = pickle.dumps(PLAIN, protocol)
    assert b"numpy._core" in data
    if numpy_1:
        data = _numpy_1(data)
        data = data.replace(data[2:11], b"\x95" + struct.pack("<Q", len(data) - 11)) if protocol >= 4 else data
        assert b"numpy._core" not in data
    (tmp_path / "p.pkl").write_bytes(data)
    read = read_pickle(tmp_path / "p.pkl")
    assert _same(read, PLAIN)
    assert not read["arrays"]["kernel"].flags.writeable


def test_shared_values_stay_one(tmp_path: pathlib.Path) -> None:
    """The same array twice is read once."""
    array = np.ones(3)
    (tmp_path / "p.pkl").write_bytes(pickle.dumps([array, array, [array]]))
    one, two, (three,) = read_pickle(tmp_path / "p.pkl")
    assert one is two is three


@pytest.mark.parametrize("name", REFUSED)
def test_whatever_else_is_refused_in_one_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The line names the file and the thing; nothing runs, and no memory is claimed."""
    content, reported = REFUSED[name]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "foreign.pkl"
    path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, 4))
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as error:
            read_pickle(path)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    text = str(error.value)
    assert any(part in text for part in reported.split("|")), text
    assert str(path) in text
    assert "\n" not in text
    assert len(text) < 500
    assert [file.name for file in tmp_path.iterdir()] == ["foreign.pkl"]


def test_no_prefix_of_a_pickle_breaks_the_reader(tmp_path: pathlib.Path) -> None:
    """Cut anywhere, or with any byte changed, it is read or refused; never another exception."""
    whole = pickle.dumps({"params": {"a": np.ones((2, 2), np.float32)}, "config": [1, (2.0, "x")]}, 5)
    path, rng = tmp_path / "p.pkl", np.random.default_rng(0)
    cases = [whole[:n] for n in range(len(whole))]
    for _ in range(400):
        changed = bytearray(whole)
        changed[rng.integers(2, len(whole))] = rng.integers(256)
        cases.append(bytes(changed))
    refused = 0
    for data in cases:
        path.write_bytes(data)
        try:
            read_pickle(path)
        except InputError:
            refused += 1
    assert refused >= len(whole)


def test_reading_imports_nothing(tmp_path: pathlib.Path) -> None:
    """A module that a pickle names is not imported, in a fresh interpreter."""
    (tmp_path / "p.pkl").write_bytes(b"\x80\x04cantigravity\nfly\n)R.")
    script = (
        "import pathlib, sys\nfrom dream.storage.foreign.opcodes import read_pickle\n"
        "try:\n    read_pickle(pathlib.Path(sys.argv[1]))\nexcept ValueError as error:\n    print(error)\n"
        "assert 'antigravity' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "p.pkl")], capture_output=True, text=True, check=True
    )
    assert "antigravity.fly" in done.stdout


@pytest.mark.parametrize("name", BOMBS)
def test_work_is_bounded(tmp_path: pathlib.Path, name: str) -> None:
    """A megabyte that asks for hours of hashing, comparing or copying is refused within seconds of processor time."""
    path = tmp_path / "bomb.pkl"
    path.write_bytes(BOMBS[name]())
    began = time.thread_time()
    with pytest.raises(InputError) as error:
        read_pickle(path)
    assert time.thread_time() - began < 5
    assert len(str(error.value)) < 500
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", [name for name in BOMBS if "wide character" in name])
def test_wide_texts_take_no_more_than_their_file(tmp_path: pathlib.Path, name: str) -> None:
    """One wide character makes four bytes of every other one; that is refused before the text is made."""
    path = tmp_path / "bomb.pkl"
    path.write_bytes(BOMBS[name]())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"more than 16777216 bytes of text beyond Latin-1|the opcode UNICODE"):
            read_pickle(path)
        assert tracemalloc.get_traced_memory()[1] < path.stat().st_size + 5 * 2**24
    finally:
        tracemalloc.stop()


def test_texts_are_read_in_every_alphabet(tmp_path: pathlib.Path) -> None:
    """Short ones of wide characters, and an array of protocol 2, which is a long one of Latin-1."""
    content = {"a\xff": "ÿ", "名": "\U0001f600" * 9000, "array": np.arange(2**23, dtype=np.float32).reshape(-1, 2)}
    (tmp_path / "p.pkl").write_bytes(pickle.dumps(content, 2))
    assert (tmp_path / "p.pkl").stat().st_size > 2**25
    assert _same(read_pickle(tmp_path / "p.pkl"), content)


def test_an_honest_pickle_is_within_the_limits(tmp_path: pathlib.Path) -> None:
    """Thousands of arrays, keys of every kind, and a set of thousands of numbers."""
    content = {
        "arrays": {f"layer_{n}": np.ones(3, np.float32) for n in range(2000)},
        "numbers": {n: n for n in range(4000)},
        "pairs": {(n, "x"): n for n in range(1500)},
        "set": set(range(2000)),
    }
    (tmp_path / "p.pkl").write_bytes(pickle.dumps(content))
    assert _same(read_pickle(tmp_path / "p.pkl"), content)


def test_an_object_inside_is_its_fields(tmp_path: pathlib.Path) -> None:
    """Of a class that is nowhere: nothing is looked up, and what is an object on top is refused."""
    inner = b"\x8c\x07nowhere\x8c\x06Config\x93)\x81}\x8c\x04rateK\x03sb"
    (tmp_path / "p.pkl").write_bytes(b"\x80\x04}\x8c\x06config" + inner + b"s.")
    assert read_pickle(tmp_path / "p.pkl") == {"config": {"rate": 3}}
    (tmp_path / "p.pkl").write_bytes(b"\x80\x04" + inner + b".")
    with pytest.raises(InputError, match=r"asks for nowhere\.Config"):
        read_pickle(tmp_path / "p.pkl")


def test_a_named_tuple_is_a_tuple(tmp_path: pathlib.Path) -> None:
    """Its pickle holds no names of fields; one of a library's own names with arguments stays refused."""
    named = b"\x8c\x07nowhere\x8c\x06Config\x93K\x03K\x04\x86\x81"
    empty = b"\x8c\x05optax\x8c\x0aEmptyState\x93)\x81"
    (tmp_path / "p.pkl").write_bytes(b"\x80\x04(" + named + empty + b"t.")
    assert read_pickle(tmp_path / "p.pkl") == ((3, 4), ())
    (tmp_path / "p.pkl").write_bytes(b"\x80\x04(" + named.replace(b"\x07nowhere", b"\x05posix") + b"t.")
    with pytest.raises(InputError, match=r"asks for posix\.Config with arguments"):
        read_pickle(tmp_path / "p.pkl")
