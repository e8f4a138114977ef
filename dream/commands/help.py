"""What `--help` and `--version` print, without JAX: commands, groups with their options, settings with comments."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import platform
import re
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

from dream.commands.closed_pipe import while_somebody_reads
from envs.errors import InputError

_PACKAGE = "dream-rummy"
_COLUMN = 34
"""The column where a setting's text begins."""
_KEY = re.compile(r"^(\s*)([A-Za-z_]\w*):(?:\s+(?!#)(.*?))?(?:\s+#\s*(.*))?$")


@dataclasses.dataclass(frozen=True)
class Command:
    """A command as its help describes it.

    Attributes:
      config: its primary file in conf/, without the ending.
      summary: what it does, one line.
      text: the same in a few sentences.
      sweeps: whether -m runs it for several values of its settings.
    """

    config: str
    summary: str
    text: str
    sweeps: bool = True


COMMANDS = {
    "run": Command(
        "config",
        "train a learner on a game",
        "Trains one learner on one game. The run directory keeps checkpoints, metrics.jsonl (one line per iteration) "
        "and evaluation.json. Ctrl-C, SIGTERM or a closed terminal saves the run and exits; resume=<run> continues it. "
        "With -m the commas in the settings define a sweep: jobs run one after the other, a failed job does not end "
        "the others, and each job returns its objective to Hydra's sweepers (lower is better): the exploitability of "
        "the reported policy where it is exact, else minus the points per hand against the first opponent; a failed "
        "job returns infinity.",
    ),
    "evaluate": Command(
        "evaluate",
        "play a trained policy against an opponent",
        "Plays a match of mirrored deals between a trained policy and an opponent. Prints win rate and points per hand "
        "with 95 % intervals and writes them to evaluations/ in the run directory, or in the current folder for a "
        "player that is not a run. With env= the measured player is a rule-based one, by name. With -m the table at "
        "the end has minus the points per hand of each match. With records= it plays nothing: it reads recorded "
        "rounds, also of people, and reports what each player won.",
    ),
    "exploit": Command(
        "exploit",
        "measure the exploitability of a policy",
        "Computes exploitability: exact where the game allows it, else a lower bound from a learned or a local "
        "best response. Writes exploitability/<method>_<policy>_<iteration>.json in the run directory. With -m the "
        "commas in the settings define several jobs.",
    ),
    "ladder": Command(
        "ladder",
        "rate players by cross-play",
        "Plays every pair of players and rates the players. Without env= the game is that of the runs among them. "
        "run_dir=<folder> alone continues an interrupted ladder. With -m the commas in the settings define several "
        "jobs.",
    ),
    "play": Command(
        "play",
        "play against an agent in the browser",
        "Starts a server on this machine and opens its page: people and players at one table, hints, beliefs and the "
        "review of every round. The address contains a token; whoever knows it can play. Ctrl-C stops the server.",
        sweeps=False,
    ),
    "export": Command(
        "export",
        "write a policy as safetensors with a JSON card",
        "Writes a trained policy to a safetensors file with a JSON card, which the other commands read. With -m the "
        "commas in the settings define several jobs.",
    ),
}


def answered(command: str | None, arguments: list[str]) -> bool:
    """Prints help or the version where the arguments ask for it.

    Args:
      command: a key of COMMANDS; None: the list of commands.
      arguments: of the command line; overrides in them choose the groups that help describes.
    Returns:
      Whether it printed something; wrong overrides end the process with code 2.
    """
    if "--version" in arguments:
        print(version())
        return True
    if not {"-h", "--help"} & set(arguments):
        return False
    try:
        overrides = [text for text in arguments if not text.startswith("-")]
        text = overview() if command is None else command_help(command, overrides)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(2)
    with while_somebody_reads():
        print(text)
    return True


def version() -> str:
    """Returns name, version, JAX's version and Python's in one line."""
    return f"{_PACKAGE} {_installed(_PACKAGE)} · jax {_installed('jax')} · Python {platform.python_version()}"


def overview() -> str:
    """Returns the commands, a line for each."""
    lines = [f"  python -m dream {name:<10}{command.summary}" for name, command in COMMANDS.items()]
    end = "Each has --help; python -m dream run and python -m dream.run are the same."
    return "\n".join([version(), "", "commands:", *lines, "", end])


def command_help(name: str, overrides: list[str]) -> str:
    """Returns a command's help.

    Args:
      name: a key of COMMANDS.
      overrides: the settings shown are those that follow from them.
    Raises:
      InputError: the overrides do not compose.
    """
    from dream.config.compose import compose_config, config_dir, groups_of

    command, conf = COMMANDS[name], config_dir()
    groups = groups_of(command.config)
    _load_learners(groups, overrides)
    composed = compose_config(command.config, overrides)
    primary = conf / f"{command.config}.yaml"
    files = [(primary, "")] + [
        (conf / group / f"{option}.yaml", group.replace("/", "."))
        for group, option in composed.choices.items()
        if (conf / group / f"{option}.yaml").is_file()
    ]
    comments, blocks = _comments(files)
    width = min(shutil.get_terminal_size((110, 0)).columns, 130)
    usage = f"usage: python -m dream.{name} [setting=value ...]{' [-m]' * command.sweeps} [-h] [--version]"
    parts = [usage, "\n".join(textwrap.wrap(command.text, width))]
    if examples := _examples(primary):
        parts.append("\n".join(["examples:", *(f"  {line}" for line in examples)]))
    if groups:
        chosen = composed.choices
        lines = [line for group, names in groups.items() for line in _group(conf / group, names, chosen[group], width)]
        parts.append("\n".join(["groups, chosen by group=option:", *lines]))
    node = _plain(composed.node)
    lines = [line for path, value in _flat(node, "", blocks) for line in _row(path, value, comments.get(path), width)]
    parts.append("\n".join(["settings, with the values they have now (??? must be given):", *lines]))
    if "env" in groups:
        chosen = "algo=ppo env=leduc_poker" if "algo" in groups else "env=leduc_poker"
        parts.append(
            f"Other choices have other settings: python -m dream.{name} --help {chosen}\n"
            "Hydra's own flags: --hydra-help; --cfg job prints the whole configuration as YAML."
        )
    return "\n\n".join(parts)


def _load_learners(groups: dict[str, list[str]], overrides: list[str]) -> None:
    """Imports the learners, and so JAX, where an option has no file: its settings and the sizes for its game need them.

    Args:
      groups: a command's groups with the options that have a file.
      overrides: of the command line.
    """
    chosen = [text.partition("=") for text in overrides]
    if "algo" in groups and any(option not in groups.get(group, [option]) for group, _, option in chosen):
        importlib.import_module("dream.algorithms")


def _installed(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def _plain(node: Any) -> dict[str, Any]:
    from omegaconf import OmegaConf

    return OmegaConf.to_container(node, resolve=False)


def _comments(files: list[tuple[Path, str]]) -> tuple[dict[str, str], set[str]]:
    """Returns the comment of each setting, and the mappings that a file writes as a block, a setting a line.

    Args:
      files: YAML files and the package of each; the first that comments on a setting is heard.
    """
    comments: dict[str, str] = {}
    blocks: set[str] = set()
    for file, package in files:
        text = file.read_text()
        if "@package _global_" in text:
            package = ""
        found, opened = _read_comments(text, package)
        blocks |= opened
        comments = found | comments
    return comments, blocks


def _read_comments(text: str, package: str) -> tuple[dict[str, str], set[str]]:
    """Reads one YAML file, where a comment follows its key and goes on in indented lines of nothing else."""
    comments: dict[str, str] = {}
    blocks: set[str] = set()
    open_keys = [(-1, package)] if package else []
    path = ""
    for line in text.splitlines():
        if path in comments and (more := re.match(r"^\s+#\s*(.*)$", line)):
            comments[path] += f" {more.group(1)}"
        if not (match := _KEY.match(line)):
            continue
        indent, key, value, comment = len(match.group(1)), *match.groups()[1:]
        while open_keys and open_keys[-1][0] >= indent:
            open_keys.pop()
        path = ".".join([*(name for _, name in open_keys), key])
        open_keys.append((indent, key))
        if comment:
            comments[path] = comment
        if not value:
            blocks.add(path)
    return comments, blocks


def _examples(primary: Path) -> list[str]:
    """Returns the commands in the comment that a primary file begins with."""
    head = re.match(r"(#.*\n)*", primary.read_text())
    return re.findall(r"python -m dream\.(?!.*\[overrides\]).*", head.group(0)) if head else []


def _group(folder: Path, options: list[str], chosen: str, width: int) -> list[str]:
    """Returns the lines of a group: its options with the first sentence of each one's file, the chosen one starred.

    Options of installed packages come last, with the name of the package.
    """
    from dream.config import registered

    abouts = {option: _first_sentence(folder / f"{option}.yaml") for option in options}
    installed = registered.installed(folder.name)
    abouts |= {option: f"Of the package {installed[option]}." for option in sorted(installed) if option not in options}
    lines = [f"  {folder.name}"]
    for option, about in abouts.items():
        lines += _in_columns(f"  {'*' if option == chosen else ' '} {option}", about, width)
    return lines


def _first_sentence(file: Path) -> str:
    """Returns the first sentence of the comment that an option's file begins with."""
    head = re.match(r"(#.*\n)*", file.read_text()).group(0).splitlines()
    about = " ".join(line.lstrip("# ") for line in head if "@package" not in line and "python -m" not in line)
    return re.split(r"(?<=\.) (?=[A-Z])", about)[0]


def _flat(node: dict[str, Any], prefix: str, blocks: set[str]) -> list[tuple[str, Any]]:
    """Returns the settings in order, blocks opened and announced by (path, ...), other mappings as one setting."""
    found: list[tuple[str, Any]] = []
    for key, value in node.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and value and (path in blocks or not prefix):
            found += [(path, ...), *_flat(value, f"{path}.", blocks)]
        else:
            found.append((path, value))
    return found


def _row(path: str, value: Any, comment: str | None, width: int) -> list[str]:
    """Returns the lines of a setting; a block has one only where there is something to say about it."""
    if value is ...:
        return _in_columns(f"  {path}:", comment, width) if comment else []
    return _in_columns(f"  {path}={_text(value)}", comment or "", width)


def _in_columns(left: str, text: str, width: int) -> list[str]:
    """Returns a name with its text on the right, wrapped, or below it where the name is long."""
    wrapped = textwrap.wrap(text, max(width - _COLUMN, 30)) or [""]
    if len(left) >= _COLUMN and text:
        return [left, *(" " * _COLUMN + line for line in wrapped)]
    first, *others = wrapped
    return [f"{left:<{_COLUMN}}{first}".rstrip(), *(" " * _COLUMN + line for line in others)]


def _text(value: Any) -> str:
    """Returns a value as an override would give it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
