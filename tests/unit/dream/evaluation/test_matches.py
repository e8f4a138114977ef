"""Mirrored matches: the same deals from both seats, nothing counted twice, nothing left out."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame, TiedGame, coin_trees, random_table, scrambled_policy, trajectories
from jax.sharding import AbstractMesh, AxisType

from dream.compiled import devices
from dream.evaluation import Interval, match, matches
from dream.evaluation.games import check_pairs
from dream.evaluation.matches import check_games
from envs import Game, InputError, Policy, make, make_bot

GAME = CoinGame()
_TREES = functools.cache(lambda: coin_trees(GAME))


def _apply(params: Any, view: Any, legal: jax.Array) -> jax.Array:
    """Looks a view up in a table: coin 3, moves 4 each."""
    return params[view.coin, view.moves[0], view.moves[1]]


def _tabular(table: dict[bytes, np.ndarray]) -> Policy:
    chances = np.zeros((3, 4, 4, 3), np.float32)
    for key, row in table.items():
        coin, first, second = key[0], key[1], key[2]
        chances[coin, first, second] = row
    return Policy(_apply, jnp.array(chances))


def _exact_points(ours: dict[bytes, np.ndarray], theirs: dict[bytes, np.ndarray]) -> float:
    """Returns the mean points of the first player over both seats, by enumeration."""
    total = 0.0
    for seat in range(2):
        mine = {key: ours[key] if (key[4] == seat) else theirs[key] for key in ours}
        total += sum(
            chance * sum(node.children[action][0][seat] for node, action in path)
            for chance, path in trajectories(_TREES(), mine)
        )
    return total / 2 * GAME.reward_scale


@pytest.fixture(scope="module")
def gin() -> Game:
    """Gin rummy in which nearly everyone may knock, so that players without skill win and lose."""
    return make("gin_rummy", max_actions=30, knock_limit=70)


def test_ties_of_games_that_pay_on_the_way_are_ties() -> None:
    """Their payments sum to 0 but for rounding."""
    game = TiedGame()
    hands = matches.play_hands(game, make_bot("random", game), make_bot("random", game), games=40)
    assert np.all(hands["tie_rate"] == 1)
    assert not any(hands[name].any() for name in ("win_rate", "loss_rate", "points_per_hand"))


@pytest.mark.parametrize("name", ["coin", "gin_rummy"])
def test_a_player_without_randomness_ties_itself(name: str, gin: Game) -> None:
    """Played against itself each deal gives the two seats opposite points, so every pair sums to 0 exactly."""
    game, player = {"coin": GAME, "gin_rummy": gin}[name], scrambled_policy()
    hands = matches._play_pairs(game, player, player, jax.random.key(1), 64, False)
    assert np.any(hands["points_per_hand"] != 0)
    np.testing.assert_array_equal(hands["points_per_hand"].sum(axis=1), 0)
    np.testing.assert_array_equal(hands["win_rate"], hands["loss_rate"][:, ::-1])
    np.testing.assert_array_equal(hands["mean_length"][:, 0], hands["mean_length"][:, 1])
    report = match(game, player, player, games=128, seed=1)
    assert report["points_per_hand"] == (0, 0, 0)
    assert report["win_rate"].mean == report["loss_rate"].mean > 0


def test_report_of_gin_rummy(gin: Game) -> None:
    """All promised names with intervals; win, loss and tie share all rounds; n and n_pairs as asked."""
    report = match(gin, scrambled_policy(), scrambled_policy(), games=128, seed=3)
    assert (report.pop("n"), report.pop("n_pairs")) == (128, 64)
    rates = {"win_rate", "loss_rate", "tie_rate", "knock_rate", "gin_rate", "undercut_rate"}
    assert rates | {"points_per_hand", "mean_length"} <= report.keys()
    assert report["win_rate"].mean + report["loss_rate"].mean + report["tie_rate"].mean == pytest.approx(1)
    for name, value in report.items():
        assert isinstance(value, Interval)
        assert value.low <= value.mean <= value.high
        assert name not in rates or (value.low >= 0 and value.high <= 1)
    assert report["knock_rate"].mean > 0.1
    assert 2 < report["mean_length"].mean <= 30


@pytest.mark.parametrize("seed", [0, 1])
def test_points_equal_the_exact_expectation(seed: int) -> None:
    """Two random policies over 20,000 hands: the exact mean lies within two half-widths of the measured one."""
    ours, theirs = (random_table(_TREES(), 10 * seed + n) for n in range(2))
    exact = _exact_points(ours, theirs)
    points = match(GAME, _tabular(ours), _tabular(theirs), games=20_000, seed=seed)["points_per_hand"]
    assert abs(points.mean - exact) < points.high - points.low
    assert abs(exact) > 2 * (points.high - points.low)
    back = match(GAME, _tabular(theirs), _tabular(ours), games=20_000, seed=seed)["points_per_hand"]
    assert abs(back.mean + exact) < back.high - back.low


def test_both_seats_are_played_alike() -> None:
    """Of a pair the first hand is from seat 0 and the second from seat 1, on the same deal."""
    ours, theirs = (_tabular(random_table(_TREES(), n)) for n in (3, 4))
    hands = matches._play_pairs(GAME, ours, theirs, jax.random.key(0), matches.CHUNK, False)
    np.testing.assert_array_equal(hands["coin"][:, 0], hands["coin"][:, 1])
    assert 0.4 < hands["coin"].mean() < 0.6
    by_seat = hands["points_per_hand"].mean(axis=0)
    for seat in range(2):
        chances = {key: (ours if key[4] == seat else theirs) for key in random_table(_TREES(), 0)}
        table = {key: np.asarray(p.params)[key[0], key[1], key[2]] for key, p in chances.items()}
        exact = sum(c * sum(n.children[a][0][seat] for n, a in path) for c, path in trajectories(_TREES(), table))
        assert by_seat[seat] == pytest.approx(GAME.reward_scale * exact, abs=0.6)


@pytest.mark.parametrize("games", [4, 2 * matches.CHUNK, 2 * matches.CHUNK + 2, 5 * matches.CHUNK])
def test_chunks_do_not_show(games: int) -> None:
    """Fewer hands than a chunk, as many, two more, and two and a half: n is as asked, progress counts up to it."""
    reported: list[int] = []
    player = make_bot("random", GAME)
    report = match(GAME, player, player, games=games, seed=5, progress=reported.append)
    assert (report["n"], report["n_pairs"]) == (games, games // 2)
    assert reported[-1] == games
    assert reported == sorted(set(reported))
    parts = [report[f"{name}_rate"].mean for name in ("win", "loss", "tie")]
    assert sum(parts) == pytest.approx(1)
    assert all(part * games == pytest.approx(round(part * games)) for part in parts)


def test_chunks_are_dealt_differently() -> None:
    """Two chunks hold different hands, and so do two seeds; the same seed gives the same report."""
    player = make_bot("random", GAME)
    one, again, other = (match(GAME, player, player, games=4 * matches.CHUNK, seed=s) for s in (1, 1, 2))
    assert one == again
    assert one["points_per_hand"] != other["points_per_hand"]
    half = match(GAME, player, player, games=2 * matches.CHUNK, seed=1)
    assert half["points_per_hand"].mean != one["points_per_hand"].mean


@pytest.mark.parametrize("games", [0, 1, 2, 3, 7, -4, 101])
def test_odd_or_too_few_hands(games: int) -> None:
    """Said in one line."""
    with pytest.raises(InputError, match=f"games={games} is not valid; it must be a multiple of 2, at least 4"):
        match(GAME, make_bot("random", GAME), make_bot("random", GAME), games=games)


@pytest.mark.parametrize("games", [np.int64(8), jnp.int32(8)])
def test_numbers_of_games_may_be_scalars_of_numpy_and_jax(games: Any) -> None:
    """Which a match cannot be compiled for as they are."""
    assert check_games(GAME, games) == 8
    assert check_pairs(GAME, games) == 8
    assert type(check_games(GAME, games)) is type(check_pairs(GAME, games)) is int
    with pytest.raises(InputError, match=r"^games='8' is not valid; it must be a whole number, even and at least 4$"):
        check_pairs(GAME, "8")


@pytest.mark.parametrize("num_players", [2, 3])
@pytest.mark.parametrize("rules", [{"rewards": "points"}, {"reward": "shaped"}], ids=["points", "shaped"])
def test_who_has_won_where_rewards_are_not_opposite(rules: dict[str, Any], num_players: int) -> None:
    """Who has the highest score, as with zero-sum rewards on the same deals; points are the own score, in any case."""
    common = {"num_players": num_players, "hand_size": 3, "max_turns": 8}
    wanted, found = (
        matches.play_hands(game, make_bot("greedy", game), make_bot("random", game), games=32 * num_players, seed=3)
        for game in (make("rummy500", **common), make("rummy500", **common, **rules))
    )
    assert 0 < wanted["loss_rate"].mean() < 1
    for name in ("win_rate", "loss_rate", "tie_rate", "shared_win_rate", "score"):
        np.testing.assert_array_equal(found[name], wanted[name])
    won, lost, tied = (wanted[f"{name}_rate"] for name in ("win", "loss", "tie"))
    assert tied.sum() > 0
    np.testing.assert_array_equal(won + lost + tied, 1)
    assert np.all((won <= wanted["shared_win_rate"]) & (wanted["shared_win_rate"] <= won + tied / 2))
    np.testing.assert_array_equal(found["points_per_hand"], wanted["score"])


@pytest.mark.parametrize(("pairs", "split"), [(8, True), (9, True), (8, False)])
def test_rounds_are_split_over_the_devices_of_all_hosts(pairs: int, split: bool) -> None:
    """On a mesh of two devices each plays half of the rounds: in the program, which no device is needed for."""
    game = make("kuhn_poker")
    bot = make_bot("random", game)
    mesh = AbstractMesh((2,), (devices.AXIS,), axis_types=(AxisType.Auto,))
    with jax.sharding.use_abstract_mesh(mesh) if split else contextlib.nullcontext():
        play = functools.partial(matches._play_pairs.__wrapped__, game, bot, bot, pairs=pairs)
        program = jax.make_jaxpr(play)(jax.random.key(0))
    shares = [one.params["jaxpr"].outvars[1].aval.shape[0] for one in _equations(program.jaxpr, "shard_map")]
    assert shares == ([pairs] if split else [])


def _equations(jaxpr: Any, name: str) -> list[Any]:
    """Returns the equations of a primitive, those within others included."""
    values = [x for one in jaxpr.eqns for value in one.params.values() for x in np.ravel(np.array([value], object))]
    within = [inner for x in values if hasattr(inner := getattr(x, "jaxpr", x), "eqns")]
    return [one for one in jaxpr.eqns if one.primitive.name == name] + [x for j in within for x in _equations(j, name)]
