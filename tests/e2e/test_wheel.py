"""The built wheel, installed outside the checkout: everything it needs is in it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest
from command_support import REPO, environment

pytest.importorskip("hatchling")


def _pip(*arguments: str, cwd: pathlib.Path) -> None:
    """Runs pip without a network."""
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pip", *arguments], cwd=cwd, env=offline, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The wheel, built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder), str(REPO), cwd=folder)
    (path,) = folder.glob("dream_rummy-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder with the wheel's packages and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    _pip("install", "--no-deps", "--quiet", "--target", str(target), str(wheel), cwd=target)
    return target


def _python(installed: pathlib.Path, cwd: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in another folder, the installed packages before all others."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(PYTHONPATH=str(installed)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_holds_all_files(wheel: pathlib.Path) -> None:
    """Every module, configuration, the page, weights, markers of typing, licence, the console script; no tests."""
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in ("dream", "envs"):
        assert {str(path.relative_to(REPO)) for path in (REPO / package).rglob("*.py")} <= names
        assert f"{package}/py.typed" in names
    page = {str(path.relative_to(REPO)) for path in (REPO / "dream" / "page" / "static").iterdir()}
    assert len(page) > 5
    assert page <= names
    weights = {str(path.relative_to(REPO)) for path in (REPO / "dream" / "weights").rglob("*.safetensors")}
    assert weights
    assert weights <= names
    assert {f"dream/{path.relative_to(REPO)}" for path in (REPO / "conf").rglob("*.yaml")} <= names
    assert not [name for name in names if name.startswith(("tests", "experiments"))]
    (scripts,) = (name for name in names if name.endswith("entry_points.txt"))
    assert "dream = dream.__main__:main" in zipfile.ZipFile(wheel).read(scripts).decode()
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_the_wheel_trains(installed: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A run from another folder uses the installed packages alone, the configuration included."""
    where = "import dream, envs, dream.config.compose as c; print(dream.__file__, envs.__file__, c.config_dir())"
    done = _python(installed, tmp_path, "-c", where)
    assert done.returncode == 0, done.stderr
    assert all(pathlib.Path(place).is_relative_to(installed) for place in done.stdout.split())
    small = ("preset=tiny", "env=kuhn_poker", "algo=cfr", "tracking.mode=disabled", "run_dir=run")
    done = _python(installed, tmp_path, "-m", "dream.run", *small)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "evaluation.json").exists()
    done = _python(installed, tmp_path, "-m", "dream", "evaluate", "checkpoint=run", "games=4")
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "run" / "evaluations").iterdir())) == 1
