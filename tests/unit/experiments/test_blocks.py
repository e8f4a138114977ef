"""Blocks of played rounds: whole files only, and none of other players, rules or code."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import zlib
from collections.abc import Callable

import gin_losses
import gin_relations
import gin_search
import numpy as np
import pytest
from result_tables import common, gin_rummy
from script_support import called
from scripting import blocks

import envs
from dream.evaluation.standings import Result
from envs import InputError


def _rounds(game: envs.Game, *players: object, games: int, seed: int) -> dict[str, np.ndarray]:
    """Rounds that nobody plays: what kept figures there are, by the seed."""
    points = np.random.default_rng(seed).choice([-30.0, 25.0, 40.0], size=(games // 2, 2))
    names = ("gin_rate", "knock_rate", "undercut_rate", "mean_length")
    return {"points_per_hand": points, **dict.fromkeys(names, np.zeros_like(points))}


def _gains(game: envs.Game, *players: object, games: int, seed: int, playouts: int) -> dict[str, np.ndarray]:
    """The same, with gains that nobody estimates."""
    rounds = _rounds(game, *players, games=games, seed=seed)
    return rounds | dict.fromkeys(("gain", "changed_decisions"), rounds["points_per_hand"])


def _cut_off(file: object, *args: object, **kwargs: object) -> None:
    """What numpy leaves of a file when Ctrl-C comes."""
    if hasattr(file, "write"):
        file.write(b"PK")
    else:
        pathlib.Path(file).write_bytes(b"PK")
    raise KeyboardInterrupt


@pytest.fixture
def relations(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Callable[..., int]:
    """The relations' command on two blocks of one pairing; what is played is made up."""
    script = gin_relations
    one = script.Relation("greedy", "gin_rummy/strong", None, 16, 8)
    monkeypatch.setattr(script, "RELATIONS", (one,))
    monkeypatch.setattr(script, "RESULT", tmp_path / "result.json")
    monkeypatch.setattr(script, "find_player", lambda name, game: name)
    monkeypatch.setattr(script, "play_hands", _rounds)
    return lambda *arguments: called(script, "--work", tmp_path / "work", *arguments)


def test_rounds_of_other_weights_rules_or_code_are_refused(
    relations: Callable[..., int],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line names the file; the result stays as it was; without the file its rounds are played again."""
    monkeypatch.setattr(blocks, "commit", lambda: "old")
    monkeypatch.setattr(blocks, "checksum", lambda name, game: None if name == "greedy" else 1)
    assert relations() == 0
    result = (tmp_path / "result.json").read_text()
    assert json.loads(result)["relations"][0]["made"]["checksum of gin_rummy/strong"] == 1
    capsys.readouterr()
    for name, value, message in (
        ("checksum", lambda name, game: None if name == "greedy" else 2, "checksum of gin_rummy/strong is 1 and 2"),
        ("commit", lambda: "new", "commit is old and new"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(blocks, name, value)
            assert relations() == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert message in line
        assert (tmp_path / "result.json").read_text() == result
        path = pathlib.Path(re.search(r"error: (\S+) was played by other players, rules or code", line)[1])
        assert path.parent == tmp_path / "work"
    path.unlink()
    assert relations() == 0
    assert path.exists()
    with np.load(path) as block:
        old = {name: block[name] for name in block.files if name != "made"}
    np.savez_compressed(path, **old)
    assert relations() == 2
    assert f"{path} does not name its players, rules and code; delete it" in capsys.readouterr().err


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Callable[..., int]:
    """The search's command on a block of each pairing; what is played is made up."""
    monkeypatch.setattr(gin_search, "play_hands", _rounds)
    monkeypatch.setattr(gin_search, "play_for_gains", _gains)
    monkeypatch.setattr(gin_search.Bench, "player", lambda bench, name: name)
    asked = ("--work", tmp_path / "work", "--out", tmp_path / "result.json", "--deals", 8, "--block", 8)
    return lambda *arguments: called(gin_search, *asked, "--policy", "greedy", *arguments)


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Callable[..., int]:
    """The losses' command on a block of one pairing; what is played is made up, and nothing is made of it."""
    monkeypatch.setattr(gin_losses, "played", lambda *_: {"points": np.zeros(2)})
    monkeypatch.setattr(gin_losses, "looked_at", lambda rounds, bonus: {"rounds": len(rounds["points"])})
    asked = ("--work", tmp_path / "work", "--out", tmp_path / "result.json", "--deals", 8, "--block", 8)
    return lambda *arguments: called(gin_losses, *asked, "--opponents", "camper", *arguments)


@pytest.mark.parametrize("script", ["search", "losses"])
def test_rounds_of_other_code_are_refused(
    request: pytest.FixtureRequest,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    script: str,
) -> None:
    """Where the players are rules, whose checksums are none; blocks that do not say so, of older scripts, as well."""
    call, player = request.getfixturevalue(script), ("--player", "greedy") if script == "losses" else ()
    monkeypatch.setattr(blocks, "commit", lambda: "old")
    assert call(*player) == 0
    assert call(*player) == 0
    result = (tmp_path / "result.json").read_bytes()
    assert b'"commit": "old"' in result
    capsys.readouterr()
    monkeypatch.setattr(blocks, "commit", lambda: "new")
    assert call(*player) == 2
    line = capsys.readouterr().err
    assert (line.count("\n"), "commit is old and new; delete it" in line) == (1, True)
    for path in (tmp_path / "work").glob("*.npz"):
        blocks.write(path, blocks.read(path))
    assert call(*player) == 2
    assert "does not name its players, rules and code" in capsys.readouterr().err
    assert (tmp_path / "result.json").read_bytes() == result


def test_pairings_of_search_that_were_not_played_stay(
    search: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In another working folder; those of another policy are refused before anything is played."""
    assert search() == 0
    before = json.loads((tmp_path / "result.json").read_text())["pairings"]
    other = ("--work", tmp_path / "other", "--only", "policy", "--against", "lv4")
    assert search(*other, "--deals", 16) == 0
    after = json.loads((tmp_path / "result.json").read_text())["pairings"]
    places = [(one["player"], one["opponent"]) for one in before]
    assert [(one["player"], one["opponent"]) for one in after] == places
    place = places.index(("policy", "lv4"))
    assert (before[place].pop("deals"), after[place].pop("deals")) == (8, 16)
    assert [one for n, one in enumerate(after) if n != place] == [one for n, one in enumerate(before) if n != place]
    assert json.loads((tmp_path / "result.json").read_text())["command"].endswith("--deals 8"), "of most pairings"
    capsys.readouterr()
    assert search("--work", tmp_path / "third", "--policy", "camper") == 2
    assert "holds pairings of other players: policy.name is greedy and camper" in capsys.readouterr().err


def test_a_label_is_of_one_player(
    losses: Callable[..., int],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two runs of one folder name do not replace each other; of older results nobody knows whose they are."""
    weights = {"runs/a/seed0": 1, "runs/b/seed0": 2}
    monkeypatch.setattr(blocks, "checksum", lambda name, game: weights.get(name))
    assert losses("--player", "runs/a/seed0") == 0
    result = (tmp_path / "result.json").read_bytes()
    capsys.readouterr()
    assert losses("--player", "runs/b/seed0") == 2
    assert "seed0 is what the results call runs/a/seed0" in capsys.readouterr().err
    weights["runs/a/seed0"] = 3
    assert losses("--player", "runs/a/seed0") == 2
    assert (tmp_path / "result.json").read_bytes() == result
    assert losses("--player", "runs/b/seed0", "--label", "b") == 0
    stored = json.loads((tmp_path / "result.json").read_text())
    assert list(stored["players"]) == ["seed0", "b"]
    del stored["players"]["seed0"]["camper"]["made"]
    (tmp_path / "result.json").write_text(json.dumps(stored))
    assert losses("--player", "runs/a/seed0") == 0


def test_relations_are_written_where_they_are_asked_for(relations: Callable[..., int], tmp_path: pathlib.Path) -> None:
    """A folder that is not there is made, and the stored result stays as it is."""
    (tmp_path / "result.json").write_text("{}")
    assert relations("--out", tmp_path / "mine" / "found.json") == 0
    assert json.loads((tmp_path / "mine" / "found.json").read_text())["relations"]
    assert (tmp_path / "result.json").read_text() == "{}"


def test_no_losses_are_replaced_by_those_of_fewer_rounds(
    losses: Callable[..., int],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of older scripts too, which do not say what made them: one line, before anything is played."""
    out = tmp_path / "result.json"
    out.write_text(json.dumps({"players": {"greedy": {"camper": {"rounds": 32}, "lookahead": {"rounds": 8192}}}}))
    before = out.read_bytes()
    assert losses("--player", "greedy") == 2
    assert capsys.readouterr().err == (
        f"error: {out} holds 32 rounds of greedy against camper, here are 16; make it as many, or give another --out\n"
    )
    assert (out.read_bytes(), list(tmp_path.rglob("*.npz"))) == (before, [])
    monkeypatch.setattr(gin_losses, "looked_at", lambda rounds, bonus: {"rounds": 32})
    assert losses("--player", "greedy", "--deals", 9) == 0, "two blocks of 8 deals"
    stored = json.loads(out.read_text())["players"]["greedy"]
    assert ("made" in stored["camper"], stored["lookahead"]) == (True, {"rounds": 8192})


def test_pairings_that_were_not_played_stay(relations: Callable[..., int], tmp_path: pathlib.Path) -> None:
    """Another pairing's record is kept as it is, and one of this pairing is replaced."""
    other = {"player": "patient", "opponent": "marjj", "deals": 4096}
    old = {"player": "greedy", "opponent": "gin_rummy/strong", "deals": 8}
    (tmp_path / "result.json").write_text(json.dumps({"relations": [other, old]}))
    assert relations() == 0
    found = json.loads((tmp_path / "result.json").read_text())["relations"]
    assert found[1] == other
    assert [one["deals"] for one in found] == [16, 4096]


def test_no_pairing_is_replaced_by_one_of_fewer_deals(
    relations: Callable[..., int],
    search: Callable[..., int],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of each script: one line, nothing is written; what cannot come to as many is not played, the rest is kept."""
    out, fresh = tmp_path / "result.json", ("--work", tmp_path / "fresh")
    record = {"player": "greedy", "opponent": "gin_rummy/strong"}
    for deals, played in ((16, 1), (24, 0)):  # a block is 8 deals, the pairing 16
        out.write_text(json.dumps({"relations": [record | {"deals": deals}]}))
        before = out.read_bytes()
        ticks = iter([0.0, 0.0, 0.0, 0.0, 9.0])
        with monkeypatch.context() as patch:
            patch.setattr(gin_relations.time, "monotonic", lambda ticks=ticks: next(ticks, 9.0))
            assert relations(*fresh, "--seconds", 5) == 2
        line = capsys.readouterr().err
        assert f"{out} holds {deals} deals of greedy against gin_rummy/strong, here are " in line
        assert (line.count("\n"), "give another --out" in line, out.read_bytes()) == (1, True, before)
        assert len(list((tmp_path / "fresh").glob("*.npz"))) == played
        shutil.rmtree(tmp_path / "fresh", ignore_errors=True)
    out.unlink()
    assert search("--deals", 16) == 0
    before = out.read_bytes()
    capsys.readouterr()
    assert search(*fresh) == 2
    assert capsys.readouterr().err.startswith(f"error: {out} holds 16 deals of search against policy, here are 8; ")
    assert not list((tmp_path / "fresh").glob("*.npz"))
    assert search("--only", "greedy") == 0, "the working folder has them all"
    assert out.read_bytes() != before


def test_pairings_do_not_replace_something_else(
    relations: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as the results of searches: one line, and they are still there."""
    out = tmp_path / "result.json"
    out.write_text('{"seed": 195, "pairings": []}')
    before = out.read_bytes()
    assert relations() == 2
    line = f"error: {out} holds something else than these results; give another --out\n"
    assert (capsys.readouterr().err, out.read_bytes()) == (line, before)


def test_games_that_would_not_end_are_no_rate(
    relations: Callable[..., int], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rounds are tied: neither a rate nor an interval."""

    def tied(*players: object, **how: int) -> dict[str, np.ndarray]:
        return {name: 0 * values for name, values in _rounds(*players, **how).items()}

    monkeypatch.setattr(gin_relations, "play_hands", tied)
    assert relations() == 0
    (record,) = json.loads((tmp_path / "result.json").read_text())["relations"]
    assert (record["game_win_rate"], record["rounds_per_game"], record["win_rate_excluding_ties"]) == ([], None, [])
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    (tmp_path / "result.json").rename(tmp_path / "gin_relations.json")
    assert gin_rummy.relations_table()[-1].startswith("| `greedy` | `gin_rummy/strong` |  |  | +0.00 (")


def test_the_rate_of_games_has_the_interval_of_reports(relations: Callable[..., int], tmp_path: pathlib.Path) -> None:
    """Within 0 and 1, whatever the few deals say."""
    assert relations() == 0
    (record,) = json.loads((tmp_path / "result.json").read_text())["relations"]
    points = [_rounds(None, games=16, seed=zlib.crc32(json.dumps([19, "greedy", "gin_rummy/strong", n]).encode()))
              for n in range(2)]  # fmt: skip
    rules = envs.make("gin_rummy", preset="eaai").match_rules()
    expected = Result(np.concatenate([one["points_per_hand"] for one in points]), rules).report()
    assert record["game_win_rate"] == list(expected["game_win_rate"])


def test_one_pairing_can_be_asked_for(
    relations: Callable[..., int], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By how both names begin; where none does so, one line names the pairings, and nothing is written."""
    assert relations("--only", "greedy", "--against", "mc") == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "--against 'mc' begin no pairing's names; known: greedy against gin_rummy/strong" in line
    assert not (tmp_path / "result.json").exists()
    assert relations("--only", "greedy", "--against", "gin_rummy") == 0
    assert (tmp_path / "result.json").exists()


def test_other_rules_are_other_rounds(tmp_path: pathlib.Path) -> None:
    """By the game's identity; the same comes back as it was written."""
    plain, eaai = (blocks.made_by(envs.make("gin_rummy", **rules), ["greedy"]) for rules in ({}, {"preset": "eaai"}))
    blocks.write(tmp_path / "a.npz", {"x": np.arange(3)}, plain)
    blocks.check(tmp_path / "a.npz", plain)
    assert blocks.read(tmp_path / "a.npz")["x"].tolist() == [0, 1, 2]
    with pytest.raises(
        InputError, match=r"a\.npz was played by other players, rules or code: game\.rules\.\w+ is .* delete it"
    ):
        blocks.check(tmp_path / "a.npz", eaai)


def test_code_that_git_does_not_know_yet_is_code(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new file, and each change of it, is another commit's; what git ignores is not."""
    for folder in ("dream", "envs"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "known.py").write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    author = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    monkeypatch.setattr(blocks, "_ROOT", tmp_path)
    found = [blocks.commit()]
    for content in ("y = 1\n", "y = 2\n"):
        (tmp_path / "dream" / "new player.py").write_text(content)
        found.append(blocks.commit())
    assert len(set(found)) == 3
    (tmp_path / "dream" / "new player.py").unlink()
    (tmp_path / "dream" / "new.pyc").write_text(content)
    assert blocks.commit() == found[0]


def test_a_block_that_is_cut_off_is_not_there(
    relations: Callable[..., int],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of each script: Ctrl-C leaves no file that counts as played."""
    played = {"points": np.zeros(2)}
    monkeypatch.setattr(gin_losses, "played", lambda *_: played)
    monkeypatch.setattr(gin_search, "play_hands", _rounds)
    monkeypatch.setattr(gin_search, "play_for_gains", _gains)
    monkeypatch.setattr(gin_search.Bench, "player", lambda bench, name: name)
    work = ["--work", tmp_path / "work", "--out", tmp_path / "out.json"]
    calls = (
        relations,
        lambda: called(gin_search, *work, "--policy", "greedy", "--deals", 8, "--block", 8),
        lambda: called(gin_losses, *work, "--player", "greedy", "--opponents", "camper"),
    )
    for call in calls:
        with monkeypatch.context() as patch:
            patch.setattr(np, "savez_compressed", _cut_off)
            with pytest.raises(KeyboardInterrupt):
                call()
        assert not list(tmp_path.rglob("*.npz"))


def test_a_damaged_block_is_named(
    relations: Callable[..., int],
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What older scripts left cut off: one line says to delete it."""
    assert relations() == 0
    path = sorted((tmp_path / "work").glob("*.npz"))[0]
    path.write_bytes(path.read_bytes()[:100])
    capsys.readouterr()
    assert relations() == 2
    assert capsys.readouterr().err == f"error: {path} is damaged; delete it, and its rounds are played again\n"
    for empty in (b"", b"PK"):
        path.write_bytes(empty)
        with pytest.raises(InputError, match="is damaged; delete it"):
            blocks.read(path)
