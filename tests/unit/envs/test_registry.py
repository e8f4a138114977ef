"""A wrong game, rule or value is answered with one line that says what would be right."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from dream_support import CoinGame

import envs
from dream.evaluation.validity import refuse_unopposed
from envs import players, registry
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
    assert "did you mean 'kuhn_poker'?" in _message("kuhn")
    assert "did you mean 'knock_limit'?" in _message("gin_rummy", knock_limits=3)
    assert ", preset, " in _message("gin_rummy", reward="categorical")


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "liars_dice"])
def test_games_without_rules_refuse_any(game: str) -> None:
    """By its name."""
    assert "unknown rule 'ante'; there are none here" in _message(game, ante=2)


def test_unknown_rule_lists_the_known_ones() -> None:
    """The message repeats the wrong rule and gives every right one."""
    text = _message("gin_rummy", wildcards=2)
    assert "'wildcards'" in text
    assert all(field.name in text for field in dataclasses.fields(GinRules))


@pytest.mark.parametrize(
    ("rule", "value", "right"),
    [
        ("knock_limit", 10.5, "an int"),
        ("gin_bonus", "25", "an int"),
        ("first_offer", 1, "a bool"),
        ("hand_size", True, "an int"),
    ],
)
def test_value_of_another_type_names_the_right_type(rule: str, value: object, right: str) -> None:
    """Rule, value and the type wanted are all in the message."""
    text = _message("gin_rummy", **{rule: value})
    assert f"{rule}={value!r}" in text
    assert f"must be {right}" in text


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


@pytest.fixture
def outside() -> Iterator[None]:
    """A registry that looks for installed packages anew, before the test and after it."""
    for module in (registry, players):
        module._offered.cache_clear()
    yield
    for module in (registry, players):
        module._offered.cache_clear()


def make_coin(flat: bool = False) -> CoinGame:
    """Builds the coin game."""
    return CoinGame(flat=flat)


def make_wrong_name() -> CoinGame:
    """Builds a game of another name than it is registered by."""
    return CoinGame()


def _always_first(game: envs.Game, action: int = 0) -> envs.Policy:
    return envs.Policy(lambda params, view, legal: jax.nn.one_hot(action, legal.shape[0]))


def _refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(envs.InputError) as error:
        call()
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("given", [make_coin, "dream_support:CoinGame"])
def test_a_registered_game_is_made_by_name(given: Any) -> None:
    """With its rules, by a function or its reference, and with its players beside the random one."""
    envs.register("coin", given, bots={"first": _always_first})
    assert "coin" in envs.names()
    game = envs.make("coin", flat=True)
    assert game == CoinGame(flat=True)
    assert not envs.is_own(game)
    assert envs.bot_names(game) == ["first", "random"]
    assert envs.make_bot("first", game, action=2)(None, np.ones(3, bool)).tolist() == [0, 0, 1]
    assert "does not take these rules: got an unexpected keyword argument 'flatt'" in _refusal(
        lambda: envs.make("coin", flatt=True)
    )


@pytest.mark.usefixtures("outside")
def test_rules_that_a_function_hands_on_are_refused_in_a_line() -> None:
    """As `make(**rules)` of docs/extending.md does; and a value that the game itself refuses."""
    envs.register("coin", lambda **rules: CoinGame(**rules))
    assert "game 'coin' cannot be made with flatt=1: TypeError: " in _refusal(lambda: envs.make("coin", flatt=1))
    envs.register("dime", lambda flat: CoinGame(flat=int(flat)))
    text = _refusal(lambda: envs.make("dime", flat="x"))
    assert "game 'dime' cannot be made with flat='x': ValueError: invalid literal" in text


@pytest.mark.usefixtures("outside")
def test_what_a_game_that_is_not_zero_sum_lacks_is_said() -> None:
    """Also where its function takes every rule, those among them that make another package's game zero-sum."""
    envs.register("coin", lambda **rules: _NotZeroSum(**rules))
    with pytest.raises(envs.InputError, match="env=coin is not zero-sum with these rules"):
        refuse_unopposed(envs.make("coin"), "a bound")


@dataclasses.dataclass(frozen=True)
class _NotZeroSum(CoinGame):
    zero_sum = False


@pytest.mark.usefixtures("outside")
def test_a_players_function_that_is_wrong_says_so() -> None:
    """One that returns no Policy is one line; a TypeError of its own is that, and not an option it does not take."""
    makers = {"none": lambda game: None, "plain": lambda game: lambda view, legal: legal, "wrong": lambda game: 1 + "1"}
    envs.register("coin", make_coin, bots=makers)
    game = envs.make("coin")
    way = "it must return an envs.Policy, as envs.Policy(lambda params, view, legal: <probabilities of the actions>)"
    for name, found in (("none", "None"), ("plain", "a function")):
        text = f"player {name!r} of coin: its function returned {found}; {way}"
        assert _refusal(lambda name=name: envs.make_bot(name, game)) == text
    with pytest.raises(TypeError, match="unsupported operand"):
        envs.make_bot("wrong", game)


@pytest.mark.usefixtures("outside")
def test_a_player_in_the_place_of_its_function_says_so() -> None:
    """Called with the game it lacked an argument."""
    bots = {"itself": _always_first(None), "plain": lambda view, legal: legal, "number": 3}
    envs.register("coin", make_coin, bots=bots | {"first": _always_first, "needs": lambda game, action: None})
    game = envs.make("coin")
    for name, found in (("itself", "a Policy"), ("plain", "a function of (view, legal)"), ("number", "an int")):
        text = f"player {name!r} of coin is {found}; it must be a function that takes the game and returns an envs."
        assert _refusal(lambda name=name: envs.make_bot(name, game)) == f"{text}Policy"
    assert "does not take speed" in _refusal(lambda: envs.make_bot("first", game, speed=3))
    assert "its function returned None" in _refusal(lambda: envs.make_bot("needs", game, action=1))


@pytest.mark.usefixtures("outside")
def test_a_taken_name_is_refused_unless_it_is_the_same_function() -> None:
    """The message says who has it; a function and its reference are one."""
    envs.register("coin", make_coin)
    envs.register("coin", make_coin)
    envs.register("coin", f"{__name__}:make_coin")
    text = _refusal(lambda: envs.register("coin", make_wrong_name))
    assert text == f"game 'coin' is registered already, by {__name__}:make_coin; choose another name"
    assert "by envs.kuhn_poker:make" in _refusal(lambda: envs.register("kuhn_poker", make_coin))
    envs.register("kuhn_poker", "envs.kuhn_poker:make")
    assert "player 'random' of coin is registered already" in _refusal(
        lambda: envs.register("coin", make_coin, bots={"random": _always_first})
    )


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("two words", make_coin, "'two words' is not a valid name of a game"),
        ("coin", "dream_support.CoinGame", "it must be a function or 'module:function'"),
        ("coin", "no_such_module:make", "game 'coin' cannot be loaded: ModuleNotFoundError: "),
        ("coin", "dream_support:make_nothing", "game 'coin' cannot be loaded: AttributeError: "),
        ("coin", "dream_support:HIDDEN", "game 'coin' is an int; it must be a function of the rules"),
        ("coin", lambda: "a coin", "game 'coin' made a str; it must make an envs.Game"),
        ("dime", make_wrong_name, "game 'dime' made a game named 'coin'; both names must be the same"),
    ],
)
def test_what_cannot_be_registered_or_made_is_one_line(name: str, given: Any, message: str) -> None:
    """It names the game and what is wrong."""

    def use() -> None:
        envs.register(name, given)
        envs.make(name)

    assert message in _refusal(use)


@pytest.mark.usefixtures("outside")
def test_distributions_offer_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """By entry points, read when a name is asked for; a broken one is a line that names the distribution."""
    group = registry.GROUP
    distribution = SimpleNamespace(name="dist-of-coins")
    entries = [
        importlib.metadata.EntryPoint("coin", f"{__name__}:make_coin", group),
        importlib.metadata.EntryPoint("broken", "no_such_module:make", group),
        importlib.metadata.EntryPoint("kuhn_poker", "dream_support:CoinGame", group),
    ]
    entries = [SimpleNamespace(name=e.name, value=e.value, dist=distribution, load=e.load) for e in entries]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    assert {"coin", "broken"} < set(envs.names())
    assert envs.make("coin", flat=True) == CoinGame(flat=True)
    assert envs.make("kuhn_poker").name == "kuhn_poker"
    text = _refusal(lambda: envs.make("broken"))
    place = "game 'broken' of distribution dist-of-coins (no_such_module:make)"
    assert text == f"{place} cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"


@pytest.mark.usefixtures("outside")
def test_players_of_installed_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known by their entry points without a call; a broken one is one line, and names of our own stay ours."""
    offered = {
        "coin.first": f"{__name__}:_always_first",
        "coin.broken": "no_such_module:make",
        "coin.random": "no_such_module:make",
    }
    entries = [importlib.metadata.EntryPoint(name, value, players.GROUP) for name, value in offered.items()]
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [entry for entry in entries if entry.group == group]
    )
    envs.register("coin", make_coin)
    game = envs.make("coin")
    assert envs.bot_names(game) == ["broken", "first", "random"]
    assert envs.bot_names(envs.make("kuhn_poker")) == ["random"]
    assert envs.make_bot("first", game, action=1)(None, np.ones(2, bool)).tolist() == [0, 1]
    assert envs.make_bot("random", game)(None, np.ones(2, bool)).tolist() == [0.5, 0.5]
    text = _refusal(lambda: envs.make_bot("broken", game))
    assert text == "player 'broken' of coin (no_such_module:make) cannot be loaded: No module named 'no_such_module'"
