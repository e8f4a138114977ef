"""Is a learner's state larger than the memory refused before it is made, and a large one reported?"""

from __future__ import annotations

import math
import pathlib
import re

import jax
import numpy as np
import pytest

from dream.config.compose import Composed, compose_config
from dream.training import memory
from dream.training.start import build_run, prepare_run
from envs import InputError

DREAM = (
    "algo=dream", "env=kuhn_poker", "algo.memory.kind=reservoir", "algo.memory.capacity=64",
    "algo.average.source=network", "algo.average.capacity=32", "network.hidden=[8]",
)  # fmt: skip


def test_shapes_are_those_of_the_state() -> None:
    """DREAM with reservoirs: traced shapes and dtypes are those of what `init` makes, and the bytes are its arrays'."""
    algorithm = build_run(compose_config("config", list(DREAM)).node).algorithm
    assert algorithm.traceable
    made, like = algorithm.init(jax.random.key(0)), algorithm.like()
    assert jax.tree.map(lambda x: (x.shape, x.dtype), made) == jax.tree.map(lambda x: (x.shape, x.dtype), like)
    plain = jax.tree.leaves(made._replace(key=jax.random.key_data(made.key)))
    assert memory.state_bytes(like) == memory.state_bytes(made) == sum(np.asarray(x).nbytes for x in plain)


SIZES = r"reduce algo.memory.capacity \(now 64\), algo.average.capacity \(now 32\), algo.values.capacity \(now "


def _given(monkeypatch: pytest.MonkeyPatch, share: float) -> Composed:
    """Returns the run's configuration, on a machine with so many times the memory that its state needs."""
    composed = compose_config("config", list(DREAM))
    needed = memory.state_bytes(build_run(composed.node).algorithm.like())
    monkeypatch.setattr(memory.jax, "default_backend", lambda: "cpu")
    monkeypatch.setattr(memory, "_machine_bytes", lambda: math.ceil(share * needed))
    return composed


@pytest.mark.parametrize(("share", "reported"), [(2.1, False), (1.9, True)])
def test_a_large_state_is_reported(
    share: float, reported: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From half of the memory on, with the sizes of its buffers."""
    prepare_run(_given(monkeypatch, share))
    printed = capsys.readouterr().out
    assert ("updates and checkpoints need more" in printed) == bool(re.search(SIZES, printed)) == reported


def test_a_state_larger_than_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is made: the system would end the process."""
    with pytest.raises(InputError, match=f"algo=dream needs .* GiB of memory, and .* GiB are available; {SIZES}"):
        prepare_run(_given(monkeypatch, 0.9))


def test_memory_is_what_the_system_says(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's limit counts where it is lower; "max" and files that are not there say nothing."""
    limit, none = tmp_path / "memory.max", tmp_path / "none"
    limit.write_text("max\n")
    monkeypatch.setattr(memory, "_LIMITS", (none, limit))
    whole = memory._machine_bytes()
    assert whole is not None
    assert whole > 2**28
    limit.write_text("4096\n")
    assert memory._machine_bytes() == 4096
