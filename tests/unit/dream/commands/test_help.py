"""Does help show what can be set, from the files that set it, and without starting JAX?"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest
from omegaconf import DictConfig, OmegaConf

import dream.__main__
from dream.algorithms import ENTRY_POINTS
from dream.commands.help import COMMANDS, answered, command_help
from dream.config import registered
from dream.config.compose import compose_config, config_dir
from envs.registry import GROUP


def _keys(node: DictConfig, prefix: str = "") -> set[str]:
    """Returns the paths of all settings; a mapping counts as its own keys."""
    found = set()
    for key in node:
        value = None if OmegaConf.is_missing(node, key) else node._get_node(key)
        found |= _keys(value, f"{prefix}{key}.") if isinstance(value, DictConfig) and len(value) else {f"{prefix}{key}"}
    return found


def _comment(file: str, key: str) -> str:
    """Returns what a file in conf/ says about a key, which has to fit into a line."""
    (line,) = re.findall(rf"^{key}:.*# (.*)$", (config_dir() / f"{file}.yaml").read_text(), re.MULTILINE)
    return line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_setting_is_shown(name: str) -> None:
    """With its path and value as an override, a mapping in one line for what is in it; and -m where it is explained."""
    text = command_help(name, [])
    usage, about = text.split("\n\n")[:2]
    assert ("[-m]" in usage) == ("With -m" in " ".join(about.split())) == (name != "play")
    for key in _keys(compose_config(COMMANDS[name].config, []).node):
        parts = key.split(".")
        paths = [".".join(parts[:n]) for n in range(1, len(parts) + 1)]
        assert any(f"\n  {path}=" in text for path in paths), key


def test_the_settings_are_those_of_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The algorithm's and the game's that were named, with the comments of their own files."""
    monkeypatch.setenv("COLUMNS", "200")
    text = command_help("run", ["algo=ppo", "env=leduc_poker"])
    lines = {line.split("=")[0].strip(): line for line in text.splitlines()}
    assert "algo.clip_epsilon" in lines
    assert lines["algo.clip_epsilon"].endswith(_comment("algo/ppo", "clip_epsilon"))
    assert "algo.temperature" not in lines
    assert "  env.name=leduc_poker" in text
    assert "  * ppo  " in text


def test_values_are_the_composed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a preset changes is shown as it will be, with the comment of the file that it changes."""
    monkeypatch.setenv("COLUMNS", "200")
    text = command_help("run", ["preset=tiny", "seed=7"])
    (line,) = [line for line in text.splitlines() if line.startswith("  iterations=")]
    assert line.startswith("  iterations=4 ")
    assert line.endswith(_comment("config", "iterations"))
    assert "\n  seed=7 " in text


def test_groups_are_shown_with_their_options() -> None:
    """Each option has what its file begins with; groups that follow from others are not a user's."""
    text = command_help("run", [])
    for group in ("algo", "env", "network", "preset", "experiment"):
        assert f"\n  {group}\n" in text
        for file in (config_dir() / group).glob("*.yaml"):
            (line,) = [
                line
                for line in text.splitlines()
                if line[:4].strip() in ("", "*") and line[4:].split()[:1] == [file.stem]
            ]
            assert len(line.split()) > 2, line
    assert "algo_env" not in text
    assert "${" not in text


def test_a_wrong_override_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """As it would be without --help."""
    with pytest.raises(SystemExit) as left:
        answered("run", ["--help", "algo=pppo"])
    out, err = capsys.readouterr()
    assert (left.value.code, out, err.count("\n")) == (2, "", 1)
    assert "did you mean 'ppo'" in err


def test_the_commands_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """By `python -m dream` alone; a misspelt one is named."""
    monkeypatch.setattr(sys, "argv", ["dream"])
    dream.__main__.main()
    listed = capsys.readouterr().out
    for name, command in COMMANDS.items():
        (line,) = [line for line in listed.splitlines() if command.summary in line]
        assert line.split()[:4] == ["python", "-m", "dream", name]
    monkeypatch.setattr(sys, "argv", ["dream", "evalute", "games=4"])
    with pytest.raises(SystemExit) as left:
        dream.__main__.main()
    assert left.value.code == 2
    assert "did you mean 'evaluate'" in capsys.readouterr().err


OUTSIDE = """
import dataclasses
from dream.config.settings import number
from envs.kuhn_poker import KuhnPoker

@dataclasses.dataclass(frozen=True)
class Peek(KuhnPoker):
    name = "peek"

@dataclasses.dataclass(frozen=True)
class IdleConfig:
    name: str = "idle"
    rounds: int = number(10, 1)

def make(*given):
    raise NotImplementedError
"""
OFFERED = """
[dream_rummy.games]
peek = outside:Peek
[dream_rummy.algorithms]
idle = outside:IdleConfig
"""
SCRIPT = """
import sys
import importlib
import dream.__main__
for text in ("--version", "--help", "run -h", "ladder --help env=leduc_poker", "export --version"):
    sys.argv = ["dream", *text.split()]
    dream.__main__.main()
for name in ("run", "evaluate", "exploit", "ladder", "export"):
    sys.argv = [name, "--help"]
    importlib.import_module(f"dream.{name}").main()
assert "jax" not in sys.modules and "haiku" not in sys.modules, "JAX was imported"
for text in ("run --help env=peek algo=ppo", "run --help env=peek algo=idle"):
    print("from outside")
    sys.argv = ["dream", *text.split()]
    dream.__main__.main()
import jax._src.xla_bridge
assert not jax._src.xla_bridge.backends_are_initialized(), "a backend was started"
"""


@pytest.fixture
def outside(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder in which a package with a game and a learner is installed."""
    (tmp_path / "outside.py").write_text(OUTSIDE)
    about = tmp_path / "outside-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(OFFERED)
    return tmp_path


def test_no_jax_is_imported(repo: pathlib.Path, outside: pathlib.Path) -> None:
    """For help and version of every command; options from outside are listed, and chosen start no backend."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(outside), str(repo)]), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plain, ppo, idle = done.stdout.split("from outside\n")
    assert plain.count("usage: python -m dream.") == 7
    name, version, jax, _, python, _ = (*plain.splitlines()[0].replace(" · ", " ").split(), "")[:6]
    assert (name, jax, python) == ("dream-rummy", "jax", "Python")
    assert version[0].isdigit()
    for option in ("peek", "idle"):
        assert re.search(rf"^    {option} +Of the package outside\.$", plain, re.MULTILINE)
    assert "\n  * peek " in ppo
    assert re.search(r"^  algo\.batch_size=512 ", ppo, re.MULTILINE)
    assert re.search(r"^  network\.hidden=\[64,64\] ", ppo, re.MULTILINE)
    assert "\n  * idle " in idle
    assert "\n  algo.rounds=10\n" in idle


def test_packages_are_found_by_the_groups_that_games_and_algorithms_name() -> None:
    """Help reads the entry points without the modules that own these names."""
    assert registered.ENTRY_POINTS == {"env": GROUP, "algo": ENTRY_POINTS}
