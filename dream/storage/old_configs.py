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
      The same with the present names of algorithms, settings and values; what is unknown is kept.
    """
    config = dict(config)
    algo, network = config.get("algo"), config.get("network")
    if isinstance(algo, dict):
        algo = renamed.translated_algorithm(algo)
        schema = algorithms.settings_of(algo["name"])
        config["algo"] = renamed.translated(schema, algo) if schema else algo
    if isinstance(network, dict):
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
