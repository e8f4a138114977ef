"""What a run was made with: packages, source, machine and command line."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax

_PACKAGES = ("jax", "jaxlib", "dm-haiku", "optax", "chex", "numpy", "hydra-core", "orbax-checkpoint")


def versions() -> dict[str, Any]:
    """Returns versions, git commit, device, cores and how busy they were, and the command."""
    installed = {name: importlib.metadata.version(name) for name in _PACKAGES}
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        **installed,
        "git_commit": _git("rev-parse", "HEAD"),
        "git_changed_files": len((_git("status", "--porcelain") or "").splitlines()),
        "device": f"{jax.device_count()} x {device.device_kind}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load_1_minute": round(os.getloadavg()[0], 2),
        "platform": platform.platform(),
        "command": shlex.join(sys.argv),
    }


def made_with() -> dict[str, Any]:
    """Returns the same without what differs from call to call, for reports that can be made again."""
    return {name: value for name, value in versions().items() if name not in ("load_1_minute", "command")}


def _git(*arguments: str) -> str | None:
    """Returns what git says of this source tree, None where it is not a repository's own."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        return subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
