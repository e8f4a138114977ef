"""The commands as functions for notebooks and scripts; `import dream` exports them."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType

from dream.commands import exploit_measure
from dream.commands.exploit_report import ExploitReport
from dream.config import settings
from dream.config.compose import compose_config
from dream.config.schema import EvaluateConfig
from dream.evaluation import match
from dream.evaluation.games import game_rules, match_games
from dream.evaluation.report import MatchReport
from dream.search import names as search_names
from dream.storage.policies import (
    by_name,
    check_game,
    find,
    find_opponent,
    find_player,
    game_of,
    place_of,
    policy_of,
    searching,
)
from dream.training import loop
from dream.training.finished import FinishedRun, load_run
from dream.training.signals import StopRequest
from dream.training.start import prepare_run, with_stored_choices
from envs import Game, HostPlayer, InputError, Policy, check_plays

Reference = str | os.PathLike[str]
"""A run directory or FinishedRun, a checkpoint's folder, a policy's file, or hf:<owner>/<repo>/<file>."""


def train(overrides: Sequence[str] = (), *, quiet: bool = False) -> FinishedRun:
    """Trains as `python -m dream.run` does, and writes the same run directory.

    An interrupt (Ctrl-C, or the notebook's stop button) finishes the iteration or abandons it after some seconds, saves
    a checkpoint and then raises KeyboardInterrupt; `dream.train(["resume=<run directory>"])` resumes the run. A second
    interrupt exits at once.

    Args:
      overrides: as on the command line, one setting each, for instance ["env=leduc_poker", "iterations=20"].
      quiet: whether to suppress progress and tables; what is said of the settings before the run begins is printed.
    Returns:
      The FinishedRun: `directory`, `metrics`, `columns()`, `policies`, `evaluation` and `exact`.
    Raises:
      InputError: a wrong override, or a run directory that cannot be used; nothing has been written.
      FloatingPointError: training diverged.
      StorageError: writing to disk failed during the run; the message names what was saved.

    Example:
      >>> run = dream.train(["env=kuhn_poker", "algo=cfr_plus", "iterations=20"], quiet=True)
      >>> sorted(run.policies)
      ['average', 'current']
      >>> run.exact["average"]["exploitability"] < 0.05
      True
    """
    start = prepare_run(compose_config("config", with_stored_choices(_checked(overrides))))
    with _interrupts() as stop, contextlib.redirect_stdout(io.StringIO()) if quiet else contextlib.nullcontext():
        loop.train(start, stop)
    if stop.received is not None:
        raise KeyboardInterrupt(f"the run is saved; go on with resume={start.run_dir}")
    return load_run(start.run_dir)


def evaluate(
    policy: Policy | Reference,
    opponent: Policy | HostPlayer | Reference = "random",
    *,
    games: int = 10000,
    seed: int = 0,
    name: str | None = None,
    game: Game | None = None,
    target: int | None = None,
    scoring: str | None = None,
) -> MatchReport:
    """Plays a match over mirrored deals as `python -m dream.evaluate` does; writes nothing.

    Args:
      policy: a Policy, a Reference to a trained player, or with `game` the name of a rule-based player.
      opponent: the same, the name of a rule-based player, or a player of another library such as
        "open_spiel:simple_gin_rummy_bot".
      games: number of rounds, a multiple of the number of players, as each deal is played from every seat; with a
        target, number of games.
      seed: of deals and actions.
      name: the policy to use where `policy` is a Reference; by default the average policy where there is one.
      game: the game to play; by default the game of the policy.
      target: the score that ends a game, such as 100; None for single rounds.
      scoring: preset of dealer, boxes and bonuses of games to a target; by default the one of the rules of the rounds.
    Returns:
      The MatchReport from the side of `policy`, e.g. `.points_per_hand.mean` and `.win_rate.low`.
    Raises:
      InputError: a player that cannot be loaded or plays another game, or a wrong number of games.

    Example:
      >>> kuhn = envs.make("kuhn_poker")
      >>> report = dream.evaluate("random", "random", games=1000, game=kuhn)
      >>> report.games, report.win_rate.low <= 0.5 <= report.win_rate.high
      (1000, True)
    """
    settled = {"checkpoint": "", "games": games, "seed": seed, "target": target, "scoring": scoring}
    config = settings.read(EvaluateConfig, settled, "")
    game, policy = _player(policy, name, game)
    other = opponent if isinstance(opponent, Policy | HostPlayer) else find_opponent(place_of(opponent), game)
    rules = game_rules(game, config.target, config.scoring)
    play = match if rules is None else functools.partial(match_games, rules=rules)
    return MatchReport.of_record(game.unit, play(game, policy, other, games=config.games, seed=config.seed))


_ARGUMENTS = {
    "checkpoint": "the player is the first argument",
    "policy": "which of its policies is the argument name=",
    "env": "the game is the argument game=",
    "run_dir": "no report is written",
}
"""Settings of the command dream.exploit that are arguments of `exploit`."""


def exploit(
    policy: Policy | Reference,
    overrides: Sequence[str] = (),
    *,
    method: str = "auto",
    name: str | None = None,
    game: Game | None = None,
) -> ExploitReport:
    """Computes the exploitability of a policy or a lower bound, as `python -m dream.exploit` does; writes nothing.

    Args:
      policy: a Policy, a Reference to a trained player, or with `game` the name of a rule-based player.
      overrides: further settings as on the command line, for instance ["best_response.iterations=50"].
      method: "exact" on enumerable games, "learned" or "local" for a lower bound, "both" for exact and learned, or
        "auto": exact where possible, otherwise learned.
      name: the policy to use where `policy` is a Reference; by default the average policy where there is one.
      game: the game to play; by default the game of the policy.
    Returns:
      The ExploitReport: `exploitability` and `nash_conv` in game.unit, `is_exact`, and the bounds that were computed.
    Raises:
      InputError: a wrong setting, a player that cannot be loaded, or an exact value requested where there is none.

    Example:
      >>> report = dream.exploit("random", game=envs.make("kuhn_poker"))
      >>> report.is_exact, round(report.exploitability, 4)
      (True, 0.4583)
    """
    overrides = _checked(overrides)
    for override in overrides:
        if (instead := _ARGUMENTS.get(override.split("=")[0].lstrip("+~").split(".")[0])) is not None:
            raise InputError(f"{override} among the overrides has no effect; {instead}")
    composed = compose_config("exploit", ["checkpoint=''", f"method={method}", *overrides])
    config = exploit_measure.read_config(composed)
    game, policy = _player(policy, name, game)
    planned = exploit_measure.plan(config, game, policy)
    exploit_measure.check_used(composed, planned)
    return exploit_measure.measure(planned)


def _player(policy: Policy | Reference, name: str | None, game: Game | None) -> tuple[Game, Policy]:
    """Returns the game and the policy; raises InputError where they cannot be loaded or do not match."""
    if not isinstance(game, Game | None):
        raise InputError(f"game={game!r} is not a game; give one, as in game=envs.make('kuhn_poker')")
    if isinstance(policy, Policy):
        game = game or policy.game
        if name is not None:
            raise InputError(f"name={name} chooses among a run's policies; leave it out with a Policy")
        if game is None:
            raise InputError("the policy does not know its game; give it, as in game=envs.make('kuhn_poker')")
        check_plays(policy, game)
        return game, policy
    reference = place_of(policy)
    place = search_names.policy_in(reference)
    if game is not None and place in by_name(game):
        if name is not None:
            raise InputError(f"name={name} chooses among a run's policies; leave it out with {place}")
        return game, find_player(reference, game)
    trained = find(place)
    if game is None:
        game = game_of(trained)
    else:
        check_game(trained, game)
    return game, searching(reference, policy_of(trained, game, name), game)


def _checked(overrides: Sequence[str]) -> list[str]:
    """Returns overrides as a list; raises InputError for a single string and for what is no list of strings."""
    listed = isinstance(overrides, Sequence) and not isinstance(overrides, str)
    if not listed or not all(isinstance(override, str) for override in overrides):
        raise InputError(f"overrides={overrides!r} is not valid; it must be a list of strings, as ['iterations=20']")
    if wrong := next((override for override in overrides if override.startswith("-")), None):
        raise InputError(f"{wrong} is no setting; settings have no dashes, as env=kuhn_poker, and sweeps are commands'")
    return list(overrides)


class _Interrupts(StopRequest):
    """Remembers the first interrupt of a training run; before there is work to save, it is raised at once."""

    def __init__(self) -> None:
        super().__init__(listen=False)

    def take(self, number: int, frame: FrameType | None) -> None:
        """Remembers a signal; raises KeyboardInterrupt for the second one, and where there is nothing to save."""
        if self.received is not None or not self._protected:
            raise KeyboardInterrupt
        self.received = number


@contextlib.contextmanager
def _interrupts() -> Iterator[_Interrupts]:
    """Handles SIGINT for a training run in the main thread, and restores the handler afterwards."""
    stop = _Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, stop.take)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
