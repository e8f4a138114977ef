"""Trained players, loaded from a run, a checkpoint or a policy's file, and players by name."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import envs
from dream import algorithms
from dream.algorithms.types import Algorithm, Resources
from dream.config import renamed, settings
from dream.networks.policy import without_value
from dream.rollout.opponents import PAST_SELF, SELF
from dream.search import SearchSettings, make_search
from dream.search import names as search_names
from dream.storage import checkpoint, hub, levels, policy_file, shipped, solved
from dream.storage.checkpoint import Checkpoint
from dream.storage.policy_file import PolicyFile
from dream.storage.tree_cache import stored_tree
from envs import Game, HostPlayer, InputError, Policy, records
from envs.errors import did_you_mean, shown, unknown

Trained = Checkpoint | PolicyFile
"""A trained player on disk."""
_FEW = 3
"""Of so many games each is named."""
_NAMED = "{} is a named player, not a trained one; it can be an opponent, or play in ladders and games"
_SOURCES = {"start_from": None, "records": None, "imitated": None, "player": "random"}
"""Settings of learners that name files and players which learning alone needs, and what stands for them."""


def load_policy(reference: str | os.PathLike[str], name: str | None = None) -> Policy:
    """Loads a trained player.

    Args:
      reference: a run directory, whose latest checkpoint is meant, a checkpoint's folder, a policy's file (an
        export of this project or a documented pickle of another), hf:<owner>/<repo>/<file> for such a file on the
        Hugging Face hub, or a player that comes with the package, such as "gin_rummy/strong" (`shipped.names`).
      name: which of the learner's policies, "current" or "average"; by default the average where there is one.
    Returns:
      The Policy: `.params`, `.apply(params, view, legal)`, callable as policy(view, legal); of a network's file also
      `.outputs(observations)`, every head's output by name.
    Raises:
      InputError: no readable player there, one of another game version, or no policy of that name; or a player that is
        made for a game, a rule-based one or a search: `find_player(reference, game)` makes it.

    Example:
      >>> policy = dream.load_policy("runs/leduc", "average")
      >>> policy.game.name
      'leduc_poker'
    """
    place = place_of(reference)
    absent = not Path(place).expanduser().exists()
    if search_names.is_search(place) or (absent and _games_with(place)):
        raise InputError(
            f"{place} is made for a game and not loaded: from dream.storage.policies import find_player; "
            f"find_player({place!r}, game)"
        )
    found = find(reference)
    return policy_of(found, game_of(found), name)


def find(reference: str | os.PathLike[str]) -> Trained:
    """Finds a trained player.

    Args:
      reference: as `load_policy` takes it.
    Raises:
      InputError: nothing readable there.
    """
    if not place_of(reference):
        raise InputError("the name of a trained player is empty; it must be a run directory, a checkpoint or a file")
    if levels.is_level(str(reference)):
        if games := _games_with(str(reference)):
            raise InputError(_named_only(str(reference), games))
        levels.level(str(reference), envs.make(next(iter(levels.LEVELS))))  # says which there are
    if hub.is_reference(reference):
        return policy_file.read(hub.download(str(reference)), Path.cwd())
    if (ours := shipped.path_of(reference)) is not None:
        return policy_file.read(ours, Path.cwd())
    path = Path(reference).expanduser().absolute()
    if not path.exists():
        if games := _games_with(str(reference)):
            raise InputError(_named_only(str(reference), games))
        raise InputError(
            f"{reference} does not exist; {did_you_mean(reference, shipped.names())}it must be a run directory, a "
            f"checkpoint's folder, a policy's file or one of {', '.join(shipped.names())}"
        )
    return policy_file.read(path, path.parent) if path.is_file() else checkpoint.find(path)


def place_of(reference: object) -> str:
    """Returns a reference as a text; raises InputError for what cannot name a player."""
    if not isinstance(reference, str | os.PathLike):
        raise InputError(
            f"{shown(repr(reference))} names no player; it must be a text or a path: a run directory, a checkpoint's "
            "folder, a policy's file or a player by name"
        )
    return os.fspath(reference)


def _named_only(player: str, games: list[str]) -> str:
    """Returns what a player by name is good for, and how it is measured."""
    known = " or ".join(f"env={game}" for game in games) if len(games) <= _FEW else "env=<game>"
    return f"{_NAMED.format(player)}; it is measured where its game is given too, {known}"


def _games_with(player: str) -> list[str]:
    """Returns the games that have a player of that name."""
    found = []
    for name in envs.names():
        with contextlib.suppress(InputError):  # of a game from outside that cannot be built
            if player in by_name(envs.make(name)):
                found.append(name)
    return found


def game_of(trained: Trained) -> Game:
    """Builds the game a player was trained on.

    Raises:
      InputError: this project's game of that name has another version or other rules.
    """
    env = trained.meta["config"]["env"]
    game = envs.make(env["name"], **env.get("rules", {}))
    check_game(trained, game, payoffs=True)
    return game


def check_game(trained: Trained, game: Game, *, payoffs: bool = False) -> None:
    """Raises InputError unless the player was trained on this game, version and rules, as far as they are known.

    Args:
      trained: the player.
      game: what it is to play.
      payoffs: whether rules that change payoffs alone must be equal too, as where training goes on.
    """
    stored, wanted = trained.meta["game"], game.identity
    for part in ("name", "version"):
        if stored.get(part) != wanted[part]:
            raise InputError(
                f"{trained.path} was trained on {stored.get('name')} version {stored.get('version')}, "
                f"not on {wanted['name']} version {wanted['version']}"
            )
    rules = _rules(trained, game)
    free = frozenset() if payoffs else game.payoff_rules
    decisive = {k: v for k, v in wanted["rules"].items() if k not in free}
    other = [f"{k}={rules.get(k)!r}, not {v!r}" for k, v in decisive.items() if rules.get(k) != v]
    if other:
        raise InputError(f"{trained.path} was trained with other rules of {wanted['name']}: {'; '.join(other)}")


def _rules(trained: Trained, game: Game) -> dict[str, Any]:
    """Returns the rules that a player was trained with, as far as they are known; those of the game where none are."""
    wanted = game.identity["rules"]
    rules = trained.meta["game"].get("rules", {} if isinstance(trained, Checkpoint) else wanted)
    if rules and wanted.keys() - rules.keys():  # a rule newer than the player had its default
        return envs.make(game.name).identity["rules"] | rules
    return rules


def policies_of(trained: Trained, game: Game, name: str | None = None) -> dict[str, Policy]:
    """Restores a player's policies by name; raises InputError where they cannot be.

    Where the game pays otherwise than the one they were trained on, no value comes with them. A warning is printed
    where the one to play, `name` or else the one the learner is judged by, is an average that is not fitted yet.
    """
    found = _policies_of(trained, game, warns=name in (None, "average"))
    rules, wanted = _rules(trained, game), game.identity["rules"]
    # Rules that the game lacks are of other payoffs too, as the weights of rummy 500's shaped reward.
    if any(rules.get(name) != wanted.get(name) for name in {*game.payoff_rules, *(rules.keys() - wanted.keys())}):
        return {name: without_value(policy) for name, policy in found.items()}
    return found


def _policies_of(trained: Trained, game: Game, *, warns: bool) -> dict[str, Policy]:
    if isinstance(trained, PolicyFile):
        return {trained.card.policy: trained.make(game)}
    config = trained.meta["config"]
    # What it started or learned from, and whom it met, is of no matter to how it plays, and may be gone.
    algo = {**config["algo"], **{name: value for name, value in _SOURCES.items() if name in config["algo"]}}
    if "opponents" in algo:
        algo["opponents"] = [name if name in (SELF, PAST_SELF) else "random" for name in algo["opponents"]]
    build, _ = algorithms.read_settings(algo)
    learner = _learner(build, json.dumps(algo), json.dumps(config["network"]), game)
    if warns and learner.settle is not None:
        _warn_of_late_average(trained)
    return learner.policies(trained.restore(learner.like()))


def _warn_of_late_average(trained: Checkpoint) -> None:
    """Prints a line on stderr where a fitted average is not of the checkpoint's iteration; a run's last one is."""
    average, done = trained.meta["config"]["algo"].get("average"), trained.meta["iteration"]
    every = average.get("every") if isinstance(average, dict) else None
    if every and done % every and not trained.meta.get("settled", True):
        _warn(
            f"{trained.path}: its average policy is not of iteration {done}, as it is fitted every {every} iterations "
            "and plays uniformly before the first fit; go on with the run, or choose policy=current"
        )


@functools.lru_cache(maxsize=64)
def _warn(text: str) -> None:
    """Prints a warning, once for each text."""
    print(f"warning: {text}", file=sys.stderr, flush=True)


@functools.lru_cache(maxsize=4)
def _learner(build: Any, algo: str, network: str, game: Game) -> Algorithm:
    """Makes the learner of a recipe, once for all its runs: their policies are one function, compiled once.

    Args:
      build: the algorithm's builder, as another algorithm may have had its name before.
      algo, network: configuration nodes as JSON.
      game: what it plays.
    """
    del build
    return algorithms.make(json.loads(algo), json.loads(network), game, RESOURCES)


def policy_of(trained: Trained, game: Game, name: str | None = None) -> Policy:
    """Restores one of a player's policies; raises InputError where it cannot be."""
    return chosen_policy(policies_of(trained, game, name), name)


def report_dir(trained: Trained) -> Path:
    """Returns the folder for a report: the run directory, or the folder of a file or of a checkpoint without a run.

    For a file on the hub or of the package, which has no folder of the user's, the current one.
    """
    if isinstance(trained, PolicyFile):
        return trained.folder
    folder = trained.path.parent
    return folder.parent if folder.name == checkpoint.FOLDER else folder


def report_name(trained: Trained, policy: str) -> str:
    """Returns what names a policy in the reports of a folder: a file's own name, or policy and iteration.

    Copies of checkpoints without a run share a folder, and are called by their own names too.
    """
    if isinstance(trained, PolicyFile):
        return trained.report_name
    copy = "" if trained.path.parent.name == checkpoint.FOLDER else f"{trained.path.name}_"
    return f"{copy}{policy}_{trained.meta['iteration']}"


def chosen_name(names: Iterable[str], name: str | None = None) -> str:
    """Returns the policy meant by a name: by default the average, where the learner's guarantee is about that.

    Raises:
      InputError: there is none of that name.
    """
    names = list(names)
    if name is None:
        name = "average" if "average" in names else names[0] if len(names) == 1 else "current"
    if name not in names:
        raise unknown("policy", name, names)
    return name


def chosen_policy(policies: dict[str, Policy], name: str | None = None) -> Policy:
    """Returns a learner's policy by name; raises InputError where it has none of that name."""
    return policies[chosen_name(policies, name)]


def find_opponent(reference: str, game: Game) -> Policy | HostPlayer:
    """Returns an opponent for a match: a player as in `find_player`, or another library's, "<library>:<name>".

    Raises:
      InputError: there is none, or it does not play the game.
    """
    return envs.make_host_player(reference, game) if envs.is_foreign(reference) else find_player(reference, game)


def player_names(game: Game) -> list[str]:
    """Returns the players that need no training, by name: rule-based ones, and `solved` where the tree is small."""
    return [*envs.bot_names(game), *([solved.NAME] if solved.plays(game) else [])]


def by_name(game: Game) -> list[str]:
    """Returns the players that a game's name is enough for: those of `player_names`, and its levels."""
    return [*player_names(game), *levels.names(game)]


def find_player(reference: str, game: Game) -> Policy:
    """Returns a player: one of `player_names`, a trained one as `load_policy` finds it, a level, or a search with one.

    A search player is named `search:<player>[:<worlds>]`, a level `level:<number>`.

    Raises:
      InputError: neither, or a player of another game.
    """
    if envs.is_foreign(reference):
        raise InputError(f"{reference} plays on the host; it can only be the opponent of a match")
    if reference in envs.bot_names(game):
        return envs.make_bot(reference, game)
    if reference in player_names(game):
        return solved.make(game)
    if search_names.is_search(reference):
        place = search_names.policy_in(reference)
        certain = levels.player_of(place, game)
        if certain in envs.bot_names(game) and certain != "random":
            raise InputError(
                f"{reference} has nothing to compare, as {certain} is certain of its actions; name a trained player"
            )
        return searching(reference, find_player(place, game), game)
    if levels.is_level(reference):
        level = levels.level(reference, game)
        return levels.with_mistakes(find_player(level.player, game), level.mistakes)
    by_place = hub.is_reference(reference) or shipped.path_of(reference) is not None
    if not reference or (not by_place and not Path(reference).expanduser().exists()):
        if new := renamed.VALUES["opponents"].get(reference):
            raise InputError(f"opponent {reference} is now {new}: the learner's own past, in algo.opponents alone")
        names = [*by_name(game), *shipped.names(game.name)]
        raise InputError(
            f"unknown player {reference!r}; {did_you_mean(reference, names)}it must be one of {', '.join(names)}, the "
            "path of a run, a checkpoint or a policy's file, or search:<any of these>"
        )
    trained = find(reference)
    check_game(trained, game)
    return policy_of(trained, game)


def at_checkpoint(reference: str, game: Game) -> str:
    """Returns a reference that means the same player while a run goes on: to its newest checkpoint, where it names one.

    A name of `by_name` is that player, whatever folders there are.

    Raises:
      InputError: a folder without a readable checkpoint.
    """
    place = search_names.policy_in(reference)
    if not place or place in by_name(game) or not Path(place).expanduser().is_dir():
        return reference
    return _with_place(reference, place, find(place).path)


def absolute(reference: str, game: Game) -> str:
    """Returns a reference that means the same player in every working folder, where it names one by a path."""
    place = search_names.policy_in(reference)
    if not place or place in by_name(game) or not (path := Path(place).expanduser()).exists():
        return reference
    return _with_place(reference, place, path.absolute())


def _with_place(reference: str, place: str, path: Path) -> str:
    """Returns a reference with a path for the place it names, which may be of a player that searches."""
    before = search_names.PREFIX if search_names.is_search(reference) else ""
    return f"{before}{path}{reference.removeprefix(before + place)}"


def places_of(names: Iterable[str], game: Game, paths: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Returns what `at_checkpoint` gives for each name.

    Args:
      names: of players.
      game: what they play.
      paths: where those were found whose names are relative paths; used where nothing is there any more.
    Raises:
      InputError: two names are of the same player, or a folder holds no readable checkpoint.
    """
    there = {name: paths[name] if name in paths and absolute(name, game) == name else name for name in names}
    places, known = {name: at_checkpoint(place, game) for name, place in there.items()}, {}
    for name, place in places.items():
        path = Path(place).expanduser()
        is_path = place not in by_name(game) and path.exists()
        first = known.setdefault(path.resolve() if is_path else place, name)
        if first != name:
            raise InputError(f"{first!r} and {name!r} are the same player; name each once")
    return places


def searching(reference: str, policy: Policy, game: Game) -> Policy:
    """Returns the player that a reference means, of the policy in it: a search with it where it names one.

    Raises:
      InputError: a game that cannot be searched, or a number of worlds out of range.
    """
    if not search_names.is_search(reference):
        return policy
    worlds = search_names.parse(reference).worlds
    chosen = {} if worlds is None else {"worlds": worlds}
    return make_search(policy, game, settings.read(SearchSettings, chosen, "search"))


def find_records(path: str, game: Game) -> list[records.Record]:
    """Reads a file of recorded games, or of OpenSpiel's histories.

    Raises:
      InputError: it cannot be read, or a game in it is another one or has other rules; those of payoffs may differ.
    """
    found = records.read(Path(path).expanduser(), game)
    known: dict[tuple[str, str], dict] = {}
    for one in found:
        key = one.game, repr(sorted(one.rules.items(), key=lambda item: item[0]))
        identity = known.setdefault(key, records.game_of(one).identity)
        same = {**game.identity, "rules": _decisive(game, game.identity["rules"])}
        if {**identity, "rules": _decisive(game, identity["rules"])} != same:
            raise InputError(f"{one.place}: of {_described(identity)}, not of {_described(game.identity)}")
    return found


def _decisive(game: Game, rules: dict) -> dict:
    return {name: value for name, value in rules.items() if name not in game.payoff_rules}


def _described(identity: dict) -> str:
    rules = ", ".join(f"{name}={value}" for name, value in identity["rules"].items())
    return f"{identity['name']} version {identity['version']}{f' ({rules})' if rules else ''}"


RESOURCES = Resources(find_player, stored_tree, find_records)
"""What learners of this project are built with: players and records from disk and hub, trees from the cache."""
