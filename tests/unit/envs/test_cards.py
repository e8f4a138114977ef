"""Cards keep their ids, names and values, and masks are just another way to write a set of cards."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envs import InputError, cards

HANDS = st.sets(st.integers(0, 51))
_to_mask, _to_cards = jax.jit(cards.to_mask), jax.jit(cards.to_cards)


@pytest.mark.parametrize(
    ("name", "card"), [("AS", 0), ("KS", 12), ("AH", 13), ("TD", 35), ("AC", 39), ("KC", 51), ("7H", 19)]
)
def test_id_is_13_suit_plus_rank_in_order_shdc(name: str, card: int) -> None:
    """Spot checks of the table of ids, both ways."""
    assert cards.card_id(name) == card
    assert cards.card_name(card) == name


def test_every_card_keeps_its_id_through_its_name() -> None:
    """card_id undoes card_name on every deck of 3 to 13 ranks."""
    for ranks in range(3, 14):
        assert [cards.card_id(cards.card_name(c, ranks), ranks) for c in range(4 * ranks)] == list(range(4 * ranks))


@pytest.mark.parametrize("name", ["10d", "td", " TD ", "10D"])
def test_names_are_read_liberally(name: str) -> None:
    """Ten may be written 10, case and outer blanks do not matter."""
    assert cards.card_id(name) == 35


@pytest.mark.parametrize("name", ["", "T", "1D", "DT", "TX", "TDD", "11S"])
def test_wrong_name_says_what_would_be_right(name: str) -> None:
    """The error is one line that repeats the name and lists ranks and suits."""
    with pytest.raises(InputError) as error:
        cards.card_id(name)
    text = str(error.value)
    assert "\n" not in text
    assert repr(name) in text
    assert cards.RANKS in text
    assert cards.SUITS in text


def test_card_beyond_a_small_deck_is_unknown() -> None:
    """A seven does not exist with six ranks, and the error lists the ranks there are."""
    with pytest.raises(InputError, match="A23456 "):
        cards.card_id("7S", 6)


def test_values_are_ace_one_and_court_ten() -> None:
    """The thirteen values as the rules list them."""
    assert cards.VALUES.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10, 10]


@given(HANDS)
def test_masks_tell_the_same_cards(held: set[int]) -> None:
    """to_mask sets bit `rank` of mask `suit`, to_cards undoes it, cards_in lists the ids."""
    hand = np.isin(np.arange(52), list(held))
    mask = np.asarray(_to_mask(hand))
    assert mask.dtype == np.uint16
    assert mask.tolist() == [sum(1 << c % 13 for c in held if c // 13 == suit) for suit in range(4)]
    np.testing.assert_array_equal(_to_cards(mask), hand)
    assert cards.cards_in(mask) == sorted(held)


@pytest.mark.parametrize(("ranks", "suits"), [(3, 3), (5, 4), (13, 1), (6, 2)])
def test_masks_of_small_decks_leave_missing_suits_empty(ranks: int, suits: int) -> None:
    """A deck with fewer suits still has four masks, and the round trip holds."""
    hand = np.arange(ranks * suits) % 2 == 0
    mask = cards.to_mask(hand, ranks)
    assert mask.shape == (4,)
    assert not np.any(np.asarray(mask)[suits:])
    np.testing.assert_array_equal(cards.to_cards(mask, ranks, suits), hand)
    assert cards.cards_in(np.asarray(mask), ranks) == np.flatnonzero(hand).tolist()


def test_mask_of_one_card() -> None:
    """card_mask sets one bit for each card and none for a negative id."""
    masks = jax.vmap(cards.card_mask)(np.arange(-1, 52, dtype=np.int32))
    np.testing.assert_array_equal(np.asarray(jax.vmap(cards.to_cards)(masks)), np.eye(53, 52, -1, bool))


def test_shuffle_is_a_fair_permutation() -> None:
    """Every deck holds each card once, and each card is about as often in each place."""
    decks = np.asarray(jax.jit(jax.vmap(cards.shuffle))(jax.random.split(jax.random.key(0), 20_000)))
    assert decks.dtype == np.uint8
    np.testing.assert_array_equal(np.sort(decks, axis=1), np.tile(np.arange(52), (20_000, 1)))
    counts = np.zeros((52, 52))
    for place in range(52):
        counts[place] = np.bincount(decks[:, place], minlength=52)
    chi_square = np.sum((counts - 20_000 / 52) ** 2) / (20_000 / 52)
    degrees = 51 * 51
    assert abs(chi_square - degrees) < 5 * np.sqrt(2 * degrees)


def test_shuffle_depends_on_its_key_alone() -> None:
    """The same key gives the same deck, another key another one."""
    first, again, other = (cards.shuffle(jax.random.key(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
