"""Regret minimisation with neural networks in card games."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["export_policy", "load_policy"]


def __getattr__(name: str) -> Any:
    """Imports the public functions when they are first asked for, so that `import dream` stays light."""
    if name == "load_policy":
        from dream.storage.policies import load_policy

        return load_policy
    if name == "export_policy":
        from dream.commands.export import export_policy

        return export_policy
    raise AttributeError(f"module 'dream' has no attribute {name!r}")
