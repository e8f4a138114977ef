"""The README and the pages of docs/, followed: Python blocks run, commands compose, links lead somewhere."""

from __future__ import annotations

import contextlib
import importlib
import pathlib
import re
import shlex
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from command_support import REPO
from documented_metrics import documented

import envs
from dream.config.compose import compose_config, jobs

DOCS = REPO / "docs"
PAGES = [
    REPO / "README.md",
    REPO / "experiments" / "README.md",
    REPO / "experiments" / "benchmarks" / "README.md",
    *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts),
]
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*) -->\n\n)?^```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
"""A block of Python, and the mark before it: `not run: <why>`, or `file: <name>` for one that is a file."""
COMMAND = re.compile(r"(?<![\w.])python -m dream[. ](run|evaluate|exploit|ladder|export)\b([^`\n]*)")
CONFIGS = {"run": "config"}
"""Command -> its configuration, where the name is another."""
COMPOSED: set[tuple[str, ...]] = set()
"""Commands with their overrides, the seed left out, that were composed."""


class Block(NamedTuple):
    """A block of Python on a page."""

    mark: str
    code: str
    line: int


def blocks(page: pathlib.Path) -> list[Block]:
    """Returns a page's blocks of Python in order."""
    text = page.read_text()
    return [Block(m["mark"] or "", m["code"], text[: m.start("code")].count("\n")) for m in BLOCK.finditer(text)]


def commands(page: pathlib.Path) -> Iterator[tuple[str, list[str]]]:
    """Yields each command of the project on a page with its overrides; placeholders and prose are left out."""
    for name, rest in COMMAND.findall(page.read_text()):
        words = shlex.split(rest.split("#")[0])
        overrides = [word for word in words if "=" in word and "<" not in word and "..." not in word]
        yield name, overrides


def _name(page: pathlib.Path) -> str:
    return str(page.relative_to(REPO))


def test_pages_have_blocks_and_commands() -> None:
    """The patterns find what is there; a mark is one of the two."""
    found = [block for page in PAGES for block in blocks(page)]
    assert len(found) == sum(page.read_text().count("```python") for page in PAGES) > 10
    assert all(block.mark.startswith(("", "not run: ", "file: ")[bool(block.mark) :]) for block in found)
    assert sum(1 for page in PAGES for _ in commands(page)) > 20


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any("not run" not in b.mark for b in blocks(page))], ids=_name
)
def test_python_blocks(page: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page's blocks run one after the other in one namespace, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    scope: dict[str, object] = {"__name__": "__page__"}
    files = []
    for block in blocks(page):
        if block.mark.startswith("file: "):
            files.append(block.mark.removeprefix("file: "))
            (tmp_path / files[-1]).write_text(block.code)
        elif not block.mark:
            exec(compile("\n" * block.line + block.code, str(page), "exec"), scope)
    for name in files:
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.mark.parametrize("page", [page for page in PAGES if any(commands(page))], ids=_name)
def test_commands_compose(page: pathlib.Path) -> None:
    """Every command's overrides name groups, options and keys that there are; every job of a sweep does.

    Of jobs that differ in the seed alone one is composed, whatever page it is on.
    """
    for name, overrides in commands(page):
        for job in jobs([override for override in overrides if not override.startswith("resume=")]):
            kind = (name, *(override for override in job if not override.startswith("seed=")))
            if kind not in COMPOSED:
                compose_config(CONFIGS.get(name, name), job)
                COMPOSED.add(kind)


def _resolves(path: str) -> bool:
    """Returns whether a dotted path names a module, or something in one."""
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(path)
        return True
    module, _, name = path.rpartition(".")
    return bool(module) and _resolves(module) and hasattr(importlib.import_module(module), name)


def test_names_of_code() -> None:
    """Every dotted name of this project in backticks, and every path of a file in it, is there."""
    for page in PAGES:
        if "decisions" in page.parts:  # what was true when it was written
            continue
        text = page.read_text()
        for path in re.findall(r"`((?:dream|envs)(?:\.\w+)+)`", text):
            assert _resolves(path), (page.name, path)
        for path in re.findall(r"`((?:dream|envs|conf|tests|experiments|docs)/[\w./]+)`", text):
            assert (REPO / path).exists(), (page.name, path)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links(page: pathlib.Path) -> None:
    """Links and pictures on a page lead to files that there are."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("folder", ["experiments", "experiments/benchmarks"])
def test_lists_of_scripts(folder: str) -> None:
    """A folder's README has a row for each script that is run, and none for one that is not there."""
    listed = re.findall(r"^\| `(\w+\.py)` \|", (REPO / folder / "README.md").read_text(), re.MULTILINE)
    run = [path.name for path in (REPO / folder).glob("*.py") if '__name__ == "__main__"' in path.read_text()]
    assert sorted(listed) == sorted(run)


def test_documented_metrics_exist() -> None:
    """Each name, or its last part, is written in the code that reports it."""
    code = "".join(path.read_text() for path in sorted((REPO / "dream").rglob("*.py")))
    last = [name.rpartition("/")[2].removeprefix("unseen_") for name in documented() if not name.endswith(">")]
    assert len(last) > 50
    assert [name for name in last if not re.search(rf'["/]{re.escape(name)}"', code)] == []


def test_table_of_games() -> None:
    """Every game has a row with its own numbers of players, actions and inputs, and whether it can be enumerated."""
    rows = re.findall(r"^\| \[`(\w+)`\]\([^|]*(.*)\|$", (DOCS / "games" / "index.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == envs.names()
    for name, row in rows:
        players, actions, observation, enumerable = (cell.strip() for cell in row.split("|")[1:5])
        game = envs.make(name)
        least, _, most = players.partition(" to ")
        assert int(least) <= game.num_players <= int(most or least), name
        stated = (int(cell.split()[0].replace(",", "")) for cell in (actions, observation))
        assert tuple(stated) == (game.num_actions, game.observation_size), name
        assert enumerable.startswith("yes") == isinstance(game, envs.EnumerableGame), name
