"""What is to be reproduced: the rows of rows.yaml, read and checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from dream.config import settings
from dream.config.settings import choice, number
from dream.config.tuned import config_dir
from envs.errors import InputError, unknown

HERE = Path(__file__).resolve().parent
SPEC, RESULTS = HERE / "rows.yaml", HERE / "results"
ENDLESS = 1_000_000_000
"""Iterations of a run that something else is to end."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """Where a row's number is read: the last evaluation within all of these totals. A run ends at the first reached."""

    nodes: float | None = number(None, 0, above=True)
    episodes: float | None = number(None, 0, above=True)
    seconds: float | None = number(None, 0, above=True)
    iterations: int | None = number(None, 1)

    @property
    def limits(self) -> dict[str, float]:
        """The totals that have a limit."""
        limits = {name: getattr(self, name) for name in ("nodes", "episodes", "seconds", "iterations")}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def reached(self, totals: Mapping[str, float]) -> bool:
        """Returns whether a total has reached its limit."""
        return any(totals[name] >= limit for name, limit in self.limits.items())

    def holds(self, totals: Mapping[str, float]) -> bool:
        """Returns whether no total is past its limit."""
        return all(totals[name] <= limit for name, limit in self.limits.items())

    def overrides(self) -> list[str]:
        """Returns what ends a run so, and not where an earlier, shorter order of the same run did."""
        ends = [f"budget.{name}={_written(getattr(self, name))}" for name in ("nodes", "episodes", "seconds")]
        return [f"iterations={self.iterations or ENDLESS}", *ends]

    def __str__(self) -> str:
        return ", ".join(f"{short(limit)} {name}" for name, limit in self.limits.items())


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """Means that count as reproduced, exploitability x 1000."""

    at_most: float | None = number(None, 0)
    at_least: float | None = number(None, 0)

    def allows(self, mean: float) -> bool | None:
        """Returns whether a mean is within the bounds; None where there are none."""
        if self.at_most is None and self.at_least is None:
            return None
        return (self.at_most is None or mean <= self.at_most) and (self.at_least is None or mean >= self.at_least)


@dataclasses.dataclass(frozen=True)
class GameSpec:
    """A game of the table: the overrides that choose it, and exploitabilities whose time is reported."""

    title: str
    overrides: tuple[str, ...]
    thresholds: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Row:
    """One number to be reproduced.

    Attributes:
      game: a name under `games`.
      algorithm: a name of conf/algo.
      budget: where the number is read.
      kind: "paper": the settings of conf/algo, which are the paper's own, whatever conf/tuned changes for the game;
        "ours": the game's tuned settings.
      policy: the policy measured.
      run: the row whose runs this one reads, at another budget or of another policy. None: its own.
      published: exploitability x 1000, or None where nobody has published one.
      source: of it.
      tolerance: what counts as reproduced.
      seeds: of the runs.
      deterministic: whether a seed changes nothing, so that one run is exact.
      mean_over: evaluations at the end of the budget whose mean is a seed's value: more than 1 where iterates cycle.
      overrides: of the run.
      note: printed in the table.
    """

    game: str
    algorithm: str
    budget: Budget
    kind: str = choice("ours", "ours", "paper")
    policy: str = choice("average", "average", "current")
    run: str | None = None
    published: float | None = number(None, 0)
    source: str | None = None
    tolerance: Tolerance = Tolerance()
    seeds: tuple[int, ...] = number((0, 1, 2, 3, 4), 0, 2**32 - 1)
    deterministic: bool = False
    mean_over: int = number(1, 1)
    overrides: tuple[str, ...] = ()
    note: str | None = None


@dataclasses.dataclass(frozen=True)
class Spec:
    """The rows by name, the games by name, and the overrides of every run."""

    rows: dict[str, Row]
    games: dict[str, GameSpec]
    overrides: tuple[str, ...]

    def row(self, name: str) -> Row:
        """Returns a row.

        Raises:
          InputError: no such row.
        """
        if name not in self.rows:
            raise unknown("row", name, self.rows)
        return self.rows[name]

    def run_overrides(self, row: Row, seed: int) -> list[str]:
        """Returns the overrides of a row's run, its end left out."""
        chosen = [*self.games[row.game].overrides, f"algo={row.algorithm}"]
        if row.kind == "paper":
            chosen += published_settings(row.algorithm)
        return [*chosen, *self.overrides, *row.overrides, f"seed={seed}"]


def published_settings(algorithm: str) -> list[str]:
    """Returns every setting of conf/algo/<algorithm>.yaml as an override, so that no tuned value replaces it."""
    node = OmegaConf.to_container(OmegaConf.load(config_dir() / "algo" / f"{algorithm}.yaml"))
    return [f"algo.{name}={_written(value)}" for name, value in _leaves(node) if name != "name"]


def _leaves(node: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _written(value: Any) -> str:
    """Returns a value as it is written on a command line."""
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def read_spec(path: Path = SPEC) -> Spec:
    """Reads the rows.

    Raises:
      InputError: a wrong key, type or range, an unknown game, or a row that reads the runs of no row.
    """
    content = OmegaConf.to_container(OmegaConf.load(path))
    games = {name: settings.read(GameSpec, node, f"games.{name}") for name, node in content["games"].items()}
    nodes = content["rows"]
    rows = {name: settings.read(Row, _completed(name, nodes), f"rows.{name}") for name in nodes}
    for name, row in rows.items():
        if row.game not in games:
            raise unknown(f"rows.{name}.game", row.game, games)
        if not row.budget.limits:
            raise InputError(f"rows.{name}.budget is empty; it must hold nodes, episodes, seconds or iterations")
    return Spec(rows, games, tuple(content["overrides"]))


def _completed(name: str, nodes: dict[str, Any]) -> dict[str, Any]:
    """Returns a row's node, with what it has from the row whose runs it reads."""
    run = nodes[name].get("run")
    if run is None:
        return nodes[name]
    if run not in nodes or nodes[run].get("run") is not None:
        raise unknown(f"rows.{name}.run", run, [other for other in nodes if nodes[other].get("run") is None])
    taken = ("game", "algorithm", "kind", "policy", "seeds", "deterministic", "mean_over", "overrides")
    if twice := [key for key in taken if key in nodes[name] and key != "policy"]:
        raise InputError(f"rows.{name}.{twice[0]} is not to be given: it is that of rows.{run}, whose runs are read")
    return {key: nodes[run][key] for key in taken if key in nodes[run]} | nodes[name]


def short(value: float) -> str:
    """Returns a count in a few characters: 950, 3.5 M."""
    return f"{value / 1e6:.3g} M" if value >= 1e5 else f"{value:,.0f}"
