"""The skipped tests of the continuous checks: those that must run there fail them."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

ALLOWED = (
    "SKIPPED [1] tests/oracle/test_export_in_torch.py:14: could not import 'torch': No module named 'torch'\n"
    "SKIPPED [12] tests/contract/test_games.py:242: the game has no card features\n"
)
NO_BROWSER = "SKIPPED [40] tests/e2e/page/conftest.py:35: no Chromium is installed (apt-get install chromium)\n"
NO_PACKAGE = "SKIPPED [1] tests/e2e/test_wheel.py:14: could not import 'hatchling': No module named 'hatchling'\n"


@pytest.mark.parametrize(
    ("skipped", "said", "wrong"),
    [
        ("", {}, ""),
        (ALLOWED, {}, ""),
        (ALLOWED + NO_PACKAGE, {}, NO_PACKAGE),
        (NO_BROWSER + ALLOWED, {}, NO_BROWSER),
        (NO_BROWSER + ALLOWED, {"DREAM_NO_BROWSER": "1"}, ""),
    ],
    ids=["none", "allowed", "package", "browser", "no_browser"],
)
def test_a_skip_that_is_not_allowed_fails(
    skipped: str, said: dict[str, str], wrong: str, repo: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """And is shown, with the reason."""
    output = tmp_path / "tests.txt"
    output.write_text(f"..s.\n=== short test summary info ===\n{skipped}=== 3 passed in 1.00s ===\n")
    environment = {name: value for name, value in os.environ.items() if name != "DREAM_NO_BROWSER"} | said
    done = subprocess.run(
        [repo / ".ci" / "skips", output], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == bool(wrong)
    assert done.stderr == (f"error: tests are skipped that must run here:\n{wrong}" if wrong else "")


def test_the_checks_look_at_what_was_skipped(repo: pathlib.Path) -> None:
    """At what pytest printed, after it."""
    lines = (repo / ".ci" / "run").read_text().splitlines()
    ran = next(n for n, line in enumerate(lines) if line.startswith("pytest"))
    assert lines[ran].endswith('| tee "$venv/tests.txt"')
    assert lines[ran + 1].startswith('.ci/skips "$venv/tests.txt"')
