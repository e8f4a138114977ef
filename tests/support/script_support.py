"""Scripts of experiments/ called as from the command line, in this process."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest


def called(script: ModuleType, *arguments: object) -> int:
    """Runs a script's main and returns its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [f"{script.__name__}.py", *map(str, arguments)])
        try:
            script.main()
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0
