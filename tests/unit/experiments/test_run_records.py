"""What a run directory says of its run: what it was given at its end, by whom, and which runs belong together."""

from __future__ import annotations

import importlib
import pathlib
import shlex
from typing import Any

import pytest
from run_folder import write_config, write_sittings
from script_support import called
from scripting import run_records as script

from envs import InputError


def _made(folder: pathlib.Path, *commands: str, choices: dict[str, str] | None = None, **changed: Any) -> pathlib.Path:
    """A run of CFR+ on mini gin, with a sitting for each command."""
    rules = {"name": "mini_gin_rummy", "rules": {"preset": "4x2", "gin_bonus": 25}}
    usual = {"env": rules, "algo__average_power": 1.0, "network__hidden": [64, 64], "eval__opponents": []}
    write_config(folder, **usual | changed)
    write_sittings(folder, *commands or ("run.py",), choices=choices)
    return folder


def test_a_job_of_a_sweep_has_its_own_overrides(tmp_path: pathlib.Path) -> None:
    """Those of its configuration, not the choices of the sweep; groups by the option that was chosen."""
    command = "run.py -m env=kuhn_poker,mini_gin_rummy algo=cfr_plus seed=0,1 iterations=4,5 run_dir=x eval.every=2"
    run = _made(tmp_path / "1", command, choices={"env": "mini_gin_rummy", "algo": "cfr_plus"}, seed=1)
    assert script.overrides(run) == ["env=mini_gin_rummy", "algo=cfr_plus", "seed=1", "iterations=4", "eval.every=2"]


def test_a_run_that_went_on_has_what_it_ended_with(tmp_path: pathlib.Path) -> None:
    """A later value in the place of the first one, new ones after; every sitting's commit and overrides are kept."""
    commands = (
        "run.py algo=cfr_plus iterations=4 algo.average_power=1",
        "run.py resume=x iterations=8 budget.nodes=1e6",
    )
    run = _made(tmp_path / "run", *commands, iterations=8, budget__nodes=1e6)
    found = script.origin(run)
    assert found["overrides"] == ["algo=cfr_plus", "iterations=8", "algo.average_power=1", "budget.nodes=1e6"]
    assert found["git_commit"] == "c0"
    (later,) = found["resumed"]
    assert (later["git_commit"], later["overrides"]) == ("c1", ["iterations=8", "budget.nodes=1e6"])
    assert "resumed" not in script.origin(_made(tmp_path / "once", commands[0]))


def test_values_are_in_hydras_grammar(tmp_path: pathlib.Path) -> None:
    """Lists and words that need quotes come back as they were; what was given in quotes, or refers, stays."""
    words = ["run.py", "-m", "eval.opponents=[random,greedy],[a b]", "algo.x=${seed}", "name='a=b','c'"]
    run = _made(tmp_path / "run", shlex.join(words), eval__opponents=["random", "greedy"], algo__x=0, name="a=b")
    assert script.overrides(run) == ["eval.opponents=[random,greedy]", "algo.x=${seed}", 'name="a=b"']
    assert script._parsed('name="a=b"').value() == "a=b"


def test_runs_that_do_not_belong_together_are_refused(tmp_path: pathlib.Path) -> None:
    """Other rules, another recipe, another budget, the same seed and the same directory: each in one line."""
    first = script.read_run(_made(tmp_path / "first"))
    second = script.read_run(_made(tmp_path / "second", seed=1))
    script.check_distinct([first, second])
    script.check_alike([first, second])
    for changed, message in (
        ({"env__rules": {"preset": "4x2", "gin_bonus": 200}}, "another game: rules.gin_bonus is 25 and 200"),
        ({"algo__average_power": 2.0}, "another recipe: algo.average_power is 1.0 and 2.0"),
        ({"network__hidden": [32]}, r"another recipe: network.hidden is \[64, 64\] and \[32\]"),
        ({"iterations": 5}, "another budget: iterations is 4 and 5"),
        ({"budget__nodes": 7}, "another budget: budget.nodes is None and 7"),
    ):
        other = script.read_run(_made(tmp_path / str(message), **changed))
        with pytest.raises(InputError, match=message):
            script.check_alike([first, other])
    with pytest.raises(InputError, match="are both seed 0 of cfr_plus on mini_gin_rummy 4x2"):
        script.check_distinct([first, script.read_run(_made(tmp_path / "copy"))])
    with pytest.raises(InputError, match="given twice"):
        script.check_paths([tmp_path / "first", tmp_path / "second" / ".." / "first"])


def test_a_run_may_lack_settings_that_came_later(tmp_path: pathlib.Path) -> None:
    """They had their defaults then, those of a network too; another value is another run."""
    run = write_config(tmp_path / "run", network__hidden=[64, 64])
    asked = ["env=kuhn_poker", "algo=cfr_plus", "iterations=4"]
    script.check_asked(run, asked)
    for more, message in (
        ("network.log_window=3", "network.log_window is None and 3"),
        ("algo.average_power=2", r"algo.average_power is 1.0 and 2.0"),
        ("seed=2", "seed is 0 and 2"),
    ):
        with pytest.raises(InputError, match=f"run is not what was asked for: {message}; ask for what it is"):
            script.check_asked(run, [*asked, more])


def test_a_folder_that_is_no_run_is_named(tmp_path: pathlib.Path) -> None:
    """Without a configuration, with one of something else, and with a damaged record of versions."""
    with pytest.raises(InputError, match=r"nowhere holds no config\.yaml"):
        script.read_run(tmp_path / "nowhere")
    (tmp_path / "config.yaml").write_text("a: 1")
    with pytest.raises(InputError, match="lacks env"):
        script.read_run(tmp_path)
    run = _made(tmp_path / "run")
    (run / "versions.json").write_text("{")
    with pytest.raises(InputError, match=r"versions\.json is damaged"):
        script.overrides(run)


def test_a_damaged_result_is_named(tmp_path: pathlib.Path) -> None:
    """A result file that an editor cut is no traceback, and one that is not there holds nothing."""
    path = tmp_path / "result.json"
    assert script.stored_result(path) == {}
    path.write_text('{"row": 1')
    with pytest.raises(InputError, match=r"result\.json is damaged"):
        script.stored_result(path)


_EXPERIMENTS = pathlib.Path(script.__file__).parents[1]
_FIRST = {"comparison": ["collect", "runs"]}
"""What a script is given before --out, if it would not read that without."""


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in _EXPERIMENTS.glob("*.py") if 'add_argument("--out"' in path.read_text())
)
def test_a_result_that_cannot_be_written_is_refused_first(
    name: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any work: a folder, and a file where a folder would have to be."""
    (tmp_path / "file").touch()
    for out, message in ((tmp_path, "is a folder; it must be a file"), (tmp_path / "file" / "x.json", "is a file")):
        assert called(importlib.import_module(name), *_FIRST.get(name, ()), "--out", out) == 2
        assert message in capsys.readouterr().err
