"""The ladder command's work: cross-play of all players, kept block by block, rated and written as ladder.json."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import envs
from dream.commands.ladder_folder import BY_CODE, SETTINGS, asked, check_folder, paths_of
from dream.commands.ladder_play import MATCHES, Rounds
from dream.commands.ladder_plot import plot_ladder
from dream.commands.ladder_report import ladder_entries, print_ladder
from dream.config import settings
from dream.config.compose import Composed, check_names
from dream.config.schema import LadderConfig
from dream.evaluation.games import game_rules
from dream.evaluation.matches import check_games
from dream.evaluation.ratings import Ratings, bradley_terry, point_ratings
from dream.evaluation.standings import Result, Score
from dream.evaluation.validity import refuse_unopposed
from dream.search import names as search_names
from dream.storage import files, levels, solved
from dream.storage.lock import RunLock
from dream.storage.policies import absolute, find, find_player, places_of, player_names
from dream.training import announce
from dream.training.signals import StopRequest
from envs import Game, InputError, MatchRules, Policy
from envs.errors import naming
from envs.source_key import player_key

FILE = "ladder.json"
_ROOT = Path("runs")
_DIGITS = 12
"""How much is kept of the digest of a player's code."""


@dataclasses.dataclass(frozen=True)
class Ladder:
    """A cross-play to be played.

    Attributes:
      config: the settings.
      game: what is played.
      players: by name, in the order given.
      run_dir: where results are kept.
      identity: what results in one run directory must agree in.
      places: where each player is found, that of a run at the checkpoint that is played.
      sources: what each player is: by which code one without training plays, or a checkpoint's checksum.
      match_rules: how rounds make the games that players are rated by too; None: they are not.
    """

    config: LadderConfig
    game: Game
    players: dict[str, Policy]
    run_dir: Path
    identity: dict[str, Any]
    places: dict[str, str]
    sources: dict[str, str]
    match_rules: MatchRules | None


def prepare_ladder(composed: Composed) -> Ladder:
    """Checks a composed configuration, loads all players and looks at what has been played; writes nothing.

    Raises:
      InputError: a wrong setting, a player that cannot be loaded, or a folder that holds something else.
    """
    check_names(composed, "env")
    config = settings.read(LadderConfig, composed.node, "")
    game = envs.make(config.env.name, **config.env.rules)
    refuse_unopposed(game, "a ladder")
    check_games(game, config.games)
    if config.block % 2:
        raise InputError(f"block={config.block} is odd; it must be even: deals are mirrored")
    names = config.players if config.players is not None else tuple(envs.bot_names(game))
    twice = [name for name in names if names.count(name) > 1]
    if len(names) < 2 or twice:
        wrong = f"names {twice[0]!r} twice; name each once" if twice else f"names {len(names)}; name at least two"
        raise InputError(f"players={list(names)} {wrong}")
    run_dir = _run_dir(composed, config)
    paths = paths_of(run_dir)
    with naming("players"):
        places = places_of(names, game, paths)
        players = {name: find_player(place, game) for name, place in places.items()}
    sources = {name: _identified(places[name], player, game) for name, player in players.items()}
    identity = {"game": game.identity, "seed": config.seed, "block": min(config.block, config.games)}
    rules = _match_rules(game, config, asked=composed.gives("target"))
    prepared = Ladder(config, game, players, run_dir, identity, places, sources, rules)
    check_folder(prepared.run_dir, identity, sources)
    return prepared


def _match_rules(game: Game, config: LadderConfig, *, asked: bool) -> MatchRules | None:
    """Returns how rounds make games; None where no target is set, or none was asked and rounds stand alone."""
    try:
        return game_rules(game, config.target, config.scoring)
    except InputError as error:
        if config.scoring is not None:
            raise
        if asked:
            raise InputError(f"target={config.target} is not possible: {error}") from error
        return None


def _identified(name: str, player: Policy, game: Game) -> str:
    """Returns what a player is, with a digest of its code where that, and no training, makes it."""
    source = _source(name, game)
    if not _is_code(name, game):
        return source
    solver = solved.MODULES if name == solved.NAME else ()
    return f"{source}{BY_CODE}{player_key(player, game, solver)[:_DIGITS]}"


def _is_code(name: str, game: Game) -> bool:
    if levels.is_level(name):
        level = levels.level(name, game)
        return level.mistakes > 0 or _is_code(level.player, game)
    return search_names.is_search(name) or name in player_names(game)


def _source(name: str, game: Game) -> str:
    if name in envs.bot_names(game):
        return "rule-based player"
    if name in player_names(game):
        return "CFR+ on the whole tree"
    if search_names.is_search(name):
        return f"search with a {_source(search_names.parse(name).policy, game)}"
    if levels.is_level(name):
        level = levels.level(name, game)
        return f"{level.player} with {level.mistakes:g} of its moves at random: {_source(level.player, game)}"
    meta = find(name).meta
    kind = "file" if meta["iteration"] is None else f"checkpoint of iteration {meta['iteration']}"
    return f"{kind}, checksum {meta['checksum']}"


def _run_dir(composed: Composed, config: LadderConfig) -> Path:
    if composed.sweep_dir:
        return composed.sweep_dir
    if config.run_dir is not None:
        return Path(config.run_dir).expanduser().absolute()
    return (_ROOT / f"{time.strftime('%Y-%m-%d_%H-%M-%S')}_ladder_{config.env.name}").absolute()


def play_ladder(prepared: Ladder, stop: StopRequest | None = None) -> None:
    """Plays what has not been played yet, then rates, prints and writes everything.

    Args:
      prepared: what to play.
      stop: has the signals of this process; None where nobody takes them over.
    Raises:
      InputError: another process plays in the folder, or it cannot be written to.
      StorageError: the disk refused while the ladder was played; what was played is kept.
    """
    folder, stop = prepared.run_dir, stop or StopRequest(listen=False)
    with RunLock(folder) as lock, stop.holding(lock.release):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            reason, mend = files.why_not(error)
            raise InputError(f"run_dir={folder} cannot be written ({reason}); {mend}, or choose another") from error
        check_folder(folder, prepared.identity, prepared.sources)  # another ladder may have been played there since
        try:
            _play_and_rate(prepared, stop)
        except BrokenPipeError as error:  # nobody reads the output any more
            error.add_note(_kept(folder))
            raise
        except OSError as error:
            reason, mend = files.why_not(error)
            raise files.StorageError(
                f"{folder} cannot be written ({reason}); the blocks in {MATCHES} are safe; {mend}, then go on with "
                f"run_dir={announce.as_argument(folder)}"
            ) from error


def _play_and_rate(prepared: Ladder, stop: StopRequest) -> None:
    folder, names = prepared.run_dir, list(prepared.players)
    print(f"run directory: {folder}; once interrupted, go on with {_way_on(folder)}", flush=True)
    known = files.decoded((folder / SETTINGS).read_bytes())["players"] if (folder / SETTINGS).exists() else {}
    files.write_json(folder / SETTINGS, prepared.identity | {"players": known | prepared.sources} | _asked(prepared))
    if left_out := known.keys() - prepared.sources.keys():
        print(
            f"not rated, as players does not name them; their matches are kept: {', '.join(sorted(left_out))}",
            flush=True,
        )
    block = prepared.identity["block"]
    stop.protect(False, _kept(folder))
    try:
        played = Rounds(prepared.game, prepared.players, prepared.places, prepared.config, block, folder, stop).play()
    finally:
        stop.protect(False)
    results = {pair: Result(points, prepared.match_rules) for pair, points in played.items()}
    ratings = {"rounds": _rated(names, results, lambda result: result.by_rounds)}
    if prepared.match_rules is not None:
        ratings["games"] = _rated(names, results, lambda result: result.by_games)
    places = {(names.index(one), names.index(two)): result for (one, two), result in results.items()}
    by_points = point_ratings({place: result.points.mean(axis=1) for place, result in places.items()}, len(names))
    entries = ladder_entries(names, ratings, by_points, results)
    files.write_json(folder / FILE, entries)
    print_ladder(entries, prepared.game, prepared.config.games, prepared.match_rules)
    title = f"{prepared.game.name}, {prepared.config.games:,} rounds per pairing"
    for path in plot_ladder(entries, prepared.game.unit, title, folder, prepared.config.plot):
        print(path)
    print(folder / FILE)


def _way_on(folder: Path) -> str:
    return f"python -m dream.ladder run_dir={announce.as_argument(folder)}"


def _kept(folder: Path) -> str:
    return f"the blocks in {folder / MATCHES} are kept; go on with {_way_on(folder)}"


def _asked(prepared: Ladder) -> dict[str, Any]:
    """Returns the settings that the folder alone goes on with."""
    config, names = prepared.config, ("games", "seed", "processes", "plot")
    settings = {"players": list(prepared.players), "block": prepared.identity["block"]}
    settings |= {name: getattr(config, name) for name in names}
    if prepared.match_rules is not None or config.target is None:  # else games are not asked for
        settings |= {"target": config.target, "scoring": config.scoring}
    found = {name: absolute(name, prepared.game) for name in prepared.players}
    paths = {name: path for name, path in found.items() if path != name}
    return asked(dataclasses.asdict(config.env), settings, paths_of(prepared.run_dir) | paths)


def _rated(names: list[str], results: dict[tuple[str, str], Result], score_of: Callable[[Result], Score]) -> Ratings:
    """Rates players by what they won of one kind."""
    score, games, trials = (np.zeros((len(names), len(names))) for _ in range(3))
    for (one, two), result in results.items():
        i, j, found = names.index(one), names.index(two), score_of(result)
        score[i, j], score[j, i] = found.share * found.games, (1 - found.share) * found.games
        games[i, j] = games[j, i] = found.games
        trials[i, j] = trials[j, i] = found.trials
    return bradley_terry(score, games, trials)
