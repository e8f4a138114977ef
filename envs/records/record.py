"""One game that was played: as plain data, played through its game, in words and as a picture (host side)."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

import envs
from envs import drawing
from envs.batching import QUICK
from envs.errors import InputError, refuse_name, shown, whole_number
from envs.game import Game, State
from envs.totals import settled

FORMAT = 2
_OLD_ENDINGS = {"draw": "tie"}
"""Words for an ending in records written before they changed."""
_TOLERANCE = 1e-3
"""By which points may differ, as they are sums of float32."""
_MOST_NAME = 40
_MOST_POINTS = 1e12
"""Beyond any game's."""


@dataclasses.dataclass(frozen=True)
class Record:
    """A game that was played; the fields are the keys of its JSON object.

    Attributes:
      game, version: of the game.
      rules: by name.
      deal: the numbers that `Game.from_deal` takes.
      actions: action ids.
      result: `points` of each player, and `ending` in words where the game has one.
      players: who played, by seat; empty where not known.
      preset: name of the rules, None where they have none.
      about: what else belongs to it, names to texts and numbers.
      place: where the record was read, for messages.
    """

    game: str
    version: str
    rules: Mapping[str, Any]
    deal: tuple[int | float, ...]
    actions: tuple[int, ...]
    result: Mapping[str, Any]
    players: tuple[str, ...] = ()
    preset: str | None = None
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    place: str = "record"

    def as_json(self) -> dict[str, Any]:
        """Returns the JSON object."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del fields["place"]
        if not self.about:
            del fields["about"]
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}
        return {"format": FORMAT, **plain}

    def _repr_svg_(self) -> str:
        """Draws the last position and the moves, in notebooks."""
        return drawing.to_svg(scene(self))


def finished(
    game: Game,
    deal: State | Sequence[int | float],
    actions: Sequence[int],
    points: Sequence[float],
    players: Sequence[str] = (),
    *,
    about: Mapping[str, Any] | None = None,
) -> Record:
    """Makes the record of a game whose result is known already; nothing is played, no action checked.

    Args:
      game: what was played.
      deal: the starting state, or the numbers `from_deal` takes.
      actions: action ids of all players, to the end.
      points: what each player won; none where that is not known.
      players: who played, by seat.
      about: what else belongs to it.
    Raises:
      InputError: an action that is no whole number, names or points of more or fewer players than the game has, or in
        `about` what a record cannot hold.
    """
    refuse_name(game, "game")
    names = listed("players", players, f"{game.num_players} names, or none")
    if not all(isinstance(name, str) for name in names) or len(names) not in (0, game.num_players):
        raise InputError(f"players={shown(repr(players))} is not valid; it must be {game.num_players} names, or none")
    won = rounded(points)
    if len(won) not in (0, game.num_players):
        raise InputError(f"points={shown(repr(points))} is not valid; it must be {game.num_players} numbers, or none")
    numbers = game.deal_of(deal) if hasattr(deal, "current_player") else listed("deal", deal, "a list of numbers")
    if about is not None and not isinstance(about, Mapping):
        raise InputError(f"about={shown(repr(about))} is not valid; it must be a dict, names to texts and numbers")
    return Record(
        game=game.name,
        version=game.version,
        rules=rules_of(game),
        deal=tuple(map(_number, numbers)),
        actions=tuple(
            whole_number("action", action, "one of the game's")
            for action in listed("actions", actions, "a list of whole numbers")
        ),
        result={"points": won},
        players=tuple(names),
        preset=game.preset,
        about={name: _plain(name, value) for name, value in (about or {}).items()},
    )


def a_record(given: Any) -> Record:
    """Returns a record; raises InputError for what is none, as the path of a file of records."""
    if not isinstance(given, Record):
        raise InputError(f"{shown(repr(given))} is not a record; give one, as envs.records.read(path)[0]")
    return given


def listed(name: str, given: Any, right: str) -> list[Any]:
    """Returns values as a list; raises InputError where they are none, as a text or a single number."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping) and getattr(given, "ndim", 1):
        return list(given)
    raise InputError(f"{name}={shown(repr(given))} is not valid; it must be {right}")


def _number(given: Any) -> int | float:
    """Returns a number of a deal as Python's; raises InputError where it is none."""
    value = given.item() if hasattr(given, "item") and np.ndim(given) == 0 else given
    if not isinstance(value, int | float):
        raise InputError(f"deal holds {shown(repr(given))}; it must hold numbers")
    return value if isinstance(value, float) and not value.is_integer() else int(value)


def _plain(name: str, value: Any) -> Any:
    """Returns a value of `about` as JSON holds it, numbers of NumPy and JAX as Python's."""
    if not isinstance(name, str):
        raise InputError(f"about names a value {shown(repr(name))}; the name must be a text")
    values = list(value) if isinstance(value, list | tuple) else [value]
    plain = [x.item() if hasattr(x, "item") and np.ndim(x) == 0 else x for x in values]
    if not all(x is None or isinstance(x, str | int) or (isinstance(x, float) and math.isfinite(x)) for x in plain):
        raise InputError(f"about {shown(name)} is {shown(repr(value))}; it must be a text, a number or a few of them")
    return plain if isinstance(value, list | tuple) else plain[0]


def rules_of(game: Game) -> dict[str, Any]:
    """Returns the rules that `envs.make` takes to make a game again."""
    refuse_name(game, "game")
    fields = _settable(game)
    rules = fields.pop("rules", None)
    return (_settable(rules) if dataclasses.is_dataclass(rules) else dict(rules or {})) | fields


def _settable(given: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(given):
        return {}
    values = {field.name: getattr(given, field.name) for field in dataclasses.fields(given) if field.init}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def rounded(points: Sequence[float]) -> list[float]:
    """Returns points as records hold them, to four digits; raises InputError for what are no numbers."""
    right = "a list of numbers"
    try:
        return [round(float(x), 4) + 0.0 for x in listed("points", points, right)]
    except (TypeError, ValueError) as error:
        raise InputError(f"points={shown(repr(points))} is not valid; it must be {right}") from error


def record(
    game: Game,
    deal: State | Sequence[int | float],
    actions: Sequence[int],
    players: Sequence[str] = (),
    *,
    about: Mapping[str, Any] | None = None,
) -> Record:
    """Plays a game's actions and makes its record.

    Args:
      game: of any kind.
      deal: the starting state, or the numbers `from_deal` takes: of a game with a deck, the card ids.
      actions: action ids of all players, to the end.
      players: who played, by seat.
      about: what else belongs to it, names to texts and numbers.
    Raises:
      InputError: no such deal, an action that is not legal, or the game is not over.
    """
    made = finished(game, deal, actions, (), players, about=about)
    return dataclasses.replace(made, result=_played(made, game)[1])


def replay(given: Record) -> tuple[Game, State]:
    """Plays a record through its game and checks the result.

    Returns:
      The game, and the state it ended in.
    Raises:
      InputError: an unknown game, version or rule, a deal or an action that cannot be, or another result; the record
        and the reason are named.
    """
    game = game_of(given)
    state, result = _played(given, game)
    ending = given.result.get("ending")
    stored = given.result | {"ending": _OLD_ENDINGS.get(ending, ending)} if isinstance(ending, str) else given.result
    for name, value in result.items():
        if name != "points" and name not in stored:
            continue
        if not (_near(stored_points(given), value) if name == "points" else stored[name] == value):
            raise InputError(
                f"{given.place}: result {name}={shown(repr(stored.get(name)))}; the game played gives {value!r}"
            )
    return game, state


def game_of(given: Record) -> Game:
    """Returns the game a record is of; raises InputError where there is none such."""
    a_record(given)
    try:
        game = envs.make(given.game, **given.rules)
    except InputError as error:
        raise InputError(f"{given.place}: {shown(str(error), 300)}") from error
    if game.version != given.version:
        raise InputError(
            f"{given.place}: {game.name} version {shown(given.version)}; this project has version {game.version}"
        )
    if len(given.players) not in (0, game.num_players):
        raise InputError(f"{given.place}: players holds {len(given.players)} names; it must hold {game.num_players}")
    return game


def positions(given: Record, *, checked: bool = True) -> tuple[Game, list[State]]:
    """Returns a record's positions, after it was checked as `replay` does.

    Args:
      given: the record.
      checked: False of a record that was made just now, whose actions need no check.

    Returns:
      The game, and its states, of NumPy arrays: the deal, and that after each action.
    Raises:
      InputError: as `replay`.
    """
    game = replay(given)[0] if checked else game_of(given)
    padded = np.zeros(game.max_length, np.int32)
    padded[: len(given.actions)] = given.actions
    states = jax.device_get(_states(game, _start(given, game), padded))
    return game, [jax.tree.map(lambda x, n=n: x[n], states) for n in range(len(given.actions) + 1)]


def counted_once(rounds: Iterable[Record]) -> Iterator[Record]:
    """Yields rounds; one that belongs to both games of a pair of games to a target only with the first of them.

    The games of a pair have the numbers 2 k and 2 k + 1 as `about["game"]`.
    """
    met: dict[str, int] = {}
    if not isinstance(rounds, Iterable):
        raise InputError(f"rounds={shown(repr(rounds))} is not valid; it must be a list of records")
    for one in rounds:
        game = a_record(one).about.get("game")
        if isinstance(game, int) and "pair" in one.about:
            place = [game // 2, one.about["pair"], one.about.get("seat")]
            same = json.dumps(
                [one.game, one.rules, one.players, place, one.deal, one.actions, one.result], sort_keys=True
            )
            if met.setdefault(same, game) != game:
                continue
        yield one


def points_of(game: Game, state: State, rewards: Array) -> Array:
    """Returns what each player won: float32[P], from a finished state and the rewards paid on the way to it."""
    seats = jnp.arange(game.num_players)
    report = jax.vmap(lambda seat: game.result(state, seat))(seats)
    return jnp.asarray(report.get("points_per_hand", settled(game, rewards) * game.reward_scale), jnp.float32)


def stored_points(given: Record) -> list[float]:
    """Returns what a record says that each player won, unchecked; [] where it says no such numbers."""
    points = a_record(given).result.get("points")
    known = isinstance(points, list) and all(type(x) in (int, float) and abs(x) < _MOST_POINTS for x in points)
    return [float(x) for x in points] if known else []


def _near(stored: list[float], points: list[float]) -> bool:
    return len(stored) == len(points) and bool(np.allclose(stored, points, rtol=0, atol=_TOLERANCE))


def _start(given: Record, game: Game) -> State:
    try:
        return game.from_deal(given.deal)
    except InputError as error:
        raise InputError(f"{given.place}: {shown(str(error), 300)}") from error


def _played(given: Record, game: Game) -> tuple[State, dict[str, Any]]:
    """Returns the state a record's actions lead to, and the result it has."""
    start, count = _start(given, game), len(given.actions)
    wrong = next((n for n, action in enumerate(given.actions) if not 0 <= action < game.num_actions), None)
    if wrong is not None:
        action = given.actions[wrong]
        raise InputError(
            f"{given.place}: action {wrong + 1}, {shown(action)}, is not one of 0 to {game.num_actions - 1}"
        )
    if count > game.max_length:
        raise InputError(f"{given.place}: {count} actions; a game of {game.name} has {game.max_length} at most")
    padded = np.zeros(game.max_length, np.int32)
    padded[:count] = given.actions
    state, legal, over, points = jax.device_get(_walk(game, start, padded, count))
    for n in range(count):
        if n and over[n - 1]:
            raise InputError(f"{given.place}: action {n + 1}, {given.actions[n]}, comes after the end of the game")
        if not legal[n]:
            raise InputError(f"{given.place}: action {n + 1}, {_illegal(game, start, padded, n)}")
    if not count or not over[count - 1]:
        raise InputError(f"{given.place}: the game is not over after its {count} actions")
    words = game.to_dict(state)
    ending = {"ending": words["ending"]} if isinstance(words.get("ending"), str) else {}
    return state, {"points": rounded(points), **ending}


def _illegal(game: Game, start: State, actions: np.ndarray, n: int) -> str:
    """Returns what is said of an illegal action: its name, and those of the legal ones."""
    state = _walk(game, start, actions, n)[0]
    legal = np.flatnonzero(game.legal_actions(state)).tolist()
    could = ", ".join(f"{action} ({game.describe_action(state, action)})" for action in legal[:20])
    more = f" and {len(legal) - 20} more" if len(legal) > 20 else ""
    return f"{actions[n]} ({game.action_name(int(actions[n]))}), is not legal; legal are {could}{more}"


@functools.partial(jax.jit, static_argnums=0)
def _walk(game: Game, start: State, actions: Array, count: Array) -> tuple[State, Array, Array, Array]:
    """Plays the first `count` actions: the last state; bool[T], whether each was legal, and over after it; points."""

    def body(carry: tuple[State, Array], now: tuple[Array, Array]) -> tuple[Any, Any]:
        (state, paid), (t, action) = carry, now
        legal = game.legal_actions(state)[action]
        after, gained, over = game.step(state, action)
        plays = t < count
        state = jax.tree.map(lambda a, b: jnp.where(plays, a, b), after, state)
        return (state, paid + jnp.where(plays, gained, 0)), (legal, over)

    first = (start, jnp.zeros(game.num_players))
    (state, paid), (legal, over) = lax.scan(body, first, (np.arange(game.max_length), actions))
    return state, legal, over, points_of(game, state, paid)


@functools.partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def _states(game: Game, start: State, actions: Array) -> State:
    """Returns the states before each action, and the last one: leading axis [T + 1]."""

    def body(state: State, action: Array) -> tuple[State, State]:
        after = game.step(state, action)[0]
        return after, after

    _, states = lax.scan(body, start, actions)
    return jax.tree.map(lambda x, rest: jnp.concatenate([jnp.asarray(x)[None], rest]), start, states)


def moves(given: Record, *, checked: bool = True) -> list[str]:
    """Returns a record's moves in words, each with its player; arguments as of `positions`.

    Raises:
      InputError: as `replay`.
    """
    game, states = positions(given, checked=checked)
    names = player_names(given, game.num_players)
    return [
        f"{names[int(state.current_player)]}: {game.describe_action(state, action)}"
        for state, action in zip(states, given.actions, strict=False)
    ]


def scene(given: Record, *, checked: bool = True) -> drawing.Scene:
    """Returns a record's last position, all cards open, with its players, result and moves; as `positions`.

    Raises:
      InputError: as `replay`.
    """
    game, states = positions(given, checked=checked)
    names = player_names(given, game.num_players)
    last = game.scene(states[-1])
    points = ", ".join(f"{name} {won:g}" for name, won in zip(names, given.result["points"], strict=True))
    played = [f"{n}. {move}" for n, move in enumerate(moves(given, checked=False), 1)]
    lines = [f"{game.unit}: {points}", *(" · ".join(played[n : n + 3]) for n in range(0, len(played), 3))]
    return dataclasses.replace(last, lines=(*last.lines, *lines))


def player_names(given: Record, num_players: int, *, whole: bool = False) -> list[str]:
    """Returns who played by seat, "player 0" and so on where that is not known; long names are cut unless `whole`."""
    seats = range(num_players)
    if not a_record(given).players:
        return [f"player {seat}" for seat in seats]
    if whole:
        return list(given.players)
    return [name if len(name) <= _MOST_NAME else f"{name[:_MOST_NAME]}..." for name in given.players]
