"""Regret minimisation with neural networks in card games.

The public functions are `train`, `load_run`, `load_sweep`, `evaluate`, `exploit`, `load_policy` and `export_policy`.
They do what the commands do, for notebooks and scripts: they return objects, never exit the process, and raise
`InputError`, the same as `envs.InputError`, for wrong input.

    import dream

    run = dream.train(["env=leduc_poker", "algo=cfr_plus", "iterations=20"])
    print(dream.evaluate(run, opponent="random", games=1000))
    print(dream.exploit(run).exploitability)

`evaluate` and `exploit` are also the names of two command modules (`python -m dream.evaluate`). The attribute of the
package is always the function, whichever was imported first; `from dream.evaluate import main` reaches the module.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dream.api import evaluate, exploit, train
    from dream.commands.exploit_report import ExploitReport
    from dream.commands.export import export_policy
    from dream.evaluation.report import MatchReport
    from dream.storage.policies import load_policy
    from dream.training.finished import FinishedRun, load_run
    from dream.training.sweeps import load_sweep
    from envs.errors import InputError

__version__ = "0.2.0"
__all__ = [
    "ExploitReport",
    "FinishedRun",
    "InputError",
    "MatchReport",
    "evaluate",
    "exploit",
    "export_policy",
    "load_policy",
    "load_run",
    "load_sweep",
    "train",
]

_PLACES = {
    "ExploitReport": "dream.commands.exploit_report",
    "FinishedRun": "dream.training.finished",
    "InputError": "envs.errors",
    "MatchReport": "dream.evaluation.report",
    "evaluate": "dream.api",
    "exploit": "dream.api",
    "export_policy": "dream.commands.export",
    "load_policy": "dream.storage.policies",
    "load_run": "dream.training.finished",
    "load_sweep": "dream.training.sweeps",
    "train": "dream.api",
}
"""Public name -> the module that holds it."""


def __getattr__(name: str) -> Any:
    """Imports a public name on first use, so that `import dream` stays fast."""
    if name not in _PLACES:
        raise AttributeError(f"module 'dream' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Lists the attributes, including public names that have not been imported yet."""
    return sorted({*globals(), *_PLACES})


class _Package(types.ModuleType):
    """This package, whose functions are not replaced by the command modules of the same names.

    Importing `dream.evaluate` makes Python set the package's attribute `evaluate` to that module; this is ignored.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _PLACES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


def _check_envs() -> None:
    """Raises ImportError if `envs` is not the package that is installed together with this one."""
    ours = Path(__file__).resolve().parents[1] / "envs"
    found = importlib.machinery.PathFinder.find_spec("envs")
    origin = getattr(sys.modules.get("envs"), "__file__", None) or (found.origin if found is not None else None)
    if origin is not None and Path(origin).resolve().parent != ours:
        theirs = Path(origin).resolve()
        place = theirs.parent if theirs.name == "__init__.py" else theirs
        raise ImportError(f"{place} hides this project's package `envs`; rename it, or start Python in another folder")


sys.modules[__name__].__class__ = _Package
_check_envs()
