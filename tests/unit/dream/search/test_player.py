"""The search player: it knows its view alone, follows its policy without evidence, and uses the time it is given."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tree_values import tree_of

import envs
from dream.evaluation.matches import match
from dream.networks.policy import ValuedPolicy
from dream.search import SearchSettings, Thinker, make_search
from envs import Game, InputError, Policy
from envs.batching import traced_for

SMALL = SearchSettings(worlds=32, pulls=32, particles=32, candidates=3, evidence=0.5)


def _first(params: Any, view: Any, legal: Any) -> Any:
    """Prefers actions of low number, but all of them have a share."""
    shares = np.power(0.6, np.arange(legal.shape[0], dtype=np.float32)) * legal
    return shares / shares.sum().clip(1e-9)


@pytest.fixture(scope="module")
def leduc() -> tuple[Any, Policy]:
    """Leduc poker's tree, and a search player of it."""
    tree = tree_of("leduc_poker")
    return tree, make_search(Policy(_first), tree.game, SMALL)


@jax.jit
def _rows(player: Policy, views: Any, legal: Any) -> Any:
    return jax.vmap(player)(views, legal)


def _chances(player: Policy, views: Any, legal: Any) -> np.ndarray:
    """Returns what a player does, 200 decisions at a time, so that it compiles once however many are asked for."""
    parts = [np.arange(start, start + 200) % len(legal) for start in range(0, len(legal), 200)]  # the last begins again
    taken = [_rows(player, *jax.tree.map(lambda x, at=at: x[at], (views, legal))) for at in parts]
    return np.concatenate(jax.device_get(taken))[: len(legal)]


def _choices(player: Policy, views: Any, legal: Any) -> np.ndarray:
    return _chances(player, views, legal).argmax(axis=1)


def test_what_is_hidden_changes_nothing(leduc: tuple[Any, Policy]) -> None:
    """On 32 deals that show a player the same, it does the same; the deals differ, and so do its choices elsewhere."""
    tree, player = leduc
    game = tree.game
    views, legal = jax.tree.map(lambda x: x[:200], tree.views), tree.legal[:200]
    chosen = _choices(player, views, legal)
    assert len(set(chosen.tolist())) > 1
    assert np.any(chosen != np.argmax(legal, axis=1))
    for number in (40, 120):
        view = jax.tree.map(lambda x, n=number: jnp.asarray(x[n]), views)
        worlds = jax.vmap(game.determinize, (None, 0))(view, jax.random.split(jax.random.key(number), 200))
        assert len(np.unique(worlds.hands, axis=0)) > 1
        seen = jax.vmap(game.view)(worlds, worlds.current_player)
        again = _choices(player, seen, jax.vmap(game.legal_actions)(worlds))
        assert np.all(again == chosen[number])


def _not_from(seat: Any, view: Any, legal: Any) -> Any:
    """Gives nothing from a seat on: in the second alone it is seen in playouts and beliefs while the first decides."""
    return jnp.where(view.seat >= seat, jnp.nan, _first((), view, legal))


def _no_worth(params: Any, view: Any) -> Any:
    return jnp.float32(jnp.nan)


WITHOUT_ANSWER = {
    "anywhere": (Policy(_not_from, np.int32(0)), SMALL),
    "without worlds": (Policy(_not_from, np.int32(0)), dataclasses.replace(SMALL, worlds=0)),
    "for the other seat": (Policy(_not_from, np.int32(1)), SMALL),
    "of worth": (ValuedPolicy(_first, (), value=_no_worth), dataclasses.replace(SMALL, cut=0)),
}


@pytest.mark.parametrize("kind", WITHOUT_ANSWER)
def test_without_an_answer_to_search_with_there_is_none(kind: str) -> None:
    """A policy or value that is NaN is not played on as if nothing were wrong: a match refuses the player."""
    game = envs.make("leduc_poker")
    policy, settings = WITHOUT_ANSWER[kind]
    player = make_search(policy, game, settings)
    state = game.init(jax.random.key(0))
    row = jax.jit(Policy.__call__)(player, game.view(state, state.current_player), game.legal_actions(state))
    assert np.isnan(row).all()
    with pytest.raises(InputError, match="the first player's policy gives probabilities that are not finite"):
        match(game, player, envs.make_bot("random", game), games=8)
    if settings.worlds:
        with pytest.raises(InputError, match="no action is chosen"):
            Thinker(player).think(game.view(state, state.current_player), np.asarray(game.legal_actions(state)), 0.0)


def test_a_choice_is_legal_and_certain(leduc: tuple[Any, Policy]) -> None:
    """One action has all the probability; a game that is over has none."""
    tree, player = leduc
    over = np.zeros((1, tree.game.num_actions), bool)
    views = jax.tree.map(lambda x: np.concatenate([x, x[:1]]), tree.views)
    *probs, nothing = _chances(player, views, np.concatenate([tree.legal, over]))
    probs = np.array(probs)
    assert np.all(probs.max(axis=1) == 1)
    assert np.all(probs.sum(axis=1) == 1)
    assert np.all(tree.legal[np.arange(len(probs)), probs.argmax(axis=1)])
    assert not np.any(nothing)


def test_no_worlds_or_no_evidence_leave_the_policys_choice(leduc: tuple[Any, Policy]) -> None:
    """With none at all, and with a thousand standard errors asked for before the public card is known.

    Later some gains are the same in all worlds, and have no error at all.
    """
    tree, _ = leduc
    early = tree.views.public == tree.views.public[0]
    first = np.argmax(tree.legal, axis=1)
    for changed in ({"worlds": 0}, {"evidence": 1000.0}):
        other = make_search(Policy(_first), tree.game, dataclasses.replace(SMALL, **changed))
        differ = _choices(other, tree.views, tree.legal) != first
        assert not np.any(differ[early])
        assert not np.any(differ) or "evidence" in changed


def test_settings_share_a_program() -> None:
    """Worlds, evidence, cut and seed are parameters."""
    game = envs.make("kuhn_poker")
    one = make_search(Policy(_first), game, SMALL)
    changed = {"worlds": 320, "evidence": 2.0, "cut": -1, "seed": 7, "mistakes": 0.5, "effective_share": 1.0}
    two = make_search(Policy(_first), game, dataclasses.replace(SMALL, **changed))
    assert one.apply == two.apply
    assert hash(one.apply) == hash(two.apply)
    assert jax.tree.structure(one.params) == jax.tree.structure(two.params)
    assert int(two.params.brackets) == 10 * int(one.params.brackets)


def test_a_bonus_for_wins_counts_where_it_is_asked_for(leduc: tuple[Any, Policy]) -> None:
    """By default choices are those of the same policy without bonus and value, however wrong the value is."""
    tree, player = leduc

    def misleading(params: Any, view: Any) -> Any:
        return 100.0 * view.card

    policy = ValuedPolicy(_first, value=misleading, win_bonus=5.0)
    plain, paid, trained = (
        _choices(one, tree.views, tree.legal)
        for one in (
            player,
            make_search(policy, tree.game, SMALL),
            make_search(policy, tree.game, dataclasses.replace(SMALL, counts_bonus=True)),
        )
    )
    np.testing.assert_array_equal(paid, plain)
    assert np.any(trained != plain)


def test_a_bonus_for_wins_needs_a_game_that_pays_at_its_end() -> None:
    """What the last round of a match pays is not who has won the match; without the bonus any game will do."""
    policy, game = ValuedPolicy(_first, win_bonus=5.0), envs.make("rummy500", num_players=2, target=500)
    settings = dataclasses.replace(SMALL, weighted=False)
    make_search(policy, game, settings)
    with pytest.raises(InputError, match="counts_bonus=True needs a game that pays at its end; rummy500 pays before"):
        make_search(policy, game, dataclasses.replace(settings, counts_bonus=True))


def test_it_beats_its_own_policy() -> None:
    """At Kuhn poker, where a policy that always prefers to pass loses much to one that looks ahead."""
    game = envs.make("kuhn_poker")
    policy = Policy(_first, game=game)
    settings = dataclasses.replace(SMALL, worlds=128, pulls=64, particles=128)
    report = match(game, make_search(policy, game, settings), policy, games=2000, seed=1)
    assert report["points_per_hand"].low > 0.1


def test_a_thinker_thinks_until_its_time_is_up() -> None:
    """One bracket at least; more time, more worlds; the first bracket is the player's own."""
    tree = tree_of("leduc_poker")
    player = make_search(Policy(_first), tree.game, dataclasses.replace(SMALL, evidence=0.0))
    thinker, picked = Thinker(player), 0
    chosen = _choices(player, tree.views, tree.legal)
    for number in range(0, 60, 6):
        view = jax.tree.map(lambda x, n=number: x[n], tree.views)
        one = thinker.think(view, tree.legal[number], 0.0)
        assert one.action == chosen[number]
        assert one.worlds.max() <= SMALL.pulls
        more = thinker.think(view, tree.legal[number], 60.0, most=5)
        picked += more.worlds.max() > one.worlds.max()
        candidates = more.actions[more.actions >= 0]
        assert np.all(tree.legal[number, candidates])
        assert more.action in candidates
        assert np.all(np.isfinite(more.values[more.worlds > 0]))
    assert picked > 2


def test_only_a_search_player_thinks() -> None:
    """In one line."""
    with pytest.raises(InputError, match="only a search player thinks"):
        Thinker(Policy(_first))


@pytest.mark.parametrize("name", ["worlds", "mistakes", "pulls"])
def test_settings_out_of_range_are_refused(name: str) -> None:
    """Each by its name."""
    with pytest.raises(InputError, match=rf"search\.{name}=-1.* is out of range"):
        make_search(Policy(_first), envs.make("kuhn_poker"), SearchSettings(**{name: -1}))


def test_worlds_are_whole_brackets_or_less_than_one() -> None:
    """100 of 64 would be 128, and two players of other names the same one."""
    game = envs.make("kuhn_poker")
    for worlds, pulls, brackets in ((40, 40, 1), (64, 64, 1), (192, 64, 3), (0, 64, 0)):
        player = make_search(Policy(_first), game, SearchSettings(worlds=worlds))
        assert (player.apply.pulls, int(player.params.brackets)) == (pulls, brackets)
    with pytest.raises(InputError, match=r"search\.worlds=100 is not valid; .* multiple of 64, .* or less: 64 or 128"):
        make_search(Policy(_first), game, SearchSettings(worlds=100))


@pytest.mark.parametrize("missing", ["determinize", "replay_actions"])
def test_a_game_without_worlds_is_refused(missing: str) -> None:
    """One that cannot redeal; and one that does not keep its actions, unless worlds are not weighed."""
    blind = type("Blind", (type(envs.make("kuhn_poker")),), {missing: getattr(Game, missing)})()
    message = {"determinize": "cannot redeal what a view hides", "replay_actions": "does not keep its actions"}[missing]
    with pytest.raises(InputError, match=message):
        make_search(Policy(_first), blind, SMALL)
    if missing == "replay_actions":
        make_search(Policy(_first), blind, dataclasses.replace(SMALL, weighted=False))


def test_a_search_is_no_opponent_of_a_search() -> None:
    """Each step of each playout would be a search."""
    game = envs.make("kuhn_poker")
    with pytest.raises(InputError, match="cannot search with another one"):
        make_search(Policy(_first), game, SMALL, make_search(Policy(_first), game, SMALL))


def test_an_accelerator_takes_many_decisions_at_once(
    leduc: tuple[Any, Policy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many that the worlds of all fill 4,096 lanes; a CPU takes one after the other."""
    tree, search = leduc
    asked = []

    def where_needed(needed: Any, function: Any, otherwise: Any, *arguments: Any, **chunks: int) -> Any:
        asked.append(chunks)
        return otherwise

    monkeypatch.setattr("dream.search.player.where_needed", where_needed)
    for backend in ("cpu", "cuda"):
        with traced_for(backend):
            jax.eval_shape(search, jax.tree.map(lambda x: x[0], tree.views), tree.legal[0])
    assert asked == [{"smallest_chunk": n, "largest_chunk": n} for n in (1, 4096 // 32)]
