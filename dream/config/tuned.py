"""What a game, a preset or an experiment changes in other groups: conf/tuned/, served to Hydra as a config source.

The file conf/tuned/<name>.yaml belongs to the game, preset or experiment of that name. It holds sections; the key of a
section says what it applies to, written as on the command line, and its value holds settings from the root:

    algo=dream,escher network=dueling:
      network: {hidden: [64, 64, 64]}

A section applies where every group it names has one of the options listed. Sections apply from top to bottom.
An experiment is a whole recipe: a preset changes of it what the experiment's own file says in sections that name the
preset, and nothing else; a preset that no section names cannot be combined with the experiment.
conf/config.yaml asks for a file after its owner, so that the defaults list shows the whole order of precedence:

    - tuned/env: env=${env} algo=${algo} network=${network}
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult, ConfigSource
from omegaconf import DictConfig, OmegaConf

from dream.config import registered
from envs.errors import InputError

FOLDER = "tuned"
OWNERS = ("env", "preset", "experiment")
"""Groups whose options own a file in conf/tuned/."""
_NONE = "None"
"""How Hydra writes the option of a group without one."""
_PACKAGE = Path(__file__).resolve().parents[1]


def config_dir() -> Path:
    """Returns the folder of the configuration groups: inside the installed package, or the repository's conf/."""
    packaged = _PACKAGE / "conf"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "conf"


def parse_choices(text: str) -> dict[str, tuple[str, ...]]:
    """Reads the key of a section: "algo=dream,escher network=dueling" -> group -> options.

    Raises:
      InputError: a part is not <group>=<option>[,<option>].
    """
    choices = {}
    for part in text.split():
        group, equals, options = part.partition("=")
        if not (group and equals and all(options.split(","))):
            raise InputError(f"conf/{FOLDER}: {text!r} is not valid; it must be <group>=<option>[,<option>] ...")
        choices[group] = tuple(options.split(","))
    return choices


def tuned_settings(owner: str, choices: Mapping[str, str]) -> DictConfig:
    """Merges the sections that apply of one file.

    Args:
      owner: the group that the file belongs to: env, preset or experiment.
      choices: the option chosen in each group, the owner's among them.
    Returns:
      Settings from the root of the configuration; empty where nothing is tuned.
    """
    merged = OmegaConf.create({})
    if owner == "preset" and choices.get("experiment", _NONE) != _NONE:
        return merged
    for conditions, settings in _sections(config_dir() / FOLDER / f"{choices[owner]}.yaml"):
        if all(choices.get(group) in options for group, options in conditions.items()):
            merged.merge_with(settings)
    return merged


def presets_of(experiment: str) -> list[str]:
    """Returns the presets that go with an experiment: "none", and those that its file names."""
    return ["none", *sorted(named_in(experiment, "preset"))]


def named_in(experiment: str, group: str) -> set[str]:
    """Returns the options of a group that the sections of an experiment's file name."""
    sections = _sections(config_dir() / FOLDER / f"{experiment}.yaml")
    return {option for conditions, _ in sections for option in conditions.get(group, ())}


def _check_preset(choices: Mapping[str, str]) -> None:
    """Raises InputError where the preset cannot be combined with the experiment."""
    experiment, preset = choices["experiment"], choices.get("preset", "none")
    if experiment != _NONE and preset not in presets_of(experiment):
        raise InputError(
            f"preset={preset} cannot be combined with experiment={experiment}, which has no such size; "
            f"it must be one of {', '.join(presets_of(experiment))}"
        )


@functools.lru_cache(maxsize=64)
def _sections(file: Path) -> list[tuple[dict[str, tuple[str, ...]], DictConfig]]:
    """Reads a file's sections in order: what each applies to, and its settings."""
    content = OmegaConf.load(file) if file.is_file() else {}
    return [(parse_choices(key), settings) for key, settings in content.items()]


class TunedSource(ConfigSource):
    """Answers Hydra's requests for tuned/<owner>/<choices>; see the module."""

    @staticmethod
    def scheme() -> str:
        """Returns what the search path of a configuration names this source by."""
        return FOLDER

    def available(self) -> bool:
        """Returns True: a missing file means that nothing is tuned."""
        return True

    def is_group(self, config_path: str) -> bool:
        """Returns whether a path is tuned/ or tuned/<owner>."""
        parts = [part for part in config_path.split("/") if part]
        return parts[:1] == [FOLDER] and len(parts) <= 2 and set(parts[1:]) <= set(OWNERS)

    def is_config(self, config_path: str) -> bool:
        """Returns whether a path is tuned/<owner>/<choices>."""
        group, _, choices = config_path.rpartition("/")
        return group.count("/") == 1 and self.is_group(group) and "=" in choices

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Returns no names: these options follow from other groups and are not chosen."""
        return []

    def load_config(self, config_path: str) -> ConfigResult:
        """Returns the settings; those of a game also open `env.rules` to every rule that the game knows."""
        _, owner, text = config_path.split("/")
        chosen: dict[str, Any] = {group: options[0] for group, options in parse_choices(text).items()}
        config = tuned_settings(owner, chosen)
        if owner == "experiment":
            _check_preset(chosen)
        if owner == "env" and chosen["env"] != _NONE:
            opened = OmegaConf.create({"env": {"rules": {}}})
            OmegaConf.set_struct(opened.env.rules, False)
            config.merge_with(opened)
            outside = not (config_dir() / "env" / f"{chosen['env']}.yaml").is_file()
            if outside and "algo" in chosen:  # dream.ladder and dream.play train nothing
                config.merge_with(registered.suggested(chosen["env"], chosen["algo"], chosen["network"]))
        path = f"{self.scheme()}://{self.path}"
        return ConfigResult(config=config, path=path, provider=self.provider, header={"package": "_global_"})


Plugins.instance().register(TunedSource)
