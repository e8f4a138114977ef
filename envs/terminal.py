"""Games in a plain terminal, between people and players, one line per move (host side).

Only the interface of `envs.Game` is used. A person sees what the view of the seat shows, and of the others' moves what
`envs.boards` reveals.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from envs import boards, records
from envs.adapters.single_game import SingleGame
from envs.errors import InputError, refuse_name, whole_number
from envs.game import Game, Policy
from envs.players import HostPlayer

_HELP = "a number or a name of the list (its beginning or any part will do), ? for the list, h for a hint, q to leave"


class _LeftError(Exception):
    """The person has left."""


@dataclasses.dataclass(frozen=True)
class _Table:
    """Who plays what, and where it is shown.

    Attributes:
      game: what is played.
      play: the round under way.
      players: by seat, None for a person.
      names: by seat.
      hint: who gives advice, None for nobody.
      read: prompt -> the line that a person answers.
      write: prints a text.
      rng: of deals and the players' choices.
    """

    game: Game
    play: SingleGame
    players: tuple[Policy | HostPlayer | None, ...]
    names: tuple[str, ...]
    hint: Policy | None
    read: Callable[[str], str]
    write: Callable[[str], None]
    rng: np.random.Generator

    @property
    def watcher(self) -> int | None:
        """The seat of the one person; None where nobody or several play."""
        people = [seat for seat, player in enumerate(self.players) if player is None]
        return people[0] if len(people) == 1 else None


def play_in_terminal(
    game: Game,
    players: Sequence[Policy | HostPlayer | None],
    *,
    names: Sequence[str] = (),
    hint: Policy | None = None,
    target: int | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    keep: str | Path | None = None,
    read: Callable[[str], str] | None = None,
    write: Callable[[str], None] | None = None,
) -> list[float]:
    """Plays rounds until a person leaves, a score reaches the target, or the number of rounds is reached.

    Everyone begins equally often: where the game does not let one choose who begins, players move on by a seat a round.

    Args:
      game: of any kind.
      players: by seat in the first round, None for a person; several people take turns at the terminal.
      names: of the players, "you" and "player 1" and so on by default.
      hint: the player that gives advice; None: none.
      target: the score that ends the match; None: there is no target.
      rounds: maximum number of rounds; None: as many as a person likes, one if no seat is a person and there is no
        target.
      seed: of deals and the players' choices; None: random ones.
      keep: file to which the record of each finished round is appended.
      read, write: the terminal; by default the real one.
    Returns:
      The scores of the players, in the order given.
    Raises:
      InputError: the number of players or names is not that of seats, a name among the players, a seed below 0, a
        player who chooses an illegal action, or a file to `keep` rounds in that does not hold one record per line.
    """
    _check_seats(game, players, names)
    _check_seed_and_file(seed, keep)
    people = sum(player is None for player in players)
    rng, read, write = np.random.default_rng(seed), read or input, write or print
    named = tuple(names) if names else _usual_names(players)
    table = _Table(game, SingleGame(game), tuple(players), named, hint, read, write, rng)
    ends = rounds is not None or target is not None or people
    scores, most = np.zeros(game.num_players), rounds if ends else 1
    played, first = 0, None
    try:
        while played != most and (target is None or scores.max() < target):
            if played and people:
                _answer(table, "Enter for the next round, q to leave: ")
            order = _seating(game, played)
            seated = _seated(table, order)
            first = _dealt(seated, first)
            one = _round(seated)
            played += 1
            if keep is not None:
                _keep(seated, keep, one)
            scores[order] += _gained(seated, one, target)
            write(_sums(seated, one, scores[order], target))
    except (_LeftError, EOFError):
        write("left the table")
    return scores.tolist()


def _check_seats(game: Game, players: Sequence[Any], names: Sequence[str]) -> None:
    """Raises InputError where the number of players or names is not that of seats, and for a name among the players."""
    if len(players) != game.num_players:
        raise InputError(f"{len(players)} players; {game.name} here has {game.num_players} seats")
    for player in players:
        if player is not None:
            refuse_name(player, "player")
    if names and len(names) != game.num_players:
        raise InputError(f"{len(names)} names; {game.name} here has {game.num_players} seats")


def _check_seed_and_file(seed: int | None, keep: str | Path | None) -> None:
    """Raises InputError for a seed below 0, and where a file is there that does not hold one record per line."""
    if seed is not None and (number := whole_number("seed", seed, "0 or more")) < 0:
        raise InputError(f"seed={number} is not valid; it must be 0 or more")
    if isinstance(keep, str | os.PathLike) and Path(keep).is_file():
        records.check_lines(keep)


def _usual_names(players: Sequence[Policy | HostPlayer | None]) -> tuple[str, ...]:
    """Returns "you" for the only person, "player 1" and so on for all others."""
    alone = sum(player is None for player in players) == 1
    return tuple("you" if alone and player is None else f"player {n}" for n, player in enumerate(players))


def _keep(table: _Table, file: str | os.PathLike[str], one: records.Record) -> None:
    """Adds a round to a file; where the disk refuses, says so and lets the match go on."""
    try:
        records.append(file, one)
    except OSError as error:
        table.write(f"the round was not kept: {file} cannot be written ({error.strerror})")


def _told(game: Game, action: int) -> str:
    return f"{action} {game.action_name(action)}" if 0 <= action < game.num_actions else str(action)


def _seating(game: Game, number: int) -> list[int]:
    """Returns who sits in each seat in a round: the players move on where the same seat always begins."""
    moved = 0 if game.begun_by is not None else number
    return [(seat - moved) % game.num_players for seat in range(game.num_players)]


def _seated(table: _Table, order: Sequence[int]) -> _Table:
    """Returns the table of a round."""
    players, names = (tuple(given[n] for n in order) for given in (table.players, table.names))
    return dataclasses.replace(table, players=players, names=names)


def _dealt(table: _Table, before: int | None) -> int:
    """Deals a round and returns who acts first: where a lot draws that, it is the player after the one before."""
    play, begun_by = table.play, table.game.begun_by
    play.deal(int(table.rng.integers(2**31)))
    if before is not None and begun_by is not None:
        play.state = begun_by(play.state, np.int32((before + 1) % table.game.num_players))
    return play.current_player


def _round(table: _Table) -> records.Record:
    """Plays a round that was dealt to its end and returns its record."""
    play, players = table.play, table.players
    deal, actions = play.state, []
    hosts = {id(player): (player, seat) for seat, player in enumerate(players) if isinstance(player, HostPlayer)}
    for player, seat in hosts.values():
        player.begin(jax.device_get(jax.tree.map(lambda x: x[None], deal)), [seat])
    while play.current_player >= 0:
        seat = play.current_player
        player = players[seat]
        if player is None:
            action = _asked(table, seat)
        elif isinstance(player, HostPlayer):
            action = int(player.choose(0))
        else:
            action = play.sample(player, table.rng)
        if not 0 <= action < table.game.num_actions or not play.legal()[action]:
            raise InputError(f"{table.names[seat]} chose {_told(table.game, action)}, which is not legal")
        for host, _ in hosts.values():
            host.see(0, seat, action)
        _tell(table, seat, action)
        actions.append(action)
    points = np.asarray(records.points_of(table.game, play.state, play.rewards))
    return records.finished(table.game, deal, actions, points, table.names)


def _tell(table: _Table, seat: int, action: int) -> None:
    """Plays an action and prints what may be heard of it."""
    play, game, watcher = table.play, table.game, table.watcher
    before, state = play.state, jax.device_get(play.state)
    play.step(action)
    text = game.describe_action(state, action, watcher)
    if watcher not in (None, seat):
        views = [jax.device_get(game.view(one, np.int32(watcher))) for one in (before, play.state)]
        if boards.said(game, views[0], action, views[1], False) is None:
            if play.current_player == seat:
                return  # one line for each move would tell how many there were
            text = "moves"
    if table.players[seat] is not None or table.watcher is None:
        table.write(f"{table.names[seat]}: {text}")


def _asked(table: _Table, seat: int) -> int:
    """Returns the action a person chooses: by its number in the list, its name, or a part of it that is its alone."""
    play, game = table.play, table.game
    legal = np.flatnonzero(play.legal()).tolist()
    state = jax.device_get(play.state)
    choices = [game.describe_action(state, action, seat) for action in legal]
    listed = "\n".join(f"{n:4d}  {name}" for n, name in enumerate(choices, 1))
    table.write(f"\n{game.render(state, seat)}\n{listed}")
    while True:
        answer = _answer(table, f"{table.names[seat]}> ").strip().lower()
        if answer in ("h", "hint"):
            table.write(_advice(table, seat, legal, choices))
            continue
        if answer == "?":
            table.write(f"{listed}\n{_HELP}")
            continue
        found = _matches(answer, choices)
        if len(found) == 1:
            return legal[found[0]]
        table.write(f"which of {', '.join(choices[n] for n in found)}?" if found else f"not understood; {_HELP}")


def _matches(answer: str, choices: Sequence[str]) -> list[int]:
    """Returns the places of the choices that an answer may mean: one by number or name, else those it is a part of."""
    if answer.isdecimal() and len(answer) < 6 and 1 <= int(answer) <= len(choices):
        return [int(answer) - 1]
    lower = [name.lower() for name in choices]
    ways: tuple[Callable[[str], bool], ...] = (
        lambda name: name == answer,
        lambda name: name.startswith(answer),
        lambda name: answer in name,
    )
    for fits in ways:
        found = [n for n, name in enumerate(lower) if answer and fits(name)]
        if found:
            return found
    return []


def _advice(table: _Table, seat: int, legal: Sequence[int], choices: Sequence[str]) -> str:
    """Returns what the adviser would do, the likeliest first."""
    if table.hint is None:
        return "nobody gives hints here"
    chances = np.asarray(table.hint(table.play.view(seat), table.play.legal()))
    order = sorted(range(len(legal)), key=lambda n: -chances[legal[n]])
    return "\n".join(f"{100 * chances[legal[n]]:5.1f} %  {choices[n]}" for n in order[:5])


def _answer(table: _Table, prompt: str) -> str:
    """Returns a person's line; raises _LeftError where it wants to leave."""
    answer = table.read(prompt)
    if answer.strip().lower() in ("q", "quit"):
        raise _LeftError
    return answer


def _gained(table: _Table, one: records.Record, target: int | None) -> np.ndarray:
    """Returns what a round adds to the scores: the own score of a game that has one; else what was won."""
    game, state = table.game, table.play.state
    own: dict[str, Any] = game.result(state, 0)
    if "score" in own:
        return np.array([float(game.result(state, seat)["score"]) for seat in range(game.num_players)])
    points = np.array(one.result["points"])
    return np.maximum(points, 0) if target is not None and len(points) == 2 else points


def _sums(table: _Table, one: records.Record, scores: np.ndarray, target: int | None) -> str:
    """Returns how a round ended: all cards open, points and scores."""
    shown = table.game.render(jax.device_get(table.play.state))
    points = ", ".join(f"{name} {won:g}" for name, won in zip(table.names, one.result["points"], strict=True))
    total = ", ".join(f"{name} {score:g}" for name, score in zip(table.names, scores, strict=True))
    goal = f" of {target}" if target is not None else ""
    return f"\n{shown}\n{table.game.unit}: {points}\nscore{goal}: {total}"
