"""Plays a ladder's rounds, block by block, by one process or several, and keeps what was played."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import multiprocessing
import os
import queue
import signal
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import envs
from dream.compiled import devices
from dream.config.schema import LadderConfig
from dream.evaluation.matches import play_hands
from dream.storage import files
from dream.storage.policies import find_player
from dream.training import announce
from dream.training.progress import Lines
from dream.training.signals import StopRequest
from envs import Game, InputError, Policy

MATCHES = "matches.jsonl"
_WAIT = 2.0
"""Seconds after which it is looked at whether the processes are still there."""
Pairing = tuple[str, str]


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Rounds to be played of every pairing.

    Attributes:
      game: what is played.
      players: by name.
      places: where other processes find them.
      config: the settings.
      block: rounds played at once.
      folder: where they are kept.
      stop: has the signals of this process.
    """

    game: Game
    players: dict[str, Policy]
    places: dict[str, str]
    config: LadderConfig
    block: int
    folder: Path
    stop: StopRequest

    def play(self) -> dict[Pairing, np.ndarray]:
        """Plays the blocks that are missing; returns the first player's points of each pairing, float64[pairs, 2]."""
        played, pairings = self._kept(), pairings_of(self.players)
        blocks = range(-(-self.config.games // self.block))
        missing = [(pair, [n for n in blocks if (*pair, n) not in played]) for pair in pairings]
        missing = [(pair, numbers) for pair, numbers in missing if numbers]
        lines, total, kept, started = Lines(), len(pairings) * len(blocks), len(played), time.monotonic()
        for (one, two), number, points in self._played(missing):
            files.append_lines(self.folder / MATCHES, [{"players": [one, two], "block": number, "points": points}])
            played[one, two, number] = points
            done, seconds = len(played), time.monotonic() - started
            left = lines.left(done - kept, total - kept)
            lines.show(f"block {done}/{total}  {seconds:.0f} s  {one} against {two}{left}", last=done == total)
        if not missing:
            lines.show(f"block {total}/{total}  all played before", last=True)
        return {
            (one, two): np.concatenate([np.asarray(played[one, two, n], np.float64) for n in blocks])[
                : self.config.games // 2
            ]
            for one, two in pairings
        }

    def _kept(self) -> dict[tuple[str, str, int], Any]:
        """Returns the blocks of an earlier call; a line that an interruption cut off is dropped from the file."""
        records = [x for x in files.read_lines(self.folder / MATCHES, _is_block) if len(x["players"]) == 2]
        played = {(*x["players"], x["block"]): x["points"] for x in records}
        kept = [{"players": key[:2], "block": key[2], "points": points} for key, points in played.items()]
        files.write_text(self.folder / MATCHES, "".join(json.dumps(record) + "\n" for record in kept))
        names = {*itertools.chain.from_iterable(pairings_of(self.players))}
        blocks = -(-self.config.games // self.block)
        return {key: points for key, points in played.items() if {*key[:2]} <= names and key[2] < blocks}

    def _played(self, missing: list[tuple[Pairing, list[int]]]) -> Iterator[tuple[Pairing, int, list]]:
        """Yields the blocks that were missing as they are played: pairing, number, points."""
        processes = min(self.config.processes, len(missing))
        if processes > 1:
            yield from _by_processes(self.config, self.places, self.block, missing, processes, self.stop)
            return
        for pair, numbers in missing:
            for number in numbers:
                yield pair, number, play_block(self.game, self.players, pair, number, self.block, self.config.seed)


def _is_block(record: dict[str, Any]) -> bool:
    """Returns whether a line of matches.jsonl holds what a block does."""
    players, number, points = (record.get(name) for name in ("players", "block", "points"))
    named = isinstance(players, list) and all(isinstance(player, str) for player in players)
    return named and type(number) is int and isinstance(points, list)


def play_block(
    game: Game, players: dict[str, Policy], pair: Pairing, number: int, size: int, seed: int
) -> list[list[float]]:
    """Plays a block of rounds: the first player's points by deal and seat."""
    one, two = pair
    key = zlib.crc32(json.dumps([seed, one, two, number]).encode())
    with devices.over(None):
        values = play_hands(game, players[one], players[two], games=size, seed=key)
    for line in announce.uneven({"block": size}, devices.uneven()):
        _say_once(line)
    return np.round(values["points_per_hand"].astype(np.float64), 4).tolist()


@functools.cache
def _say_once(line: str) -> None:
    print(line, flush=True)


def pairings_of(players: dict[str, Policy]) -> list[Pairing]:
    """Lists each pairing once, in an order that depends on the two players alone.

    Players that are one function with other parameters stand together, so that one compiled program serves them all.
    """
    kinds = {name: (getattr(player.apply, "__qualname__", type(player.apply).__qualname__), name)
             for name, player in players.items()}  # fmt: skip
    return list(itertools.combinations(sorted(players, key=kinds.__getitem__), 2))


def _by_processes(
    config: LadderConfig,
    places: dict[str, str],
    size: int,
    missing: list[tuple[Pairing, list[int]]],
    processes: int,
    stop: StopRequest,
) -> Iterator[tuple[Pairing, int, list]]:
    """Plays by several processes, each a pairing at a time, so that each program is compiled by one of them alone.

    Raises:
      InputError: a policy gives no distribution somewhere, or a process ended before its work was done.
    """
    context = multiprocessing.get_context("spawn")
    tasks, results = context.Queue(), context.Queue()
    for task in missing:
        tasks.put(task)
    for _ in range(processes):
        tasks.put(None)
    work = config, places, size, tasks, results
    workers = [context.Process(target=_work, args=work, daemon=True) for _ in range(processes)]

    def end() -> None:
        for worker in workers:
            if worker.pid is not None:
                worker.terminate()

    with stop.holding(end):
        try:
            with _interrupts_withheld():
                for worker in workers:
                    worker.start()
            for _ in range(sum(len(numbers) for _, numbers in missing)):
                yield _next(results, workers)
        finally:
            end()


@contextlib.contextmanager
def _interrupts_withheld() -> Iterator[None]:
    """Starts processes that Ctrl-C does not reach: the one they work for ends them. They inherit what is blocked.

    Another thread of this process takes an interruption meanwhile (training/signals.py).
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


def _end_with_parent() -> None:
    """Ends this process as soon as the one it works for is gone, however that ended."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _next(results: Any, workers: list[Any]) -> tuple[Pairing, int, list]:
    """Returns the next block that a process has played; raises InputError where none will come."""
    while True:
        try:
            found = results.get(timeout=_WAIT)
        except queue.Empty:
            ended = [worker.exitcode for worker in workers if worker.exitcode]
            if ended:
                raise InputError(
                    f"a process of the ladder ended with code {ended[0]}; the blocks in {MATCHES} are safe: run the "
                    "same command again, with processes=1 if memory was short"
                ) from None
            continue
        if isinstance(found, str):
            raise InputError(found)
        return found


def _work(config: LadderConfig, places: dict[str, str], size: int, tasks: Any, results: Any) -> None:
    """Plays pairings until there are none: a process of its own."""
    _end_with_parent()
    try:
        game = envs.make(config.env.name, **config.env.rules)
        # A run that goes on deletes its old checkpoints: what is played of it is read at once.
        runs = {name: find_player(place, game) for name, place in places.items() if place != name}
        while (task := tasks.get()) is not None:
            pair, numbers = task
            players = {name: runs.get(name) or find_player(name, game) for name in pair}
            for number in numbers:
                results.put((pair, number, play_block(game, players, pair, number, size, config.seed)))
    except InputError as error:
        results.put(str(error))
