"""What the names in a foreign pickle stand for: numpy arrays of numbers and plain containers, made without a call.

A name is looked up in `ALLOWED`, by exact module and name, and stands for one of the makers below; a size is believed
only where the bytes are there. Any other name may only stand over the fields of an object, as a dataclass is pickled:
it is never looked up, and the object is read as a dict of its fields. A named tuple's pickle holds its values without
their names, and is read as a plain tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from dream.storage.foreign.work import RefusedError, Work
from envs.errors import shown as escaped

MAX_BYTES = 2**28
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
    ("ml_dtypes", "bfloat16"): "bfloat16",
    ("_codecs", "encode"): "encode",
    ("collections", "OrderedDict"): "dict",
    **{(module, name): name for module in ("builtins", "__builtin__") for name in ("bytes", "bytearray", "set")},
    **{(module, "frozenset"): "set" for module in ("builtins", "__builtin__")},
    ("jax._src.array", "_reconstruct_array"): "jax_array",
    ("flax.core.frozen_dict", "FrozenDict"): "frozen_dict",
    ("haiku._src.data_structures", "FlatMapping"): "frozen_dict",
}
"""(module, name) -> what it stands for; no dotted names."""
OTHER = "other"
"""What every other name stands for: nothing but an object of fields."""
_DTYPES = frozenset({"b1", *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8"})
_PLAIN_DTYPE_STATE = (None, None, None, -1, -1, 0)
"""After version and byte order: no subarray, no fields, no alignment."""
_BFLOAT16 = np.dtype(jnp.bfloat16)
_BFLOAT16_STATE = (None, None, None, 2, 2, 64)
"""The same of ml_dtypes' type: its size, its alignment, and the flag that it is set with a number's own functions."""


class Mark:
    """The mark on the stack, and an argument that is not there."""


class Global:
    """A name."""

    def __init__(self, kind: str, module: str, name: str) -> None:
        """Stands for `kind`; the name is only ever shown, escaped."""
        self.kind, self.package, self.text = kind, module.partition(".")[0], shown(f"{module}.{name}")


class Object:
    """An object of a class that is not looked up: its fields, which come later; a named tuple of none has no fields."""

    def __init__(self, text: str) -> None:
        """Of a class named `text`, without fields yet."""
        self.text = text
        self.fields: dict[str, Any] | None = None

    def build(self, state: Any) -> None:
        """Takes the fields, with slots or without."""
        if _is_tuple(state, 2) and state[0] is None:
            state = state[1]
        if not (isinstance(state, dict) and all(isinstance(name, str) for name in state)):
            raise RefusedError(f"asks for {self.text}, an object without a dict of fields")
        self.fields = state


class Dtype:
    """A dtype, whose byte order comes later."""

    def __init__(self, code: str) -> None:
        """Of the kind and size that `code` gives, one of _DTYPES or "bfloat16"."""
        self.code, self.order = code, "="

    def build(self, state: Any) -> None:
        """Takes the byte order; refuses fields, subarrays and metadata."""
        orders = ("<", "=") if self.code == _BFLOAT16.name else ("<", ">", "|", "=")
        plain_state = _BFLOAT16_STATE if self.code == _BFLOAT16.name else _PLAIN_DTYPE_STATE
        if not (_is_tuple(state, 8) and _is(state[0], 3) and isinstance(state[1], str) and state[1] in orders):
            raise RefusedError(f"holds a dtype {self.code!r} with a state that is not a number's")
        if not all(_is(part, plain) for part, plain in zip(state[2:], plain_state, strict=True)):
            raise RefusedError("holds a structured dtype")
        self.order = state[1]

    def made(self) -> np.dtype:
        """Returns numpy's own, or that of bfloat16."""
        if self.code == _BFLOAT16.name:
            return _BFLOAT16
        return np.dtype(self.code).newbyteorder(self.order)


class Array:
    """An array, whose contents come later."""

    def __init__(self) -> None:
        """Without contents yet."""
        self.value: np.ndarray | None = None

    def build(self, state: Any) -> None:
        """Takes shape, dtype, order and bytes."""
        if not (_is_tuple(state, 5) and _is(state[0], 1) and isinstance(state[3], bool)):
            raise RefusedError("holds an array with a state that is not numpy's")
        self.value = _array(state[4], state[2], state[1], "F" if state[3] else "C")


def _made_array(subtype: Any, shape: Any, typecode: Any, *rest: Any) -> Array:
    """Stands for numpy's _reconstruct(ndarray, (0,), b"b"), whose contents a state brings."""
    if not (isinstance(subtype, Global) and subtype.kind == "ndarray") or not _absent(rest):
        raise RefusedError("reconstructs something that is not a numpy.ndarray")
    if not (_is_tuple(shape, 1) and _is(shape[0], 0)) or not (_is(typecode, b"b") or _is(typecode, "b")):
        raise RefusedError(f"claims an array of shape {shown(shape)} before its contents")
    return Array()


def _made_jax_array(made: Any, arguments: Any, state: Any, kind: Any) -> Array:
    """Stands for JAX's _reconstruct_array, which wraps numpy's: the array, whatever device or kind it was of."""
    if not (isinstance(made, Global) and made.kind == "array" and _is_tuple(arguments, 3) and isinstance(kind, dict)):
        raise RefusedError("reconstructs a JAX array out of something that is not a numpy.ndarray")
    array = _made_array(*arguments, Mark)
    array.build(state)
    return array


def _made_frozen_dict(content: Any, *rest: Any) -> dict:
    if not isinstance(content, dict) or not _absent(rest):
        raise RefusedError("makes a frozen dict out of something that is no dict")
    return content


def _made_buffer(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    if not isinstance(order, str) or order not in ("C", "F"):
        raise RefusedError("holds an array whose order is neither C nor F")
    return _array(data, dtype, shape, order)


def _made_dtype(code: Any, align: Any, copy: Any, *rest: Any) -> Dtype:
    if isinstance(code, Global) and code.kind == _BFLOAT16.name:
        code = code.kind
    elif not isinstance(code, str) or code not in _DTYPES:
        named = code.text if isinstance(code, Global) else shown(code)
        raise RefusedError(f"holds the dtype {named}, which is no number's")
    if not (_is(align, False) and _is(copy, True) and _absent(rest)):
        raise RefusedError(f"holds a dtype {code!r} that is not numpy's own")
    return Dtype(code)


def _made_scalar(dtype: Any, data: Any, *rest: Any) -> np.generic:
    if not _absent(rest):
        raise RefusedError("holds a scalar that is not numpy's")
    return _array(data, dtype, (), "C")[()]


def _made_bytes(text: Any, encoding: Any, *rest: Any) -> bytes:
    latin = _is(encoding, "latin1") or _is(encoding, "latin-1")
    if not (isinstance(text, str) and latin and _absent(rest)):
        raise RefusedError("encodes something that is no text of bytes")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise RefusedError("is damaged (bytes above 255)") from error


def _made_empty(kind: Callable[[], Any]) -> Callable[..., Any]:
    def made(*given: Any) -> Any:
        if not _absent(given):
            raise RefusedError(f"makes {kind.__name__} out of something")
        return kind()

    return made


def _made_bytearray(data: Any, encoding: Any = Mark, *rest: Any) -> bytes:
    if isinstance(data, str):
        return _made_bytes(data, encoding, *rest)
    if data is Mark:
        return b""
    if not isinstance(data, bytes) or not _absent((encoding, *rest)):
        raise RefusedError("makes a bytearray out of something that is no bytes")
    return data


def _made_set(values: Any, *rest: Any, work: Work) -> set:
    if not isinstance(values, list | tuple) or not _absent(rest):
        raise RefusedError("makes a set out of something that is no list")
    made: set = set()
    for value in values:
        made.add(work.key(value, len(made)))
    return made


MAKERS: dict[str, Callable[..., Any]] = {
    "array": _made_array, "buffer": _made_buffer, "scalar": _made_scalar, "dtype": _made_dtype,
    "encode": _made_bytes, "dict": _made_empty(dict), "bytes": _made_empty(bytes), "bytearray": _made_bytearray,
    "set": _made_set, "jax_array": _made_jax_array, "frozen_dict": _made_frozen_dict,
}  # fmt: skip


def _is(value: Any, wanted: Any) -> bool:
    """Returns whether a value is the wanted plain one; nothing else is ever compared, arrays least of all."""
    return type(value) is type(wanted) and value == wanted


def _absent(arguments: tuple) -> bool:
    """Returns whether none of the arguments is there."""
    return all(argument is Mark for argument in arguments)


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

    def __init__(self, work: Work) -> None:
        """Nothing replaced yet."""
        self.work = work
        self.done: dict[int, tuple[Any, int, int]] = {}
        self.open: set[int] = set()

    def of(self, value: Any) -> Any:
        """Returns the value without records."""
        if isinstance(value, Object):
            raise RefusedError(f"asks for {value.text}, an object, where a dict must be")
        return self._visit(value, 0)[0]

    def _visit(self, value: Any, depth: int) -> tuple[Any, int, int]:
        """Returns the value without records, how many values it unfolds to, and how deep it is."""
        if isinstance(value, Array):
            value = value.value
            if value is None:
                raise RefusedError("holds an array without contents")
        if isinstance(value, Object):
            value = () if value.fields is None else value.fields
        if isinstance(value, Global | Dtype):
            raise RefusedError(_misplaced(value))
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
        self.work.spend(1 + len(value))
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


def _misplaced(value: Global | Dtype) -> str:
    if isinstance(value, Dtype):
        return "holds a dtype as a value"
    return f"asks for {value.text}" if value.kind == OTHER else f"holds {value.text} as a value"


def _is_tuple(value: Any, size: int) -> bool:
    return isinstance(value, tuple) and len(value) == size


def shown(value: Any) -> str:
    """Returns a short printable form of a text, a number, a tuple of numbers or an error; of others the type."""
    numbers = isinstance(value, tuple) and len(value) <= 8 and all(type(n) is int for n in value)
    if isinstance(value, bytes):
        value = value[:99].decode("latin-1")
    if not (numbers or isinstance(value, str | int | Exception)):
        return f"of type {type(value).__name__}"
    return escaped(str(value) if numbers or isinstance(value, Exception) else value)
