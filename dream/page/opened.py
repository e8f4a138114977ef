"""Files of records opened on the page, read round by round, and rounds with a person kept as records."""

from __future__ import annotations

import io
import secrets
import threading
import time
from pathlib import Path
from typing import Any

from dream.page.compiled import Shelf
from dream.page.match import Chair, Finished, Match, Settings
from dream.page.refusals import RefusedError
from envs import InputError, records

MOST_CHARACTERS, MOST_ROUNDS = 2**24, 100_000
"""Of a file."""
MOST_UNDER_WAY = 2 * MOST_CHARACTERS
"""Characters of all files whose parts are still coming."""
LISTED = 50
"""Rounds that a review lists."""
_MOST_SEATS, _MOST_NAME = 16, 40
PERSON = "person"
"""What a person is called in records."""


class Upload:
    """A file on its way from a browser, part by part.

    Attributes:
      size: characters that have come.
    """

    def __init__(self) -> None:
        """Begins with nothing."""
        self.size = 0
        self._text = io.StringIO()
        self._is_refused = False

    def add(self, part: str, more: bool, room: int) -> str | None:
        """Takes the next part; what still comes of a file that was refused is dropped.

        Args:
          part: of the text.
          more: whether other parts follow.
          room: characters that the server can still take of files under way.
        Returns:
          The whole text once it is there, else None.
        Raises:
          RefusedError: the file is too large, or the server takes others in.
        """
        if self._is_refused:
            self._is_refused = more
            return None
        self.size += len(part)
        self._text.write(part)
        if self.size > MOST_CHARACTERS or len(part) > room:
            is_large = self.size > MOST_CHARACTERS
            self._is_refused = more
            self._clear()
            raise RefusedError("file_too_large", most=MOST_CHARACTERS) if is_large else RefusedError("busy")
        return None if more else self._clear()

    def _clear(self) -> str:
        """Returns what has come, and begins anew."""
        text = self._text.getvalue()
        self.size, self._text = 0, io.StringIO()
        return text


class Archive:
    """A file of records: its text, and the round that is looked at.

    Attributes:
      id: by which messages name it.
      used: when a round was last asked for.
    """

    def __init__(self, text: str, shelf: Shelf) -> None:
        """Finds the rounds of a file, and plays the first again.

        Args:
          text: what the file holds, in any form that `envs.records.parse` knows.
          shelf: of compiled games.
        Raises:
          InputError: no record, too many, or a first one that is not as it must be.
        """
        self.id, self.used = secrets.token_urlsafe(12), time.monotonic()
        self._shelf = shelf
        self._records = records.LazyRecords(text, place="file", most=MOST_ROUNDS)
        if not self._records:
            raise RefusedError("no_record")
        self.looked_at = self._match(0)

    @property
    def nbytes(self) -> int:
        """Bytes of the text that is kept."""
        return self._records.nbytes

    @property
    def numbers(self) -> range:
        """The numbers of its rounds."""
        return range(len(self._records))

    def look(self, number: int) -> Match:
        """Returns a match of one round, to be reviewed; the round is played again, and its result checked.

        Raises:
          InputError: the file has no such round, or it is not as it must be.
        """
        if number not in self.numbers:
            raise RefusedError("no_round")
        self.used = time.monotonic()
        match = self.looked_at if number in self.looked_at.numbers else self._match(number)
        self.looked_at = match
        return match

    def _match(self, number: int) -> Match:
        one = self._records[number]
        game, _ = records.replay(one)
        points, names = records.stored_points(one), _names(one, game.num_players)
        by_chair = tuple(points[(chair + number) % len(points)] for chair in range(len(points)))
        chairs = [Chair(name, self._shelf.player("random", game)) for name in names]
        match = Match(self._shelf.game(game), chairs, Settings("record"))
        match.id, match.is_archive = self.id, True
        match.finished = [Finished(number, game.from_deal(one.deal), one.actions, by_chair, names)]
        return match

    def in_short(self, number: int) -> dict[str, Any]:
        """Returns a round as `Match.in_short`, read but not played; no names and points where it cannot be read."""
        try:
            one = self._records[number]
        except InputError:
            return {"round": number, "viewer": None, "names": [], "points": []}
        points = records.stored_points(one)[:_MOST_SEATS]
        return {"round": number, "viewer": None, "names": _names(one, len(points)), "points": points}


def _names(one: records.Record, count: int) -> tuple[str | None, ...]:
    """Returns who sat in each seat of a record, None where that is not known."""
    known = len(one.players) == count
    return tuple(one.players[seat][:_MOST_NAME] if known else None for seat in range(count))


def rounds_near(held: Match | Archive, number: int) -> dict[str, Any]:
    """Returns some finished rounds in short, among them one.

    Returns:
      `first`, the number of the first round, `count`, how many there are, and `listed`, LISTED of them at most.
    """
    numbers = held.numbers
    start = number - (number - numbers.start) % LISTED
    near = range(start, min(start + LISTED, numbers.stop))
    return {"first": numbers.start, "count": len(numbers), "listed": [held.in_short(one) for one in near]}


class Keeper:
    """Adds each finished round with a person to a file of records, once."""

    def __init__(self, path: Path) -> None:
        """Takes the file, which need not exist yet."""
        self._path, self._lock = path, threading.Lock()

    def __call__(self, match: Match) -> None:
        """Keeps the round that has just ended.

        Raises:
          RefusedError: the file cannot be written.
        """
        played = match.finished[-1]
        names = [name or PERSON for name in match.names(played.number)]
        about = {"match": match.id, "round": played.number}
        kept = records.finished(
            match.game, played.deal, played.actions, match.points_by_seat(played), names, about=about
        )
        try:
            with self._lock:
                records.append(self._path, kept)
        except OSError as error:
            raise RefusedError("not_kept", file=self._path.name, reason=error.strerror) from error
