"""What the commands share: overrides checked before anything happens, errors as one line with exit code 2."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dream.commands.closed_pipe import while_somebody_reads
from dream.commands.sweep import Sweep
from dream.config.compose import Composed, compose_config, composed_by_hydra, config_dir, offer_all
from dream.storage.files import StorageError
from dream.training.faults import memory_explained
from envs.errors import InputError

_SWEEP = {"-m", "--multirun"}
_HYDRAS = (
    "--help", "--hydra-help", "--version", "--cfg", "--resolve", "--package", "--run", "--multirun",
    "--shell-completion", "--config-path", "--config-name", "--config-dir", "--experimental-rerun", "--info",
)  # fmt: skip
"""Flags of Hydra's command line, which takes their beginnings too."""
_CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
_SHORTEST_VARIABLE = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


def run_command(
    name: str,
    prepare: Callable[[Composed], Any],
    job: Callable[[Any], float | None],
    complete: Callable[[list[str]], list[str]] = lambda overrides: overrides,
) -> None:
    """Runs a Hydra application.

    Args:
      name: of its primary configuration file.
      prepare: checks a composed configuration, writing nothing, and returns what the job needs; raises InputError.
      job: does the work; what it returns is a sweep's objective, lower is better.
      complete: adds to a job's overrides what follows from them; raises InputError.
    """
    arguments = sys.argv[1:]
    flags = {argument for argument in arguments if argument.startswith("-")}
    overrides = [argument for argument in arguments if not argument.startswith("-")]
    _cache_compilations()
    with while_somebody_reads():
        if not flags:
            _run_job(job, lambda: prepare(compose_config(name, complete(overrides))))
        elif flags <= _SWEEP:
            try:
                sweep = Sweep(name, overrides, prepare, job, complete)
            except InputError as error:
                _refuse(error)
            if code := sweep.run():
                sys.exit(code)
        elif (error := _foreign_flag(arguments)) is not None:
            _refuse(error)
        else:
            _hand_to_hydra(name, prepare, job)


def _run_job(job: Callable[[Any], float | None], prepare: Callable[[], Any]) -> None:
    """Prepares and does a job; wrong input ends the process with code 2, a fault of numbers or machine with 1."""
    try:
        with memory_explained():
            job(prepare())
    except InputError as error:
        _refuse(error)
    except (FloatingPointError, StorageError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _foreign_flag(arguments: list[str]) -> InputError | None:
    """Returns the error for a flag that is none of Hydra's, as --seed=1 or --seed 1 for seed=1; None without one."""
    for text, after in zip(arguments, [*arguments[1:], ""], strict=True):
        flag, _, value = text.partition("=")
        if flag.startswith("--") and not any(known.startswith(flag) for known in _HYDRAS):
            value = value or ("<value>" if not after or "=" in after or after.startswith("-") else after)
            return InputError(
                f"{flag} is not valid; settings are written key=value, as {flag.lstrip('-')}={value}; --help lists them"
            )
    return None


def _hand_to_hydra(name: str, prepare: Callable[[Composed], Any], job: Callable[[Any], float | None]) -> None:
    import hydra

    offer_all(name)

    @hydra.main(version_base="1.3", config_path=str(config_dir()), config_name=name)
    def application(node: Any) -> None:
        _run_job(job, lambda: prepare(composed_by_hydra(node)))

    application()


def _refuse(error: InputError) -> None:
    print(f"error: {error}", file=sys.stderr, flush=True)
    sys.exit(2)


def _cache_compilations() -> None:
    """Keeps compiled programs, short ones too, for later processes and for a sweep's; the environment goes first."""
    import jax

    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    for variable, value in ((_CACHE_VARIABLE, str(home / "dream-jax")), (_SHORTEST_VARIABLE, 0.0)):
        if variable not in os.environ:
            os.environ[variable] = str(value)  # for the processes of a launcher, which jax reads there
            jax.config.update(variable.lower(), value)
