"""Rules as they are given: numbers are read as those of all other settings."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import InputError
from envs.values import read_as


@pytest.mark.parametrize(
    ("name", "given", "plain"),
    [
        ("gin_rummy", {"knock_limit": 1e1}, {"knock_limit": 10}),
        ("gin_rummy_mdp", {"gin_bonus": np.int64(20)}, {"gin_bonus": 20}),
        ("rummy500", {"num_players": 3.0, "target": 1e2}, {"num_players": 3, "target": 100}),
        ("rummy500", {"card_weight": 1}, {"card_weight": 1.0}),
    ],
)
def test_a_number_may_be_written_in_another_way(name: str, given: dict[str, Any], plain: dict[str, Any]) -> None:
    """As 1e1 is on a command line; the game is the same and so is what is stored of it."""
    made, usual = envs.make(name, **given), envs.make(name, **plain)
    assert made == usual
    assert repr(made.identity) == repr(usual.identity)


@pytest.mark.parametrize("value", [9.5, math.nan, math.inf, 1e17, True, "10", None])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    """In one line, with the value as it was given."""
    for name, rule in (("gin_rummy", "knock_limit"), ("rummy500", "target")):
        with pytest.raises(InputError) as error:
            envs.make(name, **{rule: value})
        assert str(error.value).startswith(f"rule {rule}={value!r} is a ")
        assert str(error.value).endswith("; it must be an int")


def test_numbers_beyond_those_of_a_float_are_infinite() -> None:
    """Which whoever asks for a number refuses as not finite."""
    assert (read_as(float, 10**400), read_as(float, -(10**400))) == (math.inf, -math.inf)
    assert (read_as(int, 2.0**53), read_as(int, 2.0**54)) == (2**53, 2.0**54)
    assert type(read_as(int, 2.0**54)) is float


@pytest.mark.parametrize("value", [np.int64(20), np.array(20), jnp.int32(20), jnp.float32(20)])
def test_scalars_of_numpy_and_jax_are_numbers(value: Any) -> None:
    """As Python's are; a truth value is none, whoever made it."""
    assert (read_as(int, value), type(read_as(int, value))) == (20, int)
    assert read_as(int, jnp.bool_(True)) is True
