"""The rows of the comparison of all learners, what each is trained with at any budget, and what trains them."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from scripting.child_runs import go_on
from scripting.run_records import check_asked, finished

from comparison_parts import benchmark
from dream.storage.files import CONFIG_FILE
from envs import InputError

GAMES = MappingProxyType(
    {"dark_hex abrupt": 162, "dark_hex classical": 124, "phantom_ttt abrupt": 146, "phantom_ttt classical": 123}
)
"""Game and version -> iterations of 1,024 games that 1 M nodes take: over so many do annealed settings fall."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A learner as it stands in the table.

    Attributes:
      learner: as `run_records.learner_of` names it.
      overrides: of dream.run, but for game, budget, seed and schedules.
      label: what the table adds to the learner's name.
      falls: schedule of `algo` that falls over the run -> the factor at its end.
      of_game: game -> further overrides.
      games: game -> games of an iteration, where it is not the 1,024 of conf/tuned.
    """

    learner: str
    overrides: tuple[str, ...]
    label: str = ""
    falls: Mapping[str, float] = dataclasses.field(default_factory=dict)
    of_game: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    games: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in the table."""
        return ", ".join(filter(None, (self.learner, self.label)))

    def command(self, game: str, nodes: float) -> list[str]:
        """Returns the overrides of a cell, but for the seed."""
        env, version = game.split()
        games = self.games.get(game, 1024)
        steps = max(round(GAMES[game] * nodes / 1e6 * 1024 / games), 1)
        falling = [
            text
            for schedule, end in self.falls.items()
            for text in (f"algo.{schedule}.end={end:g}", f"algo.{schedule}.transition_steps={steps}")
        ]
        own = (f"algo.episodes_per_iteration={games}",) if game in self.games else ()
        recipe = (*self.overrides, *self.of_game.get(game, ()), *own, *falling)
        return [f"env={env}", f"env.rules.version={version}", *recipe, f"budget.nodes={nodes:g}"]


class Cell(NamedTuple):
    """A row on a game, and the folder of its seeds' runs."""

    row: Row
    game: str
    folder: Path


_STEP = MappingProxyType({"learning_rate_decay": 0.0})
ROWS = {
    row.name: row
    for row in (
        *(
            Row(name, (f"algo={name}",))
            for name in (
                "ppo", "mmd", "rnad", "nfsp", "dueling_dream", "vr_dcfr_plus", "dream", "escher", "os_sd_cfr",
            )
        ),
        Row("dueling_dream, accumulating", ("algo=dueling_dream", "algo.accumulate=mirror_descent")),
        Row("dueling_dream, accumulating by a critic", ("experiment=dueling_dream_critic",)),
        *(Row(name, (f"algo={name}",), "annealed", _STEP) for name in ("ppo", "mmd", "dueling_dream", "rnad")),
        Row("mmd", ("algo=mmd", "algo.magnet=uniform"), "annealed, uniform magnet", _STEP),
        Row("ppo", ("algo=ppo",), "annealed, entropy too", {**_STEP, "entropy_decay": 0.1}),
        *(
            Row(name, (f"algo={name}", *recipe.overrides), "benchmark settings", falls, recipe.of_game, recipe.games)
            for name, recipe, falls in (
                ("ppo", benchmark.PPO, _STEP), ("mmd", benchmark.MMD, _STEP), ("rnad", benchmark.RNAD, {}),
            )
        ),
    )
}  # fmt: skip
"""Name in the table -> row."""


def cells(rows: Sequence[str], games: Sequence[str], folder: Path) -> list[Cell]:
    """Returns the cells of a part of the table, game by game.

    Raises:
      InputError: a row or a game that is not in it.
    """
    for given, option, known in ((rows, "--rows", ROWS), (games, "--games", GAMES)):
        if unknown := [name for name in given if name not in known]:
            raise InputError(f"{option} {unknown[0]!r} is not in the table; it must be among {'; '.join(known)}")
    return [Cell(ROWS[row], game, folder / _slug(row) / _slug(game)) for game in games for row in rows]


def _slug(name: str) -> str:
    return name.replace(",", "").replace(" ", "_")


def check_there(folder: Path, nodes: float) -> None:
    """Raises InputError where a run in the folder of the table is not what its place says, or of another budget."""
    for cell in cells(tuple(ROWS), tuple(GAMES), folder):
        for run in sorted(path for path in cell.folder.glob("*") if path.name.isdecimal()):
            if (run / CONFIG_FILE).exists():
                check_asked(run, [*cell.row.command(cell.game, nodes), f"seed={int(run.name)}"])


def train(cells: Sequence[Cell], seeds: Sequence[int], nodes: float) -> list[Path]:
    """Trains what is not finished, each run in a process of its own; returns the runs that failed.

    Raises:
      SystemExit: a run was interrupted, or its command is refused.
    """
    asked = {c.folder / str(seed): [*c.row.command(c.game, nodes), f"seed={seed}"] for c in cells for seed in seeds}
    left = [run for run in asked if not finished(run)]
    began, failed = time.monotonic(), []
    for number, run in enumerate(left):
        rest = (time.monotonic() - began) / number * (len(left) - number) if number else None
        print(_progress(run, len(asked) - len(left) + number, len(asked), rest), flush=True)
        code = go_on(asked[run], run)
        if code == 1:
            failed.append(run)
        elif code:
            sys.exit(code)
    return failed


def _progress(run: Path, done: int, total: int, seconds: float | None) -> str:
    left = "" if seconds is None else f", about {seconds / 3600:.1f} h left"
    return f"== {run}: run {done + 1} of {total}{left}"
