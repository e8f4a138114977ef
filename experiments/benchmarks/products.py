"""The matrix products of a program, found in its jaxpr, and the seconds that they alone take: its arithmetic floor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from common import Work, interleaved, ratio, spread
from jax import lax

from dream.algorithms.play_then_fit import PlayThenFit
from dream.algorithms.types import Algorithm

_AT_LEAST = 0.02
"""Seconds that a measurement of one product lasts."""


class Product(NamedTuple):
    """A general matrix product (lax.dot_general).

    Attributes:
      left, right: (shape, dtype) of its operands.
      dimensions: as lax.dot_general takes them.
      result: dtype.
    """

    left: tuple[tuple[int, ...], str]
    right: tuple[tuple[int, ...], str]
    dimensions: Any
    result: str

    @property
    def operations(self) -> float:
        """Multiplications and additions."""
        left, right = (jax.ShapeDtypeStruct(*side) for side in (self.left, self.right))
        depth = math.prod(self.left[0][axis] for axis in self.dimensions[0][0])
        return 2.0 * jax.eval_shape(self.run, left, right).size * depth

    def run(self, left: Any, right: Any) -> Any:
        """Returns the product."""
        return lax.dot_general(left, right, self.dimensions, preferred_element_type=self.result)


Products = Counter[Product]


def products_of(function: Callable[..., Any], *arguments: Any) -> tuple[Products, list[Products]]:
    """Counts the products of a program: those it takes as often as its jaxpr says, and of one turn of each while loop.

    Both sides of a branch count, and loops inside a while loop belong to its turn.

    Args:
      function: of arrays.
      *arguments: arrays or their shapes.
    """
    loops: list[Products] = []
    return _in_jaxpr(jax.make_jaxpr(function)(*arguments).jaxpr, loops), loops


def _in_jaxpr(jaxpr: Any, loops: list[Products] | None) -> Products:
    """Counts the products of a jaxpr; those of while loops are put into `loops`, or counted once where it is None."""
    found: Products = Counter()
    for equation in jaxpr.eqns:
        name, parameters = equation.primitive.name, equation.params
        if name == "dot_general":
            sides = [(x.aval.shape, str(x.aval.dtype)) for x in equation.invars]
            result = str(equation.outvars[0].aval.dtype)
            found[Product(*sides, parameters["dimension_numbers"], result)] += 1
        is_loop = name == "while" and loops is not None
        times = parameters["length"] if name == "scan" else 1
        for inner in _inner(parameters):
            counted = _in_jaxpr(inner, None if is_loop else loops)
            if is_loop and counted:
                loops.append(counted)
            elif not is_loop:
                found.update({product: count * times for product, count in counted.items()})
    return found


def _inner(parameters: dict[str, Any]) -> list[Any]:
    """Returns the jaxprs among an equation's parameters."""
    values = [x for value in parameters.values() for x in (value if isinstance(value, tuple) else (value,))]
    return [getattr(x, "jaxpr", x) for x in values if hasattr(getattr(x, "jaxpr", x), "eqns")]


def over_products(algorithm: Algorithm, state: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns what iterations took by part, over what the matrix products of the part take alone.

    Args:
      algorithm: whose iteration is timed; of one that does not play and then fit nothing is known.
      state: of the algorithm.
      rows: what the timed iterations report.
    Returns:
      For `generate` and `fit` the seconds of the products (`fit_products_s`), the ratio (`fit_over_products`), both
      as median, least and greatest, and 1e12 operations (`fit_tflop`); empty where nothing is known.
    """
    learner = getattr(algorithm.iterate, "__self__", None)
    if not isinstance(learner, PlayThenFit):
        return {}
    last, arguments = rows[-1], learner.play_arguments(state)
    played = jax.eval_shape(learner.generate, *arguments)[0]
    found = {
        "generate": products_of(learner.generate, *arguments),
        "fit": products_of(learner.learn, *learner.fit_arguments(state, played)),
    }
    lanes = getattr(learner, "num_envs", None) or learner.parts.num_envs
    turns = {"generate": last["nodes"] / lanes, "fit": last["gradient_steps"]}
    figures: dict[str, Any] = {}
    for name, (straight, loops) in found.items():
        if name == "generate" and straight:
            loops = []  # a fixed number of decisions is a scan, and what loops inside it are opponents' moves
        if len(loops) > 1:
            continue  # how many turns each takes is not known here
        for loop in loops:
            straight.update({product: count * turns[name] for product, count in loop.items()})
        alone, taken = floor(straight, len(rows)), [row[f"seconds_{name}"] for row in rows]
        over = {key.replace("ratio", f"{name}_over_products"): x for key, x in ratio(taken, alone).items()}
        figures |= spread(f"{name}_products_s", alone) | over
        figures[f"{name}_tflop"] = 1e-12 * sum(count * product.operations for product, count in straight.items())
    return figures


def floor(products: Products, repeats: int) -> list[float]:
    """Returns the seconds that all of the products take, each measured alone, by repeat."""
    works = {str(n): _alone(product) for n, product in enumerate(products)}
    timings = interleaved(works, repeats, _AT_LEAST).values()
    counted = list(zip(products.values(), timings, strict=True))
    return [sum(count * timing.seconds[n] for count, timing in counted) for n in range(repeats)]


def _alone(product: Product) -> Work:
    sides = [jnp.full(shape, 0.5, dtype) for shape, dtype in (product.left, product.right)]
    run = jax.jit(product.run)
    return Work(lambda n: run(*sides))
