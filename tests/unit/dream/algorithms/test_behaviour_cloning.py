"""Does behaviour cloning learn what was done and won, from records and players, and can learning go on from it?"""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from dream import algorithms, networks
from dream.algorithms import behaviour_cloning
from dream.algorithms import ppo as ppo_package
from dream.algorithms.ppo import PpoConfig
from dream.algorithms.types import Algorithm, Resources
from dream.networks.policy import Acts, make_network_policy
from dream.rollout.recorded import decisions
from dream.storage.policies import RESOURCES
from envs import InputError, Policy, records

NETWORK = {"name": "dueling", "hidden": [16]}
KUHN = envs.make("kuhn_poker")
DEALS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]


def _bettor(view: Any, legal: Any) -> Any:
    """Bets and calls three times in four with the king, else never."""
    bets = jnp.where(view.card == 2, 0.75, 0.0)
    return jnp.where(legal, jnp.stack([1 - bets, bets]), 0.0)


BETTOR = Policy(lambda _, view, legal: _bettor(view, legal))


def _learner(resources: Resources = RESOURCES, **settings: Any) -> Algorithm:
    config = {"name": "behaviour_cloning", "learning_rate": 0.02, "batch_size": 128, **settings}
    return algorithms.make(config, NETWORK, KUHN, resources)


def _first_decisions(policy: Policy) -> np.ndarray:
    """Returns how often each card bets at its first decision: float[3]."""
    states = [KUHN.from_deal((card, (card + 1) % 3, (card + 2) % 3)) for card in range(3)]
    return np.array([float(policy(KUHN.view(s, 0), KUHN.legal_actions(s))[1]) for s in states])


def test_a_player_is_imitated() -> None:
    """Frequencies, and what they win: the king bets 3 in 4; the jack, which passes and folds, loses 1 chip."""
    resources = Resources(find_player=lambda name, game: BETTOR)
    learner = _learner(resources, player="bettor", episodes_per_iteration=512)
    state = learner.init(jax.random.key(0))
    for _ in range(25):
        state, metrics = learner.iterate(state)
    np.testing.assert_allclose(_first_decisions(learner.policies(state)["current"]), [0, 0, 0.75], atol=0.1)
    jack = KUHN.from_deal((0, 1, 2))
    assert float(learner.value(state)(KUHN.view(jack, 0))) * KUHN.reward_scale == pytest.approx(-1.0, abs=0.15)
    assert metrics["unseen_cross_entropy"] < 0.3 < np.log(2)
    assert metrics["unseen_accuracy"] > 0.8
    assert metrics["episodes"] == 512


@pytest.mark.parametrize("count", [5, 64, 65, 100, 127, 128, 4084, 10**9])
def test_judged_decisions_are_spread_over_all(count: int) -> None:
    """From the first to the last, evenly, those of late moves too; all of them where they are few."""
    places = np.asarray(behaviour_cloning._spread(jnp.int32(count), 64))
    if count <= 64:
        np.testing.assert_array_equal(places, np.arange(64))
    else:
        np.testing.assert_array_equal(places, np.arange(64) * count // 64)


def _records(folder: pathlib.Path) -> pathlib.Path:
    """Writes 12 games: anna bets with the king and passes else, otto always passes."""
    games = []
    for n, deal in enumerate(DEALS * 2):
        first = n < len(DEALS)
        if first:
            actions = [1, 0] if deal[0] == 2 else [0, 0]
        else:
            actions = [0, 1, 0] if deal[1] == 2 else [0, 0]
        games.append(records.record(KUHN, deal, actions, ("anna", "otto") if first else ("otto", "anna")))
    records.write(folder / "games.jsonl", games)
    return folder / "games.jsonl"


def test_records_are_learned_from(tmp_path: pathlib.Path) -> None:
    """Of anna alone: the king bets, the others pass; the last games are not learned but judged."""
    file = str(_records(tmp_path))
    learner = _learner(records=file, imitated=("anna",), held_out=0.25, epochs=150)
    state, metrics = learner.iterate(learner.init(jax.random.key(0)))
    assert metrics["gradient_steps"] == 150
    assert metrics["episodes"] == 0
    bets = _first_decisions(learner.policies(state)["current"])
    assert bets[2] > 0.9
    assert max(bets[:2]) < 0.1
    rows, numbers = decisions(KUHN, records.read(file), ("anna",))
    unseen = np.flatnonzero(numbers >= 9)
    before = learner.policies(learner.init(jax.random.key(0)))["current"]
    expected = []
    for n in unseen:
        view = type(rows.view)(*(x[n] for x in rows.view))
        legal = np.unpackbits(rows.legal[n], count=2).astype(bool)
        expected.append(-np.log(float(before(view, legal)[rows.action[n]])))
    assert metrics["unseen_cross_entropy"] == pytest.approx(np.mean(expected), rel=1e-4)


def test_one_record_at_least_is_learned_from(tmp_path: pathlib.Path) -> None:
    """The first of two, however large the share held out; a share that leaves none of a player's is refused as such."""
    won, lost = (
        records.record(KUHN, deal, [0, 0], ("anna", other)) for deal, other in zip(DEALS[:2], "bc", strict=True)
    )
    records.write(tmp_path / "two.jsonl", [won, lost])
    settings = {"records": str(tmp_path / "two.jsonl"), "held_out": 0.9}
    learner = _learner(**settings, batch_size=2)
    metrics = learner.iterate(learner.init(jax.random.key(0)))[1]
    assert metrics["gradient_steps"] == 1, "one pass over two decisions"
    assert "unseen_accuracy" in metrics
    late = _learner(**settings, imitated=("c",))
    with pytest.raises(InputError, match=r"algo\.held_out=0\.9 holds out every game .* it must be lower"):
        late.iterate(late.init(jax.random.key(0)))


def test_a_round_of_two_games_to_a_target_is_learned_from_once(tmp_path: pathlib.Path) -> None:
    """Both games of a pair hold it: it is one record, which is either learned from or judged."""
    shared = [
        records.record(KUHN, DEALS[0], [0, 0], ("anna", "otto"), about={"pair": 0, "seat": 0, "game": number})
        for number in range(2)
    ]
    other = records.record(KUHN, DEALS[1], [0, 0], ("anna", "otto"), about={"pair": 1, "seat": 0, "game": 0})
    metrics = []
    for name, games in (("once", [other, shared[0]]), ("twice", [other, *shared])):
        records.write(tmp_path / f"{name}.jsonl", games)
        learner = _learner(records=str(tmp_path / f"{name}.jsonl"), held_out=0.5, batch_size=2)
        metrics.append(learner.iterate(learner.init(jax.random.key(0)))[1])
    assert {name: x for name, x in metrics[0].items() if not name.startswith("seconds")} == {
        name: x for name, x in metrics[1].items() if not name.startswith("seconds")
    }


def test_nothing_is_judged_where_nothing_is_held_out(tmp_path: pathlib.Path) -> None:
    """No metric of unseen decisions, rather than a zero."""
    learner = _learner(records=str(_records(tmp_path)), held_out=0.0)
    assert not [name for name in learner.iterate(learner.init(jax.random.key(0)))[1] if name.startswith("unseen")]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"records": "{}/none.jsonl"}, "none.jsonl cannot be read: No such file or directory"),
        ({"records": "{}/empty.jsonl"}, "holds no records"),
        ({"records": "{}/leduc.jsonl"}, "of leduc_poker version 1, not of kuhn_poker"),
        ({"records": "{}/games.jsonl", "imitated": ["eve"]}, r"names 'eve'; players in .*: anna, otto"),
        ({"imitated": ["anna"]}, r"algo\.imitated=\['anna'\] chooses among the players of records, .* is null"),
        ({"player": "nobody"}, "unknown player 'nobody'"),
        ({"num_envs": 1000}, "is more than algo.episodes_per_iteration"),
    ],
)
def test_wrong_input(settings: dict[str, Any], message: str, tmp_path: pathlib.Path) -> None:
    """One line each, before anything is learned."""
    _records(tmp_path)
    (tmp_path / "empty.jsonl").write_text("")
    leduc = envs.make("leduc_poker")
    records.write(tmp_path / "leduc.jsonl", [records.record(leduc, [0, 3, 5, 1, 2, 4], [1, 2, 0])])
    if "records" in settings:
        settings = {**settings, "records": settings["records"].format(tmp_path)}
    with pytest.raises(InputError, match=message):
        _learner(**settings)


def test_learners_below_storage_read_no_file() -> None:
    """Resources without records say so."""
    with pytest.raises(InputError, match="cannot be read by these resources"):
        _learner(Resources(), records="games.jsonl")


def test_ppo_starts_from_a_network() -> None:
    """Its parameters are the player's; another network, none, or another rule than softmax is refused by name."""
    cloned = _learner(player="random")
    trained = cloned.policies(cloned.init(jax.random.key(5)))["current"]
    players = {"cloned": trained, "rule": BETTOR}
    resources = Resources(find_player=lambda name, game: players[name])
    start = {"name": "ppo", "episodes_per_iteration": 32, "batch_size": 16}
    ppo = algorithms.make({**start, "start_from": "cloned"}, NETWORK, KUHN, resources)
    jax.tree.map(np.testing.assert_array_equal, ppo.init(jax.random.key(1)).params, trained.params)
    players["ppo"] = ppo.policies(ppo.init(jax.random.key(1)))["current"]
    again = algorithms.make({**start, "name": "mmd", "start_from": "ppo"}, NETWORK, KUHN, resources)
    jax.tree.map(np.testing.assert_array_equal, again.init(jax.random.key(2)).params, trained.params)
    with pytest.raises(InputError, match=r"algo\.start_from=cloned has another network: .* there and .* here"):
        algorithms.make({**start, "start_from": "cloned"}, {"name": "dueling", "hidden": [8]}, KUHN, resources)
    regrets = algorithms.make({**start, "name": "dueling_dream"}, NETWORK, KUHN, Resources())
    players["regrets"] = regrets.policies(regrets.init(jax.random.key(1)))["current"]
    network, by_regrets = networks.make_network(NETWORK, KUHN), Acts("soft_regret_matching")
    players["document"] = make_network_policy(KUHN, network, trained.params, by_regrets)
    for name in ("rule", "regrets", "document"):
        with pytest.raises(InputError, match=f"start_from={name} does not play by the softmax of one network"):
            algorithms.make({**start, "start_from": name}, NETWORK, KUHN, resources)
    with pytest.raises(InputError, match="a best response starts from"):
        ppo_package.make_against(PpoConfig(start_from="cloned"), NETWORK, KUHN, None)
