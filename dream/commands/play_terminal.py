"""The play command in a plain terminal: the person in the first seat, players in the others."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import envs
from dream.config.schema import PlayConfig
from dream.storage.policies import find, find_opponent, find_player, game_of
from envs import Game, HostPlayer, InputError, Policy
from envs.terminal import play_in_terminal


@dataclasses.dataclass(frozen=True)
class TerminalPlay:
    """What is to be played.

    Attributes:
      game: what.
      players: by seat, None for the person.
      names: by seat.
      hint: who gives advice.
      target: score that ends it, None for no end.
      seed: of deals and players, None for a random one.
      records: file for finished rounds, None for none.
    """

    game: Game
    players: tuple[Policy | HostPlayer | None, ...]
    names: tuple[str, ...]
    hint: Policy | None
    target: int | None
    seed: int | None
    records: Path | None


def prepare_terminal(config: PlayConfig) -> TerminalPlay:
    """Finds game and players: those of `players` have the seats after the person, the last one all that are left.

    Raises:
      InputError: an unknown game or player, more players than seats, or a file in no folder.
    """
    given = config.players or ("random",)
    game = _game(config, given)
    others = game.num_players - 1
    if len(given) > others:
        raise InputError(f"players= names {len(given)}; {game.name} here has {others} seats besides yours")
    chosen = (*given, *[given[-1]] * (others - len(given)))
    players = tuple(find_opponent(one, game) for one in chosen)
    records = None if config.records is None else Path(config.records).expanduser().absolute()
    if records is not None and (records.is_dir() or not records.parent.is_dir()):
        raise InputError(f"records={config.records} is not valid; it must be a file in a folder that exists")
    hint = players[0] if isinstance(players[0], Policy) else find_player("random", game)
    names = ("you", *(f"{one} {n}" if others > 1 else one for n, one in enumerate(chosen, 1)))
    return TerminalPlay(game, (None, *players), names, hint, config.target, config.seed, records)


def _game(config: PlayConfig, players: tuple[str, ...]) -> Game:
    """Returns the game that is named, with its default rules; else that of the first trained player."""
    if config.game is not None:
        return envs.make(config.game)
    for one in players:
        if Path(one).expanduser().exists():
            return game_of(find(one))
    return envs.make("gin_rummy")


def play_terminal(prepared: TerminalPlay) -> None:
    """Plays until the person leaves or a score reaches the target."""
    play_in_terminal(
        prepared.game,
        prepared.players,
        names=prepared.names,
        hint=prepared.hint,
        target=prepared.target,
        seed=prepared.seed,
        keep=prepared.records,
    )
