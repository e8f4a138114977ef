"""Players of `gin_rummy` that think ahead: sampled hidden hands, rollouts on all of them, the best mean.

Where there is nothing to think about they play a rule: take what melds, discard by deadwood, risk and partners, knock
as soon as they may. For a decision worth thinking about, a player deals anew what it cannot see in `worlds` ways, lets
the opponent improve each of these hands as it has had turns to (playouts.improve), and plays every candidate action to
the round's end on the same worlds, both sides by the simple rules of playouts.py. Of the candidates it takes the one of
greatest mean, points and a bonus for winning; another than the rule's choice only if the paired difference is larger
than `evidence` standard errors: the best of several noisy means is otherwise mostly the luckiest.

| level | what it thinks about | worlds | candidates | its rule |
|---|---|---|---|---|
| lv4 | knocking or playing on | 16 | 2 | the rule bot, counting partners |
| lv5 | knocks, discards, and takes that lower deadwood | 32 | 4 discards and a knock | `lookahead` |
| lv7 | the same, on more worlds, so that smaller differences count | 128 | the same | `lookahead` |
| mc:n | the same | n at most | the same | the rule bot `patient` |

The mc players look at worlds a batch at a time and stop once no candidate can still prove better than the rule's
choice; they count points alone, and in playouts hold out for gin themselves while the opponent knocks as soon as it
may.

A Policy has no key: the randomness is a hash of the view and an option, so the same player in the same place always
does the same, and what it does reveals nothing but what it has seen.
Source: the 16-action document names the levels; what they are is the domain notes' reading (section 3), after jdh8's
mc:128 for lv7, whose own side holds out for gin in rollouts; measured here that costs hands, and all knock at once.
mc:n is that player itself, as the notes describe it. The numbers are this project's.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import cards
from envs.batching import where_needed
from envs.errors import InputError, unknown
from envs.game import Game, Policy
from envs.gin_rummy.core.rules import GinRules
from envs.gin_rummy.event_log.game import GinRummy
from envs.gin_rummy.event_log.state import DISCARD, GinView
from envs.gin_rummy.melding import melds
from envs.gin_rummy.players import playouts, rule_based
from envs.gin_rummy.players.lookahead import Lookahead, LookaheadParams
from envs.gin_rummy.players.playouts import Limits
from envs.gin_rummy.players.rule_based import RuleBotParams
from envs.random_play import key_of_view

_STOCK, _TAKE, _PASS, _DISCARDS = 0, 1, 2, 3
_MOST_SWAPS = 12
_WORSE_THAN_ANY = -1e9
_BATCH = 32
"""Worlds that an mc player looks at before it asks whether anything is open still."""
_FEW_ROUNDS = 16
"""Rounds that a batch of worlds is played out for together."""


class SearchParams(NamedTuple):
    """What a search player takes into account, besides its sizes.

    Attributes:
      base: the rule whose choice is taken where there is nothing to think about, or no evidence against it.
      mine, theirs: limits of both sides in rollouts.
      evidence: standard errors by which a choice must be better than the base's.
      improvement: swaps the opponent's dealt hand is improved by, for each turn it has had.
      win: points that winning a round is worth besides what it pays.
      seed: uint32, of the sampled worlds.
      batches: int32, of worlds at most; a parameter, so that one compiled program serves players of any number.
    """

    base: RuleBotParams | LookaheadParams
    mine: Limits
    theirs: Limits
    evidence: Any
    improvement: Any
    win: Any
    seed: Any
    batches: Any = 1


@dataclasses.dataclass(frozen=True)
class Sizes:
    """What a search player is compiled for.

    Attributes:
      batch: hidden hands sampled and looked at together, at least 2; after each batch a question without an open
        candidate is closed.
      discards: discards considered, the best by the base's score first.
      turns: of a rollout; a round that goes on longer counts as a tie.
      thinks_of_all: whether it thinks about draws and discards too, not about knocks alone.
    """

    batch: int = 32
    discards: int = 4
    turns: int = 24
    thinks_of_all: bool = True


_AT_ONCE = Limits(10.0, 10.0, 10.0)
_AT_GIN = Limits(0.0, 0.0, 0.0)
_BASE = rule_based.BOTS["aggressive_knock"]._replace(left=1.0, value=0.001, discard_risk=0.1, partner_count=0.6)
LEVELS: dict[str, tuple[int, Sizes, SearchParams]] = {
    "lv4": (16, Sizes(16, 1, thinks_of_all=False), SearchParams(_BASE, _AT_ONCE, _AT_ONCE, 1.0, 1.0, 50.0, 0)),
    "lv5": (32, Sizes(32, 4), SearchParams(LookaheadParams(), _AT_ONCE, _AT_ONCE, 2.0, 1.0, 50.0, 0)),
    "lv7": (128, Sizes(128, 4), SearchParams(LookaheadParams(), _AT_ONCE, _AT_ONCE, 2.0, 1.0, 50.0, 0)),
    **{
        f"mc:{worlds}": (
            worlds,
            Sizes(_BATCH, 4),
            SearchParams(rule_based.BOTS["patient"], _AT_GIN, _AT_ONCE, 2.0, 1.0, 0.0, 0),
        )
        for worlds in (64, 128, 256, 512)
    },
}
"""The levels by name, each with its worlds at most; they are rounded up to whole batches."""


def make(name: str, game: Game, **options: Any) -> Policy:
    """Builds a search player.

    Args:
      name: one of LEVELS.
      game: `gin_rummy`, of whatever rules.
      **options: `worlds`, `discards`, `turns`, `evidence`, `improvement`, `win`, `seed` in place of the level's own.
    Raises:
      InputError: another game, an unknown option, or a value out of range.
    """
    if type(game) is not GinRummy or game.rules.num_cards != cards.NUM_CARDS:
        raise InputError(f"{name} does not play {game.name}; it plays gin_rummy")
    worlds, sizes, params = LEVELS[name]
    bounds = {"worlds": (2, 4096), "discards": (1, 11), "turns": (1, 64), "seed": (0, 2**32 - 1)}
    for option, value in options.items():
        if option not in (*bounds, "evidence", "improvement", "win"):
            raise unknown(f"option of {name}", option, (*bounds, "evidence", "improvement", "win"))
        low, high = bounds.get(option, (0.0, 100.0))
        whole = type(value) is int or (option not in bounds and type(value) is float)
        if not whole or not low <= value <= high:
            raise InputError(f"{option}={value!r} of {name} is out of range; it must be in [{low}, {high}]")
    worlds, static = options.pop("worlds", worlds), ("discards", "turns")
    batch = worlds if sizes.batch == LEVELS[name][0] else min(sizes.batch, worlds)
    chosen = {option: value for option, value in options.items() if option in static}
    params = params._replace(**{option: value for option, value in options.items() if option not in static})
    if isinstance(params.base, RuleBotParams):
        params = params._replace(base=params.base._replace(knock_limit=game.rules.knock_limit))
    whole = {"seed": np.uint32(params.seed), "batches": np.int32(-(-worlds // batch))}
    params = jax.tree.map(np.float32, params._replace(seed=0.0, batches=0.0))._replace(**whole)
    return Policy(Search(game.rules, dataclasses.replace(sizes, batch=batch, **chosen)), params)


def with_knock_limit(params: Any, limit: Array) -> Any:
    """Returns a player's parameters for a round with a knock limit of its own, at most that of the player's rules.

    Args:
      params: of any player of `gin_rummy`; those of players without a limit to plan by stay as they are.
      limit: int32, the most deadwood a knocker may keep.
    """
    if isinstance(params, LookaheadParams):
        return params._replace(knock_limit=limit)
    if isinstance(params, RuleBotParams):
        return params._replace(knock_limit=jnp.float32(limit))
    if isinstance(params, SearchParams):
        mine, theirs = (Limits(*(jnp.minimum(x, limit) for x in one)) for one in (params.mine, params.theirs))
        return params._replace(base=with_knock_limit(params.base, limit), mine=mine, theirs=theirs)
    return params


class _Candidates(NamedTuple):
    """Actions to compare.

    Attributes:
      actions: int32[C]; the first is the base's choice.
      valid: bool[C].
    """

    actions: Array
    valid: Array


@dataclasses.dataclass(frozen=True)
class Search:
    """A search player's decision function."""

    rules: GinRules
    sizes: Sizes

    def __call__(self, params: SearchParams, view: GinView, legal: Array) -> Array:
        """Returns the chosen action's probability 1: float32[107]."""
        first = jnp.argmax(self.base(params.base, view, legal)).astype(jnp.int32)
        discarding = view.phase == DISCARD
        candidates = self._discards(params, view, legal, first)
        if self.sizes.thinks_of_all:
            draws, spare = self._draws(view, legal, first), candidates.actions.shape[0] - 2
            draws = _Candidates(*(jnp.pad(x, (0, spare)) for x in draws))
            candidates = jax.tree.map(lambda a, b: jnp.where(discarding, a, b), candidates, draws)
            asked = view.to_act
        else:
            asked = view.to_act & discarding
        open_question = asked & (jnp.sum(candidates.valid) > 1)
        choice = self._best(params, view, candidates, open_question)
        chosen = (np.arange(legal.shape[0]) == choice) & jnp.any(legal)
        return chosen.astype(jnp.float32)

    def base(self, params: RuleBotParams | LookaheadParams, view: GinView, legal: Array) -> Array:
        """Returns the action probabilities of the rule the search starts from: float32[107]."""
        if isinstance(params, LookaheadParams):
            return Lookahead(self.rules)(params, view, legal)
        return rule_based.play(params, view, legal)

    def _discard_score(self, params: RuleBotParams | LookaheadParams, view: GinView, plain: Array) -> Array:
        """Returns the score by which the rule discards cards, the least first: float32[52]."""
        if isinstance(params, LookaheadParams):
            nothing = jnp.zeros(plain.shape, jnp.float32)
            return where_needed(jnp.any(plain), Lookahead(self.rules).discard_score, nothing, params, view, plain)
        return rule_based.discard_score(params, view)

    def _draws(self, view: GinView, legal: Array, first: Array) -> _Candidates:
        """Returns the two ways to draw where taking the top lowers deadwood."""
        hand, top = view.hand.astype(jnp.int32), view.top.astype(jnp.int32)
        bigger = hand | cards.card_mask(cards.signed_id(view.top)).astype(jnp.int32)
        left = melds.deadwood_after_discard(bigger).reshape(-1)
        kept = jnp.min(jnp.where(np.arange(left.shape[0]) == top, melds.NOT_HELD, left))
        other = jnp.where(legal[_STOCK], _STOCK, _PASS)
        second = jnp.where(first == _TAKE, other, _TAKE)
        worth = legal[_TAKE] & (kept < view.deadwood) & (legal[_STOCK] | legal[_PASS])
        return _Candidates(jnp.stack([first, second]), jnp.stack([worth, worth]))

    def _discards(self, params: SearchParams, view: GinView, legal: Array, first: Array) -> _Candidates:
        """Returns the base's choice, the best other plain discards, and the knock that leaves least."""
        size = self.rules.num_cards
        plain, knock = legal[_DISCARDS : _DISCARDS + size], legal[_DISCARDS + size :]
        left = melds.deadwood_after_discard(view.hand.astype(jnp.int32)).reshape(-1)
        score = self._discard_score(params.base, view, plain)
        score = jnp.where(plain & (np.arange(size) != first - _DISCARDS), score, jnp.inf)
        best = jax.lax.top_k(-score, self.sizes.discards)
        lowest = jnp.argmin(jnp.where(knock, left, melds.NOT_HELD)).astype(jnp.int32)
        knocks = _DISCARDS + size + lowest
        actions = jnp.concatenate([first[None], knocks[None], _DISCARDS + best[1].astype(jnp.int32)])
        can = jnp.any(knock)
        others = jnp.isfinite(best[0]) if self.sizes.thinks_of_all else jnp.isfinite(best[0]) & can
        is_gin = can & (left[lowest] == 0)
        valid = jnp.concatenate([jnp.array([True]), (can & (first != knocks))[None], others])
        return _Candidates(actions, valid & ~is_gin)

    def _best(self, params: SearchParams, view: GinView, candidates: _Candidates, open_question: Array) -> Array:
        """Returns the candidate to play, the first unless there is a question: int32."""
        size = self.sizes.batch

        def look(n: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            sums, seen, is_open = carry
            nothing = jnp.zeros_like(sums)
            added = where_needed(
                is_open, self._gains, nothing, params, view, candidates, n * size, smallest_chunk=_FEW_ROUNDS
            )
            sums, seen = sums + added, seen + jnp.where(is_open, size, 0)
            mean, error = _mean_and_error(sums, seen)
            return sums, seen, is_open & jnp.any(candidates.valid & (mean + params.evidence * error > 0))

        nothing = jnp.zeros((2, len(candidates.actions)))
        start = nothing, jnp.int32(0), open_question
        sums, seen, _ = jax.lax.fori_loop(0, params.batches, look, start)
        mean, error = _mean_and_error(sums, seen)
        enough = candidates.valid & (mean > params.evidence * error) & (seen > 0)
        best = jnp.argmax(jnp.where(enough, mean, _WORSE_THAN_ANY))
        return jnp.where(jnp.any(enough), candidates.actions[best], candidates.actions[0])

    def _gains(self, params: SearchParams, view: GinView, candidates: _Candidates, first: Array) -> Array:
        """Returns what candidates win over the first in a batch of worlds, sum and sum of squares: float32[2, C]."""
        key = key_of_view(params.seed, view)
        numbers = first + jnp.arange(self.sizes.batch)
        keys = jax.vmap(lambda n: jax.random.fold_in(key, n))(numbers)
        points = jax.vmap(lambda key: self._points(params, view, candidates, key))(keys)
        gain = points - points[:, :1]
        return jnp.stack([jnp.sum(gain, axis=0), jnp.sum(gain**2, axis=0)])

    @functools.partial(jax.jit, static_argnums=0)
    def _points(self, params: SearchParams, view: GinView, candidates: _Candidates, key: Array) -> Array:
        """Returns what each candidate wins in one world: float32[C]."""
        rules = self.rules
        deal_key, swap_key = jax.random.split(key)
        state, stock = playouts.open_view(view, deal_key)
        swaps = jnp.round(params.improvement * (state.other_turn - 1)).astype(jnp.int32)
        bits = jax.random.bits(swap_key, (_MOST_SWAPS,))
        state, stock = playouts.improve(state, stock, view.known.astype(jnp.int32), swaps, bits)

        def play(action: Array, valid: Array) -> Array:
            after = playouts.act(rules, state, stock, action)
            after = after._replace(ending=jnp.where(valid, after.ending, playouts.DEAD))
            points = playouts.play_out(rules, after, stock, params.mine, params.theirs, self.sizes.turns)
            return points + params.win * jnp.sign(points)

        return jax.vmap(play)(candidates.actions, candidates.valid)


def _mean_and_error(sums: Array, count: Array) -> tuple[Array, Array]:
    """Returns the mean and its standard error, 0 for the first candidate: float32[C] each.

    Args:
      sums: float32[2, C], of gains over the first candidate and of their squares.
      count: int32, of worlds.
    """
    worlds = jnp.maximum(count, 1)
    mean = sums[0] / worlds
    variance = jnp.maximum(sums[1] / worlds - mean**2, 0.0) / jnp.maximum(count - 1, 1)
    return mean, jnp.sqrt(variance)


def __getattr__(name: str) -> Any:
    """Returns the maker of a level by its name, as the registry of players asks for it."""
    if name in LEVELS:
        return lambda game, **options: make(name, game, **options)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
