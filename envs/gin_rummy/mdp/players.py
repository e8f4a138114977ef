"""Players of `gin_rummy` at the table of `gin_rummy_mdp`.

A player decides discard and knock at once there, one after the other here. With P its action probabilities on the hand
with the card drawn, it discards c with probability P(discard c) + P(knock with c), and then knocks with probability
P(knock with c) / (P(discard c) + P(knock with c)): together the same play.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.cards import NUM_CARDS
from envs.game import Policy
from envs.gin_rummy.core import table
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.event_log import state as event_log
from envs.gin_rummy.event_log.game import GinRummy
from envs.gin_rummy.event_log.state import GinView
from envs.gin_rummy.mdp import encoding
from envs.gin_rummy.mdp.encoding import DISCARD, DRAW, KNOCK, MdpView
from envs.gin_rummy.mdp.game import MdpGinRummy
from envs.gin_rummy.melding import melds

_FIRST_CARD, _FIRST_KNOCK = 3, 3 + NUM_CARDS


def original(game: MdpGinRummy) -> GinRummy:
    """Returns `gin_rummy` with the rules both games share, `layoff` among them."""
    rules = {field.name: getattr(game.rules, field.name) for field in dataclasses.fields(GinRules)}
    return GinRummy(GinRules(**rules))


def translated(player: Policy, game: MdpGinRummy) -> Policy:
    """Returns a player of original(game) as a player of `game`."""
    return Policy(_Translated(player.apply, game.rules.knock_limit), player.params)


@dataclasses.dataclass(frozen=True)
class _Translated:
    """Plays by another game's policy."""

    apply: Callable[[Any, GinView, Array], Array]
    knock_limit: int

    def __call__(self, params: Any, view: MdpView, legal: Array) -> Array:
        """Returns the action probabilities: float32[16]."""
        decides = view.phase == KNOCK
        seen, their_legal = self.as_seen(view)
        probs = self.apply(params, seen, their_legal)
        draws, plain, knocks = jnp.split(probs, [_FIRST_CARD, _FIRST_KNOCK])
        held = encoding.slots_of(view.hand).astype(jnp.float32)
        slots = jnp.matmul(held, plain + knocks, precision="highest")  # reduced precision would break the sum of 1
        dropped = np.arange(NUM_CARDS) == view.top
        knock, total = jnp.sum(knocks * dropped), jnp.sum((plain + knocks) * dropped)
        # Where it would have discarded another card it knocks if it would have knocked at all.
        knock = jnp.where(total > 0, knock / jnp.where(total > 0, total, 1.0), jnp.sum(knocks))
        discards = view.phase == DISCARD
        by_action = [
            jnp.where(view.phase == DRAW, draws[:2], 0.0),
            jnp.where(discards, slots, 0.0),
            jnp.where(decides, jnp.stack([1.0 - knock, knock, knock]), 0.0),
        ]
        return jnp.where(legal, jnp.concatenate(by_action), 0.0)

    def as_seen(self, view: MdpView) -> tuple[GinView, Array]:
        """Returns what a player of `gin_rummy` sees and may do; at a knock decision, what it saw before the discard."""
        decides = (view.phase == KNOCK) & view.to_act
        back = jnp.where(decides, cards.card_mask(view.top.astype(jnp.int32)), np.uint16(0))
        hand, full = view.hand | back, decides | (view.phase == DISCARD)
        length = view.length - decides
        last = table.read(view.log[jnp.maximum(length.astype(jnp.int32) - 1, 0)])
        retaken = jnp.where(last.type == table.DRAW_DISCARD, last.card, -1)
        taken = jnp.where(decides, retaken, cards.signed_id(view.taken))
        left = melds.deadwood_after_discard(hand.astype(jnp.int32)).reshape(-1)
        ids = np.arange(NUM_CARDS)
        free = (left < melds.NOT_HELD) & (ids != taken) & full & view.to_act
        knocks = free & (left <= self.knock_limit)
        draws = view.phase == DRAW
        in_play = jnp.where(draws, event_log.DRAW, jnp.where(full, event_log.DISCARD, event_log.OVER))
        seen = GinView(
            hand=hand,
            pile=view.pile & ~back,
            known=view.known,
            log=jnp.where(np.arange(view.log.shape[0]) < length, view.log, np.uint16(0)),
            length=length,
            seat=view.seat,
            top=jnp.where(decides, view.below, view.top),
            stock=view.stock,
            opponent_cards=view.opponent_cards,
            phase=jnp.where(view.phase == KNOCK, event_log.DISCARD, in_play).astype(jnp.uint8),
            to_act=view.to_act,
            deadwood=jnp.where(decides, jnp.min(left).astype(jnp.uint8), view.deadwood),
            can_knock=jnp.any(knocks),
            can_gin=jnp.any(knocks & (left == 0)),
        )
        takes = draws & (view.top != cards.NO_CARD)
        return seen, jnp.concatenate([jnp.stack([draws, takes, draws & False]), free, knocks])
