"""Settings that are valid and would not do what is meant, at the start of a run and where it goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from dream import algorithms
from dream.algorithms.types import Algorithm
from dream.config.compose import Composed
from dream.storage.checkpoint import Checkpoint
from envs import InputError

_STEP = "algo.learning_rate_decay"
_MOST_INITIAL = 0.1
"""Of an average of parameters, the share of the initial ones that needs no word."""


def check_lengths(composed: Composed) -> None:
    """Raises InputError where overrides give a schedule's ends without its length, so that it would change at once."""
    if composed.node.iterations == 1:
        return
    for path, schedule in _schedules(composed.node):
        given, steps = composed.given(path), "transition_steps"
        if given and schedule[steps] == 1 and schedule["start"] != schedule["end"] and steps not in " ".join(given):
            raise InputError(
                f"{path} would go from {schedule['start']:g} to {schedule['end']:g} in one iteration; give "
                f"{path}.{steps} too, the iterations that it is to take, or null for all of the run"
            )


def check_whole_run(node: DictConfig, algorithm: Algorithm) -> None:
    """Raises InputError where a schedule takes as long as a run whose length it cannot know."""
    for path, schedule in _schedules(node):
        if schedule["transition_steps"] is not None:
            continue
        if algorithm.with_share is None:
            raise InputError(
                f"{path}.transition_steps=null needs a learner that knows its run's budget, and algo={node.algo.name} "
                "does not; give it a number of iterations"
            )
        if node.budget.seconds is not None and schedule["start"] != schedule["end"]:
            raise InputError(
                f"{path}.transition_steps=null takes as long as the run, whose iterations in "
                f"budget.seconds={node.budget.seconds:g} nobody knows; give it a number of iterations, or the run a "
                "budget of nodes or episodes"
            )


def check_changed_ends(composed: Composed, node: DictConfig, checkpoint: Checkpoint) -> None:
    """Raises InputError where overrides change the end of a schedule that is over, so that it would be there at once.

    Args:
      composed: holds the overrides given with `resume=`.
      node: the configuration the run goes on with.
      checkpoint: it goes on from.
    """
    done, before = checkpoint.meta["iteration"], dict(_schedules(OmegaConf.create(checkpoint.meta["config"])))
    for path, schedule in _schedules(node):
        then, steps = before.get(path, schedule), schedule["transition_steps"] or math.inf
        if not composed.given(path) or schedule["end"] in (schedule["start"], then["end"]) or steps > done:
            continue
        raise InputError(
            f"{path} would go from {then['end']:g} to {schedule['end']:g} at once, as it ends with iteration {steps} "
            f"and {checkpoint.path} is of {done}; give {path}.transition_steps too, an iteration yet to come"
        )


def check_budget(checkpoint: Checkpoint, node: DictConfig) -> None:
    """Raises InputError where a run has spent more than a new budget: its result would be one of another budget."""
    meta = checkpoint.meta
    before = meta["config"].get("budget") or {}
    for name, limit in node.budget.items():
        spent = meta.get("seconds") if name == "seconds" else meta.get("counters", {}).get(name)
        if limit is not None and limit != before.get(name) and spent is not None and spent > limit:
            raise InputError(
                f"budget.{name}={limit:g} is less than the {spent:,.0f} {name} that {checkpoint.run_dir} has spent"
            )


def check_fixed(checkpoint: Checkpoint, fixed: Mapping[str, Any]) -> None:
    """Raises InputError where what a learner keeps for all of a run, as `Algorithm.fixed`, is not as it was."""
    for name, before in checkpoint.meta.get("fixed", {}).items():
        if fixed.get(name, before) != before:
            raise InputError(
                f"algo.{name} cannot be changed by resume=: it decides what {checkpoint.path} has learned "
                "from; start a new run"
            )


def of_resume(stored: DictConfig, node: DictConfig) -> list[str]:
    """Returns lines about settings that follow the end, or the evaluations, that a run was begun with.

    Args:
      stored: the configuration of the checkpoint.
      node: the one the run goes on with.
    """
    before, lines = dict(_schedules(stored)), []
    ended = [
        f"{path}.transition_steps"
        for path, schedule in _schedules(node)
        if path in before
        and before[path]["transition_steps"] == schedule["transition_steps"] == stored.iterations < node.iterations
        and schedule["start"] != schedule["end"]
        and not (path == _STEP and schedule["end"] == 0)
    ]
    if ended:
        lines.append(
            f"{', '.join(ended)}={stored.iterations} was the run's end: it changes no further; give a new value if it "
            "should"
        )
    follow = [
        path
        for path, schedule in _schedules(node)
        if path in before and before[path]["transition_steps"] is schedule["transition_steps"] is None
    ]
    if follow and (stored.iterations, stored.budget) != (node.iterations, node.budget):
        lines.append(f"{', '.join(follow)} takes as long as the run, and goes on from where the new length has it")
    every = [_average_every(config) for config in (stored, node)]
    if every[0] == every[1] == stored.eval.every and node.eval.every % stored.eval.every:
        lines.append(
            f"algo.average.every={every[0]} stays, so that evaluations in between are of the average fitted last; give "
            f"algo.average.every={node.eval.every} for a fit at each"
        )
    return lines


def late_averages(node: DictConfig) -> str:
    """Returns a line where evaluations come before the fit of an average network or between two fits; "" elsewhere.

    Args:
      node: the configuration of a run whose average policy is a network that is fitted every so many iterations.
    """
    every, evaluated = _average_every(node), node.eval.every
    if every is None or evaluated % every == 0 or evaluated >= node.iterations:
        return ""
    return (
        f"algo.average.every={every:g} does not divide eval.every={evaluated:g}: evaluations in between are of the "
        f"average fitted last, of uniform play before the first; give algo.average.every={evaluated:g} for a fit at "
        "each"
    )


def young_averages(algo: Mapping[str, Any], iterations: int) -> str:
    """Returns a line where much of the initial parameters is left in averaged ones after some iterations; else "".

    Args:
      algo: the learner's settings.
      iterations: of the whole run; a budget may end it before, which is known only then.
    """
    tau = algo.get("average_tau")
    if type(tau) not in (int, float) or (left := (1.0 - tau) ** iterations) <= _MOST_INITIAL:
        return ""
    return (
        f"algo.average_tau={tau:g}: {iterations} iterations leave {100 * left:.0f} % of the initial parameters in "
        "the average, which matches and exports take by default; a larger one leaves less"
    )


def leaning_regrets(algo: Mapping[str, Any]) -> str:
    """Returns a line where regrets are weighted by a sampling reach that changes with the policy; else "".

    Samples of all iterations meet in one fit, and an information set has as many of each iteration as its policy makes
    likely. With uniform play alone, exploration 1, that is the same in every iteration.
    """
    share, weights = algo.get("exploration"), algo.get("weights")
    if type(share) not in (int, float) or not 0 < share < 1:
        return ""
    if not isinstance(weights, Mapping) or weights.get("importance") is not False or _fits_one_iteration(algo):
        return ""
    return (
        f"algo.exploration={share:g} with algo.weights.importance=false: each iteration's regrets count by how likely "
        "its own policy was to come to a decision; algo.exploration=1 or algo.weights.importance=true counts all alike"
    )


def _fits_one_iteration(algo: Mapping[str, Any]) -> bool:
    return getattr(algorithms.settings_of(str(algo.get("name"))), "fits_one_iteration", False)


def long_schedules(composed: Composed, node: DictConfig) -> str:
    """Returns a line where a schedule takes longer than the run, so that it does not come to its end; else "".

    Only where overrides give the schedule, or a new run's iterations: a recipe, and a run that goes on, may mean it so.

    Args:
      composed: holds the overrides.
      node: the run's configuration.
    """
    shorter = composed.node.get("resume") is None and composed.given("iterations")
    long = [
        f"{path}.transition_steps={schedule['transition_steps']}"
        for path, schedule in _schedules(node)
        if schedule["start"] != schedule["end"]
        and (schedule["transition_steps"] or 0) > node.iterations
        and (shorter or composed.given(path))
    ]
    if not long:
        return ""
    few = f"{node.iterations} iteration{'s' if node.iterations != 1 else ''}"
    return f"{', '.join(long)}: longer than the run of {few}, which ends before; null takes as long as the run"


def idle_steps(node: DictConfig, done: int) -> str:
    """Returns a line where a run has iterations before it whose step size is 0; "" where it has none.

    Args:
      node: the run's configuration.
      done: how many iterations it has done. How many a budget allows is not known before.
    """
    decay = dict(_schedules(node)).get(_STEP)
    if decay is None or decay["end"] != 0 or (steps := decay["transition_steps"] or math.inf) >= node.iterations:
        return ""
    budget = any(limit is not None for limit in node.budget.values())
    if done >= node.iterations or (budget and done < steps):
        return ""
    return (
        f"{_STEP} is 0 after {steps} iterations: nothing is learned from iteration {max(steps, done) + 1} on; a larger "
        f"{_STEP}.transition_steps reaches further"
    )


def _schedules(node: DictConfig) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the schedules of a learner with their dotted names, whatever else stands beside them."""
    yield from _within(OmegaConf.to_container(node, resolve=True)["algo"], "algo")


def _within(block: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(block, dict):
        return
    if all(type(block.get(name)) in (int, float) for name in ("start", "end")) and _is_length(block):
        yield path, block
    for name, part in block.items():
        yield from _within(part, f"{path}.{name}")


def _is_length(block: dict[str, Any]) -> bool:
    return type(block.get("transition_steps", "")) in (int, float, type(None))


def _average_every(node: DictConfig) -> Any:
    average = node.algo.get("average")
    return average.get("every") if OmegaConf.is_dict(average) else None
