"""The networks that other projects' pickles hold: which it is, the game it plays, and its arrays checked one by one.

Two are known. `{"params": {"Dense_0": {"kernel", "bias"}, ..., "opp_dw_pred": ...}}`, the outer "params" or not, is the
simba network of the gin rummy MDP document, which plays by the softmax of its logits. `{"params": {"first": {"w", "b"},
"trunk_1": ..., "advantages": ..., "value": ...}, "config": {...}}` is the dueling network of the DREAM document under
haiku names, this project's own, which plays by soft regret matching; its sizes are those of its arrays.
Sources: the gin rummy MDP document, section 7; the DREAM document, "Loading the Model" and "Running Inference".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

import envs
from dream.foreign.opcodes import read_pickle
from dream.network_policy import Acts
from dream.networks import make_network
from envs import Game
from envs.errors import InputError

SIMBA_GAME = "gin_rummy_mdp"
_DOCUMENT_TEMPERATURE = 0.1
"""At which the DREAM document plays its agent."""
_SHOWN = 4
"""Wrong arrays named in an error."""


class Foreign(NamedTuple):
    """A network as a foreign pickle tells it.

    Attributes:
      game: name and rules of the game it plays, as `envs.make` takes them.
      network: the network's node.
      acts: how it plays.
      params: its float32 arrays, as the network has them.
    """

    game: dict[str, Any]
    network: dict[str, Any]
    acts: Acts
    params: dict[str, dict[str, np.ndarray]]


def read_network(path: Path) -> Foreign:
    """Reads a documented pickle.

    Raises:
      InputError: a pickle that is refused, or arrays that are not those of the network; the message names them.
    """
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a {type(content).__name__}; it must hold a dict of a network's parameters")
    config = content.get("config")
    while isinstance(content.get("params"), dict):
        content = content["params"]
    arrays = _arrays(path, content)
    if any(name.startswith(("Dense_", "LayerNorm_", "value_", "opp_dw")) for name, _ in arrays):
        return _simba(path, arrays)
    return _dueling(path, arrays, config if isinstance(config, dict) else {})


def check_arrays(path: Path, given: Mapping[Any, np.ndarray], wanted: Mapping[Any, tuple[int, ...]]) -> None:
    """Raises InputError unless the arrays are float numbers of the wanted names and shapes; names those that are not.

    Args:
      path: for the message.
      given: (layer, part) -> array.
      wanted: (layer, part) -> shape.
    """
    wrong = [f"{'/'.join(name)} is missing" for name in wanted if name not in given]
    wrong += [f"{'/'.join(map(str, name))} is not of this network" for name in given if name not in wanted]
    for name in [name for name in wanted if name in given]:
        array, shape = given[name], wanted[name]
        if array.shape != shape:
            wrong.append(f"{'/'.join(name)} is {list(array.shape)}, not {list(shape)}")
        elif array.dtype.kind != "f":
            wrong.append(f"{'/'.join(name)} holds {array.dtype}, not float32")
        elif not np.all(np.isfinite(array)):
            wrong.append(f"{'/'.join(name)} holds numbers that are not finite")
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise InputError(f"{path} does not hold the network it should: {'; '.join(wrong[:_SHOWN])}{more}")


def _arrays(path: Path, content: dict[Any, Any]) -> dict[tuple[str, str], np.ndarray]:
    """Returns the arrays by layer and part."""
    found = {}
    for layer, parts in content.items():
        if not isinstance(parts, dict):
            raise InputError(f"{path}: {layer!r:.80} is a {type(parts).__name__}; it must be a layer, a dict of arrays")
        for part, array in parts.items():
            if not isinstance(array, np.ndarray):
                raise InputError(
                    f"{path}: {layer!r:.80}, {part!r:.80} is a {type(array).__name__}; it must be an array"
                )
            found[layer, part] = array
    if not found or not all(isinstance(text, str) for name in found for text in name):
        raise InputError(f"{path} holds no layers; it must hold a dict of a network's parameters")
    return found


def _nested(arrays: dict[tuple[str, str], np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    nested: dict[str, dict[str, np.ndarray]] = {}
    for (layer, part), array in arrays.items():
        nested.setdefault(layer, {})[part] = np.ascontiguousarray(array, np.float32)
    return nested


def _shapes(network: dict[str, Any], game: Game) -> dict[tuple[str, str], tuple[int, ...]]:
    params = jax.eval_shape(make_network(network, game).init, jax.random.key(0))
    return {(layer, part): x.shape for layer, parts in params.items() for part, x in parts.items()}


def _simba(path: Path, arrays: dict[tuple[str, str], np.ndarray]) -> Foreign:
    network, game = {"name": "simba"}, {"name": SIMBA_GAME, "rules": {}}
    check_arrays(path, arrays, _shapes(network, envs.make(SIMBA_GAME)))
    return Foreign(game, network, Acts("softmax", 1.0), _nested(arrays))


def _dueling(path: Path, arrays: dict[tuple[str, str], np.ndarray], config: dict[str, Any]) -> Foreign:
    env = config.get("env")
    name, rules = (env.get("name"), env.get("rules", {})) if isinstance(env, dict) else (None, {})
    if not (isinstance(name, str) and name in envs.names() and isinstance(rules, dict)):
        name, rules = "gin_rummy", {}
    described = {"name": name, "rules": rules}
    game = envs.make(described["name"], **described["rules"])
    network = _dueling_node(arrays, config, game)
    check_arrays(path, arrays, _shapes(network, game))
    algo = config.get("algo")
    temperature = algo.get("play_temperature") if isinstance(algo, dict) else None
    right = isinstance(temperature, float) and np.isfinite(temperature) and temperature > 0
    acts = Acts("soft_regret_matching", temperature if right else _DOCUMENT_TEMPERATURE)
    return Foreign(described, network, acts, _nested(arrays))


def _dueling_node(arrays: dict[tuple[str, str], np.ndarray], config: dict[str, Any], game: Game) -> dict[str, Any]:
    """Returns the node of the dueling network: what the arrays fit, else what the config tells, else the document's."""
    sizes = {layer: array.shape for (layer, part), array in arrays.items() if part == "w" and array.ndim == 2}
    trunk = ["first", *(f"trunk_{n}" for n in range(1, len(sizes)) if f"trunk_{n}" in sizes)]
    seen = sizes.get("first", (game.observation_size, 0))[0]
    window, rest = divmod(seen - len(game.dense_indices), max(game.log_width, 1))
    whole = seen == game.observation_size or rest or not 1 <= window <= game.log_slots
    node = {"name": "dueling", "log_window": None if whole else window}
    if set(trunk) <= sizes.keys():
        fitted = {**node, "hidden": [sizes[layer][1] for layer in trunk]}
        if all(fitted["hidden"]) and _shapes(fitted, game) == {name: array.shape for name, array in arrays.items()}:
            return fitted
    told = config.get("network", config)
    hidden = told.get("hidden") if isinstance(told, dict) else None
    if isinstance(hidden, list | tuple) and 1 <= len(hidden) <= 64 and all(type(n) is int and n >= 1 for n in hidden):
        return {**node, "hidden": list(hidden)}
    return node
