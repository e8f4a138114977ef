"""Default sizes of learners and networks for untuned games, so that a small game does not get gin-sized ones.

The size class of a game follows from its description; no games are played:

    inputs = observation_size + num_actions
    small:  inputs <= 512 and max_length <= 64, or the game is enumerable
    medium: inputs <= 2048
    large:  all others, with the default sizes of the algorithms, which are those of their papers.

Of whatever size, a game starts without the tie penalty of dueling DREAM's defaults, which is in gin rummy's points.
The sizes are those tuned for this project's small games (small) and for gin rummy on a laptop (medium).
"""

from __future__ import annotations

from typing import Any, Literal

from envs import EnumerableGame, Game

_SMALL_INPUTS, _SMALL_LENGTH, _MEDIUM_INPUTS = 512, 64, 2048
_FEW_PLAYS = 100_000
"""With at most so many sequences of actions a tree is small enough for every information set in every step of a fit."""

_OUTCOME = ("os_sd_cfr", "dream", "escher", "vr_dcfr_plus")
_EXTERNAL = ("deep_cfr", "sd_cfr")
_WITH_VALUES = ("dream", "escher", "vr_dcfr_plus")

Size = Literal["small", "medium", "large"]


def size_of(game: Game) -> Size:
    """Returns how large a game is for a learner, by the thresholds above."""
    inputs = game.observation_size + game.num_actions
    if isinstance(game, EnumerableGame) or (inputs <= _SMALL_INPUTS and game.max_length <= _SMALL_LENGTH):
        return "small"
    return "medium" if inputs <= _MEDIUM_INPUTS else "large"


def suggested(game: Game, algo_name: str, network_name: str = "dueling") -> dict[str, dict[str, Any]]:
    """Returns settings to use in the place of defaults, for a game without tuned ones.

    Args:
      game: to be learned.
      algo_name: as in `algo.name`; one that this function does not know keeps its own settings.
      network_name: as in `network.name`; likewise.
    Returns:
      {"algo": {...}, "network": {...}}, nested as in the configuration; without sizes for a large game.
    """
    size = size_of(game)
    algo = {} if size == "large" else _algo(game, algo_name, size)
    if algo_name == "dueling_dream":
        algo |= {"shaping": {"tie_penalty": 0.0}}
    return {"algo": algo, "network": _network(network_name, size)}


def _network(name: str, size: Size) -> dict[str, Any]:
    networks = {
        ("dueling", "small"): {"hidden": [64, 64]},
        ("dueling", "medium"): {"hidden": [256, 128]},
        ("simba", "small"): {"width": 64, "blocks": 1},
        ("simba", "medium"): {"width": 256, "blocks": 1},
    }
    return networks.get((name, size), {})


def _algo(game: Game, name: str, size: Size) -> dict[str, Any]:
    small = size == "small"
    if name == "dueling_dream":
        return {"episodes_per_iteration": 1024, "batch_size": 512 if small else 1024}
    if name in ("ppo", "mmd"):
        sizes = {"episodes_per_iteration": 1024, "batch_size": 512} if small else {"episodes_per_iteration": 256}
        return {"batch_size": 1024, **sizes, "learning_rate": 1e-3, "value_loss": "relative"}
    if name == "nfsp":
        # A reservoir of 2 million views of a large game does not fit a laptop.
        return {"average": {"capacity": 200_000}}
    if name in _OUTCOME + _EXTERNAL:
        return _deep(game, name, small)
    return {}


def _deep(game: Game, name: str, small: bool) -> dict[str, Any]:
    capacity = 100_000 if small else 200_000
    fit = {"steps": 150, "batch_size": 512, "learning_rate": 2e-3, "learning_rate_end": 0.0, "reinitialise": False}
    average_fit = {"steps": 500, "batch_size": 512, "learning_rate_end": 0.0, "reinitialise": False}
    sizes: dict[str, Any] = {
        "traversals": 256 if not small or name in _EXTERNAL else 500,
        "fit": fit,
        "memory": {"kind": "infoset_sums"} if _has_small_tree(game) else {"kind": "reservoir", "capacity": capacity},
        "average": {"every": 10, "capacity": capacity, "fit": average_fit},
    }
    if name in _WITH_VALUES:
        sizes["values"] = {
            "steps": 150, "batch_size": 512 if not small else 256, "learning_rate": 3e-3, "capacity": capacity // 2,
            "policy": "current", "reinitialise": False, "sync_every": 1,
        }  # fmt: skip
    return sizes


def _has_small_tree(game: Game) -> bool:
    return isinstance(game, EnumerableGame) and game.num_actions**game.max_length <= _FEW_PLAYS
