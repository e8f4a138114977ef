"""The ladder command: cross-play of a few players, gone on with after an interruption, wrong input refused."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from command_support import command, finish, snapshot, start, succeed, wait_for

import dream
from dream.commands.ladder import Ladder, play_ladder, prepare_ladder
from dream.commands.ladder_folder import completed
from dream.config.compose import compose_config, given_values
from dream.storage import files
from envs import InputError
from envs.gin_rummy.players import rule_based

PLAYERS = ("random", "greedy", "heuristic")
ARGUMENTS = (f"players=[{','.join(PLAYERS)}]", "games=12", "block=8", "run_dir=ladder")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of a finished ladder."""
    folder = tmp_path_factory.mktemp("ladder")
    done = succeed("dream.ladder", *ARGUMENTS, cwd=folder)
    (folder / "stdout").write_text(done.stdout)
    return folder


def test_ladder_json(played: pathlib.Path) -> None:
    """A list of players, the strongest first, each with its interval and its result against every other."""
    entries = json.loads((played / "ladder" / "ladder.json").read_text())
    assert sorted(entry["name"] for entry in entries) == sorted(PLAYERS)
    ratings = [entry["rating"] for entry in entries]
    assert ratings == sorted(ratings, reverse=True)
    assert entries[-1]["name"] == "random"
    by_name = {entry["name"]: entry for entry in entries}
    for entry in entries:
        assert entry["low"] < entry["rating"] < entry["high"]
        assert {result["opponent"] for result in entry["results"]} == set(PLAYERS) - {entry["name"]}
        for result in entry["results"]:
            assert (result["n"], result["n_pairs"]) == (12, 6)
            assert sum(result[f"{name}_rate"]["mean"] for name in ("win", "loss", "tie")) == pytest.approx(1)
            (back,) = (r for r in by_name[result["opponent"]]["results"] if r["opponent"] == entry["name"])
            assert result["win_rate"] == back["loss_rate"]
            assert result["points_per_hand"]["mean"] == -back["points_per_hand"]["mean"]
            assert entry["points_against"][result["opponent"]] == pytest.approx(result["points_per_hand"]["mean"])
        assert list(entry["points_against"]) == [other["name"] for other in entries]
        assert entry["points_against"][entry["name"]] is None
        assert entry["points"]["low"] <= entry["points"]["rating"] <= entry["points"]["high"]
        assert entry["points"]["rating"] == pytest.approx(sum(filter(None, entry["points_against"].values())) / 3)
        for other, chance in entry["games_against"].items():
            assert (chance is None) == (other == entry["name"])
            assert chance is None or chance + by_name[other]["games_against"][entry["name"]] == pytest.approx(1)
        assert entry["games"]["low"] <= entry["games"]["rating"] <= entry["games"]["high"]
    assert sorted(entry["games_rank"] for entry in entries) == [1, 2, 3]
    assert sum(entry["points"]["rating"] for entry in entries) == pytest.approx(0, abs=1e-9)
    assert sorted(entry["points_rank"] for entry in entries) == [1, 2, 3]


def test_what_is_shown_and_drawn(played: pathlib.Path) -> None:
    """Progress by blocks, the table, a note where a player got no point, and the figure."""
    shown = " ".join((played / "stdout").read_text().split())  # a title is broken where its table ends
    assert "block 6/6" in shown
    for name in PLAYERS:
        assert name in shown
    for figure in ("ladder.svg", "ladder_points.svg", "ladder_games.svg"):
        assert "<svg" in (played / "ladder" / figure).read_text()[:2000]
    assert "rating by rounds won" in shown
    assert "games to 100, % won by the row's player" in shown
    assert "points per hand of the row's player against the column's" in shown
    levels = {entry["level"] for entry in json.loads((played / "ladder" / "ladder.json").read_text())}
    assert ("finite only by the tie added" in shown) == (len(levels) > 1)


def test_an_interrupted_ladder_is_gone_on_with(played: pathlib.Path) -> None:
    """By its folder alone, half of the blocks played and the last line cut off: everything comes out the same."""
    folder = played / "ladder"
    before = (folder / "ladder.json").read_text()
    records = files.read_lines(folder / "matches.jsonl")
    assert len(records) == len(list(itertools.combinations(PLAYERS, 2))) * 2
    lines = (folder / "matches.jsonl").read_text().splitlines(keepends=True)
    (folder / "matches.jsonl").write_text("".join(lines[:3]) + lines[3][:40])
    (folder / "ladder.json").unlink()
    done = succeed("dream.ladder", "run_dir=ladder", cwd=played)
    assert "; once interrupted, go on with python -m dream.ladder run_dir=ladder\n" in done.stdout
    assert (folder / "ladder.json").read_text() == before
    assert files.read_lines(folder / "matches.jsonl") == records


def test_players_that_are_left_out_are_named(played: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """The report is of the players that the command names; what others played stays in the folder."""
    shutil.copytree(played / "ladder", tmp_path / "ladder")
    done = succeed("dream.ladder", "players=[random,greedy]", *ARGUMENTS[1:], "plot=none", cwd=tmp_path)
    assert "not rated, as players does not name them; their matches are kept: heuristic" in done.stdout
    kept = [(tmp_path / "ladder" / "matches.jsonl").read_text(), (played / "ladder" / "matches.jsonl").read_text()]
    assert kept[0] == kept[1]


def _children(process: subprocess.Popen[str]) -> list[int]:
    """Returns the processes that play for a ladder, from Linux's /proc; multiprocessing's tracker is none of them."""
    found = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in found if b"spawn_main" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]


def _is_playing(pid: int) -> bool:
    path = pathlib.Path(f"/proc/{pid}/stat")
    return path.exists() and path.read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.skipif(not pathlib.Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_ends_the_processes_too(name: str, tmp_path: pathlib.Path) -> None:
    """At once and without a traceback, Ctrl-C reaching all of them; the folder is free, and the ladder goes on."""
    number, matches = signal.Signals[name], tmp_path / "ladder" / "matches.jsonl"
    arguments = (*ARGUMENTS[:1], "games=1000000", "block=8", "run_dir=ladder", "processes=2")
    process = start("dream.ladder", *arguments, cwd=tmp_path)
    wait_for(lambda: matches.exists() and matches.stat().st_size > 0, process)
    workers = _children(process)
    assert len(workers) == 2
    for pid in [*workers, process.pid] if name == "SIGINT" else [process.pid]:
        os.kill(pid, number)
    done = finish(process)  # its pipes are open as long as any of them is there
    assert done.returncode == (-number if name == "SIGKILL" else 128 + number), done.stderr
    deadline = time.monotonic() + 10
    while any(map(_is_playing, workers)):
        assert time.monotonic() < deadline, "a process of the ladder goes on"
        time.sleep(0.05)
    assert "Traceback" not in done.stderr, done.stderr
    assert "KeyboardInterrupt" not in done.stderr
    kept = f"the blocks in {matches} are kept; go on with python -m dream.ladder run_dir=ladder\n"
    assert name == "SIGKILL" or kept in done.stderr
    assert (tmp_path / "ladder" / "run.lock").exists() == (name == "SIGKILL")


def test_several_processes_come_to_the_same(played: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Each block has its own seed, so that it does not matter who plays it and when."""
    succeed("dream.ladder", *ARGUMENTS, "processes=2", "plot=none", cwd=tmp_path)
    assert (tmp_path / "ladder" / "ladder.json").read_text() == (played / "ladder" / "ladder.json").read_text()


def test_a_run_that_goes_on_is_played_as_it_was(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By several processes too: the checkpoint whose checksum the settings hold, not a newer one."""
    monkeypatch.chdir(tmp_path)
    dream.train(["env=kuhn_poker", "algo=cfr", "iterations=1", "run_dir=run"], quiet=True)
    arguments = ["env=kuhn_poker", "players=[run,random,solved]", "games=64", "plot=none"]
    prepared = [
        prepare_ladder(compose_config("ladder", [*arguments, f"processes={count}", f"run_dir=by{count}"]))
        for count in (1, 2)
    ]
    dream.train(["resume=run", "iterations=300", "checkpoint.every=300"], quiet=True)
    for ladder in prepared:
        play_ladder(ladder)
    one, two = (json.loads((tmp_path / count / "ladder.json").read_text()) for count in ("by1", "by2"))
    assert one == two


def _prepared(*arguments: str) -> Ladder:
    return prepare_ladder(compose_config("ladder", completed(list(arguments))))


def test_a_folder_gives_what_is_not_given(played: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a command gives stands where the ladder can go on with it; else it is named with both values."""
    monkeypatch.chdir(played)
    alone = _prepared("run_dir=ladder")
    assert (alone.game.name, tuple(alone.players), alone.config.games) == ("gin_rummy", PLAYERS, 12)
    more = _prepared("run_dir=ladder", "games=24", "players=[random,greedy]")
    assert (tuple(more.players), more.config.games, more.identity["block"]) == (("random", "greedy"), 24, 8)
    for given, reported in (
        ("env=kuhn_poker", "holds a ladder with env=gin_rummy, not kuhn_poker; choose a new folder"),
        ("seed=1", "holds a ladder with seed=0, not 1; choose a new folder"),
    ):
        with pytest.raises(InputError, match=reported):
            _prepared("run_dir=ladder", given)


def test_a_folder_gives_names_as_they_are(tmp_path: pathlib.Path) -> None:
    """Players' names may hold what JSON and Hydra's grammar write in other ways; a number's text stays a text."""
    names = ["été", 'a "b"', r"a\b", r"a\"b", "a\\", "[a, b]=c", "it's", "12"]
    env = {"name": "kuhn_poker", "rules": {}}
    files.write_json(tmp_path / "ladder_settings.json", {"players": {}, "asked": {"env": env, "players": names}})
    given = given_values(completed([f"run_dir={tmp_path}"]))
    assert list(map(str, given["players"])) == names
    assert not any(isinstance(name, int) for name in given["players"])


def test_the_game_is_that_of_the_runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rules that they were trained by, where env is not given; runs of two games are refused.

    A folder that is called as a player is, is no run here.
    """
    monkeypatch.chdir(tmp_path)
    arguments = ["algo=cfr", "iterations=1", "eval.opponents=[]", "eval.exact=false", "tracking.mode=disabled"]
    dream.train(["env=dark_hex", "env.rules.board_size=2", "run_dir=hex", *arguments], quiet=True)
    dream.train(["env=kuhn_poker", "run_dir=kuhn", *arguments], quiet=True)
    prepared = _prepared("players=[hex,random]")
    assert (prepared.game.name, prepared.game.identity["rules"]["board_size"]) == ("dark_hex", 2)
    assert _prepared("players=['search:kuhn',random]").game.name == "kuhn_poker"
    with pytest.raises(InputError, match="hex was trained on dark_hex, kuhn on kuhn_poker; all must be of one game"):
        _prepared("players=[hex,kuhn]")
    with pytest.raises(InputError, match=r"was trained on dark_hex version \w+, not on kuhn_poker"):
        _prepared("players=[hex,kuhn]", "env=kuhn_poker")
    for name in ("greedy", "solved"):  # of the default game, and of the run's own
        pathlib.Path("kuhn").rename(name)
        assert completed([f"players=[random,{name}]"]) == [f"players=[random,{name}]"]
        pathlib.Path(name).rename("kuhn")


RUMMY = ("env=rummy500", "env.rules.num_players=2", "players=[random,greedy]")
WRONG = {
    "unknown player": (["players=[random,gredy]"], "unknown player 'gredy'"),
    "one player": (["players=[random]"], "names 1; name at least two"),
    "a player twice": (["players=[random,greedy,random]"], "names 'random' twice; name each once"),
    "odd number of hands": (["games=7"], "games=7 is not valid"),
    "odd block": (["block=7"], "block=7 is odd"),
    "unknown plot": (["plot=sgv"], "did you mean 'svg'"),
    "unknown scoring": (["scoring=palce"], "did you mean 'palace'"),
    "unknown game": (["env.name=gin_rumy"], "did you mean 'gin_rummy'"),
    "more than two players": (["env=rummy500", "players=[random,greedy]"], "a ladder needs a two-player zero-sum game"),
    "own points alone": ([*RUMMY, "env.rules.rewards=points"], "game: set env.rules.rewards=zero_sum"),
    "a training reward": ([*RUMMY, "env.rules.reward=shaped"], "game: set env.rules.reward=score"),
    "a target for single rounds": (
        ["env=leduc_poker", "players=[random,solved]", "target=50"],
        "target=50 is not possible: leduc_poker is played in single rounds",
    ),
    "unknown key": (["gmaes=4"], "did you mean 'games'"),
    "several hosts": (["hosts.count=2", "hosts.index=0"], "unknown setting 'hosts'; known: block, env,"),
    "a folder of something else": (["run_dir=foreign"], "holds something other than a ladder"),
    "a file": (["run_dir=file"], "is a file; choose another folder"),
    "another block": (
        [*ARGUMENTS, "block=4"],
        "holds a ladder with block=8, not 4; go on with block=8 and as many games at least",
    ),
    "another seed": (["seed=1", *ARGUMENTS], "holds a ladder with seed=0, not 1"),
    "other rules": (["env.rules.knock_limit=9", *ARGUMENTS], "ladder with env.rules.knock_limit=10, not 9"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_refused(name: str, played: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is played or written."""
    arguments, reported = WRONG[name]
    monkeypatch.chdir(played)
    (played / "foreign").mkdir(exist_ok=True)
    (played / "foreign" / "other").write_text("")
    (played / "file").write_text("")
    before = snapshot(played)
    with pytest.raises(InputError) as error:
        prepare_ladder(compose_config("ladder", arguments))
    assert reported in str(error.value)
    assert "\n" not in str(error.value)
    assert snapshot(played) == before


def test_results_of_other_code_are_refused(played: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a player that needs no training: rounds by its rule as it was are not taken for those of the rule as it is."""
    monkeypatch.chdir(played)
    prepare_ladder(compose_config("ladder", ARGUMENTS))
    limit = rule_based.turn_of
    with monkeypatch.context() as patch:
        patch.setattr(rule_based, "turn_of", lambda view: limit(view) + 1)
        changed = (
            r"holds results of greedy as a rule-based player, source \w+, which now is a rule-based player, source"
        )
        with pytest.raises(InputError, match=changed):
            prepare_ladder(compose_config("ladder", ARGUMENTS))


def test_a_ladder_that_does_not_name_the_code_is_refused(
    played: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of an older version, by one line; players that are not asked for are not asked about."""
    folder = tmp_path / "ladder"
    shutil.copytree(played / "ladder", folder)
    monkeypatch.chdir(tmp_path)
    stored = json.loads((folder / "ladder_settings.json").read_text())
    stored["players"]["heuristic"] = "rule-based"
    (folder / "ladder_settings.json").write_text(json.dumps(stored))
    with pytest.raises(InputError, match="results of heuristic that do not say by which code it played") as error:
        prepare_ladder(compose_config("ladder", ARGUMENTS))
    assert "\n" not in str(error.value)
    prepare_ladder(compose_config("ladder", [*ARGUMENTS[1:], "players=[random,greedy]"]))


def test_refusal_from_the_shell(tmp_path: pathlib.Path) -> None:
    """One line on stderr, exit code 2, nothing written."""
    done = command("dream.ladder", "players=[random]", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert not any(tmp_path.iterdir())
