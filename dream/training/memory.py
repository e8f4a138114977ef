"""Whether a learner's state fits the memory of the machine or of its container, checked before the state is made.

A system that runs out of memory kills the process without a message; an accelerator raises an error (faults.py).
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from dream.algorithms.types import Algorithm
from dream.config.settings import flat
from envs import InputError

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says how much a container may have, which may be less than there is."""
_NOTICE_SHARE = 0.5
"""Of the memory; a buffer is copied where rows are added, and a checkpoint holds the state once more."""


def notice(algorithm: Algorithm, algo: Mapping[str, Any]) -> str:
    """Returns a line where a learner's state takes much of the memory; "" elsewhere, and where its size is not known.

    Args:
      algorithm: the learner.
      algo: its settings, plain.
    Raises:
      InputError: it takes more than there is.
    """
    available = _machine_bytes()
    if available is None or not algorithm.traceable or jax.default_backend() != "cpu" or jax.process_count() > 1:
        return ""
    needed = state_bytes(algorithm.like())
    if needed <= _NOTICE_SHARE * available:
        return ""
    sizes = [f"algo.{name} (now {value})" for name, value in flat(algo).items() if _is_size(name, value)]
    smaller = f"; reduce {', '.join(sizes)}" if sizes else ""
    what = f"the state of algo={algo['name']} needs {needed / 2**30:.1f} GiB of memory"
    if needed > available:
        raise InputError(f"{what}, and {available / 2**30:.1f} GiB are available{smaller}")
    return f"{what} of {available / 2**30:.1f}, and updates and checkpoints need more{smaller}"


def state_bytes(state: Any) -> int:
    """Returns the bytes of a state's arrays, or of arrays of its shapes."""
    return sum(math.prod(x.shape) * x.dtype.itemsize for x in jax.tree.leaves(state))


def _is_size(name: str, value: Any) -> bool:
    return name.endswith("capacity") and isinstance(value, int) and value > 0


def _machine_bytes() -> int | None:
    """Returns the memory of the machine, or of its container; None where the system does not say."""
    try:
        least = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on every system
        return None
    for path in _LIMITS:
        with contextlib.suppress(OSError, ValueError):
            least = min(least, int(path.read_text()))
    return least if least > 0 else None
