"""Records opened on the page, and rounds with a person kept as records."""

from __future__ import annotations

import threading
from pathlib import Path

from dream.page.compiled import Shelf
from dream.page.match import Chair, Finished, Match, Settings
from dream.page.refusals import RefusedError
from envs import records

MOST_ROUNDS = 100
"""Of a file; the page looks at the first ones."""
_MOST_NAME = 40
PERSON = "person"
"""What a person is called in records."""


def match_of(text: str, shelf: Shelf, held: int | None = None) -> Match:
    """Returns a match that holds the first rounds of a file of records that are of one game, to be reviewed.

    Args:
      text: what the file holds, in any form that `envs.records.parse` knows.
      shelf: of compiled games.
      held: rounds of the whole file, where `text` is only its beginning.
    Raises:
      InputError: no record, or one that is not as it must be.
    """
    whole = records.parse(text, place="file")
    found = whole[:MOST_ROUNDS]
    if not found:
        raise RefusedError("no_record")
    game, _ = records.replay(found[0])
    rounds = []
    for number, one in enumerate(found):
        if records.replay(one)[0] != game:
            break
        points = [float(x) for x in one.result["points"]]
        count = game.num_players
        by_chair = tuple(points[(chair + number) % count] for chair in range(count))
        rounds.append(Finished(number, game.from_deal(one.deal), one.actions, by_chair, _names(one, count)))
    stand_in = shelf.player("random", game)
    chairs = [Chair(name, stand_in) for name in rounds[0].names]
    match = Match(shelf.game(game), chairs, Settings("record"))
    match.is_archive, match.finished, match.held = True, rounds, max(held or 0, len(whole))
    return match


def _names(one: records.Record, count: int) -> tuple[str | None, ...]:
    """Returns who sat in each seat of a record, None where that is not known."""
    known = len(one.players) == count
    return tuple(one.players[seat][:_MOST_NAME] if known else None for seat in range(count))


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
