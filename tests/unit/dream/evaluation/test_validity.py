"""No result comes from a policy that gives no probabilities: it is refused by name, wherever it plays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dream
from dream import algorithms
from dream.algorithms.types import Value
from dream.equations.distributions import faults
from dream.evaluation import match, matches, validity
from dream.evaluation.best_response import BestResponseConfig, learn_best_response
from dream.evaluation.control import controlled_match
from dream.evaluation.hands import play_on_host
from dream.evaluation.local import LocalConfig, local_best_response, local_match
from dream.evaluation.matches import play_blocks, play_hands
from dream.game_tree.tabular_policy import tabulate
from dream.game_tree.tree import build_tree
from envs import HostPlayer, InputError, Policy, check_once, checks, make, make_bot
from envs.kuhn_poker import KuhnPoker
from envs.rummy500 import RummyRules, ShapedRummy500

GAME = make("kuhn_poker")
RANDOM = make_bot("random", GAME)


def _nan(params: Any, view: Any, legal: jax.Array) -> jax.Array:
    return jnp.full(legal.shape, jnp.nan)


def _inf(params: Any, view: Any, legal: jax.Array) -> jax.Array:
    return jnp.where(legal, jnp.inf, 0.0)


def _zero(params: Any, view: Any, legal: jax.Array) -> jax.Array:
    return jnp.zeros(legal.shape)


def _twice(params: Any, view: Any, legal: jax.Array) -> jax.Array:
    return 2 * legal / jnp.sum(legal)


def _illegal(params: Any, view: Any, legal: jax.Array) -> jax.Array:
    return jnp.full(legal.shape, 1 / legal.size)


def _negative(params: Any, view: Any, legal: jax.Array) -> jax.Array:
    return jnp.where(jnp.arange(legal.size) == jnp.argmax(legal), 1.5, jnp.where(legal, -0.5, 0.0))


def _rarely(params: Any, view: Any, legal: jax.Array) -> jax.Array:
    """Wrong with the lowest card alone, one of three."""
    return jnp.where(view.card == 0, jnp.nan, legal / jnp.sum(legal))


WRONG: dict[Callable[..., jax.Array], str] = {
    _nan: "not finite",
    _inf: "not finite",
    _zero: "do not sum to 1",
    _twice: "do not sum to 1",
    _negative: "negative",
    _rarely: "not finite",
}


@pytest.mark.parametrize(
    ("row", "legal", "expected"),
    [
        ([0.5, 0.5, 0.0], [1, 1, 0], [0, 0, 0, 0]),
        ([0.5, 0.50005, -0.0], [1, 1, 0], [0, 0, 0, 0]),
        ([0.5, 0.5002, 0.0], [1, 1, 0], [0, 0, 1, 0]),
        ([0.5, 0.4, 0.1], [1, 1, 0], [0, 0, 0, 1]),
        ([1.5, -0.5, 0.0], [1, 1, 0], [0, 1, 0, 0]),
        ([0.0, 0.0, 0.0], [1, 1, 0], [0, 0, 1, 0]),
        ([np.nan, 0.5, 0.5], [1, 1, 0], [1, 0, 0, 1]),
        ([np.inf, -np.inf, 0.0], [1, 1, 0], [1, 0, 0, 0]),
        ([0.0, 0.0, 0.0], [0, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_faults(row: list[float], legal: list[int], expected: list[int]) -> None:
    """Written out: not finite, negative, not summing to 1, not zero where illegal."""
    assert np.asarray(faults(jnp.array(row), jnp.array(legal, bool))).tolist() == [bool(x) for x in expected]


def _refused(action: Callable[[], Any], *parts: str) -> None:
    with pytest.raises(InputError) as error:
        action()
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_a_match_names_whose_policy_it_is(wrong: Callable[..., jax.Array]) -> None:
    """The first player's, the opponent's, and with both at fault both."""
    bad = Policy(wrong)
    _refused(lambda: match(GAME, bad, RANDOM, games=64), "the first player's policy gives", WRONG[wrong])
    _refused(lambda: play_hands(GAME, RANDOM, bad, games=64), "the opponent's policy gives", WRONG[wrong])
    _refused(lambda: match(GAME, bad, bad, games=64), "the first player's", "the opponent's")


def test_mass_on_illegal_actions() -> None:
    """In a game where some actions are illegal; such a match could go on for ever."""
    game = make("leduc_poker")
    _refused(lambda: match(game, Policy(_illegal), make_bot("random", game), games=64), "actions that are not legal")
    assert match(GAME, RANDOM, RANDOM, games=64)["n"] == 64


class _Host(HostPlayer):
    """A host-side opponent that always takes one action."""

    def __init__(self, action: int) -> None:
        self._action = action

    def begin(self, deals: Any, seats: list[int]) -> None:
        """Forgets nothing, as it knows nothing."""

    def see(self, hand: int, player: int, action: int) -> None:
        """Looks away."""

    def choose(self, hand: int) -> int:
        """Returns the action."""
        return self._action


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_against_a_player_of_the_host(wrong: Callable[..., jax.Array]) -> None:
    """The policy is named."""
    key = jax.random.key(0)
    _refused(lambda: play_on_host(GAME, Policy(wrong), _Host(1), key, 32), "the first player's policy", WRONG[wrong])


@pytest.mark.parametrize("action", [-1, 2, 99])
def test_an_illegal_action_of_a_player_of_the_host(action: int) -> None:
    """It is refused before it is played."""
    _refused(lambda: play_on_host(GAME, RANDOM, _Host(action), jax.random.key(0), 8), f"chose action {action}, which")


def _worth(params: Any, view: Any) -> jax.Array:
    return params


@pytest.mark.parametrize("wrong", [_nan, _zero, _rarely], ids=lambda f: f.__name__)
def test_with_control_variates(wrong: Callable[..., jax.Array]) -> None:
    """Both sides, and a value that is not finite."""
    value = Value(_worth, jnp.float32(0.5))
    _refused(lambda: controlled_match(GAME, Policy(wrong), RANDOM, value, games=64), "the first player's")
    _refused(lambda: controlled_match(GAME, RANDOM, Policy(wrong), value, games=64), "the opponent's")
    nothing = Value(_worth, jnp.float32(jnp.nan))
    _refused(lambda: controlled_match(GAME, RANDOM, RANDOM, nothing, games=64), "control variate is not finite")


def test_a_best_response_looks_before_it_trains() -> None:
    """At the frozen policy, before the first iteration."""
    reported: list[int] = []

    def progress(seed: int, iteration: int, points: float) -> None:
        reported.append(iteration)

    node = {"hidden": [8], "name": "dueling"}
    config = BestResponseConfig(iterations=1, seeds=(0,), algo={}, network=node)
    with pytest.raises(InputError, match="the first player's policy gives probabilities that are not finite"):
        learn_best_response(GAME, Policy(_rarely), config, progress=progress)
    assert reported == []


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_tabulate(wrong: Callable[..., jax.Array]) -> None:
    """On every information set."""
    _refused(lambda: tabulate(build_tree(GAME), Policy(wrong)), "not a distribution over the legal actions")


def test_a_local_best_response_meets_it_in_its_rollouts() -> None:
    """Also where the match itself has not come to it yet: the answer is no answer."""
    game = make("liars_dice")
    config = LocalConfig(proposals=4, particles=2, horizon=2, games=8)

    def late(params: Any, view: Any, legal: jax.Array) -> jax.Array:
        return jnp.full(legal.shape, jnp.nan)

    local = local_best_response(game, Policy(late), config)
    state = game.init(jax.random.key(0))
    row = local(game.view(state, state.current_player), game.legal_actions(state))
    assert np.isnan(row).all()
    _refused(lambda: local_match(game, local, Policy(late), config), "not finite")


@dataclasses.dataclass(frozen=True)
class _Unpaid(KuhnPoker):
    """Pays NaN where a bet was called."""

    name = "unpaid"

    def step(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        """Plays an action."""
        after, rewards, done = super().step(state, action)
        return after, jnp.where(jnp.abs(rewards) > 1, jnp.nan, rewards), done


@dataclasses.dataclass(frozen=True)
class _PaysMore(KuhnPoker):
    """Lists other payoffs than it pays: the exact value would be three times the right one."""

    name = "pays_more"

    def outcomes(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array, jax.Array]:
        """Returns what an action can lead to."""
        states, probs, rewards, done = super().outcomes(state, action)
        return states, probs, 3 * rewards, done


UNIFORM = Policy(lambda params, view, legal: legal / jnp.sum(legal))


def test_a_game_from_elsewhere_is_checked_before_it_is_used() -> None:
    """In a match, for a learner and for an exact value, by functions that took any game before."""
    paid, listed = "step: a reward is not finite; in random game", "outcomes: what step does is not among them"
    _refused(lambda: match(_Unpaid(), UNIFORM, UNIFORM, games=64), "game 'unpaid'", paid)
    _refused(lambda: dream.evaluate(UNIFORM, UNIFORM, games=64, game=_Unpaid()), paid)
    _refused(lambda: dream.exploit(UNIFORM, game=_PaysMore()), "game 'pays_more'", listed)
    node = {"name": "external_mccfr", "trajectories": 8, "batch": 8}
    _refused(lambda: algorithms.make(node, {}, _PaysMore()), listed)


def test_a_game_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that equals it is not checked again; those of the package never are."""
    checked: list[str] = []
    monkeypatch.setattr(checks, "check_game", lambda game: checked.append(game.name))
    monkeypatch.setattr(checks, "_SOUND", set())
    for game in (_PaysMore(), _PaysMore(), GAME, _Unpaid()):
        match(game, UNIFORM, UNIFORM, games=4) if game.name != "unpaid" else check_once(game)
    assert checked == ["pays_more", "unpaid"]


def test_rewards_that_are_not_finite_have_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check of the game has not met them: what is reported would be NaN, and a rate of nothing."""
    monkeypatch.setattr(matches, "check_once", lambda game: None)
    value = Value(_worth, jnp.float32(0.5))
    why = "game 'unpaid': step: a reward is not finite; "
    _refused(lambda: match(_Unpaid(), UNIFORM, UNIFORM, games=64), why, "of 64 results")
    _refused(lambda: match(_Unpaid(), UNIFORM, _Host(1), games=64), why)
    _refused(lambda: list(play_blocks(_Unpaid(), UNIFORM, UNIFORM, games=64, seed=0, block=8)), why)
    _refused(lambda: controlled_match(_Unpaid(), UNIFORM, UNIFORM, value, games=64), why)


@pytest.mark.parametrize(("games", "block"), [(64, 7), (64, 32), (64, 100), (4, 1)])
def test_hands_in_blocks_are_those_of_the_match(games: int, block: int) -> None:
    """However they are cut, the last block short or not."""
    whole = play_hands(GAME, RANDOM, RANDOM, games=games, seed=3)
    parts = list(play_blocks(GAME, RANDOM, RANDOM, games=games, seed=3, block=block))
    assert len(parts) == -(-games // 2 // block)
    for name, hands in whole.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), hands)


def test_which_games_have_opposite_points() -> None:
    """A refusal names the rule to set; a training reward beside zero-sum points is no matter."""
    for rules in ({"reward": "categorical"}, {"reward": "points"}):
        validity.refuse_unopposed(make("gin_rummy_mdp", **rules), "a bound")
    validity.refuse_unopposed(make("rummy500", num_players=2), "a bound")
    mends = {
        "rewards=zero_sum": make("rummy500", num_players=2, rewards="points"),
        "reward=score": make("rummy500", num_players=2, reward="shaped"),
        "rewards=zero_sum env.rules.reward=score": ShapedRummy500(RummyRules(num_players=2, rewards="points")),
    }
    for mend, game in mends.items():
        with pytest.raises(InputError) as error:
            validity.refuse_unopposed(game, "a bound")
        assert str(error.value).endswith(f"a bound needs a two-player zero-sum game: set env.rules.{mend}")
    with pytest.raises(InputError, match=r"env=rummy500 has 4 players; a bound needs a two-player zero-sum game$"):
        validity.refuse_unopposed(make("rummy500", num_players=4), "a bound")


def test_the_unit_of_rewards() -> None:
    """The game's own, but where results are reported in points and rewards are something else."""
    assert validity.reward_unit(make("kuhn_poker")) == "chips"
    assert validity.reward_unit(make("gin_rummy_mdp", reward="points")) == "points"
    assert validity.reward_unit(make("gin_rummy_mdp", reward="categorical")) == "of reward"


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("bet_rate", 2.0, "bet_rate is 2; a name that ends in _rate is that of a share, 0 to 1"),
        ("bet_rate", -0.5, "bet_rate is -0.5; a name that ends in _rate is that of a share, 0 to 1"),
        ("bet_rate", float("nan"), "bet_rate is nan; a name that ends in _rate is that of a share, 0 to 1"),
        ("bets", float("inf"), "bets is inf; it must be finite"),
    ],
)
def test_results_that_have_no_interval_are_refused(name: str, value: float, line: str) -> None:
    """A share of 2 has no interval, and one that is no number had 0 to 1."""

    @dataclasses.dataclass(frozen=True)
    class Odd(KuhnPoker):
        def result(self, state: Any, player: jax.Array) -> dict[str, jax.Array]:
            return {name: jnp.float32(value)}

    rounds = {"points_per_hand": np.zeros((2, 2)), "won": np.zeros((2, 2, 2)), name: np.full((2, 2), value)}
    with pytest.raises(InputError, match=f"^game 'kuhn_poker': result: {line}$"):
        validity.refuse_results(Odd(), rounds)
    validity.refuse_results(Odd(), rounds | {name: np.array([[0.0, 1.0], [1.0, 0.5]])})


def test_control_variates_need_deals_for_both_halves() -> None:
    """Each half gets the factors of the other: too few rounds are refused before any is played."""
    value = Value(lambda params, view: jnp.float32(0.0), ())
    with pytest.raises(InputError, match="games=4 is too small for control variates; it must be at least 8"):
        controlled_match(GAME, RANDOM, RANDOM, value, games=4)
    for name, given in (("samples", 0), ("fresh", 1)):
        with pytest.raises(InputError, match=f"{name}={given} is too small; it must be at least {given + 1}"):
            controlled_match(GAME, RANDOM, RANDOM, value, games=64, **{name: given})
        with pytest.raises(InputError, match=f"{name}=2.5 is not valid; it must be a whole number"):
            controlled_match(GAME, RANDOM, RANDOM, value, games=64, **{name: 2.5})
    with pytest.raises(InputError, match=r"^'kuhn_poker' is not a game"):
        controlled_match("kuhn_poker", RANDOM, RANDOM, value, games=64)


def test_more_seats_than_two_are_refused_where_two_play() -> None:
    """Control variates, which would leave seats out, and a player of the host, who has one seat."""
    three, value = make("rummy500", num_players=3), Value(lambda params, view: jnp.float32(0.0), ())
    player = make_bot("random", three)
    with pytest.raises(InputError, match="rummy500 has 3 players; control variates are for two players"):
        controlled_match(three, player, player, value, games=12)
    with pytest.raises(InputError, match="rummy500 has 3 players; a player that is asked on the host plays with one"):
        match(three, player, _Host(0), games=6)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, None, "0"])
def test_a_seed_that_would_share_its_deals_is_refused(seed: Any) -> None:
    """-1 and 2^32 have the keys of other seeds; NumPy's and JAX's whole numbers are seeds, and a key is its seed's."""
    with pytest.raises(InputError, match=r"seed=.* is not valid; it must be .*0 to 4294967295"):
        match(GAME, RANDOM, RANDOM, games=4, seed=seed)
    keys = [matches.match_key(given) for given in (3, np.uint32(3), jnp.int32(3), jax.random.key(3))]
    assert len({tuple(jax.random.key_data(key).tolist()) for key in keys}) == 1
