"""A match: rounds of one game between chairs, one of which a person may sit in, with a running score.

A chair is who plays, a seat is where in the round; chairs move on by one seat from round to round, so that everyone is
first in turn. Where a lot draws who is first, it does so in the first round; the next chair begins the next one.
What is shown to the person comes from the view of its seat alone until the round is over.
"""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dream.page.compiled import CompiledGame, Player, Position
from dream.page.refusals import RefusedError
from envs import boards
from envs.game import Game, State


@dataclasses.dataclass(frozen=True)
class Chair:
    """Who sits there: a player by its name, or the person, of whom both are None."""

    name: str | None = None
    player: Player | None = None


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a match is played by.

    Attributes:
      variant: of the game, its key.
      target: the match ends when a score reaches it; None: it goes on as long as one likes.
      pace: seconds between the moves of players, where nobody waits for them.
      seed: of deals and of the players' choices.
    """

    variant: str
    target: int | None = None
    pace: float = 0.0
    seed: int = dataclasses.field(default_factory=lambda: secrets.randbits(31))


@dataclasses.dataclass
class Round:
    """A round: the deal, what was played, and where it stands.

    Attributes:
      number: from 0, in the match.
      deal: the starting state.
      position: the present one.
      actions: ids, in order.
      actors: their seats.
      said: what the person (or a spectator) heard of each, None for what is secret.
      paid: float[P], rewards so far, by seat.
      points: float[P], what was won, by seat; 0 until the round is over.
    """

    number: int
    deal: State
    position: Position
    actions: list[int] = dataclasses.field(default_factory=list)
    actors: list[int] = dataclasses.field(default_factory=list)
    said: list[dict[str, Any] | None] = dataclasses.field(default_factory=list)
    paid: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))
    points: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(2))


@dataclasses.dataclass(frozen=True)
class Finished:
    """A round that was played to its end.

    Attributes:
      number: from 0, in the match.
      deal: with `actions` what replays it.
      points: by chair.
      names: who sat in each seat, where that does not follow from the chairs; None where it is not known.
    """

    number: int
    deal: State
    actions: tuple[int, ...]
    points: tuple[float, ...]
    names: tuple[str | None, ...] = ()


class Match:
    """A match in play; not safe to be used by two threads at once."""

    def __init__(self, compiled: CompiledGame, chairs: Sequence[Chair], settings: Settings) -> None:
        """Deals the first round.

        Raises:
          RefusedError: too few or too many chairs, or two people.
        """
        if len(chairs) != compiled.game.num_players:
            needed = compiled.game.num_players
            raise RefusedError("wrong_seats", game=compiled.game.name, given=len(chairs), needed=needed)
        if sum(chair.player is None for chair in chairs) > 1:
            raise RefusedError("two_people")
        self.id = secrets.token_urlsafe(12)
        self.compiled, self.chairs, self.settings = compiled, tuple(chairs), settings
        self.scores = [0.0] * len(chairs)
        self.finished: list[Finished] = []
        self.branched = self.is_archive = False
        self.used = time.monotonic()
        self._chance = np.random.default_rng(settings.seed)
        self.round = self._dealt(0)

    @property
    def game(self) -> Game:
        """What is played."""
        return self.compiled.game

    @property
    def person(self) -> int | None:
        """The person's chair, None where there is none."""
        return next((n for n, chair in enumerate(self.chairs) if chair.player is None), None)

    @property
    def numbers(self) -> range:
        """The numbers of its finished rounds."""
        start = self.finished[0].number if self.finished else 0
        return range(start, start + len(self.finished))

    def look(self, number: int) -> Match:
        """Returns the match, whose finished round of a number is to be reviewed.

        Raises:
          RefusedError: it has no such finished round.
        """
        if number not in self.numbers:
            raise RefusedError("no_round")
        return self

    def finished_round(self, number: int) -> Finished:
        """Returns a finished round by its number."""
        return self.finished[number - self.numbers.start]

    def in_short(self, number: int) -> dict[str, Any]:
        """Returns a finished round in short: its number, the person's seat, and by seat who played and the points."""
        points = self.points_by_seat(self.finished_round(number))
        viewer = self.seat_in(self.person, number)
        return {"round": number, "viewer": viewer, "names": self.names(number), "points": points}

    def names(self, number: int) -> list[str | None]:
        """Returns who sat in each seat of a round, by name; None for the person, or where it is not known."""
        count = len(self.chairs)
        given = self.finished_round(number).names if number in self.numbers else ()
        return list(given) or [self.chairs[(seat - number) % count].name for seat in range(count)]

    def seat_in(self, chair: int | None, number: int) -> int | None:
        """Returns where a chair sat in a round."""
        return None if chair is None else (chair + number) % len(self.chairs)

    def points_by_seat(self, played: Finished) -> list[float]:
        """Returns what a round paid, by seat."""
        count = len(self.chairs)
        return [played.points[(seat - played.number) % count] for seat in range(count)]

    def branch(self, played: Finished, positions: Sequence[Position], ply: int, other_player: Player) -> Match:
        """Returns a match of one round that goes on from a position of a finished one.

        The person sits where it did; where there was none it takes the seat to act, and in a record's round the others
        are a player that is given.
        """
        chairs = list(self.chairs)
        if self.is_archive:
            chairs = [Chair(other_player.name, other_player) for _ in chairs]
        if self.person is None:
            chairs[(positions[ply].current - played.number) % len(chairs)] = Chair()
        # With a seed of its own: players that mix answer anew each time a position is played on from.
        other = Match(self.compiled, chairs, dataclasses.replace(self.settings, seed=secrets.randbits(31)))
        other.branched = True
        other.round = other._begun(played.number, positions[0])
        for action in played.actions[:ply]:
            other.act(action)
        return other

    def seat(self, chair: int) -> int:
        """Returns where a chair sits in the present round."""
        return (chair + self.round.number) % len(self.chairs)

    def chair(self, seat: int) -> int:
        """Returns who sits in a seat of the present round."""
        return (seat - self.round.number) % len(self.chairs)

    @property
    def to_act(self) -> Chair | None:
        """The chair to act, None once the round is over."""
        current = self.round.position.current
        return None if current < 0 else self.chairs[self.chair(current)]

    @property
    def is_over(self) -> bool:
        """Whether the target has been reached."""
        target = self.settings.target
        return self.round.position.done and (self.branched or (target is not None and max(self.scores) >= target))

    @property
    def ply(self) -> int:
        """Moves of the round that the person (or a spectator) heard of; the number of all would show secret ones."""
        return sum(heard is not None for heard in self.round.said)

    @property
    def is_quiet(self) -> bool:
        """Whether the last move was secret and left the turn where it was: nobody at the page may notice it."""
        played = self.round
        return bool(played.said) and played.said[-1] is None and played.actors[-1] == played.position.current

    def set_pace(self, pace: float) -> None:
        """Sets the seconds between the moves of players."""
        self.settings = dataclasses.replace(self.settings, pace=pace)

    def choose(self) -> int:
        """Returns the action of the player to act: one drawn by its probabilities."""
        position, chair = self.round.position, self.to_act
        if chair is None or chair.player is None:
            raise RefusedError("moved_on")
        probs = chair.player.probabilities(position.views[position.current], position.legal)
        return int(self._chance.choice(len(probs), p=probs))

    def act(self, action: int) -> None:
        """Plays an action of whoever is to act.

        Raises:
          RefusedError: the round is over, or the action is not legal.
        """
        played, before = self.round, self.round.position
        if before.done:
            raise RefusedError("round_over")
        if not 0 <= action < len(before.legal) or not before.legal[action]:
            raise RefusedError("not_legal", action=action)
        after = self.compiled.step(before, action)
        person = self.person
        hears = before.current if person is None else self.seat(person)
        own = hears == before.current
        played.said.append(boards.said(self.game, before.views[hears], action, after.views[hears], own, before.state))
        played.actions.append(action)
        played.actors.append(before.current)
        played.paid = played.paid + after.rewards
        played.position = after
        self.used = time.monotonic()
        if after.done:
            self._score(played)

    def next_round(self) -> None:
        """Deals the next round.

        Raises:
          RefusedError: the present one is not over, or the match is.
        """
        if not self.round.position.done:
            raise RefusedError("round_not_over")
        if self.is_over:
            raise RefusedError("match_over")
        self.used = time.monotonic()
        began = self.chair(int(self.round.deal.current_player))
        number = self.round.number + 1
        self.round = self._dealt(number, self.seat_in((began + 1) % len(self.chairs), number))

    def _dealt(self, number: int, first: int | None = None) -> Round:
        position = self.compiled.deal(int(self._chance.integers(2**31)), first)
        return self._begun(number, position)

    def _begun(self, number: int, position: Position) -> Round:
        seats = len(self.chairs)
        return Round(number, position.state, position, paid=np.zeros(seats), points=np.zeros(seats))

    def _score(self, played: Round) -> None:
        played.points = self.compiled.points(played.position.state, played.paid)
        points = [float(played.points[self.seat(chair)]) for chair in range(len(self.chairs))]
        scores = self.compiled.scores(played.position.state)
        for chair in range(len(self.chairs)):
            gained = points[chair]
            if scores is not None:
                gained = scores[self.seat(chair)]
            elif len(self.chairs) == 2 and self.settings.target is not None:
                gained = max(gained, 0.0)
            self.scores[chair] += gained
        self.finished.append(Finished(played.number, played.deal, tuple(played.actions), tuple(points)))

    def snapshot(self) -> dict[str, Any]:
        """Returns all that the page shows of the match: JSON values."""
        played, person = self.round, self.person
        position = played.position
        viewer = None if person is None else self.seat(person)
        if position.done or viewer is None:
            board = boards.opened(self.game, jax.device_get(position.state), played.actions)
        else:
            board = boards.seen(self.game, position.state, position.views[viewer], viewer)
        mine = not position.done and viewer is not None and position.current == viewer
        legal = [int(action) for action in np.flatnonzero(position.legal)] if mine else []
        heard = [(seat, said) for seat, said in zip(played.actors, played.said, strict=True) if said is not None]
        log = [{"seat": seat, "ply": ply, **said} for ply, (seat, said) in enumerate(heard)]
        return {
            "id": self.id,
            "game": self.game.name,
            "variant": self.settings.variant,
            "unit": self.game.unit,
            "chairs": [
                {"name": chair.name, "person": chair.player is None, "seat": self.seat(n), "score": self.scores[n]}
                for n, chair in enumerate(self.chairs)
            ],
            "viewer": viewer,
            "to_act": position.current,
            "target": self.settings.target,
            "pace": self.settings.pace,
            "round": played.number,
            "ply": self.ply,
            "board": board,
            "choices": [boards.choice(self.game, position.state, position.views[viewer], action) for action in legal]
            if mine
            else [],
            "log": log,
            "done": position.done,
            "over": self.is_over,
            "branched": self.branched,
            "points": [float(x) for x in played.points] if position.done else None,
            "rounds": [{"round": one.number, "points": list(one.points)} for one in self.finished],
        }
