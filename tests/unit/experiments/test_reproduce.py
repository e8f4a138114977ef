"""From runs to the reproduced numbers: what is read from records, how a page shows it, what is drawn."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pathlib
import re
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from command_support import REPO
from omegaconf import OmegaConf
from reproduce_support import COIN, DICE, ROWS, write_run

from dream import algorithms
from dream.config.compose import compose_config
from dream.config.tuned import config_dir
from dream.storage.lock import RunLock
from dream.training.start import build_run
from envs import InputError

FOLDER = REPO / "experiments" / "reproduce"
NAMES = ("rows", "comparable", "measured", "run", "table", "plot")


@pytest.fixture(scope="module")
def scripts() -> Iterator[SimpleNamespace]:
    """The modules beside each other in experiments/reproduce, as a script among them finds them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        patch.syspath_prepend(FOLDER.parent)
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in NAMES})
        for name in (*NAMES, "result_pages"):
            sys.modules.pop(name, None)


@pytest.fixture
def spec(scripts: SimpleNamespace, tmp_path: pathlib.Path) -> object:
    """Three rows of two games, one of them reading another's runs."""
    (tmp_path / "rows.yaml").write_text(ROWS)
    return scripts.rows.read_spec(tmp_path / "rows.yaml")


@pytest.fixture
def result(scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path) -> dict:
    """The row `long`, three seeds; the last evaluation within 1,000 nodes is that of iteration 10."""
    curves = {0: [0.5, 0.2, None, 0.09, 0.05], 1: [0.4, 0.2, None, 0.11, 0.06], 2: [0.3, 0.2, None, 0.12, 0.07]}
    for seed, (a, b, c, d, e) in curves.items():
        write_run(tmp_path / f"seed{seed}", [a, b, c, d, c, c, c, c, c, e, 0.01])
    return scripts.measured.measured(spec, "long", {seed: tmp_path / f"seed{seed}" for seed in curves})


def test_a_result_is_mean_and_interval_at_the_budget(result: dict) -> None:
    """50, 60 and 70: logarithms of mean 4.0850 and s = 0.16852; counters of that iteration; the 11th is too late."""
    assert result["mean"] == pytest.approx(60)
    assert (result["low"], result["high"]) == pytest.approx((39.5, 92.0173), rel=1e-5)
    assert (result["seeds"], result["published"], result["source"]) == (3, 60, "a paper")
    assert (result["within_tolerance"], result["shortened"]) == (True, None)
    assert (result["nodes"], result["iterations"], result["episodes"], result["seconds"]) == (1000, 10, 100, 20)
    assert result["seconds_evaluate"] == 1.0
    assert result["unit"] == "chips / 1000"
    assert result["machine"]["cores"] == ["2"]


@pytest.mark.usefixtures("result")
def test_a_value_may_be_the_mean_of_the_last_evaluations(
    scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path
) -> None:
    """Of two, where iterates cycle: 50 and 90, 60 and 110, 70 and 120; more than there are is refused."""
    row = dataclasses.replace(spec.row("long"), mean_over=2)
    reported = [
        scripts.measured.one_run(row, (), seed, tmp_path / f"seed{seed}")["exploitability"] for seed in range(3)
    ]
    assert reported == [70, 85, 95]
    with pytest.raises(InputError, match="has 4 evaluations within the budget; mean_over=5"):
        scripts.measured.one_run(dataclasses.replace(row, mean_over=5), (), 0, tmp_path / "seed0")


def test_times_to_a_level_are_of_the_first_evaluation_there(result: dict) -> None:
    """0.10 after 8, 20 and 20 seconds; 0.06 after 20 seconds in two seeds, the third does not get there."""
    assert result["seconds_to"] == {"0.1": {"mean": 16.0, "reached": 3}, "0.06": {"mean": 20.0, "reached": 2}}


def test_curves_end_at_the_budget(result: dict) -> None:
    """Evaluations only."""
    assert result["runs"][0]["curve"] == {
        "nodes": [100, 200, 400, 1000], "seconds": [2.0, 4.0, 8.0, 20.0], "exploitability": [500, 200, 90, 50]
    }  # fmt: skip


def test_a_long_curve_is_thinned(scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path) -> None:
    """To the number of points that is kept, first and last among them."""
    write_run(tmp_path / "seed0", [1 / n for n in range(1, 801)], step=1)
    curve = scripts.measured.measured(spec, "long", {0: tmp_path / "seed0"})["runs"][0]["curve"]
    assert 30 < len(curve["nodes"]) <= scripts.measured.POINTS
    assert (curve["nodes"][0], curve["nodes"][-1]) == (1, 800)
    assert curve["nodes"] == sorted(set(curve["nodes"]))
    assert curve["exploitability"] == pytest.approx([1000 / n for n in curve["nodes"]], rel=1e-5)


def test_another_budget_of_the_same_runs(scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path) -> None:
    """The row takes game, algorithm and seeds from the one whose runs it reads, not its published number."""
    for seed in (0, 1, 2):
        write_run(tmp_path / f"seed{seed}", [0.5, 0.2, None, 0.09, None, 0.05])
    reported = scripts.measured.measured(spec, "long_at_500", {s: tmp_path / f"seed{s}" for s in (0, 1, 2)})
    assert (reported["algorithm"], reported["mean"], reported["nodes"]) == ("cfr", 90, 400)
    assert (reported["published"], reported["within_tolerance"], reported["shortened"]) == (None, False, None)


def test_another_policy_of_the_same_runs(scripts: SimpleNamespace, tmp_path: pathlib.Path) -> None:
    """A row may read the runs of another one for a policy of its own."""
    (tmp_path / "rows.yaml").write_text(ROWS.replace("{run: long,", "{run: long, policy: current,"))
    rows = scripts.rows.read_spec(tmp_path / "rows.yaml")
    write_run(tmp_path / "seed0", [0.4, 0.3, 0.2], policy="current")
    reported = scripts.measured.measured(rows, "long_at_500", {0: tmp_path / "seed0"})
    assert (reported["policy"], reported["algorithm"], reported["mean"]) == ("current", "cfr", 200)


def test_what_was_shortened_is_said(scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path) -> None:
    """A run that ended before the budget, and seeds left out; a single seed has no interval."""
    write_run(tmp_path / "seed0", [0.5, 0.2])
    reported = scripts.measured.measured(spec, "long", {0: tmp_path / "seed0"})
    assert reported["shortened"] == "stopped at 200 of 1,000 nodes; 1 of 3 seeds"
    assert (reported["low"], reported["high"], reported["mean"]) == (None, None, 200)


def test_the_policy_asked_for_is_measured(scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path) -> None:
    """`current`; what is deterministic is exact, its interval without width."""
    write_run(tmp_path / "a", [0.4, 0.3, 0.2, 0.1], policy="current", overrides=DICE)
    reported = scripts.measured.measured(spec, "other", {0: tmp_path / "a"})
    assert (reported["mean"], reported["low"], reported["high"], reported["shortened"]) == (100, 100, 100, None)
    write_run(tmp_path / "b", [0.4, 0.3, 0.2, 0.1], overrides=DICE)
    with pytest.raises(InputError, match="no evaluation of the current policy"):
        scripts.measured.measured(spec, "other", {0: tmp_path / "b"})


@pytest.mark.parametrize(
    ("texts", "reported"),
    [
        (["seeds=a"], r"seeds\[0\]='a'"),
        (["seeds=-1"], r"seeds\[0\]=-1 is out of range"),
        (["nodes"], "'nodes' is not a setting"),
        (["node=5"], "did you mean 'nodes'"),
        (["nodes=0"], r"nodes=0\.0 is out of range"),
        (["nodes=2000"], "nodes=2000 is more than the row's own 1000"),
        (["iterations=1.5"], "whole number"),
    ],
)
def test_wrong_order(scripts: SimpleNamespace, spec: object, texts: list[str], reported: str) -> None:
    """What stands beside a row is checked before anything runs."""
    with pytest.raises(InputError, match=reported):
        scripts.run.read_order(texts, spec.row("long"))


def test_an_order_shortens_a_row(scripts: SimpleNamespace, spec: object) -> None:
    """Its own budget stays where the order does not end the run before; other seeds are other runs."""
    seeds, end = scripts.run.read_order(["seeds=4,5", "seconds=60"], spec.row("long"))
    assert seeds == (4, 5)
    assert end.limits == {"nodes": 1000.0, "seconds": 60.0}
    assert scripts.run.read_order([], spec.row("long")) == ((0, 1, 2), spec.row("long").budget)


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("game: dice", "game: dcie", "did you mean 'dice'"),
        ("run: long", "run: lnog", "did you mean 'long'"),
        ("{run: long,", "{run: long, game: coin,", "long_at_500.game is not to be given"),
        ("budget: {iterations: 4}", "budget: {}", "other.budget is empty"),
        ("policy: current", "policy: latest", "rows.other.policy"),
        ("published: 60", "publish: 60", "did you mean 'rows.long.published'"),
    ],
)
def test_wrong_rows(scripts: SimpleNamespace, tmp_path: pathlib.Path, old: str, new: str, reported: str) -> None:
    """One line that names the row."""
    assert old in ROWS
    (tmp_path / "rows.yaml").write_text(ROWS.replace(old, new))
    with pytest.raises(InputError, match=reported) as error:
        scripts.rows.read_spec(tmp_path / "rows.yaml")
    assert "\n" not in str(error.value)


def test_every_row_can_be_run(scripts: SimpleNamespace) -> None:
    """The project's rows: game and settings of every run are valid."""
    spec = scripts.rows.read_spec()
    runs = {
        (row.game, row.algorithm, row.kind): row for row in spec.rows.values() if row.algorithm in algorithms.names()
    }
    for row in runs.values():
        config = build_run(compose_config("config", spec.run_overrides(row, 0)).node).config
        assert config.algo["name"] == row.algorithm
    assert all(len(row.seeds) >= 3 for row in spec.rows.values() if not row.deterministic)


def test_fitted_averages_are_evaluated_where_they_are_fitted(scripts: SimpleNamespace) -> None:
    """In between an evaluation is of an older average, with the counters of the newer iteration."""
    spec, fitted = scripts.rows.read_spec(), 0
    for row in spec.rows.values():
        node = compose_config("config", spec.run_overrides(row, 0)).node
        average = node.algo.average if "average" in node.algo else {}
        if average.get("source") == "network":
            fitted += 1
            assert node.eval["every"] % average["every"] == 0
    assert fitted == 12


def test_a_run_that_was_shortened_goes_on_to_the_end_of_its_row(scripts: SimpleNamespace, spec: object) -> None:
    """A run that is resumed keeps the limits it had, so all are given: by seconds first, then by the row's nodes."""
    row = spec.row("long")
    shorter = scripts.run.read_order(["seconds=600"], row)[1]
    begun = compose_config("config", [*COIN, *shorter.overrides()]).node
    assert (begun.budget.nodes, begun.budget.seconds) == (1000, 600)
    resumed = compose_config("config", [*COIN, *shorter.overrides(), *row.budget.overrides()]).node
    assert (resumed.budget.nodes, resumed.budget.seconds, resumed.budget.episodes) == (1000, None, None)


def test_a_finished_run_is_kept_without_its_checkpoints(
    scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take much room, and its records say all; one that was not finished starts over."""
    begun = []
    monkeypatch.setattr(scripts.run, "call", lambda overrides: begun.append(overrides) or 0)
    row = spec.row("long")
    write_run(tmp_path / "seed0", [0.5] * 10)
    assert scripts.run.go_through(spec, row, 0, row.budget, tmp_path / "seed0") == 0
    assert (begun, len(scripts.measured.metrics.read(tmp_path / "seed0"))) == ([], 10)
    write_run(tmp_path / "seed1", [0.5] * 9)
    assert scripts.run.go_through(spec, row, 1, row.budget, tmp_path / "seed1") == 0
    assert f"run_dir={tmp_path / 'seed1'}" in begun[0]
    assert not (tmp_path / "seed1").exists()


def test_a_run_under_way_is_not_started_over(
    scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its first checkpoint it has nothing to go on from, and would be removed while it runs."""
    monkeypatch.setattr(scripts.run, "call", lambda overrides: pytest.fail(f"begun: {overrides}"))
    write_run(tmp_path / "seed0", [0.5] * 9)
    with RunLock(tmp_path / "seed0") as lock:
        lock.acquire()
        with pytest.raises(InputError, match="seed0 is in use by process"):
            scripts.run.go_through(spec, spec.row("long"), 0, spec.row("long").budget, tmp_path / "seed0")
    assert len(scripts.measured.metrics.read(tmp_path / "seed0")) == 9


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("kuhn_cfr", "--keep"), "kuhn_cfr.json is damaged"),
        (("--recipes",), "kuhn_cfr.json is damaged"),
        (
            ("kuhn_cfr", "--results", "results/kuhn_cfr.json"),
            "cannot be made: results/kuhn_cfr.json is a file; it must be a folder",
        ),
        (("kuhn_dream", "--keep"), "the stored result of kuhn_dream is of other settings"),
    ],
)
def test_results_that_cannot_be_kept_are_refused_before_anything_runs(
    scripts: SimpleNamespace,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    reported: str,
) -> None:
    """One line."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "kuhn_cfr.json").write_text("<<<<<<< HEAD\n")
    stored = json.loads((scripts.rows.RESULTS / "kuhn_dream.json").read_text())
    (tmp_path / "results" / "kuhn_dream.json").write_text(json.dumps(stored | {"policy": "current"}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scripts.run, "call", lambda overrides: pytest.fail("something runs"))
    monkeypatch.setattr(sys, "argv", ["run.py", "--results", "results", *arguments])
    with pytest.raises(SystemExit) as end:
        scripts.run.main()
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert reported in said
    assert said.count("\n") == 1


def test_rows_of_papers_have_the_settings_of_conf(scripts: SimpleNamespace) -> None:
    """Nothing that conf/tuned changes for a game is left, and no average is exact where the paper fits a network."""
    spec = scripts.rows.read_spec()
    rows = {name: row for name, row in spec.rows.items() if row.kind == "paper"}
    assert {row.algorithm for row in rows.values()} == {
        "deep_cfr", "sd_cfr", "os_sd_cfr", "dream", "escher", "vr_dcfr_plus",
    }  # fmt: skip
    for row in rows.values():
        node = OmegaConf.to_container(compose_config("config", spec.run_overrides(row, 0)).node.algo)
        published = OmegaConf.to_container(OmegaConf.load(config_dir() / "algo" / f"{row.algorithm}.yaml"))
        if row.algorithm in ("escher", "vr_dcfr_plus"):
            published["average"]["source"] = "network"
        assert node == published


def test_seeds_are_added_to_a_stored_result(scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path) -> None:
    """A seed that is run again replaces the stored one, the others stay; other overrides are refused."""
    for seed, last in ((0, 0.05), (1, 0.06), (2, 0.08)):
        write_run(tmp_path / f"seed{seed}", [last] * 10)
    first = scripts.measured.measured(spec, "long", {seed: tmp_path / f"seed{seed}" for seed in (0, 1)})
    write_run(tmp_path / "again" / "seed1", [0.07] * 10)
    added = {1: tmp_path / "again" / "seed1", 2: tmp_path / "seed2"}
    both = scripts.measured.measured(spec, "long", added, first)
    assert [(run["seed"], run["exploitability"]) for run in both["runs"]] == [(0, 50), (1, 70), (2, 80)]
    assert (both["seeds"], both["mean"]) == (3, pytest.approx(200 / 3, rel=1e-5))


def test_stored_seeds_are_not_lost(
    scripts: SimpleNamespace, spec: object, result: dict, tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Nor replaced by shorter runs: one line that says how they stay; runs to the row's end replace them."""
    path, row = tmp_path / "results" / "long.json", spec.row("long")
    path.parent.mkdir()
    path.write_text(json.dumps(result))
    before = path.read_bytes()
    monkeypatch.setattr(scripts.run, "read_spec", lambda: spec)
    monkeypatch.setattr(scripts.run, "call", lambda overrides: pytest.fail("something runs"))
    monkeypatch.setattr(sys, "argv", ["run.py", "long", "seeds=0,2", "--results", str(path.parent)])
    with pytest.raises(SystemExit) as end:
        scripts.run.main()
    line = f"error: {path} holds seed 1, which would be lost; add --keep, or give another --results\n"
    assert (end.value.code, capsys.readouterr().err, path.read_bytes()) == (2, line, before)
    write_run(tmp_path / "short" / "seed1", [0.07] * 5)
    short = scripts.measured.measured(spec, "long", {1: tmp_path / "short" / "seed1"}, result)
    with pytest.raises(InputError, match="holds seed 1 run to the end of the row, here it is shorter"):
        scripts.run.check_not_shorter(path, row, result, short)
    with pytest.raises(InputError, match="holds seed 1 run to the row's end; ask for no earlier end"):
        scripts.run.check_end(path, row, result, dataclasses.replace(row.budget, seconds=1), (1,))
    scripts.run.check_end(path, row, result, row.budget, (1,))
    scripts.run.check_not_shorter(path, row, result, result)
    scripts.run.check_not_shorter(path, row, short, short)


@pytest.mark.parametrize(
    ("overrides", "reported"),
    [
        (("env=leduc_poker", "algo=cfr"), "game.name is leduc_poker and kuhn_poker"),
        (("env=kuhn_poker", "algo=cfr_plus"), "algo.name is cfr_plus and cfr"),
        ((*COIN, "algo.plus=true"), "algo.plus is True and False"),
        ((*COIN, "network.hidden=[8]"), r"network.hidden is \[8\] and \["),
    ],
)
def test_runs_of_other_settings_are_no_row(
    scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path, overrides: tuple[str, ...], reported: str
) -> None:
    """Nor is another seed: one line names the run and what differs, before anything is averaged."""
    write_run(tmp_path / "seed0", [0.05] * 10)
    write_run(tmp_path / "seed1", [0.05] * 10, overrides=overrides)
    with pytest.raises(InputError, match=f"seed1 is no run of seed 1 of long: {reported}.*; move it away") as error:
        scripts.measured.measured(spec, "long", {seed: tmp_path / f"seed{seed}" for seed in (0, 1)})
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="seed0 is no run of seed 2 of long: seed is 0 and 2"):
        scripts.measured.measured(spec, "long", {2: tmp_path / "seed0"})


def test_a_run_may_lack_what_came_later(scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path) -> None:
    """A setting that its configuration does not have is not compared."""
    write_run(tmp_path / "seed0", [0.05] * 10)
    config = OmegaConf.load(tmp_path / "seed0" / "config.yaml")
    for part in ("algo", "network"):
        del config[part][next(key for key in config[part] if key != "name")]
    OmegaConf.save(config, tmp_path / "seed0" / "config.yaml")
    assert scripts.measured.measured(spec, "long", {0: tmp_path / "seed0"})["mean"] == 50


def test_a_run_without_an_evaluation_within_the_budget_is_refused(
    scripts: SimpleNamespace, spec: object, tmp_path: pathlib.Path
) -> None:
    """The row has no number then, not one past its budget."""
    write_run(tmp_path / "seed0", [None] * 10 + [0.05])
    with pytest.raises(InputError, match="no evaluation within the budget of 1,000 nodes, the first is at 1,100 nodes"):
        scripts.measured.measured(spec, "long", {0: tmp_path / "seed0"})


def _without(result: dict, *keys: str) -> dict:
    return {key: value for key, value in result.items() if key not in keys}


def test_a_stored_result_of_other_settings_is_not_added_to(
    scripts: SimpleNamespace, spec: object, result: dict, tmp_path: pathlib.Path
) -> None:
    """By what conf, rules and the row say now, though the overrides are the same; what came later is not compared."""
    write_run(tmp_path / "seed3", [0.08] * 10)

    def add(earlier: dict) -> dict:
        return scripts.measured.measured(spec, "long", {3: tmp_path / "seed3"}, earlier)

    recipe = {"algo": result["recipe"]["algo"] | {"plus": True}, "network": result["recipe"]["network"]}
    for changed, reported in (
        ({"overrides": ["algo=dcfr"]}, "overrides is"),
        ({"recipe": recipe}, "algo.plus is True and False"),
        ({"identity": result["identity"] | {"version": 0}}, "game.version is 0 and"),
        ({"budget": {"nodes": 2000.0}}, "budget.nodes is 2000.0 and 1000.0"),
        ({"policy": "current"}, "policy is current and average"),
        ({"mean_over": 5}, "mean_over is 5 and 1"),
        ({"seconds_to": {"0.1": {}}}, "levels is"),
    ):
        with pytest.raises(InputError, match=f"stored result of long is of other settings .*: {reported}.*anew$"):
            add(result | changed)
    older = [_without(result, "mean_over", "identity"), _without(result, "mean_over", "identity", "recipe")]
    newer = result["overrides"] + ["algo.later=1"]
    for earlier in (result, *older, older[0] | {"overrides": newer}):
        assert [run["seed"] for run in add(earlier)["runs"]] == [0, 1, 2, 3]
    with pytest.raises(InputError, match=r"overrides is \['algo.later=1'\] and \[\]"):
        add(older[1] | {"overrides": newer})


@pytest.mark.parametrize("name", ["kuhn_cfr", "leduc_os_sd_cfr_paper", "leduc_dueling_dream"])
def test_results_of_older_commits_can_be_added_to(scripts: SimpleNamespace, name: str) -> None:
    """The project's: without `mean_over`; with fewer settings of conf/algo; with another step that nothing takes."""
    earlier = json.loads((scripts.rows.RESULTS / f"{name}.json").read_text())
    scripts.comparable.check_earlier(scripts.rows.read_spec(), name, earlier)


def test_published_values_are_of_as_many_nodes_as_the_paper_counts(scripts: SimpleNamespace) -> None:
    """The DREAM paper's code counts decisions and terminal histories: all, or half of them."""
    spec, compared = scripts.rows.read_spec(), 0
    for name, row in spec.rows.items():
        found = re.search(r"2020 \(DREAM\).*? at ([\d.]+) M", row.source or "")
        if found is None or row.source.endswith("its end"):
            continue
        compared += 1
        for run in json.loads((scripts.rows.RESULTS / f"{name}.json").read_text())["runs"]:
            external = row.algorithm == "sd_cfr"
            counted = run["transitions"] if external else run["nodes"] + run["episodes"] / 2
            assert counted / 1e6 == pytest.approx(float(found.group(1)), rel=0.15), name
    assert compared == 5


def test_published_values_are_of_as_many_updates_as_the_figure_counts(scripts: SimpleNamespace) -> None:
    """Steinberger 2019 counts updates of one player."""
    rows = [row for row in scripts.rows.read_spec().rows.values() if (row.source or "").startswith("Steinberger 2019")]
    assert len(rows) == 3
    for row in rows:
        assert row.source.endswith(f"at {2 * row.budget.iterations:,}")


def _table(scripts: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["table.py", *arguments])
    try:
        scripts.table.main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_docs_hold_the_results(scripts: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of results holds the table of the project's results."""
    assert _table(scripts, monkeypatch, "--check") == 0


def test_table(
    scripts: SimpleNamespace,
    result: dict,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Is written between the markers, passes its own check, and fails it once a number differs."""
    results, page = tmp_path / "results", tmp_path / "page.md"
    results.mkdir()
    monkeypatch.setattr(scripts.table, "read_spec", lambda: scripts.rows.read_spec(tmp_path / "rows.yaml"))
    (tmp_path / "rows.yaml").write_text(ROWS)
    page.write_text("# before\n<!-- reproduced -->\nold\n<!-- /reproduced -->\nafter\n")
    scripts.measured.written(result, results / "long.json")
    where = ("--results", str(results), "--page", str(page))
    assert _table(scripts, monkeypatch, "--check", *where) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert _table(scripts, monkeypatch, *where) == 0
    text = page.read_text()
    assert (
        "| Coin | `cfr` | ours | 1,000 nodes | 60.0 (39.5 to 92.0) | 3 | 60 (a paper) | at most 65: yes | 0.33 "
        "| 0.27; 0.33 (2 of 3 seeds) |"
    ) in text
    assert text.startswith("# before\n<!-- reproduced -->")
    assert text.endswith("<!-- /reproduced -->\nafter\n")
    assert "old" not in text
    assert _table(scripts, monkeypatch, "--check", *where) == 0
    scripts.measured.written(result | {"mean": 61.0, "runs": result["runs"][:1]}, results / "long.json")
    assert _table(scripts, monkeypatch, "--check", *where) == 1
    assert _table(scripts, monkeypatch, *where) == 0
    assert "1,000 nodes; **shortened:** 1 of 3 seeds | 61.0" in page.read_text()
    (tmp_path / "rows.yaml").write_text(ROWS.replace("published: 60, source: a paper", "published: 70, source: a book"))
    assert _table(scripts, monkeypatch, *where) == 0
    assert "| 70 (a book) |" in page.read_text()
    capsys.readouterr()
    (tmp_path / "rows.yaml").write_text(ROWS.replace("{nodes: 1000}", "{nodes: 2000}"))
    assert _table(scripts, monkeypatch, *where) == 2
    assert "long.json is not what rows.long asks for now: budget.nodes is 1000.0 and 2000.0" in capsys.readouterr().err
    (results / "nobody.json").write_text("{}")
    assert _table(scripts, monkeypatch, *where) == 2
    before = page.read_bytes()
    capsys.readouterr()
    assert _table(scripts, monkeypatch, *where, "--results", str(tmp_path / "elsewhere")) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'elsewhere'} holds no results; --results must be")
    assert page.read_bytes() == before


def test_written_results_read_back(scripts: SimpleNamespace, result: dict, tmp_path: pathlib.Path) -> None:
    """What is written is the result, a curve a line."""
    text = scripts.measured.written(result, tmp_path / "x.json").read_text()
    assert json.loads(text) == result
    assert '"nodes": [100, 200, 400, 1000],' in text


def test_a_band_is_between_the_seeds(scripts: SimpleNamespace) -> None:
    """Two seeds that are powers of the axis: 1000 / x and 2000 / x, from the later start to the earlier end."""
    runs = [
        {"curve": {"nodes": [1, 100], "exploitability": [1000, 10]}},
        {"curve": {"nodes": [4, 1000], "exploitability": [500, 2]}},
    ]
    places, mean, low, high = scripts.plot.band(runs, "nodes")
    assert (places[0], places[-1]) == pytest.approx((4, 100))
    np.testing.assert_allclose(low, 1000 / places)
    np.testing.assert_allclose(high, 2000 / places)
    np.testing.assert_allclose(mean, 1500 / places)


def test_seeds_that_never_run_at_the_same_seconds_are_one_line(scripts: SimpleNamespace) -> None:
    """The first compiles for 100 seconds: the line is at their mean seconds, from the first nodes to the last."""
    nodes, falling = [10, 1000], [100, 1]
    runs = [
        {"curve": {"nodes": nodes, "seconds": [100, 103], "exploitability": falling}},
        {"curve": {"nodes": nodes, "seconds": [2, 5], "exploitability": falling}},
    ]
    places, mean, low, high = scripts.plot.band(runs, "seconds")
    assert (places[0], places[-1]) == pytest.approx((51, 54))
    for values in (mean, low, high):
        assert (values[0], values[-1]) == pytest.approx((100, 1))


def test_plot(scripts: SimpleNamespace, spec: object, result: dict, tmp_path: pathlib.Path) -> None:
    """One file a game, the same from the same results; rows of the same runs are one line, the longest."""
    shorter = result | {"row": "long_at_500", "nodes": 400}
    games = scripts.plot.longest(spec, [shorter, result])
    assert [reported["row"] for reported in games["coin"].values()] == ["long"]
    drawn = []
    for name in ("a.svg", "b.svg"):
        scripts.plot.draw(list(games["coin"].values()), "Coin", tmp_path / name)
        drawn.append((tmp_path / name).read_text())
    assert drawn[0] == drawn[1]
    assert "<!-- nodes (decisions of both players) -->" in drawn[0]
    assert "<!-- exploitability, chips / 1000 -->" in drawn[0]
