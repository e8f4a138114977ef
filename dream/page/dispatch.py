"""Which message does what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from dream.page import counsel, review
from dream.page.hub import Connection, Hub
from dream.page.match import Match
from dream.page.opened import Archive
from dream.page.refusals import RefusedError

Message = dict[str, Any]


async def answer(hub: Hub, connection: Connection, message: Message) -> None:
    """Does what a message asks.

    Raises:
      InputError: it cannot be done; nothing has changed.
    """
    kind = message["type"]
    if kind != "hello" and connection.key is None:
        raise RefusedError("hello_first")
    await _ANSWERS[kind](hub, connection, message)


async def _hello(hub: Hub, connection: Connection, message: Message) -> None:
    await connection.send(hub.hello(connection, message["key"]))


async def _new(hub: Hub, connection: Connection, message: Message) -> None:
    match = await hub.new(connection, message)
    await _watch(hub, connection, match)


async def _watch(hub: Hub, connection: Connection, match: Any) -> None:
    connection.stop()
    connection.watches = match.id
    await connection.send({"type": "match", "match": hub.snapshot(match)})
    hub.drive(match)


async def _open(hub: Hub, connection: Connection, message: Message) -> None:
    held = hub.held(connection, message["match"])
    if isinstance(held, Match):
        await _watch(hub, connection, held)
    else:
        connection.watches = None
        connection.begin(counsel.look_again(hub, connection, held, held.looked_at.numbers.start, None))


async def _act(hub: Hub, connection: Connection, message: Message) -> None:
    match = hub.find(connection, message["match"])
    connection.stop()
    await hub.act(match, message)


async def _next(hub: Hub, connection: Connection, message: Message) -> None:
    connection.stop()
    await hub.next_round(hub.find(connection, message["match"]), message["round"])


async def _pace(hub: Hub, connection: Connection, message: Message) -> None:
    await hub.pace(hub.find(connection, message["match"]), float(message["pace"]), message["paused"])


async def _stop(hub: Hub, connection: Connection, message: Message) -> None:
    connection.stop()


async def _leave(hub: Hub, connection: Connection, message: Message) -> None:
    hub.held(connection, message["match"])
    connection.stop()
    hub.forget(message["match"])
    await connection.send(hub.hello(connection, connection.key))


async def _hint(hub: Hub, connection: Connection, message: Message) -> None:
    match = hub.find(connection, message["match"])
    connection.begin(counsel.hint(hub, connection, match, message["advisor"]))


async def _belief(hub: Hub, connection: Connection, message: Message) -> None:
    match = hub.find(connection, message["match"])
    connection.begin(counsel.belief(hub, connection, match, message["advisor"]))


async def _review(hub: Hub, connection: Connection, message: Message) -> None:
    held = hub.held(connection, message["match"])
    connection.begin(counsel.look_again(hub, connection, held, message["round"], message["advisor"]))


async def _branch(hub: Hub, connection: Connection, message: Message) -> None:
    match = await hub.in_thread(False, hub.held(connection, message["match"]).look, message["round"])
    played = match.finished_round(message["round"])
    if message["ply"] >= len(played.actions):
        raise RefusedError("no_position")
    positions = await hub.in_thread(False, review.positions, match.compiled, played.deal, played.actions)
    player = await hub.player(hub.catalogue.advisor(match.game), match.game)
    other = await hub.in_thread(False, match.branch, played, positions, message["ply"], player)
    if message["action"] is not None:
        await hub.in_thread(False, other.act, message["action"])
    hub.add(connection, other)
    await _watch(hub, connection, other)


async def _record(hub: Hub, connection: Connection, message: Message) -> None:
    text = connection.upload.add(message["text"], bool(message["more"]), hub.room_for_files())
    if text is None:
        return
    archive = await hub.in_thread(False, Archive, text, hub.shelf)
    hub.add(connection, archive)
    await connection.send({"type": "opened", "match": archive.id, "rounds": len(archive.numbers)})
    connection.begin(counsel.look_again(hub, connection, archive, 0, None))


_ANSWERS: dict[str, Callable[[Hub, Connection, Message], Awaitable[None]]] = {
    "hello": _hello,
    "new": _new,
    "open": _open,
    "act": _act,
    "next": _next,
    "pace": _pace,
    "stop": _stop,
    "leave": _leave,
    "hint": _hint,
    "belief": _belief,
    "review": _review,
    "branch": _branch,
    "record": _record,
}
