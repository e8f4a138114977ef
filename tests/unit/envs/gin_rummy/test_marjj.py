"""The discard evaluator: its score against its words, card by card; what it takes, when it knocks."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import InputError, cards
from envs.gin_rummy.event_log.state import DISCARD, GinView
from envs.gin_rummy.melding import melds
from envs.gin_rummy.players import marjj, rule_based

GAME = envs.make("gin_rummy", preset="eaai")
BOT = envs.make_bot("marjj", GAME)
RANKS = "A23456789TJQK"


def _ids(text: str) -> list[int]:
    return [13 * "SHDC".index(card[1]) + RANKS.index(card[0]) for card in text.split()]


def _mask(text: str) -> jax.Array:
    return cards.to_mask(np.isin(np.arange(52), _ids(text))).astype(jnp.uint16)


_after = jax.jit(jax.vmap(melds.deadwood_after_discard))


def _left(hands: list[set[int]]) -> np.ndarray:
    """Returns the deadwood each discard leaves of each of at most 52 hands: int[n, 52]."""
    flags = np.zeros((52, 52), bool)
    for row, hand in zip(flags, hands, strict=False):
        row[sorted(hand)] = True
    masks = (flags.reshape(52, 4, 13) << np.arange(13)).sum(axis=2).astype(np.int32)
    return np.asarray(_after(masks)).reshape(52, 52)[: len(hands)]


def _danger(card: int, own: set[int], seen: set[int], known: set[int]) -> float:
    """Returns the danger in the words of the rule: seen cards that the opponent does not hold are out of reach."""
    suit, rank = divmod(card, 13)
    out = (own | seen) - known

    def at(step: int, flags: set[int], beyond: bool) -> bool:
        return 13 * suit + rank + step in flags if 0 <= rank + step < 13 else beyond

    total = 0.0
    for flags, beyond, certain, sign in ((out, True, -10, -1), (known, False, 20, 1)):
        low2, low1, high1, high2 = (at(step, flags, beyond) for step in (-2, -1, 1, 2))
        if (high1 and (low1 or low2)) or (low1 and (high1 or high2)):
            total += certain
        else:
            total += sign * (5 * (low1 + high1) + 3 * (low2 + high2))
    same = [13 * other + rank for other in range(4)]
    gone, held = sum(other in out for other in same), sum(other in known for other in same)
    total += -10 if gone >= 3 else -4 if gone == 2 else 0
    return total + (20 if held >= 2 else 4 if gone == 1 else 0)


def _positions(count: int) -> Any:
    """Yields views of players about to discard, some way into rounds of two such players."""
    step = jax.jit(GAME.step)
    for seed in itertools.count():
        state, rng = GAME.init(jax.random.key(seed)), np.random.default_rng(seed)
        for _ in range(int(rng.integers(4, 24))):
            view = GAME.view(state, state.current_player)
            chances = np.asarray(_play(view, GAME.legal_actions(state)), np.float64)
            action = rng.choice(len(chances), p=chances / chances.sum())
            after, _, over = step(state, jnp.int32(action))
            if over:
                break
            state = after
        if int(state.phase) == DISCARD:
            yield GAME.view(state, state.current_player), GAME.legal_actions(state)
            count -= 1
            if not count:
                return


_play = jax.jit(lambda view, legal: BOT(view, legal))


@jax.jit
def _scores(view: GinView, legal: jax.Array) -> tuple[jax.Array, jax.Array]:
    left = melds.deadwood_after_discard(view.hand.astype(jnp.int32)).reshape(-1)
    allowed = legal[3:55] | legal[55:]
    score = BOT.apply.score(view, left, rule_based.turn_of(view), cards.to_cards(view.hand))
    return score, marjj.candidates_of(view, left, allowed)


def test_the_score_is_that_of_its_words() -> None:
    """Deadwood left, 18 * 0.9^(turn - 1) times the mean of the seven best futures, and danger, of every card held."""
    for view, legal in _positions(4):
        own, known = (set(cards.cards_in(np.asarray(x), 13)) for x in (view.hand, view.known))
        seen = own | set(cards.cards_in(np.asarray(view.pile), 13))
        score, candidates = map(np.asarray, _scores(view, legal))
        turn, left = int(rule_based.turn_of(view)), _left([own])[0]
        unseen = sorted(set(range(52)) - seen - known)
        for card in own:
            futures = np.sort(_left([own - {card} | {other} for other in unseen]).min(axis=1))[:7]
            wanted = left[card] + 18 * 0.9 ** (turn - 1) * futures.mean() + _danger(card, own, seen, known)
            assert score[card] == pytest.approx(wanted, abs=2e-3)
        chances = np.asarray(_play(view, legal))
        discarded = (chances[3:55] + chances[55:]) > 0
        gin = np.asarray(legal[55:]) & (left == 0)
        assert gin.any() or not np.any(discarded & ~candidates)
        assert gin.any() or np.all(score[discarded] == score[candidates].min())


def _view(hand: str, *, top: str = "KC", turn: int = 1, drawn: bool = True) -> tuple[GinView, jax.Array]:
    """Makes a view of a hand in a turn of its player, 0, with the cards nobody has seen elsewhere."""
    log = np.zeros(GAME.rules.max_actions, np.uint16)
    entries = [(2, 3, _ids(top)[0])] + [(0, 3, -1), (1, 3, -1)] * (turn - 1) + [(0, 1, -1)] * drawn
    log[: len(entries)] = [actor << 9 | kind << 6 | card + 1 for actor, kind, card in entries]
    left = melds.deadwood_after_discard(_mask(hand).astype(jnp.int32)).reshape(-1)
    held = left < melds.NOT_HELD
    deadwood = jnp.min(left) if drawn else melds.deadwood(_mask(hand).astype(jnp.int32))
    view = GAME.view(GAME.init(jax.random.key(0)), jnp.int32(0))._replace(
        hand=_mask(hand), pile=_mask(top), log=jnp.asarray(log), length=jnp.uint8(len(entries)),
        top=jnp.uint8(_ids(top)[0]), phase=jnp.uint8(DISCARD if drawn else 3), deadwood=deadwood.astype(jnp.uint8),
    )  # fmt: skip
    draws = jnp.array([not drawn, not drawn, False])
    return view, jnp.concatenate([draws, held & drawn, held & drawn & (left <= 10)])


def test_it_knocks_early_or_with_gin() -> None:
    """Three points of deadwood are knocked with to turn three and held on to later; gin is always knocked with."""
    three, gin = "2S 3S 4S 7H 8H 9H QS QH QD 3C KD", "2S 3S 4S 7H 8H 9H QS QH QD QC KD"
    for turn in (1, 3, 4, 9):
        chances = np.asarray(_play(*_view(three, turn=turn)))
        assert chances[55:].sum() == (1 if turn <= 3 else 0), turn
        assert np.asarray(_play(*_view(gin, turn=turn)))[55 + _ids("KD")[0]] == 1


def test_it_takes_what_melds_and_lowers_deadwood() -> None:
    """The third queen is taken; a low card that only lowers deadwood is not, nor one an arrangement leaves out."""
    hand = "2S 3S 4S 7H 8H QS QH KC TD 9C"
    for top, takes in (("QD", True), ("9H", True), ("AC", False), ("KH", False)):
        chances = np.asarray(_play(*_view(hand, top=top, drawn=False)))
        assert chances[1] == takes, top
    chances = np.asarray(_play(*_view("2S 3S 4S 5S 7H 8H 9H KC KD KH", top="AS", drawn=False)))
    assert chances[0] == 1  # melded, but the hand has no less deadwood with it


def test_other_games_are_refused() -> None:
    """It knows gin_rummy with the full deck."""
    with pytest.raises(InputError, match="marjj does not play"):
        marjj.make(envs.make("mini_gin_rummy"))
