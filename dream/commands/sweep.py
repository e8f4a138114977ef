"""Sweeps: jobs one after the other, a failed one ending nothing but itself, and one table at the end.

With a sweeper or launcher of Hydra's the jobs are Hydra's to run, in other processes too; what became of those is read
from a file that every job adds a line to. A job with a checkpoint in its folder goes on from there, so that the same
command, or a queue that runs a job again, finishes a sweep.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import shlex
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hydra
import jax
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException

from dream.commands.closed_pipe import output_is_closed
from dream.config.compose import (
    Composed,
    as_value,
    check_hydra,
    compose_config,
    composed_by_hydra,
    config_dir,
    jobs,
    offer_all,
)
from dream.storage.checkpoint import FOLDER
from dream.storage.files import StorageError, append_lines, read_lines
from dream.training.faults import memory_explained
from envs.errors import InputError

Prepare = Callable[[Composed], Any]
Job = Callable[[Any], float | None]
Complete = Callable[[list[str]], list[str]]
OUTCOMES_FILE = "outcomes.jsonl"
"""In the folder of a sweep whose jobs run in other processes: a line for each job that ended."""
_STOPPED = "stopped"
"""What a job came to that a signal ended."""
_GOING_ON = {"config": "run", "ladder": "ladder"}
"""Primary configuration file -> command, where a job goes on with what its folder holds."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
      number: of the job, that of its folder, from 0.
      label: the overrides that differ between jobs.
      objective: what the job returned; None where it has none, or failed.
      failure: one line that says why it failed, what happened before a colon; or "".
    """

    number: int
    label: str
    objective: float | None
    failure: str = ""


class Sweep:
    """A sweep under way."""

    def __init__(self, name: str, overrides: list[str], prepare: Prepare, job: Job, complete: Complete) -> None:
        """Plans the jobs.

        Args:
          name: of the primary configuration file.
          overrides: of the command line.
          prepare: checks a composed configuration and returns what the job needs; raises InputError.
          job: does the work; returns the objective.
          complete: adds to a job's overrides what follows from them.
        Raises:
          InputError: an override does not parse, every job is refused, two are the same or would go on with the same
            run, or there are several folders.
        """
        self._name, self._prepare, self._job, self._process = name, prepare, job, os.getpid()
        self._complete = complete
        _check_folder(overrides)
        _check_resumed(overrides)
        self._outcomes: list[Outcome] = []
        self._written: dict[Path, int] = {}
        self._planned: list[list[str]] | None = None
        self._ready: dict[int, Composed] = {}
        self._foreseen: list[str] = []
        self._fixed: set[str] = set()
        self._folder: Path | None = None
        self._stamp = f"{time.time_ns()}-{self._process}"
        own = [text for text in overrides if not text.startswith("hydra")]
        if not any("sweeper" in text.partition("=")[0] for text in overrides):
            self._planned = _enumerated(own)
            _check_once(self._planned)
            self._fixed = set.intersection(*map(set, self._planned)) if len(self._planned) > 1 else set()
        self._by_hydra = len(own) < len(overrides)
        if self._by_hydra:
            check_hydra(name, overrides)
            self._hydras_folder = _folder_in(overrides, "run_dir" if name == "config" else "hydra.sweep.dir")
            self._fixed |= {text for text in sys.argv if text.startswith("run_dir=")}
        elsewhere = any(text.startswith("hydra/launcher=") and text != "hydra/launcher=basic" for text in overrides)
        if self._planned is not None:
            if elsewhere:  # an accelerator is for the processes of the jobs
                jax.config.update("jax_platforms", "cpu")
            self._foreseen = self._check()

    def run(self) -> int:
        """Runs the jobs and prints the table; returns the exit code: 0, 1 where a job failed, or a signal's."""
        code = 0
        for line in self._foreseen:
            print(line, file=sys.stderr, flush=True)
        try:
            self._run_by_hydra() if self._by_hydra else self._run_planned()
        except SystemExit as left:  # a signal, or a sweeper that gave up
            code = left.code if isinstance(left.code, int) else 1
        if self._by_hydra and not self._outcomes:
            self._outcomes = self._left_in(self._hydras_folder)
        failed = [outcome for outcome in self._outcomes if outcome.failure not in ("", _STOPPED)]
        for line in self.table():
            print(line, flush=True)
        if (way_on := self._way_on()) is not None:
            print(f"go on: {way_on}", flush=True)
        if (picture := self._draw()) is not None:
            print(picture, flush=True)
        for outcome in failed:
            print(f"error: job {outcome.number} ({outcome.label}): {outcome.failure}", file=sys.stderr, flush=True)
        return code or int(bool(failed))

    def _run_planned(self) -> None:
        """Runs the product of all choices; in Hydra's basic sweeper a job that does not compose would end them all."""
        for number, overrides in enumerate(self._planned):
            self._attempt(number, self._label(overrides), functools.partial(self._start, number, overrides))

    def _start(self, number: int, overrides: list[str]) -> float | None:
        """Composes, prepares and does a planned job, in the folder that hydra.sweep in conf/config.yaml would give."""
        return self._done(number, self._prepare(self._composed(number, overrides)))

    def _done(self, number: int, prepared: Any) -> float | None:
        """Does a job; raises InputError where it would replace a file that another job of the sweep has written."""
        files = getattr(prepared, "files", ())
        if path := next((path for path in files if path in self._written), None):
            raise InputError(
                f"{path} is the result of job {self._written[path]}, which this one would replace; run it by itself"
            )
        objective = self._job(prepared)
        self._written |= dict.fromkeys(files, number)
        return objective

    def _composed(self, number: int, overrides: list[str]) -> Composed:
        """Returns a planned job's configuration with its folder, a number in the sweep's."""
        if number in self._ready:
            return self._ready[number]
        if self._by_hydra:
            composed = self._completed(compose_config(self._name, overrides))  # Hydra must compose it too
            self._ready[number] = dataclasses.replace(composed, sweep_dir=self._hydras_folder / str(number))
            return self._ready[number]
        composed = compose_config(self._name, self._complete(overrides))
        if self._folder is None:
            stamped = f"runs/{time.strftime('%Y-%m-%d_%H-%M-%S')}_sweep"
            self._folder = Path(composed.node.get("run_dir") or stamped).expanduser().absolute()
        self._ready[number] = dataclasses.replace(composed, sweep_dir=self._folder / str(number))
        return self._ready[number]

    def _run_by_hydra(self) -> None:
        """Runs the jobs that another sweeper picks by what they return, in its launcher."""

        def application(node: Any) -> float | None:
            composed, number = composed_by_hydra(node), int(HydraConfig.get().job.num)
            self._outcomes = self._outcomes if os.getpid() == self._process else []
            try:
                return self._attempt(
                    number,
                    self._label(composed.overrides),
                    lambda: self._done(number, self._prepare(self._completed(composed))),
                )
            finally:
                if os.getpid() != self._process:
                    self._leave(composed.sweep_dir)

        offer_all(self._name)
        hydra.main(version_base="1.3", config_path=str(config_dir()), config_name=self._name)(application)()

    def _completed(self, composed: Composed) -> Composed:
        """Returns a job's configuration as Hydra composed it, or anew where something follows from its overrides."""
        given = list(composed.overrides)
        if (overrides := self._complete(given)) == given:
            return composed
        return dataclasses.replace(compose_config(self._name, overrides), sweep_dir=composed.sweep_dir)

    def _leave(self, job_dir: Path) -> None:
        """Tells the process that shows the table how the job of this one ended; a refused one leaves no folder."""
        with contextlib.suppress(OSError):
            job_dir.rmdir()  # where it is empty
        with contextlib.suppress(OSError):
            job_dir.parent.mkdir(parents=True, exist_ok=True)
            lines = [{"sweep": self._stamp} | dataclasses.asdict(outcome) for outcome in self._outcomes]
            append_lines(job_dir.parent / OUTCOMES_FILE, lines)

    def _left_in(self, folder: Path) -> list[Outcome]:
        """Returns how the jobs ended that ran in other processes, as they left it; of several ends the last."""
        ended = {}
        for line in read_lines(folder / OUTCOMES_FILE):
            if line.pop("sweep", None) == self._stamp:
                ended[line["number"]] = Outcome(**line)
        for number, overrides in enumerate(self._planned or []):
            ended.setdefault(number, Outcome(number, self._label(overrides), None, "ended without a word"))
        return [ended[number] for number in sorted(ended)]

    def _draw(self) -> Path | None:
        """Draws the jobs side by side; returns the file, None where there is nothing to compare."""
        if self._folder is None:
            return None
        from dream.training.pictures import draw_sweep  # slow to import, and a refused sweep draws nothing

        jobs = [(one.label, one.objective, self._folder / str(one.number)) for one in self._outcomes]
        return draw_sweep(self._folder, jobs)

    def table(self) -> list[str]:
        """Returns the lines of the table of jobs; [] where they ran in other processes."""
        if not self._outcomes:
            return []
        rows = [("job", "overrides", "objective (lower is better)")]
        for outcome in self._outcomes:
            value = "none" if outcome.objective is None else f"{outcome.objective:.6g}"
            rows.append((str(outcome.number), outcome.label, outcome.failure.partition(":")[0] or value))
        for number, overrides in enumerate(self._planned or []):
            if number >= len(self._outcomes):
                rows.append((str(number), self._label(overrides), "not run"))
        widths = [max(len(row[n]) for row in rows) for n in range(2)]
        return [f"{a:>{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]

    def _way_on(self) -> str | None:
        """Returns the command that goes on with an interrupted sweep; None where there is none."""
        stopped = any(outcome.failure == _STOPPED for outcome in self._outcomes)
        if not stopped or self._planned is None or self._name not in _GOING_ON:
            return None
        given = sys.argv[1:]
        if not self._by_hydra and not any(text.startswith("run_dir=") for text in given):
            inside = self._folder.is_relative_to(Path.cwd())
            given = [*given, f"run_dir={as_value(os.path.relpath(self._folder) if inside else str(self._folder))}"]
        return shlex.join(["python", "-m", f"dream.{_GOING_ON[self._name]}", *given])

    def _check(self) -> list[str]:
        """Returns a line on each reason for which jobs are refused, before anything is written.

        Raises:
          InputError: the first job's, where every job is refused; or that of a job that does not compose, where Hydra
            runs them: it begins none then.
        """
        if self._by_hydra:
            for number, overrides in enumerate(self._planned):
                self._composed(number, overrides)
        refused: dict[int, InputError] = {}
        for number, overrides in enumerate(self._planned):
            try:
                self._prepare(self._composed(number, overrides))
            except InputError as error:
                refused[number] = error
            except Exception:
                continue  # it is reported where the job comes up
        if len(refused) == len(self._planned):
            raise refused[0]
        reasons: dict[str, list[int]] = {}
        for number, error in refused.items():
            reasons.setdefault(_line(error), []).append(number)
        return [f"warning: {self._named(numbers)} will be refused: {reason}" for reason, numbers in reasons.items()]

    def _named(self, numbers: list[int]) -> str:
        """Returns jobs by number, the first of them with its overrides."""
        label = self._label(self._planned[numbers[0]])
        several = len(numbers) > 1
        return f"job{'s' * several} {', '.join(map(str, numbers))} ({label}{' and so on' * several})"

    def _attempt(self, number: int, label: str, start: Callable[[], float | None]) -> float | None:
        """Runs one job; what goes wrong in it stays in it. Returns its objective, infinite where it failed."""
        count = f" ({number + 1} of {len(self._planned)})" if self._planned else ""
        print(f"\njob {number}{count}: {label}", flush=True)
        try:
            with memory_explained():
                objective, failure = start(), ""
        except InputError as error:
            objective, failure = None, f"refused: {_line(error)}"
        except (FloatingPointError, StorageError, MemoryError) as error:
            objective, failure = None, f"failed: {_line(error)}"
        except SystemExit:
            self._outcomes.append(Outcome(number, label, None, _STOPPED))
            raise
        except Exception as error:
            if isinstance(error, BrokenPipeError) and not self._by_hydra and output_is_closed():
                self._outcomes.append(Outcome(number, label, None, _STOPPED))
                error.__notes__ = [note.partition("; ")[0] for note in getattr(error, "__notes__", ())]  # what is saved
                error.add_note(f"all jobs go on with {self._way_on() or 'the same command'}")
                raise
            traceback.print_exc()
            objective, failure = None, f"failed: {type(error).__name__}: {_line(error)}"
        self._outcomes.append(Outcome(number, label, objective, failure))
        if failure:
            print(failure, file=sys.stderr, flush=True)
            return math.inf
        return objective

    def _label(self, overrides: list[str] | tuple[str, ...]) -> str:
        return " ".join(text for text in overrides if text not in self._fixed) or "no overrides"


def _enumerated(overrides: list[str]) -> list[list[str]]:
    """Returns the overrides of every job; raises InputError where they do not parse or are without end."""
    try:
        return jobs(overrides)
    except HydraException as error:
        raise InputError(f"{_line(error)}; other sweeps need a sweeper, as in hydra/sweeper=optuna") from error


def _check_folder(overrides: list[str]) -> None:
    """Raises InputError where a sweep is given several folders."""
    folders = _enumerated([text for text in overrides if text.startswith("run_dir=")])
    if len(folders) > 1:
        raise InputError(f"run_dir= has {len(folders)} values; a sweep has one folder, and each job its own in it")


def _check_once(planned: list[list[str]]) -> None:
    """Raises InputError where a job is planned twice, which would count as two samples of one and the same."""
    first: dict[tuple[str, ...], int] = {}
    for number, overrides in enumerate(planned):
        earlier = first.setdefault(tuple(overrides), number)
        if earlier != number:
            raise InputError(f"jobs {earlier} and {number} are both {' '.join(overrides)}; give each value once")


def _check_resumed(overrides: list[str]) -> None:
    """Raises InputError where two jobs of a sweep would go on with the same run, one from the end of the other."""
    if not any(text.startswith("resume=") for text in overrides):
        return
    try:
        planned = _enumerated([text for text in overrides if not text.startswith("hydra")])
    except InputError as error:
        raise InputError("resume= is not for a sweeper that picks its own jobs; they are new runs") from error
    given = [text for job in planned for text in job if text.startswith("resume=")]
    resumed = [_resumed_run(text) for text in given]
    if twice := next((run for run in resumed if resumed.count(run) > 1), None):
        named = ", ".join(dict.fromkeys(text for text, run in zip(given, resumed, strict=True) if run == twice))
        raise InputError(f"{named} is given to {resumed.count(twice)} jobs; a sweep can go on with a run only once")


def _resumed_run(text: str) -> Path:
    """Returns the folder of the run that `resume=` means, however it or one of its checkpoints is written."""
    path = Path(text.partition("=")[2].strip("'\"")).expanduser().resolve()
    if path.parent.name == FOLDER:
        return path.parent.parent
    return path.parent if path.name == FOLDER else path


def _folder_in(overrides: list[str], setting: str) -> Path:
    """Returns the folder that a sweep of Hydra's is given, or one that is named by the time, which it is then given."""
    given = [text.partition("=")[2].strip("'\"") for text in overrides if text.startswith(f"{setting}=")]
    if not given:
        given = [f"runs/{time.strftime('%Y-%m-%d_%H-%M-%S')}_sweep"]
        sys.argv.append(f"{setting}={given[0]}")
    folder = Path(given[-1]).expanduser().absolute()
    if given[-1].startswith("~"):  # which Hydra would take for a folder's name
        sys.argv[:] = [f'{setting}="{folder}"' if text.startswith(f"{setting}=") else text for text in sys.argv]
    return folder


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0]
