"""Quantities that change with the iteration; iterations are absolute, so a resumed run goes on where it was."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
from jax import Array

from dream.config.settings import choice, number


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A quantity that goes from one value to another and stays there.

    Attributes:
      start, end: values at iteration 0 and from iteration `transition_steps` on.
      transition_steps: iterations.
      form: "linear", or "cosine", which leaves and arrives with slope 0.
    """

    start: float
    end: float
    transition_steps: int = number(1, 1)
    form: str = choice("linear", "linear", "cosine")


def constant(value: float) -> Schedule:
    """Returns a schedule that stays at one value."""
    return Schedule(value, value)


def at(schedule: Schedule, iteration: Array) -> Array:
    """Returns start + (end - start) * s: float32.

    s = min(iteration / transition_steps, 1), or (1 - cos(pi s)) / 2 of that for "cosine".
    """
    share = jnp.clip(iteration / schedule.transition_steps, 0.0, 1.0)
    if schedule.form == "cosine":
        share = (1.0 - jnp.cos(jnp.pi * share)) / 2.0
    return schedule.start + (schedule.end - schedule.start) * share
