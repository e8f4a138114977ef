"""Typed settings: dataclasses that say what a configuration node may hold, and the check of a node against them."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from dream.config import renamed
from envs.errors import InputError, naming
from envs.values import read_as

T = typing.TypeVar("T")


def number(default: Any, low: float = -math.inf, high: float = math.inf, *, above: bool = False) -> Any:
    """Returns a dataclass field that holds a number in [low, high], (low, high] with `above`, or a Schedule of such."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high, "above": above})


def choice(default: str | None, *options: str) -> Any:
    """Returns a dataclass field that holds one of the options.

    Args:
      default: one of the options, or None for a field that may be left open, of type `str | None`.
      options: all values that may be given.
    Raises:
      ValueError: the default is none of them.
    """
    if default is not None and default not in options:
        raise ValueError(f"choice: the default {default!r} must be among the options, {', '.join(map(repr, options))}")
    return dataclasses.field(default=default, metadata={"options": options})


def read(schema: type[T], node: Any, path: str, defaults: Mapping[str, Any] = types.MappingProxyType({})) -> T:
    """Builds settings from a configuration node.

    Args:
      schema: a dataclass whose fields are scalars, optional scalars, tuples, dicts or such dataclasses.
      node: an OmegaConf node or a plain mapping; a missing key takes the field's default.
      path: where the node stands, for messages, e.g. "algo".
      defaults: values of missing keys, in groups within too, that come before the fields' own.
    Returns:
      An instance of `schema`.
    Raises:
      InputError: an unknown key, a value of another type or out of range, the path named.
    """
    if isinstance(node, (DictConfig, ListConfig)):
        try:
            node = OmegaConf.to_container(node, resolve=True)
        except OmegaConfBaseException as error:
            raise InputError(f"{str(error).splitlines()[0]}; a value after $ must name another setting") from error
    if not isinstance(node, Mapping):
        raise InputError(f"{path}={node!r} must hold {', '.join(f.name for f in dataclasses.fields(schema))}")
    node = {**defaults, **node}
    fields = {field.name: field for field in dataclasses.fields(schema)}
    hints = typing.get_type_hints(schema)
    for key in node:
        if key not in fields:
            raise renamed.unknown_setting(path, str(key), fields, node[key])
    missing = [n for n, f in fields.items() if n not in node and _no_default(f)]
    if missing:
        raise InputError(f"{_join(path, missing[0])} is missing")
    values = {}
    for key, value in node.items():
        within = defaults.get(key) if isinstance(defaults.get(key), Mapping) else {}
        values[key] = _value(hints[key], fields[key], value, _join(path, key), within)
    with naming(path) if path else contextlib.nullcontext():  # values that each may be there, but not together
        return schema(**values)


def as_read(node: Any, found: Any) -> Any:
    """Returns a plain node with its whole numbers as they were read: 1e3, a float, as 1000.

    Args:
      node: plain containers.
      found: the settings read from it; what these hold as it stands is left alone.
    """
    if dataclasses.is_dataclass(found) and isinstance(node, Mapping):
        return {key: as_read(value, getattr(found, key)) for key, value in node.items()}
    if isinstance(node, Mapping) and isinstance(found, Mapping):
        return {key: as_read(value, found.get(key, value)) for key, value in node.items()}
    if isinstance(node, list) and isinstance(found, tuple):
        return [as_read(value, read_value) for value, read_value in zip(node, found, strict=True)]
    return found if type(node) is float and type(found) is int else node


def flat(node: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Returns a nested configuration as one level: dotted name -> value."""
    found: dict[str, Any] = {}
    for key, value in node.items():
        found |= flat(value, _join(path, str(key))) if isinstance(value, Mapping) else {_join(path, str(key)): value}
    return found


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else str(key)


def _no_default(field: dataclasses.Field) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _value(hint: Any, field: dataclasses.Field, value: Any, path: str, defaults: Mapping[str, Any]) -> Any:
    """Returns a value converted to its field's type and checked for range; `defaults` are those of a group's keys."""
    if dataclasses.is_dataclass(hint):
        found = read(hint, value, path, defaults)
        if "low" in field.metadata:
            for end in ("start", "end"):
                _check_range(field.metadata, getattr(found, end), f"{path}.{end}")
        return found
    if hint is Any:
        return value
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        if value is None:
            return None
        hint = next(part for part in inner if part is not type(None))
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (tuple, dict):
        return _collection(origin, inner, field, value, path)
    value = _scalar(hint, value, path)
    _check_range(field.metadata, value, path)
    return value


def _collection(origin: type, inner: tuple, field: dataclasses.Field, value: Any, path: str) -> Any:
    kind = list if origin is tuple else dict
    if not isinstance(value, kind | tuple):
        raise InputError(f"{path}={value!r} is not valid; it must be a {kind.__name__}")
    if origin is dict:
        return dict(value)
    items = tuple(_scalar(inner[0], item, f"{path}[{n}]") for n, item in enumerate(value))
    for n, item in enumerate(items):
        _check_range(field.metadata, item, f"{path}[{n}]")
    return items


def _scalar(kind: type, value: Any, path: str) -> Any:
    value = read_as(kind, value)
    if type(value) is not kind:
        names = {int: "whole number", float: "number", str: "text", bool: "true or false"}
        raise InputError(f"{path}={value!r} is not valid; it must be a {names[kind]}".replace("a true", "true"))
    return value


def _check_range(bounds: Mapping[str, Any], value: Any, path: str) -> None:
    if "options" in bounds and value not in bounds["options"]:
        raise renamed.unknown_value(path, value, bounds["options"])
    if "low" in bounds:
        low, high, above = bounds["low"], bounds["high"], bounds["above"]
        if not math.isfinite(value) or not (low < value if above else low <= value) or not value <= high:
            rule = f"more than {low}" if above else f"at least {low}" if low > -math.inf else ""
            limit = f"at most {high}" if high < math.inf else ""
            wanted = " and ".join(filter(None, ("" if math.isfinite(value) else "finite", rule, limit)))
            raise InputError(f"{path}={value} is out of range; it must be {wanted}")
