"""Gymnasium's vector environment: many games at once in one compiled call per step."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from envs import keys
from envs.adapters.gymnasium import observation_box
from envs.adapters.seat_play import DEAL, HOLD, PLAY, Table, advance_many, make_table, no_answer, no_turn
from envs.errors import InputError, shown, unknown, whole_number
from envs.game import Game, Policy, State

OBSERVATIONS = ("vector", "view")
"""What a seat sees: the game's observation vector, or its view, a dict of small integers that takes far less memory."""
AUTORESETS = ("NextStep", "SameStep", "Disabled")
"""Gymnasium's modes: a game that is over is dealt anew by the next step, whose action is ignored; by the step that ends
it, whose last observation is in infos["final_obs"]; or by `reset` with options={"reset_mask": bool[N]} alone."""

_SHARE = PartitionSpec("games")
"""How arrays of all games are held by several devices."""


def vector_env(
    game: Game,
    opponent: str | Policy | Sequence[str | Policy] = "random",
    seat: int = 0,
    num_envs: int = 1,
    observation: str = "vector",
    autoreset_mode: str = "NextStep",
    devices: int = 1,
) -> Any:
    """Returns a gymnasium.vector.VectorEnv of one seat of many games, the others played by frozen policies.

    `infos["action_mask"]`, int8[N, A], has the legal actions. An illegal action ends its game with the game's worst
    reward, as in `single_player_env`, and infos["illegal_action"], bool[N], marks it, also within infos["final_info"]
    where the same step deals anew. A game's course follows from its own seed, `seed` + its number, and the actions
    played in it.

    Args:
      game: of any number of players.
      opponent: who has all the other seats, or one player for each of them in order of seat; rule-based
        players by name.
      seat: the environment's own.
      num_envs: games.
      observation: one of OBSERVATIONS.
      autoreset_mode: one of AUTORESETS, or gymnasium's own enumeration of them.
      devices: local ones that share the games evenly; on a CPU, devices of one thread each are faster than threads.
    Raises:
      InputError: a seat the game lacks, another number of opponents, an unknown player, observation or mode, or
        devices that there are not or that cannot share the games.
      ImportError: gymnasium is not installed.
    """
    mode = getattr(autoreset_mode, "value", autoreset_mode)
    for name, given, known in (("observation", observation, OBSERVATIONS), ("autoreset_mode", mode, AUTORESETS)):
        if given not in known:
            raise unknown(name, given, known)
    num_envs, devices = whole_number("num_envs", num_envs, "1 or more"), whole_number("devices", devices, "1 or more")
    if num_envs < 1:
        raise InputError(f"num_envs={num_envs} is not valid; it must be at least 1")
    if devices < 1 or devices > jax.local_device_count() or num_envs % devices:
        known = f"1 to {jax.local_device_count()}, and share {num_envs} games evenly"
        raise InputError(f"devices={devices} is not valid; it must be {known}")
    return _env_class()(make_table(game, opponent, seat), num_envs, observation, mode, devices)


@functools.cache
def _env_class() -> type:
    import gymnasium

    return type("SeatsEnv", (_Seats, gymnasium.vector.VectorEnv), {"__doc__": "One seat of many games."})


def _bare(vectors: bool, devices: int) -> Any:
    """Returns an environment with its program and no other attributes."""
    env = object.__new__(_env_class())
    env._advance = _program(vectors, devices)
    return env


class _Seats:
    """One seat of many games; all that is not gymnasium.vector.VectorEnv's own."""

    def __init__(self, table: Table, num_envs: int, observation: str, mode: str, devices: int) -> None:
        from gymnasium import spaces
        from gymnasium.vector import AutoresetMode
        from gymnasium.vector.utils import batch_space

        game = table.game
        self._table, self._vectors, self._mode = table, observation == "vector", mode
        self._devices, self._advance = devices, _program(observation == "vector", devices)
        self.num_envs, self.metadata = num_envs, {"render_modes": [], "autoreset_mode": AutoresetMode(mode)}
        shapes = jax.eval_shape(lambda: game.init(jax.random.key(0)))
        view = jax.eval_shape(lambda state: _named(game.view(state, jnp.int32(table.seat))), shapes)
        self.single_action_space = spaces.Discrete(game.num_actions)
        self.single_observation_space = (
            observation_box(game) if self._vectors else spaces.Dict({name: _box(spaces, x) for name, x in view.items()})
        )
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._states = self._placed(jax.tree.map(lambda x: _zeros(num_envs, x), shapes))
        self._seeds, self._calls = np.zeros(num_envs, np.uint32), np.zeros(num_envs, np.uint32)
        self._seeded, self._owed = False, np.zeros(num_envs, np.float32)
        self._mask, self._over = np.zeros((num_envs, game.num_actions), np.int8), np.ones(num_envs, bool)
        self._illegal = np.zeros(num_envs, bool)

    def __reduce__(self) -> tuple[Any, ...]:
        """Says how copies and pickles are made, as the class has no place in a module."""
        kept = {name: value for name, value in vars(self).items() if name != "_advance"}
        return _bare, (self._vectors, self._devices), kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Takes what a copy or a pickle holds."""
        vars(self).update(kept)
        self._states = self._placed(self._states)

    def _placed(self, states: Any) -> Any:
        """Returns states where the program returns them: else its second call would compile it again."""
        return states if self._devices == 1 else jax.device_put(states, NamedSharding(_mesh(self._devices), _SHARE))

    @property
    def np_random_seed(self) -> tuple[int, ...]:
        """The seed that each game goes by, -1 before the first reset."""
        return tuple(self._seeds.tolist()) if self._seeded else (-1,) * self.num_envs

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Deals all games anew, or those of options["reset_mask"], bool[N]; seeds are as for SyncVectorEnv."""
        chosen = self._reset_mask(options)
        if not (self._seeded or chosen.all()):
            raise InputError("the first reset deals all games; leave out options['reset_mask']")
        self._seed(seed, chosen)
        self._illegal &= ~chosen
        observations, _ = self._call(np.where(chosen, DEAL, HOLD), np.zeros(self.num_envs, np.int32))
        return observations, self._infos(self._illegal)

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict]:
        """Plays the seat's actions and the others' after them."""
        if not self._seeded:
            raise InputError("no game has been dealt; call reset")
        actions, fresh = self._numbers(actions), self._over.copy()
        if fresh.any() and self._mode != "NextStep":
            raise InputError("games are over; call reset, with options={'reset_mask': ...} for some of them")
        known = (actions >= 0) & (actions < self._mask.shape[1])
        legal = known & (self._mask[np.arange(self.num_envs), np.where(known, actions, 0)] > 0)
        self._illegal = ~fresh & ~legal
        kinds = np.where(fresh, DEAL, np.where(legal, PLAY, HOLD))
        fines = self._table.game.worst_reward + self._owed.astype(np.float64)
        observations, rewards = self._call(kinds, np.where(legal, actions, 0))
        rewards = np.where(self._illegal, fines, rewards.astype(np.float64))
        over, self._over = self._over.copy(), self._over & (self._mode != "SameStep")
        infos = self._infos(self._illegal)
        if self._mode == "SameStep" and over.any():
            final = _final(observations, infos, over)
            illegal, self._illegal = self._illegal, np.zeros(self.num_envs, bool)
            observations, _ = self._call(np.where(over, DEAL, HOLD), np.zeros(self.num_envs, np.int32))
            infos = self._infos(illegal) | final
        return observations, rewards, over, np.zeros(self.num_envs, bool), infos

    def _numbers(self, actions: Any) -> np.ndarray:
        """Returns actions as an array; raises InputError unless they are whole numbers, one for each game."""
        try:
            actions = np.asarray(actions)
        except ValueError:
            raise InputError(f"actions are not an array; they must be one of shape ({self.num_envs},)") from None
        if actions.shape != (self.num_envs,):
            raise InputError(f"actions of shape {actions.shape} are not valid; it must be ({self.num_envs},)")
        if actions.dtype.kind not in "biu":
            raise InputError(f"actions of type {actions.dtype} are not valid; they must be whole numbers")
        return actions

    def _reset_mask(self, options: dict | None) -> np.ndarray:
        if not isinstance(options, Mapping | None):
            raise InputError(
                f"options={shown(repr(options))} is not valid; it must be a dict, such as with 'reset_mask'"
            )
        for name in set(options or ()) - {"reset_mask"}:
            raise unknown("option of reset", name, ["reset_mask"])
        chosen = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        if not (isinstance(chosen, np.ndarray) and chosen.dtype == bool and chosen.shape == (self.num_envs,)):
            raise InputError(f"options['reset_mask'] is not valid; it must be a bool array of shape ({self.num_envs},)")
        return chosen

    def _seed(self, seed: int | Sequence[int | None] | None, chosen: np.ndarray) -> None:
        """Gives games their seeds: that number and those after it, a list's own, or random ones the first time.

        A game whose place in a list is None goes on by the seed that it has.
        """
        if seed is None and self._seeded:
            return
        if seed is None:
            seeds = [None] * self.num_envs
        elif isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str | bytes) and np.ndim(seed):
            seeds = list(seed)
        else:
            first = whole_number("seed", seed, f"0 to {2**32 - 1}, or a list of such")
            seeds = [first + n for n in range(self.num_envs)]
        if len(seeds) != self.num_envs:
            raise InputError(f"{len(seeds)} seeds are not valid; there are {self.num_envs} games")
        entropy = np.random.default_rng().integers(2**32, size=self.num_envs, dtype=np.uint32)
        given = [entropy[n] if one is None else _checked_seed(one) for n, one in enumerate(seeds)]
        begins = chosen & np.array([one is not None or not self._seeded for one in seeds])
        self._seeds = np.where(begins, np.array(given, np.uint32), self._seeds)
        self._calls = np.where(begins, np.uint32(0), self._calls)
        self._seeded = True

    def _call(self, kinds: np.ndarray, actions: np.ndarray) -> tuple[Any, np.ndarray]:
        """Advances the games; returns observations and rewards, and keeps masks and which games are over.

        What a new game pays before the seat's first turn is kept for the reward of that turn.
        """
        self._calls = self._calls + (kinds != HOLD).astype(np.uint32)
        kinds, actions = kinds.astype(np.uint8), actions.astype(np.int32)
        self._states, *shown = self._advance(self._table, self._states, actions, kinds, self._seeds, self._calls)
        seen, self._mask, paid, over = jax.tree.map(self._on_host, shown)
        if np.isnan(paid).any():
            raise no_answer(self._table)
        if np.any(over & (kinds == DEAL)):
            raise no_turn(self._table)
        rewards = np.where(kinds == PLAY, self._owed + paid, 0)
        self._owed = np.where(kinds == DEAL, paid, np.where(kinds == PLAY, 0, self._owed))
        self._over = over | self._illegal
        if self._illegal.any():
            self._mask = np.where(self._illegal[:, None], np.int8(0), self._mask)
        return seen, rewards

    def _on_host(self, x: Array) -> np.ndarray:
        """Returns an array that the devices hold a part each of; that of one device is not copied."""
        if self._devices == 1:
            return np.asarray(x)
        return np.concatenate([np.asarray(x.addressable_data(n)) for n in range(self._devices)])

    def _infos(self, illegal: np.ndarray) -> dict[str, Any]:
        infos = {"action_mask": self._mask.copy(), "_action_mask": np.ones(self.num_envs, bool)}
        if illegal.any():
            infos |= {"illegal_action": illegal.copy(), "_illegal_action": illegal.copy()}
        return infos


@functools.cache
def _program(vectors: bool, devices: int) -> Callable[..., Any]:
    """Returns `_advanced`, compiled; each device has its share of the games."""
    advanced = functools.partial(_advanced, vectors)
    if devices == 1:
        return jax.jit(advanced, donate_argnums=1)
    given = (PartitionSpec(), *[_SHARE] * 5)
    mesh = _mesh(devices)
    shared = jax.shard_map(advanced, mesh=mesh, in_specs=given, out_specs=_SHARE, check_vma=False)
    return jax.jit(shared, donate_argnums=1, in_shardings=tuple(NamedSharding(mesh, spec) for spec in given))


def _mesh(devices: int) -> Mesh:
    return Mesh(np.array(jax.local_devices()[:devices]), ("games",))


def _advanced(
    vectors: bool, table: Table, states: State, actions: Array, kinds: Array, seeds: Array, calls: Array
) -> tuple[State, Any, Array, Array, Array]:
    """Returns (states, what the seat sees of each, its legal actions int8[N, A], rewards float32[N], over bool[N])."""
    game, seat = table.game, jnp.int32(table.seat)
    moved = advance_many(table, states, actions, kinds, seeds, calls)
    views = jax.vmap(game.view, (0, None))(moved.state, seat)
    seen = jax.vmap(game.encode)(views) if vectors else _named(views)
    own = (moved.state.current_player == seat)[:, None]
    mask = (jax.vmap(game.legal_actions)(moved.state) & own).astype(jnp.int8)
    return moved.state, seen, mask, moved.reward, moved.over


def _zeros(number: int, like: Any) -> Any:
    """Returns zeros for so many games, of the shape and dtype of one game's array."""
    plain = keys.plain_shape(like)
    return keys.rewrapped(np.zeros((number, *plain.shape), plain.dtype), like)


def _named(view: Any) -> dict[str, Array]:
    """Returns a view's arrays by name, masks as int8."""
    leaves = jax.tree_util.tree_leaves_with_path(view)
    named = {jax.tree_util.keystr(path, simple=True, separator="."): x for path, x in leaves}
    return {name: x.astype(jnp.int8) if x.dtype == bool else x for name, x in named.items()}


def _box(spaces: Any, x: Any) -> Any:
    """Returns the space of an array of integers or numbers."""
    if jnp.issubdtype(x.dtype, jnp.floating):
        return spaces.Box(-np.inf, np.inf, x.shape, x.dtype)
    bounds = np.iinfo(x.dtype)
    return spaces.Box(bounds.min, bounds.max, x.shape, x.dtype)


def _checked_seed(seed: Any) -> int:
    """Returns a seed as a number; raises InputError unless it is a whole one that 32 bits hold."""
    if not 0 <= (number := whole_number("seed", seed, f"0 to {2**32 - 1}")) < 2**32:
        raise InputError(f"seed={number} is out of range; it must be 0 to {2**32 - 1}, and so must those of all games")
    return number


def _final(observations: Any, infos: dict[str, Any], over: np.ndarray) -> dict[str, Any]:
    """Returns the last observations and infos of games that are over, as Gymnasium's own environments do."""
    seen = np.full(len(over), None, object)
    for n in np.flatnonzero(over):
        seen[n] = jax.tree.map(lambda x, n=n: np.array(x[n]), observations)
    last = {"action_mask": np.where(over[:, None], infos["action_mask"], 0), "_action_mask": over}
    last |= {name: infos[name] for name in ("illegal_action", "_illegal_action") if name in infos}
    return {"final_obs": seen, "_final_obs": over, "final_info": last, "_final_info": over}
