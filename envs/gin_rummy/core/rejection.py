"""Draws that fulfil a condition: the first of independent proposals that does, or one that is led there.

Rejection is exact, and cheap as long as a proposal in a few hundred fits. Where almost none does, `annealed` draws by
sequential Monte Carlo: a population of proposals is weighed and drawn again by exp(-b energy), with b raised step by
step, and after each step moved by a Markov chain that leaves that distribution as it is. What is left at energy 0 is
distributed as the accepted proposals are, in the limit of a large population; with this one nearly so.

Source: Del Moral, Doucet and Jasra 2006, "Sequential Monte Carlo samplers"; steps by effective size as in Jasra et al.
2011, "Inference for Levy-driven stochastic volatility models via adaptive sequential Monte Carlo".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from envs.sampling import resample

BLOCK = 8
"""Proposals looked at together."""
MOST_PROPOSALS = 1 << 11
"""Proposals after which one is returned that is not accepted."""
PARTICLES = 64
"""Proposals that `annealed` leads to the condition together."""
_MOVES = 16
"""Moves of each particle after a step."""
_MOST_STEPS = 64
_STRICT = 20.0
"""b at which one unit of energy makes a particle impossible."""
_HALVINGS = 16


def first_accepted(propose: Callable[[Array], Any], accepts: Callable[[Any], Array], key: Array) -> tuple[Any, Array]:
    """Draws from the distribution of the proposals, given that they are accepted.

    Args:
      propose: key -> a pytree.
      accepts: pytree -> bool.
      key: consumed.
    Returns:
      The first proposal that is accepted, and True; after MOST_PROPOSALS without one, one that is not, and False: bool.
    """

    def block(n: Array) -> tuple[Array, Any]:
        proposed = jax.vmap(propose)(jax.random.split(jax.random.fold_in(key, n), BLOCK))
        fine = jax.vmap(accepts)(proposed)
        first = jnp.argmax(fine)
        return fine[first], jax.tree.map(lambda leaf: leaf[first], proposed)

    def body(carry: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
        return carry[0] + 1, *block(carry[0])

    shapes = jax.eval_shape(propose, key)
    start = (jnp.int32(0), jnp.bool_(False), jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))

    def looks_on(carry: tuple[Array, Array, Any]) -> Array:
        return ~carry[1] & (carry[0] < MOST_PROPOSALS // BLOCK)

    _, accepted, proposed = lax.while_loop(looks_on, body, start)
    return proposed, accepted


def annealed(
    start: Any, move: Callable[[Any, Array], Any], energy: Callable[[Any], Array], key: Array
) -> tuple[Any, Array]:
    """Draws from the distribution of the proposals, given that their energy is 0.

    Args:
      start: a pytree [PARTICLES, ...], independent proposals.
      move: (a proposal, key) -> a proposal; the chance of a move and of the move back are the same.
      energy: a proposal -> int32, 0 where it is accepted, else how far it is from that, 1 or more.
      key: consumed.
    Returns:
      A proposal, and whether its energy is 0, bool; where none was led there, the one of least energy.
    """

    def body(carry: tuple[Array, Array, Any, Array]) -> tuple[Array, Array, Any, Array]:
        n, power, particles, energies = carry
        pick_key, move_key = jax.random.split(jax.random.fold_in(key, n))
        rise = _rise(energies)
        power = jnp.minimum(power + rise, _STRICT)
        kept = resample(pick_key, jnp.exp(-rise * (energies - jnp.min(energies))), len(energies))
        particles, energies = jax.tree.map(lambda leaf: leaf[kept], (particles, energies))
        return n + 1, power, *_moved(particles, energies, power, move, energy, move_key)

    first = jnp.int32(0), jnp.float32(0), start, jax.vmap(energy)(start)
    _, _, particles, energies = lax.while_loop(
        lambda carry: (carry[0] < _MOST_STEPS) & (carry[1] < _STRICT), body, first
    )
    noise = jax.random.uniform(jax.random.fold_in(key, _MOST_STEPS), energies.shape)
    chosen = jnp.argmin(energies + noise)
    return jax.tree.map(lambda leaf: leaf[chosen], particles), energies[chosen] == 0


def _rise(energies: Array) -> Array:
    """Returns by how much b can rise until only half of the particles count, in effect: float32, at most _STRICT.

    As long as none is at energy 0 the rise is at most 1, for the moves to follow.
    """
    most = jnp.where(jnp.min(energies) > 0, 1.0, _STRICT)

    def enough(rise: Array) -> Array:
        weights = jnp.exp(-rise * (energies - jnp.min(energies)))
        return jnp.sum(weights) ** 2 >= len(energies) / 2 * jnp.sum(weights**2)

    def halve(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        fine = enough(middle)
        return jnp.where(fine, middle, low), jnp.where(fine, high, middle)

    low, _ = lax.fori_loop(0, _HALVINGS, halve, (jnp.float32(0), most))
    return jnp.where(enough(most), most, low)


def _moved(
    particles: Any, energies: Array, power: Array, move: Callable, energy: Callable, key: Array
) -> tuple[Any, Array]:
    """Returns the particles and their energies after _MOVES moves each, a rise accepted with exp(-b rise)."""

    def once(world: Any, before: Array, key: Array) -> tuple[Any, Array]:
        move_key, luck_key = jax.random.split(key)
        other = move(world, move_key)
        after = energy(other)
        accepted = jax.random.uniform(luck_key) < jnp.exp(-power * (after - before))
        chosen = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), other, world)
        return chosen, jnp.where(accepted, after, before)

    def body(n: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        keys = jax.random.split(jax.random.fold_in(key, n), len(energies))
        return jax.vmap(once)(*carry, keys)

    return lax.fori_loop(0, _MOVES, body, (particles, energies))
