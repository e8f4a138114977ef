"""Programs that one command compiled are read by the next one, where the user has not said otherwise."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from command_support import TINY


def _programs(folder: pathlib.Path, name: str, **changes: str) -> set[str]:
    """Returns the names of the programs kept in a folder of the user's after a run."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    command = [sys.executable, "-m", "dream.run", *TINY, "env=kuhn_poker", "algo=cfr", f"run_dir={folder / name}"]
    environment |= {"XDG_CACHE_HOME": str(folder / "home"), **changes}
    subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)
    return {path.name for path in (folder / "home").glob("dream-jax/*-cache")}


def test_short_programs_are_kept_too(tmp_path: pathlib.Path) -> None:
    """The second run compiles none; a folder or a shortest time of the user's is left as it is."""
    first = _programs(tmp_path, "first")
    assert first
    assert _programs(tmp_path, "second") == first
    own = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "own"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "1000"}
    assert _programs(tmp_path, "third", **own) == first
    assert not list(tmp_path.glob("own/*-cache"))


def test_processes_of_a_sweep_read_them(tmp_path: pathlib.Path) -> None:
    """They get the folder in their environment."""
    code = "import os, sys; from dream.commands import main; main._cache_compilations(); print(os.environ[sys.argv[1]])"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    environment["XDG_CACHE_HOME"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code, "JAX_COMPILATION_CACHE_DIR"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(tmp_path / "dream-jax")
