"""What the pages take from the code at build time, so that it is written down once.

Directives, usable in Markdown and in reStructuredText pages:
  module-text: a module's docstring, read as Markdown (its tables and equations are written so).
  settings: a table of the settings of an algorithm, a network or a part of the configuration.
  rules: a table of the fields of a record of rules, a column for each preset.
  renamed: a table of old and new names of settings.
  api: the reference of a package and all modules in it, but for those named after it and what is in them.
Docstrings use inline maths in plain symbols; `to_rst` keeps autodoc from reading them as markup.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ("Args:", "Returns:", "Raises:", "Attributes:", "Yields:", "Source:", "Sources:")
_SPECIAL = re.compile(r"([\\*|_`])")
_LITERAL = re.compile(r"`([^`\n]+)`")


def found(path: str) -> Any:
    """Returns what a dotted path names: a module, or something in one."""
    module, rest = path, []
    while True:
        try:
            value = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            if "." not in module:
                raise
            module, _, name = module.rpartition(".")
            rest.insert(0, name)
    for name in rest:
        value = getattr(value, name)
    return value


class _FromCode(Directive):
    """A directive that writes lines and has the page's own parser read them."""

    required_arguments = 1
    optional_arguments = 5
    has_content = False

    def lines(self) -> list[str]:
        """Returns the Markdown."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        self.state.document.settings.env.note_dependency(__file__)
        parent = nodes.container()
        self.state.nested_parse(StringList(self.lines(), self.arguments[0]), self.content_offset, parent)
        return parent.children


class ModuleText(_FromCode):
    """`module-text`: the docstring of a module after its first paragraph."""

    def lines(self) -> list[str]:
        """Returns the docstring's lines."""
        text = inspect.getdoc(importlib.import_module(self.arguments[0])) or ""
        return text.split("\n\n", 1)[1].splitlines() if "\n\n" in text else text.splitlines()


class Settings(_FromCode):
    """`settings`: a dataclass's path, and the YAML file whose comments explain its values."""

    def lines(self) -> list[str]:
        """Returns the table."""
        schema = found(self.arguments[0])
        notes = comments(ROOT / self.arguments[1]) if len(self.arguments) > 1 else {}
        rows = [
            f"| `{name}` | `{_shown(value)}` | {notes.get(name, '')} |"
            for name, value in flat(schema)
            if name != "name"
        ]
        return ["| setting | default | meaning |", "|---|---|---|", *rows]


class Rules(_FromCode):
    """`rules`: paths of rule records or of a dictionary of them; a column for each."""

    def lines(self) -> list[str]:
        """Returns the table."""
        records: dict[str, Any] = {}
        for path in self.arguments:
            value = found(path)
            if isinstance(value, dict):
                records |= value
            else:
                records["default"] = value() if inspect.isclass(value) else value
        names = list(dict.fromkeys(f.name for record in records.values() for f in dataclasses.fields(record)))
        head = ["| rule | " + " | ".join(f"`{name}`" for name in records) + " |", "|---" * (len(records) + 1) + "|"]
        return head + [
            "| `" + name + "` | " + " | ".join(f"`{_shown(getattr(x, name, ''))}`" for x in records.values()) + " |"
            for name in names
        ]


class Renamed(_FromCode):
    """`renamed`: the names that `dream.config.renamed` answers with new ones."""

    def lines(self) -> list[str]:
        """Returns the table."""
        names = importlib.import_module(self.arguments[0])
        rows = [
            (f"{group}={old}", f"{group}={new}")
            for group in ("algo", "experiment")
            for old, new in names.OPTIONS[group].items()
        ]
        rows += sorted(names.KEYS.items())
        rows += [
            (f"{key}={old}", f"{key}={new}") for key, values in names.VALUES.items() for old, new in values.items()
        ]
        return ["| old | new |", "|---|---|", *(f"| `{old}` | `{new}` |" for old, new in rows)]


class Api(_FromCode):
    """`api`: automodule for a package and all modules in it, those left out named after it."""

    optional_arguments = 20

    def lines(self) -> list[str]:
        """Returns a section for each module."""
        lines = []
        for name in modules(self.arguments[0], self.arguments[1:]):
            options = [":members:", ":show-inheritance:", ":ignore-module-all:"]
            lines += [f"## `{name}`", "", "```{eval-rst}", f".. automodule:: {name}"]
            lines += [f"   {option}" for option in options] + ["```", ""]
        return lines


def modules(name: str, without: list[str]) -> list[str]:
    """Lists a module and all in it; `without` and what is in them left out, and commands that run when imported."""
    module = importlib.import_module(name)
    inside = [m.name for m in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}.")]
    skipped = tuple(f"{x}." for x in without)
    return [name, *(x for x in inside if not f"{x}.".startswith(skipped) and not x.endswith("__main__"))]


def flat(schema: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the settings of a dataclass or an instance of one: dotted name and default.

    Nested settings come in place; a schedule is one setting.
    """
    for field in dataclasses.fields(schema):
        value = getattr(schema, field.name, dataclasses.MISSING)
        if value is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        if dataclasses.is_dataclass(value) and hasattr(value, "transition_steps"):
            shown = ", ".join(f"{f.name}: {_shown(getattr(value, f.name))}" for f in dataclasses.fields(value))
            yield f"{prefix}{field.name}", f"{{{shown}}}"
        elif dataclasses.is_dataclass(value):
            yield from flat(value, f"{prefix}{field.name}.")
        elif value is not dataclasses.MISSING:
            yield f"{prefix}{field.name}", value


def comments(path: Path) -> dict[str, str]:
    """Returns the comment of every key of a YAML file by its dotted name; lines of comment alone go on the last."""
    notes: dict[str, str] = {}
    parents: list[tuple[int, str]] = []
    last = None
    for line in path.read_text().splitlines() if path.exists() else []:
        if more := re.fullmatch(r"\s+#\s*(.*)", line):
            if last is not None:
                notes[last] = f"{notes.get(last, '')} {_cell(more[1])}".strip()
            continue
        if not (key := re.match(r"(\s*)([\w.]+):", line)):
            continue
        depth = len(key[1])
        parents = [(d, name) for d, name in parents if d < depth]
        last = ".".join([*(name for _, name in parents), key[2]])
        parents.append((depth, key[2]))
        if note := re.search(r"\s#\s*(.*)", line):
            notes[last] = _cell(note[1])
    return notes


def _cell(text: str) -> str:
    return text.replace("|", "\\|").strip()


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(list(value) if isinstance(value, tuple) else value)


def to_rst(lines: list[str]) -> list[str]:
    """Returns a docstring's lines as reStructuredText that says the same.

    Words in backticks become literals, every other special character is escaped, and indented blocks and tables
    outside of sections become literal blocks, as the equations in them are written in plain symbols.
    """
    out: list[str] = []
    section = block = False
    for line in lines:
        stripped = line.strip()
        indented = bool(stripped) and line[0] == " "
        if stripped in SECTIONS or (not indented and stripped.split(" ")[0] in ("Source:", "Sources:")):
            section = stripped in SECTIONS
            if not section:
                out.append("")
        elif stripped and not indented:
            section = False
        literal = bool(stripped) and not section and (indented or stripped.startswith("|"))
        if literal and not block:
            out += ["", "::", ""]
        if block and not literal and stripped:
            out.append("")
            block = False
        block = block or literal
        out.append("    " + line if literal else _escaped(line))
    return out


def _escaped(line: str) -> str:
    parts = _LITERAL.split(line)
    return "".join(f"``{part}``" if n % 2 else _SPECIAL.sub(r"\\\1", part) for n, part in enumerate(parts))


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = to_rst(lines)


def _numbered(app: Sphinx, docname: str, source: list[str]) -> None:
    """Puts the numbered decisions below their index, which names them in tables."""
    if docname == "decisions/index" and "{toctree}" not in source[0]:
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n[0-9]*\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the directives; docstrings are made safe before napoleon reads them."""
    directives = {"module-text": ModuleText, "settings": Settings, "rules": Rules, "renamed": Renamed, "api": Api}
    for name, directive in directives.items():
        app.add_directive(name, directive)
    app.connect("autodoc-process-docstring", _process, priority=100)
    app.connect("source-read", _numbered)
    return {"version": "1", "parallel_read_safe": True}
