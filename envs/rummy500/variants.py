"""Rummy 500 by its rules: a single round, a match to a target, or a round with the shaped reward."""

from __future__ import annotations

import dataclasses
from typing import Any

from envs.errors import InputError, unknown
from envs.rules import build_rules, read_rule
from envs.rummy500.game import Rummy500
from envs.rummy500.match import MatchRummy500
from envs.rummy500.rules import RummyRules
from envs.rummy500.shaped import ShapedRummy500

REWARDS = ("score", "shaped")
_WEIGHTS = ("card_weight", "point_weight", "win_weight", "every_step")
_MATCH = ("target", "max_rounds")


def make(**rules: Any) -> Rummy500:
    """Builds `rummy500`.

    Args:
      **rules: fields of `RummyRules`; `reward`, "score" (the default) or "shaped" with the fields of `ShapedRummy500`;
        `target`, the score that a match goes to, 0 for a single round, and `max_rounds`. A weight alone chooses
        "shaped", and `max_rounds` alone a match to 500.
    Raises:
      InputError: an unknown rule, a value out of range, or rules that do not go together; a rule may have its default
        where it has no effect, and no other value.
    """
    given = {name: rules.pop(name) for name in (*_WEIGHTS, *_MATCH) if name in rules}
    weights, match = _part(ShapedRummy500, _WEIGHTS, given), _part(MatchRummy500, _MATCH, given)
    reward = rules.pop("reward", "shaped" if weights else "score")
    if not isinstance(reward, str) or reward not in REWARDS:
        raise unknown("reward", reward, REWARDS)
    round_rules = _round_rules(rules)
    goes_on = match.get("target", 0 if "target" in given else 500 if "max_rounds" in given else 0) != 0
    if reward == "shaped" and goes_on:
        raise InputError("reward=shaped is for single rounds; with a target the reward is the score")
    _refuse_idle(round_rules, weights, match, reward, goes_on)
    if reward == "shaped":
        return ShapedRummy500(round_rules, **weights)
    return MatchRummy500(round_rules, **match) if goes_on else Rummy500(round_rules)


def _refuse_idle(
    round_rules: RummyRules, weights: dict[str, Any], match: dict[str, Any], reward: str, goes_on: bool
) -> None:
    """Raises InputError where a rule is not its default though it has no effect in what the others choose."""
    rewards = {"rewards": round_rules.rewards}
    rounds = {name: value for name, value in match.items() if name == "max_rounds"}
    for chosen, kind, given, where in (
        (reward == "shaped", ShapedRummy500, weights, "reward=shaped; set reward=shaped"),
        (reward == "score", RummyRules, rewards, "reward=score; set reward=score"),
        (goes_on, MatchRummy500, rounds, "a match; set target"),
    ):
        for name, value in given.items():
            if not chosen and value != getattr(kind, name):
                raise InputError(f"rule {name}={value} is of {where}, or leave it out")


def _round_rules(rules: dict[str, Any]) -> RummyRules:
    """Returns the rules of a round; a name that is none of all rules is refused with the nearest of them."""
    known = {field.name for field in dataclasses.fields(RummyRules)} | {*_WEIGHTS, *_MATCH, "reward"}
    for name in rules:
        if name not in known:
            raise unknown("rule", name, known)
    return build_rules(RummyRules, RummyRules(), rules)


def _part(kind: type, names: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    """Returns the given rules among some names, checked for type."""
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    return {name: read_rule(name, type(defaults[name]), given[name]) for name in names if name in given}
