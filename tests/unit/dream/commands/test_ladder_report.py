"""What a ladder prints and draws says who is who, in digits enough for the game's points."""

from __future__ import annotations

import itertools
import math
import pathlib

import numpy as np
import pytest

import envs
from dream.commands import ladder_plot
from dream.commands.ladder_report import ladder_entries, points_form, print_ladder
from dream.commands.short_names import short_names
from dream.evaluation.ratings import bradley_terry, point_ratings
from dream.evaluation.report import report_table
from dream.evaluation.standings import Result
from dream.evaluation.statistics import Interval
from envs import MatchRules


@pytest.mark.parametrize(
    "expected",
    [
        {"x/run": "x/run", "y/run": "y/run", "random": "random"},
        {"runs/first": "first", "runs/second": "second"},
        {"run": "run", "x/run": "x/run", "/a/x/run": "a/x/run"},
        {"runs/a/checkpoints/2": "a/checkpoints/2", "runs/b": "b"},
        {"r/a/checkpoints/2": "r/a/checkpoints/2", "s/a/checkpoints/2": "s/a/checkpoints/2"},
        {"search:gin_rummy/strong": "search:strong", "gin_rummy/strong": "strong"},
        {"search:x/run:64": "search:run:64", "search:x/run": "search:run", "x/run/": "run"},
        {"x/run": "x/run", "x/run/": "x/run/"},
        {"hf:owner/repo/a.safetensors": "a.safetensors", "level:3": "level:3"},
    ],
    ids=lambda expected: next(iter(expected)),
)
def test_short_names_are_distinct(expected: dict[str, str]) -> None:
    """No two players are called the same, a search says that it is one, and a checkpoint whose it is."""
    assert short_names(expected) == expected


def _entries(names: list[str], points: float) -> list[dict]:
    rounds = np.tile([[points, 0.0]], (4, 1))
    score, games = np.array([[0.0, 4.0], [0.0, 0.0]]), np.array([[0.0, 4.0], [4.0, 0.0]])
    by_points = point_ratings({(0, 1): rounds.mean(axis=1)}, 2)
    results = {(names[0], names[1]): Result(rounds)}
    return ladder_entries(names, {"rounds": bradley_terry(score, games, games)}, by_points, results)


@pytest.mark.parametrize(("points", "shown"), [(0.04, "+0.020"), (4.0, "+2.00"), (40.0, "+20.0")])
def test_tables_and_figures_tell_players_apart(
    points: float,
    shown: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both by the names and in the digits of the cross-table; two runs of one name are two players."""
    monkeypatch.setenv("COLUMNS", "200")
    entries = _entries(["x/run", "y/run"], points)
    assert format(entries[0]["points_against"]["y/run"], points_form(entries)) == shown
    print_ladder(entries, envs.make("kuhn_poker"), 8, None)
    cross = capsys.readouterr().out.partition("against the column's")[2]
    assert all(text in cross for text in ("x/run", "y/run", shown))
    monkeypatch.setattr(ladder_plot, "has_matplotlib", lambda: False)
    (path,) = ladder_plot.plot_ladder(entries, "chips", "ladder", tmp_path, "svg")
    assert all(f">{text}<" in path.read_text() for text in ("x/run", "y/run", shown))


def test_long_paths_do_not_crowd_out_the_ratings(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs in one deep folder have different names in both tables of a terminal with 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    folder = "/a/folder/that/is/deep/in/other/folders"
    print_ladder(_entries([f"{folder}/first", f"{folder}/second"], 4.0), envs.make("kuhn_poker"), 8, None)
    ratings, _, cross = capsys.readouterr().out.partition("against the column's")
    for table in (ratings, cross):
        assert all(f" {name} " in table for name in ("first", "second"))


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_tables_cut_off_no_name_and_break_no_interval(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten checkpoints of one run, rated three ways: what is too wide for the console is printed as several tables."""
    monkeypatch.setenv("COLUMNS", str(width))
    names = [f"runs/k1/checkpoints/{100 * n}" for n in range(1, 11)]
    pairs = list(itertools.combinations(range(10), 2))
    points = np.random.default_rng(0).integers(-30, 30, (len(pairs), 4, 2)).astype(float)
    results = {(names[i], names[j]): Result(x) for (i, j), x in zip(pairs, points, strict=True)}
    games = 8.0 * (1 - np.eye(10))
    by_rounds = bradley_terry(games / 2, games, games)
    by_points = point_ratings({pair: x.mean(axis=1) for pair, x in zip(pairs, points, strict=True)}, 10)
    entries = ladder_entries(names, {"rounds": by_rounds, "games": by_rounds}, by_points, results)
    print_ladder(entries, envs.make("gin_rummy"), 8, MatchRules())
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert all(len(line) <= width for line in shown.splitlines())
    for part in shown.split("┏")[1:]:
        assert all(f" {name.removeprefix('runs/')} " in part for name in names)
    ratings = shown.partition("against the column's")[0]
    for entry in entries:
        points = entry["points"]
        assert f" {points['low']:+.2f} to {points['high']:+.2f} " in ratings
        assert f" {entry['low']:.0f} to {entry['high']:.0f} " in ratings


def test_a_name_too_long_for_the_console_is_folded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes several lines, and numbers none more."""
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"{'long' * 20}_{end}" for end in ("one", "two")]
    print_ladder(_entries(names, 4.0), envs.make("kuhn_poker"), 8, None)
    shown = capsys.readouterr().out
    assert "…" not in shown
    for table in shown.partition("against the column's")[::2]:
        cells = "".join(part.strip() for part in table.replace("┃", "│").split("│"))
        assert all(end in cells for end in ("_one", "_two"))


def test_a_name_that_looks_like_markup_is_printed_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both tables, and by the report of a match, where what would end a style is no error."""
    monkeypatch.setenv("COLUMNS", "200")
    names = ["algo=[self]", "algo=[random]"]
    print_ladder(_entries(names, 4.0), envs.make("kuhn_poker"), 8, None)
    ratings, _, cross = capsys.readouterr().out.partition("against the column's")
    for table in (ratings, cross):
        assert all(name in table for name in names)
    report_table("runs/[a/b] against [/b]", {"n": 4, "n_pairs": 2, "win_rate": Interval(0.5, 0.4, 0.6)})
    assert "runs/[a/b] against [/b]" in capsys.readouterr().out


def test_an_interval_is_printed_with_its_width(capsys: pytest.CaptureFixture[str]) -> None:
    """However many rounds: two decimals, and as many as show the first digit of half of it."""
    intervals = {
        "points_per_hand": Interval(0.76987, 0.76502, 0.77473),
        "mean_length": Interval(4.14, 4.08, 4.2),
        "win_rate": Interval(0.46451, 0.46449, 0.46453),
        "deadwood": Interval(1.0, -math.inf, math.inf),
    }
    report_table("a match", {"n": 2_000_000, "n_pairs": 1_000_000, **intervals})
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert [row[1:] for row in cells if len(row) == 3] == [
        ["0.770", "0.765 to 0.775"],
        ["4.14", "4.08 to 4.20"],
        ["46.451 %", "46.449 % to 46.453 %"],
        ["1.00", "-inf to inf"],
    ]
