"""The page's language: the server sends keys, and strings.js has a sentence for each of them."""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator

import pytest

import envs
from dream.page import refusals
from dream.page.refusals import CODES, RefusedError
from dream.page.server import FILES
from envs import boards, registry

_STRINGS = (FILES / "strings.js").read_text()
_MODULES = sorted(FILES.parent.glob("*.py"))
_OWN_GAMES = sorted(registry._OWN)
_SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:]? (\{\}|[A-Za-z]{2,})")
"""Two words, or a word and something that is filled in."""
_OWN_WORDS = {("server.py", "not found"), ("server.py", "listen")}
"""Texts that no message holds: the answer of HTTP to a wrong address, and a function that the command calls."""


def _table(name: str) -> str:
    """Returns what strings.js has in a table, without its braces."""
    return _STRINGS[_STRINGS.index(f"\nconst {name} = {{") :].split("\n};")[0].partition("{")[2]


def _line(name: str) -> set[str]:
    """Returns the keys of a table that is a line of strings.js."""
    return set(re.findall(r"(\w+): \"", _STRINGS[_STRINGS.index(f"\nconst {name} = {{") :].split("\n")[1]))


def test_every_code_has_a_sentence_with_its_parameters() -> None:
    """Neither one too few nor one too many, and each sentence takes what is sent."""
    found = re.findall(r"^  (\w+): \((?:\{ ([\w, ]+) \})?\) =>", _table("ERRORS"), re.MULTILINE)
    assert {code: tuple(filter(None, params.split(", "))) for code, params in found} == CODES
    assert len(found) == len(CODES)


def test_every_game_and_variant_has_a_name() -> None:
    """Of the games that come with the package."""
    titles = dict(re.findall(r"^  (\w+): \"(.+)\",$", _table("GAMES"), re.MULTILINE))
    assert sorted(titles) == _OWN_GAMES
    variants = dict(re.findall(r"^  (\w+): \{ (.+) \},$", _table("VARIANTS"), re.MULTILINE))
    given = {name: re.findall(r"\"?(\w+)\"?: \"", text) for name, text in variants.items()}
    keys = {name: [one.key for one in boards.variants(name)] for name in _OWN_GAMES}
    assert given.keys() <= keys.keys()
    for name, found in keys.items():
        assert set(given.get(name, ())) <= set(found) <= {*given.get(name, ()), *_line("ANY_GAME")}


def test_every_unit_has_a_name() -> None:
    """In which a game counts."""
    assert _line("UNITS") == {envs.make(name).unit for name in _OWN_GAMES}


def _texts(tree: ast.AST) -> Iterator[str]:
    """Yields every text of a program but docstrings and what stands in a function of _OWN_WORDS."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.FunctionDef) and node.name in {name for _, name in _OWN_WORDS}:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        else:
            yield from _texts(node)


@pytest.mark.parametrize("path", _MODULES, ids=lambda path: path.stem)
def test_the_server_has_no_sentences(path: pathlib.Path) -> None:
    """A text of its programs is a key, a name or a part of one."""
    found = {text for text in _texts(ast.parse(path.read_text())) if _SENTENCE.search(text)}
    assert {text for text in found if (path.name, text) not in _OWN_WORDS} == set()


def test_every_error_is_raised_by_its_code() -> None:
    """With the parameters that the code has; no code is left over, and no plain InputError is raised for the page."""
    raised = set()
    for path in _MODULES:
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id == "RefusedError":
                (code,) = (one.value for one in node.args)
                assert {one.arg for one in node.keywords} == set(CODES[code]), (path.name, code)
                raised.add(code)
            assert node.func.id != "InputError" or path.name == "server.py", path.name
    assert raised == set(CODES) - {refusals.LIBRARY}


def test_a_line_of_the_library_is_marked() -> None:
    """What is not refused by the page itself is sent as text, under a code of its own."""
    own = refusals.message(RefusedError("unknown_game", game="x"))
    assert own == {"type": "error", "code": "unknown_game", "params": {"game": "x"}}
    line = refusals.message(envs.InputError("file, record 2: no JSON"))
    assert line == {"type": "error", "code": "library", "params": {"text": "file, record 2: no JSON"}}
