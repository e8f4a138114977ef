"""Which layer of a dueling network is which, where another project named them: read off their shapes.

observation [n] -> linear [n, h1] -> ... -> [hk] -> advantages [hk, A], and value [hk, 1]. Haiku's names
(`linear`, `linear_1`, or in a scope, `net/~/linear_2`) and Flax's (`Dense_0`, in modules or not) say no more than an
order; so the trunk is the one chain of shapes from the observation to the heads, and layers of the same shape stand in
the order of their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from envs import Game
from envs.errors import InputError, a_kind, shown

MAX_LAYERS = 64
_PARTS = ({"w", "b"}, {"kernel", "bias"})
_MAX_STEPS = 10_000
"""Of the search for chains."""
_LISTED = 8
"""Layers named in an error."""


class _Layer(NamedTuple):
    name: str
    weights: np.ndarray
    bias: np.ndarray

    @property
    def sizes(self) -> tuple[int, int]:
        return self.weights.shape

    @property
    def stem_and_number(self) -> tuple[str, int]:
        """`net/~/linear_2` is number 2 of `net/~/linear`, which is itself number -1."""
        stem, number = re.fullmatch(r"(.*?)(?:_(\d{1,9}))?", self.name, re.DOTALL).groups()
        return stem, -1 if number is None else int(number)


def is_own(content: dict[Any, Any]) -> bool:
    """Returns whether the layers have this project's names for a dueling network's, as far as there are any."""
    pattern = re.compile(r"trunk_\d{1,9}|advantages|value")
    return "first" in content or all(isinstance(name, str) and pattern.fullmatch(name) for name in content)


def by_shape(path: Path, content: dict[Any, Any], game: Game) -> dict[str, np.ndarray]:
    """Returns the arrays under this project's names.

    Args:
      path: for messages.
      content: layers by name, in dicts of dicts as deep as the modules are.
      game: whose observation the first layer reads, and whose actions the advantages are of.
    Raises:
      InputError: the shapes fit no dueling network, or several; the message says what is missing.
    """
    layers = list(_layers(path, content, ""))
    if len(layers) > MAX_LAYERS:
        raise InputError(f"{path} holds {len(layers)} layers; a network of more than {MAX_LAYERS} is not read")
    listed = ", ".join(f"{shown(x.name)} {list(x.sizes)}" for x in layers[:_LISTED])
    found = f"it holds {listed}{' and more' if len(layers) > _LISTED else ''}"
    heads = {"advantages": game.num_actions, "value": 1}
    for head, outputs in heads.items():
        if not any(layer.sizes[1] == outputs for layer in layers):
            raise InputError(f"{path} holds no dueling network of {game.name}: no layer has {outputs} outputs, as the "
                             f"{head} must; {found}")  # fmt: skip
    trunks = list(_trunks(layers, game))
    if not trunks:
        raise InputError(
            f"{path} holds no dueling network of {game.name}: no chain of layers leads from its "
            f"{game.observation_size} inputs to {game.num_actions} advantages and a value; {found}"
        )
    if len(trunks) > 1:
        raise InputError(
            f"{path}: the shapes fit a dueling network in more than one way, and the names give no order; {found}"
        )
    names = ["first", *(f"trunk_{n}" for n in range(1, len(layers) - 2)), "advantages", "value"]
    return {
        f"{name}.{part}": array
        for name, layer in zip(names, trunks[0], strict=True)
        for part, array in (("w", layer.weights), ("b", layer.bias))
    }


def _layers(path: Path, content: dict[Any, Any], scope: str) -> Iterator[_Layer]:
    """Yields the linear layers, those of modules inside after their scope."""
    for key, value in content.items():
        name = f"{scope}{key}"
        if not isinstance(value, dict):
            what = "an array" if isinstance(value, np.ndarray) else a_kind(type(value))
            raise InputError(f"{path}: {shown(repr(name))} is {what}; it must be a layer, a dict of arrays")
        if value and all(isinstance(part, dict) for part in value.values()):
            yield from _layers(path, value, f"{name}/")
            continue
        parts = next((parts for parts in _PARTS if parts == value.keys()), None)
        if parts is None:
            parts_there = ", ".join(sorted(shown(part) for part in list(value)[:_LISTED]))
            raise InputError(
                f"{path}: {shown(name)} holds {parts_there or 'nothing'}; a layer holds w and b, or kernel and bias"
            )
        weights, bias = (value[part] for part in sorted(parts, reverse=True))
        if not (isinstance(weights, np.ndarray) and isinstance(bias, np.ndarray)):
            raise InputError(f"{path}: {shown(name)} holds something that is no array; a layer holds two arrays")
        if weights.ndim != 2 or bias.shape != weights.shape[1:]:
            shapes = f"{list(weights.shape)} and {list(bias.shape)}"
            raise InputError(
                f"{path}: {shown(name)} holds arrays of {shapes}; a layer's are [inputs, outputs] and [outputs]"
            )
        yield _Layer(name, weights, bias)


def _trunks(layers: list[_Layer], game: Game) -> Iterator[tuple[_Layer, ...]]:
    """Yields the layers in every order that makes a network, heads last: two orders at most."""
    steps, found = [0], 0
    for advantages in layers:
        for value in layers:
            fits = (advantages.sizes[1], value.sizes[1]) == (game.num_actions, 1)
            if not fits or advantages is value or advantages.sizes[0] != value.sizes[0]:
                continue
            rest = [layer for layer in layers if layer is not advantages and layer is not value]
            for trunk in _chosen(list(_chains(rest, None, advantages.sizes[0], game, steps))):
                yield (*trunk, advantages, value)
                found += 1
                if found > 1:
                    return


def _chosen(chains: list[tuple[_Layer, ...]]) -> list[tuple[_Layer, ...]]:
    """Returns the one chain that is in the order of its layers' numbers, where several are possible and one is."""
    if len(chains) < 2 or len({layer.stem_and_number[0] for layer in chains[0]}) > 1:
        return chains
    ordered = [chain for chain in chains if list(chain) == sorted(chain, key=lambda x: x.stem_and_number)]
    return ordered if len(ordered) == 1 else chains


def _chains(
    rest: list[_Layer], inputs: int | None, end: int, game: Game, steps: list[int]
) -> Iterator[tuple[_Layer, ...]]:
    """Yields the orders of all the layers in which each reads what the one before gives; the last gives `end`."""
    steps[0] += 1
    if not rest or steps[0] > _MAX_STEPS:
        if not rest and inputs == end:
            yield ()
        return
    for layer in rest:
        reads = _reads_observation(layer.sizes[0], game) if inputs is None else layer.sizes[0] == inputs
        if reads and not any(_before(other, layer) for other in rest):
            others = [other for other in rest if other is not layer]
            for chain in _chains(others, layer.sizes[1], end, game, steps):
                yield (layer, *chain)


def _before(one: _Layer, two: _Layer) -> bool:
    """Returns whether a layer of the same shape stands before another by its number."""
    (stem, number), (other, its) = one.stem_and_number, two.stem_and_number
    return one.sizes == two.sizes and stem == other and number < its


def _reads_observation(inputs: int, game: Game) -> bool:
    """Returns whether a first layer may read so many: the observation, or its dense part and the newest events."""
    return inputs == game.observation_size or log_window(inputs, game) is not None


def log_window(inputs: int, game: Game) -> int | None:
    """Returns the newest events that a first layer of so many inputs reads; None where it reads them all, or others."""
    if game.event_log is None or inputs == game.observation_size:
        return None
    window, rest = divmod(inputs - len(game.event_log.dense_indices), game.event_log.width)
    return None if rest or not 1 <= window <= game.event_log.slots else window
