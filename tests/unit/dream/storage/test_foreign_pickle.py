"""Foreign pickles: numpy arrays and plain containers come back as written; all else is refused, and nothing runs."""

from __future__ import annotations

import collections
import pathlib
import pickle
import struct
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

from dream.storage.foreign.opcodes import read_pickle
from envs import InputError

PLAIN = {
    "arrays": {
        "kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
        "columns first": np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
        "big endian": np.arange(3, dtype=">f4"),
        "half": np.ones(2, np.float16),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3), np.int32),
        "no axis": np.array(3.5),
        "shared dtype": np.arange(2, dtype=np.float32),
        "every other": np.arange(10, dtype=np.int64)[::2],
    },
    "config": collections.OrderedDict(hidden=[16, 8], rate=1e-3, on=True, off=None, text="π", deep=((1, 2), [3])),
    "scalars": (np.float32(1.5), np.int64(-3), 2**40, -1, b"bytes", b"", bytearray(b"more"), {1, "two"}, {3: (4,)}),
}


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


class _Calls:
    """Pickles to a call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, tuple]:
        return self.call


class _Stateful:
    """Pickles to an object with a state."""


def _deep(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


def _laughs() -> list:
    value: list = [0] * 10
    for _ in range(9):
        value = [value] * 10
    return value


def _crossing() -> list:
    """Returns values each of which holds the one before: shallow where they stand first, deep from the last one on."""
    values: list = [[]]
    for _ in range(200):
        values.append([values[-1]])
    return values


def _endless() -> list:
    value: list = []
    value.append(value)
    return value


def _state(shape: bytes, dtype: bytes = b"X\x02\x00\x00\x00f4", data: bytes = b"C\x04abcd") -> bytes:
    """Returns an array by hand, protocol 4."""
    start = b"\x80\x04cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR(K\x01" + shape
    number = (
        b"cnumpy\ndtype\n" + dtype + b"\x89\x88\x87R(K\x03X\x01\x00\x00\x00<NNN" + 2 * b"J\xff\xff\xff\xff" + b"K\x00tb"
    )
    return start + number + b"\x89" + data + b"tb."


HUGE = b"\x8a\x06" + (2**40).to_bytes(6, "little")
REFUSED: dict[str, tuple[Any, str]] = {
    "os.system": (_Calls(__import__("os").system, "touch executed"), "posix.system"),
    "eval": (_Calls(eval, "open('executed', 'w')"), "eval"),
    "subprocess": (_Calls(subprocess.check_call, ["touch", "executed"]), "subprocess.check_call"),
    "a dotted name": (b"\x80\x04\x8c\x05numpy\x8c\x0dtesting.Testr\x93.", "numpy.testing.Testr"),
    "a dotted allowed name": (b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.", "numpy.ndarray.__init__"),
    "a module one dot off": (b"\x80\x04\x8c\x05numpy\x8c\x04load\x93.", "numpy.load"),
    "another builtin": (b"\x80\x04cbuiltins\ngetattr\n.", "builtins.getattr"),
    "a name that is no text": (b"\x80\x04K\x01\x8c\x05dtype\x93.", "1.dtype"),
    "an object with a state": (_Stateful(), "_Stateful"),
    "a name as a value": (b"\x80\x04cnumpy\nndarray\n.", "numpy.ndarray as a value"),
    "ndarray called": (b"\x80\x04cnumpy\nndarray\nK\x05\x85R.", "calls numpy.ndarray"),
    "a call of an array": (b"\x80\x04}K\x05\x85R.", "no allowed name"),
    "NEWOBJ": (b"\x80\x04cnumpy\nndarray\nK\x05\x85\x81.", "NEWOBJ"),
    "INST": (b"\x80\x02(S'touch executed'\nios\nsystem\n.", "opcode"),
    "OBJ": (b"\x80\x02(cnumpy\nndarray\nK\x05o.", "OBJ"),
    "a persistent id": (b"\x80\x02K\x01Q.", "BINPERSID"),
    "an extension": (b"\x80\x02\x82\x01.", "EXT1"),
    "a buffer beside the file": (b"\x80\x05\x97.", "NEXT_BUFFER"),
    "protocol 0": (b"(lp0\n.", "protocol 2 to 5"),
    "protocol 6": (b"\x80\x06N.", "protocol 2 to 5"),
    "no pickle": (b"text", "protocol 2 to 5"),
    "nothing": (b"", "protocol 2 to 5"),
    "objects": (np.array([{}], dtype=object), "'O8'|O8"),
    "a structured array": (np.zeros(2, [("a", "f4")]), "V4"),
    "text in an array": (np.array(["abc"]), "U3"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), "M8"),
    "structured by state": (
        _state(b"K\x01\x85").replace(b"<NNN", b"<NX\x01\x00\x00\x00aN"), "structured dtype",
    ),
    "an array of 2**40": (_state(HUGE + b"\x85"), "claims an array of shape (1099511627776,)"),
    "an array of 2**28 rows": (_state(b"J\x00\x00\x00\x10\x85"), "claims an array of shape (268435456,) with 4 bytes"),
    "an array of a negative size": (_state(b"J\xff\xff\xff\xff\x85"), "claims an array of shape (-1,)"),
    "reconstruct of a shape": (
        b"\x80\x04cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + HUGE + b"\x85C\x01btR.",
        "claims an array of shape (1099511627776,) before",
    ),
    "reconstruct of another type": (
        b"\x80\x04cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\nK\x00\x85C\x01btR.", "no numpy.ndarray",
    ),
    "an array without contents": (
        b"\x80\x04cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85C\x01btR.", "without contents",
    ),
    "objects as contents": (_state(b"K\x01\x85", data=b"]K\x01a"), "no bytes"),
    "a buffer too large": (
        b"\x80\x05cnumpy._core.numeric\n_frombuffer\n(C\x04abcdcnumpy\ndtype\n\x8c\x02f4\x89\x88\x87R" + HUGE + b"\x85"
        b"\x8c\x01CtR.", "claims an array",
    ),
    "a bytes of 2**62": (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"abc.", "damaged"),
    "a bytes of 2**63": (b"\x80\x04\x8e" + struct.pack("<Q", 2**63) + b"abc.", "damaged"),
    "a text of 2**62": (b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"abc.", "damaged"),
    "a bytearray of 2**62": (b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"abc.", "damaged"),
    "a number of 2**31 bytes": (b"\x80\x04\x8b" + struct.pack("<i", 2**31 - 1) + b"abc.", "damaged"),
    "a number of negative length": (b"\x80\x04\x8b\xff\xff\xff\xff.", "damaged"),
    "a long number": (2**4096, "whole number of 4097 bits"),
    "a frame of 2**62": (b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"N.", "claims a frame"),
    "a memo of 2**31": (b"\x80\x04Nr\xff\xff\xff\x7f.", "claims a memo of 2147483647"),
    "a memo that is not there": (b"\x80\x04h\x05.", "memo 5"),
    "deep lists": (_deep(40), "nests deeper than 32"),
    "depth by shared values": (_crossing(), "nests deeper than 32"),
    "very deep lists": (b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b".", "nests deeper than 32"),
    "a billion shared values": (_laughs(), "unfolds to more than"),
    "a list in itself": (_endless(), "inside itself"),
    "a key that is a list": (b"\x80\x04}]K\x01s.", "key"),
    "bytes made over and over": (
        b"\x80\x04c_codecs\nencode\n\x940X\x00\x00\x10\x00" + b"x" * 2**20 + b"\x94\x8c\x06latin1\x86\x940("
        + b"h\x00h\x02R" * 1000 + b"l.", "makes more out of _codecs.encode",
    ),
    "sets made over and over": (
        b"\x80\x04cbuiltins\nset\n\x940](" + b"".join(b"M" + struct.pack("<H", n) for n in range(2**10)) + b"e\x85"
        b"\x940(" + b"h\x00h\x01R" * 1000 + b"l.", "makes more out of builtins.set",
    ),
    "truncated": (pickle.dumps(PLAIN, 3)[:-30], "damaged"),
    "no values": (b"\x80\x04.", "empty stack"),
    "no mark": (b"\x80\x04Nt.", "no mark"),
    "a mark remembered": (b"\x80\x04(\x94h\x000.", "nothing to remember"),
    "an array compared": (
        b"\x80\x04cnumpy\ndtype\n" + pickle.dumps(np.ones(3), 4)[11:-1] + b"\x89\x88\x87R.", "dtype",
    ),
    "another opcode": (b"\x80\x04\xff.", "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_whatever_else_is_refused_in_one_line(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The line names the file and the thing; nothing runs, and no memory is claimed."""
    content, told = REFUSED[name]
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
    assert any(part in text for part in told.split("|")), text
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
