"""Is each of a learner's programs compiled once, whatever iteration it is called in?"""

from __future__ import annotations

import contextlib
import logging
import re
from collections import Counter
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

import envs
from dream import algorithms
from dream.config.compose import compose_config
from dream.networks import make_network

_SAME = re.compile(r", weak_type=True|\. Argument mapping.*", re.DOTALL)
"""What a program that is compiled again may differ in."""


class _Log(logging.Handler):
    """The programs that were compiled: name, shapes and types, where any argument is more than a single number."""

    def __init__(self) -> None:
        super().__init__()
        self.programs: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Takes JAX's own line about a compilation."""
        text = record.getMessage()
        if text.startswith("Compiling ") and re.search(r"\[\d", text):
            self.programs[_SAME.sub("", text)] += 1


@contextlib.contextmanager
def compiled() -> Iterator[Counter[str]]:
    """Gives the programs that are compiled meanwhile, by how often; none is known before."""
    logger, log = logging.getLogger("jax"), _Log()
    handlers, spread = logger.handlers[:], logger.propagate
    jax.clear_caches()
    logger.handlers, logger.propagate = [log], False
    try:
        with jax.log_compiles(True):
            yield log.programs
    finally:
        logger.handlers, logger.propagate = handlers, spread


def _twice(programs: Counter[str]) -> dict[str, int]:
    return {program: count for program, count in programs.items() if count > 1}


def test_a_program_that_is_compiled_twice_is_seen() -> None:
    """As a weak type makes it; the same call again is no compilation."""
    with compiled() as programs:
        function = jax.jit(lambda x, y: x + y)
        for y in (jnp.float32(1), jnp.float32(2), 3.0):
            function(jnp.arange(3.0), y)
    assert list(_twice(programs).values()) == [2]


@pytest.mark.parametrize("name", algorithms.names())
def test_no_program_is_compiled_twice(name: str) -> None:
    """In three iterations and with the policies after each; the state's types are strong, and the same throughout."""
    node = compose_config("config", [f"algo={name}", "env=kuhn_poker", "preset=tiny"]).node
    learner = algorithms.make(node.algo, node.network, envs.make("kuhn_poker"))
    with compiled() as programs:
        state = learner.init(jax.random.key(1))
        types = []
        for _ in range(3):
            assert not [x for x in jax.tree.leaves(state) if getattr(x, "weak_type", False)]
            types.append(jax.tree.map(lambda x: (x.shape, x.dtype), state))
            state, _ = learner.iterate(state)
            learner.policies(state)
    assert programs
    assert not _twice(programs)
    assert types[0] == types[1] == types[2]


@pytest.mark.parametrize("network", ["dueling", "simba", "card_planes"])
def test_parameters_have_strong_types(network: str) -> None:
    """A weak type would become strong with the first gradient step, and compile everything again."""
    node = compose_config("config", ["env=gin_rummy", f"network={network}"]).node
    shapes = jax.eval_shape(make_network(node.network, envs.make("gin_rummy")).init, jax.random.key(0))
    assert not [x for x in jax.tree.leaves(shapes) if x.weak_type]
