"""Checks of what a learner from outside this project returns; its own are tested."""

from __future__ import annotations

from dream import algorithms
from dream.algorithms.types import TrainState
from dream.storage.checkpoint_arrays import array_shapes, check_arrays
from envs import InputError


def check_iterated(name: str, before: TrainState, after: TrainState, iterations: int) -> None:
    """Raises InputError where iterating gives another kind of state, or its `iteration` does not count.

    Args:
      name: of the algorithm.
      before: the state that it was given.
      after: the state that it returned.
      iterations: that lie in between.
    """
    if algorithms.is_own(name):
        return
    check_arrays(after, f"algo={name}: the state that iterate returns")
    then, now = array_shapes(before), array_shapes(after)
    for place in then | now:
        if then.get(place) != now.get(place):
            raise InputError(
                f"algo={name}: the state that iterate returns has {now.get(place, 'nothing')} at {place}, and "
                f"{then.get(place, 'nothing')} before; both must be alike"
            )
    if not hasattr(before, "iteration"):
        return
    counted = int(after.iteration) - int(before.iteration)
    if counted != iterations:
        raise InputError(
            f"algo={name}: `iteration` of the state grew by {counted} in {iterations} iterations; iterate must count"
        )
