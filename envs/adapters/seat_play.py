"""One seat of a game against players that have the others: pure functions, for one game and for many at once.

Draws come from words that hash a seed, the number of the call and of the turn within it: a game's course follows from
its own seed and the seat's actions, whatever other games are played next to it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.adapters.single_game import check_worst_reward
from envs.batching import computed_once, where_needed
from envs.errors import InputError, shown, whole_number
from envs.game import Game, Policy, State
from envs.players import bot_names, check_plays, make_bot
from envs.random_play import uniform_action, uniform_policy
from envs.sampling import first_above

HOLD, PLAY, DEAL = 0, 1, 2
"""What a call does with a game: nothing, play the seat's action, deal anew."""
MOST_DEALS = 1000
"""Games dealt in a row that end before the seat's first turn, beyond what chance does."""
NO_ANSWER = -1
"""In the place of an action, where a player's answer is no distribution."""
_TOLERANCE = 1e-3
"""How far from 1 probabilities may sum."""
_BITS = 24
"""Random bits of a draw from probabilities, what float32 holds."""


@functools.partial(jax.tree_util.register_dataclass, data_fields=["players"], meta_fields=["game", "seat", "sits"])
@dataclasses.dataclass(frozen=True)
class Table:
    """A game, the seat that is played from outside, and who has the others.

    Attributes:
      game: its rules.
      seat: the one played from outside.
      players: the others, each once.
      sits: of each seat the index in `players`; 0 at `seat`, where it means nothing.
    """

    game: Game
    seat: int
    players: tuple[Policy, ...]
    sits: tuple[int, ...]


class Moved(NamedTuple):
    """What a call made of a game.

    Attributes:
      state: the seat is to act, or the game is over; where the call held it, as it was.
      reward: float32, paid to the seat meanwhile; in a game dealt anew, before the seat's first turn. NaN where
        another player's answer was no distribution over its legal actions.
      over: bool.
    """

    state: State
    reward: Array
    over: Array


def make_table(game: Game, opponent: str | Policy | Sequence[str | Policy], seat: int) -> Table:
    """Seats players.

    Args:
      game: of any number of players.
      opponent: who has all the other seats, or one player for each of them in order of seat; rule-based
        players by name.
      seat: the one played from outside.
    Raises:
      InputError: a seat the game lacks, another number of opponents, an unknown name, what is no player, or a player
        of another game; or a game that does not say its worst reward.
    """
    check_worst_reward(game)
    others = game.num_players - 1
    seat = whole_number("seat", seat, f"0 to {others}")
    given = [opponent] * others if isinstance(opponent, str | Policy) else opponent
    if not isinstance(given, Sequence) or not all(isinstance(one, str | Policy) for one in given):
        raise InputError(
            f"opponent={shown(repr(opponent))} is not valid; it must be a player's name or a policy, or a list of them"
        )
    if not 0 <= seat < game.num_players:
        raise InputError(f"seat={seat} is not valid; {game.name} has seats 0 to {others}")
    if len(given) != others:
        raise InputError(f"{len(given)} opponents are not valid; {game.name} here has {others}")
    players: list[Policy] = []
    named: list[str | Policy] = []
    places = []
    for one in given:
        known = [n for n, other in enumerate(named) if other is one or (isinstance(one, str) and other == one)]
        if not known:
            player = _named(one, game) if isinstance(one, str) else one
            check_plays(player, game)
            players.append(player)
            named.append(one)
        places.append(known[0] if known else len(players) - 1)
    return Table(game, seat, tuple(players), (*places[:seat], 0, *places[seat:]))


def _named(name: str, game: Game) -> Policy:
    try:
        return make_bot(name, game)
    except InputError as error:
        if name in bot_names(game):
            raise
        raise InputError(
            f"{error}; a trained player is given as a policy, opponent=dream.load_policy({name!r})"
        ) from None


def no_turn(table: Table) -> InputError:
    """Builds the error for a seat that MOST_DEALS games have given no turn."""
    return InputError(
        f"seat={table.seat} of {table.game.name} has had no turn in {MOST_DEALS} games; choose another seat"
    )


def no_answer(table: Table) -> InputError:
    """Builds the error for a player whose answer is no distribution, as `Moved.reward` tells."""
    return InputError(
        f"an opponent in {table.game.name} gave no distribution over its legal actions: probabilities must be at least "
        "0, 0 where an action is not legal, and sum to 1"
    )


def word(seed: Array, call: Array, turn: Array) -> Array:
    """Returns a random word: uint32, from three of them.

    The call is mixed as the seed is: added as it is, all seeds would be places in one sequence, and two games whose
    places are near would be dealt the same cards, one some calls after the other.
    """
    begun = _mixed(seed + np.uint32(0x9E3779B9)) + _mixed(call + np.uint32(0x85EBCA6B))
    return _mixed(_mixed(begun) + turn.astype(jnp.uint32))


def _mixed(x: Array) -> Array:
    """Returns a bijection of uint32 in which every bit depends on every other (MurmurHash3's finaliser)."""
    x = (x ^ (x >> 16)) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * np.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def drawn(probs: Array, bits: Array) -> Array:
    """Returns an action drawn from probabilities float32[A] by a random word: int32; never one of probability 0."""
    sums = jnp.cumsum(probs)
    share = jnp.minimum((bits >> (32 - _BITS)).astype(jnp.float32) * np.float32(2.0**-_BITS), np.float32(1 - 2.0**-20))
    return first_above(sums, probs, share * sums[-1])


def choose(table: Table, state: State, bits: Array) -> Array:
    """Returns the action of whoever is to act but the seat: int32; any number where no one is.

    NO_ANSWER where its probabilities are no distribution.
    """
    view, legal = table.game.view(state, state.current_player), table.game.legal_actions(state)
    return _choice(table, state.current_player, view, legal, bits)


def _choice(table: Table, seat: Array, view: Any, legal: Array, bits: Array) -> Array:
    ways = [functools.partial(_draw, player) for player in table.players]
    if len(ways) == 1:
        return ways[0](view, legal, bits)
    return lax.switch(jnp.asarray(table.sits)[seat], ways, view, legal, bits)


def _draw(player: Policy, view: Any, legal: Array, bits: Array) -> Array:
    if _is_uniform(player):
        return uniform_action(bits, legal)
    probs = player(view, legal)
    # Any comparison with NaN is false.
    fine = jnp.all(jnp.where(legal, probs >= 0, probs == 0)) & (jnp.abs(jnp.sum(probs) - 1) <= _TOLERANCE)
    return jnp.where(fine, drawn(probs, bits), NO_ANSWER)


def _is_uniform(player: Policy) -> bool:
    return player.apply is uniform_policy().apply


def deal(game: Game, bits: Array) -> State:
    """Returns a new game from a random word."""
    return game.init(jax.random.key(bits))


def advance(table: Table, state: State, action: Array, seed: Array, call: Array) -> Moved:
    """Plays the seat's action, then the others' until it is the seat's turn or the game is over.

    Args:
      table: game and players.
      state: the seat is to act there, or where `action` is negative someone else.
      action: int32, legal; negative for none, where the others are to act.
      seed: uint32, of the game.
      call: uint32, its number.
    """
    first = action >= 0

    def others(at: tuple[Array, State, Array]) -> Array:
        turn, state, _ = at
        player = state.current_player
        return ((turn == 0) & first) | ((player >= 0) & (player != table.seat))

    def one(at: tuple[Array, State, Array]) -> tuple[Array, State, Array]:
        turn, state, reward = at
        bits = word(seed, call, turn)
        chosen = lax.cond((turn == 0) & first, lambda: action, lambda: choose(table, state, bits))
        state, paid, _ = table.game.step(state, jnp.maximum(chosen, 0))
        return turn + 1, state, reward + _paid(paid[table.seat], chosen)

    _, state, reward = lax.while_loop(others, one, (jnp.int32(0), state, jnp.float32(0)))
    return Moved(state, reward, state.current_player < 0)


def _paid(reward: Array, action: Array) -> Array:
    return jnp.where(action == NO_ANSWER, jnp.nan, reward)


def advance_many(table: Table, states: State, actions: Array, kinds: Array, seeds: Array, calls: Array) -> Moved:
    """The same for many games at once, some of them dealt anew until it is the seat's turn there, or MOST_DEALS times.

    Args:
      table: game and players.
      states: [N].
      actions: int32[N], legal where the kind is PLAY.
      kinds: uint8[N], HOLD, PLAY or DEAL.
      seeds: uint32[N], of the games.
      calls: uint32[N], how many each game has had, this one with them.
    """
    game, plays, deals = table.game, kinds == PLAY, kinds == DEAL

    def waits(states: State) -> Array:
        player = states.current_player
        return (plays | deals) & (player >= 0) & (player != table.seat)

    def fresh(state: State, needed: Array, bits: Array) -> State:
        return where_needed(needed, functools.partial(deal, game), state, bits)

    def one(at: tuple[Array, State, Array, Array, Array]) -> tuple[Array, State, Array, Array, Array]:
        turn, states, rewards, undealt, dealt = at
        bits = word(seeds, calls, turn)
        states, rewards = jax.vmap(fresh)(states, undealt, bits), jnp.where(undealt, 0, rewards)
        own, others = plays & (turn == 0), waits(states)
        chosen = jnp.where(own, actions, _chosen(table, states, bits, others))
        after, paid, _ = jax.vmap(game.step)(states, computed_once(jnp.maximum(chosen, 0)))
        rewards = rewards + jnp.where(own | others, _paid(paid[:, table.seat], chosen), 0)
        states = _where(own | others, after, states)
        dealt = dealt + undealt
        return turn + 1, states, rewards, deals & (states.current_player < 0) & (dealt < MOST_DEALS), dealt

    start = (jnp.int32(0), states, jnp.zeros(kinds.shape, jnp.float32), deals, jnp.zeros(kinds.shape, jnp.int32))

    def goes_on(at: tuple[Array, State, Array, Array, Array]) -> Array:
        turn, states, _, undealt, _ = at
        return (turn == 0) | jnp.any(undealt) | jnp.any(waits(states))

    _, states, rewards, _, _ = lax.while_loop(goes_on, one, start)
    return Moved(states, rewards, states.current_player < 0)


def _chosen(table: Table, states: State, bits: Array, needed: Array) -> Array:
    """Returns the actions of others in games where they are to act: int32[N]; players of rules look at no more."""
    player = states.current_player
    views, legal = jax.vmap(table.game.view)(states, player), jax.vmap(table.game.legal_actions)(states)
    choice = functools.partial(_choice, table)
    if all(_is_uniform(one) for one in table.players):
        return jax.vmap(choice)(player, views, legal, bits)
    return jax.vmap(lambda needs, *seen: where_needed(needs, choice, jnp.int32(0), *seen))(
        needed, player, views, legal, bits
    )


def _where(chosen: Array, ours: Any, theirs: Any) -> Any:
    """Returns the games of one batch where chosen, else of another: pytrees [N]."""
    return jax.tree.map(lambda x, y: jnp.where(chosen.reshape(-1, *[1] * (x.ndim - 1)), x, y), ours, theirs)
