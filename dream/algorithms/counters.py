"""Counters of an iteration."""

from __future__ import annotations

from typing import NamedTuple

from jax import Array

Count = Array | int | float


class Counters(NamedTuple):
    """What an iteration did; each is a number or a scalar array.

    Attributes:
      episodes: whole games.
      decisions: those learned from.
      nodes: decisions of all players, played or followed in a traversal; not those that exact chance alone evaluates.
        Solvers of a whole tree count every history with a decision in each pass; without a stored tree every
        information set.
      transitions: histories entered, by a deal or by an action together with what chance makes of it, whether played
        or only looked at (as where an action's outcomes are enumerated).
      network_rows: inputs that one of the learner's networks, or of its past selves, was applied to: in generation, in
        targets and in fits, for each network once. Forward passes only; the backward pass of a gradient step is not
        counted, nor rows that only fill up a batch (finished games, padding).
      gradient_steps: of all fits.
    """

    episodes: Count = 0
    decisions: Count = 0
    nodes: Count = 0
    transitions: Count = 0
    network_rows: Count = 0
    gradient_steps: Count = 0

    def __add__(self, other: Counters) -> Counters:  # type: ignore[override]
        """Returns the sums, counter by counter."""
        return Counters(*(one + two for one, two in zip(self, other, strict=True)))

    def metrics(self) -> dict[str, Count]:
        """Returns the counters by name."""
        return self._asdict()
