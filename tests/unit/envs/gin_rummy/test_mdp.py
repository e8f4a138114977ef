"""Does `gin_rummy_mdp` say in one table what its observation holds, and are its written-out cases right?"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_mdp
import slow_melds

import envs
from envs import InputError, cards
from envs.gin_rummy.core import scoring
from envs.gin_rummy.mdp import encoding
from envs.gin_rummy.melding import layoffs
from envs.gin_rummy.melding.arrangement import arrange

GAME = envs.make("gin_rummy_mdp")
DOCUMENT = {
    "hand": (0, 52), "pile": (52, 104), "top": (104, 156), "deadwood": (156, 157), "phase": (157, 161),
    "hand_size": (161, 162), "pile_size": (162, 163), "stock": (163, 164), "turns": (164, 165), "can_knock": (165, 166),
    "left": (166, 177), "with_top": (177, 178), "picked": (178, 230), "declined": (230, 282), "estimate": (282, 283),
    "safety": (283, 294), "undercut_risk": (294, 295), "melded": (295, 306), "connectors": (306, 317),
    "melded_share": (317, 318), "from_gin": (318, 319), "urgency": (319, 320), "margin": (320, 321),
    "activity": (321, 322), "opponent": (322, 342),
}  # fmt: skip
"""The document's section 5."""


def test_the_table_tells_the_code() -> None:
    """The docstring's rows are the layout that encodes, and both are the document's."""
    rows = re.findall(r"^\| (\d+):(\d+) \| (\w+) \|", encoding.__doc__, re.MULTILINE)
    reported = {name: (int(first), int(end)) for first, end, name in rows}
    assert reported == encoding.LAYOUT == DOCUMENT
    assert GAME.observation_size == 342


def test_each_part_lies_where_the_table_says() -> None:
    """A view of the deal: every one-hot block and a few scalars at their places."""
    state = GAME.from_deck(np.arange(52))
    seen = np.asarray(GAME.observe(state, 0))
    at = {name: seen[slice(*span)] for name, span in encoding.LAYOUT.items()}
    assert np.flatnonzero(at["hand"]).tolist() == list(range(10))
    assert np.flatnonzero(at["pile"]).tolist() == np.flatnonzero(at["top"]).tolist() == [20]
    assert at["phase"].tolist() == [1, 0, 0, 0]
    assert at["deadwood"] == 0  # AS to TS: one run
    assert at["can_knock"] == 1
    assert at["stock"] == 1
    assert at["left"][10] == 1
    assert not at["opponent"].any()


def test_the_opponent_is_told_only_where_it_is_named() -> None:
    """Kind k is entry 321 + k; kind 0 is none."""
    view = GAME.view(GAME.from_deck(np.arange(52)), 0)
    for kind in (0, 1, 20):
        named = np.asarray(GAME.encode(GAME.opponent_ids.name(view, jnp.int32(kind))))[322:]
        assert np.flatnonzero(named).tolist() == ([kind - 1] if kind else [])


def _hand(text: str) -> np.ndarray:
    return np.isin(np.arange(52), [cards.card_id(name) for name in text.split()])


def _answers(knocker: str, defender: str) -> tuple[int, int]:
    """Returns the defender's deadwood melding first, and at the joint optimum."""
    masks = [cards.to_mask(_hand(text)).astype(jnp.int32) for text in (knocker, defender)]
    laid = arrange(masks[0])
    return int(layoffs.melds_first_deadwood(laid, masks[1])), int(layoffs.deadwood_against(laid, masks[1]))


@pytest.mark.parametrize(
    ("knocker", "defender", "first", "joint"),
    [
        # The four sixes meld first and keep the seven of spades; at best six and seven go on the run.
        ("3S 4S 5S TH TD TC 2D 2H 2C AC", "6S 6H 6D 6C 7S KD QH JC 9H AD", 47, 40),
        ("3S 4S 5S TH TD TC 2D 2H 2C AC", "6S 7S 8C 9H KD QH JC 4D 7D AH", 59, 59),
        ("3S 4S 5S TH TD TC 2D 2H 2C AC", "TS 2S 9C 9H 9D QH QC QS 8C 8D", 16, 16),
    ],
)
def test_layoffs_by_hand(knocker: str, defender: str, first: int, joint: int) -> None:
    """Melding first is never better."""
    got = _answers(knocker, defender)
    slow = [slow_melds.mask_of(np.flatnonzero(_hand(text))) for text in (knocker, defender)]
    assert got == (slow_mdp.melds_first(*slow), slow_melds.FULL.defence(*slow))
    assert got == (first, joint)


def test_melds_first_against_brute_force() -> None:
    """400 pairs of hands rich in melds, every arrangement and every order of laying off."""
    rng = np.random.default_rng(5)
    pairs = []
    for _ in range(400):
        near = rng.permutation([c for c in range(52) if 2 <= c % 13 <= 8])
        pairs.append((np.sort(near[:10]), np.sort(near[10:20])))
    masks = np.array([[cards.to_mask(np.isin(np.arange(52), hand)) for hand in pair] for pair in pairs], np.int32)
    ours = jax.jit(jax.vmap(lambda m: layoffs.melds_first_deadwood(arrange(m[0]), m[1])))(masks)
    exact = jax.jit(jax.vmap(lambda m: layoffs.deadwood_against(arrange(m[0]), m[1])))(masks)
    theirs = [slow_mdp.melds_first(*(slow_melds.mask_of(hand) for hand in pair)) for pair in pairs]
    np.testing.assert_array_equal(ours, theirs)
    assert np.all(np.asarray(exact) <= np.asarray(ours))
    assert np.any(np.asarray(exact) < np.asarray(ours))


@pytest.mark.parametrize(
    ("points", "ending", "knocker", "defender"),
    [
        (60, scoring.GIN, 1.0, -0.85),
        (1, scoring.KNOCK, 0.259, -0.159),
        (70, scoring.KNOCK, 0.70, -0.60),
        (-25, scoring.UNDERCUT, -0.70, 0.475),
        (0, scoring.TIE, 0.0, 0.0),
        (0, scoring.KNOCK, 0.0, 0.0),
        (0, scoring.UNDERCUT, 0.0, 0.0),
        (0, scoring.GIN, 1.0, -0.85),
    ],
)
def test_categorical_rewards(points: int, ending: int, knocker: float, defender: float) -> None:
    """The document's ends and what lies between."""
    paid = scoring.categorical_reward(jnp.int32(points), jnp.int32(ending))
    assert [float(x) for x in paid] == pytest.approx([knocker, defender])


def test_wrong_rules_are_refused() -> None:
    """One line each."""
    with pytest.raises(InputError, match="unknown reward 'score'"):
        envs.make("gin_rummy_mdp", reward="score")
    with pytest.raises(InputError, match="unknown layoff"):
        envs.make("gin_rummy_mdp", layoff="none")
    with pytest.raises(InputError, match="unknown rule 'first_offer'"):
        envs.make("gin_rummy_mdp", first_offer=True)
