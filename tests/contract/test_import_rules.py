"""Who may import whom, and that importing anything computes nothing."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

SHARED = {"envs", "envs.game", "envs.errors", "envs.batching", "envs.random_play"}
"""What the learner's side may know of the games."""
FOREIGN = {"pyspiel", "open_spiel", "pgx", "pettingzoo", "gymnasium", "gym", "rlcard", "torch"}
"""Other people's games: imported in envs/adapters alone."""


def _files(repo: pathlib.Path, package: str) -> list[pathlib.Path]:
    found = sorted((repo / package).rglob("*.py"))
    assert found
    return found


def _module(repo: pathlib.Path, file: pathlib.Path) -> str:
    parts = list(file.relative_to(repo).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(repo: pathlib.Path, file: pathlib.Path, nodes: Iterator[ast.AST]) -> set[str]:
    """Returns the modules a file imports, `from a import b` as a.b where that is a module; absolute names."""
    package = file.parent.relative_to(repo).parts
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join((*above, *([node.module] if node.module else [])))
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                path = repo.joinpath(*inner.split("."))
                found.add(inner if path.is_dir() or path.with_suffix(".py").exists() else source)
    return found


def _at_module_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes that run on import: all but what stands inside functions."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from _at_module_level(node)


def _all_imports(repo: pathlib.Path, file: pathlib.Path) -> set[str]:
    """Returns every module a file imports anywhere, and every module of envs it names in a string."""
    tree = ast.parse(file.read_text())
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    named = {text.split(":")[0] for text in texts if text.startswith("envs.") and " " not in text}
    return _imported(repo, file, ast.walk(tree)) | named


def test_the_learner_knows_no_concrete_game(repo: pathlib.Path) -> None:
    """dream/ meets games through the interface and the helpers that fit any game."""
    for file in _files(repo, "dream"):
        games = {name for name in _all_imports(repo, file) if name.split(".")[0] == "envs"}
        assert games <= SHARED, f"{file}: {sorted(games - SHARED)}"


def test_games_know_no_learner(repo: pathlib.Path) -> None:
    """envs/ imports nothing of dream/."""
    for file in _files(repo, "envs"):
        assert not [name for name in _all_imports(repo, file) if name.split(".")[0] == "dream"], file


def test_the_rule_can_be_broken(repo: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Each way to write a forbidden import is seen."""
    lines = [
        "import envs.gin_rummy",
        "from envs import gin_rummy",
        "from envs.gin_rummy import deadwood",
        "def f():\n    from envs.gin_rummy.table import Table",
        "import importlib\nimportlib.import_module('envs.gin_rummy.event_log.game')",
    ]
    for line in lines:
        tree = tmp_path / "dream"
        tree.mkdir(exist_ok=True)
        (tmp_path / "envs" / "gin_rummy").mkdir(parents=True, exist_ok=True)
        (tree / "wrong.py").write_text(line + "\n")
        assert not _all_imports(tmp_path, tree / "wrong.py") <= SHARED | {"importlib"}, line


@pytest.mark.parametrize("package", ["envs", "dream"])
def test_foreign_environments_are_imported_in_adapters_alone(repo: pathlib.Path, package: str) -> None:
    """No module outside envs/adapters imports another environment library when it is imported itself."""
    for file in _files(repo, package):
        if (repo / "envs" / "adapters") not in file.parents:
            names = _imported(repo, file, _at_module_level(ast.parse(file.read_text())))
            assert not {name.split(".")[0] for name in names} & FOREIGN, file


def test_importing_every_module_starts_no_backend(repo: pathlib.Path) -> None:
    """In a fresh interpreter: no JAX backend after importing all of envs and dream, and no foreign environment."""
    modules = [_module(repo, file) for package in ("envs", "dream") for file in _files(repo, package)]
    script = (
        "import importlib, sys\n"
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name)\n"
        "from jax._src import xla_bridge\n"
        "assert not xla_bridge.backends_are_initialized(), 'a backend was started'\n"
        f"loaded = sorted(set(sys.modules) & {FOREIGN!r})\n"
        "assert not loaded, loaded\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=repo, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
