"""Rounds of gin rummy as JSON, one record per round: deal, actions, result, rules with their preset, and version.

A record is one JSON object:

| key | content |
|---|---|
| format | 1, of this table |
| game, version | name and version of the game |
| preset | name of the rule preset, null where the rules are no preset's |
| rules | every rule that can be set, by name |
| deck | the card ids as `from_deck` takes them |
| actions | the action ids of all players, in order |
| result | points: what each player won; ending: how the round ended, in words |
| players | optional: who played, by seat |

A file holds one record per line (.jsonl), or one record or a list of them (.json).
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

import envs
from envs.errors import InputError, shown
from envs.game import Game, State
from envs.gin_rummy.core.rules import preset_name

FORMAT = 1
_OLD_ENDINGS = {"draw": "tie"}
"""Words for an ending in records written before they changed."""
GAMES = ("gin_rummy", "gin_rummy_mdp", "gin_rummy_openspiel", "mini_gin_rummy")
MAX_BYTES, MAX_WHOLE, MAX_LINE = 2**28, 2**24, 2**20
"""Of a file, of one that is a single JSON value, and of a line."""
_MAX_CARDS, _MAX_ACTIONS = 52, 1000
"""Beyond any game's."""


@dataclasses.dataclass(frozen=True)
class Record:
    """A round that was played; the fields are the keys of its JSON object.

    Attributes:
      game, version: of the game.
      rules: by name.
      deck: card ids.
      actions: action ids.
      result: `points` of each player, and `ending` in words.
      players: who played, by seat; empty where not known.
      preset: name of the rules, None where they have none.
      place: where the record was read, for messages.
    """

    game: str
    version: str
    rules: dict[str, Any]
    deck: tuple[int, ...]
    actions: tuple[int, ...]
    result: dict[str, Any]
    players: tuple[str, ...] = ()
    preset: str | None = None
    place: str = "record"

    def as_json(self) -> dict[str, Any]:
        """Returns the JSON object."""
        fields = {"format": FORMAT, **dataclasses.asdict(self)}
        del fields["place"]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}


def record(game: Game, deck: Sequence[int], actions: Sequence[int], players: Sequence[str] = ()) -> Record:
    """Plays a round's actions and makes its record.

    Args:
      game: a gin rummy game that deals from a deck.
      deck: card ids as `from_deck` takes them.
      actions: action ids of all players, to the end of the round.
      players: who played, by seat.
    Raises:
      InputError: the deck is no permutation, an action is not legal, or the round is not over.
    """
    made = Record(
        game=game.name,
        version=game.version,
        rules={field.name: getattr(game.rules, field.name) for field in dataclasses.fields(game.rules) if field.init},
        deck=tuple(int(card) for card in deck),
        actions=tuple(int(action) for action in actions),
        result={},
        players=tuple(players),
        preset=preset_of(game),
    )
    return dataclasses.replace(made, result=_played(made, game)[1])


def preset_of(game: Game) -> str | None:
    """Returns the name of the preset a game's rules are, None where they are none."""
    return preset_name(game.rules)


def replay(given: Record) -> tuple[Game, State]:
    """Plays a record through its game and checks the result.

    Returns:
      The game, and the state the round ended in.
    Raises:
      InputError: an unknown game, version or rule, a deck or an action that cannot be, or another result; the record
        and the reason are named.
    """
    if given.game in envs.names() and given.game not in GAMES:
        raise InputError(
            f"{given.place}: game {shown(given.game)} is no gin rummy; it must be one of {', '.join(GAMES)}"
        )
    try:
        game = envs.make(given.game, **given.rules)
    except InputError as error:
        raise InputError(f"{given.place}: {shown(str(error), 300)}") from error
    if game.version != given.version:
        raise InputError(
            f"{given.place}: {game.name} version {shown(given.version)}; this project has version {game.version}"
        )
    state, result = _played(given, game)
    ending = given.result.get("ending")
    stored = given.result | {"ending": _OLD_ENDINGS.get(ending, ending) if isinstance(ending, str) else ending}
    for name, value in result.items():
        if stored.get(name) != value:
            raise InputError(
                f"{given.place}: result {name}={shown(repr(stored.get(name)))}; the round played gives {value!r}"
            )
    return game, state


def _played(given: Record, game: Game) -> tuple[State, dict[str, Any]]:
    """Returns the state a record's actions lead to, and the result it has."""
    size = game.rules.num_cards
    if sorted(given.deck) != list(range(size)):
        raise InputError(f"{given.place}: the deck is not each of the cards 0 to {size - 1} once")
    count = len(given.actions)
    wrong = next((n for n, action in enumerate(given.actions) if not 0 <= action < game.num_actions), None)
    if wrong is not None:
        action = given.actions[wrong]
        raise InputError(
            f"{given.place}: action {wrong + 1}, {shown(action)}, is not one of 0 to {game.num_actions - 1}"
        )
    if count > game.max_length:
        raise InputError(f"{given.place}: {count} actions; a round of {game.name} has {game.max_length} at most")
    padded = np.zeros(game.max_length, np.int32)
    padded[:count] = given.actions
    state, legal, over, paid = jax.device_get(_walk(game, np.array(given.deck, np.int32), padded, count))
    for n in range(count):
        if n and over[n - 1]:
            raise InputError(f"{given.place}: action {n + 1}, {given.actions[n]}, comes after the end of the round")
        if not legal[n, given.actions[n]]:
            could = ", ".join(str(a) for a in np.nonzero(legal[n])[0])
            raise InputError(f"{given.place}: action {n + 1}, {given.actions[n]}, is not legal; legal are {could}")
    if not count or not over[count - 1]:
        raise InputError(f"{given.place}: the round is not over after its {count} actions")
    won = [game.result(state, seat).get("points_per_hand", paid[seat] * game.reward_scale) for seat in range(2)]
    points = [round(float(x), 4) + 0.0 for x in won]
    return state, {"points": points, "ending": game.to_dict(state)["ending"]}


@functools.partial(jax.jit, static_argnums=0)
def _walk(game: Game, deck: Array, actions: Array, count: Array) -> tuple[State, Array, Array, Array]:
    """Plays the first `count` actions: the last state, legal bool[T, A] before each, over bool[T] after, the pay."""

    def body(carry: tuple[State, Array], now: tuple[Array, Array]) -> tuple[Any, Any]:
        (state, paid), (t, action) = carry, now
        legal = game.legal_actions(state)
        after, gained, over = game.step(state, action)
        plays = t < count
        state = jax.tree.map(lambda a, b: jnp.where(plays, a, b), after, state)
        return (state, paid + jnp.where(plays, gained, 0)), (legal, over)

    start = (game.from_deck(deck), jnp.zeros(game.num_players))
    (state, paid), (legal, over) = lax.scan(body, start, (np.arange(game.max_length), actions))
    return state, legal, over, paid


def write(path: str | Path, records: Sequence[Record]) -> None:
    """Writes a file of records, one per line, whole or not at all."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text("".join(json.dumps(one.as_json()) + "\n" for one in records))
    temporary.replace(path)


def append(path: str | Path, one: Record) -> None:
    """Adds a record to a file that holds one per line."""
    with Path(path).open("a") as file:
        file.write(json.dumps(one.as_json()) + "\n")


def read(path: str | Path) -> list[Record]:
    """Reads a file of records; they are checked for form, `replay` checks what they say.

    Raises:
      InputError: the file cannot be read, or a record is not as the module says; record and reason are named.
    """
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path} has more than {MAX_BYTES} bytes; split it into several files")
        return [_from_json(f"{path}, record {n}", value) for n, value in _values(path)]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yields the JSON values of a file with their numbers: of one value, of a list, or one per line."""
    if path.stat().st_size <= MAX_WHOLE:
        try:
            whole = json.loads(path.read_text())
        except json.JSONDecodeError:
            pass
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: {_wrong_json(error)}") from error
        else:
            yield from enumerate(whole if isinstance(whole, list) else [whole], 1)
            return
    with path.open() as file:
        n = 0
        while line := file.readline(MAX_LINE + 1):
            n += 1
            if len(line) > MAX_LINE:
                raise InputError(f"{path}, record {n}: more than {MAX_LINE} characters on a line")
            if line.strip():
                yield n, _line(path, n, line)


def _line(path: Path, n: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, record {n}: {_wrong_json(error)}") from error


def _wrong_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON ({error.msg} at character {error.pos + 1})"
    return (
        "JSON that nests too deep" if isinstance(error, RecursionError) else f"no readable JSON ({shown(str(error))})"
    )


def _from_json(place: str, value: Any) -> Record:
    if not isinstance(value, dict):
        raise InputError(f"{place}: a {type(value).__name__}; it must be an object")
    if not (type(value.get("format")) is int and value["format"] == FORMAT):
        raise InputError(f"{place}: format {_short(value.get('format'))}; it must be {FORMAT}")
    needed = {"game": str, "version": str, "rules": dict, "deck": list, "actions": list, "result": dict}
    optional = {"players": list, "preset": (str, type(None))}
    for key, kind in needed.items():
        if not isinstance(value.get(key), kind):
            raise InputError(f"{place}: {key} is {_short(value.get(key))}; it must be a {kind.__name__}")
    for key in value:
        if key not in {"format", *needed, *optional}:
            known = ", ".join(["format", *needed, *optional])
            raise InputError(f"{place}: unknown key {_short(key)}; known: {known}")
        if key in optional and not isinstance(value[key], optional[key]):
            raise InputError(f"{place}: {key} is {_short(value[key])}")
    for key, most in (("deck", _MAX_CARDS), ("actions", _MAX_ACTIONS)):
        wrong = next((x for x in value[key] if type(x) is not int), None)
        if wrong is not None:
            raise InputError(f"{place}: {key} holds {_short(wrong)}; it must hold whole numbers")
        if len(value[key]) > most:
            raise InputError(f"{place}: {key} holds {len(value[key])} numbers; it must hold {most} at most")
    wrong = next((x for x in value.get("players", ()) if not isinstance(x, str)), None)
    if wrong is not None:
        raise InputError(f"{place}: players holds {_short(wrong)}; it must hold names")
    lists = {key: tuple(value.get(key, ())) for key in ("deck", "actions", "players")}
    rest = {key: value[key] for key in ("game", "version", "rules", "result")}
    return Record(**rest, **lists, preset=value.get("preset"), place=place)


def _short(value: Any) -> str:
    """Returns a JSON value for a message; of a list or an object the kind alone."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict) else shown(repr(value))
