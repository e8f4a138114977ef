"""Names of actions and pictures of positions: right for every game, and nothing shown that a viewer does not know."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import InputError, cards, drawing
from envs.game import Game
from envs.rummy500.rules import HAND_VALUES

GAMES: list[tuple[str, dict[str, Any]]] = [
    ("kuhn_poker", {}),
    ("leduc_poker", {}),
    ("liars_dice", {}),
    ("mini_gin_rummy", {}),
    ("mini_gin_rummy", {"preset": "3x4", "knock_form": "best_discard"}),
    ("gin_rummy", {}),
    ("gin_rummy_mdp", {}),
    ("gin_rummy_openspiel", {}),
    ("gin_rummy_openspiel", {"num_ranks": 6, "hand_size": 5}),
    ("rummy500", {"num_players": 3}),
]
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", params=GAMES, ids=lambda given: "-".join([given[0], *map(str, given[1].values())]))
def played(request: pytest.FixtureRequest) -> tuple[Game, list[tuple[Any, np.ndarray]]]:
    """A game, and the states of a few rounds played at random with their legal actions."""
    game = envs.make(request.param[0], **request.param[1])
    init, step, legal = jax.jit(game.init), jax.jit(game.step), jax.jit(game.legal_actions)
    rng, seen = np.random.default_rng(0), []
    for seed in range(3):
        state = init(jax.random.key(seed))
        while int(state.current_player) >= 0:
            allowed = np.asarray(legal(state))
            seen.append((jax.device_get(state), allowed))
            state = step(state, np.int32(rng.choice(np.flatnonzero(allowed))))[0]
        seen.append((jax.device_get(state), np.zeros(game.num_actions, bool)))
    return game, seen[:: max(len(seen) // 24, 1)]


def _cards(words: dict[str, Any], seat: int | None = None) -> set[str]:
    """Returns the names of the cards in all hands, or in one."""
    hands = words.get("hands", [])
    some = hands if seat is None else hands[seat : seat + 1]
    return {card.upper() for hand in some for card in ([hand] if isinstance(hand, str) else hand)}


def _shown(game: Game, state: Any, viewer: int | None) -> list[str]:
    """Returns every card face up in a scene."""
    groups = [group for row in game.scene(state, viewer).rows for group in row.groups]
    return [str(piece).rstrip("*") for group in groups for piece in group.pieces if piece != drawing.Card()]


def test_names_of_legal_actions_are_unique(played: tuple[Game, list[tuple[Any, np.ndarray]]]) -> None:
    """By `action_name` and in a state, in everyone's names of the cards."""
    game, states = played
    for state, legal in states:
        allowed = np.flatnonzero(legal).tolist()
        assert len({game.action_name(action) for action in allowed}) == len(allowed)
        for viewer in (None, 0, 1):
            named = [game.describe_action(state, action, viewer) for action in allowed]
            assert len(set(named)) == len(named)
            assert not any(name.isdigit() for name in named)


@pytest.mark.parametrize("name", envs.names())
def test_actions_that_a_game_does_not_have_are_refused(name: str) -> None:
    """-1 was the last one's name, and what comes after the last that of another."""
    game = envs.make(name)
    assert game.action_name(jnp.int32(game.num_actions - 1)) == game.action_name(game.num_actions - 1)
    for wrong in (-1, game.num_actions):
        with pytest.raises(InputError, match=rf"^action={wrong} is not one of {name}; it must be one of 0 to \d+$"):
            game.action_name(wrong)
    with pytest.raises(InputError, match=r"^action=0.5 is not valid; it must be a whole number, one of 0 to"):
        game.action_name(0.5)


def test_all_cards_are_in_the_open_picture(played: tuple[Game, list[tuple[Any, np.ndarray]]]) -> None:
    """Once each, in the text and in the drawing."""
    game, states = played
    for state, _ in states:
        shown, text = _shown(game, state, None), game.render(state)
        assert len(shown) == len(set(shown)) or game.name == "liars_dice"
        assert _cards(game.to_dict(state)) <= set(shown)
        assert all(card in text for card in _cards(game.to_dict(state)))


def test_a_viewer_sees_no_more_than_its_view(played: tuple[Game, list[tuple[Any, np.ndarray]]]) -> None:
    """Of the other hands what all saw taken, counted in the view; the rest is face down."""
    game, states = played
    view_of = jax.jit(game.view)
    for state, _ in states:
        words = game.to_dict(state)
        for viewer in range(game.num_players):
            if "suits" in words or "hands" not in words:
                continue
            others = set().union(*(_cards(words, seat) for seat in range(game.num_players) if seat != viewer))
            public = _public(game, jax.device_get(view_of(state, np.int32(viewer))), viewer)
            text, svg = game.render(state, viewer), game.render_svg(state, viewer)
            assert _cards(words, viewer) <= set(_shown(game, state, viewer))
            for card in others - public - _cards(words, viewer):
                assert card not in text.split()
                assert f">{card}<" not in svg
                assert card not in _shown(game, state, viewer)
            hidden = text.count("face down")
            assert hidden or not others - public


def _public(game: Game, view: Any, viewer: int) -> set[str]:
    """Returns the names of the cards in others' hands that the viewer's view holds."""
    if game.name == "rummy500":
        return {cards.card_name(card) for card in np.flatnonzero(view.holder != 255)}
    if not hasattr(view, "known"):
        return set()
    ranks = game.rules.num_ranks
    if game.name == "gin_rummy_openspiel":
        return {
            cards.RANKS[card % ranks] + "SCDH"[card // ranks] for card in cards.cards_in(view.known[1 - viewer], ranks)
        }
    return {cards.card_name(card, ranks) for card in cards.cards_in(view.known, ranks)}


@pytest.mark.parametrize("viewer", [-1, 9, 0.5, "0"])
def test_a_viewer_who_is_no_seat_is_refused(played: tuple[Game, list[tuple[Any, np.ndarray]]], viewer: Any) -> None:
    """Instead of a picture of nobody's view."""
    game, states = played
    for draw in (game.render, game.render_svg):
        with pytest.raises(InputError, match=r"viewer=.* is not valid; it must be .*a seat from 0 to"):
            draw(states[0][0], viewer)


@pytest.mark.parametrize("name", ["kuhn_poker", "phantom_ttt"])
def test_a_batch_of_states_is_not_drawn(name: str) -> None:
    """One line says how one of them is had."""
    game = envs.make(name)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 3))
    for draw in (game.render, game.render_svg, game.show):
        with pytest.raises(InputError, match=r"^a batch of states of shape \(3,\) was given; one is shown, as"):
            draw(states)


def test_the_picture_follows_from_the_view(played: tuple[Game, list[tuple[Any, np.ndarray]]]) -> None:
    """Where what a player cannot see is dealt anew, its picture stays the same, to the letter."""
    game, states = played
    if (
        type(game).determinize is Game.determinize
        or getattr(game, "rules", None) == envs.make("mini_gin_rummy", preset="3x4", knock_form="best_discard").rules
    ):
        pytest.skip("the game cannot redeal")
    again = jax.jit(lambda state, seat, key: game.determinize(game.view(state, seat), key))
    changed = 0
    for n, (state, _) in enumerate(states):
        if int(state.current_player) < 0:
            continue
        for viewer in range(2):
            other = jax.device_get(again(state, np.int32(viewer), jax.random.key(n)))
            assert game.render(other, viewer) == game.render(state, viewer)
            assert game.render_svg(other, viewer) == game.render_svg(state, viewer)
            changed += game.render(other) != game.render(state)
    assert changed


def test_drawings_are_xml_with_a_card_for_each_piece(played: tuple[Game, list[tuple[Any, np.ndarray]]]) -> None:
    """One group per card or die, open or face down, within the drawing."""
    game, states = played
    for state, _ in states:
        for viewer in (None, 0, game.num_players - 1):
            root = ET.fromstring(game.render_svg(state, viewer))
            assert root.tag == f"{_SVG}svg"
            assert root.find(f"{_SVG}title") is not None
            pieces = [piece for row in game.scene(state, viewer).rows for group in row.groups for piece in group.pieces]
            assert len(root.findall(f"{_SVG}g")) == len(pieces)
            width, height = map(int, root.attrib["viewBox"].split()[2:])
            for group in root.findall(f"{_SVG}g"):
                x, y = map(int, group.attrib["transform"][10:-1].split())
                assert 0 <= x <= width - 46
                assert 0 <= y <= height - 46


def test_text_is_escaped_and_control_characters_replaced() -> None:
    """In titles, notes and what stands under cards."""
    bad = '<script>"&\x00\ud800]]>'
    scene = drawing.Scene(bad, (drawing.Row(bad, (drawing.spread(["7H"], bad),), bad),))
    svg = drawing.to_svg(scene)
    root = ET.fromstring(svg)
    assert "<script" not in svg
    assert "\x00" not in svg
    assert root.find(f"{_SVG}title").text == '<script>"&\ufffd\ufffd]]>'


def test_a_game_from_outside_draws_itself() -> None:
    """By what it says in words, and for a viewer by what the view holds."""

    class Plain(type(envs.make("kuhn_poker"))):
        scene = Game.scene
        action_name = Game.action_name

    game = Plain()
    state = game.from_deck(np.array([2, 0, 1]))
    assert "hands" in game.render(state)
    assert "'K', 'J'" in game.render(state)
    assert "card  0" in game.render(state, 1)
    assert "hands" not in game.render(state, 1)
    assert ET.fromstring(game.render_svg(state, 1)) is not None
    assert game.action_name(1) == "1"


def test_a_hand_is_shown_by_its_melds_with_its_deadwood() -> None:
    """Two melds and what is left; a card drawn, and the deadwood is what the best discard leaves."""
    game = envs.make("gin_rummy")
    first = [cards.card_id(name) for name in ("7S", "7H", "7D", "2C", "3C", "4C", "KS", "QH", "9D", "AD")]
    rest = [card for card in range(52) if card not in first]
    state = game.from_deck(np.array(first + rest))
    assert "7S 7H 7D | 2C 3C 4C | KS QH AD 9D  (deadwood 30)" in game.render(state)
    drawn = jax.jit(game.step)(state, 1)[0]
    marked = cards.card_name(rest[10])
    assert f"{marked}*" in game.render(drawn)
    assert "after the best discard" in game.render(drawn)


def test_a_table_of_rummy_500_names_who_laid_what() -> None:
    """Melds with the seats, points laid and in hand."""
    game = envs.make("rummy500", num_players=2)
    first = [cards.card_id(name) for name in ("7S", "7H", "7D", "2C", "3C", "9H", "KS")]
    rest = [card for card in range(52) if card not in first]
    state = game.from_deck(np.array(first + rest))
    step, legal = jax.jit(game.step), jax.jit(game.legal_actions)
    state = step(state, 0)[0]
    lays = next(a for a in np.flatnonzero(legal(state)) if game.action_name(a) == "lay the set 7S 7H 7D")
    after = step(state, lays)[0]
    drawn = HAND_VALUES[rest[8]]
    kept = int(HAND_VALUES[[card for card in first if card % 13 != 6]].sum() + drawn)
    assert "table     7S 7H 7D of 0" in game.render(after)
    assert f"21 points laid, {kept} in hand" in game.render(after)


def test_a_card_of_leduc_that_a_fold_left_unturned_is_called_so() -> None:
    """The open picture of a round that is over shows it, and does not promise it."""
    game = envs.make("leduc_poker")
    state, texts = game.init(jax.random.key(0)), []
    for action in (2, 0):  # raise, fold
        texts.append(game.render(state))
        state, *_ = game.step(state, action)
    assert all("(not turned yet)" in text for text in texts)
    assert "(never turned)" in game.render(state)
