"""An iteration of two phases, games and then a fit to them, in calls of bounded length, with timings and counters."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator
from typing import Any

import jax

from dream.algorithms.types import Metrics, TrainState
from dream.compiled.bounded import BoundedCalls, whole
from envs import Game


class PlayThenFit:
    """What learners share whose iteration plays games and then fits networks to them.

    Attributes:
      game: what is played.
      generate: what `play_arguments` gives -> (what was played, metrics, Counters); a jitted method, its object static.
      learn: what `fit_arguments` gives -> (TrainState, metrics, Counters); the same.
    """

    game: Game
    generate: Callable[..., Any]
    learn: Callable[..., Any]

    @functools.cached_property
    def _generate_calls(self) -> BoundedCalls:
        return BoundedCalls.of(self.generate, game=self.game)

    @functools.cached_property
    def _learn_calls(self) -> BoundedCalls:
        return BoundedCalls.of(self.learn, game=self.game)

    def play_arguments(self, state: TrainState) -> tuple[Any, ...]:
        """Returns the arguments of `generate`."""
        return (state,)

    def fit_arguments(self, state: TrainState, played: Any) -> tuple[Any, ...]:
        """Returns the arguments of `learn`."""
        return state, played

    def iterate(self, state: TrainState) -> tuple[TrainState, Metrics]:
        """As of `Algorithm`."""
        return whole(self.calls(state))

    def calls(self, state: TrainState) -> Generator[None, None, tuple[TrainState, Metrics]]:
        """As of `Algorithm`."""
        began = time.perf_counter()
        generated = yield from self._generate_calls(*self.play_arguments(state))
        played, play_metrics, play_counters = jax.block_until_ready(generated)
        middle = time.perf_counter()
        learned = yield from self._learn_calls(*self.fit_arguments(state, played))
        state, fit_metrics, fit_counters = jax.block_until_ready(learned)
        seconds = {"seconds_generate": middle - began, "seconds_fit": time.perf_counter() - middle}
        arrays = jax.device_get({**play_metrics, **fit_metrics, **(play_counters + fit_counters).metrics()})
        return state, {**{name: float(x) for name, x in arrays.items()}, **seconds}
