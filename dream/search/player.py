"""A player that looks ahead with a policy: likely worlds, the policy's candidates, playouts cut by its value.

For a decision it

- takes the policy's most probable actions as candidates, the first of which is what it plays without evidence;
- draws worlds that fit its view, such as players come to, and weighs them by how likely the others' actions were under
  the policy (worlds.py);
- compares the candidates on the same worlds by sequential halving (halving.py), both sides going on by the policy for a
  few actions, where its value judges (playouts.py); without a value, to the end of the game. The opponent may be taken
  for another player, in worlds and playouts;
- plays the candidate of greatest mean gain over the first, if that gain is more than `evidence` standard errors.

All that is random follows from a hash of the view and a seed, so that what it does depends on nothing but what it has
seen. The standard error takes worlds for independent: a world that is drawn twice counts twice, though it is played on
with other random numbers.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dream.config import settings as checked
from dream.config.settings import number
from dream.equations.distributions import faults
from dream.networks.policy import ValuedPolicy, without_value
from dream.search import halving
from dream.search.halving import Tally
from dream.search.playouts import play_on
from dream.search.worlds import Belief, drawn_worlds, sample_belief
from envs import Game, InputError, Policy, check_plays
from envs.batching import on_cpu, where_needed
from envs.checks import check_two_player_zero_sum
from envs.game import View
from envs.random_play import key_of_view
from envs.sampling import resample

_LANES = 4096
"""Rounds that an accelerator plays on at once, whatever the number of decisions: what bounds the memory.

A CPU takes one decision after the other, whose worlds fill its lanes: decisions differ in how long they take."""
_NO_ANSWER = -1
"""Instead of an action, where the policy gives no distribution, or what is met on the way is not finite."""


@dataclasses.dataclass(frozen=True)
class SearchSettings:
    """What a search player takes into account.

    Attributes:
      worlds: rounds played on in every round of halving, over all brackets; a multiple of `pulls` or less than it, and
        never fewer than two for each candidate; 0: the policy's most probable action is played.
      pulls: of one round of one bracket.
      particles: worlds that are drawn and weighed.
      candidates: actions that are compared, at most.
      least_probability: of a candidate under the policy, besides being possible at all: trained policies are played
        sharpened, and then give little to all but their first choice.
      cut: actions after the first before the policy's value function is used; -1: games are played to their end.
      counts_bonus: whether wins have the bonus with which the policy was trained (ValuedPolicy.win_bonus), in games
        that pay at their end. If not, only the game's payoff counts, and a value function that includes that bonus is
        not used: games are played to their end.
      evidence: standard errors by which another action must be better than the policy's own.
      weighted: whether worlds are weighed; else all count alike.
      likely: whether worlds are such as players come to, where the game knows such (Game.likely_world); else all deals
        that fit the view are drawn alike.
      mistakes: share of uniform play in what is believed of the others.
      effective_share: of the particles that must have weight, effectively; the weights are softened until they do.
      seed: of all that is random.
    """

    worlds: int = number(128, 0, 1 << 20)
    pulls: int = number(64, 2, 4096)
    particles: int = number(192, 2, 1 << 16)
    candidates: int = number(4, 2, 64)
    least_probability: float = number(0.0, 0, 1)
    cut: int = number(6, -1, 1 << 20)
    counts_bonus: bool = False
    evidence: float = number(2.0, 0)
    weighted: bool = True
    likely: bool = True
    mistakes: float = number(0.1, 0, 1)
    effective_share: float = number(0.25, 0, 1)
    seed: int = number(0, 0, 2**32 - 1)


class SearchParams(NamedTuple):
    """Settings that one compiled program serves all values of.

    Attributes:
      policy: by which candidates are chosen, and the player plays on.
      opponent: by which the others are taken to play; None: by `policy`.
      brackets: int32, at most.
      cut: int32.
      least_probability, evidence, mistakes, least_effective: float32.
      seed: uint32.
    """

    policy: Policy
    opponent: Policy | None
    brackets: Any
    cut: Any
    least_probability: Any
    evidence: Any
    mistakes: Any
    least_effective: Any
    seed: Any


class Question(NamedTuple):
    """A decision that is being thought about.

    Attributes:
      view: of the player to act.
      actions: int32[K], the candidates, the policy's choice first.
      valid: bool[K].
      belief: worlds and weights.
      key: of playouts.
    """

    view: View
    actions: Array
    valid: Array
    belief: Belief
    key: Array


@dataclasses.dataclass(frozen=True)
class Search:
    """A search player's decision function, and its parts for who thinks on until time is up.

    Attributes:
      game: what is played.
      pulls, particles, candidates, weighted, likely: as of SearchSettings.
    """

    game: Game
    pulls: int
    particles: int
    candidates: int
    weighted: bool
    likely: bool

    def __call__(self, params: SearchParams, view: View, legal: Array) -> Array:
        """Returns the chosen action's probability 1, float32[A]; NaN where the policy or its value gives no answer."""
        actions, valid, sound = self.candidates_of(params, view, legal)
        asked = sound & (jnp.sum(valid) > 1) & (params.brackets > 0)
        together = 1 if on_cpu() else max(1, _LANES // max(self.particles, self.pulls))
        choice = where_needed(
            asked, self._thought, jnp.where(sound, actions[0], _NO_ANSWER), params, view, actions, valid,
            smallest_chunk=together, largest_chunk=together,
        )  # fmt: skip
        chosen = ((np.arange(legal.shape[0]) == choice) & jnp.any(legal)).astype(jnp.float32)
        return jnp.where(choice == _NO_ANSWER, jnp.nan, chosen)

    def candidates_of(self, params: SearchParams, view: View, legal: Array) -> tuple[Array, Array, Array]:
        """Returns the policy's most probable actions, int32[K], which to compare, bool[K], and if it is sound, bool."""
        chances = params.policy(view, legal)
        probs = jnp.where(legal, chances, -1.0)
        best, actions = jax.lax.top_k(probs, min(self.candidates, legal.shape[0]))
        valid = (best >= params.least_probability) & (best > 0)
        return actions.astype(jnp.int32), valid.at[0].set(True), ~jnp.any(faults(chances, legal))

    def begin(self, params: SearchParams, view: View, actions: Array, valid: Array) -> Question:
        """Draws the worlds of a decision."""
        deal_key, play_key = jax.random.split(key_of_view(params.seed, view))
        if self.weighted:
            belief = sample_belief(
                self.game, _theirs(params), view, deal_key, count=self.particles,
                mistakes=params.mistakes, least_effective=params.least_effective, likely=self.likely,
            )  # fmt: skip
        else:
            worlds, _ = drawn_worlds(self.game, view, deal_key, self.particles, self.likely)
            belief = Belief(worlds, jnp.full(self.particles, 1 / self.particles, jnp.float32))
        return Question(view, actions, valid, belief, play_key)

    def bracket(self, params: SearchParams, question: Question, number: Array, tally: Tally) -> Tally:
        """Compares the candidates in one more bracket of sequential halving, its worlds drawn by their weights."""
        draw_key, play_key = jax.random.split(jax.random.fold_in(question.key, number))
        offset_key, order_key = jax.random.split(draw_key)
        drawn = jax.random.permutation(order_key, resample(offset_key, question.belief.weights, self.pulls))
        seat = question.view.seat.astype(jnp.int32)

        def one(arm: Array, world: Array, needed: Array) -> Array:
            state = jax.tree.map(lambda x: x[drawn[world]], question.belief.worlds)
            key = jax.random.fold_in(play_key, world)
            return play_on(
                self.game, params.policy, state, question.actions[arm], seat, key, params.cut, needed, params.opponent
            )

        return halving.bracket(tally, question.valid, self.pulls, jax.vmap(one))

    def _thought(self, params: SearchParams, view: View, actions: Array, valid: Array) -> Array:
        """Returns the action to play, int32; _NO_ANSWER where a belief or a playout met none."""
        question = self.begin(params, view, actions, valid)

        def think(carry: tuple[Array, Tally]) -> tuple[Array, Tally]:
            n, tally = carry
            return n + 1, self.bracket(params, question, n, tally)

        def goes_on(carry: tuple[Array, Tally]) -> Array:
            return (carry[0] < params.brackets) & halving.is_open(carry[1], valid, params.evidence)

        _, tally = jax.lax.while_loop(goes_on, think, (jnp.int32(0), halving.empty(len(actions))))
        return jnp.where(is_sound(question, tally), actions[halving.chosen(tally, valid, params.evidence)], _NO_ANSWER)


def _theirs(params: SearchParams) -> Policy:
    return params.policy if params.opponent is None else params.opponent


def is_sound(question: Question, tally: Tally) -> Array:
    """Returns whether the belief, and all that was met in playing on, are numbers: bool."""
    return jnp.all(jnp.isfinite(question.belief.weights)) & jnp.all(jnp.isfinite(tally.sums + tally.values))


def make_search(
    policy: Policy, game: Game, settings: SearchSettings = SearchSettings(), opponent: Policy | None = None
) -> Policy:
    """Builds the player.

    Args:
      policy: whose choices it starts from; with a value (ValuedPolicy) of what this game pays playouts are cut by it.
      game: of two players, zero-sum, with `determinize` and, for weights, `replay_actions`.
      settings: what it takes into account.
      opponent: whom it takes the other player for; one that plays by `policy` too, if None.
    Raises:
      InputError: a setting out of range, worlds that are no whole brackets, a game of another kind, a bonus for wins in
        a game that pays before its end, a policy or opponent that is a search player, or one of another game or of
        other rules than payoffs.
    """
    settings = checked.read(SearchSettings, dataclasses.asdict(settings), "search")
    check_two_player_zero_sum(game, "a search player")
    if type(game).determinize is Game.determinize:
        raise InputError(f"a search player needs sampled worlds, and {game.name} cannot redeal what a view hides")
    if settings.weighted and type(game).replay_actions is Game.replay_actions:
        raise InputError(f"{game.name} does not keep its actions, so worlds cannot be weighed; set weighted=False")
    if any(one is not None and isinstance(one.apply, Search) for one in (policy, opponent)):
        raise InputError("a search player cannot search with another one; give it a policy")
    for one in (policy, *(() if opponent is None else (opponent,))):
        check_plays(one, game)
    pays_otherwise = policy.game is not None and policy.game != game
    if isinstance(policy, ValuedPolicy) and (pays_otherwise or (policy.win_bonus and not settings.counts_bonus)):
        policy = without_value(policy)
    if isinstance(policy, ValuedPolicy) and policy.win_bonus and not game.pays_at_end:
        raise InputError(
            f"counts_bonus=True needs a game that pays at its end; {game.name} pays before, so that its last payment "
            "does not say who has won; set counts_bonus=False"
        )
    # Few worlds make a smaller program; none at all are a matter of parameters.
    pulls = min(settings.pulls, settings.worlds or settings.pulls)
    pulls = max(pulls, 2 * min(settings.candidates, game.num_actions))
    if settings.worlds > pulls and (beyond := settings.worlds % pulls):
        less = settings.worlds - beyond
        raise InputError(
            f"search.worlds={settings.worlds} is not valid; it must be a multiple of {pulls}, the worlds of a bracket "
            f"(the greater of pulls={settings.pulls} and two for each of at most {settings.candidates} candidates), or "
            f"less: {less} or {less + pulls}"
        )
    params = SearchParams(
        policy=policy,
        opponent=opponent,
        brackets=np.int32(-(-settings.worlds // pulls)),
        cut=np.int32(settings.cut if settings.cut >= 0 else game.max_length),
        least_probability=np.float32(settings.least_probability),
        evidence=np.float32(settings.evidence),
        mistakes=np.float32(settings.mistakes),
        least_effective=np.float32(settings.effective_share * settings.particles),
        seed=np.uint32(settings.seed),
    )
    search = Search(game, pulls, settings.particles, settings.candidates, settings.weighted, settings.likely)
    return Policy(search, params, game)
