"""The browser of the continuous checks: without one they fail, unless it is said that there shall be none."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest


def _script(folder: pathlib.Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize(
    ("programs", "said", "code", "shown"),
    [
        ({}, {}, 1, "error: no Chromium, "),
        ({"id": "echo 0", "apt-get": "echo no network >&2; exit 100"}, {}, 1, "no network\nerror: no Chromium, "),
        ({}, {"DREAM_NO_BROWSER": "1"}, 0, ""),
        ({}, {"DREAM_NO_BROWSER": "0"}, 1, "error: no Chromium, "),
        ({"google-chrome": ""}, {}, 0, ""),
    ],
    ids=["none", "apt_fails", "allowed", "not_allowed", "there"],
)
def test_no_browser_fails(
    programs: dict[str, str], said: dict[str, str], code: int, shown: str, repo: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """With one line that says why; a failed installation too."""
    bash, timeout = shutil.which("bash"), shutil.which("timeout")
    assert bash
    assert timeout
    (tmp_path / "timeout").symlink_to(timeout)
    for name, text in {"id": "echo 1000", **programs}.items():
        _script(tmp_path, name, text)
    done = subprocess.run(
        [bash, str(repo / ".ci" / "browser")], env={"PATH": str(tmp_path), **said}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert done.stderr.startswith(shown)
    assert done.stderr.count("\n") == shown.count("\n") + (code == 1)
    assert ("skipped" in done.stdout) == ("DREAM_NO_BROWSER" in said and code == 0)


def test_the_checks_ask_for_one(repo: pathlib.Path) -> None:
    """Before the tests are run, and with -e: what fails there ends them."""
    lines = (repo / ".ci" / "run").read_text().splitlines()
    assert "set -euo pipefail" in lines
    asked = next(n for n, line in enumerate(lines) if line.startswith(".ci/browser"))
    assert asked < next(n for n, line in enumerate(lines) if line.startswith("pytest"))
