"""The local best response: how a state came about, the belief, the draw of particles, what it refuses."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_gin
from jax import Array, lax

import envs
from dream.evaluation import local, match
from dream.evaluation.local import LocalConfig, local_best_response
from envs import Game, InputError, Policy
from envs.gin_rummy.mdp import encoding
from envs.gin_rummy.mdp import game as mdp
from envs.kuhn_poker import KuhnPoker
from envs.random_play import uniform_action

STEPS = 12
CONFIG = LocalConfig(proposals=32, particles=8)


def _by_seat(params: Any, view: Any, legal: Array) -> Array:
    """A policy that is neither uniform nor the same on any two deals: weights from the cards of the hand."""
    own = jnp.sum(jnp.ravel(jax.tree.leaves(view)[1 if hasattr(view, "die") else 0]))
    weights = legal * (1.0 + (np.arange(legal.shape[0]) * own + params) % 5)
    return weights / jnp.maximum(jnp.sum(weights), 1)


def _walk(game: Game, key: Array, steps: Array) -> tuple[Any, Array, Array]:
    """Plays at random; returns a state in play, the actions so far and each player's log chance of its own."""
    start = game.init(key)

    def body(t: Array, carry: tuple) -> tuple:
        state, actions, count, logs = carry
        legal = game.legal_actions(state)
        action = uniform_action(jax.random.bits(jax.random.fold_in(key, t)), legal)
        after, _, done = game.step(state, action)
        player = state.current_player
        chance = _by_seat(3, game.view(state, player), legal)[action]
        go = (t < steps) & ~done & (count == t)
        moved = (after, actions.at[t].set(action), count + 1, logs.at[player].add(jnp.log(chance)))
        return jax.tree.map(lambda new, old: jnp.where(go, new, old), moved, carry)

    blank = (start, jnp.zeros(game.max_length, jnp.int32), jnp.int32(0), jnp.zeros(2))
    state, actions, count, logs = lax.fori_loop(0, STEPS, body, blank)
    return state, actions * (np.arange(game.max_length) < count), logs


@functools.partial(jax.jit, static_argnums=0)
def _replay(game: Game, key: Array, steps: Array) -> tuple[Array, Array, Array]:
    """Returns whether retracing gives the actions played, and playing them the state; the log chances, two ways."""
    state, actions, logs = _walk(game, key, steps)
    start, reported, count = game.replay_actions(state)
    reported = jnp.where(np.arange(game.max_length) < count, reported, 0)
    again = lax.fori_loop(0, count, lambda t, s: game.step(s, reported[t])[0], start)
    pairs = zip(jax.tree.leaves(again), jax.tree.leaves(state), strict=True)
    same = jnp.all(jnp.stack([jnp.all(a == b) for a, b in pairs])) & jnp.all(reported == actions)
    believer = local._Local(game, dataclasses.replace(CONFIG, opponent_epsilon=0.0))
    return same, believer._log_likelihood(Policy(_by_seat, 3), state), logs[1 - state.current_player]


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice", "gin_rummy"])
def test_the_past_is_retraced_and_as_likely_as_the_opponent_made_it(name: str) -> None:
    """Random hands: retraced actions lead to the state, and the belief weighs the opponent's with its own policy."""
    game = envs.make(name)
    keys = jax.random.split(jax.random.key(5), 32)
    same, found, wanted = jax.vmap(functools.partial(_replay, game))(keys, np.arange(32) % (STEPS + 1))
    assert np.all(same)
    assert np.sum(np.asarray(wanted) < 0) > 4
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_it_beats_uniform_play_and_stays_below_the_exact_bound() -> None:
    """On liar's dice, whose uniform policy has exploitability 0.78074: a pure strategy that earns most of it."""
    game = envs.make("liars_dice")
    random = envs.make_bot("random", game)
    answer = local_best_response(game, random, CONFIG)
    state = game.init(jax.random.key(0))
    view, legal = game.view(state, 0), game.legal_actions(state)
    assert sorted(np.asarray(answer(view, legal)))[-2:] == [0.0, 1.0]
    points = match(game, answer, random, games=4096)["points_per_hand"]
    assert points.low < 0.78074
    assert points.mean > 0.5 * 0.78074


def test_what_is_undecided_is_worth_the_difference_of_the_deadwoods() -> None:
    """In gin with horizon 0: the other's less the own, by hundredths, after the action of whoever is to act."""
    game = envs.make("gin_rummy")
    anyone = envs.make_bot("random", game)
    believer = local._Local(game, dataclasses.replace(CONFIG, horizon=0))

    @jax.jit
    def value(deck: Array, player: Array, action: Array) -> Array:
        first = game.from_deck(deck)
        start = dataclasses.replace(first, phase=player, current_player=player)  # the first or the second offer
        return believer._value({"opponent": anyone, "player": anyone}, start, action, jax.random.key(0))

    deck = np.random.default_rng(1).permutation(52)
    for player in range(2):
        for action in (slow_gin.PASS, slow_gin.TOP):  # a hand of eleven counts as the best ten of them
            slow = slow_gin.Hand(deck, slow_gin.Rules())
            slow.phase = slow.to_act = player
            slow.play(action)
            own, other = slow.deadwood(player), slow.deadwood(1 - player)
            assert own != other
            assert value(deck, jnp.int32(player), jnp.int32(action)) == pytest.approx((other - own) / 100)


def test_a_game_of_other_rewards_is_played_for_points() -> None:
    """A knock with categorical rewards is worth its points, by hundredths as the deadwoods are."""
    game = envs.make("gin_rummy_mdp", reward="categorical")
    anyone = envs.make_bot("random", game)
    believer = local_best_response(game, anyone, CONFIG).apply.__self__
    deal = game.from_deck(np.random.default_rng(1).permutation(52))
    start = dataclasses.replace(deal, phase=jnp.int32(encoding.KNOCK))
    end, rewards, done = game.step(start, jnp.int32(mdp.KNOCKS))
    params = {"opponent": anyone, "player": anyone}
    value = jax.jit(believer._value)(params, start, jnp.int32(mdp.KNOCKS), jax.random.key(0))
    assert done
    assert rewards[0] != value
    assert value == pytest.approx(float(end.points) / 100)


def test_an_action_is_taken_where_the_evidence_is_for_it() -> None:
    """Differences 1, -1, 3, 1 on four particles: mean 1, standard error 0.816; the best mean alone counts with 0."""
    values = jnp.array([[5.0, 6.0, 5.5], [7.0, 6.0, 7.5], [0.0, 3.0, 0.5], [1.0, 2.0, 1.5]])
    for evidence, place in ((0.0, 1), (1.2, 1), (1.25, 2), (1e9, 2)):
        assert local._chosen(values, evidence) == place, "a sure half a point is in the third place"
    assert local._chosen(values[:, :2], 1.25) == 0
    assert local._chosen(values[:1], 2.0) == 1, "one particle tells no error"


def test_without_evidence_it_plays_as_the_player_that_it_rolls_out() -> None:
    """Whose most probable action is tried however few are."""
    game, policy = envs.make("leduc_poker"), Policy(_by_seat, 3)
    config = dataclasses.replace(CONFIG, player="policy", evidence=1e9, actions=1)
    answer = jax.jit(local_best_response(game, policy, config).__call__)
    for seed in range(4):
        state = game.step(game.init(jax.random.key(seed)), jnp.int32(1))[0]
        view, legal = game.view(state, state.current_player), game.legal_actions(state)
        assert np.argmax(answer(view, legal)) == np.argmax(policy(view, legal))


class _Skewed(KuhnPoker):
    """Kuhn poker whose likely worlds give the opponent the king nine times in ten, where it can have it."""

    def likely_world(self, view: Any, key: Array) -> tuple[Any, Array]:
        """Draws a world of the one kind or the other, with the logarithm of the weight that makes them even."""
        likelier = jax.random.bernoulli(key, 0.9)
        worlds = jax.vmap(lambda hand: self.step(self.from_deck(hand), jnp.int32(1))[0])(jnp.array([[0, 1], [2, 1]]))
        world = jax.tree.map(lambda x: x[likelier.astype(jnp.int32)], worlds)
        return world, jnp.log(jnp.where(likelier, 0.5 / 0.9, 0.5 / 0.1))


def test_deals_that_are_likelier_drawn_weigh_less() -> None:
    """A queen that a uniform player bets into calls at even odds, 0 to -1, and would fold at nine kings in ten."""
    game = _Skewed()
    random = envs.make_bot("random", game)
    for likely in (False, True):
        answer = local_best_response(game, random, LocalConfig(proposals=256, particles=64, likely=likely))
        state = game.step(game.from_deck(jnp.array([0, 1])), jnp.int32(1))[0]
        np.testing.assert_array_equal(answer(game.view(state, 1), game.legal_actions(state)), [0.0, 1.0])


def test_what_it_cannot_answer_is_refused() -> None:
    """A game without its actions, suits under private names, an unknown rollout player."""
    for game in (envs.make("rummy500", num_players=2), envs.make("mini_gin_rummy", preset="3x4")):
        with pytest.raises(InputError, match=r"cannot redeal|does not keep the actions"):
            local_best_response(game, envs.make_bot("random", game), CONFIG)
    game = envs.make("mini_gin_rummy")
    with pytest.raises(InputError, match="unknown rollout player 'greedy'"):
        local_best_response(game, envs.make_bot("random", game), dataclasses.replace(CONFIG, player="greedy"))
