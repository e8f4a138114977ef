"""The whole tree of an enumerable game, as arrays: histories in level order, information sets, sequences.

Histories are expanded breadth first with batched `outcomes`; information sets are keyed by the bytes of the view of
the player to act. With perfect recall an information set has one parent sequence - the player's own last information
set and action - and everything exact follows from sweeps over sequences (see sequence_form.py).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from envs import EnumerableGame, Game, is_own
from envs.errors import InputError, refuse_name
from envs.random_play import uniform
from envs.traces import forget_other_traces

TERMINAL = -1
EMPTY = 0
"""The sequence before a player's first action; sequence 1 + A * i + a is action a in information set i."""
_CHUNK = 1 << 13
"""States, or pairs of state and action, handled by one call."""
_CHANCE_TOLERANCE = 1e-3
"""By which probabilities may miss a sum of 1."""
_SUM_TOLERANCE = 1e-5
"""By which rewards may miss a sum of 0, as a part of the largest of them (or of 1)."""


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """A game's tree; N histories, I information sets, A actions, P players.

    Attributes:
      game: the game.
      parent: int32[N], -1 at the roots. Histories are in level order.
      action: int16[N], taken at the parent.
      infoset: int32[N], TERMINAL where the game is over.
      player: int8[N], to act, -1 where the game is over.
      chance: float64[N], product of chance's probabilities.
      payoff: float64[N, P], rewards so far.
      levels: int64[L + 1], where each level starts.
      sequence: int32[N, P], the last sequence of each player.
      views: pytree [I, ...], each information set's view; sets are in order of owner, then of its earlier decisions.
      legal: bool[I, A].
      owner: int8[I], the player to act.
      depth: int16[I], earlier decisions of that player.
      before: int32[I], the parent sequence.
    """

    game: EnumerableGame
    parent: np.ndarray
    action: np.ndarray
    infoset: np.ndarray
    player: np.ndarray
    chance: np.ndarray
    payoff: np.ndarray
    levels: np.ndarray
    sequence: np.ndarray
    views: Any
    legal: np.ndarray
    owner: np.ndarray
    depth: np.ndarray
    before: np.ndarray

    @property
    def num_histories(self) -> int:
        """Histories, terminal ones included; chance has none of its own."""
        return len(self.parent)

    @property
    def num_infosets(self) -> int:
        """Information sets of all players."""
        return len(self.owner)

    def uniform(self) -> np.ndarray:
        """Returns the table of uniform play: float64[I, A]."""
        return uniform(self.legal)


class _Level(NamedTuple):
    """One level of histories; `keys` and `legal` of those still in play, in their order."""

    parent: np.ndarray
    action: np.ndarray
    player: np.ndarray
    chance: np.ndarray
    payoff: np.ndarray
    legal: np.ndarray
    keys: np.ndarray


def build_tree(
    game: EnumerableGame, *, max_gib: float = 8.0, progress: Callable[[int, int], None] = lambda level, histories: None
) -> Tree:
    """Expands a game's whole tree.

    Args:
      game: small enough.
      max_gib: memory that the arrays may take.
      progress: called with each level and the histories found so far.
    Raises:
      InputError: the game is not enumerable, too large, pays what is not finite or not zero-sum, has probabilities that
        do not sum to 1, or a player forgets what it knew or cannot know what is legal.
    """
    refuse_name(game, "game")
    if not isinstance(game, EnumerableGame):
        raise InputError(f"{game.name} is not enumerable: its tree cannot be built; use a learned best response")
    if not is_own(game):
        forget_other_traces(game)
    levels, layout = _expand(game, max_gib, progress)
    starts = np.cumsum([0] + [len(level.parent) for level in levels])
    offsets = [0, *starts[:-2]]
    parent = np.concatenate([level.parent + offset for level, offset in zip(levels, offsets, strict=True)])
    parent[: starts[1]] = -1
    parent = parent.astype(np.int32)
    action, player, chance, payoff = (
        np.concatenate([getattr(level, name) for level in levels]) for name in ("action", "player", "chance", "payoff")
    )
    keys, legal = (np.concatenate([getattr(level, name) for level in levels]) for name in ("keys", "legal"))
    depths = _decisions_before(parent, player, starts, game.num_players)
    in_play = player >= 0
    own_depth = depths[in_play, player[in_play]]
    ids, first = _information_sets(keys, player[in_play], own_depth)
    infoset = np.full(len(parent), TERMINAL, np.int32)
    infoset[in_play] = ids
    sequence = _sequences(parent, player, action, infoset, starts, game)
    before = sequence[in_play, player[in_play]]
    if np.any(own_depth != own_depth[first][ids]) or np.any(before != before[first][ids]):
        raise InputError(f"{game.name}: a view forgets what its player knew; exact values need perfect recall")
    if np.any(legal != legal[first][ids]):
        raise InputError(
            f"{game.name}: other actions are legal after other histories of one view; a view must tell what is legal"
        )
    return Tree(
        game=game,
        parent=parent,
        action=action,
        infoset=infoset,
        player=player,
        chance=chance,
        payoff=payoff,
        levels=starts,
        sequence=sequence,
        views=_unpack(keys[first], layout),
        legal=legal[first],
        owner=player[in_play][first],
        depth=own_depth[first],
        before=before[first],
    )


def _expand(game: EnumerableGame, max_gib: float, progress: Callable[[int, int], None]) -> tuple[list[_Level], _Layout]:
    """Expands level by level until every history is over."""
    states, chance = first_histories(game)
    count = len(chance)
    parent, action = np.full(count, -1), np.full(count, -1, np.int16)
    payoff = np.zeros((count, game.num_players))
    done = np.zeros(count, bool)
    levels, total, used = [], 0, 0
    legal = keys = layout = None
    while True:
        at = np.flatnonzero(~done)
        states = jax.tree.map(lambda x, at=at: x[at], states)
        everyone = np.full(count, -1, np.int8)
        if len(at):
            everyone[at], legal, view = decisions(game, states, len(at))
            keys, layout = _pack(view, len(at))
        else:
            legal, keys = legal[:0], keys[:0]
        levels.append(_Level(parent, action, everyone, chance, payoff, legal, keys))
        total, used = total + count, used + sum(x.nbytes for x in levels[-1])
        progress(len(levels) - 1, total)
        if used > max_gib * 2**30:
            raise InputError(
                f"{game.name} is too large: {total:,} histories after {len(levels)} levels take "
                f"{used / 2**30:.1f} GiB, more than the {max_gib:g} GiB allowed"
            )
        if not len(at):
            return levels, layout
        states, done, parent, action, chance, payoff = _children(game, states, at, legal, chance, payoff)
        count = len(parent)


def _children(
    game: EnumerableGame, states: Any, at: np.ndarray, legal: np.ndarray, chance: np.ndarray, payoff: np.ndarray
) -> tuple[Any, ...]:
    """Returns the histories one action further: states, done, parent (in the level), action, chance, payoff."""
    row, act = np.nonzero(legal)
    after, pair, probs, rewards, done = possible_outcomes(game, states, row, act)
    parent = at[row[pair]]
    return (
        after,
        done,
        parent,
        act[pair].astype(np.int16),
        chance[parent] * probs,
        payoff[parent] + rewards.astype(np.float64),
    )


def first_histories(game: EnumerableGame) -> tuple[Any, np.ndarray]:
    """Returns the starting states of a game that can occur, and their probabilities, float64[N]."""
    states, chance = jax.device_get(jax.jit(game.initial_outcomes)())
    chance = _sharpened(game, "initial_outcomes", chance)
    return jax.tree.map(lambda x: x[chance > 0], states), chance[chance > 0]


def decisions(game: EnumerableGame, states: Any, count: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Returns who is to act in so many states int8[N], what is legal bool[N, A], and what that player sees."""
    return _in_chunks(_looker(game), count, states)


def possible_outcomes(game: EnumerableGame, states: Any, row: np.ndarray, action: np.ndarray) -> tuple[Any, ...]:
    """Returns all that actions can lead to, one after another: state, number of the pair, probability, rewards, done.

    Args:
      game: what is played.
      states: some, in play.
      row, action: int[pairs], which of them, and what is done there.
    """
    acting = jax.tree.map(lambda x: x[row], states)
    keep = functools.partial(_possible, game)
    return _in_chunks(game.outcomes, len(row), acting, action.astype(np.int32), keep=keep)


def _possible(game: EnumerableGame, first: int, outcomes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the outcomes that can occur, one after another: state, number of the pair, probability, rewards, done.

    Args:
      game: what is played.
      first: the number of the first pair of state and action.
      outcomes: what `outcomes` returned for some pairs, [pairs, K].
    """
    after, probs, rewards, done = outcomes
    probs = _sharpened(game, "outcomes", probs)
    at = np.nonzero(probs > 0)
    _refuse_payoffs(game, rewards[at])
    return jax.tree.map(lambda x: x[at], after), first + at[0], probs[at], rewards[at], done[at]


def _sharpened(game: Game, method: str, probs: np.ndarray) -> np.ndarray:
    """Returns float32 probabilities as float64 that sum to one over the last axis: exact where they are uniform."""
    probs = probs.astype(np.float64)
    total = probs.sum(axis=-1, keepdims=True)
    wrong = ~(np.abs(total[..., 0] - 1) < _CHANCE_TOLERANCE) | np.any(probs < 0, axis=-1)
    if wrong.any():
        least, summed = probs[wrong].reshape(-1, probs.shape[-1])[0].min(), total[wrong].flat[0]
        raise InputError(
            f"game {game.name!r}: {method}: probabilities sum to {summed:g}, the least is {least:g}; "
            "they must be 0 or more and sum to 1"
        )
    return probs / total


def _refuse_payoffs(game: Game, rewards: np.ndarray) -> None:
    """Raises InputError where rewards [n, P] are not finite, or not zero-sum in a game that says so."""
    largest = np.maximum(np.abs(rewards).max(axis=-1, initial=0), 1)
    missed = np.abs(rewards.sum(axis=-1, dtype=np.float64)) > _SUM_TOLERANCE * largest
    for wrong, why in (
        (~np.isfinite(rewards).all(axis=-1), "are not finite"),
        (game.zero_sum & missed, "do not sum to 0 (a game that is not zero-sum says zero_sum = False)"),
    ):
        if wrong.any():
            paid = ", ".join(f"{x:g}" for x in rewards[np.argmax(wrong)])
            raise InputError(f"game {game.name!r}: outcomes: the rewards {paid} {why}")


def kept_tree(game: EnumerableGame) -> Tree:
    """Returns a game's tree: from memory, where that of a game that does the same is there; else built.

    Raises:
      InputError: as build_tree.
    """
    return _kept(game, forget_other_traces(game))


@functools.lru_cache(maxsize=4)
def _kept(game: EnumerableGame, source: str) -> Tree:
    return build_tree(game)


@functools.cache
def _looker(game: EnumerableGame) -> Callable[[Any], Any]:
    """Returns state -> (player to act, legal actions, view)."""
    return lambda state: (
        state.current_player.astype(np.int8),
        game.legal_actions(state),
        game.view(state, state.current_player),
    )


@functools.cache
def _mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(jax.vmap(function))


def _in_chunks(
    function: Callable[..., Any],
    count: int,
    *arguments: Any,
    keep: Callable[[int, Any], Any] = lambda first, part: part,
) -> Any:
    """Maps a function of one history over `count` of them, a chunk at a time; arrays of the host in and out.

    `keep` gets the number of a chunk's first history and what the function gave, and returns what is kept of it.
    """
    chunk = _CHUNK if count > _CHUNK // 8 else _CHUNK // 8
    parts = []
    for start in range(0, count, chunk):
        take = np.minimum(np.arange(start, start + chunk), count - 1)
        part = jax.device_get(_mapped(function)(*jax.tree.map(lambda x, take=take: x[take], arguments)))
        size = min(chunk, count - start)
        parts.append(keep(start, jax.tree.map(lambda x, size=size: x[:size], part)))
    return jax.tree.map(lambda *xs: np.concatenate(xs), *parts)


class _Layout(NamedTuple):
    """How a view's arrays are laid out in a key: tree structure, dtypes and shapes of the leaves."""

    structure: Any
    leaves: tuple[tuple[np.dtype, tuple[int, ...]], ...]


def _pack(view: Any, count: int) -> tuple[np.ndarray, _Layout]:
    """Returns the views' bytes: uint8[count, bytes]."""
    leaves, structure = jax.tree.flatten(view)
    rows = [np.ascontiguousarray(x).reshape(count, -1).view(np.uint8) for x in leaves]
    return np.concatenate(rows, axis=1), _Layout(structure, tuple((x.dtype, x.shape[1:]) for x in leaves))


def _unpack(keys: np.ndarray, layout: _Layout) -> Any:
    """Returns the views of some keys; the inverse of `_pack`."""
    leaves, start = [], 0
    for dtype, shape in layout.leaves:
        size = dtype.itemsize * int(np.prod(shape))
        leaves.append(np.ascontiguousarray(keys[:, start : start + size]).view(dtype).reshape(len(keys), *shape))
        start += size
    return jax.tree.unflatten(layout.structure, leaves)


def _decisions_before(parent: np.ndarray, player: np.ndarray, starts: np.ndarray, players: int) -> np.ndarray:
    """Returns how many decisions each player has made before a history: int16[N, P]."""
    depths = np.zeros((len(parent), players), np.int16)
    for low, high in itertools.pairwise(starts):
        up = parent[low:high]
        depths[low:high] = depths[up] + (player[up, None] == np.arange(players))
    return depths


def _information_sets(keys: np.ndarray, owner: np.ndarray, depth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers information sets by owner, then depth: each history's set, and each set's first history."""
    rows = np.ascontiguousarray(np.concatenate([owner.view(np.uint8)[:, None], keys], axis=1))
    whole = rows.view(np.dtype((np.void, rows.shape[1])))[:, 0]
    _, first, ids = np.unique(whole, return_index=True, return_inverse=True)
    order = np.lexsort((first, depth[first], owner[first]))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[ids].astype(np.int32), first[order]


def _sequences(
    parent: np.ndarray, player: np.ndarray, action: np.ndarray, infoset: np.ndarray, starts: np.ndarray, game: Any
) -> np.ndarray:
    """Returns each player's last sequence at every history: int32[N, P]."""
    sequence = np.full((len(parent), game.num_players), EMPTY, np.int32)
    for low, high in itertools.pairwise(starts):
        up = parent[low:high]
        latest = 1 + game.num_actions * infoset[up] + action[low:high]
        own = player[up, None] == np.arange(game.num_players)
        sequence[low:high] = np.where(own, latest[:, None], sequence[up])
    return sequence
