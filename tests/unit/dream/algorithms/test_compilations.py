"""Is each of a learner's programs compiled once, whatever iteration it is called in?"""

from __future__ import annotations

import contextlib
import pathlib
import re
from collections import Counter
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import pytest

import dream
import envs
from dream import algorithms
from dream.config.compose import compose_config
from dream.networks import make_network


@contextlib.contextmanager
def lowered(folder: pathlib.Path) -> Iterator[None]:
    """Has JAX write every program that it compiles into a folder; none is known before."""
    jax.clear_caches()
    jax.config.update("jax_dump_ir_to", str(folder))
    try:
        yield
    finally:
        jax.config.update("jax_dump_ir_to", "")


def _program(text: str) -> str:
    """Returns a lowered program without what a second compilation of it may differ in.

    That is where its lines come from, how its values are named, and conversions of a weak type to the same strong one.
    """
    lines = [
        re.sub(r' ?loc\(("[^"]*"|#\w+)\)|%\w+', "", line) for line in text.splitlines() if not line.startswith("#loc")
    ]
    return "\n".join(line for line in lines if "stablehlo.convert" not in line or "->" in line)


def _programs(folder: pathlib.Path) -> Counter[str]:
    """Returns how often each program on arrays was compiled; one of single numbers is nothing to wait for.

    Nor is one that returns its arguments, and constants at most. `jnp.asarray` of a host's array is such a program,
    named `stage`, for each shape with and without double precision; so is what comes before the loop of a fit, and NFSP
    has two.
    """
    programs = Counter(_program(file.read_text()) for file in folder.glob("*.mlir"))
    assert programs
    on_arrays = [text for text in programs if re.search(r"tensor<\d", text)]
    kept = [text for text in on_arrays if re.search(r"stablehlo\.(?!constant)|call @", text)]
    return Counter({text: programs[text] for text in kept})


def _name(text: str) -> str:
    return re.search(r"@\w+", text)[0]


def _twice(folder: pathlib.Path) -> list[str]:
    """Returns the names of programs that were compiled twice."""
    return [_name(text) for text, count in _programs(folder).items() if count > 1]


def test_a_program_that_is_compiled_twice_is_seen(tmp_path: pathlib.Path) -> None:
    """As a weak type makes it; the same call again is no compilation, other shapes are another program."""
    with lowered(tmp_path):
        added, doubled = (jax.jit(lambda x, y: x + y) for _ in range(2))
        for y in (jnp.float32(1), jnp.float32(2), 3.0):
            added(jnp.arange(3.0), y)
        for size in (4, 5, 5):
            doubled(jnp.zeros(size), jnp.zeros(size))
    assert _twice(tmp_path) == ["@jit__lambda"]


@pytest.mark.parametrize("name", algorithms.names())
def test_no_program_is_compiled_twice(name: str, tmp_path: pathlib.Path) -> None:
    """In three iterations and with the policies after each; the state's types are strong, and the same throughout."""
    node = compose_config("config", [f"algo={name}", "env=kuhn_poker", "preset=tiny"]).node
    learner = algorithms.make(node.algo, node.network, envs.make("kuhn_poker"))
    with lowered(tmp_path):
        state = learner.init(jax.random.key(1))
        types = []
        for _ in range(3):
            assert not [x for x in jax.tree.leaves(state) if getattr(x, "weak_type", False)]
            types.append(jax.tree.map(lambda x: (x.shape, x.dtype), state))
            state, _ = learner.iterate(state)
            learner.policies(state)
    assert not _twice(tmp_path)
    assert types[0] == types[1] == types[2]


@pytest.mark.parametrize("name", ["cfr_plus", "dream", "ppo", "dueling_dream"])
def test_a_run_compiles_no_program_twice(name: str, tmp_path: pathlib.Path) -> None:
    """Evaluated and saved after every iteration; gone on with, as by another process, it needs no other programs.

    But one: arrays that a run holds on the host are on a device once restored, and are searched for NaN there. The
    step size of PPO falls over the whole run, so that the run changes its state between iterations.
    """
    every = ("eval.every=1", "checkpoint.every=1", "tracking.mode=disabled")
    begin = (f"algo={name}", "env=kuhn_poker", "preset=tiny", "iterations=2", f"run_dir={tmp_path / 'run'}")
    if name == "ppo":
        begin += ("algo.learning_rate_decay={start: 1.0, end: 0.0, transition_steps: null}",)
    for folder, overrides in (("begun", begin), ("resumed", (f"resume={tmp_path / 'run'}", "iterations=3"))):
        with lowered(tmp_path / folder):
            dream.train([*overrides, *every], quiet=True)
        assert not _twice(tmp_path / folder)
    begun, resumed = (_programs(tmp_path / folder) for folder in ("begun", "resumed"))
    assert {_name(text) for text in resumed - begun} <= {"@jit__all_finite"}


@pytest.mark.parametrize("network", ["actor_critic", "dueling", "simba", "card_planes"])
def test_parameters_have_strong_types(network: str) -> None:
    """A weak type would become strong with the first gradient step, and compile everything again."""
    node = compose_config("config", ["env=gin_rummy", f"network={network}"]).node
    shapes = jax.eval_shape(make_network(node.network, envs.make("gin_rummy")).init, jax.random.key(0))
    assert not [x for x in jax.tree.leaves(shapes) if x.weak_type]
