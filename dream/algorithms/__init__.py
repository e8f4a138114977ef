"""Learners behind one type, built by name from a configuration."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable
from typing import Any

import jax

from dream import settings
from envs import Game, Policy
from envs.errors import InputError, unknown

TrainState = Any
"""An algorithm's whole state: a pytree of arrays, typed PRNG keys among them, with `iteration`, int32."""
Metrics = dict[str, float]

_REGISTRY: dict[str, str] = {
    "dream": "dream.algorithms.dream:DreamConfig",
    "ppo": "dream.algorithms.ppo:PpoConfig",
    **dict.fromkeys(("cfr", "cfr_plus", "linear_cfr", "dcfr", "pcfr_plus"), "dream.algorithms.cfr:CfrConfig"),
    "external_mccfr": "dream.algorithms.mccfr:ExternalConfig",
    "outcome_mccfr": "dream.algorithms.mccfr:OutcomeConfig",
    "deep_cfr": "dream.algorithms.deep_cfr:DeepCfrConfig",
    "sd_cfr": "dream.algorithms.sd_cfr:SdCfrConfig",
    "os_sd_cfr": "dream.algorithms.os_sd_cfr:OsSdCfrConfig",
    "dream_vr": "dream.algorithms.dream_vr:DreamVrConfig",
    "escher": "dream.algorithms.escher:EscherConfig",
    "vr_dcfr_plus": "dream.algorithms.vr_dcfr_plus:VrDcfrPlusConfig",
}
"""Name -> "module:settings"; the module's make(settings, game, network node) returns the Algorithm."""


@functools.partial(jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["apply"])
@dataclasses.dataclass(frozen=True)
class Value:
    """What a player expects from here: a pure function of what it sees, and its parameters.

    Attributes:
      apply: (params, view) -> float32, in units of reward.
      params: pytree of arrays.
    """

    apply: Callable[[Any, Any], Any]
    params: Any = ()

    def __call__(self, view: Any) -> Any:
        """Returns the value: float32."""
        return self.apply(self.params, view)


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """A learner.

    Attributes:
      init: key -> TrainState.
      iterate: TrainState -> (TrainState, metrics of the iteration, counters and seconds by part among them).
      policies: TrainState -> policies by name; "current" always, "average" where the learner has one.
      value: TrainState -> what the current policy's player expects; None where the learner has no such thing.
    """

    init: Callable[[Any], TrainState]
    iterate: Callable[[TrainState], tuple[TrainState, Metrics]]
    policies: Callable[[TrainState], dict[str, Policy]]
    value: Callable[[TrainState], Value] | None = None


def names() -> list[str]:
    """Returns the names `make` knows."""
    return sorted(_REGISTRY)


def make(config: Any, network: Any, game: Game) -> Algorithm:
    """Builds a learner.

    Args:
      config: the configuration's `algo` node or a plain dict, with a `name`.
      network: the configuration's `network` node or a plain dict.
      game: what it learns to play.
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
    return module.make(settings.read(getattr(module, schema), config, "algo"), network, game)
