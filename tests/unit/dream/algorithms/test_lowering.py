"""Can every program of every algorithm be lowered for CUDA? Known here, on a machine without a GPU."""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

import jax
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
    jax.clear_caches()
    with traced_for("cuda"):
        yield
    jax.clear_caches()


class _Recorder:
    """A jitted function or method that notes its calls from the host."""

    def __init__(self, jitted: Any, calls: list[tuple[Any, tuple, dict, bool]]) -> None:
        functools.update_wrapper(self, jitted)
        self.jitted, self.calls = jitted, calls

    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else types.MethodType(self, owner)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((arguments, named))):
            shapes = jax.tree.map(_shape, (arguments, named))
            self.calls.append((self.jitted, *shapes, jax.config.jax_enable_x64))
        return self.jitted(*arguments, **named)


def _shape(x: Any) -> Any:
    """Returns an array's shape and type, which outlive a buffer given away; other leaves as they are."""
    return (
        jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))
        if isinstance(x, jax.Array)
        else x
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, tuple, dict, bool]]:
    """The calls of compiled functions from the host, in order."""
    for name in OWN:  # each in a module of its own, loaded when it is asked for
        algorithms.settings_of(name)
    noted: list[tuple[Any, tuple, dict, bool]] = []
    for module in [m for name, m in sys.modules.items() if name.startswith("dream.") and m is not None]:
        classes = [x for x in vars(module).values() if isinstance(x, type) and x.__module__ == module.__name__]
        for place in (module, *classes):
            for name, found in list(vars(place).items()):
                if hasattr(found, "lower") and hasattr(found, "trace"):
                    monkeypatch.setattr(place, name, _Recorder(found, noted))

    bounded = BoundedCalls.__call__

    def call(self: BoundedCalls, *arguments: Any) -> Any:
        noted.append((jax.jit(self._function), jax.tree.map(_shape, arguments), {}, self._x64))
        return bounded(self, *arguments)

    monkeypatch.setattr(BoundedCalls, "__call__", call)
    return noted


@pytest.mark.parametrize("name", OWN)
def test_an_iteration_lowers_for_cuda(name: str, calls: list[tuple[Any, tuple, dict, bool]]) -> None:
    """The iteration itself runs here, as an accelerator would be given it; its programs are then lowered for CUDA."""
    algorithm = build_run(compose_config("config", ["preset=tiny", f"algo={name}", "env=kuhn_poker"]).node).algorithm
    calls.clear()
    state, _ = algorithm.iterate(algorithm.init(jax.random.key(0)))
    algorithm.policies(state)
    programs = {(id(jitted), str(jax.tree.map(repr, shapes))): (jitted, *shapes) for jitted, *shapes in calls}
    assert programs
    for jitted, arguments, named, x64 in programs.values():
        with jax.enable_x64(x64):
            lowered = jitted.trace(*arguments, **named).lower(lowering_platforms=("cuda",))
        targets = set(re.findall(r"custom_call @([\w$.]+)", lowered.as_text()))
        assert not [target for target in targets if target.startswith(_ON_CPU)], targets
