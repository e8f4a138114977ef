"""Search players by name."""

from __future__ import annotations

import pytest

import dream
import envs
from dream.search import Search, SearchSettings
from dream.search.names import SearchName, parse
from dream.storage.policies import find_player
from envs import InputError


@pytest.mark.parametrize(
    ("reference", "policy", "worlds"),
    [
        ("search:runs/strong", "runs/strong", None),
        ("search:runs/strong:64", "runs/strong", 64),
        ("search:hf:me/gin/a.safetensors:32", "hf:me/gin/a.safetensors", 32),
        ("search:hf:me/gin/a.safetensors", "hf:me/gin/a.safetensors", None),
    ],
)
def test_names_are_read(reference: str, policy: str, worlds: int | None) -> None:
    """The last number is that of worlds, whatever colons come before."""
    assert parse(reference) == SearchName(policy, worlds)


def test_a_player_is_found_by_name() -> None:
    """With a rule-based player's policy, on a game with worlds."""
    game = envs.make("kuhn_poker")
    player = find_player("search:random:256", game)
    assert isinstance(player.apply, Search)
    assert player.game == game
    brackets = int(player.params.brackets)
    assert (brackets - 1) * player.apply.pulls < 256 <= brackets * player.apply.pulls
    usual = find_player("search:random", game)
    assert int(usual.params.brackets) == -(-SearchSettings().worlds // usual.apply.pulls)


def test_a_search_player_is_evaluated_by_name() -> None:
    """From Python as by the command; a file of a trained player is read without the prefix."""
    report = dream.evaluate("search:random:64", "random", games=200, game=envs.make("kuhn_poker"))
    assert report.games == 200
    assert report.points_per_hand.mean > 0
    with pytest.raises(InputError, match="no/such/run"):
        dream.evaluate("search:no/such/run:64", "random", games=200)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("search:", "names no policy"),
        ("search:nobody", "unknown player 'nobody'"),
        ("search:random:9999999", r"search\.worlds=9999999 is out of range"),
        (f"search:random:{'9' * 5000}", r"search\.worlds=9{18}\.\.\. is out of range; it has 5000 digits"),
        ("search:search:random", "cannot search with another one"),
    ],
)
def test_wrong_names_are_refused(reference: str, message: str) -> None:
    """In one line that says what is wrong."""
    with pytest.raises(InputError, match=message):
        find_player(reference, envs.make("kuhn_poker"))


def test_a_search_needs_actions_to_compare() -> None:
    """A rule-based player has one: it would play as without a search, under another name."""
    with pytest.raises(InputError, match="search:greedy:64 has nothing to compare, as greedy is certain of its act"):
        find_player("search:greedy:64", envs.make("gin_rummy"))
    with pytest.raises(InputError, match="search:level:5:64 has nothing to compare, as lookahead is certain of its ac"):
        find_player("search:level:5:64", envs.make("gin_rummy"))
