"""Do the rule bots do what their rules say, and only what is legal?"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_melds

import envs
from dream.evaluation import match
from envs import InputError, cards
from envs.gin_rummy import deadwood, deadwood_after_discard
from envs.gin_rummy.event_log.state import GinView
from envs.gin_rummy.players import rule_based
from envs.gin_rummy.players.rule_based import BOTS, RuleBotParams

GAME = envs.make("gin_rummy")
RULE_BOTS = [name for name in envs.bot_names(GAME) if name != "random"]


@functools.partial(jax.jit, static_argnums=(1, 2))
def _steps(policy: envs.Policy, games: int, game: envs.Game = GAME) -> tuple:
    """Plays a bot against itself: views, legal actions, policies and states of every step."""
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), games))

    def body(states: object, t: jax.Array) -> tuple:
        views = jax.vmap(game.view)(states, states.current_player)
        legal = jax.vmap(game.legal_actions)(states)
        chances = jax.vmap(policy)(views, legal)
        after, _, _ = jax.vmap(game.step)(states, jnp.argmax(chances, axis=1))
        return after, (views, legal, chances, states.current_player)

    return jax.lax.scan(body, states, jnp.arange(game.max_length))[1]


@pytest.mark.parametrize("name", ["greedy", "heuristic", "defensive", "eaai_simple"])
def test_bots_are_distributions_over_legal_actions(name: str) -> None:
    """At every decision of 64 hands against themselves."""
    _, legal, chances, player = jax.device_get(_steps(envs.make_bot(name, GAME), 64))
    playing = player >= 0
    np.testing.assert_allclose(chances[playing].sum(axis=1), 1.0, atol=1e-6)
    assert not np.any(chances[playing] * ~legal[playing])
    assert np.all(chances >= 0)


def test_greedy_is_greedy() -> None:
    """It takes a top exactly where that lowers deadwood, sheds what leaves least, and knocks at once."""
    views, legal, chances, player = jax.device_get(_steps(envs.make_bot("greedy", GAME), 16))
    playing = player >= 0
    action, legal = chances.argmax(axis=2)[playing], legal[playing]
    views = jax.tree.map(lambda x: x[playing], views)
    now, after, with_top = jax.device_get(_deadwoods(views.hand, views.top))
    checked = {"draw": 0, "discard": 0, "knock": 0}
    for n in range(len(action)):
        if views.phase[n] == 4:
            allowed = legal[n, 3:55] | legal[n, 55:]
            assert after[n, (action[n] - 3) % 52] == after[n, allowed].min()
            assert (action[n] >= 55) == legal[n, 55:].any()
            checked["knock" if action[n] >= 55 else "discard"] += 1
        elif legal[n, 1]:
            assert views.top[n] < 52
            assert (action[n] == 1) == (with_top[n].min() < now[n])
            checked["draw"] += 1
    assert min(checked.values()) >= 10, checked


@jax.jit
@jax.vmap
def _deadwoods(hand: jax.Array, top: jax.Array) -> tuple[jax.Array, ...]:
    """Returns a hand's deadwood, and that after each discard of it, and of it with the top, which stays."""
    held = cards.to_cards(hand)
    with_top = held.at[top].set(True, mode="drop")
    taken = deadwood_after_discard(with_top).at[top].set(999, mode="drop")
    return deadwood(held), deadwood_after_discard(held), taken


class Seen(NamedTuple):
    """What a rule is asked about, in plain Python.

    Attributes:
      hand, pile, known: cards; known are those that the opponent took and holds.
      top: the pile's top.
      stock, turn: cards in the stock, and the own turn's number, from 1.
      legal: actions.
      now: the hand's deadwood, before a card is drawn.
      after: the deadwood that each discard leaves, of the hand with a card drawn or of the hand with the top.
    """

    hand: frozenset[int]
    pile: frozenset[int]
    known: frozenset[int]
    top: int
    stock: int
    turn: int
    legal: frozenset[int]
    now: int
    after: dict[int, int]


THREES = [frozenset(slow_melds.cards_of(meld)) for meld in slow_melds.FULL.all_melds if meld.bit_count() == 3]
TYPICAL = (52, 44, 38, 32, 28, 25, 23, 22, 21, 20, 18, 17, 16)
"""Mean deadwood of an opponent in turn 1, 2, ..."""


def _pairs(card: int, weight: Callable[[int, int], int]) -> int:
    """Sums what each two cards weigh that make a meld of three with a card."""
    return sum(weight(*(three - {card})) for three in THREES if card in three)


def _by_words(rule: RuleBotParams, seen: Seen) -> list[int]:
    """Returns the actions of the rule, each as likely as the others."""
    limit = rule.early if seen.turn <= rule.turn_early else rule.middle if seen.turn <= rule.turn_middle else rule.late
    if seen.stock <= rule.short:
        limit = max(limit, rule.short_limit)
    limit = min(limit, rule.knock_limit)
    values = slow_melds.FULL.values
    if max(seen.legal) < 3:
        kept = min(left for card, left in seen.after.items() if card != seen.top)
        gain = seen.now - kept
        joins = any(seen.top in three and three <= seen.hand | {seen.top} for three in THREES)
        takes = (rule.take_joins and joins) or gain >= rule.take_gain
        takes = takes or (rule.take_knock and gain > 0 and kept <= limit)
        takes = takes or (rule.take_low and gain > 0 and values[seen.top] <= 3)
        return [1] if takes and 1 in seen.legal else [min(seen.legal - {1})]
    unseen = set(range(52)) - seen.hand - seen.pile - seen.known
    worth = [(card in unseen) + 2 * (card in seen.known) for card in range(52)]
    scores = {
        card: rule.left * seen.after[card]
        - rule.value * values[card]
        + rule.discard_risk * _pairs(card, lambda a, b: worth[a] * worth[b])
        + rule.partner_count
        * _pairs(card, lambda a, b: (a in seen.hand and b in unseen) + (b in seen.hand and a in unseen))
        for card in seen.hand
        if {3 + card, 55 + card} & seen.legal
    }
    best = [card for card in sorted(scores) if scores[card] <= min(scores.values()) + 1e-3]
    best = best if rule.spread else best[:1]

    def knocks(card: int) -> bool:
        left = seen.after[card]
        ahead = seen.stock <= rule.short or TYPICAL[min(seen.turn, 13) - 1] - left >= rule.lead
        return 55 + card in seen.legal and (left == 0 or (left <= limit and ahead))

    return [55 + card for card in best if knocks(card)] or [3 + card for card in best]


@functools.cache
def _asked() -> tuple[GinView, np.ndarray, list[Seen]]:
    """Returns views of hands that are played long: draws that lower deadwood or not, discards with a knock or none."""
    views, legal, _, player = jax.device_get(_steps(envs.make_bot("camper", GAME), 64))
    discards = views.phase == 4
    turns = 1 + np.stack([np.cumsum(discards & (player == seat), axis=0) for seat in range(2)])
    turns = np.where(player == 0, *turns) - discards  # own discards before this one
    kinds = {"passes": views.phase < 3, "draws": views.phase == 3}
    kinds |= {"knocks": discards & legal[..., 55:].any(axis=2), "discards": discards & ~legal[..., 55:].any(axis=2)}
    places = []
    for name, flags in kinds.items():
        found = np.argwhere(flags & (player >= 0))
        places += found[np.linspace(0, len(found) - 1, 6 if name == "passes" else 48).astype(int)].tolist()
    t, n = np.transpose(places)
    views, legal = jax.tree.map(lambda x: x[t, n], views), legal[t, n]
    return views, legal, [_seen(views, legal, turns[tuple(place)], row) for row, place in enumerate(places)]


def _seen(views: GinView, legal: np.ndarray, turn: int, row: int) -> Seen:
    hand, pile, known = (frozenset(cards.cards_in(x[row], 13)) for x in (views.hand, views.pile, views.known))
    top, mask = int(views.top[row]), slow_melds.mask_of(hand)
    bigger = mask if len(hand) == 11 else mask | 1 << top
    return Seen(
        hand, pile, known, top, int(views.stock[row]), int(turn), frozenset(np.flatnonzero(legal[row]).tolist()),
        slow_melds.FULL.deadwood(mask), slow_melds.FULL.after_discard(bigger),
    )  # fmt: skip


_answers = jax.jit(jax.vmap(rule_based.play, (None, 0, 0)))
OTHERWISE = {
    "heuristic": {"turn_early": 7.0, "turn_middle": 9.0, "middle": 5.0, "late": 1.0},
    "defensive": {"lead": 14.0, "short": 10.0},
    "early_knock": {"take_joins": 0.0, "take_gain": 9.0},
    "meld_builder": {"short": 31.0},
}
"""Numbers with which parts of a rule that are rarely decisive are so more often."""


@pytest.mark.parametrize("name", BOTS)
def test_a_bot_plays_by_its_words(name: str) -> None:
    """Draws, discards and knocks at 150 views, in plain Python from the rule's description."""
    views, legal, asked = _asked()
    for changes in ({}, OTHERWISE.get(name, {})):
        rule = BOTS[name]._replace(**changes)
        found = np.asarray(_answers(jax.tree.map(np.float32, rule), views, legal))
        for chances, seen in zip(found, asked, strict=True):
            actions = _by_words(rule, seen)
            wanted = np.isin(np.arange(107), actions) / len(actions)
            np.testing.assert_allclose(chances, wanted, atol=1e-6, err_msg=str(seen))


@pytest.mark.parametrize("name", ["meld_builder", "early_knock", "defensive"])
def test_where_only_gin_ends_a_round_every_gin_is_declared(name: str) -> None:
    """By scores of their own these bots would discard past one; the other discards stay as they are."""
    game = envs.make("gin_rummy", knock_limit=0)
    bot = envs.make_bot(name, game)
    assert bot.params.knock_limit == envs.make_bot("lv4", game).params.base.knock_limit == 0
    _, legal, chances, player = jax.device_get(_steps(bot, 64, game))
    gins = (player >= 0) & legal[..., 55:].any(axis=-1)
    assert gins.sum() > 20
    np.testing.assert_allclose(chances[gins][:, 55:].sum(axis=1), 1)
    assert (chances[(player >= 0) & ~gins][:, 55:] == 0).all()


def test_every_rule_bot_beats_random_play() -> None:
    """On points a hand over 256 mirrored hands, the whole interval above 0."""
    for name in ("greedy", "heuristic"):
        report = match(GAME, envs.make_bot(name, GAME), envs.make_bot("random", GAME), games=256)
        assert report["points_per_hand"].low > 30


def test_a_smaller_deck_has_the_players_that_can_play_it() -> None:
    """The others are not listed, and refused by name; those listed decide."""
    game = envs.make("gin_rummy", num_ranks=7, hand_size=5)
    assert envs.bot_names(game) == ["random", "simple_bot"]
    state = jax.jit(game.init)(jax.random.key(0))
    view, legal = game.view(state, 0), game.legal_actions(state)
    for name in envs.bot_names(game):
        assert float(jnp.sum(envs.make_bot(name, game)(view, legal))) == pytest.approx(1.0)
    for name in ("greedy", "camper", "lookahead", "marjj", "lv4", "mc:64"):
        with pytest.raises(InputError, match=f"player '{name}' of gin_rummy does not play with 28 cards; .* all 52"):
            envs.make_bot(name, game)


def test_wrong_names_and_options_are_refused() -> None:
    """One line, with the nearest name."""
    with pytest.raises(InputError, match="did you mean 'greedy'"):
        envs.make_bot("gredy", GAME)
    with pytest.raises(InputError, match="unknown option of greedy 'take'"):
        envs.make_bot("greedy", GAME, take=1.0)
    for value in ("high", None, float("nan")):
        with pytest.raises(InputError, match=r"take_gain=.* is not valid; it must be a finite number"):
            envs.make_bot("greedy", GAME, take_gain=value)
    with pytest.raises(InputError, match="unknown player of kuhn_poker"):
        envs.make_bot("greedy", envs.make("kuhn_poker"))
    assert set(RULE_BOTS) >= {"greedy", "heuristic", "aggressive_knock", "meld_builder", "early_knock", "defensive"}
