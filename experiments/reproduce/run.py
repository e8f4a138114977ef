"""Runs a row of rows.yaml, seed after seed, and writes results/<row>.json.

    python experiments/reproduce/run.py --list
    python experiments/reproduce/run.py leduc_cfr
    python experiments/reproduce/run.py leduc_dream seeds=0 seconds=600 --results out    # shorter; the result says so
    python experiments/reproduce/run.py leduc_dream seeds=3,4 --keep       # the stored seeds stay in the result

What is done already is not done again: a finished seed is read, an interrupted one goes on from its last checkpoint. No
stored result is replaced by one without its seeds, or with shorter runs of them.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from comparable import check_earlier  # finds the scripts' folder

# isort: split
from measured import measured, resolved, written
from omegaconf import OmegaConf
from rows import RESULTS, Budget, Row, Spec, read_spec
from scripting.arguments import Parser
from scripting.child_runs import call
from scripting.run_records import read_json, stored_result

from dream.config import settings
from dream.config.compose import compose_config
from dream.config.settings import number
from dream.storage.checkpoint import has_checkpoint
from dream.storage.files import CONFIG_FILE
from dream.storage.lock import RunLock
from dream.training import metrics
from envs.errors import InputError

RUNS = Path("runs") / "reproduce"


@dataclasses.dataclass(frozen=True)
class Order(Budget):
    """What is asked for in addition to the row: an earlier end, other seeds."""

    seeds: tuple[int, ...] | None = number(None, 0, 2**32 - 1)


def read_order(texts: list[str], row: Row) -> tuple[tuple[int, ...], Budget]:
    """Returns the seeds and the end of the runs that a command line asks for.

    Raises:
      InputError: a text that is no setting, or an end after the row's own.
    """
    node = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(
                f"{text!r} is not a setting; write seeds=0,1,2, nodes=1e6, episodes=, seconds= or iterations="
            )
        values = [_number(part) for part in value.split(",")]
        node[key] = values if key == "seeds" else values[0] if len(values) == 1 else value
    order, limits = settings.read(Order, node, ""), row.budget.limits
    for name, limit in order.limits.items():
        if limit > limits.get(name, math.inf):
            raise InputError(
                f"{name}={limit:g} is more than the row's own {limits[name]:g}; a row can only be shortened"
            )
    return order.seeds or row.seeds, Budget(**(limits | order.limits))


def _number(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def go_through(spec: Spec, row: Row, seed: int, end: Budget, run_dir: Path) -> int:
    """Runs a seed to its end, from where it was left; returns the exit code.

    Raises:
      InputError: the run directory holds a run of other settings, or another process works in it.
    """
    RunLock(run_dir).check_free()
    overrides = spec.run_overrides(row, seed)
    node = compose_config("config", overrides).node
    records = metrics.read(run_dir)
    finished = bool(records) and end.reached(records[-1] | {"iterations": records[-1]["iteration"]})
    if not has_checkpoint(run_dir) and not finished:
        shutil.rmtree(run_dir, ignore_errors=True)  # nothing was saved, there is nothing to go on from
        return call([*overrides, f"run_dir={run_dir}", *end.overrides()])
    stored, wanted = OmegaConf.load(run_dir / CONFIG_FILE), OmegaConf.to_container(node, resolve=True)
    for part in ("env", "algo", "network", "seed"):
        if stored[part] != wanted[part]:
            raise InputError(f"{run_dir} is a run of another {part} than the row's; move it away to run the row anew")
    if finished:
        return 0
    return call([*overrides, f"resume={run_dir}", *end.overrides()])


def with_recipes(spec: Spec, folder: Path) -> list[str]:
    """Adds to stored results that have none the recipe of rows.yaml and conf as they stand; returns their rows."""
    added = []
    for path in sorted(folder.glob("*.json")):
        result = read_json(path)
        row = spec.row(path.stem)
        overrides = [text for text in spec.run_overrides(row, 0) if not text.startswith("seed=")]
        if result.get("recipe") is None and result["overrides"] == overrides:
            recipe = resolved(compose_config("config", overrides).node)
            written(result | {"kind": row.kind, "recipe": recipe, "recipe_resolved": "after the run"}, path)
            added.append(path.stem)
    return added


def listed(spec: Spec) -> str:
    """Returns the rows as lines."""
    lines = []
    for name, row in spec.rows.items():
        published = "" if row.published is None else f"  published {row.published:g} ({row.source})"
        lines.append(f"{name:32s} {row.game}  {row.algorithm}  {row.budget}  seeds {len(row.seeds)}{published}")
    return "\n".join(lines)


def check_kept(path: Path, earlier: dict[str, Any], seeds: Iterable[int]) -> None:
    """Raises InputError where a stored result has seeds that what would replace it has not."""
    if lost := sorted({run["seed"] for run in earlier.get("runs", ())} - {*seeds}):
        raise InputError(f"{path} holds seed {lost[0]}, which would be lost; add --keep, or give another --results")


def check_end(path: Path, row: Row, earlier: dict[str, Any], end: Budget, seeds: tuple[int, ...]) -> None:
    """Raises InputError where a seed whose stored run went to the row's end is asked for with an earlier one."""
    if end != row.budget and (whole := _whole(row, earlier) & {*seeds}):
        raise InputError(
            f"{path} holds seed {min(whole)} run to the row's end; ask for no earlier end, or give another --results"
        )


def _whole(row: Row, earlier: dict[str, Any]) -> set[int]:
    return {run["seed"] for run in earlier.get("runs", ()) if row.budget.reached(run["ended"])}


def check_not_shorter(path: Path, row: Row, earlier: dict[str, Any], result: dict[str, Any]) -> None:
    """Raises InputError where a seed whose stored run went to the row's end would be replaced by a shorter run."""
    whole = _whole(row, earlier)
    for run in result["runs"]:
        if run["seed"] in whole and not row.budget.reached(run["ended"]):
            raise InputError(
                f"{path} holds seed {run['seed']} run to the end of the row, here it is shorter; give another --results"
            )


def _stored(path: Path, *, kept: bool) -> dict[str, Any]:
    """Returns the stored result of a row; nothing of a damaged one that is not to be kept."""
    try:
        return stored_result(path)
    except InputError:
        if kept:
            raise
        return {}


def _check_folder(folder: Path) -> None:
    """Raises InputError where a folder of results is not there and cannot be made, as a file has its place."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise InputError(f"--results {folder} cannot be made: {there} is a file; it must be a folder")


def main() -> None:
    """Runs the command."""
    parser = Parser(__doc__)
    parser.add_argument("row", nargs="?", help="a row's name")
    parser.add_argument(
        "settings", nargs="*", help="seeds=0,1,2; an earlier end: nodes=, episodes=, seconds=, iterations="
    )
    parser.add_argument("--list", action="store_true", help="print the rows and do nothing")
    parser.add_argument("--collect", action="store_true", help="run nothing; write the result of what is there")
    parser.add_argument("--recipes", action="store_true", help="add the recipe to stored results that have none")
    parser.add_argument("--keep", action="store_true", help="keep the stored result's other seeds")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where the runs are kept (default %(default)s)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the result is written")
    given = parser.parse_args()
    try:
        spec = read_spec()
        if given.list:
            print(listed(spec))
            return
        if given.recipes:
            print("\n".join(with_recipes(spec, given.results)))
            return
        if given.row is None:
            raise InputError("no row is named; --list prints them")
        row = spec.row(given.row)
        seeds, end = read_order(given.settings, row)
        folder = given.runs / (row.run or given.row)
        _check_folder(given.results)
        stored = given.results / f"{given.row}.json"
        earlier = _stored(stored, kept=given.keep)
        kept = earlier if given.keep else {}
        if kept:
            check_earlier(spec, given.row, kept)
        else:
            check_kept(stored, earlier, seeds)
        check_end(stored, row, earlier, end, seeds)
        for seed in () if given.collect else seeds:
            if code := go_through(spec, row, seed, end, folder / f"seed{seed}"):
                sys.exit(code)
        result = measured(spec, given.row, {seed: folder / f"seed{seed}" for seed in seeds}, kept)
        check_not_shorter(stored, row, earlier, result)
    except InputError as error:
        parser.error(str(error))
    given.results.mkdir(parents=True, exist_ok=True)
    print(written(result, stored))


if __name__ == "__main__":
    main()
