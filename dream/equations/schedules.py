"""Quantities that change with the iteration, or with how much of its budget a run has spent.

Iterations are absolute, so a resumed run goes on where it was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from dream.config.settings import choice, number
from envs import InputError


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A quantity that goes from one value to another and stays there.

    Attributes:
      start, end: values at iteration 0 and from iteration `transition_steps` on, finite.
      transition_steps: iterations; None: as many as the run has, whichever limit of its budget ends it.
      form: "linear"; "cosine", which leaves and arrives with slope 0; or "inverse_sqrt", start / sqrt(1 + c iteration),
        both values of one sign.
    Raises:
      InputError: such a form with values that no square root connects.
    """

    start: float = number(dataclasses.MISSING)
    end: float = number(dataclasses.MISSING)
    transition_steps: int | None = number(1, 1)
    form: str = choice("linear", "linear", "cosine", "inverse_sqrt")

    def __post_init__(self) -> None:
        if self.form == "inverse_sqrt" and not self.start * self.end > 0:
            raise InputError(
                f"a schedule of form inverse_sqrt cannot go from {self.start} to {self.end}; both must be above 0, or "
                "both below"
            )


def constant(value: float) -> Schedule:
    """Returns a schedule that stays at one value."""
    return Schedule(value, value)


def follow_run(config: Any) -> list[str]:
    """Returns the names of the schedules among settings, and in their groups, that take as long as the run does."""
    if isinstance(config, Schedule):
        return [""] if config.transition_steps is None else []
    if not dataclasses.is_dataclass(config):
        return []
    within = {field.name: follow_run(getattr(config, field.name)) for field in dataclasses.fields(config)}
    return [f"{name}.{path}".rstrip(".") for name, paths in within.items() for path in paths]


def share_of(config: Any) -> Any:
    """Returns the `share` that a learner's state begins with: float32 0 where a schedule follows the run, else ()."""
    return jnp.float32(0) if follow_run(config) else ()


def share_setter(config: Any) -> Callable[[Any, float], Any] | None:
    """Returns (state, share) -> the state with that share; None where no schedule follows the run."""
    return _with_share if follow_run(config) else None


def _with_share(state: Any, share: float) -> Any:
    return state._replace(share=_filled(state.share, share))


@jax.jit
def _filled(old: Array, value: Array) -> Array:
    """Returns an array that compiled programs take as they took the old one, unlike one that the host makes."""
    return jnp.full_like(old, value)


def at(schedule: Schedule, iteration: Array, share: Any = ()) -> Array:
    """Returns start + (end - start) * s: float32.

    s = min(iteration / transition_steps, 1), or (1 - cos(pi s)) / 2 of that for "cosine". For "inverse_sqrt"
    start / sqrt(1 + s ((start / end)^2 - 1)) instead: a constant over sqrt(iteration + offset).

    Args:
      schedule: of the quantity.
      iteration: int32, completed ones.
      share: float32 in [0, 1], of the run's budget that is spent: s where `transition_steps` is None.
    Raises:
      InputError: such a schedule and no share, as of a learner without `Algorithm.with_share`.
    """
    if schedule.transition_steps is None and isinstance(share, tuple):
        raise InputError(
            "transition_steps=null needs a learner that knows its run's budget; give a number of iterations"
        )
    share = share if schedule.transition_steps is None else jnp.clip(iteration / schedule.transition_steps, 0.0, 1.0)
    if schedule.form == "inverse_sqrt":
        return schedule.start / jnp.sqrt(1.0 + share * ((schedule.start / schedule.end) ** 2 - 1.0))
    if schedule.form == "cosine":
        share = (1.0 - jnp.cos(jnp.pi * share)) / 2.0
    return schedule.start + (schedule.end - schedule.start) * share
