"""What the tests of dream/ share: a two-player game small enough to enumerate, and players without randomness.

The coin game. A coin falls 0 or 1; only player 0 sees it. Player 0 stops (action 0) or goes on (1, 2); player 1 stops
or goes on, with a third action only after 2; player 0 ends the game with 1 or 2. Transitions on the way pay too, and
some endings pay nothing, which makes them draws.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import Game, Policy

HIDDEN = 2
"""The coin in the view of player 1."""
_STOP_FIRST = np.array([0.3, -0.2], np.float32)
_GO_ON_FIRST = np.array([0.0, 0.0, 0.1], np.float32)
_STOP_SECOND = np.array([[0.0, -0.1, 0.0], [0.0, 0.2, 0.5]], np.float32)
_GO_ON_SECOND = np.array([0.0, 0.0, -0.25], np.float32)
_LAST = np.array([[0.4, 0.0, 0.0, 0.1, -0.6, 0.7, 0.2, -0.5], [-0.4, 0.6, 0.3, 0.0, 0.8, -0.7, -0.1, 0.5]], np.float32)
_POTENTIAL = np.array([[-0.5, -0.2, -0.7, -0.3], [-0.1, -0.6, -0.4, -0.8]], np.float32)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CoinState:
    """The coin, int32; moves so far, int32[3], action + 1 or 0; their number; who acts, -1 once over; a tag, uint16."""

    coin: Array
    moves: Array
    count: Array
    current_player: Array
    tag: Array


class CoinView(NamedTuple):
    """The coin or HIDDEN, uint8; the moves, uint8[3]; the seat, uint8; the tag, uint16."""

    coin: Array
    moves: Array
    seat: Array
    tag: Array


@dataclasses.dataclass(frozen=True)
class CoinGame(Game):
    """The coin game.

    Attributes:
      flat: the potential is -0.4 for player 0 and -0.2 for player 1 in every state.
      tagged: each deal has a random number that both see and that means nothing; without it the tag is 0.
    """

    flat: bool = False
    tagged: bool = False
    name = "coin"
    version = "1"
    num_actions = 3
    observation_size = 17
    max_length = 3
    unit = "coins"
    reward_scale = 10.0
    pays_at_end = False
    phases = ("first", "second", "last")

    def init(self, key: Array) -> CoinState:
        """Tosses the coin."""
        coin = jax.random.bernoulli(key).astype(jnp.int32)
        tag = jax.random.bits(jax.random.fold_in(key, 1), dtype=jnp.uint16) if self.tagged else jnp.uint16(0)
        return CoinState(coin, jnp.zeros(3, jnp.int32), jnp.int32(0), jnp.int32(0), tag)

    def legal_actions(self, state: CoinState) -> Array:
        """Returns the legal actions, as the module tells."""
        masks = jnp.array([[1, 1, 1], [1, 1, 0], [0, 1, 1]], bool)
        legal = masks[jnp.minimum(state.count, 2)] | ((state.count == 1) & (state.moves[0] == 3))
        return legal & (state.current_player >= 0)

    def step(self, state: CoinState, action: Array) -> tuple[CoinState, Array, Array]:
        """Plays an action."""
        action, coin, first = jnp.asarray(action, jnp.int32), state.coin, state.moves[0] - 1
        stops = action == 0
        last = 4 * (first == 2) + 2 * (state.moves[1] == 3) + (action == 2)
        gained = jnp.where(
            state.count == 0,
            jnp.where(stops, jnp.array(_STOP_FIRST)[coin], jnp.array(_GO_ON_FIRST)[action]),
            jnp.where(
                state.count == 1,
                jnp.where(stops, jnp.array(_STOP_SECOND)[coin, first], jnp.array(_GO_ON_SECOND)[action]),
                jnp.array(_LAST)[coin, last],
            ),
        )
        over = state.current_player < 0
        ends = stops | (state.count == 2)
        moves = jnp.where(jnp.arange(3) == state.count, action + 1, state.moves)
        new = CoinState(coin, moves, state.count + 1, jnp.where(ends, -1, 1 - state.current_player), state.tag)
        new = jax.tree.map(lambda old, changed: jnp.where(over, old, changed), state, new)
        gained = jnp.where(over, 0.0, gained)
        return new, jnp.stack([gained, -gained]), new.current_player < 0

    def view(self, state: CoinState, player: Array) -> CoinView:
        """Returns the moves, and the coin to player 0."""
        player = jnp.asarray(player).astype(jnp.uint8)
        coin = jnp.where(player == 0, state.coin, HIDDEN).astype(jnp.uint8)
        return CoinView(coin, state.moves.astype(jnp.uint8), player, state.tag)

    def encode(self, view: CoinView) -> Array:
        """Returns one-hot coin 3, moves 3 * 4, seat 2."""
        parts = [
            view.coin == np.arange(3),
            (view.moves[:, None] == np.arange(4)).reshape(-1),
            view.seat == np.arange(2),
        ]
        return jnp.concatenate(parts).astype(jnp.float32)

    def to_dict(self, state: CoinState) -> dict[str, Any]:
        """Describes the state."""
        return {"coin": int(state.coin), "moves": np.asarray(state.moves).tolist()}

    def potential(self, state: CoinState, player: Array) -> Array:
        """Returns a number that differs by player and state, at the end too."""
        if self.flat:
            return jnp.where(player == 0, -0.4, -0.2)
        return jnp.array(_POTENTIAL)[state.coin, (state.count + player) % 4] - 0.05 * state.moves[0]

    def phase(self, state: CoinState) -> Array:
        """Returns the number of moves made, at most 2."""
        return jnp.minimum(state.count, 2)

    def result(self, state: CoinState, player: Array) -> dict[str, Array]:
        """Returns whether the player made the last move, and the coin."""
        last = (state.count - 1) % 2 == player
        return {"last_rate": last.astype(jnp.float32), "coin": state.coin.astype(jnp.float32)}


@dataclasses.dataclass(frozen=True)
class TiedGame(CoinGame):
    """The coin game of three moves that pay player 0 0.1, 0.6 and -0.7: all are ties, and in float32 sum to 6e-8."""

    def legal_actions(self, state: CoinState) -> Array:
        """Returns the actions that stop nothing."""
        return super().legal_actions(state) & (np.arange(3) > 0)

    def step(self, state: CoinState, action: Array) -> tuple[CoinState, Array, Array]:
        """Plays an action."""
        after, _, done = super().step(state, action)
        gained = jnp.array([0.1, 0.6, -0.7], jnp.float32)[jnp.minimum(state.count, 2)]
        gained = jnp.where(state.current_player < 0, 0.0, gained)
        return after, jnp.stack([gained, -gained]), done


class Node(NamedTuple):
    """A decision of the coin game.

    Attributes:
      player: who decides.
      view: what the player sees, and `key`, its bytes: the information set; coin, three moves, seat, tag.
      legal: bool[3].
      potentials: float[2], of both players.
      children: action -> (rewards float[2], the next Node or None at the end, potentials float[2] after the move).
    """

    player: int
    view: CoinView
    key: bytes
    legal: np.ndarray
    potentials: np.ndarray
    children: dict[int, tuple[np.ndarray, Any, np.ndarray]]


def coin_trees(game: CoinGame) -> list[Node]:
    """Returns the whole game tree of each side of the coin."""
    tell = jax.jit(lambda s: (game.view(s, s.current_player), game.legal_actions(s), _potentials(game, s)))
    step = jax.jit(game.step)

    def node(state: CoinState) -> Node:
        view, legal, potentials = jax.device_get(tell(state))
        children = {}
        for action in np.flatnonzero(legal):
            after, rewards, done = step(state, action)
            below = None if done else node(after)
            children[int(action)] = (np.asarray(rewards), below, np.asarray(tell(after)[2]))
        key = b"".join(np.asarray(x).tobytes() for x in view)
        return Node(int(state.current_player), view, key, legal, potentials, children)

    start = game.init(jax.random.key(0))
    return [node(dataclasses.replace(start, coin=jnp.int32(side))) for side in range(2)]


def _potentials(game: Game, state: Any) -> Array:
    return jnp.stack([game.potential(state, player) for player in range(2)])


def nodes(node: Node | None) -> Iterator[Node]:
    """Yields a tree's decisions."""
    if node is not None:
        yield node
        for _, child, _ in node.children.values():
            yield from nodes(child)


def random_table(trees: list[Node], seed: int) -> dict[bytes, np.ndarray]:
    """Returns a random policy: information set -> float64[3]."""
    rng = np.random.default_rng(seed)
    table = {}
    for tree in trees:
        for one in nodes(tree):
            if one.key not in table:
                weights = np.where(one.legal, rng.uniform(0.1, 1.0, 3), 0.0)
                table[one.key] = weights / weights.sum()
    return table


Step = tuple[Node, int]
"""A decision and the action taken there."""


def trajectories(trees: list[Node], table: dict[bytes, np.ndarray]) -> list[tuple[float, list[Step]]]:
    """Returns every way a game can go with its probability under a policy played by both."""
    found: list[tuple[float, list[Step]]] = []

    def walk(node: Node | None, chance: float, path: list[Step]) -> None:
        if node is None:
            found.append((chance, path))
            return
        for action, (_, child, _) in node.children.items():
            walk(child, chance * table[node.key][action], [*path, (node, action)])

    for tree in trees:
        walk(tree, 1.0 / len(trees), [])
    return found


def exact_action_values(
    trees: list[Node], table: dict[bytes, np.ndarray], discount: float
) -> tuple[dict[bytes, np.ndarray], dict[bytes, float]]:
    """Returns Q^pi(I, a), NaN where illegal, and the probability of each I, by recursion over histories.

    Q^pi(I, a) is the mean over the histories h of I, weighted by their probability, of
    r_p + discount * (value of the next history to p), p the player who decides in I.
    """
    sums: dict[bytes, np.ndarray] = {}
    reach: dict[bytes, float] = {}

    def value(node: Node | None, chance: float) -> np.ndarray:
        if node is None:
            return np.zeros(2)
        own, total = np.full(3, np.nan), np.zeros(2)
        for action, (rewards, child, _) in node.children.items():
            share = table[node.key][action]
            worth = rewards + discount * value(child, chance * share)
            own[action] = worth[node.player]
            total += share * worth
        sums[node.key] = sums.get(node.key, 0.0) + chance * own
        reach[node.key] = reach.get(node.key, 0.0) + chance
        return total

    for tree in trees:
        value(tree, 1.0 / len(trees))
    return {key: total / reach[key] for key, total in sums.items()}, reach


def scrambled(view: Any, legal: Array) -> Array:
    """Returns a legal action that depends on the whole view and on nothing else: int32."""
    leaves = [jnp.asarray(x).astype(jnp.uint32).reshape(-1) for x in jax.tree.leaves(view)]
    words = jnp.concatenate(leaves) + np.uint32(1)
    mixed = jnp.sum(words * (np.arange(1, words.size + 1, dtype=np.uint32) * np.uint32(2654435761)))
    mixed = (mixed ^ (mixed >> 15)) * np.uint32(0x85EBCA6B)
    n = (mixed ^ (mixed >> 13)) % jnp.maximum(jnp.sum(legal), 1).astype(jnp.uint32)
    return jnp.argmax(jnp.cumsum(legal) == n + 1).astype(jnp.int32)


def scrambled_policy() -> Policy:
    """Returns a player without randomness."""
    return Policy(_always)


def _always(params: tuple[()], view: Any, legal: Array) -> Array:
    return jax.nn.one_hot(scrambled(view, legal), legal.shape[0])


def arrays(tree: Any) -> list[np.ndarray]:
    """Returns a pytree's arrays on the host, PRNG keys as their words."""
    leaves = jax.tree.leaves(tree)
    words = [jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x for x in leaves]
    return [np.asarray(x) for x in words]
