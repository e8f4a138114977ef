"""The match command's work: two players found, played, reported, and the report kept with the run; or rounds read."""

from __future__ import annotations

import dataclasses
import functools
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
from omegaconf import OmegaConf

from dream.commands.folders import check_can_be_folder
from dream.commands.named_player import game_of_named
from dream.compiled import devices
from dream.config import settings
from dream.config.compose import Composed, check_names
from dream.config.schema import EvaluateConfig
from dream.evaluation import match
from dream.evaluation.games import check_pairs, game_rules, match_games
from dream.evaluation.matches import check_games
from dream.evaluation.recorded import print_reports, recorded_reports
from dream.evaluation.report import report_table
from dream.search import names as search_names
from dream.storage.files import write_json, write_text, writing
from dream.storage.policies import (
    at_checkpoint,
    chosen_name,
    find,
    find_opponent,
    find_player,
    game_of,
    policies_of,
    report_dir,
    report_name,
    searching,
)
from dream.storage.reports import EVALUATIONS, measured, stated_player
from dream.training import announce, hosts
from dream.training.objective import objective
from dream.training.progress import Lines
from dream.training.versions import made_with
from envs import Game, HostPlayer, InputError, Policy, records
from envs.errors import naming

FOLDER = EVALUATIONS
"""Of the reports, in the run directory; a run's own final evaluation stays in evaluation.json."""


@dataclasses.dataclass(frozen=True)
class Match:
    """A match to be played, the file for its report, and of which trained players that is.

    Records call the checkpoint by `name`: as it was given, with its policy where that was named too. A player that has
    not been trained has no iteration.
    """

    config: EvaluateConfig
    name: str
    iteration: int | None
    game: Game
    policy: Policy
    opponent: Policy | HostPlayer
    path: Path
    measured: dict[str, Any]

    @property
    def files(self) -> tuple[Path, ...]:
        """What it writes."""
        return (self.path, *([_histories(self.config)] if self.config.histories is not None else []))


@dataclasses.dataclass(frozen=True)
class Recorded:
    """Rounds that were played, and the file for their report."""

    rounds: list[records.Record]
    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """What it writes."""
        return (self.path,)


def prepare_match(composed: Composed) -> Match | Recorded:
    """Checks a composed configuration and loads both players, or the rounds that were played; writes nothing.

    Raises:
      InputError: a wrong setting, a player that cannot be loaded, or a file that holds no rounds.
    """
    if composed.node.records is not None:
        return _recorded(composed)
    if OmegaConf.is_missing(composed.node, "checkpoint"):
        raise InputError("checkpoint= is missing; it must be a run directory, a checkpoint's folder or a policy's file")
    check_names(composed, "env")
    config = settings.read(EvaluateConfig, OmegaConf.to_container(composed.node, resolve=True), "")
    hosts.join(config.hosts)
    with hosts.together():
        found = prepared(config)
        if hosts.several() and config.target is not None:
            raise InputError("target= cannot be played by several hosts; leave out hosts.*")
        settled = {name: x for name, x in dataclasses.asdict(found.config).items() if name != "hosts"}
        hosts.same(settled, {"jax": jax.__version__, "measured": found.measured})
    return found


def _recorded(composed: Composed) -> Recorded:
    config = settings.read(EvaluateConfig, {"checkpoint": "", **OmegaConf.to_container(composed.node)}, "")
    usual = EvaluateConfig("???", records=config.records)
    if others := [name for name, value in vars(usual).items() if getattr(config, name) != value]:
        raise InputError(f"records= reads rounds that were played and plays none; leave out {', '.join(others)}")
    path = Path(config.records).expanduser().absolute()
    rounds = records.read(path)
    if not rounds:
        raise InputError(f"{path} holds no rounds")
    return Recorded(rounds, path.with_name(f"{path.name}_report.json"))


def prepared(config: EvaluateConfig) -> Match:
    """Loads both players of a match; raises InputError where they cannot be."""
    first = _trained(config) if config.env is None else _named(config)
    if config.histories is not None:
        path = Path(config.histories).expanduser().absolute()
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"histories={config.histories} is not valid; it must be a file in a folder that exists")
        check_can_be_folder(path.parent, f"histories={config.histories}")
        records.check_lines(path)  # it is replaced
    with naming("opponent"):
        place = at_checkpoint(config.opponent, first.game)
        opponent = find_opponent(place, first.game)
    players = {"checkpoint": first.measured, "opponent": stated_player(place, first.game)}
    of_run = players["opponent"]["iteration"] if place != config.opponent else None
    path = first.folder / FOLDER / _file_name(first.report_name, config, of_run, players["opponent"])
    check_can_be_folder(path.parent, f"the folder {path.parent}")
    recorded = config.checkpoint if config.policy is None else f"{config.checkpoint} ({first.policy_name})"
    config = dataclasses.replace(config, policy=first.policy_name)
    return Match(config, recorded, first.iteration, first.game, first.policy, opponent, path, players)


class _First(NamedTuple):
    """The player that is measured, and what its report says of it."""

    game: Game
    policy: Policy
    policy_name: str
    report_name: str
    folder: Path
    iteration: int | None = None
    measured: dict[str, Any] | None = None


def _trained(config: EvaluateConfig) -> _First:
    checkpoint = find(search_names.policy_in(config.checkpoint))
    game = game_of(checkpoint)
    _check_rounds(config, game)
    policies = policies_of(checkpoint, game, config.policy)
    name = chosen_name(policies, config.policy)
    return _First(
        game,
        searching(config.checkpoint, policies[name], game),
        name,
        report_name(checkpoint, name),
        report_dir(checkpoint),
        checkpoint.meta["iteration"],
        measured(checkpoint),
    )


def _named(config: EvaluateConfig) -> _First:
    """Finds a player by name on the game that `env` chooses, whose report is of the current folder."""
    game = game_of_named(config.checkpoint, config.env, config.policy)
    _check_rounds(config, game)
    name, known = search_names.policy_in(config.checkpoint), stated_player(config.checkpoint, game)
    played = game.identity if known is None else (game.identity, known)  # a level is what it stands for
    report = f"{game.name}_{name}-{zlib.crc32(repr(played).encode()):08x}".replace(":", "-")
    return _First(game, find_player(config.checkpoint, game), name, report, Path.cwd(), measured=known)


def _check_rounds(config: EvaluateConfig, game: Game) -> None:
    if game_rules(game, config.target, config.scoring) is None:
        check_games(game, config.games)
    else:
        check_pairs(game, config.games)


def play_match(prepared: Match | Recorded) -> float | None:
    """Plays a match, or reads rounds; prints the table and writes the report, and the histories where asked.

    Returns:
      Minus the points per hand, the objective of a sweep; None of rounds that were read, or on a host that only helps.
    """
    if isinstance(prepared, Recorded):
        _report_recorded(prepared)
        return None
    return _play(prepared)


def _report_recorded(prepared: Recorded) -> None:
    reports = recorded_reports(prepared.rounds, _progress("records", len(prepared.rounds), "rounds"))
    print_reports(reports)
    with writing(prepared.path):
        write_json(prepared.path, reports)
    print(prepared.path)


def _play(prepared: Match) -> float | None:
    config = prepared.config
    rounds: list[str] = []
    rules = game_rules(prepared.game, config.target, config.scoring)
    with hosts.together(), devices.over(config.devices):
        report = (match if rules is None else functools.partial(match_games, rules=rules))(
            prepared.game,
            prepared.policy,
            prepared.opponent,
            games=config.games,
            seed=config.seed,
            progress=_progress("match", config.games, "rounds" if rules is None else f"games to {rules.target}"),
            on_hand=None if config.histories is None else lambda played: rounds.append(_line(prepared, played)),
        )
        hosts.end()
    if not hosts.leads():
        return None
    for line in announce.uneven({}, devices.uneven()):
        print(line)
    trained = "" if prepared.iteration is None else f" (iteration {prepared.iteration}, {config.policy})"
    try:
        write_report(prepared, report)
        if config.histories is not None:
            path = _histories(config)
            with writing(path):
                write_text(path, "".join(rounds))
    finally:  # what was played is printed where the disk refuses it
        report_table(f"{config.checkpoint}{trained} against {config.opponent}", report)
    print(prepared.path)
    return objective({}, [report["points_per_hand"].mean])


def _histories(config: EvaluateConfig) -> Path:
    return Path(config.histories).expanduser().resolve()


def _line(prepared: Match, played: dict[str, Any]) -> str:
    """Returns the record of a round as a line."""
    game, seat = prepared.game, played["seat"]
    players = [prepared.config.opponent] * game.num_players
    players[seat] = prepared.name
    about = {name: value for name, value in played.items() if name not in ("deal", "actions", "won", "history")}
    one = records.finished(game, played["deal"], played["actions"], played["won"], players, about=about)
    return records.to_line(one)


def write_report(prepared: Match, report: dict[str, Any]) -> None:
    """Writes a match's report, which replaces that of the same match alone; the file's name says which it is.

    Raises:
      StorageError: the disk refused.
    """
    config = prepared.config
    record = {
        "iteration": prepared.iteration,
        "player": config.checkpoint,
        "opponent": config.opponent,
        "seed": config.seed,
        "policy": config.policy,
        "unit": prepared.game.unit,
        "num_players": prepared.game.num_players,
        "game": prepared.game.identity,
        "measured": prepared.measured,
        "versions": made_with(),
    }
    if (rules := game_rules(prepared.game, config.target, config.scoring)) is not None:
        record["match_rules"] = dataclasses.asdict(rules)
    with writing(prepared.path):
        prepared.path.parent.mkdir(exist_ok=True)
        write_json(prepared.path, {**record, **report})


def _file_name(
    player: str, config: EvaluateConfig, iteration: int | None, other: Mapping[str, Any] | None = None
) -> str:
    """Returns "<opponent>_<player>.json", with what searches, and target, scoring, games and seed if not usual.

    Args:
      player: that is measured.
      config: of the match.
      iteration: of the opponent's checkpoint, where it is a run or in one.
      other: who the opponent is, where its name may stand for another one later.
    """
    if search_names.is_search(config.checkpoint):
        worlds = search_names.parse(config.checkpoint).worlds
        player += f"_search_{'usual' if worlds is None else worlds}"
    plain = re.sub(r"[^\w.-]+", "-", config.opponent).strip("-.")[-60:]
    if plain != config.opponent or other is not None:  # the sum keeps different paths and players apart
        whole = config.opponent if other is None else f"{config.opponent} {dict(other)}"
        plain += f"-{zlib.crc32(whole.encode()):08x}"
    plain += "" if iteration is None else f"-{iteration}"
    target = "" if config.target is None else f"_to_{config.target}"
    scoring = "" if config.scoring is None else f"_{config.scoring}"
    games = "" if config.games == EvaluateConfig.games else f"_games{config.games}"
    seed = "" if config.seed == EvaluateConfig.seed else f"_seed{config.seed}"
    return f"{plain}_{player}{target}{scoring}{games}{seed}.json"


def _progress(what: str, total: int, unit: str) -> Callable[[int], None]:
    """Says what is to be done, and returns what shows how much of it is."""
    lines = Lines()
    print(f"{what}: {total:,} {unit}; compiling first", flush=True)
    return lambda done: lines.show(f"{what}: {done:,}/{total:,} {unit}{lines.left(done, total)}", last=done == total)
