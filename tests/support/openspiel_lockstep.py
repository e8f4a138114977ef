"""Hands of pyspiel's gin rummy, played by all kinds of players, and the same hands on the JAX game."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyspiel
from jax import Array, lax
from open_spiel.python.observation import make_observation

from envs.game import Game

SIZE, WORDS = 644, 8
TAKE, STOCK, PASS, KNOCK, LAYS = 52, 53, 54, 55, 56
SEATS = np.arange(2, dtype=np.int32)
Chooser = Callable[[Any, list[int], random.Random], int]


@dataclasses.dataclass(frozen=True)
class Record:
    """One hand as pyspiel played it; the lists have an entry for each decision and one for the end.

    Attributes:
      deck: the deck, as the JAX game takes it.
      actions: the players' actions.
      players: who was to act, -1 at the end.
      legal: bytes of the legal actions, packed as `legal_words`, little endian.
      tensors: uint8[T + 1, 2, 81], both players' observation tensors, packed by np.packbits.
      returns: pyspiel's.
      stuck: whether pyspiel itself came to a state without legal actions.
      events: what happened, by the names of `happened`.
    """

    deck: Sequence[int]
    actions: list[int]
    players: list[int]
    legal: list[bytes]
    tensors: np.ndarray
    returns: list[float]
    stuck: bool
    events: frozenset[str]


@functools.cache
def root(parameters: str = "") -> tuple[Any, Any, Any]:
    """Returns pyspiel's game of those parameters, a fresh state to clone, and an observation."""
    game = pyspiel.load_game(f"gin_rummy({parameters})" if parameters else "gin_rummy")
    return game, game.new_initial_state(), make_observation(game)


def play(deck: Sequence[int], chooser: Chooser, rng: random.Random, parameters: str = "") -> Record:
    """Plays a hand on pyspiel, its chance nodes fed from the deck."""
    _, start, observation = root(parameters)
    state = start.clone()
    supply = iter(deck)
    actions, players, legal, tensors = [], [], [], []
    stuck = wall_knock = False
    while True:
        while state.is_chance_node() and not stuck:
            card = next(supply, None)
            if card is None:
                stuck = True
            else:
                state.apply_action(int(card))
        choices = [] if stuck else state.legal_actions()
        if not choices and not state.is_terminal():
            stuck = True
            break
        players.append(state.current_player() if choices else -1)
        legal.append(sum(1 << action for action in choices).to_bytes(4 * WORDS, "little"))
        for seat in range(2):
            observation.set_from(state, seat)
            tensors.append(observation.tensor.astype(bool))
        if not choices:
            break
        action = chooser(state, choices, rng)
        wall_knock |= action == KNOCK and str(state.current_phase()).endswith("WALL")
        actions.append(action)
        state.apply_action(action)
    packed = np.packbits(np.array(tensors).reshape(-1, 2, SIZE), axis=2)
    events = happened(state, actions, wall_knock)
    return Record(deck, actions, players, legal, packed, state.returns(), stuck, events)


def happened(state: Any, actions: Sequence[int], wall_knock: bool) -> frozenset[str]:
    """Names what is worth having seen in a finished hand."""
    knocked, laid, off = state.knocked(), state.layed_melds(), sorted(state.layoffs())
    seat = int(knocked[1])
    runs = [sorted((meld, size, base) for meld in row for size, base in _runs(meld)) for row in laid]
    named = {
        "repeated": state.is_terminal() and not any(knocked) and actions[-1] < TAKE,
        "capped": state.is_terminal() and not any(knocked) and actions[-1] == TAKE,
        "wall": state.is_terminal() and not any(knocked) and actions[-1] == PASS,
        "wall_knock": wall_knock,
        "gin": any(knocked) and state.deadwood()[seat] == 0,
        "undercut": any(knocked) and state.returns()[seat] < 0,
        "tie": any(knocked) and state.is_terminal() and state.returns()[seat] == 0,
        "layoff": bool(off),
        "chain": any(b - a == 1 for a, b in itertools.pairwise(off)),
        "long_run": any(b[2] == a[2] + a[1] for row in runs for a, b in itertools.pairwise(sorted(row, key=_start))),
    }
    return frozenset(name for name, happens in named.items() if happens)


def _start(run: tuple[int, int, int]) -> int:
    return run[2]


def _runs(meld: int) -> list[tuple[int, int]]:
    """Returns (length, lowest card) of a meld that is a run."""
    for length, base in ((5, 149), (4, 109), (3, 65)):
        if meld >= base:
            starts = 14 - length
            return [(length, 13 * ((meld - base) // starts) + (meld - base) % starts)]
    return []


def uniform(state: Any, legal: list[int], rng: random.Random) -> int:
    """Chooses any legal action."""
    return rng.choice(legal)


def eager(state: Any, legal: list[int], rng: random.Random) -> int:
    """Knocks when it may, sheds high cards, lays melds rather than passing; else any action."""
    if KNOCK in legal and rng.random() < 0.8:
        return KNOCK
    if rng.random() < 0.5:
        lays = [action for action in legal if action >= LAYS]
        if lays:
            return rng.choice(lays)
        if len(legal) > 8:
            return max(legal[: len(legal) - (legal[-1] == KNOCK)], key=lambda card: card % 13)
    return rng.choice(legal)


def shuttling(state: Any, legal: list[int], rng: random.Random) -> int:
    """Takes upcards nearly always and never knocks; often gives back the card it took."""
    if TAKE in legal and rng.random() < 0.97:
        return TAKE
    if state.prev_upcard() in legal and rng.random() < 0.1:
        return state.prev_upcard()
    return rng.choice([action for action in legal if action != KNOCK])


@functools.cache
def _bots(parameters: str) -> list[Any]:
    game = root(parameters)[0].get_parameters()
    return [pyspiel.make_simple_gin_rummy_bot(game, seat) for seat in range(2)]


def greedy(state: Any, legal: list[int], rng: random.Random, parameters: str = "", noise: float = 0.05) -> int:
    """Plays as pyspiel's simple bot, with some noise, until the knock; lays and passes as it likes after it."""
    if str(state.current_phase()).endswith(("KNOCK", "LAYOFF")) or rng.random() < noise:
        return eager(state, legal, rng)
    bot = _bots(parameters)[state.current_player()]
    bot.restart()
    return bot.step(state)


def simple(state: Any, legal: list[int], rng: random.Random) -> int:
    """Plays as pyspiel's simple bot to the end of the hand; standard deck only."""
    bots = _bots("")
    if str(state.current_phase()).endswith("FIRST_UPCARD"):
        for bot in bots:
            bot.restart()
    return bots[state.current_player()].step(state)


def patient(state: Any, legal: list[int], rng: random.Random) -> int:
    """Plays as the simple bot, but knocks only with gin or at the wall; standard deck only."""
    phase = str(state.current_phase())
    seat = state.current_player()
    if phase.endswith("DISCARD") and KNOCK in legal and state.deadwood()[seat] > 0:
        hand = state.hands()[seat]
        melded = {card for meld in _UTILS.best_meld_group(hand) for card in meld}
        loose = [card for card in hand if card not in melded]
        return max(loose or hand, key=lambda card: (card % 13, card))
    return greedy(state, legal, rng, noise=0.0)


_UTILS = pyspiel.gin_rummy.GinRummyUtils(13, 4, 10)


def words_of(records: Sequence[Record]) -> np.ndarray:
    """Returns the legal actions of all decisions of all records, end to end: uint32[sum T, 8]."""
    return np.frombuffer(b"".join(b"".join(record.legal) for record in records), "<u4").reshape(-1, WORDS)


@functools.partial(jax.jit, static_argnums=0)
def _replay(game: Game, decks: Array, actions: Array) -> tuple[Array, ...]:
    def look(state: Any) -> tuple[Array, ...]:
        seen = jax.vmap(lambda seat: game.observe(state, seat))(SEATS) != 0
        bits = jnp.pad(seen, ((0, 0), (0, -SIZE % 8))).reshape(2, -1, 8)
        packed = jnp.sum(jnp.where(bits, np.uint8(1) << np.arange(7, -1, -1, dtype=np.uint8), 0), axis=2)
        return state.current_player, game.legal_actions(state), packed.astype(jnp.uint8)

    def one(state: Any, action: Array) -> tuple:
        player, legal, packed = look(state)
        words = jnp.sum(
            jnp.where(jnp.pad(legal, (0, 15)).reshape(WORDS, 32), np.uint32(1) << np.arange(32, dtype=np.uint32), 0),
            axis=1,
            dtype=jnp.uint32,
        )
        after, rewards, done = game.step(state, action)
        return after, (player, words, packed, rewards, done)

    states = jax.vmap(game.from_deck)(decks)
    return lax.scan(lambda states, now: jax.vmap(one)(states, now), states, actions)[1]


def differences(game: Game, records: Sequence[Record], lanes: int) -> dict[str, int]:
    """Plays the records' actions on the JAX game and counts where it differs from pyspiel, by what differs.

    Args:
      game: the JAX game, of the records' parameters.
      records: hands.
      lanes: how many at once; the last batch is filled up.
    """
    totals = dict.fromkeys(("player", "legal", "tensor", "returns", "done"), 0)
    totals["decisions"] = 0
    for first in range(0, len(records), lanes):
        batch = list(records[first : first + lanes])
        length = np.array([len(record.players) for record in batch])
        filled = batch + [batch[0]] * (lanes - len(batch))
        actions = np.zeros((game.max_length + 1, lanes), np.int32)
        for n, record in enumerate(filled):
            actions[: len(record.actions), n] = record.actions
        decks = np.array([record.deck for record in filled])
        player, words, tensor, rewards, done = jax.device_get(_replay(game, decks, actions))
        lane = np.repeat(np.arange(len(batch)), length)
        t = np.concatenate([np.arange(n) for n in length])
        totals["player"] += int(np.sum(player[t, lane] != np.concatenate([record.players for record in batch])))
        totals["legal"] += int(np.sum(np.any(words[t, lane] != words_of(batch), axis=1)))
        theirs = np.concatenate([record.tensors for record in batch])
        totals["tensor"] += int(np.sum(np.any(tensor[t, lane] != theirs, axis=(1, 2))))
        whole = np.array([not record.stuck for record in batch])
        last = np.array([len(record.actions) for record in batch]) - 1
        won = rewards.sum(axis=0)[: len(batch)] * 100
        returns = np.array([record.returns for record in batch])
        totals["returns"] += int(np.sum(np.any(np.abs(won - returns) > 1e-3, axis=1) & whole))
        n = np.arange(len(batch))
        totals["done"] += int(np.sum((~done[last, n] | (done[np.maximum(last - 1, 0), n] & (last > 0))) & whole))
        totals["decisions"] += int(np.sum(length - 1))
    return totals


def rich_deck(rng: random.Random, num_ranks: int = 13, num_suits: int = 4) -> list[int]:
    """Deals a deck whose hands and first stock cards come from few ranks or few suits: runs of six and more, quads.

    One time in three a hand of ten melded cards and one more lies among the first eleven or so.
    """
    ids = [num_ranks * suit + rank for suit in range(num_suits) for rank in range(num_ranks)]
    kind = rng.randrange(3)
    if kind == 0:
        ranks = set(rng.sample(range(num_ranks), min(num_ranks, rng.randint(6, 9))))
        first = [card for card in ids if card % num_ranks in ranks]
    elif kind == 1:
        low = rng.randint(0, max(0, num_ranks - 7))
        first = [card for card in ids if low <= card % num_ranks < low + 7]
    else:
        suits = rng.sample(range(num_suits), min(num_suits, 2))
        first = [card for card in ids if card // num_ranks in suits]
    rng.shuffle(first)
    rest = [card for card in ids if card not in first]
    rng.shuffle(rest)
    deck = first + rest
    if rng.random() < 0.5 and num_suits == 4 and num_ranks == 13:
        melded = _melded_hand(rng)
        others = [card for card in deck if card not in melded]
        seat = rng.randrange(2)
        deck = others[: 10 * seat] + melded[:10] + others[10 * seat :]
        deck = deck + [card for card in melded if card not in deck]
    return deck


def _melded_hand(rng: random.Random) -> list[int]:
    """Returns ten or eleven cards, most of them in melds: one run and sets, or a long run, and loose ones."""
    suit, length = rng.randrange(4), rng.randint(3, 9)
    low = rng.randint(0, 13 - length)
    hand = [13 * suit + low + n for n in range(length)]
    for rank in rng.sample(range(13), 13):
        size = rng.choice((3, 4))
        cards = [13 * s + rank for s in rng.sample(range(4), size)]
        if len(hand) + size <= 10 and not set(cards) & set(hand):
            hand += cards
    loose = [card for card in range(52) if card not in hand]
    return hand + rng.sample(loose, 10 - len(hand)) if len(hand) < 10 else hand
