"""Schedules: the written values at written iterations."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import pytest

from dream.algorithms.ppo import PpoConfig
from dream.config import settings
from dream.equations.reward_shaping import ShapingConfig
from dream.equations.schedules import Schedule, at, constant, follow_run
from envs import InputError


@pytest.mark.parametrize(
    ("iteration", "expected"),
    [(0, 2.0), (1, 1.99525), (100, 1.525), (200, 1.05), (399, 0.10475), (400, 0.1), (9999, 0.1)],
)
def test_document_temperature(iteration: int, expected: float) -> None:
    """2.0 to 0.1 over 400 iterations, then 0.1 for good; traced iterations included."""
    schedule = Schedule(2.0, 0.1, 400)
    assert at(schedule, jnp.int32(iteration)) == pytest.approx(expected, rel=1e-6)
    assert jax.jit(lambda n: at(schedule, n))(jnp.int32(iteration)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("start", "end"), [(1.0, 0.0), (-2.0, 5.0)])
def test_cosine(start: float, end: float) -> None:
    """Half-way at half time, a share (1 - cos(pi / 4)) / 2 at a quarter, flat at both ends."""
    schedule = Schedule(start, end, 1000, "cosine")
    shares = {0: 0.0, 250: (1 - math.sqrt(0.5)) / 2, 500: 0.5, 750: (1 + math.sqrt(0.5)) / 2, 1000: 1.0, 2000: 1.0}
    for iteration, share in shares.items():
        assert at(schedule, jnp.int32(iteration)) == pytest.approx(start + (end - start) * share, abs=1e-5)
    steps = [float(at(schedule, jnp.int32(n))) for n in (0, 1, 500, 501, 999, 1000)]
    slopes = [abs(after - before) for before, after in zip(steps[::2], steps[1::2], strict=True)]
    assert max(slopes[0], slopes[2]) < slopes[1] / 100


def test_inverse_sqrt() -> None:
    """From 1 to 1/10: 1 / sqrt(1 + 99 s), which is a constant over sqrt(iteration + offset); then it stays."""
    schedule = Schedule(1.0, 0.1, 990, "inverse_sqrt")
    for iteration, expected in {0: 1.0, 30: 0.5, 240: 0.2, 990: 0.1, 5000: 0.1}.items():
        assert at(schedule, jnp.int32(iteration)) == pytest.approx(expected, rel=1e-6)
    assert at(Schedule(-1.0, -0.1, 990, "inverse_sqrt"), jnp.int32(240)) == pytest.approx(-0.2, rel=1e-6)
    for start, end in ((1.0, 0.0), (-1.0, 0.1)):
        with pytest.raises(InputError, match=f"cannot go from {start} to {end}; both must be above 0, or both below"):
            Schedule(start, end, 990, "inverse_sqrt")


@pytest.mark.parametrize(("name", "value"), [("start", math.inf), ("end", math.nan)])
def test_what_is_not_finite_is_refused(name: str, value: float) -> None:
    """From infinity no straight line leads anywhere: the first value would be inf - inf * 0."""
    with pytest.raises(InputError, match=rf"algo.temperature.{name}={value} is out of range; it must be finite"):
        settings.read(Schedule, {"start": 2.0, "end": 0.1} | {name: value}, "algo.temperature")


def test_constant() -> None:
    """The same at any iteration, and float32."""
    for iteration in (0, 1, 10**6):
        value = at(constant(0.5), jnp.int32(iteration))
        assert value == 0.5
        assert value.dtype == jnp.float32


def test_a_schedule_of_the_runs_length() -> None:
    """It is where the share of the budget has it, whatever the iteration; who has no share is told."""
    schedule = Schedule(2.0, 0.5, None)
    for share, expected in ((0.0, 2.0), (0.25, 1.625), (1.0, 0.5)):
        assert at(schedule, jnp.int32(7), jnp.float32(share)) == pytest.approx(expected)
    with pytest.raises(InputError, match="transition_steps=null needs a learner that knows its run's budget"):
        at(schedule, jnp.int32(7))


def test_schedules_of_the_runs_length_are_found() -> None:
    """Also within groups of settings, by their dotted names."""
    config = PpoConfig(entropy_decay=Schedule(1.0, 0.0, None), shaping=ShapingConfig(scale=Schedule(1.0, 0.0, None)))
    assert follow_run(config) == ["entropy_decay", "shaping.scale"]
    assert follow_run(PpoConfig()) == []
