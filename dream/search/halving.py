"""Sequential halving over arms that are compared with the first one on the same worlds, again and again.

A bracket begins with all arms. In each of its rounds the same number of pulls is shared by the arms left, every arm in
the same worlds; then the better half goes on, the first arm always among them as it is what the others are compared
with, until a round of two. Sums go on from one bracket to the next, so that it may be stopped after any of them.
Sources: Karnin, Koren and Somekh 2013, "Almost optimal exploration in multi-armed bandits", algorithm 3; brackets of
the smallest budget, repeated, as Sagers, Winands and Soemers 2024, "Anytime sequential halving". Deviation: arms are
ranked by their paired difference to the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

_WORST = -1e9


class Tally(NamedTuple):
    """What is known of arms.

    Attributes:
      sums, squares: float32[K], of gains over the first arm in the same world, and of their squares.
      values: float32[K], sum of what the arm itself brought.
      count: int32[K], worlds.
    """

    sums: Array
    squares: Array
    values: Array
    count: Array

    @property
    def mean(self) -> Array:
        """The mean gain over the first arm: float32[K]."""
        return self.sums / jnp.maximum(self.count, 1)

    @property
    def error(self) -> Array:
        """The standard error of the mean gain: float32[K], infinite before there are two worlds."""
        variance = jnp.maximum(self.squares / jnp.maximum(self.count, 1) - self.mean**2, 0.0)
        return jnp.where(self.count > 1, jnp.sqrt(variance / jnp.maximum(self.count - 1, 1)), jnp.inf)

    @property
    def value(self) -> Array:
        """The mean of what each arm brought: float32[K]."""
        return self.values / jnp.maximum(self.count, 1)


def empty(arms: int) -> Tally:
    """Returns a tally of nothing."""
    nothing = jnp.zeros(arms, jnp.float32)
    return Tally(nothing, nothing, nothing, jnp.zeros(arms, jnp.int32))


def bracket(tally: Tally, valid: Array, pulls: int, pull: Callable[[Array, Array, Array], Array]) -> Tally:
    """Plays one bracket.

    Args:
      tally: so far.
      valid: bool[K], arms that there are; the first is.
      pulls: of a round.
      pull: (arms int32[pulls], numbers of worlds int32[pulls] below `pulls`, needed bool[pulls]) -> float32[pulls],
        what the arms bring there; what is not needed does not count.
    """
    lanes, places = np.arange(pulls), np.arange(valid.shape[0])

    def play(carry: tuple[Tally, Array, Array, Array]) -> tuple[Tally, Array, Array, Array]:
        tally, left, arms, before = carry
        ranked = jnp.argsort(-jnp.where(left, tally.mean, _WORST).at[0].set(-_WORST))
        left = jnp.zeros_like(left).at[ranked].set(places < arms)
        place, world = lanes % arms, lanes // arms
        worlds = pulls // arms
        needed = world < worlds
        arm = ranked[place]
        points = pull(arm, (before + world) % pulls, needed)
        gain = points - points[world * arms]
        added = [jnp.where(needed, x, 0) for x in (gain, gain**2, points, 1)]
        tally = Tally(*(total.at[arm].add(x.astype(total.dtype)) for total, x in zip(tally, added, strict=True)))
        return tally, left, jnp.where(arms == 2, 1, jnp.maximum(arms // 2, 2)), before + worlds

    start = tally, valid, jnp.sum(valid, dtype=jnp.int32), jnp.int32(0)
    return lax.while_loop(lambda carry: carry[2] > 1, play, start)[0]


def is_open(tally: Tally, valid: Array, evidence: Array) -> Array:
    """Returns whether an arm could still be better than the first: bool."""
    upper = jnp.where(tally.count > 1, tally.mean + evidence * tally.error, jnp.inf)
    return jnp.any(valid & (np.arange(valid.shape[0]) > 0) & (upper > 0))


def chosen(tally: Tally, valid: Array, evidence: Array) -> Array:
    """Returns the arm of greatest mean gain among those better by `evidence` standard errors, else 0: int32."""
    enough = valid & (tally.count > 1) & (tally.mean > evidence * tally.error)
    best = jnp.argmax(jnp.where(enough, tally.mean, _WORST))
    return jnp.where(jnp.any(enough), best, 0).astype(jnp.int32)
