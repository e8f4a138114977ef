"""Do the rule bots do what their rules say, and only what is legal?"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream.evaluation import match
from envs import InputError, cards
from envs.gin_rummy import deadwood, deadwood_after_discard

GAME = envs.make("gin_rummy")
RULE_BOTS = [name for name in envs.bot_names(GAME) if name != "random"]


@functools.partial(jax.jit, static_argnums=(1, 2))
def _steps(policy: envs.Policy, games: int, game: envs.Game = GAME) -> tuple:
    """Plays a bot against itself: views, legal actions, policies and states of every step."""
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), games))

    def body(states: object, t: jax.Array) -> tuple:
        views = jax.vmap(game.view)(states, states.current_player)
        legal = jax.vmap(game.legal_actions)(states)
        chances = jax.vmap(policy)(views, legal)
        after, _, _ = jax.vmap(game.step)(states, jnp.argmax(chances, axis=1))
        return after, (views, legal, chances, states.current_player)

    return jax.lax.scan(body, states, jnp.arange(game.max_length))[1]


@pytest.mark.parametrize("name", ["greedy", "heuristic", "defensive", "eaai_simple"])
def test_bots_are_distributions_over_legal_actions(name: str) -> None:
    """At every decision of 64 hands against themselves."""
    _, legal, chances, player = jax.device_get(_steps(envs.make_bot(name, GAME), 64))
    playing = player >= 0
    np.testing.assert_allclose(chances[playing].sum(axis=1), 1.0, atol=1e-6)
    assert not np.any(chances[playing] * ~legal[playing])
    assert np.all(chances >= 0)


def test_greedy_is_greedy() -> None:
    """It takes a top exactly where that lowers deadwood, sheds what leaves least, and knocks at once."""
    views, legal, chances, player = jax.device_get(_steps(envs.make_bot("greedy", GAME), 16))
    playing = player >= 0
    action, legal = chances.argmax(axis=2)[playing], legal[playing]
    views = jax.tree.map(lambda x: x[playing], views)
    now, after, with_top = jax.device_get(_deadwoods(views.hand, views.top))
    checked = {"draw": 0, "discard": 0, "knock": 0}
    for n in range(len(action)):
        if views.phase[n] == 4:
            allowed = legal[n, 3:55] | legal[n, 55:]
            assert after[n, (action[n] - 3) % 52] == after[n, allowed].min()
            assert (action[n] >= 55) == legal[n, 55:].any()
            checked["knock" if action[n] >= 55 else "discard"] += 1
        elif legal[n, 1]:
            assert views.top[n] < 52
            assert (action[n] == 1) == (with_top[n].min() < now[n])
            checked["draw"] += 1
    assert min(checked.values()) >= 10, checked


@jax.jit
@jax.vmap
def _deadwoods(hand: jax.Array, top: jax.Array) -> tuple[jax.Array, ...]:
    """Returns a hand's deadwood, and that after each discard of it, and of it with the top, which stays."""
    held = cards.to_cards(hand)
    with_top = held.at[top].set(True, mode="drop")
    taken = deadwood_after_discard(with_top).at[top].set(999, mode="drop")
    return deadwood(held), deadwood_after_discard(held), taken


@pytest.mark.parametrize("name", ["meld_builder", "early_knock", "defensive"])
def test_where_only_gin_ends_a_round_every_gin_is_declared(name: str) -> None:
    """By scores of their own these bots would discard past one; the other discards stay as they are."""
    game = envs.make("gin_rummy", knock_limit=0)
    bot = envs.make_bot(name, game)
    assert bot.params.knock_limit == envs.make_bot("lv4", game).params.base.knock_limit == 0
    _, legal, chances, player = jax.device_get(_steps(bot, 64, game))
    gins = (player >= 0) & legal[..., 55:].any(axis=-1)
    assert gins.sum() > 20
    np.testing.assert_allclose(chances[gins][:, 55:].sum(axis=1), 1)
    assert (chances[(player >= 0) & ~gins][:, 55:] == 0).all()


def test_every_rule_bot_beats_random_play() -> None:
    """On points a hand over 256 mirrored hands, the whole interval above 0."""
    for name in ("greedy", "heuristic"):
        report = match(GAME, envs.make_bot(name, GAME), envs.make_bot("random", GAME), games=256)
        assert report["points_per_hand"].low > 30


def test_a_smaller_deck_has_the_players_that_can_play_it() -> None:
    """The others are not listed, and refused by name; those listed decide."""
    game = envs.make("gin_rummy", num_ranks=7, hand_size=5)
    assert envs.bot_names(game) == ["random", "simple_bot"]
    state = jax.jit(game.init)(jax.random.key(0))
    view, legal = game.view(state, 0), game.legal_actions(state)
    for name in envs.bot_names(game):
        assert float(jnp.sum(envs.make_bot(name, game)(view, legal))) == pytest.approx(1.0)
    for name in ("greedy", "camper", "lookahead", "marjj", "lv4", "mc:64"):
        with pytest.raises(InputError, match=f"player '{name}' of gin_rummy does not play with 28 cards; .* all 52"):
            envs.make_bot(name, game)


def test_wrong_names_and_options_are_refused() -> None:
    """One line, with the nearest name."""
    with pytest.raises(InputError, match="did you mean 'greedy'"):
        envs.make_bot("gredy", GAME)
    with pytest.raises(InputError, match="unknown option of greedy 'take'"):
        envs.make_bot("greedy", GAME, take=1.0)
    for value in ("high", None, float("nan")):
        with pytest.raises(InputError, match=r"take_gain=.* is not valid; it must be a finite number"):
            envs.make_bot("greedy", GAME, take_gain=value)
    with pytest.raises(InputError, match="unknown player of kuhn_poker"):
        envs.make_bot("greedy", envs.make("kuhn_poker"))
    assert set(RULE_BOTS) >= {"greedy", "heuristic", "aggressive_knock", "meld_builder", "early_knock", "defensive"}
