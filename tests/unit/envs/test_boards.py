"""Boards: the cards that are named and counted are the table's."""

from __future__ import annotations

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import boards, cards
from envs.boards import gin, rummy
from envs.rummy500.rules import RummyRules
from envs.rummy500.state import HAND, PILE, STOCK


@pytest.mark.parametrize("knock_form", ["best_discard", "each_discard"])
@pytest.mark.parametrize("suit_symmetry", [False, True])
def test_a_discard_is_heard_in_the_hearers_suits(suit_symmetry: bool, knock_form: str) -> None:
    """Of mini gin, at every discard of some rounds: the card is the pile's top, as the hearer's view has it."""
    game = envs.make("mini_gin_rummy", preset="4x2", suit_symmetry=suit_symmetry, knock_form=knock_form)
    step, legal, view = jax.jit(game.step), jax.jit(game.legal_actions), jax.jit(game.view)
    rng, heard = np.random.default_rng(0), set()
    for seed in range(12):
        state = game.init(jax.random.key(seed))
        while int(state.current_player) >= 0:
            action, actor = int(rng.choice(np.flatnonzero(legal(state)))), int(state.current_player)
            after, _, _ = step(state, action)
            for hearer in range(2):
                before, now = jax.device_get((view(state, hearer), view(after, hearer)))
                said = boards.said(game, before, action, now, hearer == actor, jax.device_get(state))
                if action >= gin.DISCARDS:
                    assert said["cards"] == [cards.card_name(int(now.top), game.rules.num_ranks)]
                    words = game.describe_action(jax.device_get(state), action, hearer)
                    assert said["cards"][0] in words or words == "knock with the best discard"
                    heard.add(said["kind"])
            state = after
    assert heard == {"discard", "knock"}


@pytest.mark.parametrize("num_suits", [2, 3])
def test_cards_of_small_decks_go_by_one_name(num_suits: int) -> None:
    """Of OpenSpiel's gin with fewer suits: what is shown of a hand is what `hands` and `deck` say of it."""
    game = envs.make("gin_rummy_openspiel", num_suits=num_suits, num_ranks=9, hand_size=5)
    board = boards.board_of(game)
    for seed in range(3):
        state = game.init(jax.random.key(seed))
        held, deck = np.asarray(board.hands(game, state)), board.deck(game)
        for seat in range(2):
            shown = board.seen(game, jax.device_get(game.view(state, seat)))
            assert sorted(shown["hand"]) == sorted(deck[n] for n in np.flatnonzero(held[seat]))
    view = jax.device_get(game.view(state, 0))
    assert board.insight(game, view, held[None], np.ones(1), [])


def test_the_others_cards_are_counted_as_they_are() -> None:
    """Of OpenSpiel's gin, at every decision and for both players, those who lay melds or lay off among them."""
    game = envs.make("gin_rummy_openspiel")
    bot = envs.make_bot("simple_bot", game)

    @jax.jit
    def looked_at(state):
        seat = state.current_player
        action = jnp.argmax(bot(game.view(state, seat), game.legal_actions(state)))
        return game.step(state, action)[0], [game.view(state, one) for one in range(2)]

    phases = set()
    for seed in range(6):
        state = game.init(jax.random.key(seed))
        while int(state.current_player) >= 0:
            after, views = jax.device_get(looked_at(state))
            for seat, view in enumerate(views):
                shown = boards.seen(game, state, view, seat)
                held = sum(int(mask).bit_count() for mask in np.asarray(state.hands)[1 - seat])
                assert shown["others"][0]["count"] == held
                phases.add(shown["phase"])
            state = after
    assert phases >= {"first_upcard", "draw", "discard", "knock", "layoff", "melds"}


def _layable(aces: str) -> list[tuple[list[str], int]]:
    """Lists each meld of rummy 500 with the points it scores, from a suit's row with the ace at both its ends."""
    row = list(zip("A23456789TJQKA", (1, 2, 3, 4, 5, 6, 7, 8, 9, *[10] * 4, 15), strict=True))
    places = range({"both": 0, "low": 0, "high": 1}[aces], {"both": 14, "low": 13, "high": 14}[aces])
    runs = [row[low:end] for low in places for end in range(low + 3, min(low + 13, places[-1] + 1) + 1)]
    found = [([rank + suit for rank, _ in run], sum(p for _, p in run)) for run in runs for suit in "SHDC"]
    for (rank, points), size in itertools.product(row[1:], (3, 4)):
        found += [([rank + suit for suit in suits], size * points) for suits in itertools.combinations("SHDC", size)]
    return found


@pytest.mark.parametrize("aces", ["both", "high", "low"])
def test_a_hand_of_rummy_500_is_grouped_by_its_own_melds(aces: str) -> None:
    """They can be laid, share no card and score most, by trying all; an ace stands where the rules allow it."""
    rules, rng, layable = RummyRules(ace_in_runs=aces), np.random.default_rng(0), _layable(aces)
    for run, barred in ((["AS", "2S", "3S"], "high"), (["QS", "KS", "AS"], "low")):
        assert rummy.melds(rules, [cards.card_id(name) for name in run]) == ([] if aces == barred else [run])
    worth = {frozenset(meld): points for meld, points in layable}
    likely = np.flatnonzero(np.isin(np.arange(52) % 13, (0, 1, 2, 10, 11, 12)))
    most = 0
    for _ in range(60):
        hand = rng.choice(likely, 10, replace=False)
        names = {cards.card_name(card) for card in hand}
        choices = [(frozenset(), 0)]
        for meld, points in layable:
            if names.issuperset(meld):
                choices += [(used | set(meld), total + points) for used, total in choices if not used & set(meld)]
        found = [frozenset(meld) for meld in rummy.melds(rules, sorted(int(card) for card in hand))]
        assert sum(map(len, found)) == len(frozenset().union(*found))
        assert sum(worth[meld] for meld in found) == max(points for _, points in choices)
        most = max(most, len(found))
    assert most >= 2


@pytest.mark.parametrize("stock", ["full", "in hand", "in the pile"])
@pytest.mark.parametrize("reshuffle", [False, True])
@pytest.mark.parametrize("target", [0, 500])
def test_a_draw_that_ends_a_round_of_rummy_500_says_so(stock: str, reshuffle: bool, target: int) -> None:
    """To the one who draws and to those who hear of it, where the step ends the round and nowhere else."""
    game = envs.make("rummy500", num_players=2, random_first=False, reshuffle=reshuffle, target=target)
    state = game.init(jax.random.key(0))
    if stock != "full":
        left = state.zone == STOCK
        place = jnp.where(left, jnp.cumsum(left), state.position) if stock == "in the pile" else state.position
        zone = jnp.where(left, PILE if stock == "in the pile" else HAND, state.zone)
        state = dataclasses.replace(
            state, zone=zone.astype(jnp.int8), position=place.astype(jnp.int8), drawn=jnp.int32(cards.NUM_CARDS)
        )
    after, rewards, _ = jax.device_get(jax.jit(game.step)(state, 0))
    ended, state = bool(np.any(rewards != 0)), jax.device_get(state)
    assert ended == (stock == "in hand" or (stock == "in the pile" and not reshuffle))
    assert (game.describe_action(state, 0, 0) == "end the round (the stock is empty)") == ended
    assert ended or game.describe_action(state, 0, 0) == game.action_name(0)
    for seat in range(2):
        before, now = (jax.device_get(game.view(one, np.int32(seat))) for one in (state, after))
        said = boards.said(game, before, 0, now, seat == 0, state)
        assert said.get("ends", False) == boards.choice(game, state, before, 0).get("ends", False) == ended
        assert said["kind"] == boards.choice(game, state, before, 0)["kind"] == "stock"
        assert len(said["cards"]) == (seat == 0 and not ended)
