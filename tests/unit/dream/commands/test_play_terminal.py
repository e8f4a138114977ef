"""The play command in a terminal: by the configuration to a round's end."""

from __future__ import annotations

import pathlib
import re

import pytest

from dream.commands.play import play, prepare_play
from dream.config.compose import compose_config
from envs import InputError, records


def test_a_hand_against_a_player_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    """A hint by the game's solution, a bet and leaving; the round is a record with both names."""
    answers = iter(["hint", "bet"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers, "q"))
    file = tmp_path / "hands.jsonl"
    given = ["terminal=true", "env=kuhn_poker", "seats=[you,random]", "seed=2", f"records={file}", "target=1"]
    play(prepare_play(compose_config("play", given)))
    shown = capsys.readouterr().out
    hinted = [float(share) for share in re.findall(r"([\d.]+) %  (?:pass|bet)", shown)]
    assert sum(hinted) == pytest.approx(100, abs=0.2)
    assert 50.0 not in hinted
    assert "random: " in shown
    (one,) = records.read(file)
    assert one.players == ("you", "random")
    records.replay(one)


def test_what_cannot_be_is_one_line(tmp_path: pathlib.Path) -> None:
    """Too many players, an unknown game or player, a folder that is not there, a file of something else, a page's."""
    (tmp_path / "config.yaml").write_text("name: run\n")
    for given, reason in (
        (["env=kuhn_poker", "seats=[you,random,random]"], "has 2 seats"),
        (["env=kun_poker"], "kuhn_poker"),
        (["env=kuhn_poker", "seats=[you,greedyy]"], "'greedyy'; .*; a person is named you$"),
        (["env=kuhn_poker", f"records={tmp_path / 'no' / 'file'}"], "folder that exists"),
        (["env=kuhn_poker", f"records={tmp_path / 'config.yaml'}"], "choose another file"),
        (["env=kuhn_poker", "seats=[]"], r"seats=\[\] names 0; kuhn_poker has 2 seats"),
        (["env=kuhn_poker", "port=8123"], "port applies only on the page; .* Leave out terminal=true"),
        (["env=kuhn_poker", "host=0.0.0.0"], "host applies only on the page"),
        (["env=kuhn_poker", "anyone=true"], "anyone applies only on the page"),
        (["env=kuhn_poker", "players=[random]"], r"players applies only on the page; .* seats=\[you,<player>\]"),
    ):
        with pytest.raises(InputError, match=reason):
            prepare_play(compose_config("play", ["terminal=true", *given]))


def test_rules_are_not_chosen_for_the_page() -> None:
    """No more than the game."""
    pytest.importorskip("uvicorn")
    with pytest.raises(InputError, match="env applies only in the terminal; on the page the game is chosen there"):
        prepare_play(compose_config("play", ["env.rules.knock_limit=5"]))


@pytest.mark.parametrize("given", ["seats=[you,random]", "seats=[]", "target=100", "seed=3", "seed=0", "env=gin_rummy"])
def test_what_the_page_would_not_heed_is_refused(given: str) -> None:
    """Settings that apply only in the terminal."""
    pytest.importorskip("uvicorn")
    with pytest.raises(InputError, match=f"{given.partition('=')[0]} applies only in the terminal"):
        prepare_play(compose_config("play", [given]))
