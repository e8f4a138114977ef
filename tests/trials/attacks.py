"""Attack pickles: what calls, imports, allocates, or takes hours to hash. None may be read, none may run."""

from __future__ import annotations

import collections
import pathlib
import pickle
import struct
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import dream
from trials import networks

PLAIN = {
    "arrays": {
        "kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
        "columns first": np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
        "big endian": np.arange(3, dtype=">f4"),
        "half": np.ones(2, np.float16),
        "bfloat16": np.arange(3, dtype=jnp.bfloat16),
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3), np.int32),
        "no axis": np.array(3.5),
        "shared dtype": np.arange(2, dtype=np.float32),
        "every other": np.arange(10, dtype=np.int64)[::2],
    },
    "config": collections.OrderedDict(hidden=[16, 8], rate=1e-3, on=True, off=None, text="π", deep=((1, 2), [3])),
    "scalars": (np.float32(1.5), np.int64(-3), 2**40, -1, b"bytes", b"", bytearray(b"more"), {1, "two"}, {3: (4,)}),
}


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


def _bfloat16(
    order: bytes = b"<", fields: bytes = b"N", module: bytes = b"ml_dtypes", data: bytes = b"C\x02ab"
) -> bytes:
    """Returns a buffer of one bfloat16 by hand, protocol 5."""
    state = b"(K\x03X\x01\x00\x00\x00" + order + b"NN" + fields + b"K\x02K\x02K\x40tb"
    dtype = b"cnumpy\ndtype\nc" + module + b"\nbfloat16\n\x89\x88\x87R" + state
    return b"\x80\x05cnumpy._core.numeric\n_frombuffer\n(" + data + dtype + b"K\x01\x85\x8c\x01CtR."


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
    "a big-endian bfloat16": (_bfloat16(order=b">"), "not a number's"),
    "a structured bfloat16": (_bfloat16(fields=b"X\x01\x00\x00\x00a"), "structured dtype"),
    "a bfloat16 of another module": (_bfloat16(module=b"numpy"), "numpy.bfloat16"),
    "a bfloat16 of too few bytes": (_bfloat16(data=b"C\x03abc"), "with 3 bytes of bfloat16"),
    "a named tuple with a state": (b"\x80\x04cnowhere\nConfig\nK\x05\x85\x81}\x8c\x01aK\x01sb.", "state of a tuple"),
    "a named tuple never filled": (b"\x80\x04cnowhere\nConfig\n.", "nowhere.Config"),
    "an array of 2**40": (_state(HUGE + b"\x85"), "claims an array of shape (1099511627776,)"),
    "an array of 2**28 rows": (_state(b"J\x00\x00\x00\x10\x85"), "claims an array of shape (268435456,) with 4 bytes"),
    "an array of a negative size": (_state(b"J\xff\xff\xff\xff\x85"), "claims an array of shape (-1,)"),
    "reconstruct of a shape": (
        b"\x80\x04cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + HUGE + b"\x85C\x01btR.",
        "claims an array of shape (1099511627776,) before",
    ),
    "reconstruct of another type": (
        b"\x80\x04cnumpy.core.multiarray\n_reconstruct\n(cnumpy\ndtype\nK\x00\x85C\x01btR.", "not a numpy.ndarray",
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


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _repeated(start: bytes, step: bytes, count: int, end: bytes) -> bytes:
    return b"\x80\x04" + start + step * count + end


def _huge_key() -> bytes:
    """A tuple of 300,000 numbers is hashed 300,000 times."""
    return _repeated(b"(" + b"K\x01" * 300_000 + b"t\x940}", b"h\x00Ns", 150_000, b".")


def _colliding_floats() -> Iterator[tuple[float, ...]]:
    """Yields tuples of one hash: a float's hash is that of its product with 2^61."""
    alike = [2.0 ** (61 * n) for n in range(-16, 17)]
    for one in alike:
        for two in alike:
            for three in alike:
                yield one, two, three


def _collisions() -> bytes:
    parts = [b"".join(b"G" + struct.pack(">d", x) for x in key) + b"\x87Ns" for key in _colliding_floats()]
    return b"\x80\x04}" + b"".join(parts) + b"."


def _colliding_set() -> bytes:
    parts = [b"".join(b"G" + struct.pack(">d", x) for x in key) + b"\x87" for key in _colliding_floats()]
    return b"\x80\x04\x8f(" + b"".join(parts) + b"\x90."


def _sets_of_one() -> bytes:
    """A list of 400,000 equal numbers is made a set again and again."""
    start = b"cbuiltins\nset\n\x940](" + b"K\x01" * 400_000 + b"e\x85\x940("
    return _repeated(start, b"h\x00h\x01R", 60_000, b"l.")


def _long_texts() -> bytes:
    """Two equal texts of 600,000 characters are compared over and over."""
    text = _text("x" * 600_000)
    return _repeated(b"}\x940" + text + b"\x940" + text + b"\x940h\x00h\x01Ns", b"h\x02Ns", 120_000, b".")


def _numbers_alike() -> bytes:
    """Numbers that differ in their highest bits alone."""
    keys = (b"\x8a\x09" + ((n << 44) % 2**63).to_bytes(9, "little") + b"Ns" for n in range(90_000))
    return b"\x80\x04}" + b"".join(keys) + b"."


def _long(head: bytes, text: bytes, tail: bytes) -> bytes:
    """Returns a pickle of a text of 64 MiB that begins so."""
    return b"\x80\x04" + head + text + b"a" * (2**26 - len(text)) + tail


BOMBS: dict[str, Callable[[], bytes]] = {
    "a huge key hashed again and again": _huge_key,
    "keys of one hash": _collisions,
    "members of one hash": _colliding_set,
    "sets of one number made again and again": _sets_of_one,
    "long texts compared again and again": _long_texts,
    "numbers of the same low bits": _numbers_alike,
    "a frozenset of one hash": lambda: _colliding_set()[:2] + _colliding_set()[3:-2] + b"\x91.",
    "a million empty sets": lambda: _repeated(b"](", b"\x8f", 1_200_000, b"e."),
    "a million shared lists": lambda: _repeated(b"]\x94](", b"h\x00", 600_000, b"e."),
    "half a million tuples in one another": lambda: _repeated(b")", b"\x85", 490_000, b"."),
    "a name of a megabyte": lambda: b"\x80\x04c" + b"a" * 10**6 + b"\n" + b"b" * 10**6 + b"\n.",
    "digits of a megabyte": lambda: b"\x80\x04I" + b"9" * 10**6 + b"\n.",
    "an odd number of a megabyte": lambda: b"\x80\x04I" + b"x" * 10**6 + b"\n.",
    "a number of a megabyte": lambda: b"\x80\x04\x8b" + struct.pack("<i", 10**6) + b"\x7f" * 10**6 + b".",
    "a wide character in a long text": lambda: _long(b"X" + struct.pack("<I", 2**26), "\U0001f600".encode(), b"."),
    "a wide character in many texts": lambda: (
        b"\x80\x04](" + (b"\x8c\xff" + "\U0001f600".encode() + b"a" * 251) * 2**17 + b"e."
    ),
    "an escaped wide character in a long text": lambda: _long(b"V", b"\\U0001f600", b"\n."),
    "escapes in a name": lambda: b"\x80\x04c\x1b[2Jos\nsys\x07tem\n.",
    "a name that turns around": lambda: b"\x80\x04" + _text("o\u202es") + _text("system") + b"\x93.",
}
"""Name -> what makes the file; each asks for more work, or a longer line, than is given."""

NAMES = (
    "os.system", "posix.system", "posix.popen", "nt.system", "subprocess.Popen", "subprocess.check_output",
    "builtins.eval", "builtins.exec", "builtins.compile", "builtins.__import__", "builtins.open",
    "builtins.getattr", "builtins.setattr", "builtins.globals", "builtins.type", "builtins.object",
    "builtins.print", "__builtin__.eval", "__builtin__.file", "importlib.import_module", "importlib.reload",
    "pickle.loads", "_pickle.loads", "marshal.loads", "shutil.rmtree", "pathlib.Path", "socket.socket",
    "ctypes.CDLL", "numpy.load", "numpy.fromfile", "numpy.memmap", "numpy.save", "numpy.loads",
    "numpy.ndarray.tofile", "numpy.testing.runstring", "jax.numpy.load", "jax.jit", "jax._src.array.ArrayImpl",
    "torch.load", "types.FunctionType", "types.CodeType", "operator.attrgetter", "functools.partial",
    "webbrowser.open", "urllib.request.urlopen", "runpy.run_path", "code.interact", "timeit.timeit", "pty.spawn",
    "copyreg._reconstructor", "copy_reg._reconstructor", "collections.defaultdict", "antigravity.fly", "this.s",
)  # fmt: skip
FORMS: dict[str, Callable[[str, str], bytes]] = {
    "called": lambda module, name: f"c{module}\n{name}\n".encode() + _text("touch executed") + b"\x85R.",
    "called by texts": lambda module, name: _text(module) + _text(name) + b"\x93" + _text("executed") + b"\x85R.",
    "made with arguments": lambda module, name: (
        f"c{module}\n{name}\n".encode() + _text("touch executed") + b"\x85\x81."
    ),
    "given a state": lambda module, name: f"c{module}\n{name}\n".encode() + b"}" + _text("x") + b"K\x01sb.",
    "named and dropped": lambda module, name: f"c{module}\n{name}\n".encode() + b"0}.",
}


def cases(count: int, seed: int, folder: pathlib.Path) -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """Yields name, file name and what makes the file, of every attack."""
    for name, (content, _) in REFUSED.items():
        whole = content if isinstance(content, bytes) else pickle.dumps(content, 4)
        yield name, "foreign.pkl", lambda whole=whole: whole
    for name, made in BOMBS.items():
        yield name, "foreign.pkl", made
    for form, made in FORMS.items():
        for name in NAMES:
            module, _, last = name.rpartition(".")
            yield f"{name} {form}", "foreign.pkl", lambda made=made, m=module, n=last: b"\x80\x04" + made(m, n)


def warm_up(folder: pathlib.Path) -> None:
    """Reads a sound pickle; what the trials import is there."""
    (folder / "sound.pkl").write_bytes(networks.pickles()["haiku"])
    dream.load_policy(folder / "sound.pkl")


def read(path: pathlib.Path) -> None:
    """Reads an attack as any trained player."""
    dream.load_policy(path)


def must_be_refused(name: str) -> bool:
    """None of them is a network."""
    return True
