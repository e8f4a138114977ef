"""Gymnasium's vector environment: each game is what its rules, its seed and the actions in it make of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import envs
from envs import registry
from envs.adapters import seat_play
from envs.adapters.gymnasium import single_player_env
from envs.errors import InputError
from envs.game import Game, Policy
from tests.support.keyed_game import KeyedGame

pytest.importorskip("gymnasium")

import gymnasium

from envs.adapters.gymnasium_registration import register
from envs.adapters.gymnasium_vector import vector_env

LEDUC = envs.make("leduc_poker")


def _last_legal(params: tuple[()], view: Any, legal: jax.Array) -> jax.Array:
    size = legal.shape[0]
    return jax.nn.one_hot(size - 1 - jnp.argmax(legal[::-1]), size)


LAST_LEGAL = Policy(_last_legal)
"""A player without chance, that raises as long as it may."""


def _legal_actions(infos: dict[str, Any], rng: np.random.Generator) -> np.ndarray:
    """Returns a random legal action of each game, 0 where it is over."""
    return np.array([rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in infos["action_mask"]])


def _plain_step(game: Game, state: Any, action: int, seat: int) -> tuple[Any, float]:
    """Plays an action, and the last legal ones of whoever follows; returns the state and what the seat was paid."""
    state, paid, _ = game.step(state, jnp.int32(action))
    total = float(paid[seat])
    while int(state.current_player) not in (-1, seat):
        state, paid, _ = game.step(state, jnp.int32(np.flatnonzero(game.legal_actions(state))[-1]))
        total += float(paid[seat])
    return state, total


def test_a_step_is_what_the_rules_say() -> None:
    """Of every game of a batch: reward, end, mask and observation; a game that is over is dealt anew by the next."""
    env = vector_env(LEDUC, LAST_LEGAL, seat=1, num_envs=5)
    assert env.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP
    _, infos = env.reset(seed=1)
    rng, over, ended = np.random.default_rng(0), np.zeros(5, bool), 0
    for _ in range(7):
        before, actions = jax.device_get(env._states), _legal_actions(infos, rng)
        seen, rewards, now, truncated, infos = env.step(actions)
        assert seen in env.observation_space
        assert not truncated.any()
        for n in range(5):
            if over[n]:
                assert (rewards[n], now[n], infos["action_mask"][n].any()) == (0.0, False, True)
                continue
            state, paid = _plain_step(LEDUC, jax.tree.map(lambda x, n=n: jnp.asarray(x[n]), before), actions[n], 1)
            assert rewards[n] == paid
            assert now[n] == (int(state.current_player) < 0)
            np.testing.assert_array_equal(infos["action_mask"][n], LEDUC.legal_actions(state))
            np.testing.assert_array_equal(seen[n], LEDUC.observe(state, jnp.int32(1)))
        over, ended = now, ended + now.sum()
    assert ended >= 5


def _course(env: Any, seed: int, steps: int, **reset: Any) -> list[tuple[Any, ...]]:
    """Returns what a run of legal actions, chosen by the masks alone, gives."""
    seen, infos = env.reset(seed=seed, **reset)
    course = [(seen, infos["action_mask"])]
    for n in range(steps):
        mask = infos["action_mask"]
        actions = np.argmax(mask * (1 + (np.arange(mask.shape[1]) + n) % mask.shape[1]), axis=1)
        seen, rewards, over, _, infos = env.step(actions)
        course.append((seen, infos["action_mask"], rewards, over))
    return course


def test_a_seat_that_never_has_a_turn_is_refused() -> None:
    """Where player 0's only turn ends the round, dealing again and again would never end."""
    game = envs.make("mini_gin_rummy", max_turns=1, first_offer=False)
    for env in (single_player_env(game, seat=1), vector_env(game, seat=1, num_envs=2)):
        with pytest.raises(InputError, match="seat=1 of mini_gin_rummy has had no turn in 1000 games"):
            env.reset(seed=0)


@pytest.mark.parametrize("seed", [1.5, "a", b"ab", np.array(-1), -1, [0, -1], ["a", "b"], 2**32 - 1, [2**32, 0]])
def test_wrong_seeds_are_refused(seed: Any) -> None:
    """In one line, before anything is dealt; -1 would be the seed 2^32 - 1, and 2^32 the seed 0."""
    env = vector_env(envs.make("kuhn_poker"), num_envs=2)
    with pytest.raises(InputError, match=r"seed=.* must be .*0 to 4294967295"):
        env.reset(seed=seed)
    with pytest.raises(InputError, match="call reset"):
        env.step(np.zeros(2, np.int64))
    assert env.reset(seed=np.array([3, 4]))[1]["action_mask"].shape == (2, 2)
    env.reset(seed=np.array(3))
    assert env.np_random_seed == (3, 4)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"rest_mask": np.array([True, False])}, "unknown option of reset 'rest_mask'; did you mean 'reset_mask'?"),
        ([True, False], r"options=\[True, False\] is not valid; it must be a dict"),
    ],
)
def test_wrong_options_are_refused(options: Any, line: str) -> None:
    """One line; by a misspelt mask all games would be dealt anew."""
    env = vector_env(envs.make("kuhn_poker"), num_envs=2)
    env.reset(seed=0)
    with pytest.raises(InputError, match=line):
        env.reset(options=options)
    env.reset(options={})


def test_a_game_without_a_seed_of_its_own_goes_on_by_the_one_it_has() -> None:
    """As in SyncVectorEnv: None in a list of seeds is no new randomness, and the seeds are there to be read."""
    courses = []
    for given in ([5, None], [5, None], None):
        env = vector_env(LEDUC, "random", num_envs=2)
        assert env.np_random_seed == (-1, -1)
        env.reset(seed=0)
        seen, infos = env.reset(seed=given)
        assert env.np_random_seed == ((0, 1) if given is None else (5, 1))
        course = [seen]
        for _ in range(6):
            seen, *_, infos = env.step(infos["action_mask"].argmax(axis=1))
            course.append(seen)
        courses.append(np.array(course))
    one, again, unseeded = courses
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(one[:, 1], unseeded[:, 1])
    assert (one[:, 0] != unseeded[:, 0]).any()


def test_a_games_course_follows_from_its_own_seed() -> None:
    """Game n of a batch with seed s is that of a batch of one with seed s + n, whoever plays next to it."""
    whole = _course(vector_env(LEDUC, "random", num_envs=6), 40, 9)
    again = _course(vector_env(LEDUC, "random", num_envs=6), 40, 9)
    alone = _course(vector_env(LEDUC, "random", num_envs=1), 44, 9)
    for parts, same, single in zip(whole, again, alone, strict=True):
        for part, other, one in zip(parts, same, single, strict=True):
            np.testing.assert_array_equal(part, other)
            np.testing.assert_array_equal(part[4], one[0])
    assert any(part[3].any() for part in whole[1:])


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_state_may_keep_a_typed_key(mode: str) -> None:
    """Of a game from outside: each of two games as by itself, and dealt anew."""
    courses = []
    for seed, number in ((3, 2), (3, 1), (4, 1)):
        env = vector_env(KeyedGame(), "random", num_envs=number, autoreset_mode=mode)
        seen, _ = env.reset(seed=seed)
        course = [seen]
        for _ in range(5):
            seen, _, over, _, _ = env.step(np.ones(number, int))
            if mode == "Disabled" and over.any():
                seen, _ = env.reset(options={"reset_mask": over})
            course.append(seen)
        courses.append(np.array(course))
    np.testing.assert_array_equal(courses[0], np.concatenate(courses[1:], axis=1))


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_a_games_course_is_its_own_where_neighbours_are_dealt_anew(mode: str) -> None:
    """Calls that deal some games do not move the draws of the others."""

    def course(num_envs: int) -> list[Any]:
        env = vector_env(LEDUC, "random", num_envs=num_envs, autoreset_mode=mode)
        seen, infos = env.reset(seed=0)
        found = [seen[0].tolist()]
        for _ in range(40):
            seen, rewards, over, _, infos = env.step(infos["action_mask"].argmax(axis=1))
            if mode == "Disabled" and over.any():
                seen, infos = env.reset(options={"reset_mask": over})
            found.append((seen[0].tolist(), rewards[0], over[0]))
        return found

    assert course(1) == course(8)


class _PaidAtOnce(type(envs.make("kuhn_poker"))):
    """Kuhn poker in which every action costs the actor a quarter of a chip."""

    def step(self, state: Any, action: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        after, rewards, done = super().step(state, action)
        return after, rewards + jnp.where(jnp.arange(2) == state.current_player, -0.25, 0.25), done


def test_what_is_paid_before_the_first_turn_counts() -> None:
    """In the reward of that turn, of one game and of many: an episode's rewards sum to what the game paid."""
    game = _PaidAtOnce()
    many, one = vector_env(game, LAST_LEGAL, seat=1, num_envs=3), single_player_env(game, LAST_LEGAL, seat=1)
    many.reset(seed=0)
    one.reset(seed=0)
    # The other has bet, the seat passes: it loses its ante, and the two quarters cancel.
    assert one.step(0)[1] == -1.0
    np.testing.assert_array_equal(many.step(np.zeros(3, int))[1], -1.0)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_what_is_paid_before_an_illegal_first_action_counts(mode: str) -> None:
    """Besides the worst reward, of one game and of many; nothing of it is left for the next game."""
    game = _PaidAtOnce()
    many = vector_env(game, LAST_LEGAL, seat=1, num_envs=3, autoreset_mode=mode)
    one = single_player_env(game, LAST_LEGAL, seat=1)
    many.reset(seed=0)
    one.reset(seed=0)
    # The other has paid a quarter for its bet.
    assert one.step(99)[1] == game.worst_reward + 0.25
    np.testing.assert_array_equal(many.step(np.array([99, 0, 99]))[1], [-1.75, -1.0, -1.75])
    one.reset()
    if mode == "NextStep":
        np.testing.assert_array_equal(many.step(np.zeros(3, int))[1], 0.0)
    elif mode == "Disabled":
        many.reset(options={"reset_mask": np.ones(3, bool)})
    assert one.step(0)[1] == -1.0
    np.testing.assert_array_equal(many.step(np.zeros(3, int))[1], -1.0)


def test_a_game_that_is_over_can_be_dealt_anew_at_once() -> None:
    """Its last observation, mask and reward are those of the other mode, and the new game is to be played."""
    later = vector_env(LEDUC, "random", num_envs=6)
    at_once = vector_env(LEDUC, "random", num_envs=6, autoreset_mode="SameStep")
    later.reset(seed=3)
    _, infos = at_once.reset(seed=3)
    rng, over = np.random.default_rng(1), np.zeros(6, bool)
    while not over.any():
        actions = _legal_actions(infos, rng)
        last, rewards, over, _, _ = later.step(actions)
        seen, paid, now, _, infos = at_once.step(actions)
        np.testing.assert_array_equal(over, now)
        np.testing.assert_array_equal(rewards, paid)
        assert infos["action_mask"].any(axis=1).all()
    np.testing.assert_array_equal(infos["_final_obs"], over)
    for n in range(6):
        assert (infos["final_obs"][n] is None) == (not over[n])
        if over[n]:
            np.testing.assert_array_equal(infos["final_obs"][n], last[n])
            assert not infos["final_info"]["action_mask"][n].any()
            assert (seen[n] != last[n]).any()


def test_games_that_the_caller_deals_anew() -> None:
    """Those of a mask alone; without it a step after an end is refused."""
    env = vector_env(LEDUC, "random", num_envs=6, autoreset_mode="Disabled")
    _, infos = env.reset(seed=5)
    rng, over = np.random.default_rng(2), np.zeros(6, bool)
    while not over.any():
        seen, _, over, _, infos = env.step(_legal_actions(infos, rng))
    with pytest.raises(InputError, match="reset_mask"):
        env.step(_legal_actions(infos, rng))
    fresh, infos = env.reset(options={"reset_mask": over})
    np.testing.assert_array_equal(fresh[~over], seen[~over])
    assert infos["action_mask"].any(axis=1).all()
    env.step(_legal_actions(infos, rng))


def test_an_illegal_action_ends_its_game() -> None:
    """With the worst reward and nothing legal; the others go on."""
    env = vector_env(LEDUC, "random", num_envs=6)
    _, infos = env.reset(seed=0)
    actions = _legal_actions(infos, np.random.default_rng(0))
    actions[1], actions[2] = np.argmin(infos["action_mask"][1]), 99
    _, rewards, over, _, infos = env.step(actions)
    np.testing.assert_array_equal(infos["illegal_action"], [False, True, True, False, False, False])
    assert rewards[1] == rewards[2] == LEDUC.worst_reward
    assert over[[1, 2]].all()
    assert not infos["action_mask"][[1, 2]].any()
    _, rewards, over, _, infos = env.step(_legal_actions(infos, np.random.default_rng(0)))
    assert "illegal_action" not in infos
    assert (rewards[[1, 2]] == 0).all()
    assert infos["action_mask"][[1, 2]].any(axis=1).all()


def test_a_game_dealt_anew_after_an_illegal_action_goes_on() -> None:
    """Where the same step deals it, a reset of other games leaves it as it is."""
    env = vector_env(LEDUC, "random", num_envs=3, autoreset_mode="SameStep")
    _, infos = env.reset(seed=0)
    actions = infos["action_mask"].argmax(axis=1)
    actions[1] = 99
    _, _, over, _, infos = env.step(actions)
    assert (over[1], infos["illegal_action"][1], infos["final_info"]["illegal_action"][1]) == (True, True, True)
    mask = infos["action_mask"][1]
    _, infos = env.reset(options={"reset_mask": np.array([True, False, False])})
    assert "illegal_action" not in infos
    np.testing.assert_array_equal(infos["action_mask"][1], mask)
    env.step(infos["action_mask"].argmax(axis=1))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_games_that_were_never_dealt_are_not_played(mode: str) -> None:
    """Before the first reset a step is refused, and that reset deals all games."""
    env = vector_env(LEDUC, "random", num_envs=2, autoreset_mode=mode)
    with pytest.raises(InputError, match="call reset"):
        env.step(np.zeros(2, int))
    with pytest.raises(InputError, match="the first reset deals all games"):
        env.reset(seed=0, options={"reset_mask": np.array([True, False])})
    _, infos = env.reset(seed=0, options={"reset_mask": np.ones(2, bool)})
    assert infos["action_mask"].any(axis=1).all()


def test_views_say_what_vectors_say() -> None:
    """A dict of small numbers, from which the game's encoding gives the same vectors."""
    vectors, views = (vector_env(LEDUC, "random", num_envs=6, observation=kind) for kind in ("vector", "view"))
    (dense, infos), (small, _) = vectors.reset(seed=9), views.reset(seed=9)
    for _ in range(3):
        assert small in views.observation_space
        view = LEDUC.view(LEDUC.init(jax.random.key(0)), jnp.int32(0))
        leaves = [
            jnp.asarray(small[jax.tree_util.keystr(path, simple=True, separator=".")]).astype(like.dtype)
            for path, like in jax.tree_util.tree_leaves_with_path(view)
        ]
        again = jax.vmap(LEDUC.encode)(jax.tree.unflatten(jax.tree.structure(view), leaves))
        np.testing.assert_array_equal(again, dense)
        actions = _legal_actions(infos, np.random.default_rng(0))
        dense, _, _, _, infos = vectors.step(actions)
        small = views.step(actions)[0]


def test_registered_names() -> None:
    """Every game, single and vectorised, with the keywords of both."""
    names = register()
    assert names == register()
    assert {name.split("/")[1].rpartition("-v")[0] for name in names} == set(envs.names())
    name = next(name for name in names if "kuhn" in name)
    single = gymnasium.make(name, opponent="random", seat=1)
    assert single.reset(seed=0)[1]["action_mask"].shape == (2,)
    many = gymnasium.make_vec(name, num_envs=3, opponent=LAST_LEGAL, observation="view")
    assert isinstance(many, gymnasium.vector.VectorEnv)
    assert many.reset(seed=0)[1]["action_mask"].shape == (3, 2)
    with pytest.raises(InputError, match="did you mean 'NextStep'"):
        gymnasium.make_vec(name, num_envs=3, autoreset_mode="NextSteps")
    rummy = f"dream_rummy/rummy500-v{envs.make('rummy500').version}"
    line = r"^num_players=3 is a rule of rummy500; it must be given as rules=\{'num_players': 3\}$"
    for make, more in ((gymnasium.make, {}), (gymnasium.make_vec, {"num_envs": 2})):
        with pytest.raises(InputError, match=line):
            make(rummy, num_players=3, **more)
        with pytest.raises(InputError, match="did you mean 'opponent'"):
            make(name, opponnt="random", **more)
        with pytest.raises(
            InputError, match=r"^rules=\['num_players'\] is not valid; it must be a dict, rules by name$"
        ):
            make(rummy, rules=["num_players"], **more)
    for settings, message in (
        ({"seat": 2}, "seat=2"),
        ({"opponent": "rando"}, "did you mean 'random'"),
        ({"devices": 4096}, "devices=4096"),
    ):
        with pytest.raises(InputError, match=message):
            vector_env(envs.make("kuhn_poker"), **settings)


def test_draws_follow_the_probabilities() -> None:
    """Over evenly spaced words exactly; actions of probability 0 never, at either end of the range."""
    probs = jnp.array([0.0, 0.25, 0.0, 0.625, 0.125, 0.0], jnp.float32)
    words = jnp.arange(0, 2**32, 2**22, dtype=jnp.uint32)
    counts = np.bincount(jax.vmap(seat_play.drawn, (None, 0))(probs, words), minlength=6)
    np.testing.assert_array_equal(counts, np.asarray(probs) * 1024)
    ends = jnp.array([0, 2**32 - 1], jnp.uint32)
    np.testing.assert_array_equal(jax.vmap(seat_play.drawn, (None, 0))(probs / 3, ends), [1, 4])


def test_sums_that_round_up_draw_nothing_impossible() -> None:
    """Over 374 actions, most of probability 0, sums rise on some of them: with words that fall there too."""
    rng = np.random.default_rng(1)
    rows = np.where(rng.random((400, 374)) < 0.9, 0, rng.random((400, 374))).astype(np.float32)
    rows /= rows.sum(axis=1, keepdims=True)
    sums = np.asarray(jax.vmap(jnp.cumsum)(rows))
    row, action = np.nonzero((np.diff(sums, axis=1, prepend=0) > 0) & (rows == 0))
    assert len(row) > 10
    words = (np.nextafter(sums[row, action] / sums[row, -1], 0) * 2.0**24).astype(np.uint32) << 8
    assert np.all(rows[row, jax.vmap(seat_play.drawn)(rows[row], words)] > 0)


ANSWERS = {
    "nan": lambda params, view, legal: jnp.full(legal.shape, jnp.nan),
    "illegal": lambda params, view, legal: ~legal / jnp.sum(~legal),
    "negative": lambda params, view, legal: jnp.array([2.0, -1.0]),
    "half": lambda params, view, legal: legal / 4,
}
"""Answers that are no distribution over the legal actions."""


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_opponent_without_an_answer_is_refused(answer: str) -> None:
    """As in matches: what it would have played says nothing of it."""
    if answer == "illegal":
        game, tries = LEDUC, 20
    else:
        game, tries = envs.make("kuhn_poker"), 1
    wrong = Policy(ANSWERS[answer])
    single, many = single_player_env(game, wrong, seat=0), vector_env(game, wrong, seat=0, num_envs=8)
    rng = np.random.default_rng(0)

    def play_many() -> None:
        infos = many.reset(seed=0)[1]
        for _ in range(20 * tries):
            infos = many.step(_legal_actions(infos, rng))[-1]

    def play_one() -> None:
        for seed in range(20 * tries):
            infos, over = single.reset(seed=seed)[1], False
            while not over:
                _, _, over, _, infos = single.step(int(rng.choice(np.flatnonzero(infos["action_mask"]))))

    for play in (play_one, play_many):
        with pytest.raises(InputError, match=r"an opponent in .* gave no distribution over its legal actions"):
            play()


def test_a_trained_opponent_is_a_policy() -> None:
    """Its folder is no name that a game knows, and the line says what to give."""
    with pytest.raises(
        InputError, match=r"known: random; a trained player is .* opponent=dream.load_policy\('runs/a'\)"
    ):
        vector_env(LEDUC, "runs/a", num_envs=2)


def test_words_are_spread_evenly() -> None:
    """Of neighbouring seeds, calls and turns: every bit is set half of the time, and none repeat."""
    seeds, calls, turns = np.meshgrid(*[np.arange(16, dtype=np.uint32)] * 3)
    words = np.asarray(seat_play.word(*(jnp.asarray(x.ravel()) for x in (seeds, calls, turns))))
    assert len(np.unique(words)) == 4096
    shares = ((words[:, None] >> np.arange(32, dtype=np.uint32)) & 1).mean(axis=0)
    assert np.abs(shares - 0.5).max() < 5 * 0.5 / 64


def test_no_game_repeats_anothers_words_later() -> None:
    """1,024 seeds of 4,096 calls have no more words in common than random ones: N^2 / 2^33, 2,048 of N = 2^22.

    Two seeds whose calls run through one sequence, 993 apart, would have some 3,000 more.
    """
    seeds, calls = np.meshgrid(np.arange(1024, dtype=np.uint32), np.arange(4096, dtype=np.uint32))
    words = np.asarray(seat_play.word(jnp.asarray(seeds.ravel()), jnp.asarray(calls.ravel()), jnp.int32(0)))
    assert abs(words.size - len(np.unique(words)) - 2048) < 6 * 2048**0.5


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"num_envs": "2"}, "num_envs='2' is not valid; it must be a whole number"),
        ({"num_envs": 2, "devices": 1.0}, "devices=1.0 is not valid; it must be a whole number"),
    ],
)
def test_numbers_of_games_are_whole(wrong: dict[str, Any], line: str) -> None:
    """One line, not what comes of a comparison."""
    with pytest.raises(InputError, match=line):
        vector_env(envs.make("kuhn_poker"), **wrong)


@pytest.mark.parametrize("actions", [[0.0, 1.0], ["0", "1"]])
def test_actions_are_whole_numbers(actions: list[Any]) -> None:
    """One line, and the games go on."""
    env = vector_env(envs.make("kuhn_poker"), num_envs=2)
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"^actions of type .* are not valid; they must be whole numbers$"):
        env.step(actions)
    with pytest.raises(InputError, match=r"^actions are not an array; they must be one of shape \(2,\)$"):
        env.step([[0], [0, 1]])
    env.step(np.array([0, 0]))


def test_a_game_that_cannot_be_made_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game from outside that has to be given rules: the others have their names."""
    monkeypatch.setattr(registry, "_registered", {"coin": lambda *, sides: None})
    names = [name.split("/")[1].rpartition("-v")[0] for name in register()]
    assert names == [name for name in envs.names() if name != "coin"]
