"""Every registered game keeps the promises of `envs.game.Game`; a new game inherits these tests."""

from __future__ import annotations

import dataclasses
import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array, lax

import envs
from envs.game import EnumerableGame, EventLog, Game
from envs.random_play import uniform_action

LANES = 48
DEALS = 1_024


@dataclasses.dataclass(frozen=True)
class Played:
    """Random games, [T, LANES, ...] each: the state before a step, all views of it, and what the step gave."""

    game: Game
    states: Any
    views: Any
    legal: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    done: np.ndarray

    @property
    def in_play(self) -> np.ndarray:
        """Returns whether the game was not over yet: bool[T, LANES]."""
        return self.states.current_player >= 0

    def seen_by_actor(self) -> Any:
        """Returns the view of the player to act: [T, LANES, ...]."""
        t, lane = np.ogrid[: self.legal.shape[0], :LANES]
        seat = np.maximum(self.states.current_player, 0)
        return jax.tree.map(lambda x: x[t, lane, seat], self.views)


def _seats(game: Game) -> np.ndarray:
    return np.arange(game.num_players, dtype=np.int32)


def _action(game: Game, state: Any, bits: Array) -> Array:
    legal = game.legal_actions(state)
    return jnp.where(jnp.any(legal), uniform_action(bits, legal), 0)


def _bits(key: Array, t: Array) -> Array:
    return jax.random.bits(jax.random.fold_in(key, t), (DEALS,))


@functools.partial(jax.jit, static_argnums=0)
def _play(game: Game, key: Array) -> tuple:
    """Plays LANES games picked from DEALS: half of them decided ones, as far as there are any, half ties."""
    deal_key, play_key = jax.random.split(key)
    deals = jax.vmap(game.init)(jax.random.split(deal_key, DEALS))

    def look(carry: tuple, t: Array) -> tuple:
        states, decided = carry
        actions = jax.vmap(functools.partial(_action, game))(states, _bits(play_key, t))
        states, rewards, _ = jax.vmap(game.step)(states, actions)
        return (states, decided | jnp.any(rewards != 0, axis=1)), None

    decided = lax.scan(look, (deals, jnp.zeros(DEALS, bool)), jnp.arange(game.max_length))[0][1]
    order = jnp.argsort(~decided)
    lanes = jnp.concatenate([order[: LANES // 2], order[LANES // 2 - LANES :]])

    def one(state: Any, bits: Array) -> tuple:
        views = jax.vmap(lambda seat: game.view(state, seat))(_seats(game))
        action = _action(game, state, bits)
        after, rewards, done = game.step(state, action)
        return after, (state, views, game.legal_actions(state), action, rewards, done)

    def body(states: Any, t: Array) -> tuple:
        return jax.vmap(one)(states, _bits(play_key, t)[lanes])

    return lax.scan(body, jax.tree.map(lambda x: x[lanes], deals), jnp.arange(game.max_length + 2))[1]


@pytest.fixture(scope="module", params=envs.names())
def played(request: pytest.FixtureRequest) -> Played:
    """Random games of each registered game, to two steps past the longest."""
    game = envs.make(request.param)
    return Played(game, *jax.device_get(_play(game, jax.random.key(60))))


@pytest.fixture(scope="module")
def sampled(played: Played) -> Any:
    """At most 480 views, of both players, from all stages of the games."""
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:]), played.views)
    size = len(jax.tree.leaves(flat)[0])
    return jax.tree.map(lambda x: x[:: -(-size // 480)], flat)


def test_a_game_describes_itself(played: Played) -> None:
    """Sizes are positive integers, names are text."""
    game = played.game
    sizes = (game.num_players, game.num_actions, game.observation_size, game.max_length)
    assert all(type(size) is int and size > 0 for size in sizes)
    assert all(isinstance(text, str) and text for text in (game.name, game.version, game.unit, *game.phases))
    assert game.reward_scale > 0
    assert game.worst_reward < 0
    log, features, ids = game.event_log, game.card_features, game.opponent_ids
    assert log is None or 0 < log.growth <= log.slots
    assert log is None or log.observation_size == game.observation_size
    assert features is None or features.choices > 0
    assert ids is None or ids.kinds > 0
    assert game.event_log == log
    assert game.card_features == features


def test_equal_games_are_one(played: Played) -> None:
    """Equal, of equal hash, hence usable as a static argument of jit and as a key."""
    again = envs.make(played.game.name)
    assert again == played.game
    assert hash(again) == hash(played.game)
    assert len({again, played.game}) == 1


def test_identity_is_json(played: Played) -> None:
    """Name, version and rules survive JSON unchanged."""
    identity = played.game.identity
    assert json.loads(json.dumps(identity)) == identity
    assert (identity["name"], identity["version"]) == (played.game.name, played.game.version)


def test_a_state_in_words_is_json(played: Played) -> None:
    """From the deal, the middle and past the end."""
    for t in (0, played.legal.shape[0] // 2, -1):
        words = played.game.to_dict(jax.tree.map(lambda x, t=t: x[t, 0], played.states))
        assert words
        assert json.loads(json.dumps(words)) == words


def test_shapes_and_types(played: Played) -> None:
    """Legal actions, rewards, done and player to act are as the interface says."""
    game, batch = played.game, played.legal.shape[:2]
    assert played.legal.dtype == bool
    assert played.legal.shape == (*batch, game.num_actions)
    assert played.rewards.dtype == np.float32
    assert played.rewards.shape == (*batch, game.num_players)
    assert played.done.dtype == bool
    assert played.done.shape == batch
    assert played.states.current_player.dtype == np.int32
    assert played.states.current_player.shape == batch


def test_player_to_act_and_legal_actions(played: Played) -> None:
    """In play a seat is to act and has a choice; once over nobody is and nothing is legal."""
    player = played.states.current_player
    assert player.max() < played.game.num_players
    assert player.min() == -1
    np.testing.assert_array_equal(played.legal.any(axis=2), played.in_play)


def test_games_end_in_time_and_stay_ended(played: Played) -> None:
    """Done from the last action on, at most max_length actions, and no step changes a finished game."""
    assert not played.in_play[played.game.max_length :].any()
    np.testing.assert_array_equal(played.done[:-1], ~played.in_play[1:])
    over = ~played.in_play[:-1]
    assert over[-1].all()
    assert played.in_play[0].all()
    for leaf in jax.tree.leaves(played.states):
        np.testing.assert_array_equal(leaf[:-1][over], leaf[1:][over])


def test_rewards_are_zero_sum_and_end_games_only(played: Played) -> None:
    """Nothing is paid before the last action nor after it; some games are decided."""
    pays = played.in_play & played.done
    assert not played.rewards[~pays].any()
    assert played.rewards[pays].any()
    np.testing.assert_allclose(played.rewards.sum(axis=2), 0, atol=1e-6)
    assert np.isfinite(played.rewards).all()
    assert played.rewards.sum(axis=0).min() >= played.game.worst_reward


@functools.partial(jax.jit, static_argnums=0)
def _ahead(game: EnumerableGame, states: Any, actions: Array) -> tuple[Any, Array, Array, Array]:
    """Returns all that each action could lead to: the views of all players there, chance, rewards, done."""
    after, chance, rewards, done = jax.vmap(game.outcomes)(states, actions)
    views = jax.vmap(jax.vmap(lambda state: jax.vmap(lambda p: game.view(state, p))(_seats(game))))(after)
    return views, chance, rewards, done


def test_what_came_of_an_action_is_among_its_outcomes(played: Played) -> None:
    """Also in a game that `init` dealt, where chance's later moves are decided already."""
    if not isinstance(played.game, EnumerableGame):
        pytest.skip("the game is too large to be walked through")
    picked = np.argwhere(played.in_play[:-1])
    t, lane = picked[np.random.default_rng(0).permutation(len(picked))[:256]].T
    states = jax.tree.map(lambda x: x[t, lane], played.states)
    views, chance, rewards, done = jax.device_get(_ahead(played.game, states, played.actions[t, lane]))
    np.testing.assert_allclose(chance.sum(axis=1), 1.0, atol=1e-6)
    same = (chance > 0) & (done == played.done[t, lane][:, None])
    same &= np.all(rewards == played.rewards[t, lane][:, None], axis=-1)
    for there, came in zip(jax.tree.leaves(views), jax.tree.leaves(played.views), strict=True):
        came = came[t + 1, lane][:, None]
        same &= np.all((there == came).reshape(*same.shape, -1), axis=-1)
    assert np.all(same.sum(axis=1) == 1)


def test_observe_encodes_the_view(played: Played) -> None:
    """observe(state, player) is encode(view(state, player)) to the bit: float32[observation_size], finite."""
    game = played.game
    some = jax.tree.map(lambda x: x[:: max(1, len(x) // 4)].reshape(-1, *x.shape[2:]), played.states)
    seen = jax.tree.map(lambda x: x[:: max(1, len(x) // 4)].reshape(-1, *x.shape[3:]), played.views)
    observe = jax.jit(jax.vmap(lambda state: jax.vmap(lambda seat: game.observe(state, seat))(_seats(game))))
    observed = np.asarray(observe(some)).reshape(-1, game.observation_size)
    assert observed.dtype == np.float32
    assert np.isfinite(observed).all()
    np.testing.assert_array_equal(observed, jax.jit(jax.vmap(game.encode))(seen))


def test_view_is_small_plain_data(played: Played) -> None:
    """Masks and small integers; less memory than the observation it encodes."""
    leaves = [x[0, 0, 0] for x in jax.tree.leaves(played.views)]
    assert all(np.issubdtype(x.dtype, np.unsignedinteger) or x.dtype == bool for x in leaves)
    size = sum(x.nbytes for x in leaves)
    assert size < 4 * played.game.observation_size
    assert played.game.observation_size < 1_000 or 10 * size < 4 * played.game.observation_size


def test_a_view_tells_whose_it_is(played: Played) -> None:
    """Learners with a network for each player choose it by the view's `seat`."""
    seat = played.views.seat
    np.testing.assert_array_equal(seat, np.broadcast_to(_seats(played.game), seat.shape))


def test_card_features_name_their_actions(played: Played) -> None:
    """Every card has as many actions as the record says, -1 or in range, and no action is about two cards."""
    game, features = played.game, played.game.card_features
    if features is None:
        pytest.skip("the game has no card features")
    views = jax.tree.map(lambda x: x[played.in_play][:256], played.seen_by_actor())
    whole, each, actions = jax.jit(jax.vmap(lambda view: features.of_observation(game.encode(view))))(views)
    assert np.all(np.isfinite(whole))
    assert np.all(np.isfinite(each))
    assert actions.shape == (*each.shape[:2], features.choices)
    assert np.all((actions >= -1) & (actions < game.num_actions))
    for row in np.asarray(actions).reshape(len(actions), -1):
        named = row[row >= 0]
        assert len(set(named)) == len(named)
    assert np.any(actions >= 0)


def test_dense_part_and_log_slots_make_the_observation(played: Played, sampled: Any) -> None:
    """encode(view) is dense(view) at dense_indices plus the entries of the log slots filled; other slots are empty."""
    game, event_log = played.game, played.game.event_log
    if event_log is None:
        pytest.skip("the observation has no log")
    indices = np.asarray(event_log.dense_indices)
    assert len(np.unique(indices)) == len(indices)
    assert set(indices.tolist()) <= set(range(game.observation_size))
    encoded, dense = (np.asarray(jax.jit(jax.vmap(part))(sampled)) for part in (game.encode, event_log.dense))
    assert dense.shape[1:] == indices.shape
    assert dense.dtype == np.float32
    built = np.zeros_like(encoded)
    built[:, indices] = dense
    span = event_log.offset + np.arange(event_log.slots * event_log.width)
    assert not set(span.tolist()) & set(indices.tolist())
    lengths, rows, values = _log(event_log, sampled)
    filled = np.arange(event_log.slots) < lengths[:, None]
    assert not values[~filled].any()
    assert lengths.max() > 1
    lane = np.broadcast_to(np.arange(len(built))[:, None, None], rows.shape)
    np.add.at(built, (lane[filled], rows[filled]), values[filled])
    np.testing.assert_array_equal(built, encoded)


def _log(log: EventLog, views: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns lengths [N], rows and values [N, slots, R] of the views' logs; rows are 0 where the value is."""
    slots = np.arange(log.slots, dtype=np.int32)
    read = jax.jit(jax.vmap(lambda view: (log.length(view), jax.vmap(lambda s: log.slot(view, s))(slots))))
    lengths, (rows, values) = jax.device_get(read(views))
    assert lengths.dtype == np.int32
    assert rows.dtype == np.int32
    assert values.dtype == np.float32
    within = rows - log.offset - slots[:, None] * log.width
    assert np.all((values == 0) | ((within >= 0) & (within < log.width)))
    return lengths, np.where(values == 0, 0, rows), values


def test_log_only_grows_between_decisions(played: Played) -> None:
    """A player's next decision repeats the slots of its last one and adds at most `growth`; at first from none."""
    game, event_log = played.game, played.game.event_log
    if event_log is None:
        pytest.skip("the observation has no log")
    lanes = range(0, LANES, 4)
    seen = jax.tree.map(lambda x: x[:, lanes].reshape(-1, *x.shape[2:]), played.seen_by_actor())
    logs, most = [x.reshape(-1, len(lanes), *x.shape[1:]) for x in _log(event_log, seen)], 0
    for n, lane in enumerate(lanes):
        lengths, rows, values = (x[:, n] for x in logs)
        for seat in _seats(game):
            turns = np.flatnonzero(played.states.current_player[:, lane] == seat)
            known = np.concatenate([[0], lengths[turns]]).astype(int)
            assert np.all(np.diff(known) >= 0)
            most = max(most, np.diff(known).max(initial=0))
            for before, now, kept in zip(turns[:-1], turns[1:], known[1:-1], strict=True):
                np.testing.assert_array_equal(rows[before, :kept], rows[now, :kept])
                np.testing.assert_array_equal(values[before, :kept], values[now, :kept])
    assert most == event_log.growth


def test_potential_phase_and_result(played: Played) -> None:
    """Finite float32 scalars; the phase of a decision is an index into the phases' names, and each occurs."""
    game = played.game

    def tell(state: Any) -> tuple:
        reported = jax.vmap(lambda seat: (game.potential(state, seat), game.result(state, seat)))(_seats(game))
        return *reported, game.phase(state)

    potential, result, phase = jax.device_get(jax.jit(jax.vmap(jax.vmap(tell)))(played.states))
    batch = played.legal.shape[:2]
    assert phase.dtype == np.int32
    assert phase.shape == batch
    decisions = phase[played.in_play]
    assert np.unique(decisions).tolist() == list(range(len(game.phases)))
    for value in (potential, *result.values()):
        assert value.dtype == np.float32
        assert value.shape == (*batch, game.num_players)
        assert np.isfinite(value).all()
    assert all(isinstance(name, str) and name for name in result)


def test_one_game_alone_plays_like_one_of_a_batch(played: Played) -> None:
    """Unbatched calls, whose branches are taken one way, give what the batched ones gave."""
    game = played.game
    decided = np.flatnonzero((played.rewards != 0).any(axis=(0, 2)))[:2]
    step, legal = jax.jit(game.step), jax.jit(game.legal_actions)
    for lane in decided:
        state = jax.tree.map(lambda x, lane=lane: jnp.asarray(x[0, lane]), played.states)
        for t, action in enumerate(played.actions[:, lane]):
            for ours, theirs in zip(jax.tree.leaves(state), jax.tree.leaves(played.states), strict=True):
                np.testing.assert_array_equal(ours, theirs[t, lane])
            np.testing.assert_array_equal(legal(state), played.legal[t, lane])
            state, rewards, done = step(state, action)
            np.testing.assert_array_equal(rewards, played.rewards[t, lane])
            assert done == played.done[t, lane]
