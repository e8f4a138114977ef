"""The core interfaces of the project: Game, View and Policy.

Everything that learns, plays, evaluates or adapts meets a game through these types alone. A `State` and a `View` are
pytrees whose type belongs to the game; all functions work on one unbatched value, and the caller vmaps, scans and jits.

A new game is written against six methods - init, step, legal_actions, view, encode, to_dict - and the attributes above
them. What serves one kind of network or learner is a record that a game has or has not: `event_log`, `card_features`,
`opponent_ids`, `auxiliary`.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from envs import drawing
from envs.errors import InputError
from envs.match_rules import MatchRules

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


@dataclasses.dataclass(frozen=True)
class EventLog:
    """An observation in two parts: a short dense one, and a log that only ever grows.

    Every entry of encode(view) is dense(view) at `dense_indices` plus slot(view, t) at its rows, for t < length(view).
    A player's later view repeats the slots of its earlier ones, so a linear layer's sum over the log can be carried
    along a game instead of being computed anew.

    Attributes:
      slots: the most the log holds.
      offset: the observation index where the log starts; slot t has the `width` entries from offset + t * width.
      width: observation entries of one slot.
      growth: the most slots that fill up between two decisions of one player, the deal included.
      observation_size: of the game.
      dense: view -> float32[D], the observation's entries at `dense_indices`.
      length: view -> int32, slots filled.
      slot: (view, slot int32) -> LogSlot, what it adds to the observation.
    """

    slots: int
    offset: int
    width: int
    growth: int
    observation_size: int
    dense: Callable[[View], Array]
    length: Callable[[View], Array]
    slot: Callable[[View, Array], LogSlot]

    @property
    def dense_indices(self) -> np.ndarray:
        """int[D]: the observation indices outside the log."""
        return np.r_[0 : self.offset, self.offset + self.slots * self.width : self.observation_size]


@dataclasses.dataclass(frozen=True)
class CardFeatures:
    """An observation in numbers of order 1, apart for the cards that actions are about.

    An action means the same of each card, so that one function may score it for all of them.

    Attributes:
      choices: actions about each card.
      of_observation: float32[observation_size] -> (of the position as a whole float32[W], of each card float32[K, S],
        the actions about each card int32[K, choices], -1 for none and all -1 where nothing of the kind can be done).
      with_recall: the same with what the opponent has discarded, where the observation shows it and `of_observation`
        leaves it out; else None.
    """

    choices: int
    of_observation: Callable[[Array], tuple[Array, Array, Array]]
    with_recall: Callable[[Array], tuple[Array, Array, Array]] | None = None


@dataclasses.dataclass(frozen=True)
class OpponentIds:
    """Room in the observation for the kind of opponent a learner faces; a view as the game gives it names none.

    Attributes:
      kinds: how many kinds there are.
      name: (view of the learner, kind int32 of 1 to `kinds`, 0 for none) -> the view that names it.
    """

    kinds: int
    name: Callable[[View, Array], View]


@dataclasses.dataclass(frozen=True)
class HiddenPlacement:
    """A phantom game, whose histories factor over the cells of its board.

    Two players in turn try cells that they have not tried before, from an empty board. A try places a stone unless the
    opponent holds the cell, and a player is shown the success of its own tries alone. Who first holds all cells of one
    of its winning sets gets 1 from the other; a full board without is a draw.

    Attributes:
      cells: of the board, numbered from 0; action c tries cell c.
      winning: of each player, sets of cells as bit masks.
      failure_keeps_turn: whether a failed try leaves the turn where it is; else every try passes it.
      forced: the first cells each player must try, in order.
      view: (seat, tries integer[N, n], stones integer[N] as bits) -> the players' views after these tries, [N, ...].
    """

    cells: int
    winning: tuple[tuple[int, ...], tuple[int, ...]]
    failure_keeps_turn: bool
    forced: tuple[tuple[int, ...], tuple[int, ...]]
    view: Callable[[int, np.ndarray, np.ndarray], View]


_TRACED_ONCE = frozenset({"init", "step", "legal_actions", "view", "encode", "determinize", "likely_world", "outcomes"})


def _traced_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method under `jax.jit`, as a plain function: XLA puts it into the programs that call it."""
    compiled = jax.jit(function, static_argnums=0)

    @functools.wraps(function)
    def method(self: Game, *args: Any, **named: Any) -> Any:
        return compiled(self, *args, **named)

    return method


class Game(abc.ABC):
    """A static, hashable description of a game and its pure functions on one unbatched state.

    Subclasses are frozen dataclasses whose fields are the rules. What programs call again and again, `_TRACED_ONCE`,
    JAX traces once for equal games and equal shapes, however many programs play the game.
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
    """What results are reported in; a reward of 1 is `reward_scale` of them."""
    reward_scale: float = 100.0
    worst_reward: float
    """No player's rewards of one game sum to less."""
    zero_sum: bool = True
    """Whether the rewards of every step sum to 0 over the players."""
    pays_at_end: bool = True
    """Whether only the last step of a game pays; else who has won is read off the sum of its rewards."""
    payoff_rules: frozenset[str] = frozenset()
    """Rules that change payoffs alone, never views or legal actions: a policy trained under others plays these too."""
    phases: tuple[str, ...] = ("play",)
    """Names of the kinds of decision, the values of `phase`."""
    phase_offset: int | None = None
    """Where in the observation a one-hot of `phases` starts, all zeros once the game is over; None: it has none."""
    card_planes: int = 0
    """The observation begins with this many planes of cards, each 4 suits times 13 ranks."""
    event_log: EventLog | None = None
    """How the observation is a dense part and a growing log; None: it is all dense."""
    card_features: CardFeatures | None = None
    """What the observation says of each card that actions are about; None: nothing apart for cards."""
    opponent_ids: OpponentIds | None = None
    """How a view names the kind of opponent; None: it cannot."""
    hidden_placement: HiddenPlacement | None = None
    """The game as a phantom game, which has exact values without its tree of histories; None: it is none."""
    begun_by: Callable[[State, Array], State] | None = None
    """(deal, player) -> the deal with that player to act first; None: who acts first is not drawn by lot."""
    auxiliary: Callable[[State, Array], Array] | None = None
    """(state, player) -> what a network may learn to predict from the player's view: float32, in about [0, 1].

    For instance the opponent's deadwood / 100: a target in training, never an input, as the player may not see it."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Gives the class's own functions of `_TRACED_ONCE` a trace that programs share."""
        super().__init_subclass__(**options)
        for name in _TRACED_ONCE & vars(cls).keys():
            own = vars(cls)[name]
            if not getattr(own, "__isabstractmethod__", False) and own is not getattr(Game, name, None):
                setattr(cls, name, _traced_once(own))

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
        """Describes a state in words (host side, all cards open)."""

    def history(self, deal: State, actions: Sequence[int]) -> dict[str, Any]:
        """Describes a finished game so that it can be replayed: `deal_of` the deal, and the actions (host side).

        Args:
          deal: the starting state.
          actions: of all players, in order.
        """
        return {"deal": list(self.deal_of(deal)), "actions": list(actions)}

    def deal_of(self, state: State) -> tuple[int | float, ...]:
        """Returns the numbers from which `from_deal` makes a starting state again (host side).

        By default all numbers of the state; a game that deals from a deck has the deck.

        Args:
          state: a starting state.
        """
        leaves = [np.asarray(leaf).reshape(-1) for leaf in jax.tree.leaves(jax.device_get(state))]
        return tuple(int(x) if leaf.dtype.kind in "biu" else float(x) for leaf in leaves for x in leaf)

    def from_deal(self, deal: Sequence[int | float]) -> State:
        """Returns the starting state that `deal_of` described (host side).

        Args:
          deal: numbers, of any origin.
        Raises:
          InputError: no state has these numbers.
        """
        return _filled(jax.eval_shape(lambda: self.init(jax.random.key(0))), deal)

    @property
    def preset(self) -> str | None:
        """The name of the preset that the rules are; None where they are none."""
        return None

    def action_name(self, action: int) -> str:
        """Returns what an action does, in words, unique among the legal actions of a state (host side)."""
        return str(int(action))

    def describe_action(self, state: State, action: int, viewer: int | None = None) -> str:
        """Returns what an action of `state.current_player` does there, where that depends on the state (host side).

        Args:
          state: where the action is legal.
          action: of the player to act.
          viewer: in whose names of the cards, where a game gives each player its own; None: those of the table.
        """
        return self.action_name(action)

    def situation(self, view: View) -> tuple[str, str] | None:
        """Returns where a view stands in a chart of strategies (host side): what has happened, and what is held.

        None, the default, where a game has too many for a chart.
        """
        return None

    def scene(self, state: State, viewer: int | None = None) -> drawing.Scene:
        """Returns what there is to see, for `render` and `render_svg` (host side).

        Args:
          state: one state.
          viewer: None shows all cards; a seat only what its view shows.
        """
        if viewer is None:
            fields, title = self.to_dict(state), self.name
        else:
            view = jax.device_get(self.view(state, np.int32(viewer)))
            fields, title = _fields(view), f"{self.name}, seen by player {viewer}"
        rows = tuple(drawing.Row(name, note=str(value)) for name, value in fields.items())
        return drawing.Scene(title, rows)

    def show(self, state: State, viewer: int | None = None) -> drawing.Picture:
        """Returns a state as an object that notebooks draw, and that prints as text (host side); as `render`."""
        return drawing.Picture(self.render(state, viewer), self.render_svg(state, viewer))

    def render(self, state: State, viewer: int | None = None) -> str:
        """Returns a state as text (host side).

        Args:
          state: one state.
          viewer: None shows all cards; a seat only what its view shows.
        """
        return drawing.to_text(self.scene(state, viewer))

    def render_svg(self, state: State, viewer: int | None = None) -> str:
        """Returns a state as an SVG element; as `render` (host side)."""
        return drawing.to_svg(self.scene(state, viewer))

    def observe(self, state: State, player: Array) -> Array:
        """Returns encode(view(state, player)): float32[observation_size]."""
        return self.encode(self.view(state, player))

    def potential(self, state: State, player: Array) -> Array:
        """Returns what reward shaping may use: float32, in units of reward; 0 where a game offers nothing."""
        return jnp.float32(0.0)

    def phase(self, state: State) -> Array:
        """Returns the index in `phases` of the decision at hand: int32; meaningless once the game is over."""
        return jnp.int32(0)

    def result(self, state: State, player: Array) -> dict[str, Array]:
        """Returns what to report of a finished game besides its reward, by the name of its mean: float32 scalars."""
        return {}

    def match_rules(self, preset: str | None = None) -> MatchRules:
        """Returns how rounds make a game to a target, by default or of a preset of that name.

        Raises:
          InputError: the game is of single rounds, or there is no such preset.
        """
        raise InputError(f"{self.name} is played in single rounds; games to a target are played of gin rummy")

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

    def likely_world(self, view: View, key: Array) -> tuple[State, Array]:
        """Deals anew what a player cannot see, if possible so that the others have what players have by then.

        Args:
          view, key: as of `determinize`.
        Returns:
          A state that `determinize` might return, and float32, the logarithm of a weight by which such states count as
          if drawn uniformly; 0 where they are.
        Raises:
          InputError: as it does.
        """
        return self.determinize(view, key), jnp.float32(0)

    def resample_chance(self, state: State, key: Array) -> State:
        """Deals again what chance has not shown anyone yet; the state itself where there is nothing of the kind.

        Args:
          state: in play, of a game that began with `init`.
          key: consumed.
        Returns:
          A state drawn as this one was, given all that either player has seen.
        """
        return state

    def replay_actions(self, state: State) -> tuple[State, Array, Array]:
        """Returns how a state in play came about.

        Returns:
          (the state at the deal, the actions since int32[max_length] in their order, how many there are int32).
        Raises:
          InputError: the game cannot.
        """
        raise InputError(f"{self.name} does not keep the actions that led to a state")

    @property
    def identity(self) -> dict[str, Any]:
        """What a stored policy must agree with: name, version and rules."""
        fields = dataclasses.asdict(self)
        rules = fields.pop("rules", {}) | fields
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in rules.items()}
        return {"name": self.name, "version": self.version, "rules": plain}


def _filled(shapes: State, numbers: Sequence[int | float]) -> State:
    """Returns a pytree of these shapes that holds these numbers in order."""
    leaves, structure = jax.tree.flatten(shapes)
    ends = np.cumsum([leaf.size for leaf in leaves])
    if len(numbers) != ends[-1]:
        raise InputError(f"the deal has {len(numbers)} numbers; it must have {ends[-1]}")
    filled = []
    for leaf, end in zip(leaves, ends, strict=True):
        part = numbers[end - leaf.size : end]
        try:
            values = np.array(part, leaf.dtype)
        except (OverflowError, ValueError, TypeError):
            values = np.zeros(0, leaf.dtype)
        if values.size != len(part) or any(values.tolist()[n] != part[n] for n in range(len(part))):
            raise InputError(f"the deal holds a number that is no {leaf.dtype}")
        filled.append(jnp.asarray(values.reshape(leaf.shape)))
    return jax.tree.unflatten(structure, filled)


def _fields(view: View) -> dict[str, Any]:
    """Returns what a view holds by name, of a view without names by place."""
    if hasattr(view, "_asdict"):
        return view._asdict()
    leaves = jax.tree_util.tree_leaves_with_path(view)
    return {jax.tree_util.keystr(path).lstrip("."): leaf for path, leaf in leaves}


class EnumerableGame(Game):
    """A game small enough to be walked through whole; chance has no nodes of its own.

    In a state reached by these functions what chance has not yet decided is undecided, however `init` holds it; a view
    of the player to act has perfect recall, and its bytes are the key of the information set.
    """

    num_histories: int | None = None
    """Histories of the whole tree, terminal ones included; None: not known before it is built."""

    @abc.abstractmethod
    def initial_outcomes(self) -> tuple[State, Array]:
        """Returns every starting state and its probability: (states, leading axis [N]; float32[N]); 0 for padding."""

    def outcomes(self, state: State, action: Array) -> tuple[State, Array, Array, Array]:
        """Returns what an action of `state.current_player` can lead to, chance's share included.

        By default the one thing that `step` does: all of chance is in the initial outcomes.

        Args:
          state: one state, in play.
          action: int32, legal in `state`.
        Returns:
          (states [K], probs float32[K], rewards float32[K, P], done bool[K]); K is the same for all states and actions,
          and outcomes of probability 0 are padding.
        """
        after, rewards, done = jax.tree.map(lambda x: x[None], self.step(state, action))
        return after, jnp.ones(1, jnp.float32), rewards, done


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
