"""Wrong overrides: one line about the algorithm and game that were chosen, with the new name where one has changed."""

from __future__ import annotations

import dataclasses
import re

import pytest

from dream import algorithms
from dream.config.compose import compose_config, groups_of
from dream.config.renamed import KEYS, OPTIONS, VALUES, translated, translated_algorithm
from dream.config.settings import choice, number, read
from dream.training.start import build_run
from envs import InputError

REFUSED = {
    "a key of the chosen algorithm": (
        ["algo=sd_cfr", "env=leduc_poker", "algo.traversal=3"],
        r"^unknown setting 'algo\.traversal'; did you mean 'algo\.traversals'\? known: algo\.average, algo\.fit",
    ),
    "a key of the chosen network": (["network=simba", "network.hidden=[8]"], r"known: network\.blocks, network\.dtype"),
    "a key that an experiment's algorithm lacks": (
        ["experiment=r42", "algo.temperature=1"],
        r"known: .*algo\.assistant",
    ),
    "a part that is not there": (["algo.foo.bar=1"], r"^unknown setting 'algo\.foo'"),
    "a deleted key": (["~algo.epoch"], r"^unknown setting 'algo\.epoch'; did you mean 'algo\.epochs'"),
    "a setting taken away": (["~eval.every"], r"^~eval\.every takes a setting away; give it a value"),
    "a group taken away": (["~algo"], r"^~algo takes a setting away"),
    "a group of another command": (["game=leduc"], r"^unknown setting 'game'; .*known: algo, budget, checkpoint, de"),
    "no option where there must be one": (["preset=null"], r"^unknown preset .null.; known: h200, laptop, none, tiny"),
    "another algorithm than an experiment's": (
        ["experiment=mmd_critic", "algo=ppo"],
        r"^algo=ppo cannot be combined with experiment=mmd_critic, a recipe of algo=mmd; leave one out$",
    ),
    "an option": (["experiment=nothing"], r"^unknown experiment .nothing.; known: document_small, dueling_dream"),
    "an added key that is there": (["+algo.epochs=1"], r"'\+\+algo\.epochs=1'"),
    "a value that needs quotes": (
        ["run_dir=runs/lr=0.1"],
        r"^run_dir=runs/lr=0\.1 has characters that mean something else; .* 'run_dir=\"runs/lr=0\.1\"'$",
    ),
    "no value": (["iterations"], r"iterations"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    """In one line."""
    overrides, message = REFUSED[name]
    with pytest.raises(InputError, match=message) as error:
        build_run(compose_config("config", overrides).node)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["algo=dream_vr"], "algo=dream_vr is now algo=dream"),
        (["experiment=dream_slots"], "experiment=dream_slots is now experiment=dueling_dream_cards"),
        (["experiment=openspiel_ppo_slots"], "experiment=openspiel_ppo_slots is now experiment=openspiel_ppo_cards"),
        (["algo.games_per_iteration=8"], "algo.games_per_iteration is now algo.episodes_per_iteration"),
        (["algo.lanes=8"], "algo.lanes is now algo.num_envs"),
        (["algo.trace=1"], "algo.trace is now algo.gae_lambda"),
        (["algo.target_rate=1"], "algo.target_rate is now algo.tau"),
        (["algo.target_every=1"], "algo.target_every is now algo.target_update_period"),
        (["algo.temperature.over=9"], "algo.temperature.over is now algo.temperature.transition_steps"),
        (["+algo.lanes=8"], "algo.lanes is now algo.num_envs"),
        (["network.slots=8"], "network.slots is now network.card_scorer_width"),
        (["algo=ppo", "algo.steps=8"], "algo.steps is now algo.rollout_length"),
        (["algo=ppo", "algo.clip=0.1"], "algo.clip is now algo.clip_epsilon"),
        (["algo=ppo", "algo.tell_opponent=1"], "algo.tell_opponent is now algo.opponent_id_prob"),
        (["algo=ppo", "algo.frozen_every=5"], "algo.frozen_every is now algo.pool_every"),
        (["algo=ppo", "algo.frozen_slots=5"], "algo.frozen_slots is now algo.pool_size"),
        (
            ["algo=dream", "algo.games_per_iteration=512"],
            "algo=dream has no setting 'algo.games_per_iteration'; "
            "the dueling self-play learner is now algo=dueling_dream",
        ),
    ],
)
def test_an_old_name_is_answered_with_the_new(overrides: list[str], message: str) -> None:
    """The whole line."""
    with pytest.raises(InputError) as error:
        build_run(compose_config("config", overrides).node)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("seed=1,2", "; a list is [1,2], and text with a comma is in quotes"),
        ("env=kuhn_poker,leduc_poker", "; a list is [kuhn_poker,leduc_poker], and text with a comma is in quotes"),
        ("seed=range(1,4)", ""),
        ("seed=choice(1,2)", ""),
        ("algo.learning_rate=interval(0,1)", ""),
    ],
)
def test_several_values_belong_to_a_sweep(override: str, hint: str) -> None:
    """Before other faults, as the settings of one job depend on its value."""
    with pytest.raises(InputError) as error:
        compose_config("config", [override, "algo.unheard_of=1"])
    way = "-m sweeps over them, in Python call the function once for each"
    assert str(error.value) == f"{override} gives several values; {way}{hint}"


@pytest.mark.parametrize(
    ("command", "override", "message"),
    [
        (
            "evaluate",
            "evn=leduc_poker",
            "unknown setting 'evn'; did you mean 'env'? known: checkpoint, devices, env, games, histories, hosts, "
            "opponent, policy, records, scoring, seed, target",
        ),
        ("config", "experimnt=r42", "unknown setting 'experimnt'; did you mean 'experiment'? known: algo, budget, "),
    ],
)
def test_groups_are_among_the_known_settings(command: str, override: str, message: str) -> None:
    """Those too in which nothing is chosen by default."""
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        compose_config(command, [override])


def test_no_choice_may_be_written_out() -> None:
    """As the primary files have it."""
    for name, nothing in (("config", "experiment=null"), ("exploit", "env=null")):
        plain, written = compose_config(name, []), compose_config(name, [nothing])
        assert (written.node, written.overrides) == (plain.node, ())


def test_an_old_name_in_a_plain_configuration() -> None:
    """As from a notebook: the same line."""
    with pytest.raises(InputError, match=r"^algorithm=dream_vr is now algorithm=dream$"):
        algorithms.make({"name": "dream_vr"}, {}, None)


def test_groups() -> None:
    """What a user chooses from: Hydra's own groups and what follows from others are not among it."""
    assert set(groups_of("config")) == {"env", "algo", "network", "tracking", "preset", "experiment"}
    assert set(groups_of("ladder")) == {"env"}
    assert set(groups_of("evaluate")) == set(groups_of("exploit")) == {"env"}
    assert groups_of("config")["tracking"] == ["wandb"]


def _schemas() -> dict[str, type]:
    """Returns one dataclass per entry of the tables that has the new name alone."""
    made = {old: dataclasses.make_dataclass(f"With{old}", [(new, int, number(1))]) for old, new in KEYS.items()}
    for name, values in VALUES.items():
        made[name] = dataclasses.make_dataclass(
            f"With{name}", [(name, str, choice(*values.values(), *values.values()))]
        )
    return made


@pytest.mark.parametrize("old", KEYS)
def test_every_renamed_key(old: str) -> None:
    """Is answered where the new key is a setting, and translated where it was stored."""
    schema = _schemas()[old]
    with pytest.raises(InputError, match=rf"^part\.{old} is now part\.{KEYS[old]}$"):
        read(schema, {old: 3}, "part")
    assert translated(schema, {old: 3}) == {KEYS[old]: 3}
    assert translated(schema, {old: 3, KEYS[old]: 4}) == {old: 3, KEYS[old]: 4}, (
        "both are never stored: refused by name"
    )


@pytest.mark.parametrize(("name", "old"), [(name, old) for name, values in VALUES.items() for old in values])
def test_every_renamed_value(name: str, old: str) -> None:
    """Likewise."""
    schema = _schemas()[name]
    with pytest.raises(InputError, match=rf"^part\.{name}={old} is now part\.{name}={VALUES[name][old]}$"):
        read(schema, {name: old}, "part")
    assert translated(schema, {name: old}) == {name: VALUES[name][old]}


def test_an_old_key_with_an_old_value() -> None:
    """Both are said at once."""
    schema = dataclasses.make_dataclass("Kinds", [("kind", str, choice("reservoir", "reservoir", "infoset_sums"))])
    with pytest.raises(InputError, match=r"^algo\.memory\.keep=sums is now algo\.memory\.kind=infoset_sums$"):
        read(schema, {"keep": "sums"}, "algo.memory")
    assert translated(schema, {"keep": "sums"}) == {"kind": "infoset_sums"}


def test_a_name_that_is_still_a_setting_is_kept() -> None:
    """`steps` of a fit and `clip` of weights have not changed."""
    schema = algorithms.settings_of("dream")
    stored = {"name": "dream", "fit": {"steps": 3}, "weights": {"clip": 2.0}, "lanes": 5}
    assert translated(schema, stored) == {**{k: v for k, v in stored.items() if k != "lanes"}, "num_envs": 5}


def test_names_of_stored_algorithms() -> None:
    """`dream` is the dueling one where it counts games, and dream_vr is dream."""
    assert translated_algorithm({"name": "dream", "games_per_iteration": 8})["name"] == "dueling_dream"
    assert translated_algorithm({"name": "dream", "traversals": 8})["name"] == "dream"
    assert translated_algorithm({"name": "dream_vr", "traversals": 8})["name"] == "dream"
    assert set(OPTIONS["algo"].values()) <= set(algorithms.names())
