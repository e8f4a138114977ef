"""Who may import whom, and that importing anything computes nothing."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

SHARED = {
    "envs",
    "envs.game",
    "envs.match_rules",
    "envs.errors",
    "envs.batching",
    "envs.checks",
    "envs.random_play",
    "envs.sampling",
    "envs.boards",
    "envs.drawing",
    "envs.keys",
    "envs.records",
    "envs.source_key",
    "envs.terminal",
    "envs.totals",
    "envs.traces",
    "envs.values",
}
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


LAYERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "dream": (
        ("__init__", "__main__"),
        ("api", "evaluate", "exploit", "export", "ladder", "play", "run"),
        ("commands",),
        ("page",),
        ("training",),
        ("evaluation", "storage"),
        ("algorithms", "search"),
        ("buffers",),
        ("game_tree", "networks", "rollout"),
        ("compiled", "equations"),
        ("config",),
    ),
    "envs/gin_rummy": (
        ("__init__",),
        ("players",),
        ("mdp", "mini"),
        ("event_log", "openspiel"),
        ("core",),
        ("melding",),
    ),
}
"""Rooms of a package from top to bottom: a room imports what stands in a lower row, and nothing else of the package."""


def _room(module: str, package: str) -> str | None:
    """Returns the room of a package that a module belongs to; None for a module of another package."""
    prefix = package.replace("/", ".")
    if module == prefix:
        return "__init__"
    return module.removeprefix(prefix + ".").split(".")[0] if module.startswith(prefix + ".") else None


def _wrong_imports(repo: pathlib.Path, package: str) -> list[str]:
    """Returns the imports between rooms of a package that do not point downward."""
    row = {room: n for n, rooms in enumerate(LAYERS[package]) for room in rooms}
    wrong = []
    for file in _files(repo, package):
        source = _room(_module(repo, file), package)
        assert source in row, f"{file} is in no row of LAYERS"
        for name in sorted(_imported(repo, file, ast.walk(ast.parse(file.read_text())))):
            target = _room(name, package)
            if target is not None and target != source and row[target] <= row[source]:
                wrong.append(f"{file.relative_to(repo)} imports {name}")
    return wrong


@pytest.mark.parametrize("package", list(LAYERS))
def test_imports_point_downward(repo: pathlib.Path, package: str) -> None:
    """Between rooms, inside functions too."""
    assert not _wrong_imports(repo, package)


def test_an_upward_import_is_seen(tmp_path: pathlib.Path) -> None:
    """From an equation to storage, wherever it is written."""
    for folder in ("equations", "storage"):
        (tmp_path / "dream" / folder).mkdir(parents=True)
        (tmp_path / "dream" / folder / "__init__.py").write_text("")
    wrong = tmp_path / "dream" / "equations" / "returns.py"
    for line in ("import dream.storage", "def f():\n    from dream.storage import hub"):
        wrong.write_text(line + "\n")
        assert _wrong_imports(tmp_path, "dream") == ["dream/equations/returns.py imports dream.storage"]


def _circles(edges: dict[str, set[str]]) -> list[str]:
    """Returns the modules that can be reached from themselves."""
    reached = {module: set(targets) for module, targets in edges.items()}
    for middle in edges:
        for targets in reached.values():
            if middle in targets:
                targets |= reached[middle]
    return sorted(module for module, targets in reached.items() if module in targets)


@pytest.mark.parametrize("package", ["envs", "dream"])
def test_no_circle_of_files(repo: pathlib.Path, package: str) -> None:
    """Imports inside functions and for type checking count; a package and its own modules are one file's worth."""
    files = {_module(repo, file): file for file in _files(repo, package)}
    edges = {
        module: {name for name in _imported(repo, file, ast.walk(ast.parse(file.read_text()))) if name in files}
        for module, file in files.items()
        if file.name != "__init__.py"
    }
    edges = {module: {name for name in targets if name in edges} for module, targets in edges.items()}
    assert not _circles(edges)


def test_a_circle_is_seen() -> None:
    """Of three files, and not of a fourth that only leads there."""
    assert _circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == ["a", "b", "c"]


def test_rooms_are_few(repo: pathlib.Path) -> None:
    """At most 23 rooms at the top of dream/, and 10 of envs/gin_rummy/."""
    for package, most in (("dream", 23), ("envs/gin_rummy", 10)):
        rooms = {_room(_module(repo, file), package) for file in _files(repo, package)}
        assert len(rooms) <= most, sorted(rooms)


def test_exploit_does_not_import_the_training_loop(repo: pathlib.Path) -> None:
    """What only measures a policy loads no training loop."""
    script = "import sys, dream.commands.exploit\nassert 'dream.training.loop' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], cwd=repo, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
