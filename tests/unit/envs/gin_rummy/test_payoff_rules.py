"""Rules that are said to change payoffs alone: the same deal and choices show the same under others."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import cards
from envs.gin_rummy.core import scoring
from envs.gin_rummy.core.rules import PRESETS
from envs.gin_rummy.event_log.game import GinRummy

OTHER = {
    "gin_bonus": 7,
    "undercut_bonus": 3,
    "undercut_on_tie": False,
    "layoff": {"gin_rummy": "melds_first", "gin_rummy_mdp": "exact"},
    "big_gin_bonus": 90,
    "reward": "categorical",
}
GAMES = ("gin_rummy", "gin_rummy_mdp", "gin_rummy_openspiel")


def _rounds(game: envs.Game) -> tuple[Any, np.ndarray]:
    """Returns all that is seen and allowed along sixteen rounds of likely knocks, and what they paid."""
    knocker = envs.make_bot("simple_bot", game)

    def play(key: jax.Array) -> Any:
        def step(state: Any, key: jax.Array) -> tuple[Any, Any]:
            views = jax.vmap(game.view, (None, 0))(state, jnp.arange(2))
            legal, player = game.legal_actions(state), jnp.maximum(state.current_player, 0)
            own = jax.tree.map(lambda x: x[player], views)
            mixed = 0.9 * knocker.apply(knocker.params, own, legal) + 0.1 * legal / jnp.maximum(jnp.sum(legal), 1)
            action = jax.random.categorical(key, jnp.log(mixed + 1e-9))
            new, rewards, done = game.step(state, action)
            return new, (views, legal, state.current_player, done, rewards)

        return jax.lax.scan(step, game.init(key), jax.random.split(key, 90))[1]

    *seen, rewards = jax.tree.map(np.asarray, jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(1), 16)))
    return seen, rewards


@pytest.mark.parametrize("name", GAMES)
def test_views_and_legal_actions_do_not_change(name: str) -> None:
    """All of a game's payoff rules at once; what is paid does change."""
    game = envs.make(name)
    changed = {rule: OTHER[rule] for rule in sorted(game.payoff_rules)}
    changed = {rule: value[name] if isinstance(value, dict) else value for rule, value in changed.items()}
    assert all(game.identity["rules"][rule] != value for rule, value in changed.items())
    (seen, paid), (seen_there, paid_there) = _rounds(game), _rounds(envs.make(name, **changed))
    jax.tree.map(np.testing.assert_array_equal, seen, seen_there)
    assert not np.array_equal(paid, paid_there)


@pytest.mark.parametrize("name", GAMES)
def test_a_policy_plays_where_only_payoffs_differ(name: str) -> None:
    """And is refused where the game is another."""
    game = envs.make(name)
    policy = envs.make_bot("simple_bot", game)
    envs.check_plays(policy, envs.make(name, gin_bonus=1))
    limit = "knock_card" if name == "gin_rummy_openspiel" else "knock_limit"
    with pytest.raises(envs.InputError, match=f"with other rules: {limit}=10, not 5"):
        envs.check_plays(policy, envs.make(name, **{limit: 5}))


def test_no_round_costs_more_than_the_worst_reward() -> None:
    """The dearest hand without a meld, against a gin of all eleven cards: 98 points and a bonus."""

    def masks(names: str) -> jax.Array:
        held = np.isin(np.arange(cards.NUM_CARDS), [cards.card_id(name) for name in names.split()])
        return cards.to_mask(jnp.asarray(held)).astype(jnp.int32)

    knocker, defender = masks("AS 2S 3S 4S 5S 6S 7S 8S 9S TS"), masks("KH KD QC QS JH JD TC TH 9C 9D")
    eleventh = jnp.int32(cards.card_id("JS"))
    for name, bonus in {"dream": 50, "eaai": 25, "modern": 31, "classic": 20, "palace": 25}.items():
        game = GinRummy(PRESETS[name])
        lost = scoring.settle(game.rules, knocker, defender, jnp.int32(98), eleventh).points
        assert lost == 98 + bonus
        assert game.worst_reward <= -lost / game.reward_scale
