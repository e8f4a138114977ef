"""A finished round looked at again: every position, what a player thinks of each decision, and what each cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from dream.page.advice import Adviser, loss, rows
from dream.page.compiled import CompiledGame, Position
from dream.page.refusals import RefusedError
from envs import boards
from envs.game import State

BATCHES = 3
"""Batches of worlds for a decision's values."""
WORST = 3


def positions(compiled: CompiledGame, deal: State, actions: Sequence[int]) -> list[Position]:
    """Plays a round again.

    Raises:
      RefusedError: an action is not legal where it stands.
    """
    found = [compiled.look(deal)]
    for action in actions:
        if found[-1].done or not (0 <= action < len(found[-1].legal) and found[-1].legal[action]):
            raise RefusedError("not_legal", action=action)
        found.append(compiled.step(found[-1], int(action)))
    return found


def shown(compiled: CompiledGame, played: Sequence[Position], actions: Sequence[int]) -> list[dict[str, Any]]:
    """Returns each position as the page draws it, all cards open, with the move that was made there."""
    game, steps = compiled.game, []
    for ply, position in enumerate(played):
        step: dict[str, Any] = {
            "ply": ply,
            "board": boards.opened(game, jax.device_get(position.state), actions[:ply]),
            "to_act": position.current,
        }
        if ply < len(actions):
            seat, after = position.current, played[ply + 1]
            view = position.views[seat]
            said = boards.said(game, view, actions[ply], after.views[seat], True, position.state)
            step["move"] = {"seat": seat, "ply": ply, "id": int(actions[ply]), **(said or {})}
            legal = np.flatnonzero(position.legal)
            step["choices"] = [boards.choice(game, position.state, view, int(action)) for action in legal]
        steps.append(step)
    return steps


def judged(adviser: Adviser, played: Sequence[Position], actions: Sequence[int], seed: int) -> Iterator[dict[str, Any]]:
    """Yields what a player thinks of each decision, one after the other.

    Yields:
      `ply`, `rows` (of every legal action), and where the values could be had `cost`: how many points the action played
      is expected to lose against the best one, and `margin`, half its 95 % interval.
    """
    for ply, action in enumerate(actions):
        position = played[ply]
        view, seat = position.views[position.current], position.current
        legal = [int(one) for one in np.flatnonzero(position.legal)]
        probs = adviser.player.probabilities(view, position.legal)
        points = None
        if len(legal) > 1:
            try:
                batches = [adviser.values(view, legal, seat, seed + 1000 * ply + n) for n in range(BATCHES)]
                points = np.concatenate(batches)
            except RefusedError:
                points = None
        found = rows(legal, probs, points)
        cost = {"cost": 0.0, "margin": 0.0} if len(legal) == 1 else {}
        if points is not None:
            lost = loss(points, legal.index(action))
            cost = {"cost": round(lost.mean, 2), "margin": round(lost.high - lost.mean, 2)}
        yield {"ply": ply, "rows": found, **cost}


def worst(judgements: Sequence[dict[str, Any]]) -> list[int]:
    """Returns the plies of the decisions that surely cost most: by the low end of the interval of what they lost."""
    sure = [(one["cost"] - one["margin"], one["ply"]) for one in judgements if "cost" in one]
    return [ply for low, ply in sorted(sure, reverse=True) if low > 0][:WORST]
