"""What reports in a run directory say of whom they measured, and where they go once that is not the run's any more."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import envs
from dream.search import names as search_names
from dream.storage import levels
from dream.storage.files import EVALUATION_FILE, decoded
from dream.storage.policies import Trained, find, player_names
from envs import Game

EVALUATIONS, EXPLOITABILITY = "evaluations", "exploitability"
"""Folders of reports in a run directory, beside the run's own final evaluation."""
ASKED = "asked"
"""In a run's final evaluation: the iterations and totals that it was to end by, one level by dotted name."""
_STALE = ".stale.json"


def measured(trained: Trained) -> dict[str, Any]:
    """Returns which trained player a report is of: the iteration, None where it has none, and the checksum."""
    return {"iteration": trained.meta["iteration"], "checksum": trained.meta["checksum"]}


def measured_player(reference: str, game: Game) -> dict[str, Any] | None:
    """Returns the same of a player by its reference, or of the one in it; None where nothing was trained.

    Raises:
      InputError: nothing readable there.
    """
    if envs.is_foreign(reference) or reference in player_names(game):
        return None
    if search_names.is_search(reference):
        return measured_player(search_names.policy_in(reference), game)
    if levels.is_level(reference):
        return measured_player(levels.level(reference, game).player, game)
    return measured(find(reference))


def stated_player(reference: str, game: Game) -> dict[str, Any] | None:
    """Returns who a report is of: as `measured_player`, and of a level which player it is and its share of mistakes.

    A level's number alone says neither, and may stand for another player in another version.

    Raises:
      InputError: nothing readable there.
    """
    found = measured_player(reference, game)
    inside = search_names.policy_in(reference) if search_names.is_search(reference) else reference
    if not levels.is_level(inside):
        return found
    return levels.level(inside, game)._asdict() | (found or {})


def measured_players(places: Mapping[str, str], game: Game) -> dict[str, dict[str, Any]]:
    """Returns the same of those of several players that were trained, by name, from where each is found."""
    found = {name: measured_player(place, game) for name, place in places.items()}
    return {name: of for name, of in found.items() if of is not None}


def set_aside_after(run_dir: Path, iteration: int) -> list[Path]:
    """Renames the reports past an iteration, those of work that is done anew, to <name>.stale.json.

    Returns:
      The new paths.
    """
    found = [run_dir / EVALUATION_FILE]
    for folder in (EVALUATIONS, EXPLOITABILITY):
        found += sorted((run_dir / folder).glob("*.json"))
    late = [path for path in found if not path.name.endswith(_STALE) and (iteration_of(path) or 0) > iteration]
    return [path.replace(path.with_name(path.stem + _STALE)) for path in late]


def iteration_of(path: Path) -> int | None:
    """Returns the iteration that a report is of; None where there is none, or no report that can be read."""
    try:
        report = decoded(path.read_bytes())
    except (OSError, ValueError):
        return None
    iteration = report.get("iteration") if isinstance(report, dict) else None
    return iteration if type(iteration) is int else None
