"""Pickles of other projects, read as data: arrays, plain containers and objects' fields; nothing is called.

The opcodes are interpreted here and never by `pickle`; what would import, call or allocate on the file's word is
refused before it happens (values.py).
"""

from __future__ import annotations

import io
import pickletools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dream.storage.foreign.values import (
    ALLOWED,
    MAKERS,
    MAX_BYTES,
    OTHER,
    Array,
    Dtype,
    Global,
    Mark,
    Object,
    Plain,
    shown,
)
from dream.storage.foreign.work import RefusedError, Work
from envs.errors import InputError

PROTOCOLS = range(2, 6)
MAX_OPCODES = 500_000
MAX_WIDE = 2**24
"""Bytes of texts with a character beyond Latin-1: each of their characters takes two or four bytes in memory. Arrays of
protocol 2 are texts without."""
_LIBRARIES = frozenset({*sys.stdlib_module_names, "__builtin__", "copy_reg", "numpy", "jax", "jaxlib"})
"""Packages without named tuples of settings or parameters; what is made of them with arguments is an attack."""
_LENGTHS = {"SHORT_BINUNICODE": 1, "BINUNICODE": 4, "BINUNICODE8": 8}
"""Bytes that hold the length of a text."""
_LATIN, _PART = bytes(range(0xC4)), 2**20
"""Bytes that begin or go on with a character of Latin-1 in UTF-8, and how many are looked at at once."""
_LOOK = 256
"""Opcodes between two looks at the clock."""
_WRONG = (ValueError, TypeError, IndexError, KeyError, OverflowError, MemoryError, RecursionError, StopIteration)
"""What odd data raises in plain Python; a pickle that does it is damaged."""


def read_pickle(path: Path) -> Any:
    """Reads a pickle of protocol 2 to 5 that holds arrays of numbers, of numpy or JAX, and plain containers.

    An object inside, a dataclass of settings for instance, is read as a dict of its fields; a named tuple, which an
    optimiser's state is made of, as a tuple.

    Args:
      path: of the file.
    Returns:
      dicts, lists, tuples, sets, text, bytes, numbers, None and read-only numpy arrays.
    Raises:
      InputError: the file is damaged, too large or too deep, takes too much work, or asks for anything else; the
        message names it.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise RefusedError(f"has {size} bytes, more than the {MAX_BYTES} that are read")
        data, work = path.read_bytes(), Work()
        return Plain(work).of(_Machine(work).run(data))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error
    except RefusedError as error:
        raise InputError(
            f"{path} is refused: it {error}; a pickle may hold numpy arrays of numbers and plain containers alone"
        ) from error


class _Machine:
    """Interprets the opcodes."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.left, self.wide = 0, MAX_WIDE
        self.unused: set[str] = set()

    def run(self, data: bytes) -> Any:
        """Returns what the pickle holds, records included."""
        if len(data) < 2 or data[0] != 0x80 or data[1] not in PROTOCOLS:
            raise RefusedError("is not a pickle of protocol 2 to 5")
        # Bytes and set members that calls may still make: an honest file makes each out of some of its own bytes.
        self.left = len(data)
        source = io.BytesIO(data)
        opcodes = pickletools.genops(source)
        for count in range(MAX_OPCODES):
            if count % _LOOK == 0:
                self.work.look()
            try:
                self._check_next(data, source.tell())
                opcode, argument, place = next(opcodes)
                if opcode.name == "STOP":
                    return self._result()
                if opcode.name == "PROTO" and count:
                    raise RefusedError(f"asks for the opcode {opcode.name}")
                if opcode.name == "FRAME" and argument > len(data) - place:
                    raise RefusedError(f"claims a frame of {argument} bytes where {len(data) - place} are left")
                _HANDLERS[opcode.name](self, argument)
            except _WRONG as error:
                raise RefusedError(f"is damaged ({shown(error)})") from error
        raise RefusedError(f"has more than {MAX_OPCODES} opcodes")

    def _check_next(self, data: bytes, place: int) -> None:
        """Refuses the next opcode before its argument is read, which of a text may take more than the file."""
        opcode = pickletools.code2op.get(chr(data[place])) if place < len(data) else None
        if opcode is None:
            return  # genops says what is wrong
        if opcode.name != "STOP" and opcode.name not in _HANDLERS:
            raise RefusedError(f"asks for the opcode {opcode.name}")
        if (size := _LENGTHS.get(opcode.name)) is None:
            return
        begin = place + 1 + size
        length = int.from_bytes(data[place + 1 : begin], "little")
        if length <= len(data) - begin and _is_wide(data, begin, begin + length):
            self.wide -= length
        if self.wide < 0:
            raise RefusedError(f"holds more than {MAX_WIDE} bytes of text beyond Latin-1")

    def _result(self) -> Any:
        result = self._pop()
        if self.unused:
            raise RefusedError(f"asks for {min(self.unused)}")
        return result

    def _pop(self) -> Any:
        if not self.stack or self.stack[-1] is Mark:
            raise RefusedError("is damaged (an empty stack)")
        return self.stack.pop()

    def _top(self, kind: type | tuple[type, ...]) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            raise RefusedError("is damaged (a value that does not fit its opcode)")
        return self.stack[-1]

    def _to_mark(self) -> list[Any]:
        found: list[Any] = []
        while self.stack and self.stack[-1] is not Mark:
            found.append(self.stack.pop())
        if not self.stack:
            raise RefusedError("is damaged (no mark)")
        self.stack.pop()
        return found[::-1]

    def skip(self, argument: Any) -> None:
        """Does nothing: PROTO, FRAME."""

    def push(self, value: Any) -> None:
        """Pushes a literal."""
        if isinstance(value, int) and value.bit_length() > 64:
            raise RefusedError(f"holds a whole number of {value.bit_length()} bits")
        self.stack.append(value)

    def tuple_of(self, size: int) -> None:
        """Pushes a tuple of the topmost values."""
        self.stack.append(tuple([self._pop() for _ in range(size)][::-1]))

    def put(self, place: int) -> None:
        """Remembers the top of the stack."""
        if place > MAX_OPCODES:
            raise RefusedError(f"claims a memo of {place} places")
        if not self.stack or self.stack[-1] is Mark:
            raise RefusedError("is damaged (nothing to remember)")
        self.memo[place] = self.stack[-1]

    def get(self, place: int) -> None:
        """Pushes what is remembered."""
        if place not in self.memo:
            raise RefusedError(f"is damaged (memo {place} is not there)")
        self.stack.append(self.memo[place])

    def items(self, values: list[Any]) -> None:
        """Puts key, value, key, value into the dict on top."""
        target = self._top(dict)
        if len(values) % 2:
            raise RefusedError("is damaged (a key without a value)")
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[self.work.key(key, len(target))] = value

    def global_name(self, module: Any, name: Any) -> None:
        """Pushes the record of a name; one that is not allowed can only stand over an object's fields."""
        if not (isinstance(module, str) and isinstance(name, str)):
            raise RefusedError(f"asks for {shown(module)}.{shown(name)}")
        made = Global(ALLOWED.get((module, name), OTHER), module, name)
        if made.kind == OTHER:
            self.unused.add(made.text)
        self.stack.append(made)

    def new_object(self) -> None:
        """Pushes the record of an object that is made without arguments, or the values of a named tuple."""
        arguments, kind = self._pop(), self._pop()
        if not isinstance(kind, Global) or not isinstance(arguments, tuple):
            raise RefusedError("asks for the opcode NEWOBJ of a value that is no name")
        if kind.kind != OTHER:
            raise RefusedError(f"asks for the opcode NEWOBJ of {kind.text}")
        if arguments and kind.package in _LIBRARIES:
            raise RefusedError(f"asks for {kind.text} with arguments")
        self.unused.discard(kind.text)
        self.stack.append(arguments or Object(kind.text))

    def reduce(self) -> None:
        """Makes the value that an allowed name stands for."""
        arguments, function = self._pop(), self._pop()
        if not isinstance(function, Global) or not isinstance(arguments, tuple):
            raise RefusedError("calls a value that is no allowed name")
        if function.kind == OTHER:
            raise RefusedError(f"asks for {function.text}")
        if function.kind not in MAKERS:
            raise RefusedError(f"calls {function.text}")
        if len(arguments) > 4:
            raise RefusedError(f"calls {function.text} with {len(arguments)} arguments")
        given = (*arguments, *([Mark] * (4 - len(arguments))))
        if function.kind == "set":
            self.left -= len(arguments[0]) if arguments and isinstance(arguments[0], list | tuple) else 0
            made = MAKERS["set"](*given, work=self.work) if self.left >= 0 else None
        else:
            made = MAKERS[function.kind](*given)
            self.left -= len(made) if isinstance(made, bytes) else 0
        if self.left < 0:
            raise RefusedError(f"makes more out of {function.text} than it holds")
        self.stack.append(made)

    def build(self) -> None:
        """Fills in an array, a dtype or an object."""
        state = self._pop()
        target = self._top(object)
        if not isinstance(target, Array | Dtype | Object):
            raise RefusedError(f"sets the state of a {type(target).__name__.strip('_').lower()}")
        target.build(state)


def _is_wide(data: bytes, begin: int, end: int) -> bool:
    """Returns whether UTF-8 holds a character beyond Latin-1."""
    return any(data[n : min(n + _PART, end)].translate(None, _LATIN) for n in range(begin, end, _PART))


def _extend(machine: _Machine, values: list[Any]) -> None:
    machine._top(list).extend(values)


def _add(machine: _Machine, values: list[Any]) -> None:
    target = machine._top(set)
    for value in values:
        target.add(machine.work.key(value, len(target)))


def _frozen(machine: _Machine) -> None:
    values = machine._to_mark()
    machine.push(set())
    _add(machine, values)


_HANDLERS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), _Machine.skip),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"), _Machine.push),
    **dict.fromkeys(("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), _Machine.push),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"), _Machine.push),
    "NONE": lambda m, _: m.push(None),
    "NEWTRUE": lambda m, _: m.push(True),
    "NEWFALSE": lambda m, _: m.push(False),
    "MARK": lambda m, _: m.stack.append(Mark),
    "POP": lambda m, _: m.stack.pop() if m.stack else m._pop(),
    "POP_MARK": lambda m, _: m._to_mark() and None,
    "EMPTY_DICT": lambda m, _: m.push({}),
    "EMPTY_LIST": lambda m, _: m.push([]),
    "EMPTY_TUPLE": lambda m, _: m.push(()),
    "EMPTY_SET": lambda m, _: m.push(set()),
    "TUPLE": lambda m, _: m.push(tuple(m._to_mark())),
    "TUPLE1": lambda m, _: m.tuple_of(1),
    "TUPLE2": lambda m, _: m.tuple_of(2),
    "TUPLE3": lambda m, _: m.tuple_of(3),
    "APPEND": lambda m, _: _extend(m, [m._pop()]),
    "APPENDS": lambda m, _: _extend(m, m._to_mark()),
    "SETITEM": lambda m, _: m.items([m._pop(), m._pop()][::-1]),
    "SETITEMS": lambda m, _: m.items(m._to_mark()),
    "ADDITEMS": lambda m, _: _add(m, m._to_mark()),
    "FROZENSET": lambda m, _: _frozen(m),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Machine.put),
    "MEMOIZE": lambda m, _: m.put(len(m.memo)),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.get),
    "GLOBAL": lambda m, text: m.global_name(*text.rpartition(" ")[::2]),
    "STACK_GLOBAL": lambda m, _: m.global_name(*[m._pop(), m._pop()][::-1]),
    "REDUCE": lambda m, _: m.reduce(),
    "NEWOBJ": lambda m, _: m.new_object(),
    "BUILD": lambda m, _: m.build(),
}
