"""Checks that a game fulfils the interface on which learners rely, by a few random games; each fault is one line.

The contract tests check the same in full; this check is for third-party games and costs one small compilation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.chance_check import lists_what_it_plays
from envs.errors import InputError, refuse_name, whole_number
from envs.game import EnumerableGame, Game
from envs.registry import is_own
from envs.traces import forget_other_traces

RESERVED_RESULTS = frozenset(
    ("win_rate", "loss_rate", "tie_rate", "mean_length", "length", "games", "reward", "n", "n_pairs")
)
"""Names that matches and self-play report of every game; `Game.result` adds others."""
_NEVER = np.int32(2**31 - 1)
_MOST_ACTIONS = 2**15 - 1
"""Of a game: decisions and matches are recorded with their actions as int16."""
_TOLERANCE = 1e-5
"""By which the rewards of one step may miss a sum of 0, as a part of the largest of them (or of 1)."""
_CHANCE_TOLERANCE = 1e-3
"""By which probabilities may miss a sum of 1."""
_SOUND: set[tuple[type, Game, str]] = set()
"""The games that check_once has seen, by class and source key."""

_Carry = tuple[Array, Array, Any, Array, dict[str, Array]]
"""Steps done, those after the last game's end, states, what was paid so far and the faults found."""

_AT_THE_DEAL = "a game is over at its deal, where no step can pay; a player must be to act"
_FAULTS = {
    "dealt": f"init: {_AT_THE_DEAL}",
    "player": "step: current_player is not -1 to {players} - 1",
    "done": "step: done is not True exactly where current_player is -1",
    "no_action": "legal_actions: no action is legal while a player is to act",
    "late_action": "legal_actions: an action is legal after the end",
    "finite": "step: a reward is not finite",
    "sum": "step: the rewards do not sum to 0 (a game that is not zero-sum says zero_sum = False)",
    "early": "step: it pays before the end (a game that does says pays_at_end = False)",
    "changes": "step: a finished game changes, or pays",
    "seat": "view: `seat` is not the player whose view it is",
    "observation": "encode: the observation holds a number that is not finite",
    "resampled": "view: it changes when resample_chance deals again what nobody has seen",
    "determinized": "view: it changes when determinize or likely_world deals again what the player cannot see",
    "potential": "potential: it is not finite",
    "phase": "phase: it is not an index into phases",
    "chance": "outcomes: probabilities are below 0, or do not sum to 1",
    "paid": "outcomes: rewards are not finite, or do not sum to 0 where the game is zero-sum",
    "among": "outcomes: what step does is not among them; views, rewards and ends are compared",
    "worst": "worst_reward is {worst}, and a player is paid less in all",
    "points": "result: points_per_hand of the two players do not sum to 0; points that do not are named score",
    "long": "max_length: a game goes on after {length} actions",
}
"""Fault -> the method and what is wrong; in the order in which the first is reported."""


def check_game(game: Game, key: Array | None = None, *, games: int = 8) -> None:
    """Checks that a game fulfils the interface of `envs.Game`, by its shapes and by a few random games.

    Args:
      game: of any kind.
      key: of the deals and actions; by default a fixed one.
      games: number of games played.
    Raises:
      InputError: one line that names the game, the method and what is wrong; or no games.
    """
    if not isinstance(game, Game):
        raise InputError(f"a {type(game).__name__} is not a game; it must be an envs.Game")
    if whole_number("games", games, "1 or more") < 1:
        raise InputError(f"games={games} is not valid; it must be at least 1")
    _check_attributes(game)
    _check_shapes(game)
    key = jax.random.key(0) if key is None else key
    try:
        first = jax.device_get(_play(game, jax.random.split(key, games)))
    except Exception as error:
        raise _fault(game, f"a game cannot be played compiled: {_line(error)}") from error
    for name, text in _FAULTS.items():
        step, lane = int(np.min(first[name])), int(np.argmin(first[name]))
        if step != _NEVER:
            text = text.format(players=game.num_players, length=game.max_length, worst=game.worst_reward)
            raise _fault(game, f"{text}; in random game {lane + 1}, after {step} actions")
    if isinstance(game, EnumerableGame):
        _check_deals(game, jax.random.split(key, games))


def check_once(game: Game) -> None:
    """Checks a third-party game, once per process for all equal games with the same source.

    Raises:
      InputError: as check_game.
    """
    refuse_name(game, "game")
    if not isinstance(game, Game) or is_own(game):
        return
    try:
        known = {(type(game), game, forget_other_traces(game))}
    except Exception:
        known = set()  # not to be hashed, which is what the check says
    if not known or not known <= _SOUND:
        check_game(game)
        _SOUND.update(known)


def check_two_player_zero_sum(game: Game, what: str, instead: str = "") -> None:
    """Raises InputError unless a game is for two players and zero-sum.

    Args:
      game: what is to be played.
      what: needs that, with its article.
      instead: what to use with other games, in words.
    """
    if game.num_players != 2:
        why = f"has {game.num_players} players"
    elif not game.zero_sum:
        why = "is not zero-sum with these rules"
    else:
        return
    mend = f"; {instead}" if instead else ""
    raise InputError(f"{what} needs a two-player zero-sum game, and {game.name} {why}{mend}")


def _fault(game: Game, text: str) -> InputError:
    return InputError(f"game {getattr(game, 'name', type(game).__name__)!r}: {text}")


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def _read(game: Game, name: str) -> Any:
    """Returns an attribute, None where there is none; one that is computed from the rules may fail."""
    try:
        return getattr(game, name, None)
    except Exception as error:
        raise _fault(game, f"{name} fails: {_line(error)}; are its rules of the right kind?") from error


def _check_attributes(game: Game) -> None:
    """Checks names, sizes and the hash."""
    for name in ("name", "version", "unit"):
        value = _read(game, name)
        if not isinstance(value, str) or not value:
            raise _fault(game, f"{name} is {value!r}; it must be a string")
    for name in ("num_players", "num_actions", "observation_size", "max_length"):
        value = _read(game, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise _fault(game, f"{name} is {value!r}; it must be a whole number of 1 or more")
    if game.num_actions > _MOST_ACTIONS:
        raise _fault(game, f"num_actions is {game.num_actions}; it must be at most {_MOST_ACTIONS}: records hold int16")
    scale, phases = _read(game, "reward_scale"), _read(game, "phases")
    if not isinstance(scale, int | float | np.number) or not np.isfinite(scale) or scale <= 0:
        raise _fault(game, f"reward_scale is {scale!r}; it must be a number above 0")
    worst = _read(game, "worst_reward")
    if worst is not None and (not isinstance(worst, int | float | np.number) or not np.isfinite(worst)):
        raise _fault(game, f"worst_reward is {worst!r}; it must be a number, the least that a player is paid in all")
    payment = _read(game, "largest_payment")
    if not isinstance(payment, int | float | np.number) or not np.isfinite(payment) or payment < 0:
        raise _fault(
            game, f"largest_payment is {payment!r}; it must be a number of 0 or more, the most paid in one step"
        )
    if not isinstance(phases, tuple) or not phases or not all(isinstance(phase, str) for phase in phases):
        raise _fault(game, f"phases is {phases!r}; it must be a tuple of names")
    try:
        same = hash(game) == hash(game) and game == game
    except Exception as error:
        raise _fault(game, f"it cannot be hashed and compared ({_line(error)}); make it a frozen dataclass") from error
    if not same:
        raise _fault(game, "it does not equal itself; make it a frozen dataclass")


def _check_shapes(game: Game) -> None:
    """Checks what every method takes and returns, without computing anything."""
    key, seat = jax.eval_shape(lambda: jax.random.key(0)), jax.ShapeDtypeStruct((), np.int32)
    state = _traced(game, "init", game.init, key)
    if not hasattr(state, "current_player"):
        raise _fault(game, "init: the state has no current_player; it must be int32, -1 once the game is over")
    _expect(game, "init: current_player", state.current_player, (), np.int32)
    legal = _traced(game, "legal_actions", game.legal_actions, state)
    _expect(game, "legal_actions: the mask", legal, (game.num_actions,), np.bool_)
    stepped = _traced(game, "step", game.step, state, seat)
    if not isinstance(stepped, tuple) or len(stepped) != 3:
        raise _fault(game, "step: it must return (state, rewards, done)")
    after, rewards, done = stepped
    _expect_like(game, "step: the state", after, state, "init gives")
    _expect(game, "step: the rewards", rewards, (game.num_players,), np.float32)
    _expect(game, "step: done", done, (), np.bool_)
    view = _traced(game, "view", game.view, state, seat)
    if not hasattr(view, "seat"):
        raise _fault(game, "view: it has no field seat; a view is a NamedTuple with `seat`, whose view it is")
    for leaf in jax.tree.leaves(view):
        if not (leaf.dtype == np.bool_ or jnp.issubdtype(leaf.dtype, jnp.unsignedinteger)):
            raise _fault(game, f"view: it holds {leaf.dtype}; it must hold unsigned integers and bools")
    _expect(game, "encode: the observation", _traced(game, "encode", game.encode, view), (game.observation_size,))
    _expect(game, "potential", _traced(game, "potential", game.potential, state, seat), ())
    _expect(game, "phase", _traced(game, "phase", game.phase, state), (), np.int32)
    for name, value in _traced(game, "result", game.result, state, seat).items():
        if name in RESERVED_RESULTS:
            raise _fault(game, f"result: {name} is measured of every game; choose another name")
        _expect(game, f"result: {name}", value, ())
    if game.auxiliary is not None:
        _expect(game, "auxiliary", _traced(game, "auxiliary", game.auxiliary, state, seat), ())
    _expect_like(game, "resample_chance", _traced(game, "resample_chance", game.resample_chance, state, key), state)
    if _determinizes(game):
        _expect_like(game, "determinize", _traced(game, "determinize", game.determinize, view, key), state)
        likely = _traced(game, "likely_world", game.likely_world, view, key)
        _expect_like(
            game, "likely_world", likely, (state, jnp.float32(0)), "a state and the logarithm of a weight have"
        )
    if isinstance(game, EnumerableGame):
        _check_outcomes(game, state)


def _check_outcomes(game: EnumerableGame, state: Any) -> None:
    """Checks what `outcomes` returns, without computing anything."""
    outcomes = _traced(game, "outcomes", game.outcomes, state, jax.ShapeDtypeStruct((), np.int32))
    if not isinstance(outcomes, tuple) or len(outcomes) != 4:
        raise _fault(game, "outcomes: it must return (states, probs, rewards, done)")
    after, probs, rewards, done = outcomes
    count = _listed(game, "outcomes", probs)
    _expect(game, "outcomes: the rewards", rewards, (count, game.num_players))
    _expect(game, "outcomes: done", done, (count,), np.bool_)
    listed = jax.tree.map(lambda x: jax.ShapeDtypeStruct((count, *x.shape), x.dtype), state)
    _expect_like(game, "outcomes: the states", after, listed, "states of init, one after another, have")


def _listed(game: Game, where: str, probs: Any) -> int:
    """Returns how many outcomes there are, by their probabilities."""
    if len(getattr(probs, "shape", ())) != 1:
        got = f"{probs.dtype}{list(probs.shape)}" if hasattr(probs, "shape") else type(probs).__name__
        raise _fault(game, f"{where}: the probabilities is {got}; it must be float32[number of outcomes]")
    _expect(game, f"{where}: the probabilities", probs, probs.shape)
    return probs.shape[0]


def _check_deals(game: EnumerableGame, keys: Array) -> None:
    """Checks that what `init` deals is among the initial outcomes, by the views, and as often as their chances say."""
    try:
        states, probs = jax.device_get(jax.jit(game.initial_outcomes)())
    except InputError:
        return  # too many to be listed
    except Exception as error:
        raise _fault(game, f"initial_outcomes fails: {_line(error)}") from error
    _listed(game, "initial_outcomes", probs)
    if not hasattr(states, "current_player"):
        raise _fault(game, "initial_outcomes: it must return (states, probs)")
    probs = np.asarray(probs, np.float64)
    if np.any(probs < 0) or not abs(probs.sum() - 1) < _CHANCE_TOLERANCE:
        raise _fault(game, f"initial_outcomes: probabilities sum to {probs.sum():g}; all must be 0 or more, the sum 1")
    if np.any((probs > 0) & (states.current_player < 0)):
        raise _fault(game, f"initial_outcomes: {_AT_THE_DEAL}")
    dealt, listed = jax.device_get((_views(game, jax.vmap(game.init)(keys)), _views(game, states)))
    for lane in range(len(keys)):
        same = probs > 0
        for one, all_of_them in zip(jax.tree.leaves(dealt), jax.tree.leaves(listed), strict=True):
            same &= np.all((one[lane] == all_of_them).reshape(len(probs), -1), axis=1)
        if not same.any():
            raise _fault(game, f"initial_outcomes: the deal of random game {lane + 1} is not among them, by its views")
    if not lists_what_it_plays(game, keys[0]):
        raise _fault(
            game,
            "initial_outcomes and outcomes: games drawn from what they list differ from those that init and step play; "
            "a game with chance after the deal needs its own outcomes",
        )


@functools.partial(jax.jit, static_argnums=0)
def _views(game: Game, states: Any) -> Any:
    """Returns what all players see in some states: [N, P, ...]."""
    seats = jnp.arange(game.num_players, dtype=jnp.int32)
    return jax.vmap(lambda state: jax.vmap(lambda seat: game.view(state, seat))(seats))(states)


def _determinizes(game: Game) -> bool:
    """Returns whether a game deals anew what a view does not show; it refuses with an InputError where it does not."""
    if type(game).determinize is Game.determinize:
        return False
    try:
        jax.eval_shape(lambda key: game.determinize(game.view(game.init(key), 0), key), jax.random.key(0))
    except InputError:
        return False
    except Exception as error:
        raise _fault(game, f"determinize fails: {_line(error)}") from error
    return True


def _traced(game: Game, name: str, method: Callable[..., Any], *args: Any) -> Any:
    """Returns the shapes of what a method returns."""
    try:
        return jax.eval_shape(method, *args)
    except Exception as error:
        raise _fault(game, f"{name} fails: {_line(error)}") from error


def _expect(game: Game, what: str, value: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> None:
    got = f"{value.dtype}{list(value.shape)}" if hasattr(value, "shape") else type(value).__name__
    if not hasattr(value, "shape") or value.shape != shape or value.dtype != dtype:
        raise _fault(game, f"{what} is {got}; it must be {np.dtype(dtype)}{list(shape)}")


def _expect_like(game: Game, what: str, value: Any, wanted: Any, who: str = "a state has") -> None:
    """Checks that a value has the structure, shapes and types of another."""
    if jax.tree.structure(value) != jax.tree.structure(wanted):
        raise _fault(game, f"{what} is not built like what {who}")
    for (path, leaf), other in zip(jax.tree_util.tree_leaves_with_path(value), jax.tree.leaves(wanted), strict=True):
        if (leaf.shape, leaf.dtype) != (other.shape, other.dtype):
            place, got = jax.tree_util.keystr(path), f"{leaf.dtype}{list(leaf.shape)}"
            raise _fault(game, f"{what}{place} is {got}; {who} {other.dtype}{list(other.shape)}")


def _mixed(x: Array) -> Array:
    """Returns a hash of words, uint32: random bits that compile faster than those of a key."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


def _key(bits: Array) -> Array:
    """Returns the key made of one word."""
    return jax.random.wrap_key_data(jnp.stack([bits, _mixed(bits)]), impl="threefry2x32")


def _differs(one: Any, two: Any) -> Array:
    """Returns whether any entry of two like pytrees differs: bool."""
    changed = [jnp.any(x != y) for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)]
    return functools.reduce(jnp.logical_or, changed, jnp.bool_(False))


@functools.partial(jax.jit, static_argnums=0)
def _play(game: Game, keys: Array) -> dict[str, Array]:
    """Plays games at random, until two steps past the last one's end or past the longest allowed.

    Args:
      game: what is played.
      keys: one for each game.
    Returns:
      Fault -> int32[games], the number of actions after which it was first seen, _NEVER where it was not.
    """
    states = jax.vmap(game.init)(keys)
    games, seeds = keys.shape[0], jax.random.key_data(keys)[:, -1].astype(jnp.uint32)
    found = {name: jnp.full(games, _NEVER) for name in _FAULTS}
    look = jax.vmap(functools.partial(_look, game, determinizes=_determinizes(game)))
    least = _least(game)

    def body(carry: _Carry) -> _Carry:
        t, past, states, paid, found = carry
        after, rewards, faults = look(states, _mixed(seeds + t.astype(jnp.uint32) * np.uint32(0x9E3779B9)))
        paid = paid + rewards
        faults["dealt"] = (t == 0) & (states.current_player < 0)
        faults["worst"] = (after.current_player < 0) & jnp.any(paid < least, axis=1)
        faults["long"] = (t == game.max_length) & (states.current_player >= 0)
        found = {name: jnp.where(faults[name], jnp.minimum(was, t), was) for name, was in found.items()}
        return t + 1, past + jnp.all(states.current_player < 0), after, paid, found

    def goes_on(carry: _Carry) -> Array:
        t, past, *_ = carry
        return (t <= game.max_length) & (past < 2)

    paid = jnp.zeros((games, game.num_players), jnp.float32)
    return lax.while_loop(goes_on, body, (jnp.int32(0), jnp.int32(0), states, paid, found))[-1]


def _least(game: Game) -> float:
    """Returns what no player is paid less than in all, by the game's worst reward; -inf where it says none."""
    worst = game.worst_reward
    return -np.inf if worst is None else float(worst) - _TOLERANCE * max(abs(float(worst)), 1.0)


def _look(game: Game, state: Any, bits: Array, *, determinizes: bool) -> tuple[Any, Array, dict[str, Array]]:
    """Plays one action at random: what `step` gives but the end, and which faults it or the state before it shows."""
    player, seats = state.current_player, jnp.arange(game.num_players, dtype=jnp.int32)
    over = player < 0
    legal = game.legal_actions(state)
    nth = bits % jnp.maximum(jnp.sum(legal), 1).astype(jnp.uint32)
    action = jnp.argmax(jnp.cumsum(legal) == nth + 1).astype(jnp.int32)
    after, rewards, done = game.step(state, action)
    views = jax.vmap(lambda seat: game.view(state, seat))(seats)
    size = jnp.maximum(jnp.max(jnp.abs(rewards)), 1.0)
    phase = game.phase(state)
    faults = {
        "player": (player < -1) | (player >= game.num_players),
        "done": done != (after.current_player < 0),
        "no_action": ~over & ~jnp.any(legal),
        "late_action": over & jnp.any(legal),
        "finite": ~jnp.all(jnp.isfinite(rewards)),
        "sum": jnp.bool_(game.zero_sum) & (jnp.abs(jnp.sum(rewards)) > _TOLERANCE * size),
        "early": jnp.bool_(game.pays_at_end) & ~done & jnp.any(rewards != 0),
        "changes": over & (_differs(after, state) | jnp.any(rewards != 0) | ~done),
        "seat": jnp.any(views.seat != seats),
        "observation": ~jnp.all(jnp.isfinite(jax.vmap(game.encode)(views))),
        "potential": ~jnp.all(jnp.isfinite(jax.vmap(lambda seat: game.potential(state, seat))(seats))),
        "phase": ~over & ((phase < 0) | (phase >= len(game.phases))),
        "points": ~over & (after.current_player < 0) & _points_apart(game, after),
        **dict.fromkeys(("resampled", "determinized", "chance", "paid", "among"), jnp.bool_(False)),
    }
    if isinstance(game, EnumerableGame):
        wrong = _outcome_faults(game, state, action, (after, rewards, done))
        faults |= {name: ~over & fault for name, fault in wrong.items()}
    if type(game).resample_chance is not Game.resample_chance:
        dealt = game.resample_chance(state, _key(bits))
        faults["resampled"] = ~over & _differs(jax.vmap(lambda seat: game.view(dealt, seat))(seats), views)
    if determinizes:
        seat = jnp.maximum(player, 0)
        view = jax.tree.map(lambda x: x[seat], views)
        worlds = game.determinize(view, _key(~bits)), game.likely_world(view, _key(~bits))[0]
        differ = [_differs(game.view(world, seat), view) for world in worlds]
        faults["determinized"] = ~over & (differ[0] | differ[1])
    return after, rewards, faults


def _points_apart(game: Game, state: Any) -> Array:
    """Returns whether points that a game for two reports of a finished state do not sum to 0: bool."""
    seats = range(2 if game.num_players == 2 else 0)
    each = [game.result(state, jnp.int32(seat)).get("points_per_hand") for seat in seats]
    if not each or each[0] is None:
        return jnp.bool_(False)
    return ~(jnp.abs(each[0] + each[1]) <= _TOLERANCE * jnp.maximum(jnp.abs(each[0]), 1.0))


def _outcome_faults(
    game: EnumerableGame, state: Any, action: Array, stepped: tuple[Any, Array, Array]
) -> dict[str, Array]:
    """Returns which faults the outcomes of an action show, with what `step` made of it."""
    after, rewards, done = stepped
    states, probs, paid, ended = game.outcomes(state, action)
    size = jnp.maximum(jnp.max(jnp.abs(paid), axis=1), 1.0)
    sound = jnp.all(jnp.isfinite(paid), axis=1) & (
        jnp.bool_(not game.zero_sum) | (jnp.abs(jnp.sum(paid, axis=1)) <= _TOLERANCE * size)
    )
    same = (probs > 0) & (ended == done) & (states.current_player == after.current_player)
    same &= jnp.all(jnp.abs(paid - rewards) <= _TOLERANCE * size[:, None], axis=1)
    came = _views(game, jax.tree.map(lambda x: x[None], after))
    for one, listed in zip(jax.tree.leaves(came), jax.tree.leaves(_views(game, states)), strict=True):
        same &= jnp.all((one == listed).reshape(probs.shape[0], -1), axis=1)
    return {
        "chance": jnp.any(probs < 0) | ~(jnp.abs(jnp.sum(probs) - 1) < _CHANCE_TOLERANCE),
        "paid": jnp.any((probs > 0) & ~sound),
        "among": ~jnp.any(same),
    }
