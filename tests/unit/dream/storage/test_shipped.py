"""Players that come with the package: found by name in every command, and each as strong as its card says."""

from __future__ import annotations

import hashlib
import json
import pathlib

import jax
import numpy as np
import pytest

import dream
import envs
from dream.storage import shipped
from dream.storage.policies import find_player
from envs import InputError

MOST_BYTES = 3 * 2**20
"""Of all that comes with the package."""


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder of weights with one player of Kuhn poker; the working directory is empty."""
    run = dream.train(
        ["env=kuhn_poker", "algo=cfr_plus", "iterations=2", "tracking.mode=disabled", f"run_dir={tmp_path / 'run'}"],
        quiet=True,
    )
    folder = tmp_path / "weights"
    (folder / "kuhn_poker").mkdir(parents=True)
    dream.export_policy(run, folder / "kuhn_poker" / "steady.safetensors")
    monkeypatch.setattr(shipped, "_FOLDER", folder)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_player_is_found_by_name(place: pathlib.Path) -> None:
    """By `load_policy` and as an opponent; a path of that name comes first, and unknown ones are refused by name."""
    game = envs.make("kuhn_poker")
    assert shipped.names() == shipped.names("kuhn_poker") == ["kuhn_poker/steady"]
    assert shipped.names("leduc_poker") == []
    own, by_path = dream.load_policy("kuhn_poker/steady"), dream.load_policy(place / "kuhn_poker/steady.safetensors")
    state = game.init(jax.random.key(0))
    view, legal = game.view(state, state.current_player), game.legal_actions(state)
    np.testing.assert_array_equal(own(view, legal), by_path(view, legal))
    np.testing.assert_array_equal(own(view, legal), find_player("kuhn_poker/steady", game)(view, legal))
    with pytest.raises(InputError, match=r"unknown player 'kuhn_poker/x'; .*random, .*, kuhn_poker/steady, the path"):
        find_player("kuhn_poker/x", game)
    with pytest.raises(
        InputError, match=r"kuhn_poker/x does not exist; .* a policy's file or one of kuhn_poker/steady$"
    ):
        dream.load_policy("kuhn_poker/x")
    pathlib.Path("kuhn_poker/steady").mkdir(parents=True)
    with pytest.raises(InputError, match=r"holds no complete checkpoint|is not a"):
        dream.load_policy("kuhn_poker/steady")


@pytest.mark.parametrize("name", shipped.names())
def test_what_comes_with_the_package(name: str) -> None:
    """Every card is of its file, says how it was trained and how strong it was; the policy plays."""
    path = shipped.path_of(name)
    card = json.loads(path.with_suffix(".json").read_text())
    assert hashlib.sha256(path.read_bytes()).hexdigest() == card["sha256"]
    assert {"command", "git_commit", "decisions", "seconds", "seed"} <= card["training"].keys()
    assert card["strength"]["simple_bot"]["n"] >= 10_000
    policy = dream.load_policy(name)
    assert policy.game.name == name.partition("/")[0]
    state = policy.game.init(jax.random.key(0))
    legal = policy.game.legal_actions(state)
    chances = policy(policy.game.view(state, state.current_player), legal)
    assert float(chances.sum()) == pytest.approx(1.0, abs=1e-5)
    assert not np.any(np.asarray(chances)[~np.asarray(legal)])


def test_they_are_small() -> None:
    """All files together."""
    folder = pathlib.Path(shipped.__file__).resolve().parents[1] / "weights"
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= MOST_BYTES
