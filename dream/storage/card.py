"""The card of an export: what it may say, and the policy's shape it names.

A card comes out of a file of unknown hands. It names a game, a network and how both make a policy, and nothing else: no
other player, no file, no reference, no memory to be filled. The policy is built in the abstract, so that its shapes can
be compared with the file's before anything is allocated.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax import Array

from dream import algorithms
from dream.algorithms.types import Resources
from dream.config import settings
from dream.config.schema import EnvConfig
from dream.game_tree.tabular_policy import table_policy
from dream.networks import make_network
from dream.networks.policy import Acts, make_network_policy
from dream.storage.old_configs import current_config
from envs import Game, Policy, make_bot
from envs.errors import InputError, shown

FORMAT = 1
"""Version of the card."""
MAX_CHARACTERS = 2**20
_MAX_DEPTH, _MAX_VALUES, _MAX_TEXT, _MAX_LAYERS = 8, 2000, 300, 64
_MAX_SIZE = 2**31
"""Of a whole number in network or learner: beyond it no array has a side."""
_TABLE = ("codes", "checks", "rows", "probes", "salt", "table")
"""Parameters of a policy that is a table (dream/game_tree/tabular_policy.py)."""
_MOST_PROBES = 64
_ALONE = {
    "episodes_per_iteration": 1, "num_envs": None, "rollout_length": None, "keep_inputs": False, "pool_size": 1,
    "opponent_id_prob": 0.0, "traversals": 1, "batch_games": 1,
}  # fmt: skip
"""A learner's settings of how it learns, whatever a card says: what it is built for here is the policy's shape."""
COMPANY = ("opponents", "shares", "start_from", "records", "imitated", "player")
"""Settings of learners that name other players or files: not needed to play, and not to be in a card."""
_BUILT = (TypeError, ValueError, OverflowError, ArithmeticError, MemoryError, RecursionError, IndexError)
"""What building a policy of odd sizes raises in JAX and haiku."""


@dataclasses.dataclass(frozen=True)
class Card:
    """What an export says of its policy.

    Attributes:
      env: name and rules of its game, as `envs.make` takes them.
      game: that game's identity; `rules` may be missing where they are not known.
      network: the network's node.
      algo: the learner's node, whose policy it is; None where it is a network that acts by `acts`.
      acts: how the network acts; None where `algo` says it.
      policy: its name among the learner's policies.
      iteration: completed when it was saved; None if unknown.
      source: what it was made from, in words.
      parameters: numbers in all arrays.
      format: of the card.
      checksum: CRC-32 of the arrays in the order of their names, in hexadecimal digits; empty in older exports.
      run: id of the run it comes from; None where that is unknown, as in older exports.
    """

    env: dict[str, Any]
    game: dict[str, Any]
    network: Any = None
    algo: Any = None
    acts: Any = None
    policy: str = "current"
    iteration: int | None = None
    source: str = ""
    parameters: int = 0
    format: int = FORMAT
    checksum: str = ""
    run: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Returns the JSON object, without a run that is unknown."""
        return {name: value for name, value in dataclasses.asdict(self).items() if name != "run" or value is not None}


def parse(text: str) -> Card:
    """Reads a card.

    Raises:
      InputError: no card of this format, or one that says more than a card may.
    """
    try:
        node = json.loads(text) if len(text) <= MAX_CHARACTERS else None
    except (ValueError, RecursionError) as error:
        raise InputError(f"the card is not JSON ({shown(str(error))})") from error
    if not isinstance(node, dict):
        raise InputError("the card is not JSON object")
    if node.get("format") != FORMAT:
        raise InputError(f"it is of format {shown(node.get('format'))}; this version reads format {FORMAT}")
    _check_plain(node)
    card = settings.read(Card, current_config(node), "card")
    settings.read(EnvConfig, card.env, "card.env")
    _check_parts(card)
    return card


def _check_plain(node: Any) -> None:
    """Raises InputError unless a card is small, and its texts and numbers can be shown on a line."""
    left, level, depth = _MAX_VALUES, [node], 0
    while level:
        left, depth = left - len(level), depth + 1
        if left < 0 or depth > _MAX_DEPTH:
            raise InputError(f"it holds more than {_MAX_VALUES} values, or nests deeper than {_MAX_DEPTH}")
        for value in level:
            for text in [value] if isinstance(value, str) else value if isinstance(value, dict) else []:
                if len(text) > _MAX_TEXT or not text.isprintable():
                    raise InputError(f"it holds the text '{shown(text)}'; texts must be of one line and short")
            if (isinstance(value, int) and abs(value) >= 2**63) or (
                isinstance(value, float) and not math.isfinite(value)
            ):
                raise InputError(f"it holds the number {shown(value)}")
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]


def _check_parts(card: Card) -> None:
    """Raises InputError where a part is of another form, or of a size that no file can bear out."""
    game = card.game
    right = all(isinstance(game.get(part), str) for part in ("name", "version"))
    if not right or not isinstance(game.get("rules", {}), dict):
        raise InputError("card.game must hold the game's name and version, and its rules where they are known")
    if card.iteration is not None and card.iteration < 0:
        raise InputError(f"card.iteration={card.iteration} is out of range; it must be at least 0")
    for part, node in (("network", card.network), ("algo", card.algo)):
        if isinstance(node, Mapping) and not isinstance(node.get("name"), str):
            raise InputError(f"card.{part}.name is missing; it must be one of the known names")
        for path, value in _leaves(node, f"card.{part}"):
            if isinstance(value, int) and abs(value) >= _MAX_SIZE:
                raise InputError(f"{path}={value} is out of range; it must be below {_MAX_SIZE}")
            if isinstance(value, list) and len(value) > _MAX_LAYERS:
                raise InputError(f"{path} has {len(value)} entries; it must have {_MAX_LAYERS} at most")
    if isinstance(card.network, Mapping):
        blocks = card.network.get("blocks", 0)
        if isinstance(blocks, int) and blocks > _MAX_LAYERS:
            raise InputError(f"card.network.blocks={blocks} is out of range; it must be {_MAX_LAYERS} at most")
    for name in COMPANY:
        if isinstance(card.algo, Mapping) and name in card.algo:
            raise InputError(f"card.algo.{name} names other players or files; a card must leave it out")


def _leaves(node: Any, path: str) -> list[tuple[str, Any]]:
    """Returns what a node holds by its path, lists as wholes and by entry."""
    if isinstance(node, Mapping):
        return [leaf for key, value in node.items() for leaf in _leaves(value, f"{path}.{key}")]
    inner = (
        [leaf for n, value in enumerate(node) for leaf in _leaves(value, f"{path}[{n}]")]
        if isinstance(node, list)
        else []
    )
    return [(path, node), *inner]


def policy_like(card: Card, game: Game, shapes: Mapping[str, Any]) -> Policy:
    """Builds the policy a card names, shapes and dtypes for parameters; allocates nothing.

    Args:
      card: of the export.
      game: that it names.
      shapes: name -> what the file holds, with `shape` and `dtype`; tables are as long as the file has them.
    Raises:
      InputError: a wrong setting in the card, or one that asks for more than a policy's shape.
    """
    try:
        return _network_like(card, game) if card.algo is None else _learner_like(card, game, shapes)
    except InputError:
        raise
    except _BUILT as error:
        raise InputError(f"the card's policy cannot be built ({shown(f'{type(error).__name__}: {error}')})") from error


def _network_like(card: Card, game: Game) -> Policy:
    network = make_network(card.network, game)
    params = jax.eval_shape(network.init, jax.random.key(0))
    return make_network_policy(game, network, params, settings.read(Acts, card.acts, "acts"))


def _learner_like(card: Card, game: Game, shapes: Mapping[str, Any]) -> Policy:
    build, given = algorithms.read_settings(card.algo)
    fields = {field.name for field in dataclasses.fields(given)}
    tabular = "average" not in fields and "tabular" in type(given).__module__
    if (tabular and card.policy in ("current", "average")) or ("average" in fields and _is_average_table(card, shapes)):
        return _table_like(game, shapes)
    if not algorithms.is_own(card.algo["name"]) and set(shapes) == set(_TABLE):
        return _table_like(game, shapes)  # its learner would ask for the game's tree
    if tabular:
        raise _no_policy(card, ("average", "current"))
    alone = {name: value for name, value in _ALONE.items() if name in fields}
    if {"average", "memory"} <= fields:
        alone["average"] = dataclasses.replace(given.average, source="network", capacity=1)
        alone["memory"] = type(given.memory)(capacity=1)
    for part in {"values", "average", "best_response"} & fields - alone.keys():
        alone[part] = dataclasses.replace(getattr(given, part), capacity=1)
    learner = build(dataclasses.replace(given, **alone), card.network, game, Resources(_no_player, _no_tree))

    def policies_then(key: Array) -> dict[str, Policy]:
        state = learner.init(key)
        if card.iteration is not None and "iteration" in getattr(state, "_fields", ()):
            state = state._replace(iteration=np.int32(card.iteration))  # what is known of a policy may depend on it
        return learner.policies(state)

    policies = jax.eval_shape(policies_then, jax.random.key(0))
    if card.policy not in policies:
        raise _no_policy(card, policies)
    return policies[card.policy]


def _is_average_table(card: Card, shapes: Mapping[str, Any]) -> bool:
    return card.policy == "average" and set(shapes) == set(_TABLE)


def _table_like(game: Game, shapes: Mapping[str, Any]) -> Policy:
    """Returns a table's policy: as many rows and probes as the file has, of the game's actions."""
    table, probes = (shapes.get(name) for name in ("table", "probes"))
    rows = table.shape[0] if table is not None and table.shape else 1
    most = probes.shape[0] if probes is not None and probes.shape else 1
    if most > _MOST_PROBES:
        raise InputError(f"it has a table of {most} probes; it must have {_MOST_PROBES} at most")
    sizes = {"codes": (rows,), "checks": (rows,), "rows": (rows,), "probes": (most,), "salt": ()}
    kinds = {"rows": np.int32, "probes": np.int32}
    index = {name: jax.ShapeDtypeStruct(size, kinds.get(name, np.uint32)) for name, size in sizes.items()}
    return table_policy(index, jax.ShapeDtypeStruct((rows, game.num_actions), np.float64))


def _no_policy(card: Card, names: Any) -> InputError:
    return InputError(f"a {card.algo['name']} learner has no policy {card.policy!r}; it has {', '.join(names)}")


def _no_player(name: str, game: Game) -> Policy:
    if name == "random":  # a learner's default, of no file
        return make_bot(name, game)
    raise InputError(f"the card asks for the player {shown(name)}; a card names a policy's shape alone")


def _no_tree(game: Any) -> Any:
    raise InputError(f"the card asks for the whole tree of {game.name}; a card names a policy's shape alone")
