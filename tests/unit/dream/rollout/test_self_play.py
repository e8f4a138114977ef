"""Self-play records exactly the games asked for, whatever the number of lanes."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame, TiedGame, coin_trees, random_table, scrambled, trajectories
from jax import Array

from dream.equations.sampling import sample_action
from dream.rollout import self_play
from envs import Game, make

GAME, TAGGED = CoinGame(), CoinGame(tagged=True)
KEY = jax.random.key(21)


class PlayedGame(NamedTuple):
    """One recorded game: actions, players, rewards of each move, coin or first view's hand, potentials."""

    actions: tuple[int, ...]
    players: tuple[int, ...]
    rewards: tuple[tuple[float, ...], ...]
    first_view: bytes


def _scrambling() -> self_play.Actor:
    """Returns an actor without randomness, whose carry counts the moves since the deal."""

    def act(carry: Array, view: Any, legal: Array, player: Array, key: Array) -> tuple[Array, Array, Array]:
        return scrambled(view, legal), carry + 1, carry

    return self_play.Actor(lambda key: jnp.int32(0), act)


def _played(game: Game, games: int, lanes: int, actor: self_play.Actor | None = None) -> self_play.Record:
    play = jax.jit(lambda key: self_play.play(game, actor or _scrambling(), key, games=games, num_envs=lanes))
    return jax.device_get(play(KEY))


def _games(record: self_play.Record) -> list[PlayedGame]:
    """Splits a record into its games; every lane's valid moves are one stream that ends with a game's end."""
    d, found = record.decisions, []
    for lane in range(record.valid.shape[1]):
        moves = np.flatnonzero(record.valid[:, lane])
        np.testing.assert_array_equal(moves, np.arange(len(moves)))
        assert len(moves) == 0 or d.done[moves[-1], lane]
        for part in np.split(moves, np.flatnonzero(d.done[moves, lane]) + 1)[:-1]:
            np.testing.assert_array_equal(d.extras[part, lane], np.arange(len(part)))
            view = b"".join(np.asarray(x[part[0], lane]).tobytes() for x in d.view)
            rewards = tuple(map(tuple, d.rewards[part, lane].tolist()))
            found.append(PlayedGame(tuple(d.action[part, lane]), tuple(d.player[part, lane]), rewards, view))
    return found


@jax.jit
def _choose(state: Any, player: Array) -> Array:
    return scrambled(TAGGED.view(state, player), TAGGED.legal_actions(state))


_step = jax.jit(TAGGED.step)


def _slow_coin_game(number: int) -> PlayedGame:
    """Plays game `number` alone, step by step."""
    deal_key = jax.random.split(KEY, 3)[0]
    state, moves = TAGGED.init(jax.random.fold_in(deal_key, number)), []
    first = b"".join(np.asarray(x).tobytes() for x in TAGGED.view(state, 0))
    while int(state.current_player) >= 0:
        player = int(state.current_player)
        action = int(_choose(state, player))
        state, rewards, _ = _step(state, action)
        moves.append((action, player, tuple(np.asarray(rewards).tolist())))
    return PlayedGame(*zip(*moves, strict=True), first)


@pytest.fixture(scope="module")
def slow_games() -> list[PlayedGame]:
    """Forty games of the coin game, one after the other: of one to three moves, ties among them."""
    games = [_slow_coin_game(n) for n in range(40)]
    assert {len(game.actions) for game in games} == {1, 2, 3}
    assert len({game.first_view for game in games}) == 40
    return games


@pytest.mark.parametrize(("games", "lanes"), [(40, 40), (40, 7), (40, 1), (13, 5), (1, 1), (8, 8)])
def test_same_games_whatever_the_lanes(slow_games: list[PlayedGame], games: int, lanes: int) -> None:
    """Games 0 to games - 1, each whole and once: deal g by fold_in(deal key, g), carry anew at each deal."""
    record = _played(TAGGED, games, lanes)
    assert sorted(_games(record)) == sorted(slow_games[:games])
    assert record.results["games"] == games
    assert record.valid.shape == (self_play.longest(GAME, games, lanes), lanes)


def test_results_are_those_of_the_record(slow_games: list[PlayedGame]) -> None:
    """Sums over finished games: ties by all that a game paid, the coin, and who moved last."""
    results = _played(TAGGED, 40, 7).results
    by_last, by_all = ([not np.any(paid(game.rewards)) for game in slow_games] for paid in (_last, _total))
    assert results["tie_rate"] == sum(by_all) > 0
    assert by_all != by_last
    assert results["coin"] == sum(game.first_view[0] for game in slow_games) > 0
    assert results["last_rate"] == 40 / 2
    assert results.keys() == {"games", "tie_rate", "coin", "last_rate"}


def test_results_are_of_the_seats_that_are_counted(slow_games: list[PlayedGame]) -> None:
    """Those of player 0 alone: how often it moved last."""
    alone = _scrambling()._replace(counted=lambda carry: jnp.arange(2) == 0)
    results = _played(TAGGED, 40, 7, alone).results
    assert 0 < results["last_rate"] == sum(game.players[-1] == 0 for game in slow_games) < 40
    assert results["coin"] == sum(game.first_view[0] for game in slow_games), "the same for both"


def test_what_was_paid_is_added_up_by_game() -> None:
    """Up to and with each move, from 0 at each deal; a game that pays at its end alone records nothing."""
    record = _played(TAGGED, 40, 7)
    d = record.decisions
    for lane in range(7):
        total = np.zeros(2, np.float32)
        for t in np.flatnonzero(record.valid[:, lane]):
            total = total + d.rewards[t, lane]
            np.testing.assert_allclose(d.paid[t, lane], total, atol=1e-6)
            total = total * ~d.done[t, lane]
    assert _played(make("kuhn_poker"), 3, 3, _first_legal()).decisions.paid is None


def _first_legal() -> self_play.Actor:
    """Returns an actor that takes the first legal action."""
    return self_play.Actor(lambda key: (), lambda carry, view, legal, player, key: (jnp.argmax(legal), (), ()))


def _last(rewards: tuple[tuple[float, ...], ...]) -> np.ndarray:
    return np.asarray(rewards[-1])


def _total(rewards: tuple[tuple[float, ...], ...]) -> np.ndarray:
    return np.sum(np.asarray(rewards, np.float32), axis=0)


def test_ties_of_games_that_pay_on_the_way_are_ties() -> None:
    """Their payments sum to 0 but for rounding; a tie penalty and a bonus for wins go by what is recorded of it."""

    def act(carry: tuple, view: Any, legal: Array, player: Array, key: Array) -> tuple[Array, tuple, tuple]:
        return sample_action(key, legal / jnp.sum(legal)), (), ()

    record = _played(TiedGame(), 13, 5, self_play.Actor(lambda key: (), act))
    assert record.results["tie_rate"] == record.results["games"] == 13
    assert not record.decisions.paid[record.valid & record.decisions.done].any()


def test_potentials_and_legal_actions_are_those_of_the_moment() -> None:
    """Before and after each move, of both players; legal actions packed; after equals the next before."""
    trees = coin_trees(GAME)
    record = _played(GAME, 13, 5)
    d, byte = record.decisions, {}
    for _, path in trajectories(trees, random_table(trees, 0)):
        for node, action in path:
            byte[node.key, tuple(node.potentials.tolist()), action] = (node.children[action][2], node.legal)
    for t, lane in zip(*np.nonzero(record.valid), strict=True):
        key = b"".join(np.asarray(x[t, lane]).tobytes() for x in d.view)
        after, legal = byte[key, tuple(d.potentials[t, lane, 0].tolist()), int(d.action[t, lane])]
        np.testing.assert_allclose(d.potentials[t, lane, 1], after, atol=1e-6)
        np.testing.assert_array_equal(np.unpackbits(d.legal[t, lane], count=3), legal)
        assert d.phase[t, lane] == min(int(np.count_nonzero(d.view.moves[t, lane])), 2)


def test_random_actors_play_the_policy_they_are_given() -> None:
    """3,000 games of uniform play: every trajectory as often as its probability says, within 5 standard errors."""

    def act(carry: tuple, view: Any, legal: Array, player: Array, key: Array) -> tuple[Array, tuple, Array]:
        return sample_action(key, legal / jnp.sum(legal)), (), jnp.cumsum(view.moves)[-1] * 0

    games = 3000
    record = _played(GAME, games, 500, self_play.Actor(lambda key: (), act))
    d, trees = record.decisions, coin_trees(GAME)
    uniform = {key: (row > 0) / (row > 0).sum() for key, row in random_table(trees, 0).items()}
    counts: dict[tuple, int] = {}
    for lane in range(500):
        moves = np.flatnonzero(record.valid[:, lane])
        for part in np.split(moves, np.flatnonzero(d.done[moves, lane]) + 1)[:-1]:
            key = (int(d.view.coin[part[0], lane]), tuple(d.action[part, lane].tolist()))
            counts[key] = counts.get(key, 0) + 1
    assert sum(counts.values()) == games
    for chance, path in trajectories(trees, uniform):
        key = (int(path[0][0].view.coin), tuple(action for _, action in path))
        error = 5 * np.sqrt(games * chance * (1 - chance))
        assert abs(counts[key] - games * chance) < error


def test_gin_rummy_games_do_not_depend_on_the_lanes() -> None:
    """The same 20 hands from 6 lanes and from 20, and the reported knocks and ties are those on record."""
    game = make("gin_rummy", max_actions=30, knock_limit=70)
    few, many = _played(game, 20, 6), _played(game, 20, 20)
    found = _games(few)
    assert sorted(found) == sorted(_games(many))
    assert len({one.first_view for one in found}) == 20
    knocks = [one for one in found if one.actions[-1] >= 55]
    undercut = [one for one in knocks if one.rewards[-1][one.players[-1]] < 0]
    for results in (few.results, many.results):
        assert results["games"] == 20
        assert results["tie_rate"] == 20 - len(knocks)
        assert results["knock_rate"] == len(knocks) / 2 > 0
        assert results["undercut_rate"] == len(undercut) / 2
