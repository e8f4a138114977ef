"""Steps of games that go on: what is paid to whom, that nothing is lost between iterations, a run with its hands."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from dream_support import CoinGame, TiedGame

import envs
from dream.algorithms import make
from dream.algorithms.ppo.parts import ActorOutput
from dream.algorithms.ppo.rollouts import _returns
from dream.commands.evaluate import play_match, prepare_match
from dream.config.compose import compose_config
from dream.equations import schedules
from dream.equations.reward_shaping import ShapingConfig, shaping_at
from dream.equations.sampling import entropy, sample_action
from dream.rollout.against_opponents import Rollouts, Step, TransitionSummary
from dream.rollout.opponents import make_mixture
from dream.training.run_state import Run
from dream.training.signals import StopRequest
from dream.training.start import prepare_run
from envs import Game, InputError, Policy, records
from envs.kuhn_poker import KuhnPoker

LANES, STEPS = 64, 60
TINY = ["env=kuhn_poker", "algo=ppo", "preset=tiny", "tracking.mode=disabled"]
GOING_ON = ["algo.num_envs=16", "algo.rollout_length=8", "algo.opponents=[random]", "eval.exact=false"]


@pytest.fixture(scope="module")
def game() -> Game:
    """Kuhn poker, whose games last two or three moves."""
    return envs.make("kuhn_poker")


def _act(view: Any, legal: jax.Array, key: jax.Array) -> tuple[jax.Array, tuple]:
    policy = legal / jnp.sum(legal)
    return sample_action(key, policy), (view.seat, entropy(policy))


@pytest.fixture(scope="module", params=[1, 10])
def played(request: pytest.FixtureRequest, game: Game) -> tuple[Any, Any]:
    """Uniform play against uniform play: lanes and steps, with one move between decisions and with ten."""
    rollouts = Rollouts(game, make_mixture(("random",), None, game), None, request.param)

    @jax.jit
    def play(key: jax.Array) -> tuple[Any, Any]:
        return rollouts.play(rollouts.start(key, LANES), _act, key, STEPS)

    return jax.device_get(play(jax.random.key(3)))


@pytest.mark.parametrize("name", ["leduc_poker", "rummy500"])
def test_every_game_decided_in_ends_a_call_at_a_decision(name: str) -> None:
    """Where its value is known, however many others move before it; a lane between two games has nothing to come."""
    game = envs.make("leduc_poker") if name == "leduc_poker" else envs.make(name, num_players=6)
    rollouts = Rollouts(game, make_mixture(("random",), None, game), None, 1)
    play = jax.jit(lambda lanes, key: rollouts.play(lanes, _act, key, 3))
    lanes = jax.jit(lambda key: rollouts.start(key, LANES))(jax.random.key(1))
    for n in range(4):
        lanes, step = jax.device_get(play(lanes, jax.random.key(n)))
        assert np.all(lanes.awaiting_learner | ~lanes.credited)
        own = lanes.state.current_player == lanes.seating.seat
        assert np.all(own | ~lanes.awaiting_learner)
    assert np.any(lanes.credited)
    assert not np.all(step.valid)


def test_all_that_games_pay_goes_to_their_decisions(played: tuple[Any, Any]) -> None:
    """The rewards of all steps are those of all games; every game of Kuhn has a decision of each player."""
    _, step = played
    results = step.summary.results
    assert step.summary.reward.sum() == pytest.approx(results["reward"].sum())
    assert results["games"].sum() > LANES * STEPS / 5
    assert results["win_rate"].sum() + results["loss_rate"].sum() == results["games"].sum()
    assert not step.summary.tied.any()
    assert np.all(results["games"][step.summary.done] >= 1)
    assert np.all((step.summary.reward == 0) | step.summary.done)
    np.testing.assert_array_equal(step.summary.final_reward, step.summary.reward)  # Kuhn pays at the end alone


def test_results_count_all_that_a_game_paid() -> None:
    """Of the coin game, which pays on the way: rewards, wins and what the end is said to have paid, by game."""
    coin = CoinGame()
    rollouts = Rollouts(coin, make_mixture(("random",), None, coin), None, 10)
    record = jax.jit(lambda key: rollouts.play(rollouts.start(key, LANES), _act, key, STEPS))
    summary = jax.device_get(record(jax.random.key(4))[1].summary)
    alone = summary.done & (summary.results["games"] == 1)  # in the others a game ended before the learner decided
    total, paid = summary.final_reward[alone], summary.results["reward"][alone]
    assert alone.sum() > LANES * STEPS / 4
    np.testing.assert_allclose(paid, total, rtol=1e-5)
    np.testing.assert_array_equal(summary.results["win_rate"][alone] > 0, total > 0)
    np.testing.assert_array_equal(summary.results["tie_rate"][alone] > 0, total == 0)
    assert np.any(total != summary.reward[alone])


def test_ties_of_games_that_pay_on_the_way_are_ties() -> None:
    """Their payments sum to 0 but for rounding."""
    tied = TiedGame()
    rollouts = Rollouts(tied, make_mixture(("random",), None, tied), None, 10)
    record = jax.jit(lambda key: rollouts.play(rollouts.start(key, LANES), _act, key, STEPS))
    summary = jax.device_get(record(jax.random.key(4))[1].summary)
    np.testing.assert_array_equal(summary.results["tie_rate"], summary.results["games"])
    np.testing.assert_array_equal(summary.tied, summary.done)
    assert summary.done.any()
    assert not summary.final_reward.any()


def test_most_steps_hold_a_decision(played: tuple[Any, Any]) -> None:
    """All of them where there is room for the moves between; the learner's seat changes with the deal."""
    lanes, step = played
    few = step.summary.moves[1:-1].max() <= 2  # the last step ends where games stand at a decision
    assert not step.valid[0].any()
    assert step.valid[1:].all() != few
    assert step.valid.mean() > 0.4
    assert set(np.unique(step.extras[0][step.valid])) == {0, 1}
    assert np.all(lanes.state.current_player[lanes.awaiting_learner] == lanes.seating.seat[lanes.awaiting_learner])


def test_a_player_runs_in_its_own_games(game: Game) -> None:
    """Not wherever anybody acts: eight players of an eighth of the games each cost about as much as one of all."""
    rows = []

    def counted(params: Any, view: Any, legal: jax.Array) -> jax.Array:
        def uniform(legal: np.ndarray) -> np.ndarray:
            rows.append(legal.shape[0])
            return (legal / legal.sum(axis=-1, keepdims=True)).astype(np.float32)

        shape = jax.ShapeDtypeStruct(legal.shape, jnp.float32)
        return jax.pure_callback(uniform, shape, legal, vmap_method="expand_dims")

    mixture = make_mixture(("random",) * 8, None, game, lambda name, game: Policy(counted, game=game))
    rollouts = Rollouts(game, mixture, None, 2)
    _, step = jax.jit(lambda key: rollouts.play(rollouts.start(key, 1024), _act, key, 4))(jax.random.key(3))
    others = step.summary.moves.sum() - step.valid.sum()
    assert others < sum(rows) < 3 * others


def test_uniform_play_earns_what_it_should(played: tuple[Any, Any]) -> None:
    """Seats drawn alike, uniform play against itself earns nothing but noise."""
    earned, games = (played[1].summary.results[name].sum() for name in ("reward", "games"))
    assert abs(earned / games) < 5 * 1.5 / np.sqrt(games)


def test_ppo_answers_uniform_play() -> None:
    """Against uniform play in Kuhn (exploitability 0.458 chips) it comes to earn more than 0.35."""
    node = {"name": "ppo", "num_envs": 256, "rollout_length": 16, "opponents": ["random"], "batch_size": 512}
    node |= {"learning_rate": 1e-2, "value_loss": "relative", "entropy_weight": 0.0}
    learner = make(node, {"name": "dueling", "hidden": [32]}, envs.make("kuhn_poker"))
    state = learner.init(jax.random.key(0))
    for _ in range(25):
        state, metrics = learner.iterate(state)
    assert metrics["learner_reward"] > 0.35
    assert metrics["decisions"] > 0.9 * 256 * 16


def test_rollouts_need_fixed_players(game: Game) -> None:
    """Said in one line; so is an assistant that the game lacks."""
    with pytest.raises(InputError, match="must not hold 'self'"):
        make({"name": "ppo", "rollout_length": 4}, {"hidden": [4]}, game)
    with pytest.raises(InputError, match="unknown assistant for kuhn_poker 'exact_endgame'"):
        make({"name": "ppo", "assistant": "exact_endgame"}, {"hidden": [4]}, game)


def test_kept_inputs_change_nothing_but_what_is_kept(game: Game) -> None:
    """The same network, bit for bit, from inputs in place of views; whole games, which have none, are refused."""
    node, fitted = {"name": "ppo", "opponents": ["random"], "num_envs": 16, "rollout_length": 8, "batch_size": 32}, []
    for kept in (False, True):
        learner = make(node | {"keep_inputs": kept}, {"name": "dueling", "hidden": [8]}, game)
        state, _ = learner.iterate(learner.init(jax.random.key(4)))
        fitted.append(jax.device_get(jax.tree.leaves(state.params)))
        ppo = learner.iterate.__self__
        rows = ppo.generate(state, ppo.parts.mixture.players)[0].replay.rows.view
        assert (getattr(rows, "shape", None) == (16 * 8, ppo.parts.network.inputs.size)) == kept
    for a, b in zip(*fitted, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match="keep_inputs=true needs"):
        make({"name": "ppo", "keep_inputs": True}, {"hidden": [4]}, game)


def test_win_bonus_is_in_raw_points(game: Game) -> None:
    """Undiscounted returns of games that end are more by the bonus, a reward of 1 being one chip; others stay."""
    returns = []
    for bonus in (0.0, 3.0):
        node = {
            "name": "ppo",
            "opponents": ["random"],
            "episodes_per_iteration": 32,
            "rollout_length": 12,
            "gae_lambda": 1.0,
        }
        node |= {"shaping": {"scale": {"start": 0.0, "end": 0.0}, "win_bonus": bonus}}
        learner = make(node, {"name": "dueling", "hidden": [8]}, game)
        ppo = learner.iterate.__self__
        replay = ppo.generate(learner.init(jax.random.key(2)), ppo.parts.mixture.players)[0].replay
        returns.append(np.asarray(replay.rows.returns[replay.index[: int(replay.count)]]))
    plain, more = returns[0], returns[1] - returns[0]
    ended = np.abs(more) > 1e-6
    np.testing.assert_allclose(more[ended], 3.0 / game.reward_scale * np.sign(plain[ended]), rtol=1e-5)
    assert ended.mean() > 0.8


def test_shaping_takes_its_last_potential_back(game: Game) -> None:
    """Undiscounted returns are less by the potential alone, also where a game ends while the learner waits."""
    decides, ends = np.array([1, 0, 1, 0, 1, 1]), np.array([0, 0, 0, 1, 0, 1])
    potentials = np.array([[3, 5], [5, 5], [5, 2], [2, 2], [7, 4], [4, 9]])
    nothing = np.zeros((6, 1), np.float32)
    before, after = potentials.T[:, :, None].astype(np.float32)
    summary = TransitionSummary(nothing, ends[:, None] > 0, nothing > 0, nothing, {}, *[nothing] * 3, after)
    step = Step(decides[:, None] > 0, *[()] * 3, before, *[()] * 2, ActorOutput(*[nothing] * 7), summary)
    node = {"opponents": ("random",), "num_envs": 1, "rollout_length": 6, "gae_lambda": 1.0}
    learner = make({"name": "ppo", **node}, {"name": "dueling", "hidden": [8]}, game)
    shaping = shaping_at(ShapingConfig(scale=schedules.constant(0.5)), 0)
    returns = _returns(learner.iterate.__self__.parts, step, jnp.zeros(1), shaping)
    np.testing.assert_allclose(returns[decides > 0, 0], -0.5 * potentials[decides > 0, 0])


class _BetsKuhn(KuhnPoker):
    """Kuhn poker whose potential is what has been bet, by whomever."""

    def potential(self, state: Any, player: jax.Array) -> jax.Array:
        """Returns it."""
        return jnp.float32(state.bets)


@pytest.mark.parametrize("moves", [1, 10])
@pytest.mark.parametrize("assistant", [None, "calls"])
def test_shaping_counts_what_others_moves_change(moves: int, assistant: str | None) -> None:
    """Undiscounted returns of games that end are less by the potential alone, whoever moves in between."""
    game = _BetsKuhn()
    calls = Policy(lambda params, view, legal: jnp.where(view.bets == 0b1001, jnp.array([0.0, 1.0]), 0.0))
    rollouts = Rollouts(game, make_mixture(("random",), None, game), calls if assistant else None, moves)
    play = jax.jit(lambda key: rollouts.play(rollouts.start(key, LANES), _act, key, 12)[1])
    step = play(jax.random.key(4))
    nothing = jnp.zeros((12, LANES))
    step = step._replace(extras=ActorOutput(*[nothing] * 7))
    node = {"opponents": ("random",), "num_envs": LANES, "rollout_length": 12, "gae_lambda": 1.0}
    parts = make({"name": "ppo", **node}, {"name": "dueling", "hidden": [8]}, game).iterate.__self__.parts
    plain, shaped = (
        np.asarray(_returns(parts, step, jnp.zeros(LANES), shaping_at(ShapingConfig(scale=schedules.constant(x)), 0)))
        for x in (0.0, 0.5)
    )
    ended = np.asarray(step.valid) & np.logical_or.accumulate(np.asarray(step.summary.done)[::-1])[::-1]
    assert ended.sum() > 300
    np.testing.assert_allclose((shaped - plain)[ended], -0.5 * np.asarray(step.view.bets)[ended], atol=1e-5)


def test_steps_that_wait_are_not_discounted(game: Game) -> None:
    """By hand: discount to the power of the learner's later decisions in the game, wherever it waits between them."""
    decides, ends = np.array([1, 0, 1, 0, 1, 1]), np.array([0, 0, 0, 1, 0, 1])
    nothing, paid = np.zeros((6, 1), np.float32), np.array([0, 0, 0, 8, 0, 4], np.float32)[:, None]
    summary = TransitionSummary(paid, ends[:, None] > 0, nothing > 0, nothing, {}, *[nothing] * 4)
    step = Step(decides[:, None] > 0, *[()] * 3, nothing, *[()] * 2, ActorOutput(*[nothing] * 7), summary)
    node = {"opponents": ("random",), "num_envs": 1, "rollout_length": 6, "gae_lambda": 1.0, "discount": 0.5}
    learner = make({"name": "ppo", **node}, {"name": "dueling", "hidden": [8]}, game)
    returns = _returns(learner.iterate.__self__.parts, step, jnp.zeros(1), shaping_at(ShapingConfig(), 0))
    np.testing.assert_allclose(returns[decides > 0, 0], [4, 8, 2, 4])


def test_a_lane_goes_on_as_if_it_were_alone() -> None:
    """Another lane is waited for long beyond its own moves; it has no more than those, on however many devices."""
    game = envs.make("rummy500", num_players=6)
    rollouts = Rollouts(game, make_mixture(("random",), None, game), None, 2)
    start = jax.jit(lambda key: rollouts.start(key, LANES))(jax.random.key(5))
    shapes = jax.eval_shape(lambda lanes, key: rollouts.play(lanes, _act, key, 1)[1].summary, start, jax.random.key(0))
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape[1:], x.dtype), shapes)
    waited = start._replace(credited=jnp.arange(LANES) == 0)
    play = jax.jit(rollouts._play_on)
    _, alone = play(start, nothing, jax.random.key(6), jnp.int32(50))
    _, beside = play(waited, nothing, jax.random.key(6), jnp.int32(50))
    np.testing.assert_array_equal(beside.moves[1:], alone.moves[1:])
    assert alone.moves.max() == 2


def _run(folder: pathlib.Path, *overrides: str) -> Run:
    """Runs to the last iteration and saves."""
    run = Run(prepare_run(compose_config("config", [*overrides])))
    while run.iteration < run.config.iterations:
        run.advance(StopRequest(listen=False))
    run.save()
    run.writer.close()
    return run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """Four iterations, and two with two more after a resume."""
    folder = tmp_path_factory.mktemp("runs")
    settings = [*TINY, *GOING_ON]
    whole = _run(folder, *settings, f"run_dir={folder / 'whole'}")
    _run(folder, *settings, f"run_dir={folder / 'halves'}", "iterations=2")
    return whole, _run(folder, f"resume={folder / 'halves'}", "iterations=4")


def test_a_resumed_run_goes_on_with_its_games(runs: tuple[Run, Run]) -> None:
    """Network, optimizer and games under way are those of the run that was not interrupted, bit for bit."""
    one, two = (jax.device_get(jax.tree.leaves(run.state._replace(key=()))) for run in runs)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert runs[0].totals == runs[1].totals
    assert runs[0].totals["decisions"] > 300


def test_games_under_way_keep_their_opponents(runs: tuple[Run, Run]) -> None:
    """A lane's opponent is a number in the list: of another list it would be another player, or none."""
    with pytest.raises(InputError, match=r"^algo\.opponents cannot be changed by resume= .* games against random$"):
        prepare_run(compose_config("config", [f"resume={runs[0].run_dir}", "algo.opponents=[random,random]"]))


def test_histories_of_an_evaluation(runs: tuple[Run, Run], tmp_path: pathlib.Path) -> None:
    """One JSON line a hand: both seats of each deal, the actions of all players, the points that the report sums."""
    file, (run, _) = tmp_path / "hands.jsonl", runs
    asked = [f"checkpoint={run.run_dir}", "games=40", f"histories={file}"]
    play_match(prepare_match(compose_config("evaluate", asked)))
    hands = records.read(file)
    assert [(hand.about["pair"], hand.about["seat"]) for hand in hands] == [(n // 2, n % 2) for n in range(40)]
    assert all(2 <= len(hand.actions) <= 3 and int(records.replay(hand)[1].current_player) == -1 for hand in hands)
    (path,) = (run.run_dir / "evaluations").iterdir()
    report = json.loads(path.read_text())
    assert report["points_per_hand"]["mean"] == pytest.approx(
        sum(hand.result["points"][hand.about["seat"]] for hand in hands) / 40
    )


def test_histories_replace_no_other_file(runs: tuple[Run, Run], tmp_path: pathlib.Path) -> None:
    """A run's own record, for one, is refused as the place for them."""
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"iteration": 1}\n')
    with pytest.raises(InputError, match="choose another file"):
        prepare_match(compose_config("evaluate", [f"checkpoint={runs[0].run_dir}", f"histories={file}"]))


def test_histories_need_a_folder(runs: tuple[Run, Run], tmp_path: pathlib.Path) -> None:
    """Refused before anything is played."""
    for wrong in (tmp_path, tmp_path / "nowhere" / "hands.jsonl"):
        with pytest.raises(InputError, match="it must be a file in a folder that exists"):
            prepare_match(compose_config("evaluate", [f"checkpoint={runs[0].run_dir}", f"histories={wrong}"]))
