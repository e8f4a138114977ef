"""A wrong game, rule or value is answered with one line that says what would be right."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import envs
from envs.gin_rummy.core.rules import GinRules


def _message(name: str, **rules: Any) -> str:
    with pytest.raises(envs.InputError) as error:
        envs.make(name, **rules)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_names_are_sorted_and_all_can_be_made() -> None:
    """Each registered name makes a game of that name."""
    assert list(envs.names()) == sorted(set(envs.names()))
    assert "gin_rummy" in envs.names()
    assert all(envs.make(name).name == name for name in envs.names())


@pytest.mark.parametrize("name", ["gin_rumy", "chess", "", "GIN_RUMMY"])
def test_unknown_game_lists_the_known_ones(name: str) -> None:
    """The message repeats the wrong name and gives every right one."""
    text = _message(name)
    assert repr(name) in text
    assert all(known in text for known in envs.names())


def test_near_miss_is_suggested() -> None:
    """A typing slip is answered with the nearest name first."""
    assert "did you mean 'gin_rummy'?" in _message("gin_rumy")
    assert "did you mean 'knock_limit'?" in _message("gin_rummy", knock_limits=3)


def test_unknown_rule_lists_the_known_ones() -> None:
    """The message repeats the wrong rule and gives every right one."""
    text = _message("gin_rummy", wildcards=2)
    assert "'wildcards'" in text
    assert all(field.name in text for field in dataclasses.fields(GinRules))


@pytest.mark.parametrize(
    ("rule", "value", "right"),
    [("knock_limit", 10.0, "int"), ("gin_bonus", "25", "int"), ("first_offer", 1, "bool"), ("hand_size", True, "int")],
)
def test_value_of_another_type_names_the_right_type(rule: str, value: object, right: str) -> None:
    """Rule, value and the type wanted are all in the message."""
    text = _message("gin_rummy", **{rule: value})
    assert f"{rule}={value!r}" in text
    assert f"must be a {right}" in text


@pytest.mark.parametrize(
    ("rule", "value", "low", "high"),
    [
        ("knock_limit", -1, 0, 98),
        ("knock_limit", 99, 0, 98),
        ("hand_size", 11, 2, 10),
        ("hand_size", 1, 2, 10),
        ("num_ranks", 14, 3, 13),
        ("num_suits", 5, 1, 4),
        ("stock_floor", 31, 0, 30),
        ("max_actions", 1, 2, 250),
        ("max_actions", 251, 2, 250),
        ("gin_bonus", -1, 0, 1000),
    ],
)
def test_value_out_of_range_names_the_range(rule: str, value: int, low: int, high: int) -> None:
    """Rule, value and the range are all in the message."""
    text = _message("gin_rummy", **{rule: value})
    assert f"{rule}={value}" in text
    assert f"[{low}, {high}]" in text


@pytest.mark.parametrize(
    ("rule", "value"), [("knock_limit", 0), ("stock_floor", 30), ("max_actions", 250), ("hand_size", 2)]
)
def test_value_at_the_edge_of_its_range_is_accepted(rule: str, value: int) -> None:
    """The ends of a range belong to it."""
    assert getattr(envs.make("gin_rummy", **{rule: value}).rules, rule) == value


def test_defaults_are_the_dream_preset() -> None:
    """The rules of the specification's table."""
    rules = envs.make("gin_rummy").rules
    assert (rules.gin_bonus, rules.undercut_bonus, rules.knock_limit) == (50, 50, 10)
    assert (rules.stock_floor, rules.max_actions, rules.undercut_on_tie, rules.first_offer) == (2, 80, True, True)


def test_sizes_are_those_of_the_specification() -> None:
    """107 actions, 4,887 numbers, 80 actions at most."""
    game = envs.make("gin_rummy")
    assert (game.num_actions, game.observation_size, game.max_length, game.num_players) == (107, 4887, 80, 2)


def test_a_rule_changes_identity_and_equality() -> None:
    """Games with the same rules are one, another rule makes another game."""
    same, other = envs.make("gin_rummy", gin_bonus=50), envs.make("gin_rummy", gin_bonus=25)
    assert same == envs.make("gin_rummy")
    assert hash(same) == hash(envs.make("gin_rummy"))
    assert other != same
    assert other.identity != same.identity


def test_unknown_player_lists_the_known_ones() -> None:
    """The message names the game, the wrong player and every right one."""
    game = envs.make("gin_rummy")
    assert "random" in envs.bot_names(game)
    with pytest.raises(envs.InputError) as error:
        envs.make_bot("randon", game)
    text = str(error.value)
    assert "\n" not in text
    assert "gin_rummy" in text
    assert "did you mean 'random'?" in text
    assert all(name in text for name in envs.bot_names(game))


def test_every_player_can_be_built() -> None:
    """Each name a game lists makes a Policy."""
    for name in envs.names():
        game = envs.make(name)
        assert all(isinstance(envs.make_bot(bot, game), envs.Policy) for bot in envs.bot_names(game))
