"""A search player that thinks until its time is up, on the host: for one decision at a time, as at a table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from dream.search import halving
from dream.search.player import Search, is_sound
from envs import InputError, Policy
from envs.game import View


class Thought(NamedTuple):
    """What came of a decision.

    Attributes:
      action: to be played.
      actions: int[K], the candidates, the policy's choice first.
      values: float[K], mean rewards to the player by candidate; NaN where nothing was looked at.
      gains, errors: float[K], mean gain over the first candidate and its standard error.
      worlds: int[K], worlds each was looked at in.
      seconds: that it took.
    """

    action: int
    actions: np.ndarray
    values: np.ndarray
    gains: np.ndarray
    errors: np.ndarray
    worlds: np.ndarray
    seconds: float


class Thinker:
    """Decides by brackets of sequential halving until its seconds are over; it is compiled when first used."""

    def __init__(self, player: Policy, compiler_options: dict[str, Any] | None = None) -> None:
        """Takes a player that `make_search` has built; how many worlds it looks at is the time's affair.

        Raises:
          InputError: another kind of player.
        """
        if not isinstance(player.apply, Search):
            raise InputError("only a search player thinks until its time is up; make one with make_search")
        self.player, search = player, player.apply

        def begin(params: Any, view: View, legal: Any) -> Any:
            actions, valid, sound = search.candidates_of(params, view, legal)
            return search.begin(params, view, actions, valid), sound

        def go_on(params: Any, question: Any, number: Any, tally: Any) -> Any:
            tally = search.bracket(params, question, number, tally)
            open_ = halving.is_open(tally, question.valid, params.evidence)
            return tally, open_, halving.chosen(tally, question.valid, params.evidence), is_sound(question, tally)

        self._begin: Callable[..., Any] = jax.jit(begin, compiler_options=compiler_options)
        self._go_on: Callable[..., Any] = jax.jit(go_on, compiler_options=compiler_options)

    def think(self, view: View, legal: np.ndarray, seconds: float, most: int = 1 << 20) -> Thought:
        """Decides.

        Args:
          view: of the player to act.
          legal: bool[A].
          seconds: after which no bracket is begun; one is played in any case.
          most: brackets.
        Raises:
          InputError: the policy, its value or a reward met on the way is no number.
        """
        started, params = time.perf_counter(), self.player.params
        question, sound = self._begin(params, view, legal)
        actions, valid = jax.device_get((question.actions, question.valid))
        tally, choice, number = halving.empty(len(actions)), 0, 0
        while number < most and valid.sum() > 1 and (number == 0 or time.perf_counter() - started < seconds):
            tally, is_open, choice, sound_so_far = self._go_on(params, question, np.int32(number), tally)
            number += 1
            sound = sound & sound_so_far
            if not is_open:
                break
        if not sound:
            raise InputError(
                "the search met a value that is not a number, from the policy, its value function or a reward; "
                "no action is chosen"
            )
        tally = jax.device_get(tally)
        counts = np.asarray(tally.count)
        looked = [np.where(counts > 0, np.asarray(x, float), np.nan) for x in (tally.value, tally.mean, tally.error)]
        spent = time.perf_counter() - started
        return Thought(int(actions[int(choice)]), np.where(valid, actions, -1), *looked, counts, spent)
