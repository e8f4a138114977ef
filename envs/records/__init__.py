"""Records of games, one JSON object each: built, written, read, replayed and drawn, for every game.

| key | content |
|---|---|
| format | 2, of this table |
| game, version | name and version of the game |
| preset | name of the rule preset, null if the rules match none |
| rules | every rule that can be set, by name |
| deal | the numbers that `Game.from_deal` takes; for a game with a deck, the card ids |
| actions | the action ids of all players, in order |
| result | points: what each player won; ending: how the game ended, if the game reports it |
| players | optional: who played, by seat |
| about | optional: further fields, name to string or number, for instance `pair` and `seat` of a match |

A file holds one record per line (.jsonl), or one record or a list of them (.json). Format 1, which existed only for gin
rummy, calls the deal `deck`; it can also be read, as can OpenSpiel's histories, see `envs.records.openspiel`.
"""

from envs.records.files import MOST_ACTIONS, LazyRecords, append, check_lines, parse, read, to_line, write
from envs.records.openspiel import of_history, to_history
from envs.records.record import (
    FORMAT,
    Record,
    counted_once,
    finished,
    game_of,
    moves,
    player_names,
    points_of,
    positions,
    record,
    replay,
    rounded,
    rules_of,
    scene,
    stored_points,
)

__all__ = [
    "FORMAT",
    "MOST_ACTIONS",
    "LazyRecords",
    "Record",
    "append",
    "check_lines",
    "counted_once",
    "finished",
    "game_of",
    "moves",
    "of_history",
    "parse",
    "player_names",
    "points_of",
    "positions",
    "read",
    "record",
    "replay",
    "rounded",
    "rules_of",
    "scene",
    "stored_points",
    "to_history",
    "to_line",
    "write",
]
