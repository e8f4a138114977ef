"""What gin rummy's observations tell of each card, against the same worked out card by card."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_melds

import envs
from envs.gin_rummy.core import table

VALUES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10]
GAMES = {
    "events": ("gin_rummy", {}, 3, 4),
    "events_with_recall": ("gin_rummy", {}, 3, 4),
    "planes": ("gin_rummy_openspiel", {"observation": "planes"}, 0, 2),
    "recall": ("gin_rummy_openspiel", {"observation": "recall"}, 0, 2),
}
"""Observation -> (game, rules, the action that discards card 0, the phase of a discard)."""
ROUNDS, STEPS = 8, 40


def _positions(kind: str) -> tuple[Any, Any]:
    """Returns (views, observations) of the player to act along eight rounds that get rid of deadwood, in numpy."""
    name, rules, first, discard = GAMES[kind]
    return _played(envs.make(name, **rules), first, discard)


@functools.cache
def _played(game: Any, first: int, discard: int) -> tuple[Any, Any]:
    def play(key: jax.Array) -> Any:
        def step(state: Any, key: jax.Array) -> tuple[Any, Any]:
            view = game.view(state, state.current_player)
            values = jnp.tile(jnp.asarray(VALUES, jnp.float32), 4)
            likes = jnp.zeros(game.num_actions).at[first : first + 52].set(values)
            action = jax.random.categorical(key, jnp.where(game.legal_actions(state), likes, -1e9))
            return game.step(state, action)[0], (view, game.encode(view), state.current_player)

        return jax.lax.scan(step, game.init(key), jax.random.split(key, STEPS))[1]

    keys = jax.random.split(jax.random.key(3), ROUNDS)
    views, seen, player = jax.tree.map(np.asarray, jax.jit(jax.vmap(play))(keys))
    keep = (player >= 0) & (views.phase <= discard)
    return jax.tree.map(lambda x: x[keep], views), seen[keep]


def _features(kind: str, seen: np.ndarray) -> list[np.ndarray]:
    """Returns the tables of observations, however many of those that `_positions` plays, from one program."""
    rows = np.resize(seen, (ROUNDS * STEPS, seen.shape[1]))
    return [np.asarray(x)[: len(seen)] for x in _read(kind, rows)]


@functools.partial(jax.jit, static_argnums=0)
def _read(kind: str, seen: jax.Array) -> Any:
    name, rules, *_ = GAMES[kind]
    features = envs.make(name, **rules).card_features
    return jax.vmap(features.with_recall if kind == "events_with_recall" else features.of_observation)(seen)


def _cards(masks: np.ndarray) -> set[int]:
    return {13 * suit + rank for suit in range(4) for rank in range(13) if int(masks[suit]) >> rank & 1}


def _is_meld(cards: tuple[int, ...]) -> bool:
    ranks, suits = sorted(c % 13 for c in cards), {c // 13 for c in cards}
    return len(set(ranks)) == 1 or (len(suits) == 1 and ranks == list(range(ranks[0], ranks[0] + 3)))


def _around(cards: set[int], card: int) -> list[float]:
    rank = card % 13
    near = [float(0 <= rank + step < 13 and card + step in cards) for step in (-2, -1, 1, 2)]
    return [*near, sum(c % 13 == rank and c != card for c in cards) / 3]


def _of_card(card: int, planes: list[set[int]]) -> list[float]:
    around = [x for plane in planes for x in _around(plane, card)]
    return [1.0, VALUES[card % 13] / 10, *np.eye(13)[card % 13], *around]


def _points(x: float) -> list[float]:
    return [min(x, 50) / 25, min(x, 10) / 10]


def _discard_risk(card: int, free: set[int], known: set[int]) -> float:
    """Returns the pairs that meld with a card, each partner unseen counting 1 and known 2."""
    weight = {**dict.fromkeys(free, 1.0), **dict.fromkeys(known, 2.0)}
    pairs = itertools.combinations(set(weight) - {card}, 2)
    return sum(weight[a] * weight[b] for a, b in pairs if _is_meld((card, a, b)))


def _recalled(discarded: list[int], card: int) -> list[float]:
    """Returns what the opponent's discards, oldest first, tell of a card."""
    if not discarded:
        return [0.0] * 4
    above = [card % 13 - min(c % 13 for c in discarded), card % 13 - discarded[-1] % 13]
    return [*(min(max(x / 6, -1), 1) for x in above), *(float(x > 0) for x in above)]


def _written_out(
    hand: set[int], pile: set[int], top: int | None, known: set[int], discarded: list[int] | None
) -> tuple[list[float], list[list[float]]]:
    """Returns the module's tables, written out; the last of `discarded` is the last discard."""
    drawn = len(hand) == 11
    eleven = hand if drawn or top is None else hand | {top}
    free = set(range(52)) - hand - pile - known
    planes = [hand, pile, known, free, *([] if discarded is None else [set(discarded)])]
    after = slow_melds.FULL.after_discard(slow_melds.mask_of(eleven)) if len(eleven) == 11 else {}
    least = min(after.values())
    slots = []
    for card in sorted(eleven):
        pairs = [(own, new) for own in eleven - {card} for new in free if _is_meld((card, own, new))]
        melds = any(_is_meld((card, a, b)) for a, b in itertools.combinations(eleven - {card}, 2))
        left = after[card]
        row = [min((left - least) / 10, 3), left == least, *_points(left), left == 0, len(pairs) / 4]
        row += [
            len({new for _, new in pairs}) / 4,
            _discard_risk(card, free, known) / 8,
            melds,
            not drawn and card == top,
        ]
        row += [] if discarded is None else _recalled(discarded, card)
        slots.append([*row, *_of_card(card, planes)])
    own = least if drawn else slow_melds.FULL.deadwood(slow_melds.mask_of(hand))
    kept = min(left for card, left in after.items() if drawn or card != top)
    gain = own - kept
    whole = [*_points(own), *_points(kept), min(max(gain / 10, -2), 2), gain > 0, drawn]
    whole += [len(known) / 5, len(pile) / 20, len(free) / 31]
    if top is None:
        whole += [0.0] * (16 + 5 * len(planes))
    else:
        melds = any(_is_meld((top, a, b)) for a, b in itertools.combinations(hand - {top}, 2))
        whole += [melds, *_of_card(top, planes)]
    if discarded is not None:
        lowest, last = (min(c % 13 for c in discarded), discarded[-1] % 13) if discarded else (13, 13)
        whole += [*np.eye(14)[lowest][:13], *np.eye(14)[last][:13], len(discarded) / 10]
    return whole, slots


@pytest.mark.parametrize("kind", GAMES)
def test_the_features_are_those_of_the_tables(kind: str) -> None:
    """Every number of decisions before and after a draw; the actions discard (or knock with) the cards held."""
    name, rules, first, _ = GAMES[kind]
    views, seen = _positions(kind)
    whole, each, actions = _features(kind, seen)
    choices = envs.make(name, **rules).card_features.choices
    assert actions.shape[1:] == (11, choices)
    assert len(seen) > 100
    for n in range(0, len(seen), 3):
        view = jax.tree.map(lambda x, n=n: x[n], views)
        top = int(view.top if name == "gin_rummy" else view.upcard)
        top = None if top > 51 else top
        known = _cards(view.known) if name == "gin_rummy" else _cards(view.known[1 - view.seat])
        hand, pile = _cards(view.hand), _cards(view.pile) | (set() if top is None else {top})
        discarded = None
        if kind == "recall":  # that these two are what the opponent discarded is test_card_planes.py's
            last = np.flatnonzero(seen[n, 219:]).tolist()
            discarded = [card for card in np.flatnonzero(seen[n, 167:219]).tolist() if [card] != last] + last
        if kind == "events_with_recall":
            actor, event, card = (np.asarray(x)[1:] for x in table.read(view.log))
            latest_first = card[(actor == 1 - view.seat) & (event == table.DISCARD)].tolist()[::-1]
            discarded = list(dict.fromkeys(latest_first))[::-1]
        expected = _written_out(hand, pile, top, known, discarded)
        np.testing.assert_allclose(whole[n, 10:], np.array(expected[0], np.float32), atol=2e-5)
        filled = len(expected[1])
        np.testing.assert_allclose(each[n, :filled], np.array(expected[1], np.float32), atol=2e-5)
        assert not each[n, filled:].any()
        discards = [[first + c + 52 * k for k in range(choices)] for c in sorted(hand)]
        assert actions[n].tolist() == (discards if len(hand) == 11 else [[-1] * choices] * 11)


def test_there_are_none_where_one_knock_is_for_all_cards() -> None:
    """Of the full deck too: the knocks that the features name are no actions there."""
    deck = {"num_ranks": 13, "num_suits": 4, "hand_size": 10}
    assert envs.make("mini_gin_rummy", knock_form="best_discard", **deck).card_features is None
    game = envs.make("mini_gin_rummy", knock_form="each_discard", **deck)
    assert (game.num_actions, game.card_features.choices) == (107, 2)


@functools.cache
def _with_all_known() -> tuple[Any, Any]:
    """Returns a draw where the player knows all ten cards of the opponent, who took tops alone: view, observation."""
    game = envs.make("gin_rummy")
    state = game.from_deck(np.random.default_rng(5).permutation(52))
    step, legal, view = jax.jit(game.step), jax.jit(game.legal_actions), jax.jit(game.view)
    dealt = _cards(np.asarray(state.table.hands)[1])
    for _ in range(80):
        seen, may = view(state, 0), set(np.flatnonzero(np.asarray(legal(state))).tolist())
        if len(_cards(np.asarray(seen.known))) == 10 and int(seen.phase) == 3 and int(state.current_player) == 0:
            return jax.device_get((seen, jax.jit(game.encode)(seen)))
        discards = sorted(a for a in may if 3 <= a < 55)
        if int(state.current_player) == 0:
            action = 0 if 0 in may else 2 if 2 in may else discards[-1]
        else:
            action = 1 if 1 in may else next((a for a in discards if a - 3 in dealt), (discards or [0])[0])
        state, _, _ = step(state, action)
    raise AssertionError("the round ended before all was known")


@pytest.mark.parametrize("recalls", [False, True])
def test_the_top_is_one_card_where_all_of_the_opponents_are_known(recalls: bool) -> None:
    """No unseen card is taken for it, though none of them can be the opponent's."""
    view, seen = _with_all_known()
    whole, each, actions = (x[0] for x in _features("events_with_recall" if recalls else "events", seen[None]))
    actor, event, card = (np.asarray(x)[1:] for x in table.read(view.log))
    latest_first = card[(actor == 1) & (event == table.DISCARD)].tolist()[::-1]
    discarded = list(dict.fromkeys(latest_first))[::-1] if recalls else None
    top, known = int(view.top), _cards(view.known)
    expected = _written_out(_cards(view.hand), _cards(view.pile) | {top}, top, known, discarded)
    np.testing.assert_allclose(whole[10:], np.array(expected[0], np.float32), atol=2e-5)
    np.testing.assert_allclose(each, np.array(expected[1], np.float32), atol=2e-5)
    assert np.all(actions == -1)


def test_only_the_full_deck_and_hands_of_ten_have_card_features() -> None:
    """Other decks and hands, and OpenSpiel's tensor, have none."""
    assert envs.make("gin_rummy", hand_size=10).card_features is not None
    assert envs.make("gin_rummy", hand_size=7).card_features is None
    assert envs.make("gin_rummy_openspiel", observation="planes").card_features is not None
    assert envs.make("gin_rummy_openspiel", observation="planes", hand_size=7).card_features is None
    assert envs.make("gin_rummy_openspiel").card_features is None
    assert envs.make("gin_rummy_openspiel", num_ranks=10, observation="planes").card_features is None
    assert envs.make("gin_rummy", num_ranks=10).card_features is None
