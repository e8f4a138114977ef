"""Rounds that were played before, from their records: what each player won, with intervals."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from rich.table import Table

from dream.evaluation.console import PlainConsole
from dream.evaluation.hands import results
from dream.evaluation.statistics import Interval, effective_trials, ratio_interval, wilson
from envs import Game, InputError, records
from envs.errors import shown
from envs.game import State
from envs.records import Record

Report = dict[str, Any]
"""Of the rounds of one game: `game`, `rules`, `unit`, `rounds`, and `players`: name -> rounds and each quantity."""


def recorded_reports(rounds: Iterable[Record], progress: Callable[[int], None] = lambda n: None) -> list[Report]:
    """Replays rounds and reports each player of each game.

    The rounds of one `pair` between the same players, as a match writes them, are one sample; any other round is one by
    itself. A player with several seats counts with all of them. A round that belongs to both games of a pair of games
    to a target counts once.

    Args:
      rounds: of any games.
      progress: called with the number of rounds read.
    Returns:
      A report for each game and its rules, in order of appearance. A quantity of a single sample has no interval.
    Raises:
      InputError: a round that cannot be replayed, whose result is another, or whose `pair` is no number or text.
    """
    found: dict[str, dict[str, Any]] = {}
    for n, one in enumerate(records.counted_once(_reporting(rounds, progress))):
        game, state = records.replay(one)
        key = json.dumps([one.game, one.rules], sort_keys=True)
        group = found.setdefault(key, {"game": game, "rules": dict(one.rules), "samples": {}})
        names = records.player_names(one, game.num_players, whole=True)
        sample = (_pair(one), frozenset(names)) if "pair" in one.about else n
        for name, values in zip(names, _by_seat(game, state, one), strict=True):
            group["samples"].setdefault(name, {}).setdefault(sample, []).append(values)
        group["rounds"] = group.get("rounds", 0) + 1
    return [_report(**group) for group in found.values()]


def _reporting(rounds: Iterable[Record], progress: Callable[[int], None]) -> Iterator[Record]:
    """Yields rounds; each is reported as read when the next one is asked for."""
    for n, one in enumerate(rounds):
        yield one
        progress(n + 1)


def _pair(one: Record) -> str | float:
    pair = one.about["pair"]
    if not isinstance(pair, str | int | float):
        raise InputError(f"{one.place}: about pair is {shown(pair)}; it must be a number or a text")
    return pair


def _by_seat(game: Game, state: State, one: Record) -> list[dict[str, float]]:
    """Returns the quantities of a match's report for every seat of one round."""
    seats = np.arange(game.num_players)
    states = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], len(seats), axis=0), state)
    rewards = np.tile(np.asarray(one.result["points"], np.float32) / game.reward_scale, (len(seats), 1))
    length = np.full(len(seats), len(one.actions))
    found = jax.device_get(results(game, states, seats, rewards, length))
    return [{name: float(values[0, seat]) for name, values in found.items()} for seat in seats]


def _report(
    game: Game, rules: dict[str, Any], samples: dict[str, dict[Hashable, list[dict[str, float]]]], rounds: int
) -> Report:
    return {
        "game": game.name,
        "rules": rules,
        "unit": game.unit,
        "rounds": rounds,
        "players": {name: _player(list(of_player.values())) for name, of_player in samples.items()},
    }


def _player(samples: list[list[dict[str, float]]]) -> dict[str, Any]:
    sizes = np.array([len(sample) for sample in samples])
    names = samples[0][0]
    sums = {name: np.array([sum(seat[name] for seat in sample) for sample in samples]) for name in names}
    # `n`, as in a match's report: a game's own quantities may be named `rounds`.
    return {"n": int(sizes.sum()), **{name: _interval(name, parts, sizes) for name, parts in sums.items()}}


def _interval(name: str, parts: np.ndarray, sizes: np.ndarray) -> dict[str, float | None]:
    """Returns mean and 95 % interval of sum(parts) / sum(sizes) over samples; a rate's is Wilson's."""
    if len(sizes) < 2:
        return {"mean": float(parts.sum() / sizes.sum()), "low": None, "high": None}
    if not name.endswith("_rate"):
        return ratio_interval(parts, sizes)._asdict()
    rate, trials = float(parts.sum() / sizes.sum()), float(sizes.sum())
    variance = len(sizes) * float(np.var(parts - rate * sizes, ddof=1)) / trials**2
    return wilson(rate, effective_trials(rate, variance, len(sizes), trials, int(sizes.max())))._asdict()


def print_reports(reports: list[Report]) -> None:
    """Prints a table for each game: what each player won."""
    for report in reports:
        title = f"{report['game']}, {report['rounds']} rounds"
        table = Table(title=title, title_justify="left", caption="95 % intervals")
        for column in ("player", "rounds", f"{report['unit']} per hand", "won"):
            table.add_column(column, justify="left" if column == "player" else "right", overflow="fold")
        for name, player in report["players"].items():
            points, won = player["points_per_hand"], player["win_rate"]
            table.add_row(name, f"{player['n']:,}", _text(points, 1, ""), _text(won, 100, " %"))
        PlainConsole().print(table)


def _text(interval: dict[str, float | None], times: int, unit: str) -> str:
    if interval["low"] is None:
        return f"{times * interval['mean']:.2f}{unit}"
    mean, low, high = (times * x for x in Interval(**interval))
    return f"{mean:.2f}{unit} ({low:.2f} to {high:.2f})"
