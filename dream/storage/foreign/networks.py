"""The networks that other projects' pickles hold: which it is, the game it plays, and its arrays checked one by one.

Two are known. `{"params": {"Dense_0": {"kernel", "bias"}, ..., "opp_dw_pred": ...}}`, the outer "params" or not, is the
simba network of the gin rummy MDP document, which plays by the softmax of its logits. `{"params": ..., "config": ...}`
is the dueling network of the DREAM document, which plays by soft regret matching; its sizes are those of its arrays.
Its layers are "first", "trunk_1", ..., "advantages", "value", this project's names, or any names at all where the
shapes show which layer is which (layers.py); what it is called decides nothing.
Sources: the gin rummy MDP document, section 7; the DREAM document, "Loading the Model" and "Running Inference".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import envs
from dream.networks import make_network
from dream.networks.policy import Acts
from dream.storage.foreign.layers import MAX_LAYERS, by_shape, is_own, log_window
from dream.storage.foreign.opcodes import read_pickle
from envs import Game
from envs.errors import InputError, a_kind, shown

SIMBA_GAME = "gin_rummy_mdp"
_DOCUMENT_TEMPERATURE = 0.1
"""At which the DREAM document plays its agent."""
_MAX_NUMBERS = 2**26
"""In a network; its layers may share their bytes in a file."""
_SIMBA_LAYERS = frozenset({"opp_dw_pred", "value_draw", "value_discard", "value_knock"})
"""Those that no other known network has, with all that begin with _SIMBA_NORM."""
_SIMBA_NORM = "LayerNorm_"
_SHOWN = 4
"""Wrong arrays named in an error."""


class Foreign(NamedTuple):
    """A network as a foreign pickle holds it.

    Attributes:
      game: name and rules of the game it plays, as `envs.make` takes them.
      network: the network's node.
      acts: how it plays.
      params: its float32 arrays by layer and part, joined by a dot.
    """

    game: dict[str, Any]
    network: dict[str, Any]
    acts: Acts
    params: dict[str, np.ndarray]


def read_network(path: Path) -> Foreign:
    """Reads a documented pickle.

    Raises:
      InputError: a pickle that is refused, or arrays that are not those of the network; the message names them.
    """
    content = read_pickle(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds {a_kind(type(content))}; it must hold a dict of a network's parameters")
    config = content.get("config")
    while isinstance(content.get("params"), dict):
        content = content["params"]
    if any(isinstance(name, str) and (name in _SIMBA_LAYERS or name.startswith(_SIMBA_NORM)) for name in content):
        return _simba(path, _arrays(path, content))
    return _dueling(path, content, config if isinstance(config, dict) else {})


def check_arrays(path: Path, given: Mapping[str, np.ndarray], wanted: Mapping[str, Any]) -> None:
    """Raises InputError unless the arrays have the wanted names, shapes and dtypes; names those that have not.

    Args:
      path: for the message.
      given: name -> array.
      wanted: name -> anything with shape and dtype.
    """
    wrong = [f"{name} is missing" for name in wanted if name not in given]
    wrong += [f"{shown(name)} is not of this network" for name in given if name not in wanted]
    for name in [name for name in wanted if name in given]:
        array, like = given[name], wanted[name]
        if array.shape != like.shape:
            wrong.append(f"{name} is {list(array.shape)}, not {list(like.shape)}")
        elif array.dtype != like.dtype:
            wrong.append(f"{name} holds {array.dtype}, not {like.dtype}")
    if wrong:
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        raise InputError(f"{path} does not hold the network it should: {'; '.join(wrong[:_SHOWN])}{more}")


def _arrays(path: Path, content: dict[Any, Any]) -> dict[str, np.ndarray]:
    """Returns the arrays by layer and part, joined by a dot."""
    found = {}
    for layer, parts in content.items():
        if not isinstance(parts, dict):
            kind = a_kind(type(parts))
            raise InputError(f"{path}: {shown(repr(layer))} is {kind}; it must be a layer, a dict of arrays")
        for part, array in parts.items():
            name = f"{shown(layer)}.{shown(part)}"
            if not isinstance(array, np.ndarray):
                raise InputError(f"{path}: {name} is {a_kind(type(array))}; it must be an array")
            found[name] = array
    if not found:
        raise InputError(f"{path} holds no layers; it must hold a dict of a network's parameters")
    return found


def _as_network(path: Path, arrays: dict[str, np.ndarray], network: dict, game: Game) -> dict[str, np.ndarray]:
    """Returns the arrays in float32, checked against a network; nothing is copied before names and shapes are right."""
    wanted = _shapes(network, game)

    def any_float(name: str) -> jax.ShapeDtypeStruct:
        given = arrays[name].dtype if name in arrays else np.dtype(np.float32)
        is_float = jnp.issubdtype(given, jnp.floating)
        return jax.ShapeDtypeStruct(wanted[name].shape, given if is_float else np.float32)

    check_arrays(path, arrays, {name: any_float(name) for name in wanted})
    if sum(x.size for x in wanted.values()) > _MAX_NUMBERS:
        raise InputError(f"{path} holds a network of more than {_MAX_NUMBERS} numbers")
    with np.errstate(over="ignore"):
        cast = {name: np.asarray(arrays[name], np.float32, order="C") for name in wanted}
    for name, array in cast.items():
        if not np.all(np.isfinite(array)):
            raise InputError(f"{path}: {name} holds numbers that are not finite in float32")
    return cast


def _shapes(network: dict[str, Any], game: Game) -> dict[str, jax.ShapeDtypeStruct]:
    params = jax.eval_shape(make_network(network, game).init, jax.random.key(0))
    return {f"{layer}.{part}": x for layer, parts in params.items() for part, x in parts.items()}


def _simba(path: Path, arrays: dict[str, np.ndarray]) -> Foreign:
    network, game = {"name": "simba"}, {"name": SIMBA_GAME, "rules": {}}
    return Foreign(game, network, Acts("softmax", 1.0), _as_network(path, arrays, network, envs.make(SIMBA_GAME)))


def _dueling(path: Path, content: dict[Any, Any], config: dict[str, Any]) -> Foreign:
    described = _game_node(config)
    try:
        game = envs.make(described["name"], **described["rules"])
    except InputError as error:
        raise InputError(f"{path} names a game that cannot be made: {shown(str(error), 300)}") from error
    arrays = _arrays(path, content) if is_own(content) else by_shape(path, content, game)
    network = _dueling_node(arrays, config, game)
    params = _as_network(path, arrays, network, game)
    algo = config.get("algo")
    temperature = algo.get("play_temperature") if isinstance(algo, dict) else None
    number = isinstance(temperature, int | float | np.number) and not isinstance(temperature, bool)
    right = number and np.isfinite(temperature) and temperature > 0
    acts = Acts("soft_regret_matching", float(temperature) if right else _DOCUMENT_TEMPERATURE)
    return Foreign(described, network, acts, params)


def _game_node(config: dict[str, Any]) -> dict[str, Any]:
    """Returns name and rules of the game a config names, gin rummy where it names none of this project's."""
    env = config.get("env")
    name, rules = (env.get("name"), env.get("rules", {})) if isinstance(env, dict) else (None, {})
    plain = isinstance(rules, dict) and all(isinstance(rule, str) for rule in rules)
    if not (isinstance(name, str) and name in envs.names() and plain):
        name, rules = "gin_rummy", {}
    return {"name": name, "rules": rules}


def _dueling_node(arrays: dict[str, np.ndarray], config: dict[str, Any], game: Game) -> dict[str, Any]:
    """Returns the node of the dueling network: what the arrays fit, else what the config says, else the document's."""
    sizes = {name[:-2]: array.shape for name, array in arrays.items() if name.endswith(".w") and array.ndim == 2}
    trunk = ["first", *(f"trunk_{n}" for n in range(1, min(len(sizes), MAX_LAYERS)) if f"trunk_{n}" in sizes)]
    seen = sizes.get("first", (game.observation_size, 0))[0]
    node = {"name": "dueling", "log_window": log_window(seen, game)}
    if set(trunk) <= sizes.keys():
        fitted = {**node, "hidden": [sizes[layer][1] for layer in trunk]}
        shapes = {name: array.shape for name, array in arrays.items()}
        if all(fitted["hidden"]) and {name: x.shape for name, x in _shapes(fitted, game).items()} == shapes:
            return fitted
    given = config.get("network", config)
    hidden = given.get("hidden") if isinstance(given, dict) else None
    if (
        isinstance(hidden, list | tuple)
        and 1 <= len(hidden) <= MAX_LAYERS
        and all(type(n) is int and n >= 1 for n in hidden)
    ):
        return {**node, "hidden": list(hidden)}
    return node
