"""Advice and reviews as messages that come while one waits."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from dream.page import refusals, review
from dream.page.advice import Adviser, belief_summary, rows
from dream.page.compiled import CompiledGame, Player
from dream.page.hub import Connection, Hub
from dream.page.match import Finished, Match
from dream.page.opened import Archive, rounds_near
from dream.page.refusals import RefusedError
from dream.storage.policies import player_names
from envs import Game, InputError

LONGEST, MOST_WORLDS = 8.0, 512
"""Seconds after which a hint is no longer sharpened, once it has any numbers; and worlds it is based on at most."""
_PLAYOUTS = ("simple_bot", "greedy", "heuristic")
"""Rule-based players that are quick enough to play worlds out, the best first; else the advisor itself does."""


class Advised(NamedTuple):
    """Who advises.

    Attributes:
      adviser: which answers.
      label: of the player whose choices it gives.
      playout_label: of the player that plays deals out, and by whose moves they are weighed.
    """

    adviser: Adviser
    label: str
    playout_label: str


async def advised(hub: Hub, game: Game, label: str | None) -> Advised:
    """Returns the adviser of a label, kept for the next time.

    Raises:
      InputError: the game has no such player.
    """
    label = label or hub.catalogue.advisor(game)
    player: Player = await hub.player(label, game)
    names = player_names(game)
    quick = next((name for name in _PLAYOUTS if name in names), label) if label in names else label
    playout = player if quick == label else await hub.player(quick, game)
    return Advised(hub.adviser(game, player, playout.policy), label, quick)


async def hint(hub: Hub, connection: Connection, match: Match, label: str | None) -> None:
    """Sends the advice for the person's decision, sharper with every batch.

    Raises:
      RefusedError: it is not the person's turn.
    """
    position, seat = _asked(match)
    number, ply = match.round.number, match.ply
    view, legal = position.views[seat], [int(action) for action in np.flatnonzero(position.legal)]
    found = await advised(hub, match.game, label)
    probs = await hub.in_thread(False, found.adviser.player.probabilities, view, position.legal)
    base = {"type": "hint", "match": match.id, "round": number, "ply": ply,
            "advisor": found.label, "unit": match.game.unit}  # fmt: skip
    await connection.send({**base, "rows": rows(legal, probs, None), "worlds": 0, "final": False})
    points, started, seed = None, None, 0
    while points is None or (len(points) < MOST_WORLDS and time.monotonic() - (started or 0) < LONGEST):
        try:
            batch = await hub.in_thread(False, found.adviser.values, view, legal, seat, seed)
        except InputError as error:
            await connection.send({**base, "rows": rows(legal, probs, None), "worlds": 0, "final": True,
                                   "why": refusals.as_json(error)})  # fmt: skip
            return
        started, seed = started or time.monotonic(), seed + 1
        points = batch if points is None else np.concatenate([points, batch])
        await connection.send({**base, "rows": rows(legal, probs, points), "worlds": len(points), "final": False})
    await connection.send({**base, "rows": rows(legal, probs, points), "worlds": len(points), "final": True})


def _asked(match: Match) -> tuple[Any, int]:
    position = match.round.position
    if match.person is None or position.done or position.current != match.seat(match.person):
        raise RefusedError("not_your_turn")
    return position, position.current


async def belief(hub: Hub, connection: Connection, match: Match, label: str | None) -> None:
    """Sends what can be believed of the hidden cards.

    Raises:
      InputError: nobody is playing, or the game cannot say.
    """
    # As they are now: the opponent may move before the answer is there.
    position, number = match.round.position, match.round.number
    ply, played = match.ply, len(match.round.actions)
    if match.person is None or position.done:
        raise RefusedError("nothing_hidden")
    seat = match.seat(match.person)
    view = position.views[seat]
    found = await advised(hub, match.game, label)
    worlds = await hub.in_thread(False, found.adviser.belief, view, seat, played)
    legal = np.flatnonzero(position.legal) if position.current == seat else ()
    shown = await hub.in_thread(False, belief_summary, match.game, view, seat, worlds, legal)
    await connection.send({"type": "belief", "match": match.id, "round": number,
                           "ply": ply, "weighed_by": found.playout_label, **shown})  # fmt: skip


async def look_again(hub: Hub, connection: Connection, held: Match | Archive, number: int, label: str | None) -> None:
    """Sends the review of a finished round: the positions at once, the judgements as they come.

    Args:
      hub: of the server.
      connection: that asks.
      held: what has the round.
      number: of the round.
      label: the advisor asked for; another one, where the round's game has none of that name.
    Raises:
      InputError: there is no such finished round, or it is not as it must be.
    """
    match = await hub.in_thread(False, held.look, number)
    played = match.finished_round(number)
    compiled: CompiledGame = match.compiled
    positions = await hub.in_thread(False, review.positions, compiled, played.deal, played.actions)
    steps = await hub.in_thread(False, review.shown, compiled, positions, played.actions)
    opponents = [chair.name for chair in match.chairs if match.person is not None and chair.player is not None]
    if label not in hub.catalogue.players(match.game):
        label = hub.catalogue.reviewer(match.game, opponents)
    found = await advised(hub, match.game, label)
    await connection.send({"type": "review", "match": match.id, "round": number, "steps": steps,
                           "variant": match.settings.variant,
                           "names": match.names(played.number), "viewer": match.seat_in(match.person, played.number),
                           "points": match.points_by_seat(played), "unit": match.game.unit,
                           "game": match.game.name, "advisor": label, "advisers": hub.catalogue.players(match.game),
                           "rounds": await hub.in_thread(False, rounds_near, held, number),
                           "file": isinstance(held, Archive),
                           "decisions": len(played.actions)})  # fmt: skip
    await _judge(hub, connection, match, played, found.adviser, positions)


async def _judge(
    hub: Hub, connection: Connection, match: Match, played: Finished, found: Adviser, positions: Any
) -> None:
    judgements: list[dict[str, Any]] = []
    running = review.judged(found, positions, played.actions, 7)
    while (one := await hub.in_thread(False, next, running, None)) is not None:
        judgements.append(one)
        done = len(judgements) == len(played.actions)
        message = {"type": "judged", "match": match.id, "round": played.number, "final": done}
        await connection.send({**message, **one, "worst": review.worst(judgements)})
