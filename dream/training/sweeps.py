"""A sweep's folder as a table: a row for each job, whatever became of it; hundreds are read in seconds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from yaml import YAMLError

from dream.config.settings import flat
from dream.storage.checkpoint import has_checkpoint
from dream.storage.files import CONFIG_FILE, EVALUATION_FILE, decoded
from dream.storage.reports import ASKED
from dream.training import metrics
from dream.training.objective import objective
from envs import InputError
from envs.errors import shown

FINISHED, STOPPED, BEGUN = "finished", "stopped", "begun"
"""What became of a job: evaluated at its end; left with a checkpoint, or still running; without a checkpoint yet."""
_KEPT = ("seconds", "compile_seconds", *metrics.COUNTERS)
_FOLDERS = ("run_dir", "resume")
_OWN = ("job", "directory", "status", "iteration", "objective", *_KEPT)


def load_sweep(folder: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Reads every run of a sweep's folder; no checkpoint is opened.

    Args:
      folder: of the sweep, whose runs are in folders named by their numbers.
    Returns:
      A row for each run by number: `job`, `directory`, `status` ("finished", "stopped" or "begun"), `iteration`, the
      settings in which runs differ by dotted name, counters and seconds of the newest record, and what the final
      evaluation found: `objective`, `exploitability/<policy>`, `<opponent>/<quantity>` with `.../low` and `.../high`;
      of a run that is not finished `objective` is None and the others are missing.
      Any list of such rows is a data frame: pandas.DataFrame(rows).
    Raises:
      InputError: there is no run in the folder, or what is no folder.

    Example:
      >>> rows = dream.load_sweep("runs/sweep")
      >>> min(rows, key=lambda row: row["objective"])["job"]
      0
    """
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"{shown(repr(folder))} names no folder; it must be that of a sweep, with its jobs in 0/, 1/")
    folders = sorted((path for path in _children(Path(folder).expanduser()) if _is_job(path)), key=_number)
    if not folders:
        raise InputError(f"{folder} holds no run; it must be a sweep's folder, with its jobs in 0/, 1/ and so on")
    settings = [flat(_read_config(path / CONFIG_FILE)) for path in folders]
    known = dict.fromkeys(name for config in settings for name in config if name not in _FOLDERS)
    varied = [name for name in known if len({repr(config.get(name)) for config in settings}) > 1]
    rows = []
    for path, config in zip(folders, settings, strict=True):
        row = _row(path, config) | {name: config.get(name) for name in varied}
        rows.append(row | (_results(path) if row["status"] == FINISHED else {"objective": None}))
    return rows


def settings_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a row, those in which the runs differ."""
    return {name: value for name, value in row.items() if name not in _OWN and "/" not in name}


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_job(path: Path) -> bool:
    return path.name.isdecimal() and (path / CONFIG_FILE).is_file()


def _number(path: Path) -> int:
    return int(path.name)


def is_over(config: Mapping[str, Any], record: Mapping[str, Any], report: Mapping[str, Any]) -> bool:
    """Returns whether a run that was evaluated at its newest record was at its end there, and has got no more to do.

    Args:
      config: of the run, one level by dotted name.
      record: the newest.
      report: the final evaluation; one that says what was asked of the run decides by that.
    """
    if (asked := report.get(ASKED)) is not None:
        return all(config.get(name) == limit for name, limit in asked.items())
    if config.get("budget.seconds") is not None:  # they may have been spent after the record
        return True
    limits = {name: config.get(f"budget.{name}") for name in ("nodes", "episodes")}
    spent = any(limit is not None and record.get(name, 0) >= limit for name, limit in limits.items())
    return spent or record["iteration"] >= config.get("iterations", 0)


def is_finished(run: Path, config: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Returns whether a run has its final evaluation, of its newest record, and was at its end there.

    Args:
      run: its directory.
      config, record: as of `is_over`.
    """
    report = _evaluation(run)
    return report.get("iteration") == record["iteration"] and is_over(config, record, report)


def _row(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    records, _ = metrics.scan(path)
    newest = records[-1] if records else {"iteration": 0}
    status = STOPPED if has_checkpoint(path) else BEGUN
    if is_finished(path, config, newest):
        status = FINISHED
    row = {"job": _number(path), "directory": str(path), "status": status, "iteration": newest["iteration"]}
    return row | {name: newest[name] for name in _KEPT if name in newest}


def _evaluation(path: Path) -> dict[str, Any]:
    """Returns the final evaluation; {} where there is none, or one that cannot be read."""
    try:
        report = decoded((path / EVALUATION_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) else {}


def _results(path: Path) -> dict[str, Any]:
    """Returns the numbers of the final evaluation by name, and what the run is judged by."""
    report = _evaluation(path)
    exact, matches, found = report.get("exact", {}), report.get("by_opponent", {}), {}
    for opponent, quantities in matches.items():
        for name, value in quantities.items():
            if isinstance(value, Mapping) and "mean" in value:
                found[f"{opponent}/{name}"] = value["mean"]
                found |= {f"{opponent}/{name}/{end}": value[end] for end in ("low", "high") if end in value}
    found |= {f"exploitability/{name}": values["exploitability"] for name, values in exact.items()}
    points = [one["points_per_hand"]["mean"] for one in matches.values()]
    return {"objective": objective(exact, points), **found}


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = OmegaConf.to_container(OmegaConf.load(path))
    except (OSError, ValueError, YAMLError) as error:
        raise InputError(f"{path} cannot be read as a run's configuration ({error})") from error
    if not isinstance(config, dict):
        raise InputError(f"{path} holds no run's configuration; it must be a mapping of settings")
    return config
