"""Our games and policies under OpenSpiel's own checker, algorithms and bots."""

from __future__ import annotations

import random

import jax
import numpy as np
import openspiel_lockstep as lockstep
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability, external_sampling_mccfr

import envs
from dream.game_tree import sequence_form
from dream.game_tree.tabular_policy import table_index, table_policy
from dream.game_tree.tree import build_tree
from envs import InputError
from envs.adapters import open_spiel
from envs.gin_rummy.players import simple_bot
from envs.random_play import uniform_policy

pytestmark = pytest.mark.runs_briefly

_FEW = {"hand_size": 3, "max_turns": 8}
_CHECKED = {
    "kuhn_poker": {},
    "leduc_poker": {},
    "gin_rummy_openspiel": {},
    "phantom_ttt": {},
    "dark_hex": {},
    "rummy500-three": {"num_players": 3, **_FEW},
    "rummy500-points": {"num_players": 2, "rewards": "points", **_FEW},
    "rummy500-shaped": {"num_players": 2, "reward": "shaped", **_FEW},
    "rummy500-heavy": {"num_players": 2, "reward": "shaped", "card_weight": 900.0, "win_weight": 5000.0, **_FEW},
    "rummy500-match": {"num_players": 3, "target": 60, "max_rounds": 2, **_FEW},
}


@pytest.mark.parametrize("case", _CHECKED)
def test_openspiels_own_checker_accepts_the_game(case: str) -> None:
    """pyspiel.random_sim_test: random games with every consistency check OpenSpiel makes, serialisation included."""
    game = open_spiel.game(envs.make(case.split("-")[0], **_CHECKED[case]), deals=50)
    pyspiel.random_sim_test(game, num_sims=2, serialize=True, verbose=False)


def test_a_state_is_serialised_after_a_policy_has_answered() -> None:
    """What was computed about it, compiled functions among that, stays behind."""
    ours = envs.make("leduc_poker")
    game, policy = open_spiel.game(ours), open_spiel.policy(uniform_policy(), ours)
    state = game.new_initial_state()
    for action in (0, 3):
        state.apply_action(action)
    before = policy.action_probabilities(state)
    _, again = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))
    assert again.history() == state.history()
    assert policy.action_probabilities(again) == before


@pytest.mark.parametrize("case", ["rummy500-heavy", "rummy500-match"])
def test_what_a_game_pays_on_the_way_is_told(case: str) -> None:
    """Rewards are the last action's pay and sum to the returns, within the bounds; the game says that it pays so."""
    game = open_spiel.game(envs.make("rummy500", **_CHECKED[case]), deals=50)
    assert game.get_type().reward_model == pyspiel.GameType.RewardModel.REWARDS
    state, rng, summed, paid = game.new_initial_state(), random.Random(5), np.zeros(game.num_players()), 0
    while not state.is_terminal():
        state.apply_action(rng.choice(state.legal_actions()))
        summed += state.rewards()
        paid += any(state.rewards())
    np.testing.assert_allclose(state.returns(), summed, atol=1e-9)
    assert paid > 1
    assert game.min_utility() <= summed.min() <= summed.max() <= game.max_utility()
    if game.utility_sum() is not None:
        assert summed.sum() == pytest.approx(0, abs=1e-12)


def test_exploitability_of_an_exported_leduc_policy_is_ours() -> None:
    """OpenSpiel's exploitability of a policy on our Leduc as a pyspiel game equals our exact one."""
    game = envs.make("leduc_poker")
    tree = build_tree(game)
    rng = np.random.default_rng(91)
    table = np.where(tree.legal, rng.random(tree.legal.shape), 0).astype(np.float32)
    table /= table.sum(axis=1, keepdims=True)
    exported = open_spiel.policy(table_policy(table_index(tree), jax.numpy.asarray(table)), game)
    theirs = exploitability.nash_conv(open_spiel.game(game), exported)
    assert theirs == pytest.approx(sequence_form.nash_conv(tree, table), abs=1e-5)


def test_openspiels_solver_runs_on_our_game() -> None:
    """External-sampling MCCFR lowers Kuhn's exploitability."""
    game = open_spiel.game(envs.make("kuhn_poker"))
    np.random.seed(92)
    solver = external_sampling_mccfr.ExternalSamplingSolver(game)
    solver.iteration()
    before = exploitability.exploitability(game, solver.average_policy())
    for _ in range(150):
        solver.iteration()
    assert exploitability.exploitability(game, solver.average_policy()) < before / 2


def test_our_simple_bot_plays_openspiels_gin_like_theirs() -> None:
    """On pyspiel's own states, our faithful bot chooses what theirs does; evaluate_bots takes it."""
    game = envs.make("gin_rummy_openspiel")
    ours = [open_spiel.bot(simple_bot.make(game, faithful=True), game, seat) for seat in range(2)]
    native, root, _ = lockstep.root()
    theirs = [pyspiel.make_simple_gin_rummy_bot(native.get_parameters(), seat) for seat in range(2)]
    for seed in range(3):
        returns = pyspiel.evaluate_bots(root.clone(), [ours[0], theirs[1]], seed)
        assert returns == pyspiel.evaluate_bots(root.clone(), theirs, seed)
    assert open_spiel.bot(uniform_policy(), game, 0).provides_policy()


def test_a_recorded_history_replays() -> None:
    """A pyspiel history, chance moves and all, leads to our state with the same tensor."""
    game = envs.make("gin_rummy_openspiel")
    _, root, _ = lockstep.root()
    rng = random.Random(93)
    state = root.clone()
    while not state.is_terminal():
        if not state.is_chance_node() and rng.random() < 0.05:
            ours = open_spiel.state_of(game, state)
            for seat in range(2):
                np.testing.assert_array_equal(game.observe(ours, seat), state.observation_tensor(seat))
        state.apply_action(rng.choice(state.legal_actions()))


def test_a_state_of_another_game_is_refused() -> None:
    """One line says whose state it is, or which parameter differs; those of payoffs alone may."""
    state = pyspiel.load_game("kuhn_poker").new_initial_state()
    with pytest.raises(InputError, match="kuhn_poker"):
        open_spiel.state_of(envs.make("gin_rummy_openspiel"), state)
    for parameters, reason in (("knock_card=3", "knock_card=3, not 10"), ("hand_size=7", "hand_size=7, not 10")):
        state = _dealt(f"gin_rummy({parameters})")
        with pytest.raises(InputError, match=reason):
            open_spiel.state_of(envs.make("gin_rummy_openspiel"), state)
    game = envs.make("gin_rummy_openspiel", knock_card=3)
    assert int(open_spiel.state_of(game, _dealt("gin_rummy(knock_card=3,gin_bonus=30)")).current_player) == 0


def test_where_chance_is_to_act_no_policy_answers() -> None:
    """A chance node between two rounds keeps the state before it, whose player has nothing to choose any more."""
    game = envs.make("leduc_poker")
    player, state = open_spiel.policy(uniform_policy(), game), open_spiel.game(game).new_initial_state()
    state.apply_action(0)
    for _ in range(2):
        assert player.action_probabilities(state)
        state.apply_action(1)
    assert state.is_chance_node()
    native = pyspiel.load_game("gin_rummy").new_initial_state()
    gin = envs.make("gin_rummy_openspiel")
    for ask in (
        lambda: player.action_probabilities(state),
        lambda: open_spiel.bot(uniform_policy(), game, 0).step(state),
        lambda: open_spiel.state_of(game, state),
        lambda: open_spiel.policy(uniform_policy(), gin).action_probabilities(native),
    ):
        with pytest.raises(InputError, match=r"^chance is to act in state '.*'; it must be a player's turn$"):
            ask()
    with pytest.raises(InputError, match=r"^3 is not a state of OpenSpiel; give one"):
        open_spiel.state_of(game, 3)


def test_a_policy_of_another_game_a_seat_and_deals_that_cannot_be_are_refused() -> None:
    """In one line; a policy made for other rules would answer for states that it was not made for."""
    game, other = envs.make("gin_rummy_openspiel"), envs.make("gin_rummy_openspiel", knock_card=3)
    policy = envs.make_bot("simple_bot", other)
    with pytest.raises(InputError, match="knock_card=3, not 10"):
        open_spiel.policy(policy, game)
    with pytest.raises(InputError, match="knock_card=3, not 10"):
        open_spiel.bot(policy, game, 0)
    for seat, reason in ((2, "player=2 is not valid; gin_rummy_openspiel has seats 0 to 1"), ("0", "a whole number")):
        with pytest.raises(InputError, match=reason):
            open_spiel.bot(policy, other, seat)
    for seed, reason in ((-1, "seed=-1 is not valid; it must be 0 or more"), ("a", "a whole number")):
        with pytest.raises(InputError, match=reason):
            open_spiel.bot(policy, other, 0, seed=seed)
    with pytest.raises(InputError, match="'gin_rummy_openspiel' is not a game"):
        open_spiel.bot(policy, "gin_rummy_openspiel", 0)
    for deals, reason in ((0, "at least 1"), (-3, "at least 1"), (2.5, "a whole number")):
        with pytest.raises(InputError, match=reason):
            open_spiel.game(game, deals=deals)


def _dealt(name: str) -> pyspiel.State:
    """Returns a state of one of pyspiel's games in which a player is to act."""
    state = pyspiel.load_game(name).new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[0])
    return state
