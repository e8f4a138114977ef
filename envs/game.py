"""The three waists of the project - Game, View, Policy - and the registry of games.

Everything that learns, plays, evaluates or adapts meets a game through these types alone. A `State` and a `View` are
pytrees whose type belongs to the game; all functions work on one unbatched value, and the caller vmaps, scans and jits.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs.errors import InputError, unknown

State = Any
"""A game's full state: a pytree with at least `current_player`, int32, -1 once the game is over."""
View = Any
"""What one player may know: a pytree of small unsigned integers and masks, far smaller than the observation.

It has at least `seat`, uint8: whose view it is."""


class LogSlot(NamedTuple):
    """What one slot of a view's log adds to the observation.

    Attributes:
      rows: int32[R], observation indices, all in the slot's span; meaningless where the value is 0.
      values: float32[R], the entries there; 0 where the slot has fewer than R, and in an empty slot.
    """

    rows: Array
    values: Array


class Game(abc.ABC):
    """A static, hashable description of a game and its pure functions on one unbatched state.

    Subclasses are frozen dataclasses whose fields are the rules.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    """Changes whenever rules, rewards, actions or the observation change."""
    num_players: int = 2
    num_actions: int
    observation_size: int
    max_length: int
    """No game takes more actions than this."""
    unit: str = "points"
    """What results are told in; a reward of 1 is `reward_scale` of them."""
    reward_scale: float = 100.0
    worst_reward: float
    """No player's rewards of one game sum to less."""
    phases: tuple[str, ...] = ("play",)
    """Names of the kinds of decision, the values of `phase`."""
    phase_offset: int | None = None
    """Where in the observation a one-hot of `phases` starts, all zeros once the game is over; None: it has none."""
    has_auxiliary: bool = False
    """Whether `auxiliary` tells anything."""
    opponent_kinds: int = 0
    """Kinds of opponent an observation can name (see `name_opponent`)."""
    card_planes: int = 0
    """The observation begins with this many planes of cards, each 4 suits times 13 ranks."""
    slot_choices: int = 0
    """Actions that each slot has, which mean the same of different slots (see `slot_inputs`); 0: it has no slots."""
    log_slots: int = 0
    """Slots of the observation's log (see `log_slot`); 0 for a game without one."""
    log_offset: int = 0
    """Where in the observation the log starts; slot t lies at log_offset + t * log_width and the log_width after."""
    log_width: int = 0
    log_growth: int = 0
    """The most log slots that fill up between two decisions of one player, the deal included."""

    @abc.abstractmethod
    def init(self, key: Array) -> State:
        """Deals: a random starting state; `key` is consumed."""

    @abc.abstractmethod
    def step(self, state: State, action: Array) -> tuple[State, Array, Array]:
        """Plays an action of `state.current_player`.

        Args:
          state: one state.
          action: int32, legal in `state`; the result of an illegal action is undefined.
        Returns:
          (state, rewards float32[P], done bool). After the end a step changes nothing, pays 0 and keeps done.
        """

    @abc.abstractmethod
    def legal_actions(self, state: State) -> Array:
        """Returns bool[A], the actions `state.current_player` may take; all False once the game is over."""

    @abc.abstractmethod
    def view(self, state: State, player: Array) -> View:
        """Returns the compact record of all that `player` may know."""

    @abc.abstractmethod
    def encode(self, view: View) -> Array:
        """Returns the documented observation vector of a view: float32[observation_size]."""

    @abc.abstractmethod
    def to_dict(self, state: State) -> dict[str, Any]:
        """Tells a state in words (host side, all cards open)."""

    def history(self, deal: State, actions: Sequence[int]) -> dict[str, Any]:
        """Tells a finished game so that it can be replayed: the deal in words and the actions (host side).

        Args:
          deal: the starting state.
          actions: of all players, in order.
        """
        return {"deal": self.to_dict(deal), "actions": list(actions)}

    def observe(self, state: State, player: Array) -> Array:
        """Returns encode(view(state, player)): float32[observation_size]."""
        return self.encode(self.view(state, player))

    def potential(self, state: State, player: Array) -> Array:
        """Returns what reward shaping may use: float32, in units of reward; 0 where a game offers nothing."""
        return jnp.float32(0.0)

    def auxiliary(self, state: State, player: Array) -> Array:
        """Returns what a network may learn to foretell from the player's view: float32, in about [0, 1]; here 0.

        For instance the opponent's deadwood / 100: a target in training, never an input, as the player may not see it.
        """
        return jnp.float32(0.0)

    def phase(self, state: State) -> Array:
        """Returns the index in `phases` of the decision at hand: int32; meaningless once the game is over."""
        return jnp.int32(0)

    def result(self, state: State, player: Array) -> dict[str, Array]:
        """Returns what to report of a finished game besides its reward, by the name of its mean: float32 scalars."""
        return {}

    def determinize(self, view: View, key: Array) -> State:
        """Deals anew what a player cannot see.

        Args:
          view: of either player, in play.
          key: consumed.
        Returns:
          A state drawn uniformly among the deals that would have shown that player the same, all along the game; its
          view is the one given, bit for bit.
        Raises:
          InputError: the game cannot.
        """
        raise InputError(f"{self.name} cannot deal anew what a view does not show")

    def resample_chance(self, state: State, key: Array) -> State:
        """Deals again what chance has not told anyone yet; the state itself where nothing is left to tell.

        Args:
          state: in play, of a hand that began with `init`.
          key: consumed.
        Returns:
          A state drawn as this one was, given all that either player has seen.
        """
        return state

    def replay_actions(self, state: State) -> tuple[State, Array, Array]:
        """Tells how a state in play came about.

        Returns:
          (the state at the deal, the actions since int32[max_length] in their order, how many there are int32).
        Raises:
          InputError: the game cannot.
        """
        raise InputError(f"{self.name} does not tell how a state came about")

    def slot_inputs(self, observation: Array) -> tuple[Array, Array, Array]:
        """Tells an observation in numbers of order 1, apart for the slots that actions are about.

        Args:
          observation: float32[observation_size].
        Returns:
          (of the position as a whole float32[W], of each slot float32[K, S], the actions about each slot
          int32[K, slot_choices], -1 for none and all -1 where nothing of the kind can be done now).
        Raises:
          InputError: the game has no slots.
        """
        raise InputError(f"{self.name} has no slots that actions are about")

    # An observation may be told in two parts: a short dense one, and a log that only ever grows. Every entry of
    # encode(view) is dense(view) at `dense_indices` plus log_slot(view, t) at its rows, for t < log_length(view). A
    # player's later view repeats the slots of its earlier ones, so a linear layer's sum over the log can be carried
    # along a game instead of being computed anew. A game without a log is all dense.

    @property
    def dense_indices(self) -> np.ndarray:
        """int[D]: the observation entries that `dense` gives."""
        return np.arange(self.observation_size)

    def dense(self, view: View) -> Array:
        """Returns the observation's entries at `dense_indices`: float32[D]."""
        return self.encode(view)

    def log_length(self, view: View) -> Array:
        """Returns the number of log slots filled: int32."""
        return jnp.int32(0)

    def log_slot(self, view: View, slot: Array) -> LogSlot:
        """Returns what log slot `slot`, int32, adds to the observation."""
        raise NotImplementedError(f"{self.name} has no log")

    def name_opponent(self, view: View, kind: Array) -> View:
        """Returns a view that tells a learner what kind of opponent it faces, where the observation has room for that.

        Args:
          view: of the learner; as the game gives it, it names none.
          kind: int32, 1 to opponent_kinds; 0 names none.
        """
        return view

    @property
    def identity(self) -> dict[str, Any]:
        """What a stored policy must agree with: name, version and rules."""
        fields = dataclasses.asdict(self)
        rules = fields.pop("rules", {}) | fields
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in rules.items()}
        return {"name": self.name, "version": self.version, "rules": plain}


class EnumerableGame(Game):
    """A game small enough to be walked through whole; chance has no nodes of its own.

    In a state reached by these functions what chance has not yet decided is undecided, however `init` holds it; a view
    of the player to act has perfect recall, and its bytes are the key of the information set.
    """

    @abc.abstractmethod
    def initial_outcomes(self) -> tuple[State, Array]:
        """Returns every starting state and its probability: (states, leading axis [N]; float32[N])."""

    @abc.abstractmethod
    def outcomes(self, state: State, action: Array) -> tuple[State, Array, Array, Array]:
        """Returns what an action of `state.current_player` can lead to, chance's share included.

        Args:
          state: one state, in play.
          action: int32, legal in `state`.
        Returns:
          (states [K], probs float32[K], rewards float32[K, P], done bool[K]); K is the same for all states and actions,
          and outcomes of probability 0 are padding.
        """


@functools.partial(jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["apply", "game"])
@dataclasses.dataclass(frozen=True)
class Policy:
    """A player: a pure function of what it sees, and its parameters.

    Attributes:
      apply: (params, view, legal bool[A]) -> float32[A], summing to one on legal actions and zero elsewhere.
      params: pytree of arrays; () where the player has none.
      game: what it plays; None where that is not known, and any game is tried.
    """

    apply: Callable[[Any, View, Array], Array]
    params: Any = ()
    game: Game | None = None

    def __call__(self, view: View, legal: Array) -> Array:
        """Returns the action probabilities: float32[A]."""
        return self.apply(self.params, view, legal)


_REGISTRY: dict[str, str] = {
    "gin_rummy": "envs.gin_rummy.event_log.game:make",
    "gin_rummy_mdp": "envs.gin_rummy.mdp.game:make",
    "gin_rummy_openspiel": "envs.gin_rummy.openspiel.game:make",
    "kuhn_poker": "envs.kuhn_poker:make",
    "leduc_poker": "envs.leduc_poker:make",
    "liars_dice": "envs.liars_dice:make",
    "mini_gin_rummy": "envs.gin_rummy.mini.game:make",
    "rummy500": "envs.rummy500.game:make",
}
"""Name -> "module:function"; the function takes the rules as keywords and returns the Game."""


def names() -> list[str]:
    """Returns the names `make` knows."""
    return sorted(_REGISTRY)


def make(name: str, /, **rules: Any) -> Game:
    """Builds a game.

    Args:
      name: one of `names()`.
      **rules: the game's own rules, each defaulting to the game's preset.
    Raises:
      InputError: an unknown game or rule, or a rule's value out of range.
    """
    if name not in _REGISTRY:
        raise unknown("game", name, _REGISTRY)
    module, function = _REGISTRY[name].split(":")
    return getattr(importlib.import_module(module), function)(**rules)


def build_rules(kind: type, preset: Any, given: dict[str, Any]) -> Any:
    """Returns `preset` with the given rules replaced, checked for name and type.

    Args:
      kind: the frozen dataclass of rules.
      preset: an instance of it, the defaults.
      given: rule name -> value.
    Raises:
      InputError: an unknown rule, a value of another type, or one the dataclass refuses.
    """
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    for key, value in given.items():
        if key not in fields:
            raise unknown("rule", key, fields)
        wanted = type(getattr(preset, key))
        if type(value) is not wanted:
            raise InputError(f"rule {key}={value!r} is a {type(value).__name__}; it must be a {wanted.__name__}")
    return dataclasses.replace(preset, **given)
