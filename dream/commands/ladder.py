"""The ladder command's work: cross-play of all players, kept block by block, rated and written as ladder.json."""

from __future__ import annotations

import dataclasses
import itertools
import json
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import envs
from dream.commands.ladder_plot import can_plot, has_matplotlib, plot_cross_table, plot_ratings
from dream.config import settings
from dream.config.compose import Composed
from dream.config.schema import LadderConfig
from dream.evaluation import charts
from dream.evaluation.matches import check_games, play_hands
from dream.evaluation.ratings import PointRatings, Ratings, bradley_terry, point_ratings
from dream.evaluation.standings import Result
from dream.storage import files
from dream.storage.lock import FILE as LOCK
from dream.storage.lock import RunLock
from dream.storage.policies import find, find_player
from dream.training.progress import Lines
from envs import Game, InputError, Policy

FILE, MATCHES, SETTINGS = "ladder.json", "matches.jsonl", "ladder_settings.json"
_ROOT = Path("runs")
_BLOCK = ("players", "block", "points")
"""What a line of matches.jsonl holds."""


@dataclasses.dataclass(frozen=True)
class Ladder:
    """A cross-play to be played.

    Attributes:
      config: the settings.
      game: what is played.
      players: by name, in the order given.
      run_dir: where results are kept.
      identity: what results in one run directory must agree in.
      sources: what each player is: a rule-based one, or a checkpoint's checksum.
    """

    config: LadderConfig
    game: Game
    players: dict[str, Policy]
    run_dir: Path
    identity: dict[str, Any]
    sources: dict[str, str]


def prepare_ladder(composed: Composed) -> Ladder:
    """Checks a composed configuration, loads all players and looks at what has been played; writes nothing.

    Raises:
      InputError: a wrong setting, a player that cannot be loaded, or a folder that holds something else.
    """
    config = settings.read(LadderConfig, composed.node, "")
    game = envs.make(config.env.name, **config.env.rules)
    if game.num_players != 2:
        raise InputError(f"env={game.name} has {game.num_players} players; a ladder needs a game of two")
    check_games(game, config.games)
    if config.block % 2:
        raise InputError(f"block={config.block} is odd; it must be even: deals are mirrored")
    names = config.players if config.players is not None else tuple(envs.bot_names(game))
    twice = [name for name in names if names.count(name) > 1]
    if len(names) < 2 or twice:
        wrong = f"names {twice[0]!r} twice" if twice else f"names {len(names)}"
        raise InputError(f"players={list(names)} {wrong}; it must name two different players at least")
    players = {name: find_player(name, game) for name in names}
    sources = {name: _source(name, game) for name in names}
    identity = {"game": game.identity, "seed": config.seed, "block": min(config.block, config.games)}
    prepared = Ladder(config, game, players, _run_dir(composed, config), identity, sources)
    _check_folder(prepared)
    return prepared


def _source(name: str, game: Game) -> str:
    if name in envs.bot_names(game):
        return "rule-based"
    meta = find(name).meta
    kind = "file" if meta["iteration"] is None else f"checkpoint of iteration {meta['iteration']}"
    return f"{kind}, checksum {meta['checksum']}"


def _run_dir(composed: Composed, config: LadderConfig) -> Path:
    if composed.sweep_dir:
        return composed.sweep_dir
    if config.run_dir is not None:
        return Path(config.run_dir).expanduser().absolute()
    return (_ROOT / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_ladder_{config.env.name}").absolute()


def _check_folder(prepared: Ladder) -> None:
    """Raises InputError unless the run directory is new, empty, or holds a ladder of the same settings."""
    folder = prepared.run_dir
    blocked = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if blocked.exists() and not blocked.is_dir():
        raise InputError(f"run_dir={folder} cannot be made: {blocked} is a file; choose another folder")
    if not folder.exists() or all(path.name == LOCK for path in folder.iterdir()):
        return
    if not (folder / SETTINGS).is_file():
        raise InputError(f"run_dir={folder} holds something else than a ladder; choose a new folder")
    try:
        stored = json.loads((folder / SETTINGS).read_text())
        sources = dict(stored.pop("players"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / SETTINGS} cannot be read ({error}); choose a new run_dir") from error
    if stored != prepared.identity:
        part = next(part for part in prepared.identity if stored.get(part) != prepared.identity[part])
        raise InputError(
            f"run_dir={folder} holds a ladder with {part}={stored.get(part)}, not {prepared.identity[part]}; "
            "choose a new folder"
        )
    for name, source in prepared.sources.items():
        if sources.get(name, source) != source:
            raise InputError(
                f"run_dir={folder} holds results of {name} as a {sources[name]}, which now is a {source}; "
                "choose a new folder"
            )


def play_ladder(prepared: Ladder) -> None:
    """Plays what has not been played yet, then rates, prints and writes everything.

    Raises:
      InputError: another process plays in the folder, or it cannot be written to.
      StorageError: the disk refused while the ladder was played; what was played is kept.
    """
    folder = prepared.run_dir
    with RunLock(folder) as lock:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            reason, mend = files.why_not(error)
            raise InputError(f"run_dir={folder} cannot be written ({reason}); {mend}, or choose another") from error
        _check_folder(prepared)  # another ladder may have been played there since
        try:
            _play_and_rate(prepared)
        except OSError as error:
            reason, mend = files.why_not(error)
            raise files.StorageError(
                f"{folder} cannot be written ({reason}); the blocks in {MATCHES} are safe; {mend}, then run the same "
                f"command with run_dir={folder}"
            ) from error


def _play_and_rate(prepared: Ladder) -> None:
    folder, names = prepared.run_dir, list(prepared.players)
    known = json.loads((folder / SETTINGS).read_text())["players"] if (folder / SETTINGS).exists() else {}
    files.write_json(folder / SETTINGS, prepared.identity | {"players": known | prepared.sources})
    results = _play_all(prepared)
    score, rounds, trials = (np.zeros((len(names), len(names))) for _ in range(3))
    for (one, two), result in results.items():
        i, j = names.index(one), names.index(two)
        score[i, j], score[j, i] = result.score, result.rounds - result.score
        rounds[i, j] = rounds[j, i] = result.rounds
        trials[i, j] = trials[j, i] = result.trials
    ratings = bradley_terry(score, rounds, trials)
    places = {(names.index(one), names.index(two)): result for (one, two), result in results.items()}
    by_points = point_ratings({place: result.points.mean(axis=1) for place, result in places.items()}, len(names))
    entries = _entries(names, ratings, by_points, results)
    _print(prepared, entries)
    title = f"{prepared.game.name}, {prepared.config.games:,} rounds per pairing"
    if prepared.config.plot == "svg" and not has_matplotlib():
        path = folder / "ladder_points.svg"
        cells = [list(entry["points_against"].values()) for entry in entries]
        shown = [Path(entry["name"]).name for entry in entries]
        table = charts.heat_map(f"{title}: {prepared.game.unit} per hand", shown, cells)
        files.write_text(path, charts.page([table]))
        print(path)
    elif prepared.config.plot != "none" and can_plot():
        print(plot_ratings(entries, prepared.game.unit, title, folder / f"ladder.{prepared.config.plot}"))
        path = folder / f"ladder_points.{prepared.config.plot}"
        print(plot_cross_table(entries, f"{title}: {prepared.game.unit} per hand", path))
    files.write_json(folder / FILE, entries)
    print(folder / FILE)


def _play_all(prepared: Ladder) -> dict[tuple[str, str], Result]:
    """Plays the blocks that are missing; returns the result of each pairing."""
    folder, lines, size = prepared.run_dir, Lines(), prepared.identity["block"]
    records = [record for record in files.read_lines(folder / MATCHES, _BLOCK) if len(record["players"]) == 2]
    played = {(*record["players"], record["block"]): record["points"] for record in records}
    # A line that an interruption cut off is dropped before anything is written after it.
    kept = [{"players": key[:2], "block": key[2], "points": points} for key, points in played.items()]
    files.write_text(folder / MATCHES, "".join(json.dumps(record) + "\n" for record in kept))
    pairings, blocks = _pairings(prepared.players), -(-prepared.config.games // size)
    total, done, started = len(pairings) * blocks, 0, time.monotonic()
    results = {}
    for one, two in pairings:
        parts = []
        for block in range(blocks):
            key = (one, two, block)
            if key not in played:
                points = _play_block(prepared, one, two, block)
                files.append_line(folder / MATCHES, {"players": [one, two], "block": block, "points": points.tolist()})
                played[key] = points
            parts.append(np.asarray(played[key], np.float64))
            done += 1
            seconds = time.monotonic() - started
            lines.show(f"block {done}/{total}  {seconds:.0f} s  {one} against {two}", last=done == total)
        results[one, two] = Result(np.concatenate(parts)[: prepared.config.games // 2])
    return results


def _play_block(prepared: Ladder, one: str, two: str, block: int) -> np.ndarray:
    """Plays a block of rounds: points of `one`, float[pairs, seats]."""
    game, size = prepared.game, prepared.identity["block"]
    seed = zlib.crc32(json.dumps([prepared.config.seed, one, two, block]).encode())
    values = play_hands(game, prepared.players[one], prepared.players[two], games=size, seed=seed)
    return np.round(values["points_per_hand"].astype(np.float64), 4)


def _pairings(players: dict[str, Policy]) -> list[tuple[str, str]]:
    """Lists each pairing once, in an order that depends on the two players alone.

    Players that are one function with other parameters stand together, so that one compiled program serves them all.
    """
    kinds = {name: (getattr(player.apply, "__qualname__", type(player.apply).__qualname__), name)
             for name, player in players.items()}  # fmt: skip
    return list(itertools.combinations(sorted(players, key=kinds.__getitem__), 2))


def _entries(
    names: list[str], ratings: Ratings, by_points: PointRatings, results: dict[tuple[str, str], Result]
) -> list[dict[str, Any]]:
    """Returns what ladder.json holds: a record per player, the strongest first."""
    entries, order = [], [int(n) for n in np.argsort(-ratings.rating, kind="stable")]
    means = {pair: float(result.points.mean()) for pair, result in results.items()}
    means |= {(two, one): -mean for (one, two), mean in means.items()}
    for n in order:
        name = names[n]
        ways = [(two, result) for (one, two), result in results.items() if one == name]
        ways += [(one, result.other_side()) for (one, two), result in results.items() if two == name]
        entries.append(
            {
                "name": name,
                "rating": float(ratings.rating[n]),
                "low": float(ratings.low[n]),
                "high": float(ratings.high[n]),
                "level": int(ratings.level[n]),
                "points": {field: float(x[n]) for field, x in by_points._asdict().items()},
                "points_rank": 1 + int(np.sum(by_points.rating > by_points.rating[n])),
                "points_against": {names[other]: means.get((name, names[other])) for other in order},
                "results": [
                    {"opponent": other, **result.report()} for other, result in sorted(ways, key=lambda way: way[0])
                ],
            }
        )
    return entries


def _print(prepared: Ladder, entries: list[dict[str, Any]]) -> None:
    unit = f"{prepared.game.unit} per hand"
    caption = f"{prepared.config.games} rounds per pairing, 95 % intervals; both ratings have mean 0"
    table = Table(title=f"ladder of {prepared.game.name}", title_justify="left", caption=caption)
    for column in ("player", "rating by rounds won", "95 % interval", unit, "95 % interval", "rank by points"):
        table.add_column(column, justify="left" if column == "player" else "right")
    for entry in entries:
        points = entry["points"]
        won = (f"{entry['rating']:.0f}", f"{entry['low']:.0f} to {entry['high']:.0f}")
        earned = (f"{points['rating']:+.2f}", f"{points['low']:+.2f} to {points['high']:+.2f}")
        table.add_row(entry["name"], *won, *earned, str(entry["points_rank"]))
    Console(force_jupyter=False).print(table)
    cross = Table(title=f"{unit} of the row's player against the column's", title_justify="left")
    for column in ("", "player", *(str(n + 1) for n in range(len(entries)))):
        cross.add_column(column, justify="left" if column == "player" else "right")
    for n, entry in enumerate(entries):
        cells = ("" if mean is None else f"{mean:+.1f}" for mean in entry["points_against"].values())
        cross.add_row(str(n + 1), Path(entry["name"]).name, *cells)
    Console(force_jupyter=False).print(cross)
    for level in range(max(entry["level"] for entry in entries)):
        above = ", ".join(entry["name"] for entry in entries if entry["level"] <= level)
        below = ", ".join(entry["name"] for entry in entries if entry["level"] > level)
        print(f"{below} won no round against {above}: their distance is finite only by the tie added to each pairing")
