"""All learners side by side: what is read from sweeps, the exact matches, the tables and pictures."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import comparison as script
import numpy as np
import pytest
from command_support import REPO, succeed
from comparison_parts import plots, rows
from comparison_parts import stored as stored_files
from omegaconf import OmegaConf
from result_tables import common
from result_tables import comparison as tables
from script_support import called
from scripting import run_records

from dream.algorithms.tabular.mccfr import OutcomeConfig
from dream.config.compose import compose_config
from dream.storage.old_configs import current_config
from envs import InputError

SMALL = ["env=kuhn_poker", "tracking.mode=disabled", "eval.opponents=[]", "seed=3,4"]


LENGTH = ["iterations=20", "eval.every=8"]


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> list[pathlib.Path]:
    """A sweep of two solvers on Kuhn poker, two jobs each."""
    folder = tmp_path_factory.mktemp("sweeps") / "solvers"
    succeed("dream.run", "-m", f"run_dir={folder}", "algo=cfr,outcome_mccfr", *LENGTH, *SMALL, cwd=REPO)
    return [folder]


def test_learners_are_collected_over_seeds(sweeps: list[pathlib.Path]) -> None:
    """Both seeds of both learners, their final exploitability, the interval, uniform play's known 11/24."""
    found = script.collect(sweeps)["kuhn_poker"]
    assert found["uniform"] == pytest.approx(11 / 24)
    assert set(found["learners"]) == {"cfr", "outcome_mccfr"}
    reports = [json.loads((sweeps[0] / str(n) / "evaluation.json").read_text()) for n in (2, 3)]
    sampled = found["learners"]["outcome_mccfr"]
    assert sampled["seeds"] == [3, 4]
    average = sampled["exploitability"]["average"]
    assert average["values"] == [report["exact"]["average"]["exploitability"] for report in reports]
    assert average["mean"] == pytest.approx(np.mean(average["values"]))
    assert average["low"] < average["mean"] < average["high"]
    assert sampled["recipe"]["algo"]["name"] == "outcome_mccfr"


@pytest.mark.parametrize(("result", "nodes"), [("comparison", 1e6), ("comparison_10m", 1e7)])
def test_rows_are_what_the_stored_tables_were_made_with(result: str, nodes: float) -> None:
    """The stored recipe of each cell is what its row's command says, so that one line trains the table anew.

    But for dueling DREAM's actor: of the networks that are one where tau and the period are 1, another one played.
    Settings that came later are in no recipe.
    """
    stored = json.loads((script.RESULTS / f"{result}.json").read_text())
    assert set(stored) == set(rows.GAMES)
    found = [(env, name, cell) for env, game in stored.items() for name, cell in game["learners"].items()]
    for env, name, cell in found:
        config = compose_config("config", rows.ROWS[name].command(env, nodes)).node
        node, recipe = OmegaConf.to_container(config, resolve=True), current_config(cell["recipe"])
        assert node["budget"] == {"nodes": nodes, "episodes": None, "seconds": None}
        if node["algo"]["name"] == "dueling_dream":
            assert (recipe["algo"]["tau"], recipe["algo"]["target_update_period"]) == (1, 1)
            recipe["algo"]["actor"] = node["algo"]["actor"]
        assert recipe["network"] == node["network"], (env, name)
        assert OmegaConf.merge(node["algo"], recipe["algo"]) == node["algo"], (env, name)


def test_the_line_of_a_cell_needs_no_script() -> None:
    """At 1 M nodes, unless annealed, the game and the learner are enough: the budget is of conf/tuned."""
    for row in (row for row in rows.ROWS.values() if not row.label):
        short = compose_config("config", ["env=dark_hex", "env.rules.version=abrupt", *row.overrides]).node
        assert short == compose_config("config", row.command("dark_hex abrupt", 1e6)).node


def test_learners_are_told_apart() -> None:
    """By what they accumulate and whether a critic says what actions are worth."""
    for row in rows.ROWS.values():
        assert run_records.learner_of(compose_config("config", list(row.overrides)).node) == row.learner
    node = compose_config("config", ["algo=ppo", "algo.advantage=expected_sarsa"]).node
    assert run_records.learner_of(node) == "ppo, by a critic"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """The runs that are begun, by the last parts of their folders; that of seed 2 fails."""
    runs: list[tuple[str, list[str]]] = []

    def go_on(overrides: list[str], run: pathlib.Path) -> int:
        runs.append(("/".join(run.parts[-3:]), overrides))
        return int(overrides[-1] == "seed=2")

    monkeypatch.setattr(rows, "go_on", go_on)
    return runs


def test_a_part_of_the_table_is_trained(begun: list, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    """Game by game, each seed in a folder of its own; one that fails ends nothing else, and is named at the end."""
    part = ["--rows", "ppo", "ppo, annealed", "--games", "dark_hex abrupt", "--seeds", "2", "5", "--nodes", "2e6"]
    assert called(script, "run", "--runs", tmp_path, *part) == 1
    game = ["env=dark_hex", "env.rules.version=abrupt", "algo=ppo"]
    falls = ["algo.learning_rate_decay.end=0", "algo.learning_rate_decay.transition_steps=324"]
    assert begun == [
        ("ppo/dark_hex_abrupt/2", [*game, "budget.nodes=2e+06", "seed=2"]),
        ("ppo/dark_hex_abrupt/5", [*game, "budget.nodes=2e+06", "seed=5"]),
        ("ppo_annealed/dark_hex_abrupt/2", [*game, *falls, "budget.nodes=2e+06", "seed=2"]),
        ("ppo_annealed/dark_hex_abrupt/5", [*game, *falls, "budget.nodes=2e+06", "seed=5"]),
    ]
    out, err = capsys.readouterr()
    assert f"== {tmp_path / 'ppo_annealed/dark_hex_abrupt/5'}: run 4 of 4, about 0.0 h left" in out
    assert err.splitlines() == [
        f"error: {tmp_path / name / 'dark_hex_abrupt/2'} failed; what it said is above"
        for name in ("ppo", "ppo_annealed")
    ]
    assert not (tmp_path / "comparison.json").exists()


@pytest.mark.parametrize(("code", "ends"), [(2, 2), (130, 130), (137, 137)])
def test_an_interruption_ends_the_training_of_the_table(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, code: int, ends: int
) -> None:
    """By the first run, with its exit code; so does a command that is refused."""
    calls: list[int] = []
    monkeypatch.setattr(rows, "go_on", lambda *_: calls.append(code) or code)
    assert called(script, "run", "--runs", tmp_path) == ends
    assert len(calls) == 1


def test_a_run_of_other_settings_is_refused_before_anything_is_trained(
    begun: list, sweeps: list[pathlib.Path], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture
) -> None:
    """As are rows and games that are not in the table: one line, exit code 2."""
    run = tmp_path / "ppo" / "dark_hex_abrupt" / "3"
    shutil.copytree(sweeps[0] / "0", run)
    assert called(script, "run", "--runs", tmp_path, "--rows", "mmd") == 2
    assert capsys.readouterr().err.startswith(f"error: {run} is not what was asked for: ")
    for option, name in (("--rows", "ppo,mmd"), ("--games", "leduc_poker")):
        assert called(script, "run", "--runs", tmp_path, option, name) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"error: {option} '{name}' is not in the table; it must be among ")
        assert line.count("\n") == 1
    assert begun == []


def test_runs_of_another_budget_are_refused_before_anything_is_trained(
    begun: list, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture
) -> None:
    """Of any cell of the folder: a table has one budget."""
    run = tmp_path / "ppo" / "dark_hex_abrupt" / "3"
    run.mkdir(parents=True)
    asked = [*rows.ROWS["ppo"].command("dark_hex abrupt", 1e6), "seed=3"]
    OmegaConf.save(compose_config("config", asked).node, run / "config.yaml", resolve=True)
    assert called(script, "run", "--runs", tmp_path, "--rows", "mmd", "--nodes", "1e7") == 2
    line = capsys.readouterr().err
    assert line.startswith(f"error: {run} is not what was asked for: budget.nodes is 1000000.0 and 10000000.0")
    assert begun == []
    rows.check_there(tmp_path, 1e6)


def test_all_that_is_there_is_collected(
    begun: list, sweeps: list[pathlib.Path], tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture,
) -> None:  # fmt: skip
    """Also rows that were not asked for this time; each by its label, in one table and one picture."""
    there = [rows.Cell(rows.Row("x", ()), "", sweeps[0]), rows.Cell(rows.Row("x", (), "annealed"), "", sweeps[0])]
    monkeypatch.setattr(script, "check_there", lambda *_: None)
    monkeypatch.setattr(script, "cells", lambda asked, *_: there if len(asked) == len(rows.ROWS) else [])
    assert called(script, "run", "--runs", tmp_path, "--rows", "ppo") == 0
    found = json.loads((tmp_path / "comparison.json").read_text())["kuhn_poker"]["learners"]
    assert found == json.loads(json.dumps(script.collect(sweeps)["kuhn_poker"]["learners"])) | {
        f"{name}, annealed": found[name] for name in ("cfr", "outcome_mccfr")
    }
    assert "| `cfr, annealed` | average |" in capsys.readouterr().out
    assert (tmp_path / "comparison.svg").exists()
    assert begun == []


def test_zero_has_no_logarithm() -> None:
    """A seed that is 0 to rounding leaves the mean without an interval; so does one seed alone."""
    assert stored_files.over_seeds([0.1, 3e-9]) == {
        "mean": pytest.approx(0.05),
        "low": None,
        "high": None,
        "values": [0.1, 3e-9],
    }
    assert stored_files.over_seeds([0.1])["low"] is None
    assert stored_files.over_seeds([0.1, 0.2])["low"] > 0


def test_a_seed_that_comes_twice_is_refused(sweeps: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    """The same folder given twice, or a copy of it, would count its runs twice."""
    with pytest.raises(InputError, match="given twice"):
        script.collect(sweeps * 2)
    again = shutil.copytree(sweeps[0], tmp_path / "again")
    with pytest.raises(InputError, match="are both seed 3 of cfr on kuhn_poker"):
        script.collect([*sweeps, again])


def test_jobs_without_exact_values_are_refused(sweeps: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Or with those of other policies than the rest, alone or beside stored ones: no value is left out."""
    jobs = script._by_game(sweeps)["kuhn_poker"]["cfr"]
    bare = jobs[1]._replace(row={key: x for key, x in jobs[1].row.items() if not key.startswith(script.POLICIES)})
    fewer = jobs[1]._replace(row={key: x for key, x in jobs[1].row.items() if key != script.POLICIES + "average"})
    with pytest.raises(InputError, match=r"has no exact values; it must be run with eval\.exact=true"):
        script._of_learner([jobs[0], bare])
    with pytest.raises(InputError, match="has exact values of other policies than"):
        script._of_learner([jobs[0], fewer])
    with pytest.raises(InputError, match="cfr: the stored seeds have exact values of other policies"):
        stored_files._more_seeds(script._of_learner(jobs[:1]), script._of_learner([fewer]), "cfr")


def test_seeds_join_those_stored(sweeps: list[pathlib.Path]) -> None:
    """Collected in two goes it is as if in one; another recipe and a seed that is stored already are refused."""
    whole = script.collect(sweeps)

    def only(seed: int) -> dict:
        jobs = {"cfr": [], "outcome_mccfr": []}
        for job in script.finished_jobs(sweeps):
            if job.run.seed == seed:
                jobs[job.run.learner].append(job)
        return {"kuhn_poker": script._of_game(jobs)}

    first, second = only(3), only(4)
    assert stored_files.joined(first, second) == stored_files.joined(second, first) == whole
    del second["kuhn_poker"]["learners"]["cfr"]
    kept = stored_files.joined(second, first)["kuhn_poker"]["learners"]
    assert (kept["cfr"]["seeds"], kept["outcome_mccfr"]["seeds"]) == ([3], [3, 4])
    with pytest.raises(InputError, match="cfr on kuhn_poker: seed 3 is stored already"):
        stored_files.joined(first, whole)
    recipe = second["kuhn_poker"]["learners"]["outcome_mccfr"]["recipe"]
    assert recipe["algo"].pop("exploration") == OutcomeConfig().exploration
    stored_files.joined(first, second)  # stored before the setting came, whose default is what was done before
    recipe["algo"]["exploration"] = 0.25
    with pytest.raises(InputError, match="outcome_mccfr on kuhn_poker: the stored seeds were run by another recipe"):
        stored_files.joined(second, first)


def _changed(sweeps: list[pathlib.Path], folder: pathlib.Path, seed: int, **changed: Any) -> pathlib.Path:
    """A copy of the sweep's job of CFR and seed 3, as if of another seed and other settings, by dotted name."""
    job = shutil.copytree(sweeps[0] / "0", folder / "0")
    config = OmegaConf.load(job / "config.yaml")
    for name, value in {"seed": seed, **{name.replace("__", "."): value for name, value in changed.items()}}.items():
        OmegaConf.update(config, name, value, force_add=True)
    OmegaConf.save(config, job / "config.yaml")
    report = json.loads((job / "evaluation.json").read_text())
    report["asked"] |= {name: OmegaConf.select(config, name) for name in report["asked"]}
    (job / "evaluation.json").write_text(json.dumps(report))
    return folder


def test_other_rules_recipes_and_budgets_are_no_seeds(sweeps: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Neither in one go nor joined with what is stored, where older files tell the game and budget by their values."""
    for name, changed, message in (
        ("recipe", {"algo__average_power": 3.0}, "another recipe: algo.average_power"),
        ("iterations", {"iterations": 10}, "another budget: iterations is 20 and 10"),
        ("nodes", {"budget__nodes": 5}, "another budget: budget.nodes is None and 5"),
    ):
        wrong = _changed(sweeps, tmp_path / name, 7, **changed)
        for command in (script.collect, lambda folders: script.matches(folders, "kuhn_poker")):
            with pytest.raises(InputError, match=message):
                command([*sweeps, wrong])
        stored = script.collect(sweeps)
        with pytest.raises(
            InputError, match=f"cfr on kuhn_poker: the stored seeds .* another {message.split()[1][:-1]}"
        ):
            stored_files.joined(script.collect([wrong]), stored)
    mini = {"env__name": "mini_gin_rummy"}
    rules = [_changed(sweeps, tmp_path / f"rules{n}", n, **mini, env__rules__gin_bonus=n) for n in (25, 200)]
    for command in (script.collect, lambda folders: script.matches(folders, "mini_gin_rummy")):
        with pytest.raises(InputError, match=r"another game: rules\.gin_bonus is 25 and 200"):
            command(rules)


def test_older_results_tell_their_game_and_budget_by_values(sweeps: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    """By what uniform play loses and by the nodes that were spent."""
    found = script.collect([_changed(sweeps, tmp_path / "more", 7)])

    def older(uniform: float = 1.0, nodes: float = 1.0) -> dict:
        stored = script.collect(sweeps)
        game = stored["kuhn_poker"]
        del game["game"]
        game["uniform"] *= uniform
        for learner in game["learners"].values():
            del learner["budget"]
            learner["nodes"] *= nodes
        return stored

    assert stored_files.joined(found, older())["kuhn_poker"]["learners"]["cfr"]["seeds"] == [3, 4, 7]
    with pytest.raises(InputError, match="kuhn_poker: the stored values are of other rules"):
        stored_files.joined(found, older(uniform=1.1))
    with pytest.raises(InputError, match="cfr on kuhn_poker: the stored seeds had another budget"):
        stored_files.joined(found, older(nodes=2.0))


def test_what_was_tried_is_kept(sweeps: list[pathlib.Path]) -> None:
    """A group for each sweep of a learner, a trial for each job with what it came to."""
    (group,) = script.trials(sweeps)["cfr"]
    assert group["game"] == "kuhn_poker"
    assert [trial["settings"]["algo.name"] for trial in group["trials"]] == ["cfr", "cfr"]
    assert group["trials"][0]["objective"] == group["trials"][1]["objective"] > 0


def test_a_trial_is_told_by_all_that_differs() -> None:
    """The network's settings and the seed too, else two trials would have one name; not what learning does not know."""
    varied = {"algo.clip": 0.1, "network.hidden": [8], "seed": 3, "iterations": 2}
    row = {"job": 0, "objective": 0.5, "nodes": 9, "env.rules.version": "abrupt", "eval.every": 2, **varied}
    assert script._trial(script.Job(row, None))["settings"] == varied


def test_trials_on_other_games_are_kept(sweeps: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Of the same learner too; those on the games of the sweeps are replaced."""
    out, other = tmp_path / "out.json", {"game": "leduc_poker", "given": [], "trials": []}
    out.write_text(json.dumps({"cfr": [other, other | {"game": "kuhn_poker"}], "ppo": [other]}))
    assert called(script, "trials", *sweeps, "--out", out) == 0
    stored = json.loads(out.read_text())
    assert [(group["game"], len(group["trials"])) for group in stored["cfr"]] == [("leduc_poker", 0), ("kuhn_poker", 2)]
    assert stored["ppo"] == [other]


def test_curves_are_what_was_measured_on_the_way(sweeps: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    """Every exact evaluation of every seed, the last one that at the end; one that has no other is refused."""
    found = script.curves(sweeps)["kuhn_poker"]
    assert found["uniform"] == pytest.approx(11 / 24)
    sampled = found["learners"]["outcome_mccfr"]
    assert [run["seed"] for run in sampled["runs"]] == [3, 4]
    curve = sampled["runs"][0]["policies"]["average"]
    records = [json.loads(line) for line in (sweeps[0] / "2" / "metrics.jsonl").read_text().splitlines()]
    nodes = {record["iteration"]: record["nodes"] for record in records}
    assert curve["nodes"] == [nodes[8], nodes[16], nodes[20]]
    report = json.loads((sweeps[0] / "2" / "evaluation.json").read_text())
    assert curve["exploitability"][-1] == report["exact"]["average"]["exploitability"]
    job = shutil.copytree(sweeps[0] / "0", tmp_path / "late" / "0")
    (job / "metrics.jsonl").write_text((job / "metrics.jsonl").read_text().splitlines()[-1] + "\n")
    with pytest.raises(InputError, match="no exact evaluation before its end"):
        script.curves([tmp_path / "late"])


def test_a_label_names_learners_apart(sweeps: list[pathlib.Path]) -> None:
    """What is stored without it stays beside it, in final values and on the way; curves of other rules are refused."""
    plain, labelled = script.collect(sweeps), script.collect(sweeps, "annealed")
    joint = stored_files.joined(labelled, plain)["kuhn_poker"]["learners"]
    assert set(joint) == {"cfr", "outcome_mccfr", "cfr, annealed", "outcome_mccfr, annealed"}
    assert joint["cfr, annealed"] == joint["cfr"] == plain["kuhn_poker"]["learners"]["cfr"]
    before = script.curves(sweeps)
    both = script.curves(sweeps, "annealed", before)["kuhn_poker"]["learners"]
    assert both["cfr, annealed"] == both["cfr"]
    assert set(both) == set(joint)
    before["kuhn_poker"]["game"] = {"other": "rules"}
    with pytest.raises(InputError, match="kuhn_poker: the stored values are of other rules"):
        script.curves(sweeps, "annealed", before)


def test_stored_curves_keep_their_seeds(sweeps: list[pathlib.Path]) -> None:
    """Stored seeds stay beside new ones of the same recipe and budget; others are refused, and a seed twice."""
    now = script.curves(sweeps)
    before = json.loads(json.dumps(now))
    stored = before["kuhn_poker"]["learners"]["outcome_mccfr"]
    for run in stored["runs"]:
        run["seed"] += 2
    del before["kuhn_poker"]["learners"]["cfr"]
    joint = script.curves(sweeps, stored=before)["kuhn_poker"]["learners"]
    assert [run["seed"] for run in joint["outcome_mccfr"]["runs"]] == [3, 4, 5, 6]
    assert joint["cfr"] == now["kuhn_poker"]["learners"]["cfr"]
    with pytest.raises(InputError, match="outcome_mccfr on kuhn_poker: seed 3 is stored already"):
        script.curves(
            sweeps, stored={"kuhn_poker": now["kuhn_poker"] | {"learners": {"outcome_mccfr": joint["outcome_mccfr"]}}}
        )
    for change, why in (
        ({"budget": {"iterations": 7}}, "had another budget"),
        ({"overrides": ["algo.exploration=0.1"]}, "were run by another recipe"),
        ({"overrides": None}, "were run by another recipe"),
    ):
        other = json.loads(json.dumps(before))
        changed = other["kuhn_poker"]["learners"]["outcome_mccfr"]
        del changed["recipe"]
        changed |= change
        if changed["overrides"] is None:
            del changed["overrides"]
        with pytest.raises(InputError, match=why):
            script.curves(sweeps, stored=other)


def test_a_mean_curve_is_within_all_seeds() -> None:
    """At the first seed's places and where the shortest seed ends, linear between points."""
    one = {"nodes": [1, 2, 3, 9], "exploitability": [8.0, 6.0, 4.0, 2.0]}
    other = {"nodes": [2, 4], "exploitability": [2.0, 0.0]}
    nodes, values = plots.mean_curve([one, other])
    assert nodes.tolist() == [2, 3, 4]
    assert values.tolist() == pytest.approx([4.0, 2.5, (4.0 - 2 / 6) / 2])


def test_matches_are_exact(sweeps: list[pathlib.Path]) -> None:
    """What one earns the other loses."""
    played = script.matches(sweeps, "kuhn_poker")["kuhn_poker"]
    assert played["seeds"] == {"cfr": 3, "outcome_mccfr": 3}
    assert played["earned"]["cfr"]["outcome_mccfr"] == -played["earned"]["outcome_mccfr"]["cfr"] != 0
    with pytest.raises(InputError, match="no finished job is of 'leduc_poker'"):
        script.matches(sweeps, "leduc_poker")


def test_tables_and_pictures(
    sweeps: list[pathlib.Path], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every learner's row is there, with what it is judged by in bold; all pictures are drawn."""
    stored = {"comparison": script.collect(sweeps), "comparison_trials": script.trials(sweeps)}
    stored["comparison_matches"] = played = script.matches(sweeps, "kuhn_poker")
    monkeypatch.setattr(common, "stored", stored.__getitem__)
    lines = tables.comparison_table()
    assert [line.split(" | ")[:2] for line in lines[3:]] == [
        ["| `cfr`", "average"],
        ["| `cfr`", "current"],
        ["| `outcome_mccfr`", "average"],
        ["| `outcome_mccfr`", "current"],
    ]
    assert lines[3].count("**") == 2
    assert len(tables.comparison_costs_table()) == len(tables.trials_table()) == 4
    won, lost = tables.matches_table()[2:]
    assert won.startswith("| kuhn_poker, ")
    assert "| +" in won
    assert "| -" in lost
    script.draw(stored["comparison"], tmp_path / "a.svg")
    script.draw_matches(played, tmp_path / "b.svg")
    script.draw_curves(script.curves(sweeps), tmp_path / "c.svg")
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("a.svg", "b.svg", "c.svg"))


def test_games_with_a_tree_tell_what_is_unusual(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner without rows has empty cells; other numbers of seeds or nodes than the column's stand in the cell."""

    def row(mean: float, nodes: float, seeds: int = 3, policy: str = "average") -> dict:
        return {"mean": mean, "low": mean / 2, "high": mean * 2, "nodes": nodes, "seeds": seeds, "policy": policy}

    rows = {f"{game}_{name}": row(40, 2e6) for game in tables.WITH_A_TREE for name in ("dream", "ppo_tuned")}
    rows |= {"leduc_escher": row(200, 1e6), "leduc_mmd": row(386, 2e6, 10, "current")}
    rows["leduc_nfsp"] = row(990, 2e6, 1) | {"low": None, "high": None}
    uniform = {name: {"unit": "chips", "uniform": 2.374} for name in tables.WITH_A_TREE.values()}
    monkeypatch.setattr(common, "reproduced", rows.get)
    monkeypatch.setattr(common, "stored", {"dueling_dream_ppo_exploitability": uniform}.__getitem__)
    head, _, _, *lines = tables.with_a_tree_table()
    assert head.startswith("| learner | policy | leduc_poker, chips, 2 M nodes, n 3 |")
    cells = {line.split(" | ")[0]: line.strip("| ").split(" | ")[1:] for line in lines}
    assert cells["| `dream`"] == ["average", *["0.040 (0.020 to 0.080)"] * 3]
    assert cells["| `escher`"][1] == "0.200 (0.100 to 0.400), 1.0 M"
    assert cells["| `mmd`"][:2] == ["current", "0.386 (0.193 to 0.772), n 10"]
    assert cells["| `nfsp`"][1] == "0.990, n 1"
    assert "".join(cells["| `rnad`"]).strip("| ") == ""


def test_results_of_one_command_are_not_added_to_those_of_another(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, before a sweep is read; the stored files are each of the command that writes them."""
    files = {"collect": "comparison", "trials": "comparison_trials", "matches": "comparison_matches"}
    for command, name in (files | {"curves": "comparison_curves"}).items():
        stored_files.check_form(script.RESULTS / f"{name}.json", command)
        other = script.RESULTS / f"{'comparison_curves' if command == 'collect' else 'comparison'}.json"
        out = tmp_path / "out.json"
        shutil.copy(other, out)
        env = ["--env", "kuhn_poker"] if command == "matches" else []
        assert called(script, command, tmp_path / "nowhere", *env, "--out", out) == 2
        line = f"error: {out} holds something else than these results; give another --out\n"
        assert (capsys.readouterr().err, out.read_bytes()) == (line, other.read_bytes())
