"""Whether runs and a stored result are of one row, so that they can be averaged over."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from rows import Row, Spec

from dream.config.compose import compose_config
from dream.storage.old_configs import current_config
from envs.errors import InputError

sys.path.append(str(Path(__file__).resolve().parents[1]))
from scripting.run_records import config_of, difference, flat, game_in

_PARTS = ("algo", "network")
_ACCUMULATE, _MIRROR = "algo.accumulate", "algo.mirror."


def check_run(spec: Spec, name: str, seed: int, run_dir: Path) -> None:
    """Raises InputError unless a run directory holds a seed of a row.

    Game, rules, algorithm, network and seed are compared; of settings under their present names those that both have,
    as a run of an older commit lacks what came later, but for mirror descent's where nothing accumulates. What ended
    the run is not compared: rows of several budgets read one run.
    """
    config = config_of(run_dir)
    stored, wanted = (_identified(one) for one in (config, _composed(spec, spec.row(name), seed)))
    if differing := _shared_difference(stored, wanted):
        raise InputError(
            f"{run_dir} is no run of seed {seed} of {name}: {differing}; move it away, or give other --runs"
        )


def check_earlier(spec: Spec, name: str, earlier: dict[str, Any]) -> None:
    """Raises InputError unless a row's stored result can be added to.

    Overrides, policy, budget, evaluations that are averaged, and levels whose time is taken are compared, and of game
    and recipe what both have, as for runs. A result of older commits may lack game and recipe: all its overrides must
    be the row's then. One without `mean_over` is of a single evaluation.
    """
    row = spec.row(name)
    wanted = _composed(spec, row, 0)
    overrides = [text for text in spec.run_overrides(row, 0) if not text.startswith("seed=")]
    one, other = (_without_recipe(texts, earlier) for texts in (earlier["overrides"], overrides))
    stored = {
        "overrides": [text for text in one if text not in other],
        "policy": earlier["policy"],
        "mean_over": earlier.get("mean_over", 1),
        "levels": [float(level) for level in earlier["seconds_to"]],
        **flat({"budget": earlier["budget"]}),
    }
    now = {
        "overrides": [text for text in other if text not in one],
        "policy": row.policy,
        "mean_over": row.mean_over,
        "levels": list(spec.games[row.game].thresholds),
        **flat({"budget": row.budget.limits}),
    }
    made = flat({"game": earlier.get("identity") or {}}) | _settings(earlier.get("recipe") or {})
    differing = difference(stored, now) or _shared_difference(made, _identified(wanted))
    if differing:
        raise InputError(
            f"the stored result of {name} is of other settings than the row's: {differing}; run all seeds anew"
        )


def _composed(spec: Spec, row: Row, seed: int) -> dict[str, Any]:
    node = compose_config("config", spec.run_overrides(row, seed)).node
    return current_config(OmegaConf.to_container(node, resolve=True))


def _identified(config: dict[str, Any]) -> dict[str, Any]:
    """Returns game, settings and seed of a configuration, by dotted name."""
    return flat({"game": game_in(config)[1].identity}) | _settings(config) | {"seed": config["seed"]}


def _settings(config: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of algorithm and network that have an effect, by dotted name."""
    config = current_config(config)
    found = flat({part: config[part] for part in _PARTS if part in config})
    idle = _MIRROR if found.get(_ACCUMULATE) == "none" else ()
    return {name: value for name, value in found.items() if not name.startswith(idle)}


def _shared_difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Returns in words where two flat dicts differ, of what both have."""
    both = one.keys() & other.keys()
    return difference({key: one[key] for key in one if key in both}, {key: other[key] for key in other if key in both})


def _without_recipe(overrides: list[str], earlier: dict[str, Any]) -> list[str]:
    """Returns overrides, where a result has its recipe without those that the recipe says."""
    said = tuple(f"{part}." for part in _PARTS) if earlier.get("recipe") else ()
    return [text for text in overrides if not text.startswith(said)]
