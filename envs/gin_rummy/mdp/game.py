"""Gin rummy with 16 actions and an observation of 342 numbers: the game `gin_rummy_mdp`.

| action | phase | meaning |
|---|---|---|
| 0 | draw | draw from the stock |
| 1 | draw | draw the pile's top |
| 2 + k | discard | discard the card in slot k = 0..10 of the own hand in ascending id; not the card just taken from the pile |
| 13 | knock | play on |
| 14 | knock | knock: deadwood 1 to the knock limit |
| 15 | knock | knock with gin: deadwood 0 |

A round begins with player 0's draw; no upcard is offered. A discard that leaves deadwood of at most the knock limit leads
to the knock decision, any other to the other player's draw. A turn that ends with `stock_floor` cards or fewer in the
stock ends the round as a tie, after the knock decision where there is one; so does the `max_actions`-th action that is
no knock. The observation is documented in encoding.py.

With reward="points" rewards are zero-sum points / 100; with "categorical" those of scoring.categorical_reward, which
are not zero-sum, and points are still what results are reported in.
Source: the 16-action document, sections 3 to 10; where it contradicts itself about the end of the stock, section 4.
"""  # noqa: E501

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards, drawing
from envs.batching import where_needed
from envs.cards import NO_CARD, NUM_CARDS
from envs.game import CardFeatures, OpponentIds
from envs.gin_rummy.core import scene, scoring, table, text
from envs.gin_rummy.core.rules import MDP_PRESETS, PAYOFF_RULES, MdpRules
from envs.gin_rummy.core.table import Table
from envs.gin_rummy.core.table_game import TableGame
from envs.gin_rummy.mdp import card_features as features
from envs.gin_rummy.mdp import determinize, encoding
from envs.gin_rummy.mdp.encoding import DISCARD, DRAW, KINDS, KNOCK, OVER, PHASES, SLOTS, MdpView
from envs.gin_rummy.melding import melds
from envs.rules import build_rules, chosen_preset

STOCK, TAKE, DISCARDS, CONTINUE, KNOCKS, GIN = 0, 1, 2, 13, 14, 15
NUM_ACTIONS = 16
_ACTION_NAMES = {
    STOCK: "draw from the stock",
    TAKE: "take the top of the pile",
    CONTINUE: "play on",
    KNOCKS: "knock",
    GIN: "knock with gin",
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class MdpState:
    """A round in play.

    Attributes:
      table: cards and log; a knock decision is logged as a PASS.
      phase: int32, index into PHASES.
      current_player: int32, -1 once the round is over.
      knocker: int32, who knocked, -1 for nobody.
      ending: int32, 0 in play, else scoring.TIE, KNOCK, GIN or UNDERCUT.
      points: int32, what the knocker won; negative when undercut.
      picked, declined: uint16[2, 4], the cards each player has taken from the pile, and left there for the stock.
      takes: int32[2], each player's draws from the pile.
      turns: int32, discards of both.
    """

    table: Table
    phase: Array
    current_player: Array
    knocker: Array
    ending: Array
    points: Array
    picked: Array
    declined: Array
    takes: Array
    turns: Array


@dataclasses.dataclass(frozen=True)
class MdpGinRummy(TableGame):
    """Gin rummy with the knock decided after the discard; rules and actions as the module says."""

    rules: MdpRules = MDP_PRESETS["r42"]
    name = "gin_rummy_mdp"
    version = "1"
    num_actions = NUM_ACTIONS
    observation_size = encoding.SIZE
    phases = PHASES[:OVER]
    payoff_rules = PAYOFF_RULES | {"reward"}
    phase_offset = encoding.LAYOUT["phase"][0]
    card_features = CardFeatures(1, functools.partial(features.of_observation, first_discard=DISCARDS))
    opponent_ids = OpponentIds(KINDS, encoding.name_opponent)

    @property
    def reward_scale(self) -> float:
        """Points in a reward of 1; a categorical reward has no unit of its own."""
        return 100.0 if self.rules.reward == "points" else 1.0

    @property
    def worst_reward(self) -> float:
        """The highest hand without a meld, and a bonus on top; of categorical rewards that of gin suffered."""
        in_points = -self.rules.worst_points / self.reward_scale
        return in_points if self.rules.reward == "points" else scoring.GIN_SUFFERED

    @property
    def zero_sum(self) -> bool:
        """Of points; categorical rewards are not."""
        return self.rules.reward == "points"

    def init(self, key: Array) -> MdpState:
        """Deals a shuffled deck."""
        return self.from_deck(cards.shuffle(key))

    def from_deck(self, deck: Array) -> MdpState:
        """Deals deck[0:10] to player 0, deck[10:20] to player 1, deck[20] as the upcard; deck[21] is drawn first.

        Args:
          deck: integer[52], a permutation of the card ids.
        """
        return MdpState(
            table=table.deal(self.rules, deck),
            phase=jnp.int32(DRAW),
            current_player=jnp.int32(0),
            knocker=jnp.int32(-1),
            ending=jnp.int32(0),
            points=jnp.int32(0),
            picked=jnp.zeros((2, 4), jnp.uint16),
            declined=jnp.zeros((2, 4), jnp.uint16),
            takes=jnp.zeros(2, jnp.int32),
            turns=jnp.int32(0),
        )

    def step(self, state: MdpState, action: Array) -> tuple[MdpState, Array, Array]:
        """Plays an action; rewards are zero until the round ends."""
        action = jnp.asarray(action, jnp.int32)
        new = self._moved(state, action)
        was_over = state.phase == OVER
        new = jax.tree.map(lambda old, changed: jnp.where(was_over, old, changed), state, new)
        rewards = jnp.where(was_over, 0.0, self._rewards(new))
        return new, rewards, new.phase == OVER

    def _moved(self, state: MdpState, action: Array) -> MdpState:
        """Returns the state after an action of a round in play."""
        rules, board, player = self.rules, state.table, state.current_player
        draws, takes, knocks = action == STOCK, action == TAKE, action >= KNOCKS
        discards = (action >= DISCARDS) & (action < CONTINUE)
        kind = jnp.where(discards, table.DISCARD, jnp.where(draws, table.DRAW_STOCK, table.PASS))
        card = encoding.slot_card(table.hand_of(board, player), action - DISCARDS)
        after = table.move(rules, board, player, jnp.where(takes, table.DRAW_DISCARD, kind), card)
        decides = discards & (jnp.where(player == 1, after.deadwood[1], after.deadwood[0]) <= rules.knock_limit)
        ends_turn = (discards & ~decides) | (action == CONTINUE)
        out_of_cards = ends_turn & (table.stock_left(rules, after) <= rules.stock_floor)
        over = knocks | out_of_cards | (after.actions >= rules.max_actions)
        settled = where_needed(
            knocks & (state.phase == KNOCK),
            functools.partial(scoring.settle, rules),
            scoring.Settlement(jnp.int32(0), jnp.int32(scoring.TIE)),
            table.hand_of(after, player),
            table.hand_of(after, 1 - player),
            jnp.where(player == 1, after.deadwood[0], after.deadwood[1]),
            jnp.maximum(table.top_card(after), 0),
        )
        phase = jnp.where(decides, KNOCK, jnp.where(ends_turn, DRAW, DISCARD))
        top = cards.card_mask(table.top_card(board))
        own = (np.arange(2) == player)[:, None]
        return MdpState(
            table=after,
            phase=jnp.where(over, OVER, phase),
            current_player=jnp.where(over, -1, jnp.where(ends_turn, 1 - player, player)),
            knocker=jnp.where(knocks, player, -1),
            ending=jnp.where(over, settled.ending, 0),
            points=settled.points,
            picked=jnp.where(own & takes, state.picked | top, state.picked),
            declined=jnp.where(own & draws, state.declined | top, state.declined),
            takes=state.takes + (own[:, 0] & takes),
            turns=state.turns + discards,
        )

    def _rewards(self, state: MdpState) -> Array:
        """Returns what a state's ending pays: float32[2]; 0 in play."""
        knocker = np.arange(2) == state.knocker
        if self.rules.reward == "categorical":
            won, lost = scoring.categorical_reward(state.points, state.ending)
            return jnp.where(state.ending == 0, 0.0, jnp.where(knocker, won, lost)).astype(jnp.float32)
        return jnp.where(knocker, state.points, -state.points) / np.float32(self.reward_scale)

    def legal_actions(self, state: MdpState) -> Array:
        """Returns bool[16]; a card taken from the pile may not be discarded in the same turn."""
        board, player = state.table, state.current_player
        slots = encoding.slots_of(table.hand_of(board, player))
        free = jnp.any(slots & (np.arange(NUM_CARDS) != board.taken), axis=1)
        deadwood = self._deadwood(board, player)
        draws, discards, decides = (state.phase == phase for phase in (DRAW, DISCARD, KNOCK))
        return jnp.concatenate(
            [
                jnp.stack([draws, draws & (board.pile_size > 0)]),
                discards & free,
                jnp.stack([decides, decides & (deadwood > 0), decides & (deadwood == 0)]),
            ]
        )

    def view(self, state: MdpState, player: Array) -> MdpView:
        """Returns what `player` may know, what each discard leaves included."""
        board = state.table
        player = jnp.asarray(player, jnp.int32)
        other = 1 - player
        hand, top = table.hand_of(board, player), table.top_card(board)
        below = jnp.where(board.pile_size > 1, board.pile[jnp.maximum(board.pile_size - 2, 0)], NO_CARD)
        deadwood, small = self._deadwood(board, player), table.count(hand) < SLOTS
        values: dict[str, Any] = {
            "length": jnp.minimum(board.actions + 1, self.rules.max_actions),
            "seat": player,
            "top": jnp.where(top < 0, NO_CARD, top),
            "below": below,
            "taken": jnp.where(board.taken < 0, NO_CARD, board.taken),
            "stock": table.stock_left(self.rules, board),
            "opponent_cards": table.count(table.hand_of(board, other)),
            "turns": state.turns,
            "takes": state.takes[other],
            "phase": state.phase,
            "deadwood": deadwood,
            "unmelded": jnp.where(small, deadwood, melds.deadwood(hand)),
            "left": _by_slot(hand),
            "with_top": jnp.where(small, _with_top(hand, top), NO_CARD),
            "opponent": jnp.int32(0),
        }
        return MdpView(
            hand=hand.astype(jnp.uint16),
            pile=board.pile_cards,
            known=board.known[other],
            picked=state.picked[other],
            declined=state.declined[other],
            log=table.hide_draws(board.log, player),
            to_act=state.current_player == player,
            **{name: value.astype(jnp.uint8) for name, value in values.items()},
        )

    def determinize(self, view: MdpView, key: Array) -> MdpState:
        """Deals anew what a player cannot see, uniformly among the deals on which the round looked the same to it."""
        return self._seen_as(view, determinize.sample(self.rules, view, key))

    def likely_world(self, view: MdpView, key: Array) -> tuple[MdpState, Array]:
        """Deals anew what a player cannot see so that the opponent has melded by now, as `sample_likely` says."""
        dealt, log_weight = determinize.sample_likely(self.rules, view, key)
        return self._seen_as(view, dealt), log_weight

    def _seen_as(self, view: MdpView, dealt: determinize.Dealt) -> MdpState:
        """Returns the state of a view on another deal."""
        seat = view.seat.astype(jnp.int32)
        return dataclasses.replace(
            self.from_deck(dealt.table.deck),
            phase=view.phase.astype(jnp.int32),
            current_player=jnp.where(view.to_act, seat, 1 - seat),
            turns=view.turns.astype(jnp.int32),
            **dealt._asdict(),
        )

    def replay_actions(self, state: MdpState) -> tuple[MdpState, Array, Array]:
        """Returns the deal, the actions since and how many there are."""
        deal, log = self.from_deck(state.table.deck), state.table.log
        actor, kind, card = table.read(log)
        own, other = (table.hands_after(self.rules, deal.table.hands[n], log, n) for n in range(2))
        slots = jax.vmap(encoding.slot_of)(jnp.where(actor[:, None] == 0, own, other), card)
        draws = jnp.where(kind == table.DRAW_STOCK, STOCK, jnp.where(kind == table.DRAW_DISCARD, TAKE, CONTINUE))
        actions = jnp.where(kind == table.DISCARD, DISCARDS + slots, draws)
        return deal, jnp.roll(actions, -1), state.table.actions

    def encode(self, view: MdpView) -> Array:
        """Returns the observation vector: float32[342]."""
        return encoding.encode(self.rules, view)

    def auxiliary(self, state: MdpState, player: Array) -> Array:
        """Returns the opponent's deadwood / 100."""
        return self._deadwood(state.table, 1 - player) / np.float32(100)

    def result(self, state: MdpState, player: Array) -> dict[str, Array]:
        """Returns the points won, and whether this player knocked, went gin, undercut, and the deadwood kept."""
        points = jnp.where(state.knocker == player, state.points, -state.points)
        kept = self._deadwood(state.table, player)
        endings = scoring.result(state.knocker, state.ending, kept, player)
        return {"points_per_hand": points.astype(jnp.float32), **endings}

    def to_dict(self, state: MdpState) -> dict[str, Any]:
        """Describes the round: hands, pile oldest first, stock next card first, phase, who acts, how it ended."""
        return {**text.of_round(self.rules, state, PHASES), "turns": int(state.turns), "points": int(state.points)}

    def action_name(self, action: int) -> str:
        """Returns what an action does, e.g. "discard card 3" of the own hand in the order of the ids."""
        action = self.action_id(action)
        if DISCARDS <= action < CONTINUE:
            return f"discard card {action - DISCARDS + 1}"
        return _ACTION_NAMES[action]

    def describe_action(self, state: MdpState, action: int, viewer: int | None = None) -> str:
        """Returns what an action does, a discard with the name of its card."""
        action = self.action_id(action)
        if not DISCARDS <= action < CONTINUE:
            return self.action_name(action)
        held = cards.cards_in(jax.device_get(state.table.hands[state.current_player]))
        return f"discard {cards.card_name(held[action - DISCARDS])}"

    def scene(self, state: MdpState, viewer: int | None = None) -> drawing.Scene:
        """Returns both hands with their melds and deadwood, the stock and the pile."""
        return scene.of_round(self.rules, state, PHASES, viewer, title="Gin rummy, 16 actions")


def _by_slot(hand: Array) -> Array:
    """Returns the deadwood left by discarding each slot's card: int32[11], NO_CARD for empty slots."""
    left = jnp.minimum(melds.deadwood_after_discard(hand).reshape(-1), NO_CARD)
    return jnp.min(jnp.where(encoding.slots_of(hand), left, NO_CARD), axis=1)


def _with_top(hand: Array, top: Array) -> Array:
    """Returns the least deadwood of ten cards and the top, one but the top discarded: int32, NO_CARD with no top."""
    bigger = hand | cards.card_mask(top).astype(jnp.int32)
    left = melds.deadwood_after_discard(bigger).reshape(-1)
    least = jnp.min(jnp.where(np.arange(NUM_CARDS) == top, NO_CARD, left))
    return jnp.where(top < 0, NO_CARD, jnp.minimum(least, NO_CARD))


def make(preset: str = "r42", **rules: Any) -> MdpGinRummy:
    """Builds `gin_rummy_mdp`: a preset with the given rules replaced.

    Args:
      preset: one of MDP_PRESETS.
      **rules: fields of MdpRules.
    """
    return MdpGinRummy(build_rules(MdpRules, chosen_preset(preset, MDP_PRESETS), rules, ["preset"]))
