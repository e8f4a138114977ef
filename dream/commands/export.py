"""The export command's work: a policy as one safetensors file with a JSON card, readable without this project."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from omegaconf import DictConfig, ListConfig, OmegaConf

from dream.config import settings
from dream.config.compose import Composed
from dream.storage import checkpoint, policy_file
from dream.storage.card import COMPANY, parse, policy_like
from dream.storage.checkpoint import Checkpoint
from dream.storage.files import decoded, write_bytes, write_json, writing
from dream.storage.foreign.networks import check_arrays
from dream.storage.policies import PolicyFile, Trained, chosen_name, find, game_of, policies_of, report_dir
from dream.storage.policy_file import SUFFIX, Card, named, to_bytes, with_checksum
from envs import Game, InputError, Policy


@dataclasses.dataclass(frozen=True)
class ExportConfig:
    """Settings of `python -m dream.export`."""

    checkpoint: str
    out: str | None = None
    policy: str | None = None


@dataclasses.dataclass(frozen=True)
class Export:
    """What is to be written, and where."""

    card: Card
    arrays: dict[str, np.ndarray]
    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """What is written."""
        return (self.path, self.path.with_suffix(".json"))


def export_policy(
    reference: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, name: str | None = None
) -> Path:
    """Writes a trained player as a .safetensors file with a .json card; `load_policy` reads it bit for bit.

    Args:
      reference: the player, as `load_policy` takes it; a Policy alone does not say how to build it again.
      out: the file; by default policy.safetensors in the run's folder.
      name: which of the learner's policies; by default as in `load_policy`.
    Returns:
      The .safetensors file's path.
    Raises:
      InputError: no readable player there, or a path that cannot be written or holds something else.

    Example:
      >>> path = dream.export_policy("runs/leduc", "agent.safetensors", "average")
      >>> policy = dream.load_policy(path)
    """
    if isinstance(reference, Policy):
        raise InputError("a Policy cannot be exported by itself; give the run, checkpoint or file that it comes from")
    return write(prepared(ExportConfig(os.fspath(reference), None if out is None else os.fspath(out), name)))


def prepare_export(composed: Composed) -> Export:
    """Checks a composed configuration and loads the policy; writes nothing.

    Raises:
      InputError: a wrong setting, or a policy that cannot be loaded or written.
    """
    if OmegaConf.is_missing(composed.node, "checkpoint"):
        raise InputError("checkpoint= is missing; it must be a run directory, a checkpoint's folder or a policy's file")
    return prepared(settings.read(ExportConfig, composed.node, ""))


def export(prepared: Export) -> None:
    """Writes the files and prints their paths."""
    path = write(prepared)
    print(path)
    print(path.with_suffix(".json"))


def prepared(config: ExportConfig) -> Export:
    """Loads what is to be written; raises InputError where it cannot be."""
    trained = find(config.checkpoint)
    path = report_dir(trained) / f"policy{SUFFIX}" if config.out is None else Path(config.out)
    path = path.expanduser().absolute()
    if path.suffix != SUFFIX:
        raise InputError(f"out={config.out} is not valid; it must end with {SUFFIX}")
    for place in (path, path.with_suffix(".json")):
        if place.is_dir() or not place.parent.is_dir() or not os.access(place.parent, os.W_OK):
            raise InputError(f"{place} cannot be written; it must be a file in an existing folder")
    there = _card_at(path)
    game = game_of(trained)
    policies = policies_of(trained, game, config.policy)
    name = chosen_name(policies, config.policy)
    arrays = {place: np.asarray(x) for place, x in named(jax.device_get(policies[name].params)).items()}
    made = Export(_card(trained, game, name, arrays), arrays, path)
    _check_readable(made, game)
    in_run = isinstance(trained, Checkpoint) and trained.path.parent.name == checkpoint.FOLDER
    if there and not _is_own(there, made, of_run=config.out is None and in_run):
        raise InputError(f"{path} is the export of another player or policy; choose another name by out=")
    return made


def _check_readable(made: Export, game: Game) -> None:
    """Raises InputError where nobody could read the file: a learner from outside may not be built by shapes alone."""
    try:
        card = parse(json.dumps(made.card.as_json()))
        check_arrays(made.path, made.arrays, named(policy_like(card, game, made.arrays).params))
    except InputError as error:
        raise InputError(f"the policy is not exported, as it could not be loaded again: {error}") from error


def _run_of(trained: Trained) -> str | None:
    """Returns the id of the run that a player comes from; of an older export by the card beside it, if its own."""
    if not isinstance(trained, PolicyFile):
        return trained.meta.get("wandb_id")
    if trained.card.run is not None:
        return trained.card.run
    try:
        card = decoded(trained.path.with_suffix(".json").read_bytes())
        same = card["sha256"] == hashlib.sha256(trained.path.read_bytes()).hexdigest()
        return card.get("run") if same else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # no card, or another's file
        return None


def _card_at(path: Path) -> dict[str, Any] | None:
    """Returns the card of a file, by the file itself where none is beside it; None where neither is there.

    Raises:
      InputError: either is something else.
    """
    place = path.with_suffix(".json")
    if not place.exists():
        return _card_in(path) if path.exists() else None
    try:
        there = decoded(place.read_bytes())
    except (OSError, ValueError):
        there = None
    if not isinstance(there, dict) or there.get("file") != path.name or "sha256" not in there:
        raise InputError(f"{place} is there and is not the card of {path.name}; choose another name by out=")
    return there


def _card_in(path: Path) -> dict[str, Any]:
    """Returns the card in a file; raises InputError where it is no export."""
    try:
        return dataclasses.asdict(policy_file.read(path, path.parent).card)
    except InputError as error:
        raise InputError(f"{path} is there and is no export; choose another name by out=") from error


def _is_own(there: dict[str, Any], made: Export, *, of_run: bool) -> bool:
    """Returns whether a card is of the same policy of the same player, or of an earlier or later state of its run.

    Args:
      there: the card.
      made: what is to replace its file.
      of_run: whether it lies where the run's own exports do.
    """
    same_run = of_run or (made.card.run is not None and there.get("run") == made.card.run)
    return there.get("policy") == made.card.policy and (same_run or there.get("source") == made.card.source)


def write(export: Export) -> Path:
    """Writes file and card, each whole or not at all; returns the file's path."""
    content = to_bytes(export.card, export.arrays)
    arrays = {name: {"dtype": str(x.dtype), "shape": list(x.shape)} for name, x in export.arrays.items()}
    sha = hashlib.sha256(content).hexdigest()
    card = {
        **with_checksum(export.card, export.arrays).as_json(),
        "file": export.path.name,
        "sha256": sha,
        "arrays": arrays,
    }
    with writing(export.path):  # the card first: by it the same command goes on where a crash comes in between
        write_json(export.path.with_suffix(".json"), card)
        write_bytes(export.path, content)
    return export.path


def _card(trained: Trained, game: Game, name: str, arrays: dict[str, np.ndarray]) -> Card:
    parameters = sum(array.size for array in arrays.values())
    if isinstance(trained, PolicyFile):
        return dataclasses.replace(trained.card, parameters=parameters, run=_run_of(trained))
    config, meta = _plain(trained.meta["config"]), trained.meta
    return Card(
        env={"name": config["env"]["name"], "rules": config["env"].get("rules", {})},
        game=game.identity,
        network=config["network"],
        algo={key: value for key, value in config["algo"].items() if key not in COMPANY},
        policy=name,
        iteration=meta["iteration"],
        source=f"a run of this project, seed {config.get('seed')}, checkpoint checksum {meta['checksum']}",
        parameters=parameters,
        run=_run_of(trained),
    )


def _plain(node: Any) -> Any:
    return OmegaConf.to_container(node, resolve=True) if isinstance(node, DictConfig | ListConfig) else node
