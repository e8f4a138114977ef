"""All matches of a server, who may see them, and the work between a message and its answer."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dream.page import refusals
from dream.page.advice import Adviser
from dream.page.catalogue import Catalogue
from dream.page.compiled import Player, Shelf
from dream.page.match import Chair, Match, Settings
from dream.page.opened import MOST_CHARACTERS, MOST_UNDER_WAY, Archive, Upload
from dream.page.protocol import MOST_PART_BYTES
from dream.page.refusals import RefusedError
from envs import Game, InputError, Policy

Send = Callable[[dict[str, Any]], Awaitable[None]]

MOST_MATCHES, MOST_OWN, MOST_IDLE = 512, 160, 6 * 3600.0
"""Matches kept by the server and by one key; seconds after which one that nobody touches is forgotten."""
MOST_FILE_BYTES = 2**26
"""Of all files of records that are kept."""
_MOST_ADVISERS = 16
_PREPARING = 6.0
"""Seconds that a table may wait for its first card while its players are compiled."""
_THINKING_SHOWN = 0.15
"""Seconds after which the page is informed that a player thinks."""


class Connection:
    """One tab: whose it is, and what it watches."""

    def __init__(self, send: Send, close: Callable[[], Awaitable[None]]) -> None:
        """Knows nobody yet; the first message says whose it is."""
        self.send, self.close = send, close
        self.key: str | None = None
        self.watches: str | None = None
        self.task: asyncio.Task[None] | None = None
        self.upload = Upload()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts advice or a review in place of what is under way; what is wrong with it is sent as an error."""
        self.stop()
        self.task = asyncio.create_task(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except InputError as error:
            await self.send(refusals.message(error))

    def stop(self) -> None:
        """Ends the advice that is under way."""
        if self.task is not None:
            self.task.cancel()
            self.task = None


class Hub:
    """Matches and files by id, each of one key; a message about another's is answered as if there were none."""

    def __init__(self, catalogue: Catalogue, records: Callable[[Match], None] | None = None) -> None:
        """Begins without matches; `records` is given each match when a round with a person is over."""
        self.catalogue, self.shelf = catalogue, Shelf()
        self.matches: dict[str, Match | Archive] = {}
        self.owners: dict[str, str] = {}
        self.connections: set[Connection] = set()
        self._records = records
        self._locks: dict[str, asyncio.Lock] = {}
        self._paused: set[str] = set()
        self._drivers: dict[str, asyncio.Task[None]] = {}
        self._advisers: dict[Any, Adviser] = {}
        self.quick = ThreadPoolExecutor(2, "quick")
        self.slow = ThreadPoolExecutor(4, "slow")

    def close(self) -> None:
        """Ends all that is under way."""
        for task in self._drivers.values():
            task.cancel()
        for connection in self.connections:
            connection.stop()
        self.quick.shutdown(wait=False, cancel_futures=True)
        self.slow.shutdown(wait=False, cancel_futures=True)

    async def in_thread(self, quick: bool, function: Callable[..., Any], *arguments: Any) -> Any:
        """Runs a function in a thread: the event loop goes on, and short work does not wait for long work."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.quick if quick else self.slow, function, *arguments)

    # --- matches

    def held(self, connection: Connection, name: str) -> Match | Archive:
        """Returns a match or a file of the connection's own.

        Raises:
          RefusedError: there is none of that name, or it is another's.
        """
        found = self.matches.get(name)
        if found is None or self.owners[name] != connection.key:
            raise RefusedError("no_match")
        return found

    def find(self, connection: Connection, name: str) -> Match:
        """Returns a match of the connection's own, as `held`."""
        found = self.held(connection, name)
        if isinstance(found, Archive):
            raise RefusedError("no_match")
        return found

    def room_for_files(self) -> int:
        """Returns how many characters can still be taken of files under way."""
        return MOST_UNDER_WAY - sum(connection.upload.size for connection in self.connections)

    def add(self, connection: Connection, match: Match | Archive) -> None:
        """Keeps a match or a file; the ones that have waited longest are forgotten."""
        assert connection.key is not None
        self._forget_old(connection.key)
        if isinstance(match, Archive):
            self._forget_files(MOST_FILE_BYTES - match.nbytes)
        self.matches[match.id], self.owners[match.id] = match, connection.key
        self._locks[match.id] = asyncio.Lock()

    def _forget_old(self, key: str) -> None:
        now = time.monotonic()
        by_age = sorted(self.matches, key=lambda name: self.matches[name].used)
        own = [name for name in by_age if self.owners[name] == key]
        for name in by_age:
            if now - self.matches[name].used > MOST_IDLE:
                self.forget(name)
        for name in own[: max(len(own) - MOST_OWN + 1, 0)]:
            self.forget(name)
        for name in by_age[: max(len(by_age) - MOST_MATCHES + 1, 0)]:
            self.forget(name)

    def _forget_files(self, most: int) -> None:
        """Drops the files that have waited longest, until the others have so many bytes at most."""
        files = [one for one in self.matches.values() if isinstance(one, Archive)]
        total = sum(one.nbytes for one in files)
        for one in sorted(files, key=lambda one: one.used):
            if total > most:
                self.forget(one.id)
                total -= one.nbytes

    def forget(self, name: str) -> None:
        """Drops a match or a file."""
        if task := self._drivers.pop(name, None):
            task.cancel()
        for held in (self.matches, self.owners, self._locks):
            held.pop(name, None)
        self._paused.discard(name)

    def own(self, key: str) -> list[dict[str, Any]]:
        """Lists the matches and files of a key, the last used first."""
        mine = [self.matches[name] for name, owner in self.owners.items() if owner == key]
        return [_listed(match) for match in sorted(mine, key=lambda match: -match.used)]

    # --- messages

    def hello(self, connection: Connection, key: str | None) -> dict[str, Any]:
        """Takes a connection in: by the key it was given before, or with a new one."""
        known = key is not None and len(key) >= 20
        connection.key = key if known else secrets.token_urlsafe(24)
        return {"type": "welcome", "key": connection.key, "games": self.catalogue.games(),
                "matches": self.own(connection.key), "file_bytes": MOST_CHARACTERS,
                "part_bytes": MOST_PART_BYTES}  # fmt: skip

    async def new(self, connection: Connection, message: dict[str, Any]) -> Match:
        """Starts a match."""
        game = self.catalogue.game(message["game"], message["variant"])
        chairs = []
        for label in message["seats"]:
            chairs.append(Chair() if label is None else Chair(label, await self.player(label, game)))
        settings = Settings(message["variant"], message["target"], float(message["pace"]))
        match = await self.in_thread(False, lambda: Match(self.shelf.game(game), chairs, settings))
        await self._prepare(match)
        self.add(connection, match)
        return match

    async def _prepare(self, match: Match) -> None:
        """Compiles what the first moves need before the first card is shown, unless that takes long."""
        position = match.round.position
        view = position.views[position.current]
        work = [self.in_thread(False, match.compiled.step, position, int(position.legal.argmax()))]
        new = {chair.player for chair in match.chairs if chair.player is not None and chair.player.seconds is None}
        work += [self.in_thread(False, player.probabilities, view, position.legal) for player in new]
        await asyncio.wait([asyncio.ensure_future(one) for one in work], timeout=_PREPARING)

    async def player(self, label: str, game: Any) -> Player:
        """Returns a player by its label."""
        reference = self.catalogue.reference(label, game)
        return await self.in_thread(False, self.shelf.player, reference, game)

    def adviser(self, game: Game, player: Player, playout: Policy) -> Adviser:
        """Returns an adviser; the last few are kept with what they have compiled."""
        name = (game, player.name)
        if name not in self._advisers:
            while len(self._advisers) >= _MOST_ADVISERS:
                self._advisers.pop(next(iter(self._advisers)))
            self._advisers[name] = Adviser(game, player, playout)
        return self._advisers[name]

    async def act(self, match: Match, message: dict[str, Any]) -> None:
        """Plays the person's action.

        Raises:
          RefusedError: another round or move is under way by now, it is not the person's turn, or it is not legal.
        """
        async with self._locks[match.id]:
            if (match.round.number, match.ply) != (message["round"], message["ply"]):
                raise RefusedError("moved_on")
            chair = match.to_act
            if chair is None or chair.player is not None:
                raise RefusedError("not_your_turn")
            await self.in_thread(True, match.act, message["action"])
        await self.after_move(match)

    async def next_round(self, match: Match, number: int) -> None:
        """Deals the next round, once however often it is asked for."""
        async with self._locks[match.id]:
            if match.round.number != number:
                return
            await self.in_thread(True, match.next_round)
        await self.show(match)
        self.drive(match)

    async def after_move(self, match: Match) -> None:
        """Shows a match to all who watch it, keeps a finished round, and lets players go on."""
        await self._keep(match)
        await self.show(match)
        self.drive(match)

    async def _keep(self, match: Match) -> None:
        """Keeps the record of a round that has just ended with a person at the table; a branch is none."""
        if not match.round.position.done or self._records is None or match.person is None or match.branched:
            return
        try:
            await self.in_thread(False, self._records, match)
        except InputError as error:
            await self._tell(match, refusals.message(error))

    async def show(self, match: Match) -> None:
        """Sends a match as it stands to all who watch it."""
        await self._tell(match, {"type": "match", "match": self.snapshot(match)})

    def snapshot(self, match: Match) -> dict[str, Any]:
        """Returns what the page shows of a match."""
        return {**match.snapshot(), "paused": match.id in self._paused}

    async def pace(self, match: Match, pace: float, paused: bool) -> None:
        """Sets how fast players move among themselves."""
        match.set_pace(pace)
        (self._paused.add if paused else self._paused.discard)(match.id)
        await self.show(match)
        self.drive(match)

    # --- players

    def drive(self, match: Match) -> None:
        """Lets the players move until a person is to act or the round is over."""
        running = self._drivers.get(match.id)
        if match.id not in self.matches or (running is not None and not running.done()):
            return
        self._drivers[match.id] = asyncio.create_task(self._drive(match))

    async def _drive(self, match: Match) -> None:
        try:
            while await self._move(match):
                pass
        except InputError as error:
            await self._tell(match, refusals.message(error))
        finally:
            self._drivers.pop(match.id, None)

    async def _move(self, match: Match) -> bool:
        """Makes one move of a player; returns whether there may be another."""
        chair = match.to_act
        if match.id not in self.matches or match.id in self._paused:
            return False
        if chair is None:
            if match.person is not None or match.is_over or not self._is_watched(match):
                return False
            number = match.round.number
            await asyncio.sleep(max(match.settings.pace, 0.5))
            if match.id not in self._paused:
                await self.next_round(match, number)  # unless somebody has asked for it meanwhile
            return True
        if chair.player is None or (match.person is None and not self._is_watched(match)):
            return False
        async with self._locks[match.id]:
            action = await self._thought(match, chair)
            await self.in_thread(True, match.act, action)
        if match.person is None and match.settings.pace:
            await asyncio.sleep(match.settings.pace)
        if match.is_quiet:
            return True
        await self._keep(match)
        await self.show(match)
        return True

    async def _thought(self, match: Match, chair: Chair) -> int:
        """Returns a player's action; the page is informed when it takes its time."""
        assert chair.player is not None
        work = asyncio.ensure_future(self.in_thread(chair.player.is_quick, match.choose))
        try:
            done, _ = await asyncio.wait({work}, timeout=_THINKING_SHOWN)
            if not done and not match.is_quiet:
                usual = chair.player.seconds or None
                await self._tell(match, {"type": "thinking", "match": match.id, "name": chair.name, "usual": usual})
            return await work
        finally:
            work.cancel()

    def _is_watched(self, match: Match) -> bool:
        return any(connection.watches == match.id for connection in self.connections)

    async def _tell(self, match: Match, message: dict[str, Any]) -> None:
        for connection in [one for one in self.connections if one.watches == match.id]:
            await connection.send(message)


def _listed(match: Match | Archive) -> dict[str, Any]:
    if isinstance(match, Archive):
        return {"id": match.id, "game": match.looked_at.game.name, "rounds": len(match.numbers)}
    return {
        "id": match.id,
        "game": match.game.name,
        "chairs": [chair.name for chair in match.chairs],
        "scores": list(match.scores),
        "round": match.round.number,
        "over": match.is_over,
    }
