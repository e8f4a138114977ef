"""A ladder's folder: what was asked for there, so that the folder alone is enough to go on, and who played."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import envs
from dream.commands.folders import check_can_be_folder
from dream.config.compose import as_literal, default_option, given_values
from dream.search import names as search_names
from dream.storage import files, hub, shipped
from dream.storage.lock import FILE as LOCK
from dream.storage.policies import by_name, find
from envs import InputError

SETTINGS = "ladder_settings.json"
BY_CODE = ", source "
"""What stands before the digest of a player's code, in what a player is."""
_ASKED = "asked"
"""In the settings: what the last command asked for; folders of older versions have none."""
_PATHS = "paths"
"""Beside it: where players were found whose names are relative paths, for commands in another working folder."""


def completed(overrides: list[str]) -> list[str]:
    """Adds to a command's overrides the settings of the folder that it goes on in, or else its players' game.

    Args:
      overrides: of the command line; what they give stands.
    Raises:
      InputError: they do not parse, the folder is of another game or its settings are damaged, or the players are of
        several games.
    """
    given = given_values(overrides)
    if isinstance(folder := given.get("run_dir"), str) and folder:
        path = Path(folder).expanduser().absolute()
        if (path / SETTINGS).is_file() and (asked := _stored(path).get(_ASKED)):
            return _asked_for(asked, given, path) + overrides
    if "env" in given or "env.name" in given:
        return overrides
    return _game_of_players(given.get("players"), given) + overrides


def asked(env: Mapping[str, Any], settings: Mapping[str, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    """Returns what a folder keeps of a command's settings.

    Args:
      env: the game's name and rules.
      settings: the others, by name.
      paths: what `paths_of` is to give.
    """
    return {_ASKED: {"env": dict(env), **settings}, _PATHS: dict(paths)}


def paths_of(folder: Path) -> dict[str, str]:
    """Returns where a folder's players were found whose names are relative paths; {} in a new folder."""
    stored = _stored(folder).get(_PATHS) if (folder / SETTINGS).is_file() else None
    known = stored if isinstance(stored, dict) else {}
    return {name: path for name, path in known.items() if isinstance(path, str)}


def _asked_for(asked: Mapping[str, Any], given: Mapping[str, Any], folder: Path) -> list[str]:
    """Returns the overrides for what was asked for in a folder and is not given."""
    env = asked["env"]
    if (game := given.get("env", env["name"])) != env["name"]:
        raise InputError(f"run_dir={folder} holds a ladder with env={env['name']}, not {game}; choose a new folder")
    others = [f"{name}={as_literal(value)}" for name, value in asked.items() if name != "env" and name not in given]
    return [*_game(env, given), *others]


def _game(env: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Returns the overrides for a game and its rules, without what is given."""
    rules = {f"env.rules.{rule}": value for rule, value in env.get("rules", {}).items()}
    named = [] if "env" in given else [f"env={env['name']}"]
    return named + [f"{rule}={as_literal(value)}" for rule, value in rules.items() if rule not in given]


def _game_of_players(players: Any, given: Mapping[str, Any]) -> list[str]:
    """Returns the overrides for the game that all trained players among some were trained on; none without any."""
    names = players if isinstance(players, list) else []
    trained = {name: _env_of(name) for name in names if isinstance(name, str)}
    trained = {name: env for name, env in trained.items() if env is not None}
    if not trained:
        return []
    (first, env), *others = trained.items()
    for name, other in others:
        if other["name"] != env["name"]:
            raise InputError(
                f"players: {first} was trained on {env['name']}, {name} on {other['name']}; all must be of one game"
            )
    agree = all(other == env for _, other in others)
    return _game(env if agree else {"name": env["name"]}, given)


def _env_of(name: str) -> dict[str, Any] | None:
    """Returns the game that a player was trained on, its name and rules but for payoffs; None without training.

    A name of a player of the default game, or of the game of the folder of that name, is that player.
    """
    place = search_names.policy_in(name)
    is_reference = hub.is_reference(place) or shipped.path_of(place) is not None
    if not place or not (is_reference or Path(place).expanduser().exists()):
        return None
    if place in by_name(envs.make(default_option("ladder", "env"))):
        return None
    try:
        env = find(place).meta["config"]["env"]
        game = envs.make(env["name"], **env.get("rules", {}))
    except InputError:  # it is said where the player is loaded
        return None
    if place in by_name(game):
        return None
    decisive = {rule: value for rule, value in env.get("rules", {}).items() if rule not in game.payoff_rules}
    return {"name": env["name"], "rules": decisive}


def _stored(folder: Path) -> dict[str, Any]:
    """Returns what a folder's settings say; raises InputError where they cannot be read."""
    try:
        stored = files.decoded((folder / SETTINGS).read_bytes())
        env = stored[_ASKED]["env"] if _ASKED in stored else {"name": ""}
        if not isinstance(stored["players"], dict) or not isinstance(env["name"], str):
            raise ValueError("not as a ladder writes it")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder / SETTINGS} cannot be read ({error}); choose a new run_dir") from error
    return stored


def check_folder(folder: Path, identity: Mapping[str, Any], sources: Mapping[str, str]) -> None:
    """Raises InputError unless a folder is new, empty, or holds a ladder of the same settings and players.

    Args:
      folder: of the ladder.
      identity: what results in one folder must agree in.
      sources: what each player is, by name.
    """
    check_can_be_folder(folder, f"run_dir={folder}")
    if not folder.exists() or all(path.name == LOCK for path in folder.iterdir()):
        return
    if not (folder / SETTINGS).is_file():
        raise InputError(f"run_dir={folder} holds something other than a ladder; choose a new folder")
    stored = _stored(folder)
    for part, wanted in identity.items():
        if stored.get(part) == wanted:
            continue
        mend = "choose a new folder"
        if part == "block":
            mend = f"go on with block={stored.get(part)} and as many games at least, or {mend}"
        raise InputError(f"run_dir={folder} holds a ladder with {_difference(part, stored.get(part), wanted)}; {mend}")
    for name, source in sources.items():
        there = stored["players"].get(name, source)
        if BY_CODE in source and BY_CODE not in there:
            raise InputError(
                f"run_dir={folder} holds results of {name} that do not say by which code it played, as those of older "
                "versions; choose a new folder"
            )
        if there != source:
            raise InputError(
                f"run_dir={folder} holds results of {name} as a {there}, which now is a {source}; choose a new folder"
            )


def _difference(part: str, stored: Any, wanted: Any) -> str:
    """Returns a setting with the value that is stored and the one that is wanted; of games the first difference."""
    if part != "game" or not isinstance(stored, Mapping):
        return f"{part}={stored}, not {wanted}"
    if stored.get("name") != wanted["name"]:
        return f"env={stored.get('name')}, not {wanted['name']}"
    if stored.get("version") != wanted["version"]:
        return f"version {stored.get('version')} of {wanted['name']}, not {wanted['version']}"
    before, now = dict(stored.get("rules") or {}), wanted["rules"]
    rule = next(rule for rule in [*now, *before] if before.get(rule) != now.get(rule))
    return f"env.rules.{rule}={before.get(rule)}, not {now.get(rule)}"
