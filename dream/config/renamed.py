"""Names of version 0.1 that have changed: whoever uses one is given the new one, and stored settings are translated.

A key counts as renamed only where the new key is a setting and the old one is not; values and options likewise. So one
table serves all games and algorithms. `algo=dream` cannot be recognised: it was the dueling self-play learner, which is
algo=dueling_dream now, and is now DREAM as published (once algo=dream_vr).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from envs.errors import InputError, unknown

KEYS = {
    "clip": "clip_epsilon",
    "doubt": "opponent_epsilon",
    "draw_penalty": "tie_penalty",
    "frozen_every": "pool_every",
    "frozen_slots": "pool_size",
    "games_per_iteration": "episodes_per_iteration",
    "keep": "kind",
    "lanes": "num_envs",
    "over": "transition_steps",
    "slots": "card_scorer_width",
    "steps": "rollout_length",
    "target_every": "target_update_period",
    "target_rate": "tau",
    "tell_opponent": "opponent_id_prob",
    "trace": "gae_lambda",
}
"""Last part of an old key -> that of the new one, in the same place."""
VALUES = {
    "kind": {"window": "fifo", "sums": "infoset_sums"},
    "source": {"models": "exact_mixture"},
    "opponents": {"frozen": "past_self"},
}
"""Last part of a key (its present name) -> old value -> new one."""
_MEANT = {"tracking.mode": {"off": "disabled", "none": "disabled", "no": "disabled", "on": "online"}}
"""Key -> what somebody may write for a value, and the value, where others look more like it."""
_ALGORITHMS = {"dream_vr": "dream"}
OPTIONS = {
    "algo": _ALGORITHMS,
    "algorithm": _ALGORITHMS,
    "experiment": {"dream_slots": "dueling_dream_cards", "openspiel_ppo_slots": "openspiel_ppo_cards"},
}
"""Group, or what a registry names -> old option -> new one."""
BEFORE = {"dueling_dream": {"unit": "reward", "actor": "online", "baseline": "policy"}}
"""Algorithm -> setting that came later -> what runs from before it did."""


def unknown_setting(parent: str, key: str, known: Iterable[str], value: object = None) -> InputError:
    """Builds the error for a key that is no setting.

    Args:
      parent: where it was given, e.g. "algo"; "" at the root.
      key: the key.
      known: the settings that are there.
      value: what it was given, where that is known; None else.
    """
    prefix = f"{parent}." if parent else ""
    known, new = [str(name) for name in known], KEYS.get(key)
    if new not in known:
        return unknown("setting", prefix + key, [prefix + name for name in known])
    if isinstance(value, str) and value in VALUES.get(new, {}):
        return InputError(f"{prefix}{key}={value} is now {prefix}{new}={VALUES[new][value]}")
    return InputError(f"{prefix}{key} is now {prefix}{new}")


def unknown_value(path: str, value: object, options: Iterable[str]) -> InputError:
    """Builds the error for a value that is not one of the options of the setting at `path`."""
    if meant := _MEANT.get(path, {}).get(str(value).lower()):
        return InputError(f"{path}={value} is not valid; did you mean {meant!r}? known: {', '.join(sorted(options))}")
    new = VALUES.get(path.rpartition(".")[2], {}).get(str(value))
    return InputError(f"{path}={value} is now {path}={new}") if new in options else unknown(path, value, options)


def unknown_option(group: str, option: str, options: Iterable[str]) -> InputError:
    """Builds the error for an option that a configuration group does not have."""
    new = OPTIONS.get(group, {}).get(option)
    return InputError(f"{group}={option} is now {group}={new}") if new in options else unknown(group, option, options)


def translated_algorithm(node: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an algorithm's stored settings with its present name.

    A "dream" that counts games is the dueling one. Settings that came later are what the run did without them.
    """
    name = node.get("name")
    name = "dueling_dream" if name == "dream" and "games_per_iteration" in node else name
    return {**BEFORE.get(name, {}), **node, "name": OPTIONS["algo"].get(name, name)}


def translated(schema: type, node: Mapping[str, Any]) -> dict[str, Any]:
    """Returns stored settings under the names that a schema knows them by.

    Args:
      schema: a dataclass of settings, which may hold others.
      node: the settings; what is not renamed is kept.
    """
    fields = {field.name: field for field in dataclasses.fields(schema)}
    hints = typing.get_type_hints(schema)
    current = {}
    for old, value in node.items():
        key = old
        if old not in fields and KEYS.get(old) in fields and KEYS[old] not in node:
            key = KEYS[old]
        inner = hints.get(key)
        if isinstance(inner, types.UnionType):
            inner = next((part for part in typing.get_args(inner) if dataclasses.is_dataclass(part)), None)
        if isinstance(value, Mapping) and dataclasses.is_dataclass(inner):
            value = translated(inner, value)
        if isinstance(value, list):
            value = [VALUES.get(key, {}).get(item, item) if isinstance(item, str) else item for item in value]
        options = fields[key].metadata.get("options", ()) if key in fields else ()
        new = VALUES.get(key, {}).get(value) if isinstance(value, str) else None
        current[key] = new if new in options and value not in options else value
    return current
