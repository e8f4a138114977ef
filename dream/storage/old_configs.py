"""Configurations stored before settings were renamed, under the present names."""

from __future__ import annotations

from typing import Any

from dream import algorithms, networks
from dream.config import renamed


def current_config(config: dict[str, Any]) -> dict[str, Any]:
    """Translates the configuration stored in a checkpoint or an export's card.

    Args:
      config: with `algo` and `network`, each a node or None.
    Returns:
      The same with the present names of algorithms, settings and values; what is unknown, or has no name, is kept.
    Raises:
      InputError: an installed algorithm that cannot be loaded.
    """
    config = dict(config)
    algo, network = config.get("algo"), config.get("network")
    if isinstance(algo, dict) and isinstance(algo.get("name"), str):
        algo = renamed.translated_algorithm(algo)
        known = algo["name"] in algorithms.names()
        config["algo"] = renamed.translated(algorithms.settings_of(algo["name"]), algo) if known else algo
    if isinstance(network, dict) and isinstance(network.get("name", ""), str):
        schema = networks.settings_of(network.get("name", "dueling"))
        config["network"] = renamed.translated(schema, network) if schema else network
    return config


def current_choices(choices: dict[str, str], config: dict[str, Any]) -> dict[str, str]:
    """Translates the options that a stored run chose from each group.

    Args:
      choices: option of each group, as stored.
      config: the run's configuration, translated.
    """
    current = {group: renamed.OPTIONS.get(group, {}).get(option, option) for group, option in choices.items()}
    if choices.get("algo") == "dream":
        current["algo"] = config["algo"]["name"]  # dueling_dream or dream, by its settings
    return current
