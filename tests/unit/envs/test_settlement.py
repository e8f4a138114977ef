"""A knock spelled out adds up to what the game pays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs import cards
from envs.boards import settlement
from envs.gin_rummy.core import scoring
from envs.gin_rummy.core.rules import PRESETS
from envs.gin_rummy.melding import melds

DEFENDER = "KH KD QC QS JH JD TC TH 9C 9D"
KNOCKS = {
    "big gin": ("AS 2S 3S 4S 5S 6S 7S 8S 9S TS", DEFENDER, "JS"),
    "gin": ("AS 2S 3S 4S 5S 6S 7S 8S 9S TS", DEFENDER, "KC"),
    "knock": ("AS 2S 3S 4S 5S 6S 7S 8S AH 2D", DEFENDER, "KC"),
    "undercut": ("AS 2S 3S 4S 5S 6S 7S 8S AH 9D", "KH KD KS QC QD QS AD 9S TS JS", "KC"),
}
_SETTLE = jax.jit(scoring.settle, static_argnums=0)


def _ids(names: str) -> list[int]:
    return sorted(cards.card_id(name) for name in names.split())


def _masks(ids: list[int]) -> jax.Array:
    return cards.to_mask(jnp.asarray(np.isin(np.arange(cards.NUM_CARDS), ids))).astype(jnp.int32)


@pytest.mark.parametrize("kind", KNOCKS)
@pytest.mark.parametrize("preset", ["dream", "modern"])
def test_the_sum_is_what_is_paid(kind: str, preset: str) -> None:
    """To the winner; big gin has a bonus of its own where it is played."""
    rules, (knocker, defender, discard) = PRESETS[preset], KNOCKS[kind]
    hands, card = [_ids(knocker), _ids(defender)], cards.card_id(discard)
    masks = [_masks(hand) for hand in hands]
    paid = int(_SETTLE(rules, *masks, melds.deadwood(masks[1]), jnp.int32(card)).points)
    shown = settlement.of_round(rules, hands, 0, card)
    assert shown["total"] * (1 if shown["winner"] == 0 else -1) == paid
    assert shown["ending"] == ("gin" if kind == "big gin" else kind)
    kinds = [term["kind"] for term in shown["terms"]]
    assert ("big_gin_bonus" in kinds) == (kind == "big gin" and preset == "modern")


def test_a_card_that_fits_a_set_and_a_run_is_laid_on_the_run() -> None:
    """In whatever order the melds lie: on the set it would not open the way for the next card."""
    melds = [tuple(_ids("TS TH TC")), tuple(_ids("JD QD KD"))]
    ten, nine = cards.card_id("TD"), cards.card_id("9D")
    assert settlement.laid_off([nine, ten], melds, 13) == [(ten, 1), (nine, 1)]
    assert settlement.laid_off([nine, ten], melds[::-1], 13) == [(ten, 0), (nine, 0)]
