"""Result files of the comparison: what each command writes, and how new seeds and games join what is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scripting.run_records import recipe_of, stored_result

from dream.evaluation.statistics import positive_interval
from dream.storage.files import write_json, writing
from envs import InputError

COUNTED = ("decisions", "nodes", "episodes", "gradient_steps", "seconds", "compile_seconds")
ROUNDING = 1e-6
"""An exploitability below this is 0: probabilities are float32."""


def over_seeds(values: list[float]) -> dict[str, Any]:
    """Returns mean, interval and values; no interval of one seed, or where a seed is 0 to rounding."""
    if len(values) < 2 or min(values) < ROUNDING:
        return {"mean": float(np.mean(values)), "low": None, "high": None, "values": values}
    return positive_interval(np.array(values))._asdict() | {"values": values}


def joined(found: dict[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what was collected, with the stored learners and seeds of the same games.

    Raises:
      InputError: a game by other rules, a learner by another recipe or budget, or a seed that is stored already.
    """
    joint = {}
    for name, game in found.items():
        kept = kept_learners(name, game, stored)
        learners = {
            learner: _more_seeds(kept[learner], one, f"{learner} on {name}") if learner in kept else one
            for learner, one in game["learners"].items()
        }
        joint[name] = game | {"learners": kept | learners}
    return joint


def kept_learners(name: str, game: dict[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the learners that are stored of a game; an InputError if that is of other rules."""
    before = stored.get(name, {})
    if before and not _same_game(before, game):
        raise InputError(f"{name}: the stored values are of other rules; collect all learners without --keep")
    return before.get("learners", {})


def _same_game(stored: dict[str, Any], found: dict[str, Any]) -> bool:
    """Returns whether two results are of one game; an older one tells it by what uniform play loses alone."""
    if "game" in stored:
        return stored["game"] == json.loads(json.dumps(found["game"]))
    return stored["unit"] == found["unit"] and bool(np.isclose(stored["uniform"], found["uniform"], rtol=1e-4))


def _more_seeds(stored: dict[str, Any], found: dict[str, Any], name: str) -> dict[str, Any]:
    _check_more(stored, found, name)
    _check_seeds(stored["seeds"], found["seeds"], name)
    if stored["exploitability"].keys() != found["exploitability"].keys():
        raise InputError(f"{name}: the stored seeds have exact values of other policies; collect all without --keep")
    seeds = stored["seeds"] + found["seeds"]
    order = np.argsort(seeds)
    values = {
        policy: np.array(one["values"] + found["exploitability"][policy]["values"])[order].tolist()
        for policy, one in stored["exploitability"].items()
    }
    weights = [len(stored["seeds"]), len(found["seeds"])]
    counted = {key: float(np.average([stored[key], found[key]], weights=weights)) for key in COUNTED if key in stored}
    machine = {key: sorted({*one, *found["machine"][key]}) for key, one in stored["machine"].items()}
    return (
        stored
        | counted
        | {
            "seeds": sorted(seeds),
            "recipe": found["recipe"],
            "budget": found["budget"],
            "exploitability": {policy: over_seeds(of_seeds) for policy, of_seeds in values.items()},
            "machine": machine,
        }
    )


def more_curves(stored: dict[str, Any], found: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns a learner's curves with those of its stored seeds."""
    _check_more(stored, found, name)
    _check_seeds(*([run["seed"] for run in one["runs"]] for one in (stored, found)), name)
    policies = [run["policies"].keys() for one in (stored, found) for run in one["runs"]]
    if any(one != policies[0] for one in policies):
        raise InputError(f"{name}: the stored seeds have exact values of other policies; collect all without --keep")
    return found | {"runs": sorted([*stored["runs"], *found["runs"]], key=lambda run: run["seed"])}


def _check_more(stored: dict[str, Any], found: dict[str, Any], name: str) -> None:
    """Raises InputError where stored seeds are by another recipe or budget; older curves have overrides alone."""
    if "recipe" in stored:
        recipes = [recipe_of(one["recipe"]) for one in (stored, found)]
    else:
        given = [one.get("overrides", ()) for one in (stored, found)]
        recipes = [[text for text in texts if not text.startswith("seed=")] for texts in given]
    if not {"recipe", "overrides"} & stored.keys() or recipes[0] != recipes[1]:
        raise InputError(f"{name}: the stored seeds were run by another recipe; collect all seeds without --keep")
    if not _same_budget(stored, found):
        raise InputError(f"{name}: the stored seeds had another budget; collect all seeds without --keep")


def _same_budget(stored: dict[str, Any], found: dict[str, Any]) -> bool:
    """Returns whether two results are of one budget; an older one tells it by what was spent alone."""
    if "budget" in stored:
        return stored["budget"] == found["budget"]
    spent = [(stored[key], found[key]) for key in ("nodes", "episodes") if stored.get(key) and found.get(key)]
    return all(abs(before - now) <= 0.1 * before for before, now in spent[:1])


def _check_seeds(stored: Iterable[int], found: Iterable[int], name: str) -> None:
    if again := set(stored) & set(found):
        raise InputError(f"{name}: seed {min(again)} is stored already; collect it without --keep")


def with_other_games(found: dict[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns trials, with those that are stored of the same learners on other games."""
    games = {learner: {group["game"] for group in groups} for learner, groups in found.items()}
    return {
        learner: [group for group in stored.get(learner, ()) if group["game"] not in games[learner]] + groups
        for learner, groups in found.items()
    }


def check_form(path: Path, command: str) -> None:
    """Raises InputError where a result file is damaged, or holds what another command writes."""
    stored_result(path, each=lambda one: _is_of(command, one))


def _is_of(command: str, one: Any) -> bool:
    """Returns whether what stands under a key of a result file is what a command writes."""
    if command == "trials" or not isinstance(one, dict):
        return command == "trials" and isinstance(one, list)
    if command == "matches":
        return "earned" in one
    part = "exploitability" if command == "collect" else "runs"
    return "learners" in one and all(part in learner for learner in one["learners"].values())


def merge(found: dict[str, Any], path: Path) -> None:
    """Writes results into a file; what it holds under other keys, games or learners, is kept."""
    before = stored_result(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, before | found)
    print(path)
