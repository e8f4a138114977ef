"""Quantities that change with the iteration; iterations are absolute, so a resumed run goes on where it was."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
from jax import Array

from dream.config.settings import choice, number
from envs import InputError


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A quantity that goes from one value to another and stays there.

    Attributes:
      start, end: values at iteration 0 and from iteration `transition_steps` on, finite.
      transition_steps: iterations.
      form: "linear"; "cosine", which leaves and arrives with slope 0; or "inverse_sqrt", start / sqrt(1 + c iteration),
        both values of one sign.
    Raises:
      InputError: such a form with values that no square root connects.
    """

    start: float = number(dataclasses.MISSING)
    end: float = number(dataclasses.MISSING)
    transition_steps: int = number(1, 1)
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


def at(schedule: Schedule, iteration: Array) -> Array:
    """Returns start + (end - start) * s: float32.

    s = min(iteration / transition_steps, 1), or (1 - cos(pi s)) / 2 of that for "cosine". For "inverse_sqrt"
    start / sqrt(1 + s ((start / end)^2 - 1)) instead: a constant over sqrt(iteration + offset).
    """
    share = jnp.clip(iteration / schedule.transition_steps, 0.0, 1.0)
    if schedule.form == "inverse_sqrt":
        return schedule.start / jnp.sqrt(1.0 + share * ((schedule.start / schedule.end) ** 2 - 1.0))
    if schedule.form == "cosine":
        share = (1.0 - jnp.cos(jnp.pi * share)) / 2.0
    return schedule.start + (schedule.end - schedule.start) * share
