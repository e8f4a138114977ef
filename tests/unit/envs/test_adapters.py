"""Games through Gymnasium, PettingZoo and pgx's interface."""

from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.adapters import gymnasium as gymnasium_adapter
from envs.adapters import pgx
from envs.adapters.gymnasium_vector import vector_env
from envs.errors import InputError
from envs.game import Game
from envs.random_play import uniform_policy
from tests.support.dream_support import CoinGame

RANDOM = uniform_policy()
KUHN = envs.make("kuhn_poker")
OPPONENTS = {
    "gin_rummy": "camper",
    "gin_rummy_openspiel": "simple_bot",
    "mini_gin_rummy": "random",
    "rummy500": "greedy",
    "phantom_ttt": "random",
    "dark_hex": "random",
}
"""Game -> who has the other seats."""


@pytest.fixture(scope="module", params=OPPONENTS)
def game(request: pytest.FixtureRequest) -> Game:
    """Each card game, and the phantom games."""
    return envs.make(request.param)


@pytest.fixture(scope="module")
def seat_env(game: Game) -> Any:
    """Seat 1 of a game."""
    pytest.importorskip("gymnasium")
    from envs.adapters.gymnasium import single_player_env

    return single_player_env(game, envs.make_bot(OPPONENTS[game.name], game), seat=1)


@pytest.fixture(scope="module")
def game_env(game: Game) -> Any:
    """All agents of a game."""
    pytest.importorskip("pettingzoo")
    from envs.adapters.pettingzoo import aec_env

    return aec_env(game)


def test_gymnasium_check_env(seat_env: Any) -> None:
    """Gymnasium's own test."""
    from gymnasium.utils.env_checker import check_env

    check_env(seat_env, skip_render_check=True)


def test_gymnasium_episodes(game: Game, seat_env: Any) -> None:
    """Legal play ends in time with a reward that the game can pay; an episode is told by its seed."""
    played = []
    for _ in range(2):
        observation, info = seat_env.reset(seed=3)
        rng, total, done, steps = np.random.default_rng(0), 0.0, False, 0
        while not done:
            assert observation in seat_env.observation_space
            assert info["action_mask"].dtype == np.int8
            action = int(rng.choice(np.flatnonzero(info["action_mask"])))
            observation, reward, done, _, info = seat_env.step(action)
            total, steps = total + reward, steps + 1
        assert not info["action_mask"].any()
        played.append((total, steps))
    assert played[0] == played[1]
    assert game.worst_reward <= played[0][0] <= -game.worst_reward


def test_gymnasium_illegal_action_ends_the_episode(game: Game, seat_env: Any) -> None:
    """With the worst reward, told in info."""
    _, info = seat_env.reset(seed=0)
    if info["action_mask"].all():  # on an empty board
        *_, info = seat_env.step(0)
    illegal = int(np.flatnonzero(info["action_mask"] == 0)[0])
    _, reward, done, _, info = seat_env.step(illegal)
    assert (reward, done, info["illegal_action"]) == (game.worst_reward, True, illegal)
    assert not info["action_mask"].any()
    with pytest.raises(InputError, match="call reset"):
        seat_env.step(0)


def test_a_game_says_what_an_illegal_action_costs() -> None:
    """One that has no worst reward is refused at once, not when a player first errs."""
    pytest.importorskip("gymnasium")
    for adapt in (gymnasium_adapter.single_player_env, functools.partial(vector_env, num_envs=2), pgx.env):
        with pytest.raises(InputError, match="game 'coin': worst_reward is None; it must be a number"):
            adapt(CoinGame())


def test_observations_of_games_from_outside_have_no_bounds(game: Game) -> None:
    """Nobody has measured their entries; those of this package's games are checked against the bound."""
    pytest.importorskip("gymnasium")
    (low, high), (least, most) = [
        (float(box.low.min()), float(box.high.max()))
        for box in (gymnasium_adapter.observation_box(one) for one in (game, CoinGame()))
    ]
    assert (low, high) == (-16, 16)
    assert (least, most) == (-np.inf, np.inf)


def test_legal_actions_are_named_by_the_cards_that_are_shown() -> None:
    """Where each player has suits of its own: each discard's card is in the hand above it."""
    pytest.importorskip("gymnasium")
    game = envs.make("mini_gin_rummy", preset="3x4", suit_symmetry=True)
    env = gymnasium_adapter.single_player_env(game, "random", 0, render_mode="ansi")
    for seed in range(4):
        _, info = env.reset(seed=seed)
        env.step(int(np.flatnonzero(info["action_mask"])[0]))  # Takes the upcard; a discard is next.
        hand, legal = env.render().split("\nlegal: ")
        discards = [text.split("discard ")[1] for text in legal.split(", ") if " discard " in text]
        assert discards
        assert all(card in hand for card in discards)
        assert all(env.action_name(int(text.split()[0])) in text for text in legal.split(", ") if " discard " in text)


def test_gymnasium_wrong_arguments() -> None:
    """Seats and opponents are checked before anything is imported."""
    from envs.adapters.gymnasium import single_player_env

    game = envs.make("rummy500")
    for arguments, message in (((RANDOM, 3), "seat=3"), (([RANDOM], 0), "1 opponents")):
        with pytest.raises(InputError, match=message):
            single_player_env(game, *arguments)


_PLAYERS = "is not valid; it must be a player's name or a policy, or a list of them"


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"opponent": None}, f"opponent=None {_PLAYERS}"),
        ({"opponent": [None]}, f"opponent=[None] {_PLAYERS}"),
        ({"seat": "0"}, "seat='0' is not valid; it must be a whole number, 0 to 1"),
        ({"seat": 0.0}, "seat=0.0 is not valid; it must be a whole number, 0 to 1"),
    ],
)
def test_arguments_of_another_type_are_one_line(wrong: dict[str, Any], line: str) -> None:
    """Of one game and of many."""
    pytest.importorskip("gymnasium")
    from envs.adapters.gymnasium_vector import vector_env

    for make in (gymnasium_adapter.single_player_env, vector_env):
        with pytest.raises(InputError) as error:
            make(KUHN, **wrong)
        assert str(error.value) == line


@pytest.mark.parametrize("action", [0.0, 0.7, "0", np.float32(1), np.array([1]), float("nan")])
def test_an_action_is_a_whole_number(action: Any) -> None:
    """0.7 is not played as 0; the game goes on as if nothing had been asked."""
    pytest.importorskip("gymnasium")
    pytest.importorskip("pettingzoo")
    from envs.adapters.pettingzoo import aec_env

    for env in (gymnasium_adapter.single_player_env(KUHN), aec_env(KUHN)):
        env.reset(seed=1)
        with pytest.raises(InputError, match=r"^action=.* is not valid; it must be a whole number, 0 to 1$"):
            env.step(action)
        env.step(np.int64(0))


def test_before_the_first_deal_there_is_nothing_to_see(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor to play; without a render mode nothing is ever shown."""
    pytest.importorskip("gymnasium")
    pytest.importorskip("pettingzoo")
    from envs.adapters.pettingzoo import aec_env

    assert gymnasium_adapter.single_player_env(KUHN).render() is None
    for mode in ("ansi", "human", "svg"):
        seat, agents = gymnasium_adapter.single_player_env(KUHN, render_mode=mode), aec_env(KUHN, mode)
        for ask, *arguments in (
            (seat.render,), (seat.action_name, 0), (agents.render,), (agents.step, 0), (agents.observe, "player_0")
        ):  # fmt: skip
            with pytest.raises(InputError, match=r"^no game has been dealt; call reset$"):
                ask(*arguments)
    assert not capsys.readouterr().out


# The dictionary with the mask is PettingZoo's own custom for such games, though its test remarks on it.
@pytest.mark.filterwarnings("ignore:Observation")
@pytest.mark.filterwarnings("ignore:The observation")
def test_pettingzoo_api_test(game_env: Any) -> None:
    """PettingZoo's own test."""
    from pettingzoo.test import api_test

    api_test(game_env, num_cycles=200)


def test_pettingzoo_rewards_and_errors(game: Game, game_env: Any) -> None:
    """The last rewards are zero-sum; an illegal action is named; others' masks are empty."""
    game_env.reset(seed=1)
    while game_env.observe(game_env.agent_selection)["action_mask"].all():  # on an empty board
        game_env.step(0)
    agent = game_env.agent_selection
    illegal = int(np.flatnonzero(game_env.observe(agent)["action_mask"] == 0)[0])
    with pytest.raises(InputError, match=f"illegal action {illegal} of {agent}"):
        game_env.step(illegal)
    rng = np.random.default_rng(0)
    while not all(game_env.terminations.values()):
        masks = {agent: game_env.observe(agent)["action_mask"] for agent in game_env.agents}
        assert [agent for agent, mask in masks.items() if mask.any()] == [game_env.agent_selection]
        game_env.step(int(rng.choice(np.flatnonzero(masks[game_env.agent_selection]))))
    assert sum(game_env.rewards.values()) == pytest.approx(0, abs=1e-5)


def test_gymnasium_renders_what_the_seat_sees(capsys: pytest.CaptureFixture[str]) -> None:
    """As text with its legal actions by name, as a drawing, or printed after each step."""
    pytest.importorskip("gymnasium")
    from envs.adapters.gymnasium import single_player_env

    game = envs.make("leduc_poker")
    shown = {}
    for mode in ("ansi", "svg", "human", None):
        env = single_player_env(game, RANDOM, seat=1, render_mode=mode)
        assert env.render_mode == mode
        assert mode is None or mode in env.metadata["render_modes"]
        _, info = env.reset(seed=5)
        shown[mode] = env.render()
        assert shown[mode] is None or "face down" in shown[mode]
        env.step(int(np.flatnonzero(info["action_mask"])[-1]))
    assert "legal: " in shown["ansi"]
    assert env.action_name(1) == "call"
    assert shown["svg"].startswith("<svg")
    assert shown["human"] is None
    assert shown[None] is None
    assert capsys.readouterr().out.count("Leduc poker: ") >= 2
    with pytest.raises(InputError, match="did you mean 'ansi'"):
        single_player_env(game, RANDOM, render_mode="ans")


def test_pettingzoo_misuse_is_one_line() -> None:
    """Asked before a deal or after all have retired, of an agent that there is none of, dealt by a wrong seed."""
    pytest.importorskip("pettingzoo")
    from envs.adapters.pettingzoo import aec_env

    env = aec_env(KUHN)
    with pytest.raises(InputError, match="no game has been dealt; call reset"):
        env.last()
    for seed, line in (("a", "seed='a' is not valid; it must be a whole number"), (-1, "seed=-1 is out of range")):
        with pytest.raises(InputError, match=line):
            env.reset(seed=seed)
    env.reset(seed=0)
    for asked in (env.observe, env.action_space, env.observation_space):
        with pytest.raises(InputError, match="unknown agent 'player_2'; did you mean 'player_1'"):
            asked("player_2")
    for _ in env.agent_iter():
        env.step(None if env.last()[2] else 0)
    for asked in (env.last, lambda: env.step(None), lambda: env.step(0)):
        with pytest.raises(InputError, match="the game is over and every agent has retired; call reset"):
            asked()


def test_pettingzoo_renders_all_cards(capsys: pytest.CaptureFixture[str]) -> None:
    """As text, as a drawing, or printed; an illegal action is refused with the names of the legal ones."""
    pytest.importorskip("pettingzoo")
    from envs.adapters.pettingzoo import aec_env

    game = envs.make("kuhn_poker")
    env = aec_env(game, render_mode="ansi")
    env.reset(seed=1)
    assert "face down" not in env.render()
    assert env.render().endswith("legal: 0 pass, 1 bet")
    with pytest.raises(InputError, match="illegal action 7 of player_0; legal: 0 pass, 1 bet"):
        env.step(7)
    printed = aec_env(game, render_mode="human")
    printed.reset(seed=1)
    printed.step(1)
    assert capsys.readouterr().out.count("Kuhn poker: ") == 2
    assert aec_env(game).render() is None


def test_openspiel_states_are_readable() -> None:
    """Actions by name, unlike each other, and the position after the history."""
    pytest.importorskip("pyspiel")
    from envs.adapters.open_spiel import game as as_pyspiel

    state = as_pyspiel(envs.make("leduc_poker")).new_initial_state()
    assert state.action_to_string(state.current_player(), 3) == "chance: 3"
    state.apply_action(state.legal_actions()[0])
    names = [state.action_to_string(0, action) for action in state.legal_actions()]
    assert names == ["player 0: call", "player 0: raise"]
    assert state.string_to_action(0, "player 0: raise") == 2
    assert str(state).splitlines()[1].startswith("Leduc poker: player 0 to act")


@pytest.mark.parametrize(
    ("name", "draw", "discards"), [("gin_rummy", 0, slice(3, 55)), ("gin_rummy_openspiel", 53, slice(0, 52))]
)
def test_pettingzoo_player_keeps_the_turn_through_draw_and_discard(name: str, draw: int, discards: slice) -> None:
    """After a draw the same agent is selected with its discards open; after the discard the other one is."""
    pytest.importorskip("pettingzoo")
    from envs.adapters.pettingzoo import aec_env

    env, rng, turns = aec_env(envs.make(name)), np.random.default_rng(2), 0
    env.reset(seed=2)
    while not all(env.terminations.values()) and turns < 3:
        agent = env.agent_selection
        mask = env.observe(agent)["action_mask"]
        if not mask[draw]:
            env.step(int(np.flatnonzero(mask)[-1]))
            continue
        env.step(draw)
        assert env.agent_selection == agent
        offered = np.flatnonzero(env.observe(agent)["action_mask"][discards]) + discards.start
        assert len(offered) >= 10
        env.step(int(rng.choice(offered)))
        assert env.agent_selection != agent
        turns += 1
    assert turns == 3


@pytest.fixture(scope="module", params=["mini_gin_rummy", "rummy500", "phantom_ttt", "dark_hex"])
def pgx_env(request: pytest.FixtureRequest) -> tuple[pgx.Env, Any, Any]:
    """An environment, and its functions over a batch of 16, compiled."""
    env = pgx.env(envs.make(request.param))
    return env, jax.jit(jax.vmap(env.init)), jax.jit(jax.vmap(env.step))


def test_pgx_interface(pgx_env: tuple[pgx.Env, Any, Any]) -> None:
    """Whole random games in a batch keep what pgx's own test asks of an environment."""
    env, init, step = pgx_env
    rng, state = np.random.default_rng(4), jax.device_get(init(jax.random.split(jax.random.key(4), 16)))
    assert state.legal_action_mask.any(axis=1).all()
    assert state.observation.shape == (16, *env.observation_shape)
    assert (state.current_player.dtype, state.terminated.dtype, state.legal_action_mask.dtype) == (np.int32, bool, bool)
    total, count = np.zeros((16, env.num_players)), 0
    assert not state.rewards.any()
    while not state.terminated.all() or count % 2 == 0:
        actions = [rng.choice(np.flatnonzero(mask)) for mask in state.legal_action_mask]
        before, state = state, jax.device_get(step(state, np.array(actions, np.int32)))
        assert state.rewards.dtype == np.float32
        assert (state.current_player >= 0).all()
        assert not state.rewards[before.terminated].any()
        assert state.legal_action_mask[state.terminated].all()
        assert not state.truncated.any()
        np.testing.assert_array_equal(state._step_count, before._step_count + ~before.terminated)
        np.testing.assert_array_equal(state.terminated, state.game_state.current_player < 0)
        total, count = total + state.rewards, count + 1
    assert total.any()
    np.testing.assert_allclose(total.sum(axis=1), 0, atol=1e-5)


def test_pgx_illegal_action_terminates(pgx_env: tuple[pgx.Env, Any, Any]) -> None:
    """With the worst reward for who played it, shared by the others; later steps change nothing and pay nothing."""
    env, init, step = pgx_env
    state = init(jax.random.split(jax.random.key(5), 16))
    while state.legal_action_mask.all():  # on an empty board
        state = step(state, jnp.zeros(16, jnp.int32))
    wrong = step(state, jnp.argmin(state.legal_action_mask, axis=1))
    assert wrong.terminated.all()
    lanes = np.arange(16)
    np.testing.assert_allclose(wrong.rewards[lanes, state.current_player], env.game.worst_reward, rtol=1e-6)
    np.testing.assert_allclose(wrong.rewards.sum(axis=1), 0, atol=1e-5)
    later = step(wrong, jnp.zeros(16, jnp.int32))
    assert not np.any(later.rewards)
    for ours, theirs in zip(jax.tree.leaves(later.game_state), jax.tree.leaves(wrong.game_state), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("action", [-1, 3, 7])
def test_pgx_takes_what_is_no_action_for_illegal(action: int) -> None:
    """Instead of the last action, which an index out of range means in JAX: in Leduc poker it is a raise."""
    env = pgx.env(envs.make("leduc_poker"))
    state = env.init(jax.random.key(0))
    after = env.step(state, jnp.int32(action))
    assert bool(state.legal_action_mask[-1])
    assert bool(after.terminated)
    worst = env.game.worst_reward
    assert float(after.rewards[state.current_player]) == worst
    assert float(after.rewards.sum()) == 0


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["copy", "pickle"])
def test_environments_can_be_copied_and_pickled(copied: Any) -> None:
    """A copy goes on as the environment does, from the middle of a game."""
    pytest.importorskip("gymnasium")
    pytest.importorskip("pettingzoo")
    from envs.adapters.pettingzoo import aec_env

    leduc = envs.make("leduc_poker")
    for env in (gymnasium_adapter.single_player_env(leduc), vector_env(leduc, num_envs=3)):
        _, infos = env.reset(seed=3)
        action = infos["action_mask"].argmax(axis=-1)
        other = copied(env)
        for _ in range(2):
            one, two = env.step(action), other.step(action)
            assert [np.asarray(x).tolist() for x in one[:4]] == [np.asarray(x).tolist() for x in two[:4]]
            if np.ndim(one[2]) == 0 and one[2]:
                np.testing.assert_array_equal(env.reset()[0], other.reset()[0])
    agents = aec_env(leduc)
    agents.reset(seed=3)
    agents.step(1)
    again = copied(agents)
    for env in (agents, again):
        env.step(1)
        env.reset()
    for agent in agents.agents:
        np.testing.assert_array_equal(agents.observe(agent)["observation"], again.observe(agent)["observation"])
