"""Rummy 500's names, options, errors, shaped reward, greedy player and host-side classes."""

from __future__ import annotations

import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs.errors import InputError
from envs.rummy500 import RummyRules, ShapedRummy500, actions
from envs.rummy500.bots import greedy_policy
from envs.rummy500.host import BOTH, NO_MELD, RUNS, SETS, Deck, Hand, RummyGame, key_of, parse_card
from envs.rummy500.host_match import RummyMatch


def test_both_spellings_of_a_card() -> None:
    """The deck's keys, the example's names, the project's names; every key is read back."""
    assert [parse_card(name) for name in ("2Dia", "2Diamonds", "2D")] == [27] * 3
    assert [parse_card(name) for name in ("AceSpades", "ASpades", "as")] == [0] * 3
    assert [parse_card(name) for name in ("TClubs", "10Clubs", "TC")] == [48] * 3
    assert [parse_card(key_of(card)) for card in range(52)] == list(range(52))


def test_deck_holds_counts_and_tells() -> None:
    """Contains, len, repr."""
    deck = Deck()
    assert len(deck) == 52
    deck.remove("AceSpades")
    assert "ASpades" not in deck
    assert "2Clubs" in deck
    assert repr(Deck(["2Dia", "KH"])) == "Deck(2Diamonds, KHearts)"


@pytest.mark.parametrize(
    ("hand", "summary"),
    [
        ("2D 3D 5H", (0, NO_MELD, 0)),
        ("5S 5H 5D 5C", (5, SETS, 20)),
        ("AS AH AD", (1, SETS, 45)),
        ("AC 2C 3C", (1, RUNS, 6)),
        ("QC KC AC 2C", (1, RUNS, 35)),
        ("3C 4C 5C 5D 5H", (2, BOTH, 15)),
        ("4C 5C 6C 7C", (2, RUNS, 22)),
    ],
)
def test_three_tuple_of_a_hand(hand: str, summary: tuple[int, int, int]) -> None:
    """Melds, their type, points of the best that share no card."""
    assert Hand(hand.split()).summary() == summary


def test_a_round_of_objects() -> None:
    """Any legal play to the end: scores as the game's, winners the highest, spaces of the player to act alone."""
    game = RummyGame(num_players=3, seed=5)
    assert [len(player.hand) for player in game.players] == [7, 7, 7]
    assert len(game.discard_deck) == 1
    rng = np.random.default_rng(0)
    while not game.is_over:
        player = game.players[game.current_player]
        spaces = [p.action_space for p in game.players]
        assert [any(map(len, space)) for space in spaces] == [p is player for p in game.players]
        pick_up, play, discard = player.action_space
        shapes = {name: value.shape for name, value in player.observation().items()}
        assert shapes == player.observation_space
        game.step(int(rng.choice(play or pick_up or discard)))
    assert game.winners() == [i for i, s in enumerate(game.scores()) if s == max(game.scores())]
    assert game.scores() == [player.score for player in game.players]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parse_card("1Clubs"), "unknown card '1Clubs'"),
        (lambda: parse_card(None), "unknown card None"),
        (lambda: Deck([52]), "unknown card 52"),
        (lambda: Deck(5), "held=5 is not valid; it must be a list of cards"),
        (lambda: Deck(["2D", "2Dia"]), "2Diamonds is there already"),
        (lambda: Hand(["2D"]).remove("3D"), "3Diamonds is not there"),
        (lambda: RummyGame(7), "num_players=7"),
        (lambda: RummyGame(2, deck=["2D"]), "deck has 1 cards"),
        (lambda: RummyGame(2, seed=0).step(322), "illegal action 322 .discard AS. of player"),
        (lambda: RummyGame(2, seed=0).step(374), "illegal action 374 .no action."),
        (lambda: RummyGame(2, seed=0).begin(2), "first=2 is not valid; it must be 0 to 1"),
        (lambda: RummyGame(2, seed=0).begin(-1), "first=-1 is not valid"),
        (
            lambda: RummyGame(2, seed=0).begin(np.array([1])),
            r"first=array\(\[1\]\) is not valid; .* whole number, 0 to 1",
        ),
        (lambda: RummyMatch(target=1.5), "target=1.5 is not valid; it must be a whole number, 1 or more"),
        (lambda: RummyGame(target=500), "unknown rule 'target'"),
        (lambda: RummyGame(reward="shaped"), "unknown rule 'reward'; did you mean 'rewards'"),
        (lambda: RummyGame(seed=2**70), "seed=1180591620717411303424 is not valid; .* 0 to 4294967295"),
        (lambda: RummyGame(seed="a"), "seed=a is not valid"),
        (lambda: RummyMatch(num_players=0), "num_players=0 is not valid; it must be 2 to 6"),
        (lambda: RummyMatch(num_players="3"), "num_players='3' is a str"),
        (lambda: RummyMatch(seed=-1), "seed=-1 is not valid; it must be a whole number, 0 to"),
        (lambda: envs.make("rummy500", num_players=1), "num_players=1"),
        (lambda: envs.make("rummy500", players=3), "did you mean 'num_players'"),
        (lambda: envs.make("rummy500", rewards="money"), "unknown rewards 'money'"),
        (lambda: envs.make("rummy500", ace_in_runs="wild"), "unknown ace_in_runs 'wild'"),
        (lambda: RummyRules(num_players=5, hand_size=13), "needs 66 cards"),
    ],
)
def test_wrong_input_is_named(call: Any, message: str) -> None:
    """One clear error."""
    with pytest.raises(InputError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_whole_numbers_of_any_kind_are_taken() -> None:
    """Like the rules of `envs.make`: 3.0 players, and a target of NumPy's."""
    assert len(RummyGame(num_players=3.0, seed=0).players) == 3
    match = RummyMatch(num_players=np.int64(2), target=np.int64(50), seed=0)
    assert (match.target, match.totals) == (50, [0, 0])
    assert repr(RummyMatch(num_players=2.0, target=50, seed=0)) == repr(match)


def test_who_begins_is_chosen_before_anyone_acts() -> None:
    """By a seat of the table; after a draw, and after a whole turn, no more."""
    game = RummyGame(num_players=2, seed=0)
    for first in (1, 0):
        game.begin(first)
        assert game.current_player == first
    for _ in range(2):
        game.step(game.legal_actions()[0])
        with pytest.raises(InputError, match="a player has acted; who begins is chosen before that"):
            game.begin(0)
    assert game.current_player == 1


def test_action_names() -> None:
    """One of each kind; all different."""
    names = [actions.action_name(a) for a in range(actions.NUM_ACTIONS)]
    assert len(set(names)) == 374
    assert [names[a] for a in (0, 1, 57, 129, 166, 218, 270, 373)] == [
        "draw from the stock",
        "take from AS",
        "lay the set AS AH AD AC",
        "lay the run QS KS AS",
        "lay AS on its set",
        "lay AS at the low end",
        "lay AS at the high end",
        "discard KC",
    ]


@functools.partial(jax.jit, static_argnums=(0, 2, 3))
def _rounds(game: Any, key: Any, count: int, greedy_seat: int) -> tuple:
    """Plays rounds, one seat greedy (none for -1): the states at the end, the sums of rewards, the first states."""
    deal, play = jax.random.split(key)
    first = jax.vmap(game.init)(jax.random.split(deal, count))
    policy = greedy_policy()

    def one(state: Any, total: Any, key: Any) -> tuple:
        legal = game.legal_actions(state)
        weights = legal.astype(jnp.float32)
        player = state.current_player
        if greedy_seat >= 0:
            weights = jnp.where(player == greedy_seat, policy(game.view(state, player), legal), weights)
        action = jax.random.categorical(key, jnp.where(weights > 0, jnp.log(weights), -jnp.inf))
        state, rewards, _ = game.step(state, jnp.where(jnp.any(legal), action, 0))
        return state, total + rewards

    def body(carry: tuple, t: Any) -> tuple:
        keys = jax.random.split(jax.random.fold_in(play, t), count)
        return jax.vmap(one)(*carry, keys), None

    start = (first, jnp.zeros((count, game.num_players)))
    (states, totals), _ = jax.lax.scan(body, start, jnp.arange(250))
    return states, totals, first


def test_greedy_beats_two_random_players() -> None:
    """0.63 of 256 rounds when measured, standard error 0.03; chance alone would be a third."""
    game = envs.make("rummy500")
    states, _, _ = _rounds(game, jax.random.key(1), 256, 0)
    result = jax.vmap(lambda state: game.result(state, 0))(states)
    assert jnp.all(states.current_player < 0)
    assert result["shared_win_rate"].mean() > 0.52


@pytest.mark.parametrize("every_step", [True, False])
def test_shaped_reward_adds_up(every_step: bool) -> None:
    """A round's sum is R at its end, less R at the deal where every step is paid; the greedy player takes part."""
    game = ShapedRummy500(
        RummyRules(num_players=3), card_weight=0.5, point_weight=0.25, win_weight=2.0, every_step=every_step
    )
    states, totals, _ = jax.device_get(_rounds(game, jax.random.key(2), 64, 0))
    held = (states.zone[:, None] == 4 + np.arange(3)[:, None]).sum(axis=2)
    scores = np.asarray(jax.vmap(game.scores)(states))
    best = scores == scores.max(axis=1, keepdims=True)
    wanted = 0.25 * states.points - 0.5 * held + 2.0 * best / best.sum(axis=1, keepdims=True)
    if every_step:
        wanted = wanted + 0.5 * 7
    np.testing.assert_allclose(totals, wanted, atol=1e-3)
    assert totals.min() >= game.worst_reward


def test_the_shaped_reward_has_a_bound_of_its_own() -> None:
    """All cards but those dealt gained, and nothing laid or won; weights of the other sign have their own worst."""
    assert ShapedRummy500().worst_reward == pytest.approx(-0.01 * (52 - 7))
    assert ShapedRummy500(every_step=False).worst_reward == pytest.approx(-0.01 * 52)
    assert ShapedRummy500(card_weight=-0.5, win_weight=-2.0).worst_reward == pytest.approx(-(0.5 * 7 + 2.0))
    assert not ShapedRummy500().zero_sum


def test_identity_tells_the_weights() -> None:
    """A shaped game is not the plain one."""
    shaped = ShapedRummy500(win_weight=3.0)
    assert json.loads(json.dumps(shaped.identity))["rules"]["win_weight"] == 3.0
    assert shaped.identity != envs.make("rummy500").identity


def test_cards_and_actions_that_are_no_whole_numbers_are_refused() -> None:
    """In one line; 1.7 is not card 1."""
    for card in (1.7, None, [1]):
        with pytest.raises(InputError, match=r"card=.* is not valid; it must be a whole number, an id"):
            Hand([card])
    with pytest.raises(InputError, match="deck=5 is not valid; it must be 52 cards"):
        RummyGame(num_players=2, deck=5)
    for action in (None, 0.0):
        with pytest.raises(InputError, match=r"action=.* is not valid; it must be a whole number, 0 to 373"):
            RummyGame(num_players=2, seed=1).step(action)


def _drawn_to_the_end(reshuffle: bool) -> tuple[RummyGame, list[tuple[int, int]]]:
    """Draws from the stock and discards the highest card; returns the round and (stock, pile) at every draw."""
    game, seen = RummyGame(num_players=2, seed=4, reshuffle=reshuffle), []
    while not game.is_over:
        if actions.STOCK in game.legal_actions():
            reported = game.rules.to_dict(game.state)
            seen.append((len(reported["stock"]), len(reported["pile"])))
            held = [card for part in ("hands", "pile", "stock") for card in reported[part]]
            names = [name for group in held for name in (group if isinstance(group, list) else [group])]
            assert len(set(names)) == len(names) == 52
        game.step(actions.STOCK if actions.STOCK in game.legal_actions() else game.legal_actions()[-1])
    return game, seen


def test_an_empty_stock_ends_the_round_or_is_made_anew() -> None:
    """Without `reshuffle` an empty stock is the end; with it the pile but one card becomes the stock."""
    ended, seen = _drawn_to_the_end(False)
    assert seen[-1] == (0, 38)
    assert len(seen) == 38
    assert not ended.players[0].action_space.pick_up
    went_on, seen = _drawn_to_the_end(True)
    assert len(seen) == went_on.rules.rules.max_turns == 200
    after = [seen[n + 1] for n in range(len(seen) - 1) if seen[n][0] == 0]
    assert set(after) == {(36, 2)}
    assert len(after) == 5
