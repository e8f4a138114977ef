"""Can every program of every algorithm be lowered for CUDA? Known here, on a machine without a GPU."""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Generator, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from dream import algorithms
from dream.compiled.bounded import BoundedCalls
from dream.config.compose import compose_config
from dream.training.start import build_run
from envs.batching import traced_for

OWN = sorted(algorithms._REGISTRY)
_ON_CPU = ("xla_python_cpu", "xla_ffi_python_cpu", "lapack", "eigen")
"""Targets of custom calls that a GPU does not have, callbacks to the host among them."""


@pytest.fixture(scope="module", autouse=True)
def traces_of_accelerators() -> Iterator[None]:
    """Traces everything as for CUDA, and leaves none of these traces to other tests."""
    with traced_for("cuda"):
        yield


class _Lowered:
    """A jitted function or method that is lowered for CUDA where the host calls it, and gives zeros: nothing runs."""

    def __init__(self, jitted: Any, programs: dict[str, set[str]]) -> None:
        functools.update_wrapper(self, jitted)
        self.jitted, self.programs = jitted, programs

    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((arguments, named))):
            return self.jitted(*arguments, **named)
        traced = self.jitted.trace(*arguments, **named)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
        name = f"{getattr(self.jitted, '__qualname__', 'calls')} {len(self.programs)}"
        self.programs[name] = set(re.findall(r"custom_call @([\w$.]+)", text))
        return jax.tree.map(_zeros, traced.out_info)


def _zeros(shape: Any) -> jax.Array:
    """Returns zeros, also as keys and in double precision, without compiling anything."""
    with jax.enable_x64(True):
        if jax.dtypes.issubdtype(shape.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(jax.device_put(np.zeros((*shape.shape, 2), np.uint32)))
        return jax.device_put(np.zeros(shape.shape, shape.dtype))


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The programs that the host has called so far, with the targets of their custom calls."""
    for name in OWN:  # each in a module of its own, loaded when it is asked for
        algorithms.settings_of(name)
    found: dict[str, set[str]] = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("dream.") and m is not None]:
        classes = [x for x in vars(module).values() if isinstance(x, type) and x.__module__ == module.__name__]
        for place in (module, *classes):
            for name, jitted in list(vars(place).items()):
                if hasattr(jitted, "lower") and hasattr(jitted, "trace"):
                    monkeypatch.setattr(place, name, _Lowered(jitted, found))

    def call(self: BoundedCalls, *arguments: Any) -> Generator[None, None, Any]:
        yield
        with self._precision():
            return _Lowered(jax.jit(self._function), found)(*arguments)

    monkeypatch.setattr(BoundedCalls, "__call__", call)
    return found


@pytest.mark.parametrize("name", OWN)
def test_an_iteration_lowers_for_cuda(name: str, programs: dict[str, set[str]]) -> None:
    """Initialisation, an iteration and the policies, as an accelerator would be given them."""
    algorithm = build_run(compose_config("config", ["preset=tiny", f"algo={name}", "env=kuhn_poker"]).node).algorithm
    state, _ = algorithm.iterate(algorithm.init(jax.random.key(0)))
    algorithm.policies(state)
    assert programs
    for program, targets in programs.items():
        assert not [target for target in targets if target.startswith(_ON_CPU)], program
