"""What the names in a foreign pickle stand for: numpy arrays of numbers and plain containers, made without a call.

A name is looked up in `ALLOWED`, by exact module and name, and stands for one of the makers below; a size is believed
only where the bytes are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MAX_BYTES = 2**30
"""Of a file, and of any length in it."""
MAX_VALUES = 1_000_000
"""Values in what is read, shared ones counted each time."""
MAX_DEPTH = 32

ALLOWED: dict[tuple[str, str], str] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): "array" for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): "scalar" for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): "buffer" for core in ("core", "_core")},
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "encode",
    ("collections", "OrderedDict"): "dict",
    **{(module, name): name for module in ("builtins", "__builtin__") for name in ("bytes", "bytearray", "set")},
    **{(module, "frozenset"): "set" for module in ("builtins", "__builtin__")},
}
"""(module, name) -> what it stands for; no dotted names."""
_DTYPES = frozenset({"b1", *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8"})
_PLAIN_DTYPE_STATE = (None, None, None, -1, -1, 0)
"""After version and byte order: no subarray, no fields, no alignment."""
_KEYS = (str, int, float, bytes, type(None))


class RefusedError(Exception):
    """What is wrong with a pickle, without the file's name."""


class Mark:
    """The mark on the stack, and an argument that is not there."""


class Global:
    """An allowed name."""

    def __init__(self, kind: str, text: str) -> None:
        """Stands for `kind`; `text` is the name."""
        self.kind, self.text = kind, text


class Dtype:
    """A dtype, whose byte order comes later."""

    def __init__(self, code: str) -> None:
        """Of kind and size as `code` tells, one of _DTYPES."""
        self.code, self.order = code, "="

    def build(self, state: Any) -> None:
        """Takes the byte order; refuses fields, subarrays and metadata."""
        if not (_is_tuple(state, 8) and state[0] == 3 and state[1] in ("<", ">", "|", "=")):
            raise RefusedError(f"holds a dtype {self.code!r} with a state that is not a number's")
        if state[2:] != _PLAIN_DTYPE_STATE:
            raise RefusedError("holds a structured dtype")
        self.order = state[1]

    def made(self) -> np.dtype:
        """Returns numpy's own."""
        return np.dtype(self.code).newbyteorder(self.order)


class Array:
    """An array, whose contents come later."""

    def __init__(self) -> None:
        """Without contents yet."""
        self.value: np.ndarray | None = None

    def build(self, state: Any) -> None:
        """Takes shape, dtype, order and bytes."""
        if not (_is_tuple(state, 5) and state[0] == 1 and isinstance(state[3], bool)):
            raise RefusedError("holds an array with a state that is not numpy's")
        self.value = _array(state[4], state[2], state[1], "F" if state[3] else "C")


def _made_array(subtype: Any, shape: Any, typecode: Any, *rest: Any) -> Array:
    """Stands for numpy's _reconstruct(ndarray, (0,), b"b"), whose contents a state brings."""
    if not (isinstance(subtype, Global) and subtype.kind == "ndarray") or rest != (Mark,):
        raise RefusedError("reconstructs something that is no numpy.ndarray")
    if shape != (0,) or typecode not in (b"b", "b"):
        raise RefusedError(f"claims an array of shape {shown(shape)} before its contents")
    return Array()


def _made_buffer(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    if order not in ("C", "F"):
        raise RefusedError("holds an array whose order is neither C nor F")
    return _array(data, dtype, shape, order)


def _made_dtype(code: Any, align: Any, copy: Any, *rest: Any) -> Dtype:
    if not isinstance(code, str) or code not in _DTYPES:
        raise RefusedError(f"holds the dtype {shown(code)}, which is no number's")
    if (align, copy, *rest) != (False, True, Mark):
        raise RefusedError(f"holds a dtype {code!r} that is not numpy's own")
    return Dtype(code)


def _made_scalar(dtype: Any, data: Any, *rest: Any) -> np.generic:
    if rest != (Mark, Mark):
        raise RefusedError("holds a scalar that is not numpy's")
    return _array(data, dtype, (), "C")[()]


def _made_bytes(text: Any, encoding: Any, *rest: Any) -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1") or rest != (Mark, Mark):
        raise RefusedError("encodes something that is no text of bytes")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise RefusedError("is damaged (bytes above 255)") from error


def _made_empty(kind: Callable[[], Any]) -> Callable[..., Any]:
    def made(*given: Any) -> Any:
        if given != (Mark,) * 4:
            raise RefusedError(f"makes {kind.__name__} out of something")
        return kind()

    return made


def _made_bytearray(data: Any, encoding: Any = Mark, *rest: Any) -> bytes:
    if isinstance(data, str):
        return _made_bytes(data, encoding, *rest)
    if data is Mark:
        return b""
    if not isinstance(data, bytes) or (encoding, *rest) != (Mark,) * 3:
        raise RefusedError("makes a bytearray out of something that is no bytes")
    return data


def _made_set(values: Any, *rest: Any) -> set:
    if not isinstance(values, list | tuple) or rest != (Mark,) * 3:
        raise RefusedError("makes a set out of something that is no list")
    return {hashable(value) for value in values}


MAKERS: dict[str, Callable[..., Any]] = {
    "array": _made_array, "buffer": _made_buffer, "scalar": _made_scalar, "dtype": _made_dtype,
    "encode": _made_bytes, "dict": _made_empty(dict), "bytes": _made_empty(bytes), "bytearray": _made_bytearray,
    "set": _made_set,
}  # fmt: skip


def _array(data: Any, dtype: Any, shape: Any, order: str) -> np.ndarray:
    """Returns a view of bytes as an array, once the sizes agree."""
    if not isinstance(dtype, Dtype):
        raise RefusedError("holds an array without a dtype")
    if not isinstance(data, bytes | bytearray):
        raise RefusedError("holds an array whose contents are no bytes")
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if len(sizes) > 8 or not all(type(n) is int and 0 <= n <= MAX_BYTES for n in sizes):
        raise RefusedError(f"claims an array of shape {shown(shape)}")
    made, count = dtype.made(), 1
    for n in sizes:
        count *= n
    if count * made.itemsize != len(data):
        raise RefusedError(f"claims an array of shape {shown(shape)} with {len(data)} bytes of {made}")
    array = np.frombuffer(data, made) if data else np.empty(0, made)
    array.flags.writeable = False
    return array.reshape(sizes, order=order)


class Plain:
    """Replaces records by what they became, and bounds depth and size, shared values counted each time."""

    def __init__(self) -> None:
        """Nothing replaced yet."""
        self.done: dict[int, tuple[Any, int, int]] = {}
        self.open: set[int] = set()

    def of(self, value: Any) -> Any:
        """Returns the value without records."""
        return self._visit(value, 0)[0]

    def _visit(self, value: Any, depth: int) -> tuple[Any, int, int]:
        """Returns the value without records, how many values it unfolds to, and how deep it is."""
        if isinstance(value, Array):
            value = value.value
            if value is None:
                raise RefusedError("holds an array without contents")
        if isinstance(value, Global | Dtype):
            raise RefusedError(f"holds {value.text if isinstance(value, Global) else 'a dtype'} as a value")
        if not isinstance(value, dict | list | tuple):
            return value, 1, 0
        if id(value) in self.open:
            raise RefusedError("holds a container inside itself")
        if id(value) not in self.done:
            self._check_depth(depth)
            self.open.add(id(value))
            self.done[id(value)] = self._container(value, depth + 1)
            self.open.remove(id(value))
        self._check_depth(depth + self.done[id(value)][2])
        return self.done[id(value)]

    def _container(self, value: dict | list | tuple, depth: int) -> tuple[Any, int, int]:
        inner = [self._visit(item, depth) for item in (value.values() if isinstance(value, dict) else value)]
        size = 1 + sum(count for _, count, _ in inner)
        if size > MAX_VALUES:
            raise RefusedError(f"unfolds to more than {MAX_VALUES} values")
        items, height = [item for item, _, _ in inner], 1 + max((height for _, _, height in inner), default=0)
        made = dict(zip(value, items, strict=True)) if isinstance(value, dict) else type(value)(items)
        return made, size, height

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise RefusedError(f"nests deeper than {MAX_DEPTH}")


def hashable(value: Any) -> Any:
    """Returns a key that is plain."""
    parts = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(part, _KEYS) for part in parts):
        raise RefusedError("has a key that is no text or number")
    return value


def _is_tuple(value: Any, size: int) -> bool:
    return isinstance(value, tuple) and len(value) == size


def shown(value: Any) -> str:
    """Returns a short printable form of a text, a number, a tuple of numbers or an error; of others the type."""
    numbers = isinstance(value, tuple) and len(value) <= 8 and all(isinstance(n, int) for n in value)
    if not (numbers or isinstance(value, str | int | bytes | Exception)):
        return f"of type {type(value).__name__}"
    return "".join(c if c.isprintable() else "?" for c in str(value[:99] if isinstance(value, str | bytes) else value))
