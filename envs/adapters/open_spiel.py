"""OpenSpiel: our games as pyspiel games, our policies as its policies and bots.

A game that can be enumerated becomes one with explicit chance nodes, its views as information states, so that
OpenSpiel's algorithms run on it. Any other game gets one chance node, the deal, with `deals` equally likely outcomes,
outcome n being `init(key(n))`; it provides observations only.

Policies and bots play on these games, and those for `gin_rummy_openspiel` on pyspiel's own gin_rummy too.
pyspiel is imported when a function is called.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from envs.errors import InputError
from envs.game import EnumerableGame, Game, Policy

NATIVE = {"gin_rummy_openspiel": "gin_rummy"}
"""Our games that are pyspiel's to the bit."""
_DEALS = 1000
_BOUND = 1e3
"""No game pays more, in units of reward."""


class _Functions:
    """A game's functions, compiled once, on and to NumPy."""

    def __init__(self, game: Game) -> None:
        self.step = jax.jit(game.step)
        self.legal = jax.jit(game.legal_actions)
        self.view = jax.jit(game.view)
        self.encode = jax.jit(game.encode)
        self.init = jax.jit(lambda seed: game.init(jax.random.key(seed)))
        if isinstance(game, EnumerableGame):
            self.outcomes = jax.jit(game.outcomes)


@functools.cache
def _functions(game: Game) -> _Functions:
    return _Functions(game)


class _Kept:
    """A value that copies share, as states are never changed in place, with what has been worked out about it."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self._known: dict[Any, Any] = {}

    def once(self, key: Any, work_out: Callable[[], Any]) -> Any:
        """Returns what `work_out` gave for `key` the first time."""
        if key not in self._known:
            self._known[key] = work_out()
        return self._known[key]

    def __deepcopy__(self, memo: Any) -> _Kept:
        return self


_NOTHING = _Kept([])


def game(game: Game, deals: int = _DEALS) -> Any:
    """Returns a game as a pyspiel game.

    Args:
      game: with two players or more.
      deals: for a game that cannot be enumerated, the number of deals its chance node offers.
    Raises:
      ImportError: open_spiel is not installed.
    """
    return _game_class(game, deals)()


def policy(policy: Policy, game: Game) -> Any:
    """Returns a policy as an OpenSpiel Python policy.

    Args:
      policy: of the game.
      game: what it plays; the policy answers for states of `game(game)`, and of pyspiel's game where that is the same.
    """
    import pyspiel  # noqa: F401  # says at once what is missing
    from open_spiel.python import policy as base

    choose = _chooser(policy, game)

    class _Policy(base.Policy):
        def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
            return choose(state)

    return _Policy(_game_class(game, _DEALS)(), list(range(game.num_players)))


def bot(policy: Policy, game: Game, player: int, seed: int = 0) -> Any:
    """Returns a policy as a pyspiel bot, for `pyspiel.evaluate_bots` and the like.

    Args:
      policy: of the game.
      game: what it plays; as for `policy`.
      player: its seat.
      seed: of the choice among its actions.
    """
    import pyspiel

    choose = _chooser(policy, game)

    class _Bot(pyspiel.Bot):
        def __init__(self) -> None:
            pyspiel.Bot.__init__(self)
            self._rng = np.random.default_rng(seed)

        def player_id(self) -> int:
            return player

        def provides_policy(self) -> bool:
            return True

        def get_policy(self, state: Any) -> list[tuple[int, float]]:
            return list(choose(state).items())

        def step_with_policy(self, state: Any) -> tuple[list[tuple[int, float]], int]:
            probs = self.get_policy(state)
            weights = np.array([chance for _, chance in probs])
            return probs, probs[self._rng.choice(len(probs), p=weights / weights.sum())][0]

        def step(self, state: Any) -> int:
            return self.step_with_policy(state)[1]

        def restart(self) -> None:
            pass

        def restart_at(self, state: Any) -> None:
            pass

    return _Bot()


def state_of(game: Game, state: Any) -> Any:
    """Returns our state of a pyspiel state that is a player's to act on.

    Args:
      game: our game.
      state: of `game(game)`, or of the same game of pyspiel.
    Raises:
      InputError: a state of another game.
    """
    if hasattr(state, "kept") and state.ours == game:
        return state.kept.value
    name = state.get_game().get_type().short_name
    if name != NATIVE.get(game.name):
        raise InputError(f"a state of OpenSpiel's {name} is not one of {game.name}")
    return replayed(game, *_history(game, state))


def replayed(game: Game, deck: Sequence[int], actions: Sequence[int]) -> Any:
    """Returns the state after actions were played on a deck."""
    padded = np.zeros(game.max_length, np.int32)
    padded[: len(actions)] = actions
    return _replay(game, np.asarray(deck), padded, len(actions))


@functools.partial(jax.jit, static_argnums=0)
def _replay(game: Any, deck: Array, actions: Array, count: Array) -> Any:
    return lax.fori_loop(0, count, lambda n, state: game.step(state, actions[n])[0], game.from_deck(deck))


def _history(game: Any, state: Any) -> tuple[list[int], list[int]]:
    """Takes a pyspiel history apart: the deck, what nobody has drawn last, and the players' actions."""
    deck, actions = [], []
    for entry in state.full_history():
        (deck if entry.player < 0 else actions).append(entry.action)
    return deck + sorted(set(range(game.rules.num_cards)) - set(deck)), actions


def _chooser(policy: Policy, game: Game) -> Any:
    """Returns the function pyspiel state -> {action: probability}."""

    @jax.jit
    def probabilities(params: Any, state: Any) -> tuple[Array, Array]:
        legal = game.legal_actions(state)
        return policy.apply(params, game.view(state, state.current_player), legal), legal

    def work_out(state: Any) -> dict[int, float]:
        probs, legal = jax.device_get(probabilities(policy.params, state_of(game, state)))
        return {int(action): float(probs[action]) for action in np.flatnonzero(legal)}

    def choose(state: Any) -> dict[int, float]:
        if hasattr(state, "kept"):
            return dict(state.kept.once(probabilities, lambda: work_out(state)))
        return work_out(state)

    return choose


@functools.cache
def _game_class(ours: Game, deals: int) -> Any:
    """Builds and registers the pyspiel game class of a game."""
    import pyspiel

    identity = json.dumps([ours.identity, deals], sort_keys=True)
    name = f"dream_{ours.name}_{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    explicit = isinstance(ours, EnumerableGame)
    kind = pyspiel.GameType(
        short_name=name,
        long_name=ours.name,
        dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
        chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
        information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
        utility=pyspiel.GameType.Utility.ZERO_SUM,
        reward_model=pyspiel.GameType.RewardModel.TERMINAL,
        max_num_players=ours.num_players,
        min_num_players=ours.num_players,
        provides_information_state_string=explicit,
        provides_information_state_tensor=explicit,
        provides_observation_string=True,
        provides_observation_tensor=True,
        provides_factored_observation_string=False,
    )
    roots, chances = _roots(ours, deals)
    info = pyspiel.GameInfo(
        num_distinct_actions=ours.num_actions,
        max_chance_outcomes=max(len(roots), _most_outcomes(ours, roots)),
        num_players=ours.num_players,
        min_utility=-_BOUND,
        max_utility=_BOUND,
        utility_sum=0.0,
        max_game_length=ours.max_length,
    )

    class _Game(pyspiel.Game):
        def __init__(self, params: Any = None) -> None:
            super().__init__(kind, info, params or {})

        def new_initial_state(self) -> Any:
            return state_class(self)

        def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> Any:
            return _Observer(ours)

    state_class = _state_class(ours, roots, chances)
    pyspiel.register_game(kind, _Game)
    return _Game


def _roots(game: Game, deals: int) -> tuple[list[Any], list[float]]:
    """Lists the starting states, or the seeds they are dealt from, with their probabilities."""
    if not isinstance(game, EnumerableGame):
        return list(range(deals)), [1 / deals] * deals
    states, probs = jax.device_get(game.initial_outcomes())
    listed = [_Kept(jax.tree.map(lambda x, n=n: x[n], states)) for n in np.flatnonzero(probs)]
    kept = probs[probs > 0].astype(float)
    return listed, (kept / kept.sum()).tolist()


def _most_outcomes(game: Game, roots: list[Any]) -> int:
    """Returns how many outcomes an action can have."""
    if not isinstance(game, EnumerableGame):
        return 1
    return jax.eval_shape(game.outcomes, roots[0].value, jnp.int32(0))[1].shape[0]


class _Played:
    """What a pyspiel state of one of our games does; `_state_class` joins it to pyspiel.State, which is imported late.

    Attributes:
      ours: the game.
      roots, chances: where it may start, and how likely.
      special: pyspiel.PlayerId, what stands for nobody's turn.
    """

    ours: Game
    roots: list[Any]
    chances: list[float]
    special: Any

    def __init__(self, game: Any) -> None:
        super().__init__(game)
        self.kept = _Kept(None)
        self._pending = _Kept(list(zip(range(len(self.roots)), self.chances, strict=True)))
        self._branches = _Kept([(root, [0.0] * self.ours.num_players, False) for root in self.roots])
        self._returns = [0.0] * self.ours.num_players
        self._over = False

    def current_player(self) -> int:
        if self._over:
            return int(self.special.TERMINAL)
        return int(self.special.CHANCE) if self._pending.value else int(self.kept.value.current_player)

    def _legal_actions(self, player: int) -> list[int]:
        legal = _functions(self.ours).legal
        return list(self.kept.once("legal", lambda: np.flatnonzero(legal(self.kept.value)).tolist()))

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return self._pending.value

    def _apply_action(self, action: int) -> None:
        if self._pending.value:
            self._arrive(*self._branches.value[action])
        elif isinstance(self.ours, EnumerableGame):
            self._branch(self.kept.once(action, lambda: _branches(self.ours, self.kept.value, action)))
        else:
            state, rewards, done = jax.device_get(_functions(self.ours).step(self.kept.value, np.int32(action)))
            self._arrive(_Kept(state), rewards, done)

    def _branch(self, branches: list[tuple]) -> None:
        """Goes to the one outcome there is, or to a chance node over them."""
        if len(branches) == 1:
            self._arrive(*branches[0][1:])
            return
        self._branches = _Kept([branch[1:] for branch in branches])
        self._pending = _Kept([(n, branch[0]) for n, branch in enumerate(branches)])

    def _arrive(self, kept: _Kept, rewards: Any, done: Any) -> None:
        self.kept = _Kept(jax.device_get(_functions(self.ours).init(kept))) if isinstance(kept, int) else kept
        self._pending, self._branches = _NOTHING, _NOTHING
        self._over = bool(done)
        self._returns = [was + float(now) for was, now in zip(self._returns, rewards, strict=True)]

    def _action_to_string(self, player: int, action: int) -> str:
        return f"{'chance' if player < 0 else f'player {player}'}: {action}"

    def is_terminal(self) -> bool:
        return self._over

    def returns(self) -> list[float]:
        return self._returns

    def __str__(self) -> str:
        history = " ".join(str(entry.action) for entry in self.full_history())
        return f"{self.ours.name}: {history}"


def _state_class(ours: Game, roots: list[Any], chances: list[float]) -> Any:
    """Builds the pyspiel state class of a game."""
    import pyspiel

    told = {"ours": ours, "roots": roots, "chances": chances, "special": pyspiel.PlayerId}
    return type("_State", (_Played, pyspiel.State), told)


def _branches(game: Any, state: Any, action: int) -> list[tuple]:
    """Lists what an action can lead to: (probability, state, rewards, done)."""
    states, probs, rewards, done = jax.device_get(_functions(game).outcomes(state, np.int32(action)))
    possible = np.flatnonzero(probs)
    weights = probs[possible].astype(float)
    return [
        (chance, _Kept(jax.tree.map(lambda x, n=n: x[n], states)), rewards[n], done[n])
        for n, chance in zip(possible, (weights / weights.sum()).tolist(), strict=True)
    ]


class _Observer:
    """What a player sees, as OpenSpiel asks for it: the observation vector, and the view's bytes in hexadecimal."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self.tensor = np.zeros(game.observation_size, np.float32)
        self.dict = {"observation": self.tensor}

    def set_from(self, state: Any, player: int) -> None:
        """Fills `tensor` with what `player` sees; zeros before the deal."""
        view = self._view(state, player)
        self.tensor[:] = 0 if view is None else _functions(self._game).encode(view)

    def string_from(self, state: Any, player: int) -> str:
        """Returns the view of `player` as text, which tells information states apart where views do."""
        return state.kept.once(("text", player), lambda: self._text(state, player))

    def _text(self, state: Any, player: int) -> str:
        leaves = jax.tree.leaves(self._view(state, player))
        return f"player {player}: " + b"".join(np.asarray(x).tobytes() for x in leaves).hex()

    def _view(self, state: Any, player: int) -> Any:
        if state.kept.value is None:
            return None
        return jax.device_get(_functions(self._game).view(state.kept.value, np.int32(player)))
