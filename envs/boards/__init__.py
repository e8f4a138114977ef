"""How a game looks to a person: the cards on the table as plain data, for pages and terminals to draw.

What is shown to a player is computed from that player's view and from nothing else, so it cannot show a card that the
player may not see. A game without a board of its own is drawn by its `render_svg`, and its actions are a list.

A board is a module with these functions:

| function | returns |
|---|---|
| seen(game, view) | the table as a player sees it in play |
| opened(game, state, actions) | the same once the round is over, all hands open, with how it was settled |
| choice(game, view, action) | an action the player may take: its kind, and the cards it is about |
| said(game, before, action, after) | what a player hears of an action, given its own views before and after |
| hands(game, state) | bool[P, cards], who holds which card; may be traced |
| deck(game) | the cards by name, in the order of `hands` |
| insight(game, view, held, weights, choices) | optional: what a sample of `hands` says of outs, dangers and chances |

and has VARIANTS (key and rules). What a game and its variants are called in a language is left to what shows them.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import envs
from envs.errors import InputError, unknown
from envs.game import Game, State, View

_BOARDS = {
    "gin_rummy": "envs.boards.gin",
    "gin_rummy_mdp": "envs.boards.gin_mdp",
    "gin_rummy_openspiel": "envs.boards.gin_openspiel",
    "mini_gin_rummy": "envs.boards.gin_mini",
    "kuhn_poker": "envs.boards.kuhn",
    "leduc_poker": "envs.boards.leduc",
    "liars_dice": "envs.boards.dice",
    "rummy500": "envs.boards.rummy",
}


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to play a game.

    Attributes:
      key: its name among the game's variants, for programs; the usual one is "standard" where it has no other name.
      rules: that differ from the game's own.
    """

    key: str
    rules: dict[str, Any] = dataclasses.field(default_factory=dict)


def board_of(game: Game) -> ModuleType | None:
    """Returns the module that shows a game, None where there is none."""
    return importlib.import_module(_BOARDS[game.name]) if game.name in _BOARDS and envs.is_own(game) else None


def variants(name: str) -> tuple[Variant, ...]:
    """Returns the ways in which a game can be played, the usual one first."""
    return importlib.import_module(_BOARDS[name]).VARIANTS if name in _BOARDS else (Variant("standard"),)


def make(name: str, variant: str) -> Game:
    """Builds a game in one of its variants.

    Raises:
      InputError: an unknown game or variant.
    """
    if name not in envs.names():
        raise unknown("game", name, envs.names())
    for one in variants(name):
        if one.key == variant:
            return envs.make(name, **one.rules)
    raise unknown(f"variant of {name}", variant, [one.key for one in variants(name)])


def seen(game: Game, state: State, view: View, viewer: int) -> dict[str, Any]:
    """Shows a round in play.

    Args:
      game: what is played.
      state: used where the game has no board, by `render_svg`, which draws what the viewer may know.
      view: of the viewer, on the host.
      viewer: seat.
    Returns:
      JSON values: `kind`, which says what else there is, and what the board's module documents.
    """
    board = board_of(game)
    return {"kind": "drawing", "svg": drawing(game, state, viewer)} if board is None else board.seen(game, view)


def opened(game: Game, state: State, actions: Sequence[int]) -> dict[str, Any]:
    """Shows a round that is over, or one that nobody at the table plays in, all cards open."""
    board = board_of(game)
    return (
        {"kind": "drawing", "svg": drawing(game, state, None)} if board is None else board.opened(game, state, actions)
    )


def choice(game: Game, state: State, view: View, action: int) -> dict[str, Any]:
    """Shows an action the player to act may take: `id`, `kind`, `cards`; without a board `label`, the game's words."""
    board = board_of(game)
    if board is not None:
        return {"id": int(action), "cards": [], **board.choice(game, view, action)}
    label = game.describe_action(state, action, int(state.current_player))
    return {"id": int(action), "kind": "other", "cards": [], "label": label}


def said(
    game: Game, before: View, action: int, after: View, own: bool, state: State | None = None
) -> dict[str, Any] | None:
    """Returns what a player hears of an action.

    Args:
      game: what is played.
      before: the view of the one who hears, before the action.
      action: of the player to act.
      after: the same player's view after it.
      own: whether it is the player's own.
      state: before the action; some games name an action better with it.
    Returns:
      `kind`, `cards` and perhaps more; None where it may be secret: of a game without a board, another's action.
    """
    board = board_of(game)
    if board is not None:
        return {"cards": [], **board.said(game, before, action, after)}
    if not own:
        return None
    known = state is None or int(state.current_player) < 0
    name = game.action_name(action) if known else game.describe_action(state, action, int(state.current_player))
    return {"kind": "other", "cards": [], "label": name}


def drawing(game: Game, state: State, viewer: int | None) -> str:
    """Returns a picture of a state as SVG, "" where the game has none."""
    try:
        return game.render_svg(state, viewer)
    except InputError:
        return ""
