"""What phantom games share: tries, turns, views and the end of the game.

Two players place stones on a board and see only their own. Action c tries cell c, which the player has not tried
before. The try succeeds and places a stone unless the opponent holds the cell; the player is shown whether it did,
and nothing else. classical: a player keeps the turn after a failed try and passes it after a success. abrupt: the turn
passes after every try. The first player to hold all cells of a winning set wins; a full board without one is a draw.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.errors import InputError
from envs.game import EnumerableGame, Game, HiddenPlacement
from envs.phantom import boards
from envs.phantom.rules import PhantomRules
from envs.phantom.svg import board_svg

BASE = 10
"""Tries are kept as digits: the first is the most significant, cell c is digit c + 1."""
_WINNER = ("x", "o")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class PhantomState:
    """A game in play; each pair holds player 0's and player 1's.

    Attributes:
      stones: uint32 each, bit c set where the player has a stone on cell c.
      tried: uint32 each, bit c set where the player has tried cell c.
      tries: uint32 each, the player's tries in order, as digits of BASE.
      current_player: int32, -1 once the game is over.
    """

    stones: tuple[Array, Array]
    tried: tuple[Array, Array]
    tries: tuple[Array, Array]
    current_player: Array


class PhantomView(NamedTuple):
    """What a player may know, with perfect recall: 7 bytes.

    Attributes:
      seat: uint8, the player.
      stones: uint16, bit c set where its try of cell c succeeded.
      tries: uint32, its tries in order, as digits of BASE.
    """

    seat: Array
    stones: Array
    tries: Array


class PhantomGame(Game):
    """A phantom game; a subclass adds `winning`, `columns` and `encode`."""

    rules: PhantomRules
    unit = "points"
    reward_scale = 1.0
    worst_reward = -1.0
    columns: int
    winning: tuple[boards.Cells, boards.Cells]
    """The smallest sets of cells that win for each player, bit masks."""
    slanted = False
    """Whether the board is drawn as one of hexagons."""

    @property
    def num_actions(self) -> int:
        """Cells of the board."""
        return self.rules.cells

    @property
    def max_length(self) -> int:
        """Each player tries a cell at most once, and who tries the last one ends the game."""
        return 2 * self.rules.cells - 1

    @property
    def hidden_placement(self) -> HiddenPlacement:
        """How the game's payoffs factor over cells."""
        return HiddenPlacement(
            cells=self.rules.cells,
            winning=self.winning,
            failure_keeps_turn=self.rules.version == "classical",
            forced=self.rules.forced,
            view=self.view_of,
        )

    def init(self, key: Array) -> PhantomState:
        """Returns the empty board; there is no chance."""
        return self._empty()

    def _empty(self) -> PhantomState:
        none = (jnp.uint32(0), jnp.uint32(0))
        return PhantomState(stones=none, tried=none, tries=none, current_player=jnp.int32(0))

    def from_deal(self, deal: Sequence[int | float]) -> PhantomState:
        """Returns the empty board; raises InputError where the numbers are not its."""
        if list(deal) != list(self.deal_of(self._empty())):
            raise InputError("the deal is not the empty board, from which these games start")
        return self._empty()

    def step(self, state: PhantomState, action: Array) -> tuple[PhantomState, Array, Array]:
        """Tries a cell; the rewards are 1 and -1 when the game is won, zero until then and in a draw."""
        second, over = state.current_player == 1, state.current_player < 0
        bit = jnp.left_shift(np.uint32(1), jnp.asarray(action).astype(jnp.uint32))
        mine = jnp.where(second, state.stones[1], state.stones[0])
        theirs = jnp.where(second, state.stones[0], state.stones[1])
        fails = (theirs & bit) != 0
        mine = mine | jnp.where(fails, np.uint32(0), bit)
        won = self._wins(mine, second)
        ends = won | ((mine | theirs) == np.uint32((1 << self.rules.cells) - 1))
        passes = ~fails if self.rules.version == "classical" else jnp.bool_(True)
        player = jnp.where(over | ends, -1, state.current_player ^ passes.astype(jnp.int32))
        acts = (~over & ~second, ~over & second)
        new = PhantomState(
            stones=tuple(jnp.where(a, mine, old) for a, old in zip(acts, state.stones, strict=True)),
            tried=tuple(jnp.where(a, old | bit, old) for a, old in zip(acts, state.tried, strict=True)),
            tries=tuple(
                jnp.where(a, old * np.uint32(BASE) + action.astype(jnp.uint32) + np.uint32(1), old)
                for a, old in zip(acts, state.tries, strict=True)
            ),
            current_player=player,
        )
        gain = jnp.where(won & ~over, jnp.where(second, -1.0, 1.0), 0.0)
        return new, jnp.stack([gain, -gain]).astype(jnp.float32), player < 0

    def _wins(self, stones: Array, second: Array) -> Array:
        """Returns whether stones hold a winning set of player 0, or of player 1 where `second`."""
        won = jnp.bool_(False)
        for one, two in zip(*self.winning, strict=True):
            wanted = np.uint32(one) if one == two else jnp.where(second, np.uint32(two), np.uint32(one))
            won = won | ((stones & wanted) == wanted)
        return won

    def legal_actions(self, state: PhantomState) -> Array:
        """Returns bool[cells]: the cells not tried yet, or the one that the opening demands."""
        second = state.current_player == 1
        closed = jnp.where(second, state.tried[1], state.tried[0])
        allowed = ((closed >> np.arange(self.rules.cells, dtype=np.uint32)) & 1) == 0
        for player, cells in enumerate(self.rules.forced):
            before = 0
            for cell in cells:
                here = (second if player else ~second) & (closed == np.uint32(before))
                allowed = jnp.where(here, np.arange(self.rules.cells) == cell, allowed)
                before |= 1 << cell
        return allowed & (state.current_player >= 0)

    def view(self, state: PhantomState, player: Array) -> PhantomView:
        """Returns the player's own tries and which of them succeeded."""
        player = jnp.asarray(player)
        second = player == 1
        return PhantomView(
            seat=player.astype(jnp.uint8),
            stones=jnp.where(second, state.stones[1], state.stones[0]).astype(jnp.uint16),
            tries=jnp.where(second, state.tries[1], state.tries[0]),
        )

    def view_of(self, seat: int, tries: np.ndarray, stones: np.ndarray) -> PhantomView:
        """Returns the views of lists of tries (host side).

        Args:
          seat: the player.
          tries: integer[N, n], the cells tried in order.
          stones: integer[N], bit c set where the try of cell c succeeded.
        """
        code = np.zeros(len(tries), np.uint32)
        for cell in np.asarray(tries).T:
            code = code * np.uint32(BASE) + cell.astype(np.uint32) + np.uint32(1)
        return PhantomView(np.full(len(tries), seat, np.uint8), np.asarray(stones).astype(np.uint16), code)

    def tried_cells(self, view: PhantomView) -> Array:
        """Returns the cells a view's player has tried, in order: int32[cells], -1 beyond the last."""
        cells = self.rules.cells
        powers = np.array([BASE**n for n in range(cells)], np.uint32)
        count = jnp.sum(view.tries >= powers).astype(jnp.int32)
        digits = (view.tries // powers) % np.uint32(BASE)
        place = count - 1 - np.arange(cells)
        return jnp.where(place >= 0, digits[jnp.maximum(place, 0)].astype(jnp.int32) - 1, -1)

    def known_board(self, view: PhantomView) -> tuple[Array, Array]:
        """Returns which cells a view's player knows to hold a stone of player 0, and of player 1: bool[cells] each."""
        tried = jnp.any(self.tried_cells(view)[:, None] == np.arange(self.rules.cells), axis=0)
        own = ((view.stones >> np.arange(self.rules.cells, dtype=np.uint16)) & 1) == 1
        second, other = view.seat == 1, tried & ~own
        return jnp.where(second, other, own), jnp.where(second, own, other)

    def tries_in_order(self, view: PhantomView) -> Array:
        """Returns the tries as OpenSpiel's tensors end with them: float32[cells * cells], one-hot rows."""
        return (self.tried_cells(view)[:, None] == np.arange(self.rules.cells)).reshape(-1).astype(jnp.float32)

    def action_name(self, action: int) -> str:
        """Returns the name of a cell: its column as a letter and its row, "a1" for cell 0."""
        return boards.cell_name(self.action_id(action), self.columns)

    def symbols(self, state: PhantomState, viewer: int | None = None) -> str:
        """Returns "x", "o" or "." of each cell, as `viewer` knows it; None: as it is.

        Raises:
          InputError: a viewer who is no seat.
        """
        viewer, state = self._seat(viewer), jax.device_get(state)
        first, second = (int(x) for x in state.stones)
        if viewer is not None:
            known = int(state.tried[viewer])
            first, second = (first, second & known) if viewer == 0 else (first & known, second)
        return "".join("x" if first >> n & 1 else "o" if second >> n & 1 else "." for n in range(self.rules.cells))

    def render(self, state: PhantomState, viewer: int | None = None) -> str:
        """Draws the board as text, x for player 0 and o for player 1 (host side).

        Args:
          state: any.
          viewer: whose knowledge is drawn; None: all stones.
        """
        board = boards.draw(self.symbols(self._one(state), viewer), self.columns, slanted=self.slanted)
        return f"{board}\n{self._caption(state, viewer)}"

    def render_svg(self, state: PhantomState, viewer: int | None = None) -> str:
        """Draws the same as an SVG document."""
        return board_svg(
            self.symbols(self._one(state), viewer), self.columns, self._caption(state, viewer), slanted=self.slanted
        )

    def _caption(self, state: PhantomState, viewer: int | None) -> str:
        player = int(state.current_player)
        seen = "" if viewer is None else f", as player {viewer} sees it"
        if player >= 0:
            return f"player {player} ({_WINNER[player]}) to move{seen}"
        winner = self.winner(state)
        return "draw" if winner is None else f"player {winner} ({_WINNER[winner]}) has won"

    def winner(self, state: PhantomState) -> int | None:
        """Returns who holds a winning set, None for nobody (host side)."""
        for player, sets in enumerate(self.winning):
            stones = int(jax.device_get(state.stones[player]))
            if any(stones & wanted == wanted for wanted in sets):
                return player
        return None

    def to_dict(self, state: PhantomState) -> dict[str, Any]:
        """Describes the game in words: the board, each player's tries with their success, who acts."""
        host = jax.device_get(state)
        return {
            "board": self.symbols(state),
            "tries": [
                [
                    f"{self.action_name(cell)}{'' if int(stones) >> cell & 1 else ' fails'}"
                    for cell in _cells(int(tries))
                ]
                for stones, tries in zip(host.stones, host.tries, strict=True)
            ],
            "current_player": int(host.current_player),
        }


class WalkableGame(PhantomGame, EnumerableGame):
    """A phantom game so restricted that all its histories can be listed."""

    def initial_outcomes(self) -> tuple[PhantomState, Array]:
        """Returns the empty board, of probability 1."""
        return jax.tree.map(lambda x: x[None], self._empty()), jnp.ones(1, jnp.float32)


def _cells(tries: int) -> Sequence[int]:
    return [int(digit) - 1 for digit in str(tries)] if tries else []


def built(large: type[PhantomGame], small: type[WalkableGame], rules: PhantomRules) -> PhantomGame:
    """Builds a game of the class that its size asks for."""
    if rules.cells > BASE - 1:
        raise InputError(f"a board of {rules.cells} cells is too large; it must have at most {BASE - 1}")
    return (small if rules.walkable else large)(rules)
