"""Settings: every kind of wrong value is one line that names the place and what would be right."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from omegaconf import OmegaConf

from dream.config.settings import as_read, choice, number, read
from dream.equations import schedules
from dream.equations.schedules import Schedule
from envs import InputError


@dataclasses.dataclass(frozen=True)
class Inner:
    """A nested schema."""

    rate: float = number(0.5, 0, 1)
    step: float = number(1.0, 0, above=True)


@dataclasses.dataclass(frozen=True)
class Outer:
    """One field of every kind."""

    needed: int
    count: int = number(3, 1, 10)
    scale: float = number(1.0)
    mode: str = choice("slow", "slow", "fast")
    title: str = "none"
    keep: bool = True
    limit: int | None = number(None, 1)
    label: str | None = None
    widths: tuple[int, ...] = number((4, 2), 1)
    names: tuple[str, ...] = ()
    rules: dict[str, Any] = dataclasses.field(default_factory=dict)
    inner: Inner = Inner()
    decay: Schedule = schedules.constant(1.0)
    anything: Any = None


WRONG = {
    "unknown key": ({"cuont": 3}, ["a.cuont", "did you mean 'a.count'?", "a.widths"]),
    "unknown nested key": ({"inner": {"rat": 0.1}}, ["a.inner.rat", "did you mean 'a.inner.rate'?"]),
    "whole number is text": ({"count": "3"}, ["a.count='3'", "whole number"]),
    "whole number is a fraction": ({"count": 3.5}, ["a.count=3.5", "whole number"]),
    "whole number is not a number": ({"count": math.nan}, ["a.count=nan", "whole number"]),
    "whole number is infinite": ({"limit": math.inf}, ["a.limit=inf", "whole number"]),
    "whole number is no certain one": ({"limit": 1e17}, ["a.limit=1e+17", "whole number"]),
    "whole float is too big": ({"count": 1e3}, ["a.count=1000", "at least 1", "at most 10"]),
    "whole number is true": ({"count": True}, ["a.count=True", "whole number"]),
    "whole number is null": ({"count": None}, ["a.count=None", "whole number"]),
    "number is text": ({"scale": "big"}, ["a.scale='big'", "number"]),
    "number is true": ({"scale": True}, ["a.scale=True", "number"]),
    "number is beyond all floats": ({"scale": 10**400}, ["a.scale=inf", "finite"]),
    "text is a number": ({"title": 3}, ["a.title=3", "text"]),
    "flag is a number": ({"keep": 1}, ["a.keep=1", "true or false"]),
    "flag is text": ({"keep": "yes"}, ["a.keep='yes'", "true or false"]),
    "not an option": ({"mode": "fats"}, ["a.mode", "'fats'", "did you mean 'fast'?", "fast, slow"]),
    "too small": ({"count": 0}, ["a.count=0", "at least 1", "at most 10"]),
    "too big": ({"count": 11}, ["a.count=11", "at least 1", "at most 10"]),
    "not above its bound": ({"inner": {"step": 0}}, ["a.inner.step=0.0", "more than 0"]),
    "not a number": ({"scale": math.nan}, ["a.scale=nan", "finite"]),
    "infinite": ({"scale": math.inf}, ["a.scale=inf", "finite"]),
    "infinite with a lower bound": ({"inner": {"step": math.inf}}, ["a.inner.step=inf", "more than 0"]),
    "optional of another type": ({"limit": "x"}, ["a.limit='x'", "whole number"]),
    "optional out of range": ({"limit": 0}, ["a.limit=0", "at least 1"]),
    "list is a number": ({"widths": 4}, ["a.widths=4", "list"]),
    "list is text": ({"names": "x"}, ["a.names='x'", "list"]),
    "item of another type": ({"widths": [4, "x"]}, ["a.widths[1]='x'", "whole number"]),
    "item out of range": ({"widths": [4, 2, 0]}, ["a.widths[2]=0", "at least 1"]),
    "mapping is a list": ({"rules": [1]}, ["a.rules=[1]", "dict"]),
    "mapping is null": ({"rules": None}, ["a.rules=None", "dict"]),
    "node is a number": ({"inner": 3}, ["a.inner=3", "rate, step"]),
    "node is null": ({"inner": None}, ["a.inner=None", "rate, step"]),
}


@pytest.mark.parametrize("kind", [dict, OmegaConf.create], ids=["dict", "node"])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_value(name: str, kind: Any) -> None:
    """From a plain dict or a configuration node: one line with the path, the value and what would be right."""
    given, reported = WRONG[name]
    with pytest.raises(InputError) as error:
        read(Outer, kind({"needed": 1, **given}), "a")
    text = str(error.value)
    assert "\n" not in text
    for part in reported:
        assert part in text


def test_a_default_is_one_of_the_options() -> None:
    """Said where the field is defined, not with a value that nobody gave; None leaves it open."""
    message = r"^choice: the default 'gauss' must be among the options, 'uniform', 'beta'$"
    with pytest.raises(ValueError, match=message):
        choice("gauss", "uniform", "beta")
    assert choice(None, "uniform", "beta").default is None


def test_missing() -> None:
    """A field without a default must be given."""
    with pytest.raises(InputError, match=r"^a\.needed is missing"):
        read(Outer, {}, "a")
    with pytest.raises(InputError, match=r"^needed is missing"):
        read(Outer, {}, "")


def test_values_that_contradict_each_other() -> None:
    """What settings find wrong with themselves names where they stand, too."""
    node = {"needed": 1, "decay": {"start": 0.0, "end": 1.0, "form": "inverse_sqrt"}}
    with pytest.raises(InputError, match=r"^a\.decay: a schedule of form inverse_sqrt cannot go from 0\.0 to 1\.0"):
        read(Outer, node, "a")


def test_right_values() -> None:
    """Whole numbers become floats where a float is due, lists tuples; what is left out takes its default."""
    node = OmegaConf.create(
        {"needed": 7, "scale": 2, "limit": 5, "widths": [8], "rules": {"x": [1]}, "inner": {"rate": 1}, "anything": [1]}
    )
    made = read(Outer, node, "a")
    assert made == Outer(7, scale=2.0, limit=5, widths=(8,), rules={"x": [1]}, inner=Inner(rate=1.0), anything=[1])
    assert type(made.scale) is float
    assert type(made.inner.rate) is float
    assert read(Outer, {"needed": 1, "limit": None, "label": None}, "a") == Outer(1)


def test_a_float_may_be_a_whole_number() -> None:
    """As 1e1 is on a command line; what is kept of the configuration has the whole number too, and floats as floats."""
    given = {
        "needed": 1e3,
        "limit": 2.0,
        "scale": 2.0,
        "widths": [8.0, 4],
        "anything": {"x": 1.0},
        "inner": {"step": 1.0},
    }
    made = read(Outer, given, "a")
    assert repr(made) == repr(
        Outer(1000, limit=2, scale=2.0, widths=(8, 4), anything={"x": 1.0}, inner=Inner(step=1.0))
    )
    kept = {**given, "needed": 1000, "limit": 2, "widths": [8, 4]}
    assert repr(as_read(given, made)) == repr(kept)


def test_interpolations_are_resolved() -> None:
    """A value may refer to another."""
    assert read(Outer, OmegaConf.create({"needed": 2, "count": "${needed}"}), "a").count == 2


def test_broken_interpolation_is_wrong_input() -> None:
    """A reference to what is not there is told in one line too."""
    with pytest.raises(InputError) as error:
        read(Outer, OmegaConf.create({"needed": 2, "count": "${nothing}"}), "a")
    assert "nothing" in str(error.value)
    assert "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers() -> None:
    """As a script computes them; what is stored of them are Python's."""
    found = read(Outer, {"needed": np.int64(2), "scale": np.float32(0.5), "keep": np.bool_(False)}, "a")
    assert (found.needed, found.scale, found.keep) == (2, 0.5, False)
    assert (type(found.needed), type(found.scale), type(found.keep)) == (int, float, bool)
    with pytest.raises(InputError, match="whole number"):
        read(Outer, {"needed": np.float64(2.5)}, "a")
