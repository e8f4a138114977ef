"""Can every program of algorithms, recipes, matches and tables be lowered for CUDA? Known here, without a GPU."""

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

import envs
from dream import algorithms
from dream.compiled.bounded import BoundedCalls
from dream.config.compose import compose_config
from dream.evaluation.matches import match
from dream.game_tree.exact import ExactForm
from dream.game_tree.forms import TreeForm
from dream.game_tree.placement.form import placement_form
from dream.game_tree.tree import build_tree
from dream.networks import make_network
from dream.networks.policy import Acts, make_network_policy
from dream.search import SearchSettings, make_search
from dream.training.start import build_run
from envs import InputError
from envs.batching import traced_for

OWN = sorted(algorithms._REGISTRY)
_FEW = ("algo.num_envs=8", "algo.rollout_length=2", "algo.batch_size=16")
RECIPES = {
    "the DREAM document": ("preset=h200", "algo.episodes_per_iteration=8"),
    "a laptop": ("preset=laptop", *_FEW, "algo.opponents=[past_self,simple_bot,marjj]", "algo.shares=null"),
    "the 16-action document": (
        "experiment=r42", "preset=h200", *_FEW, "algo.opponents=[past_self,heuristic,lv5]", "algo.shares=null",
    ),
    "OpenSpiel's document": ("experiment=openspiel_ppo", *_FEW),
    "games without a tree": ("preset=tiny", "algo=dream", "env=kuhn_poker", "algo.average.source=network"),
}  # fmt: skip
"""Overrides by name, with a few lanes: rule-based players of every kind, and every network in bfloat16."""
MATCHES = dict.fromkeys(envs.names(), ("random", "random")) | {"gin_rummy": ("lookahead", "simple_bot")}
"""Two players by game."""
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

    made: dict[BoundedCalls, _Lowered] = {}

    def call(self: BoundedCalls, *arguments: Any) -> Generator[None, None, Any]:
        yield
        lowered = made.setdefault(self, _Lowered(jax.jit(self._function), found))
        with self._precision():
            return lowered(*arguments)

    monkeypatch.setattr(BoundedCalls, "__call__", call)
    return found


@pytest.fixture(scope="module", params=["kuhn_poker", "dark_hex"])
def form(request: pytest.FixtureRequest) -> ExactForm:
    """A game with a tree, and one as if it were too large for a tree; made before programs only lower."""
    if request.param == "kuhn_poker":
        return TreeForm(build_tree(envs.make("kuhn_poker")))
    return placement_form(envs.make("dark_hex", board_size=2))


def _check(programs: dict[str, set[str]]) -> None:
    """Checks that there are programs, and that a GPU has all they call."""
    assert programs
    for program, targets in programs.items():
        assert not [target for target in targets if target.startswith(_ON_CPU)], program


def _lower_run(*overrides: str) -> None:
    """Lowers initialisation, an iteration and the policies."""
    algorithm = build_run(compose_config("config", list(overrides)).node).algorithm
    state, _ = algorithm.iterate(algorithm.init(jax.random.key(0)))
    algorithm.policies(state)


@pytest.mark.parametrize("name", OWN)
def test_an_iteration_lowers_for_cuda(name: str, programs: dict[str, set[str]]) -> None:
    """Initialisation, an iteration and the policies, as an accelerator would be given them."""
    _lower_run("preset=tiny", f"algo={name}", "env=kuhn_poker")
    _check(programs)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_lowers_for_cuda(name: str, programs: dict[str, set[str]]) -> None:
    """The recipes meant for a GPU, and the strongest agent of a laptop: their games, opponents and networks."""
    _lower_run(*RECIPES[name])
    _check(programs)


@pytest.mark.parametrize("name", sorted(MATCHES.keys() - {"gin_rummy_mdp", "gin_rummy_openspiel"}))
def test_a_match_lowers_for_cuda(name: str, programs: dict[str, set[str]]) -> None:
    """On every game; the two left out are those of recipes."""
    game = envs.make(name)
    policy, opponent = (envs.make_bot(player, game) for player in MATCHES[name])
    match(game, policy, opponent, games=2 * game.num_players)
    _check(programs)


def test_a_search_player_lowers_for_cuda(programs: dict[str, set[str]]) -> None:
    """Many decisions at once, as an accelerator takes them."""
    game = envs.make("leduc_poker")
    policy = envs.make_bot("random", game)
    search = make_search(policy, game, SearchSettings(worlds=4, pulls=4, particles=4, candidates=2))
    match(game, search, policy, games=4)
    _check(programs)


def test_a_network_on_all_information_sets_lowers_for_cuda(form: ExactForm, programs: dict[str, set[str]]) -> None:
    """What is only lowered gives zeros, which are then refused as a policy."""
    network = make_network({"name": "dueling", "hidden": [8, 8, 8]}, form.game)
    policy = make_network_policy(form.game, network, network.init(jax.random.key(0)), Acts())
    programs.clear()
    with pytest.raises(InputError, match="distribution"):
        form.tabulate(policy)
    assert any("_apply" in program for program in programs)
    _check(programs)
