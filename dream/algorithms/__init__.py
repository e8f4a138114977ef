"""Learners behind one type, built by name from a configuration."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from dream.algorithms.types import Algorithm, Resources
from dream.config import settings
from envs import Game
from envs.errors import InputError, unknown

_REGISTRY: dict[str, str] = {
    "dueling_dream": "dream.algorithms.dueling_dream:DuelingDreamConfig",
    "ppo": "dream.algorithms.ppo:PpoConfig",
    **dict.fromkeys(("cfr", "cfr_plus", "linear_cfr", "dcfr", "pcfr_plus"), "dream.algorithms.tabular.cfr:CfrConfig"),
    "external_mccfr": "dream.algorithms.tabular.mccfr:ExternalConfig",
    "outcome_mccfr": "dream.algorithms.tabular.mccfr:OutcomeConfig",
    "deep_cfr": "dream.algorithms.deep.deep_cfr:DeepCfrConfig",
    "sd_cfr": "dream.algorithms.deep.sd_cfr:SdCfrConfig",
    "os_sd_cfr": "dream.algorithms.deep.os_sd_cfr:OsSdCfrConfig",
    "dream": "dream.algorithms.deep.dream:DreamConfig",
    "escher": "dream.algorithms.deep.escher:EscherConfig",
    "vr_dcfr_plus": "dream.algorithms.deep.vr_dcfr_plus:VrDcfrPlusConfig",
}
"""Name -> "module:settings"; the module's make(settings, network node, game, resources) returns the Algorithm."""


def names() -> list[str]:
    """Returns the names `make` knows."""
    return sorted(_REGISTRY)


def make(config: Any, network: Any, game: Game, resources: Resources | None = None) -> Algorithm:
    """Builds a learner.

    Args:
      config: the configuration's `algo` node or a plain dict, with a `name`.
      network: the configuration's `network` node or a plain dict.
      game: what it learns to play.
      resources: where opponents and trees come from; by default memory alone.
    Raises:
      InputError: an unknown algorithm or setting, or a value out of range.
    """
    module, chosen = settings_of(config)
    return module.make(chosen, network, game, resources or Resources())


def settings_of(config: Any) -> tuple[ModuleType, Any]:
    """Returns a learner's module and its settings, checked.

    Raises:
      InputError: an unknown algorithm or setting, or a value out of range.
    """
    name = config.get("name") if hasattr(config, "get") else None
    if name is None:
        raise InputError(f"algo={config!r} must be a configuration node or a dict with a `name`")
    if name not in _REGISTRY:
        raise unknown("algorithm", name, _REGISTRY)
    module_name, schema = _REGISTRY[name].split(":")
    module = importlib.import_module(module_name)
    return module, settings.read(getattr(module, schema), config, "algo")
