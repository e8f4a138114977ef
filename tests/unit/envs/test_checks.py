"""A game with one defect is refused by one line that names the method; a sound one passes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame, CoinState, CoinView
from jax import Array

import envs
from dream import algorithms
from dream.evaluation import match
from dream.game_tree import build_tree, tabulate
from envs import InputError, check_game
from envs.adapters import open_spiel, pettingzoo, pgx
from envs.adapters.gymnasium import single_player_env
from envs.adapters.gymnasium_vector import vector_env
from envs.chance_check import lists_what_it_plays
from envs.checks import check_two_player_zero_sum
from envs.kuhn_poker import KuhnPoker
from envs.leduc_poker import LeducPoker


@dataclasses.dataclass(frozen=True)
class Dealt(CoinGame):
    """The coin game that can toss again the coin that player 1 does not see."""

    def determinize(self, view: CoinView, key: Array) -> CoinState:
        """Returns the state with a coin that the view does not show."""
        tossed = jax.random.bernoulli(key).astype(jnp.int32)
        count = jnp.sum(view.moves > 0, dtype=jnp.int32)
        coin = jnp.where(view.seat == 0, view.coin.astype(jnp.int32), tossed)
        return CoinState(coin, view.moves.astype(jnp.int32), count, count % 2, view.tag)

    def resample_chance(self, state: CoinState, key: Array) -> CoinState:
        """Returns the state: both players' views fix what is open."""
        return state


def test_sound_games_pass() -> None:
    """A game of one's own, with and without determinize, a registered one, and one that is not zero-sum and says so."""
    for game in (CoinGame(tagged=True), Dealt(), envs.make("kuhn_poker"), NotZeroSum(zero_sum=False)):
        check_game(game)
        check_game(game, jax.random.key(5), games=3)


@dataclasses.dataclass(frozen=True)
class NotZeroSum(CoinGame):
    """Pays player 0 something more."""

    zero_sum: bool = True
    pays_at_end = False

    def step(self, state: CoinState, action: Array) -> tuple[CoinState, Array, Array]:
        """Plays an action."""
        after, rewards, done = super().step(state, action)
        return after, rewards + jnp.where(state.current_player < 0, 0.0, np.array([0.5, 0.0], np.float32)), done


def _with(base: type = CoinGame, **methods: Any) -> Any:
    """Returns a game whose methods or attributes are replaced; a method is given the sound one first."""
    replaced = {name: _method(base, name, new) if callable(new) else new for name, new in methods.items()}
    return dataclasses.dataclass(frozen=True)(type("Broken", (base,), {"__annotations__": {}, **replaced}))()


def _method(base: type, name: str, new: Callable[..., Any]) -> Callable[..., Any]:
    sound = getattr(base, name)
    return lambda self, *args: new(lambda *given: sound(self, *given), *args)


def _stepped(change: Callable[..., tuple]) -> Any:
    """Returns a game whose step's result is changed: (state before, after, rewards, done) -> (state, rewards, done)."""
    return _with(step=lambda sound, state, action: change(state, *sound(state, action)))


SHAPES = {
    "no size": (lambda: _with(num_actions=0), "num_actions is 0; it must be a whole number of 1 or more"),
    "more actions than int16": (lambda: _with(num_actions=2**15), "num_actions is 32768; it must be at most 32767"),
    "no phases": (lambda: _with(phases=()), "phases is (); it must be a tuple of names"),
    "worst reward": (lambda: _with(worst_reward="-1"), "worst_reward is '-1'; it must be a number"),
    "a rule that fails": (
        lambda: _with(worst_reward=property(lambda self: "a" + 1)),
        "worst_reward fails: TypeError: can only concatenate str",
    ),
    "largest payment": (
        lambda: _with(largest_payment=-1.0),
        "largest_payment is -1.0; it must be a number of 0 or more",
    ),
    "scale": (lambda: _with(reward_scale=float("nan")), "reward_scale is nan; it must be a number above 0"),
    "not hashable": (lambda: _with(__hash__=None), "cannot be hashed and compared (TypeError"),
    "too few actions": (lambda: _with(num_actions=4), "legal_actions: the mask is bool[3]; it must be bool[4]"),
    "mask of numbers": (
        lambda: _with(legal_actions=lambda sound, state: sound(state).astype(jnp.int32)),
        "legal_actions: the mask is int32[3]; it must be bool[3]",
    ),
    "a likely world without a weight": (
        lambda: _with(Dealt, likely_world=lambda sound, view, key: sound(view, key)[0]),
        "likely_world is not built like what a state and the logarithm of a weight have",
    ),
    "one reward": (
        lambda: _stepped(lambda was, state, rewards, done: (state, rewards[0], done)),
        "step: the rewards is float32[]; it must be float32[2]",
    ),
    "another state": (
        lambda: _stepped(lambda was, state, rewards, done: ({"state": state}, rewards, done)),
        "step: the state is not built like what init gives",
    ),
    "another type": (
        lambda: _stepped(lambda was, state, *rest: (dataclasses.replace(state, coin=state.coin * 1.0), *rest)),
        "step: the state.coin is float32[]; init gives int32[]",
    ),
    "no triple": (lambda: _stepped(lambda was, *result: result[:2]), "step: it must return (state, rewards, done)"),
    "a view of floats": (
        lambda: _with(view=lambda sound, *args: sound(*args)._replace(tag=jnp.float32(0))),
        "view: it holds float32; it must hold unsigned integers and bools",
    ),
    "a long observation": (
        lambda: _with(observation_size=18),
        "encode: the observation is float32[17]; it must be float32[18]",
    ),
    "a reserved result": (
        lambda: _with(result=lambda sound, state, player: {"win_rate": jnp.float32(1)}),
        "result: win_rate is measured of every game; choose another name",
    ),
    "an error": (lambda: _with(encode=lambda sound, view: view.coins), "encode fails: AttributeError: "),
    "a branch on a state": (
        lambda: _with(legal_actions=lambda sound, state: sound(state) if state.count > 0 else ~sound(state)),
        "legal_actions fails: TracerBoolConversionError: ",
    ),
}
"""What shapes alone show -> a broken game, and a part of the message."""

PLAYED = {
    "no action": (
        lambda: _with(legal_actions=lambda sound, state: sound(state) & (state.count < 2)),
        "legal_actions: no action is legal while a player is to act",
    ),
    "an action too late": (
        lambda: _with(legal_actions=lambda sound, state: sound(state) | (state.current_player < 0)),
        "legal_actions: an action is legal after the end",
    ),
    "NaN reward": (
        lambda: _stepped(lambda was, state, rewards, done: (state, jnp.where(was.count == 1, jnp.nan, rewards), done)),
        "step: a reward is not finite",
    ),
    "a worst reward that is not": (
        lambda: _with(worst_reward=-0.3),
        "worst_reward is -0.3, and a player is paid less in all; in random game",
    ),
    "not zero-sum": (NotZeroSum, "step: the rewards do not sum to 0"),
    "no end": (
        lambda: _stepped(
            lambda was, state, rewards, done: (
                dataclasses.replace(state, current_player=jnp.abs(state.current_player)),
                rewards,
                done & False,
            )
        ),
        "max_length: a game goes on after 3 actions",
    ),
    "no end in time": (lambda: _with(max_length=2), "max_length: a game goes on after 2 actions"),
    "pays after the end": (
        lambda: _stepped(
            lambda was, state, rewards, done: (
                state,
                jnp.where(was.current_player < 0, np.array([1.0, -1.0], np.float32), rewards),
                done,
            )
        ),
        "step: a finished game changes, or pays",
    ),
    "over at the deal": (
        lambda: _with(init=lambda sound, key: dataclasses.replace(sound(key), current_player=jnp.int32(-1))),
        "init: a game is over at its deal, where no step can pay",
    ),
    "pays on the way": (
        lambda: _with(pays_at_end=True),
        "step: it pays before the end (a game that does says pays_at_end = False)",
    ),
    "goes on counting": (
        lambda: _stepped(lambda was, state, *rest: (dataclasses.replace(state, count=was.count + 1), *rest)),
        "step: a finished game changes, or pays",
    ),
    "done at random": (
        lambda: _stepped(lambda was, state, rewards, done: (state, rewards, done | (state.count == 1))),
        "step: done is not True exactly where current_player is -1",
    ),
    "a third player": (
        lambda: _stepped(
            lambda was, state, *rest: (
                dataclasses.replace(state, current_player=jnp.where(state.count == 1, 2, state.current_player)),
                *rest,
            )
        ),
        "step: current_player is not -1 to 2 - 1",
    ),
    "whose view": (
        lambda: _with(view=lambda sound, state, player: sound(state, player)._replace(seat=jnp.uint8(0))),
        "view: `seat` is not the player whose view it is",
    ),
    "NaN observed": (
        lambda: _with(encode=lambda sound, view: jnp.where(view.moves[1] > 0, jnp.nan, sound(view))),
        "encode: the observation holds a number that is not finite",
    ),
    "NaN potential": (
        lambda: _with(potential=lambda sound, state, player: jnp.log(sound(state, player))),
        "potential: it is not finite",
    ),
    "no such phase": (lambda: _with(phases=("first", "second")), "phase: it is not an index into phases"),
    "points that both win": (
        lambda: _with(result=lambda sound, state, player: {"points_per_hand": jnp.float32(1.0)}),
        "result: points_per_hand of the two players do not sum to 0; points that do not are named score",
    ),
    "a view that leaks": (
        lambda: _with(Dealt, view=lambda sound, state, player: sound(state, player)._replace(tag=_word(state.coin))),
        "view: it changes when determinize or likely_world deals again what the player cannot see",
    ),
    "a likely world that shows another view": (
        lambda: _with(Dealt, likely_world=lambda sound, view, key: (_tagged(sound(view, key)[0], key), jnp.float32(0))),
        "view: it changes when determinize or likely_world deals again what the player cannot see",
    ),
    "a stock that shows": (
        lambda: _with(Dealt, resample_chance=lambda sound, state, key: dataclasses.replace(state, tag=_bits(key))),
        "view: it changes when resample_chance deals again what nobody has seen",
    ),
}
"""What random games show -> a broken game, and a part of the message."""


def _tagged(state: CoinState, key: Array) -> CoinState:
    return dataclasses.replace(state, tag=_bits(key))


def _word(x: Array) -> Array:
    return x.astype(jnp.uint16)


def _bits(key: Array) -> Array:
    return jax.random.bits(key, dtype=jnp.uint16)


@pytest.mark.parametrize("defect", [*SHAPES, *PLAYED])
def test_a_defect_is_one_line(defect: str) -> None:
    """It names the game, the method and what is wrong."""
    make, message = (SHAPES | PLAYED)[defect]
    with pytest.raises(InputError) as error:
        check_game(make())
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("game 'coin': ")
    assert message in str(error.value)
    assert ("in random game" in str(error.value)) == (defect in PLAYED)


def _ahead(change: Callable[..., tuple]) -> Any:
    """Returns Kuhn poker whose outcomes are changed: (probs, rewards) -> the same."""

    def outcomes(sound: Callable[..., Any], state: Any, action: Array) -> tuple:
        states, probs, rewards, done = sound(state, action)
        return states, *change(probs, rewards), done

    return _with(KuhnPoker, outcomes=outcomes)


_SKEWED = np.array([2, 2, 2, 2, 1, 1], np.float32) / 10
"""Chances of Kuhn poker's six deals, which are alike."""


def _only(*stepped: Any) -> tuple:
    after, rewards, done = jax.tree.map(lambda x: x[None], stepped)
    return after, jnp.ones(1), rewards, done


AHEAD = {
    "pays more": (lambda: _ahead(lambda p, r: (p, 3 * r)), "outcomes: what step does is not among them"),
    "pays NaN": (lambda: _ahead(lambda p, r: (p, r * jnp.nan)), "outcomes: rewards are not finite"),
    "not zero-sum": (lambda: _ahead(lambda p, r: (p, r + 1)), "outcomes: rewards are not finite, or do not sum to 0"),
    "no chance": (lambda: _ahead(lambda p, r: (p * 0, r)), "outcomes: probabilities are below 0, or do not sum to 1"),
    "a quarter": (lambda: _ahead(lambda p, r: (p * 0.25, r)), "outcomes: probabilities are below 0, or do not sum"),
    "one reward": (
        lambda: _ahead(lambda p, r: (p, r[:, 0])),
        "outcomes: the rewards is float32[1]; it must be float32[1, 2]",
    ),
    "no list of chances": (
        lambda: _ahead(lambda p, r: (r, p)),
        "outcomes: the probabilities is float32[1, 2]; it must be float32[number of outcomes]",
    ),
    "states and chances exchanged": (
        lambda: _with(KuhnPoker, initial_outcomes=lambda sound: sound()[::-1]),
        "initial_outcomes: the probabilities is KuhnState; it must be float32[number of outcomes]",
    ),
    "few deals": (
        lambda: _with(KuhnPoker, initial_outcomes=lambda sound: jax.tree.map(lambda x: x[:1], sound())),
        "initial_outcomes: probabilities sum to 0.166667",
    ),
    "over at one deal": (
        lambda: _with(KuhnPoker, initial_outcomes=lambda sound: (_one_is_over(sound()[0]), sound()[1])),
        "initial_outcomes: a game is over at its deal, where no step can pay",
    ),
    "other chances": (
        lambda: _with(KuhnPoker, initial_outcomes=lambda sound: (sound()[0], _SKEWED)),
        "games drawn from what they list differ from those that init and step play",
    ),
    "no outcomes of its own": (
        lambda: _with(LeducPoker, name="kuhn_poker", outcomes=lambda sound, *at: _only(*LeducPoker().step(*at))),
        "a game with chance after the deal needs its own outcomes",
    ),
    "another deal": (
        lambda: _with(KuhnPoker, initial_outcomes=lambda sound: (_first(sound()[0]), jnp.ones(1))),
        "is not among them, by its views",
    ),
}
"""Of an enumerable game, what it lists -> a broken game, and a part of the message."""


def _one_is_over(states: Any) -> Any:
    return dataclasses.replace(states, current_player=states.current_player.at[0].set(-1))


def _first(states: Any) -> Any:
    return jax.tree.map(lambda x: x[:1], states)


@pytest.mark.parametrize("defect", AHEAD)
def test_outcomes_are_those_of_step(defect: str) -> None:
    """What exact values are made of is compared with what games are played by."""
    make, message = AHEAD[defect]
    with pytest.raises(InputError) as error:
        check_game(make())
    assert str(error.value).startswith("game 'kuhn_poker': ")
    assert "\n" not in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["leduc_poker", "liars_dice", "mini_gin_rummy"])
def test_games_list_what_they_play(name: str) -> None:
    """Of our own games, by two keys: no false alarm."""
    game = envs.make(name, **({"preset": "3x3"} if name == "mini_gin_rummy" else {}))
    assert all(lists_what_it_plays(game, jax.random.key(seed)) for seed in range(2))


def test_points_that_one_wins_and_the_other_loses_pass() -> None:
    """As rewards of another kind have them; nothing is asked of points before the end."""

    def opposite(sound: Callable[..., Any], state: CoinState, player: Array) -> dict[str, Array]:
        won = jnp.where(player == 0, 2.0, -2.0)
        return {"points_per_hand": jnp.where(state.current_player < 0, won, 1.0), "score": jnp.float32(1.0)}

    check_game(_with(result=opposite))


def test_what_is_no_game_is_refused() -> None:
    """By its type."""
    with pytest.raises(InputError, match=r"a str is not a game; it must be an envs\.Game"):
        check_game("kuhn_poker")


def test_a_name_is_no_game_and_no_player() -> None:
    """What takes objects says how they are had."""
    game = envs.make("kuhn_poker")
    calls = (
        lambda: algorithms.make({"name": "cfr"}, {}, "kuhn_poker"),
        lambda: build_tree("kuhn_poker"),
        lambda: match("kuhn_poker", None, None, games=4),
        lambda: envs.make_bot("random", "kuhn_poker"),
        lambda: envs.bot_names("kuhn_poker"),
        lambda: envs.make_assistant("exact_endgame", "kuhn_poker"),
        lambda: envs.make_host_player("open_spiel:uniform_random", "kuhn_poker"),
        lambda: envs.check_plays(envs.make_bot("random", game), "kuhn_poker"),
        lambda: single_player_env("kuhn_poker"),
        lambda: vector_env("kuhn_poker", num_envs=2),
        lambda: pettingzoo.aec_env("kuhn_poker"),
        lambda: pgx.env("kuhn_poker"),
        lambda: open_spiel.game("kuhn_poker"),
    )
    for call in calls:
        with pytest.raises(InputError, match=r"'kuhn_poker' is not a game; give one, as envs\.make\('kuhn_poker'\)"):
            call()
    with pytest.raises(InputError, match=r"'random' is not a player; give one, as envs\.make_bot\('random', game\)"):
        match(game, envs.make_bot("random", game), "random", games=4)
    with pytest.raises(
        InputError, match=r"^a function is not a player; it must be an envs\.Policy; envs\.Policy\(func"
    ):
        match(game, envs.make_bot("random", game), lambda params, view, legal: legal, games=4)


def test_a_policy_answers_for_every_action() -> None:
    """An action, or an answer of a batch of one, is refused; in Gymnasium it was played as other probabilities."""
    game = envs.make("kuhn_poker")
    answers = (jnp.int32(1), jnp.ones(1), jnp.array([[0.0, 1.0]]), jnp.ones((2, 1)))
    for answer in answers:
        wrong = envs.Policy(lambda params, view, legal, answer=answer: answer)
        line = rf"^a policy's function returned an array of shape {re.escape(str(answer.shape))}; it must return the"
        for play in (
            lambda wrong=wrong: single_player_env(game, wrong, seat=1).reset(seed=0),
            lambda wrong=wrong: vector_env(game, wrong, seat=1, num_envs=2).reset(seed=0),
            lambda wrong=wrong: match(game, wrong, envs.make_bot("random", game), games=4),
            lambda wrong=wrong: tabulate(build_tree(game), wrong),
        ):
            with pytest.raises(InputError, match=line):
                play()
    state = game.init(jax.random.key(0))
    with pytest.raises(InputError, match=r"returned a list; it must return .* an array of shape \(2,\)$"):
        envs.Policy(lambda params, view, legal: [0.5, 0.5])(game.view(state, 0), game.legal_actions(state))


@pytest.mark.parametrize("games", [0, -1, 2.5])
def test_no_games_are_refused(games: float) -> None:
    """A check that plays nothing finds nothing."""
    with pytest.raises(InputError, match=f"games={games} is not valid"):
        check_game(envs.make("kuhn_poker"), games=games)


def test_games_for_others_than_two_or_not_zero_sum_are_named() -> None:
    """By what is missing, and whatever needs it."""
    check_two_player_zero_sum(envs.make("kuhn_poker"), "a search player")
    for rules, why in (
        ({"num_players": 3}, "has 3 players"),
        ({"num_players": 2, "rewards": "points"}, "is not zero-sum"),
    ):
        with pytest.raises(InputError, match=f"^a search player needs a two-player zero-sum game, and rummy500 {why}"):
            check_two_player_zero_sum(envs.make("rummy500", **rules), "a search player")
