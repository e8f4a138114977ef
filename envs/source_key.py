"""What a game or a player does, as a key: the source it was read from and the code and constants it runs with.

Two halves, because each misses something. The files of the game's module and of the modules it imports hold all that
was written down. The code objects of its methods, with the functions, classes and constants they name, hold what was
typed into a notebook, run from a string, or replaced since the file was read. Data from elsewhere shows in neither.
Comments, docstrings and empty lines count in neither.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import enum
import functools
import hashlib
import importlib.util
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from envs.game import Game, Policy

_OWN = {"envs"}
"""Packages whose modules count wherever they are installed."""
_INSTALLED = tuple({str(Path(sysconfig.get_paths()[name]).resolve()) for name in ("stdlib", "purelib", "platlib")})
"""Where the modules of others are."""
_HAS_DOCSTRING = getattr(inspect, "CO_HAS_DOCSTRING", 0)
"""Flag of a function's code since Python 3.13; before, the first constant of any function is its docstring or None."""
_NOT_ITS_OWN = {"__dict__", "__weakref__", "__module__", "__doc__", "__slotnames__"}
"""Attributes of a class that say nothing of what it does; Python adds the last one when an instance is copied."""


def source_key(game: Any) -> str:
    """Returns a digest of what a game does: the same for the same sources, code and constants, in any process."""
    digest = hashlib.sha256()
    kinds = [kind for kind in type(game).__mro__ if _is_own(kind.__module__, type(game).__module__)]
    for name, source in sorted(_sources({kind.__module__ for kind in kinds}).items()):
        digest.update(f"{name} {len(code := _read(source).code)}\n".encode())
        digest.update(code)
    _Walk(type(game).__module__, digest).add(type(game))
    return digest.hexdigest()


def player_key(player: Policy, game: Game, modules: Iterable[str] = ()) -> str:
    """Returns a digest of the code by which a player plays a game; of its parameters, that of the policies in them.

    Args:
      player: of the game.
      game: what it plays, whose own code counts.
      modules: others whose sources count, by name, with what they import: where the player was made, say.
    """
    digest, own = hashlib.sha256(source_key(game).encode()), list(_policies(player))
    owners = [_code_of(one.apply) for one in own]
    places = [owner.__module__ or "__main__" for owner in owners]
    for name, source in sorted(_sources({*modules, *places}).items()):
        digest.update(f"{name} {len(code := _read(source).code)}\n".encode())
        digest.update(code)
    for one, owner, place in zip(own, owners, places, strict=True):
        _Walk(place, digest).add([owner, one.apply])
    return digest.hexdigest()


def _policies(player: Policy) -> Iterator[Policy]:
    """Yields a player, and those that it plays by."""
    yield player
    for inner in jax.tree.leaves(player.params, is_leaf=lambda value: isinstance(value, Policy)):
        if isinstance(inner, Policy):
            yield from _policies(inner)


def _code_of(function: Any) -> Any:
    """Returns the function or the class that a callable's code is of."""
    while isinstance(function, functools.partial) or hasattr(function, "__wrapped__"):
        function = function.func if isinstance(function, functools.partial) else function.__wrapped__
    if isinstance(function, types.FunctionType):
        return function
    return type(function.__self__ if isinstance(function, types.MethodType) else function)


def _is_own(module: str | None, game_module: str) -> bool:
    """Returns whether a module belongs to the project or to whoever wrote the game."""
    if not module or module.split(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    top = module.split(".")[0]
    if top in _OWN or top == game_module.split(".")[0]:
        return True
    file = getattr(sys.modules.get(module), "__file__", None) or _origin(module)
    return file is not None and not str(Path(file).resolve()).startswith(_INSTALLED)


def _origin(module: str) -> str | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec.origin if spec is not None and spec.has_location else None


def _sources(modules: set[str]) -> dict[str, bytes]:
    """Returns the source of modules, and of those of the same owner that they import, by module name."""
    first, found, left = next(iter(sorted(modules))), {}, sorted(modules)
    owners = {name.split(".")[0] for name in modules} | _OWN
    while left:
        name = left.pop()
        if name in found:
            continue
        file = getattr(sys.modules.get(name), "__file__", None) or _origin(name)
        try:
            found[name] = Path(file).read_bytes() if file and file.endswith(".py") else b""
        except OSError:
            found[name] = b""
        package = getattr(sys.modules.get(name), "__package__", None) or name.rpartition(".")[0]
        for other in _imported(package, found[name]):
            if other not in found and (other.split(".")[0] in owners or _is_own(other, first)):
                left.append(other)
    return found


def _imported(package: str, source: bytes) -> Iterator[str]:
    """Yields the modules that a source imports, anywhere in it."""
    for level, module, names in _read(source).imports:
        if level:
            parents = package.split(".")[: len(package.split(".")) - level + 1]
            module = ".".join([*parents, *filter(None, [module])])
        yield module
        yield from (found for name in names if _origin(found := f"{module}.{name}"))


class _Source(NamedTuple):
    """What a source says: its imports as (dots before the module, module, names), and its code."""

    imports: list[tuple[int, str, tuple[str, ...]]]
    code: bytes


@functools.lru_cache(maxsize=1024)
def _read(source: bytes) -> _Source:
    """Reads a source; one that is no Python has no imports, and is code as a whole."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError):
        return _Source([], source)
    imports = [(0, alias.name, ()) for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    imports += [
        (node.level, node.module or "", tuple(alias.name for alias in node.names))
        for node in nodes
        if isinstance(node, ast.ImportFrom)
    ]
    return _Source(imports, _without_prose(source, nodes))


def _without_prose(source: bytes, nodes: list[ast.AST]) -> bytes:
    """Returns the lines of a source without comments, strings that are statements, and lines left empty."""
    lines, spans = source.splitlines(), {}
    prose = {row for node in nodes if _is_prose(node, lines) for row in range(node.lineno, node.end_lineno + 1)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            for row in range(node.lineno, node.end_lineno + 1):
                first = node.col_offset if row == node.lineno else 0
                last = node.end_col_offset if row == node.end_lineno else len(lines[row - 1])
                spans.setdefault(row, []).append((first, last))
    kept = []
    for row, line in enumerate(lines, 1):
        marks = (place for place, letter in enumerate(line) if letter == ord("#")) if b"#" in line else ()
        comment = next((at for at in marks if not any(a <= at < b for a, b in spans.get(row, ()))), len(line))
        if row not in prose and (row in spans or line[:comment].strip()):
            kept.append(line[:comment].rstrip() if comment < len(line) else line)
    return b"\n".join(kept)


def _is_prose(node: ast.AST, lines: list[bytes]) -> bool:
    """Returns whether a node is a string on lines of its own: a docstring, or what is said of an attribute."""
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
        return False
    before, after = lines[node.lineno - 1][: node.col_offset], lines[node.end_lineno - 1][node.end_col_offset :]
    return not before.strip() and (not after.strip() or after.strip().startswith(b"#"))


class _Walk:
    """Feeds a digest with code, and with what the code names."""

    def __init__(self, game_module: str, digest: Any) -> None:
        self._game_module, self._digest = game_module, digest
        self._seen: dict[int, Any] = {}
        """By id, kept so that no id is given to another object."""

    def add(self, value: Any) -> None:
        """Adds a value of any kind; of objects that cannot be recognised from one process to the next, the type."""
        if isinstance(value, bool | int | float | complex | str | bytes | type(None) | types.EllipsisType | enum.Enum):
            self._put(f"{type(value).__name__} {value!r}")
        elif isinstance(value, np.ndarray | np.generic | jax.Array):
            array = np.asarray(value)
            self._put(f"{array.dtype} {array.shape}")
            self._digest.update(np.ascontiguousarray(array).tobytes())
        elif id(value) in self._seen:
            self._put("again")
        else:
            self._seen[id(value)] = value
            self._put(type(value).__qualname__)
            self._inside(value)

    def _put(self, text: str) -> None:
        self._digest.update(text.encode() + b"\0")

    def _inside(self, value: Any) -> None:
        if isinstance(value, tuple | list):
            self._each(value)
        elif isinstance(value, set | frozenset):
            self._each(sorted(value, key=repr))
        elif isinstance(value, dict):
            self._each([part for item in value.items() for part in item])
        elif isinstance(value, types.CodeType):
            self._each([value.co_code, value.co_names, _constants(value)])
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.MethodType | staticmethod | classmethod):
            self.add(value.__func__)
        elif isinstance(value, property):
            self._each([value.fget])
        elif isinstance(value, functools.partial):
            self._each([value.func, value.args, value.keywords])
        elif isinstance(value, functools.cached_property):
            self.add(value.func)
        elif isinstance(value, type):
            self._class(value)
        elif dataclasses.is_dataclass(value):
            self._each([getattr(value, field.name, None) for field in dataclasses.fields(value)])
        elif callable(value) and hasattr(value, "__wrapped__"):  # what jax.jit and functools.cache make
            self.add(value.__wrapped__)

    def _each(self, values: Any) -> None:
        self._put(str(len(values)))
        for value in values:
            self.add(value)

    def _function(self, function: types.FunctionType) -> None:
        if not _is_own(function.__module__, self._game_module):
            self._put(f"{function.__module__}.{function.__qualname__}")
            return
        self._each([function.__code__, function.__defaults__, function.__kwdefaults__])
        if hasattr(function, "__wrapped__"):
            self.add(function.__wrapped__)
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # not filled yet
                self.add(cell.cell_contents)
        self._named(function.__globals__, _names(function.__code__))

    def _named(self, space: dict[str, Any], names: set[str], within: tuple[types.ModuleType, ...] = ()) -> None:
        """Adds what a function's names stand for in its globals, and in the project's modules among them."""
        for name in sorted(names & space.keys()):
            self._put(name)
            value = space[name]
            if not isinstance(value, types.ModuleType):
                self.add(value)
                continue
            self._put(value.__name__)
            if value not in within and _is_own(value.__name__, self._game_module):
                self._named(vars(value), names, (*within, value))

    def _class(self, kind: type) -> None:
        self._put(f"{kind.__module__}.{kind.__qualname__}")
        if not _is_own(kind.__module__, self._game_module):
            return
        self._each(kind.__bases__)
        for name, value in sorted(vars(kind).items()):
            if name not in _NOT_ITS_OWN and not name.startswith("_abc_"):
                self._put(name)
                self.add(value)


def _constants(code: types.CodeType) -> tuple:
    """Returns a code's constants without its docstring, which comes first where there is one."""
    may_have = not code.co_name.startswith("<") and code.co_flags & _HAS_DOCSTRING == _HAS_DOCSTRING
    return code.co_consts[1:] if may_have and isinstance(next(iter(code.co_consts), None), str) else code.co_consts


def _names(code: types.CodeType) -> set[str]:
    """Returns the names that a function's code looks up, that of functions inside it included."""
    inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))
