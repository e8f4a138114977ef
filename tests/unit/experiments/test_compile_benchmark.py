"""Does the benchmark of compilation find the two programs of every learner that has them?"""

from __future__ import annotations

import argparse
import importlib
from types import ModuleType

import jax
import pytest
from command_support import REPO

from envs import InputError


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark; what other tests have traced is kept."""
    monkeypatch.syspath_prepend(REPO / "experiments" / "benchmarks")
    monkeypatch.setattr(jax, "clear_caches", lambda: None)
    return importlib.import_module("compile")


def _arguments(algo: str, *only: str) -> argparse.Namespace:
    overrides = ["preset=tiny", "env=kuhn_poker", f"algo={algo}"]
    return argparse.Namespace(overrides=overrides, batch=8, only=list(only), repeats=1)


@pytest.mark.parametrize("algo", ["dueling_dream", "ppo"])
def test_generation_and_fit_compile(script: ModuleType, algo: str) -> None:
    """Whatever arguments a learner's generation and fit take."""
    report = script.measure(_arguments(algo, "generate", "learn"))
    assert report["generate"]["total"] > 0
    assert report["learn"]["total"] > 0


def test_a_learner_without_the_two_programs_is_named(script: ModuleType) -> None:
    """CFR's iteration is one program."""
    with pytest.raises(InputError, match="cfr has no generation and fit"):
        script.measure(_arguments("cfr", "generate"))
