"""The core interfaces of the project: Game, View and Policy.

Learners, players, evaluation and adapters use a game only through these types. A `State` and a `View` are pytrees
whose type is defined by the game; all functions act on one unbatched value, and the caller vmaps, scans and jits them.

A new game implements six methods - init, step, legal_actions, view, encode, to_dict - and the attributes above them.
What only one kind of network or learner uses is an optional record of the game: `event_log`, `card_features`,
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

from envs import drawing, keys
from envs.errors import InputError, a_kind, shown, whole_number
from envs.match_rules import MatchRules

State = Any
"""A game's full state: a pytree with at least `current_player`, int32, -1 once the game is over."""
View = Any
"""Everything one player may know: a pytree of small unsigned integers and masks, far smaller than the observation.

It has at least `seat`, uint8: the player whose view it is."""


class LogSlot(NamedTuple):
    """What one slot of a view's log adds to the observation.

    Attributes:
      rows: int32[R], observation indices, all in the slot's span; ignored where the value is 0.
      values: float32[R], the entries there; 0 where the slot has fewer than R, and in an empty slot.
    """

    rows: Array
    values: Array


@dataclasses.dataclass(frozen=True)
class EventLog:
    """An observation in two parts: a short dense one, and a log to which entries are only ever appended.

    Every entry of encode(view) is dense(view) at `dense_indices` plus slot(view, t) at its rows, for t < length(view).
    A player's later view repeats the slots of its earlier views, so a linear layer's sum over the log can be carried
    through a game instead of being recomputed.

    Attributes:
      slots: the maximum number of slots of the log.
      offset: the observation index where the log starts; slot t has the `width` entries from offset + t * width.
      width: observation entries of one slot.
      growth: the maximum number of slots filled between two decisions of one player, the deal included.
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
    """An observation as numbers of order 1, with separate features for each card that actions refer to.

    An action has the same meaning for each card, so that one function can score it for all cards.

    Attributes:
      choices: actions per card.
      of_observation: float32[observation_size] -> (features of the whole position float32[W], features of each card
        float32[K, S], actions of each card int32[K, choices], -1 for none, all -1 where no such action is possible).
      with_recall: the same with the opponent's discards, if the observation shows them and `of_observation` leaves
        them out; else None.
    """

    choices: int
    of_observation: Callable[[Array], tuple[Array, Array, Array]]
    with_recall: Callable[[Array], tuple[Array, Array, Array]] | None = None


@dataclasses.dataclass(frozen=True)
class OpponentIds:
    """A field of the observation for the kind of opponent that a learner faces; the game's own views leave it empty.

    Attributes:
      kinds: how many kinds there are.
      name: (view of the learner, kind int32 of 1 to `kinds`, 0 for none) -> the view with the kind filled in.
    """

    kinds: int
    name: Callable[[View, Array], View]


@dataclasses.dataclass(frozen=True)
class HiddenPlacement:
    """A phantom game, whose histories factor over the cells of its board.

    Two players in turn try cells that they have not tried before, from an empty board. A try places a stone unless the
    opponent holds the cell, and a player is shown only whether its own tries succeed. The first player to hold all
    cells of one of its winning sets gets 1 from the other; a full board without a winner is a draw.

    Attributes:
      cells: of the board, numbered from 0; action c tries cell c. Exact values are computed for at most 9.
      winning: for each player, sets of cells as bit masks.
      failure_keeps_turn: whether a player keeps the turn after a failed try; else the turn passes after every try.
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

    Subclasses are frozen dataclasses whose fields are the rules. JAX traces the methods in `_TRACED_ONCE` once for
    equal games and equal shapes, however many programs play the game.
    """

    name: ClassVar[str]
    version: ClassVar[str]
    """Changes whenever rules, rewards, actions or the observation change."""
    num_players: int = 2
    num_actions: int
    observation_size: int
    max_length: int
    """Upper bound on the number of actions in a game."""
    unit: str = "points"
    """The unit of reported results; a reward of 1 is `reward_scale` units."""
    reward_scale: float = 100.0
    worst_reward: float | None = None
    """Lower bound on the sum of a player's rewards in one game; None: not known, and some adapters refuse the game."""
    zero_sum: bool = True
    """Whether the rewards of every step sum to 0 over the players."""
    pays_at_end: bool = True
    """Whether only the last step of a game has nonzero rewards; else the winner follows from the sum of rewards."""
    payoff_rules: frozenset[str] = frozenset()
    """Rules that change only payoffs, never views or legal actions; a policy also plays with other values of them."""
    phases: tuple[str, ...] = ("play",)
    """Names of the kinds of decision, the values of `phase`."""
    phase_offset: int | None = None
    """Where in the observation a one-hot of `phases` starts, all zeros once the game is over; None: it has none."""
    card_planes: int = 0
    """Number of card planes at the start of the observation, each 4 suits times 13 ranks."""
    event_log: EventLog | None = None
    """The observation as a dense part and a growing log; None: it is all dense."""
    card_features: CardFeatures | None = None
    """Features of each card that actions refer to; None: there are none."""
    opponent_ids: OpponentIds | None = None
    """How a view states the kind of opponent; None: it cannot."""
    hidden_placement: HiddenPlacement | None = None
    """The game as a phantom game, which has exact values without a tree of histories; None: it is not one."""
    begun_by: Callable[[State, Array], State] | None = None
    """(deal, player) -> the deal with that player to act first; None: the first player is not drawn at random."""
    auxiliary: Callable[[State, Array], Array] | None = None
    """(state, player) -> an auxiliary target that a network may predict from the player's view: float32, about [0, 1].

    For instance the opponent's deadwood / 100: a training target, never an input, as the player may not see it."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Wraps the class's own methods of `_TRACED_ONCE`, so that programs share their traces."""
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
          (state, rewards float32[P], done bool). After the end a step changes nothing, has rewards 0 and keeps done.
        """

    @abc.abstractmethod
    def legal_actions(self, state: State) -> Array:
        """Returns bool[A], the legal actions of `state.current_player`; all False once the game is over."""

    @abc.abstractmethod
    def view(self, state: State, player: Array) -> View:
        """Returns the compact record of everything that `player` may know."""

    @abc.abstractmethod
    def encode(self, view: View) -> Array:
        """Returns the documented observation vector of a view: float32[observation_size]."""

    @abc.abstractmethod
    def to_dict(self, state: State) -> dict[str, Any]:
        """Returns a readable description of a state (host side, all cards open)."""

    def history(self, deal: State, actions: Sequence[int]) -> dict[str, Any]:
        """Returns what is needed to replay a finished game: `deal_of` the deal, and the actions (host side).

        Args:
          deal: the starting state.
          actions: of all players, in order.
        """
        return {"deal": list(self.deal_of(deal)), "actions": list(actions)}

    def deal_of(self, state: State) -> tuple[int | float, ...]:
        """Returns the numbers from which `from_deal` rebuilds a starting state (host side).

        By default all numbers of the state; for a game that deals from a deck, the deck.

        Args:
          state: a starting state.
        """
        arrays = jax.device_get([keys.plain(leaf) for leaf in jax.tree.leaves(state)])
        leaves = [np.asarray(leaf).reshape(-1) for leaf in arrays]
        return tuple(int(x) if leaf.dtype.kind in "biu" else float(x) for leaf in leaves for x in leaf)

    def from_deal(self, deal: Sequence[int | float]) -> State:
        """Returns the starting state that `deal_of` described (host side).

        Args:
          deal: numbers, possibly from an untrusted file.
        Raises:
          InputError: no state has these numbers.
        """
        return _filled(jax.eval_shape(lambda: self.init(jax.random.key(0))), deal)

    @property
    def largest_payment(self) -> float:
        """The most that a player wins or loses in one step; by default the size of the worst reward, 1 without one."""
        return 1.0 if self.worst_reward is None else abs(self.worst_reward)

    @property
    def preset(self) -> str | None:
        """The name of the preset with these rules; None where there is none."""
        return None

    def action_name(self, action: int) -> str:
        """Returns the name of an action, unique among the legal actions of a state (host side)."""
        return str(self.action_id(action))

    def action_id(self, action: Any) -> int:
        """Returns an action's number as an int (host side); raises InputError where the game has no such action."""
        rule = f"one of 0 to {self.num_actions - 1}"
        number = whole_number("action", action, rule)
        if not 0 <= number < self.num_actions:
            raise InputError(f"action={shown(number)} is not one of {self.name}; it must be {rule}")
        return number

    def describe_action(self, state: State, action: int, viewer: int | None = None) -> str:
        """Returns the name of an action of `state.current_player`, which may depend on the state (host side).

        Args:
          state: where the action is legal.
          action: of the player to act.
          viewer: the player whose names of the cards are used, in a game that has such; None: those of the table.
        """
        return self.action_name(action)

    def situation(self, view: View) -> tuple[str, str] | None:
        """Returns the row and column of a view in a chart of strategies (host side): past events, and private cards.

        None, the default, for a game that has too many views for a chart.
        """
        return None

    def scene(self, state: State, viewer: int | None = None) -> drawing.Scene:
        """Returns the scene that `render` and `render_svg` draw (host side).

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
        """Returns a state as an object that notebooks draw and that prints as text (host side); see `render`."""
        return drawing.Picture(self.render(state, viewer), self.render_svg(state, viewer))

    def render(self, state: State, viewer: int | None = None) -> str:
        """Returns a state as text (host side).

        Args:
          state: one state.
          viewer: None shows all cards; a seat only what its view shows.
        Raises:
          InputError: a viewer who is no seat, or several states.
        """
        return drawing.to_text(self.scene(self._one(state), self._seat(viewer)))

    def render_svg(self, state: State, viewer: int | None = None) -> str:
        """Returns a state as an SVG element (host side); see `render`."""
        return drawing.to_svg(self.scene(self._one(state), self._seat(viewer)))

    def _one(self, state: State) -> State:
        if shape := np.shape(state.current_player):
            raise InputError(
                f"a batch of states of shape {shape} was given; one is shown, as jax.tree.map(lambda x: x[0], states)"
            )
        return state

    def _seat(self, viewer: int | None) -> int | None:
        rule = f"a seat from 0 to {self.num_players - 1}, or None for all cards"
        if viewer is not None and not 0 <= (viewer := whole_number("viewer", viewer, rule)) < self.num_players:
            raise InputError(f"viewer={viewer} is not valid; it must be {rule}")
        return viewer

    def observe(self, state: State, player: Array) -> Array:
        """Returns encode(view(state, player)): float32[observation_size]."""
        return self.encode(self.view(state, player))

    def potential(self, state: State, player: Array) -> Array:
        """Returns the potential for reward shaping: float32, in units of reward; 0 where a game defines none."""
        return jnp.float32(0.0)

    def phase(self, state: State) -> Array:
        """Returns the index in `phases` of the current decision: int32; undefined once the game is over."""
        return jnp.int32(0)

    def result(self, state: State, player: Array) -> dict[str, Array]:
        """Returns metrics of a finished game in addition to its reward: name of the mean -> float32 scalar.

        A name that ends in `_rate` is that of a share, each value 0 to 1. `points_per_hand` of a game for two is what
        the player wins and the other loses, and replaces the rewards in matches and bounds of exploitability; points
        that are not opposite are `score`. `win_rate` and others that are measured of
        every game are refused (envs.checks.RESERVED_RESULTS).
        """
        return {}

    def match_rules(self, preset: str | None = None) -> MatchRules:
        """Returns the rules by which rounds make a game to a target score, the default ones or those of a preset.

        Raises:
          InputError: the game has only single rounds, or there is no such preset.
        """
        raise InputError(f"{self.name} is played in single rounds; games to a target are available for gin rummy")

    def determinize(self, view: View, key: Array) -> State:
        """Samples what a player cannot see: a determinization of its view.

        Args:
          view: of either player, in play.
          key: consumed.
        Returns:
          A state drawn uniformly from the deals that are consistent with everything the player has seen in the game;
          its view is the one given, bit for bit.
        Raises:
          InputError: the game does not support this.
        """
        raise InputError(f"{self.name} cannot redeal what a view does not show")

    def likely_world(self, view: View, key: Array) -> tuple[State, Array]:
        """Samples what a player cannot see, if possible with hands such as players reach by then.

        Args:
          view, key: as in `determinize`.
        Returns:
          A state that `determinize` might return, and float32, the logarithm of an importance weight that corrects
          these samples to uniform ones; 0 where they are uniform.
        Raises:
          InputError: as in `determinize`.
        """
        return self.determinize(view, key), jnp.float32(0)

    def resample_chance(self, state: State, key: Array) -> State:
        """Resamples chance outcomes that nobody has seen yet; returns the state itself where there are none.

        Args:
          state: in play, of a game that began with `init`.
          key: consumed.
        Returns:
          A state from the same distribution as this one, given all that either player has seen.
        """
        return state

    def replay_actions(self, state: State) -> tuple[State, Array, Array]:
        """Returns the deal and the actions that led to a state in play.

        Returns:
          (the state at the deal, the actions since int32[max_length] in their order, how many there are int32).
        Raises:
          InputError: the game does not support this.
        """
        raise InputError(f"{self.name} does not keep the actions that led to a state")

    @property
    def identity(self) -> dict[str, Any]:
        """The name, version and rules that a stored policy must match."""
        fields = dataclasses.asdict(self)
        rules = fields.pop("rules", {}) | fields
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in rules.items()}
        return {"name": self.name, "version": self.version, "rules": plain}


def _filled(shapes: State, numbers: Sequence[int | float]) -> State:
    """Returns a pytree of these shapes that holds these numbers in order."""
    wanted, structure = jax.tree.flatten(shapes)
    leaves = [keys.plain_shape(leaf) for leaf in wanted]
    ends = np.cumsum([leaf.size for leaf in leaves])
    if len(numbers) != ends[-1]:
        raise InputError(f"the deal has {len(numbers)} numbers; it must have {ends[-1]}")
    filled = []
    for like, leaf, end in zip(wanted, leaves, ends, strict=True):
        part = numbers[end - leaf.size : end]
        try:
            values = np.array(part, leaf.dtype)
        except (OverflowError, ValueError, TypeError):
            values = np.zeros(0, leaf.dtype)
        if values.size != len(part) or any(values.tolist()[n] != part[n] for n in range(len(part))):
            raise InputError(f"the deal holds a number that is not {leaf.dtype}")
        filled.append(keys.rewrapped(jnp.asarray(values.reshape(leaf.shape)), like))
    return jax.tree.unflatten(structure, filled)


def _fields(view: View) -> dict[str, Any]:
    """Returns what a view holds by name, of a view without names by place."""
    if hasattr(view, "_asdict"):
        return view._asdict()
    leaves = jax.tree_util.tree_leaves_with_path(view)
    return {jax.tree_util.keystr(path).lstrip("."): leaf for path, leaf in leaves}


class EnumerableGame(Game):
    """A game small enough to enumerate its whole tree; there are no separate chance nodes.

    In a state reached by these functions chance outcomes that lie ahead are undecided, even where `init` fixes them at
    the deal. A view of the player to act has perfect recall, and its bytes are the key of the information set.
    """

    num_histories: int | None = None
    """Number of histories in the tree, terminal ones included; None: not known before it is built."""

    @abc.abstractmethod
    def initial_outcomes(self) -> tuple[State, Array]:
        """Returns every starting state and its probability: (states, leading axis [N]; float32[N]); 0 for padding."""

    def outcomes(self, state: State, action: Array) -> tuple[State, Array, Array, Array]:
        """Returns all outcomes of an action of `state.current_player`, with the chance outcomes that follow it.

        By default the single outcome of `step`: all chance is in the initial outcomes.

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
    """A policy: a pure function of a view and the legal actions, with its parameters.

    Attributes:
      apply: (params, view, legal bool[A]) -> float32[A], summing to one on legal actions and zero elsewhere.
      params: pytree of arrays; () where there are none.
      game: the game it plays; None where that is unknown: then the game is not checked.
    """

    apply: Callable[[Any, View, Array], Array]
    params: Any = ()
    game: Game | None = None

    def __call__(self, view: View, legal: Array) -> Array:
        """Returns the action probabilities: float32[A].

        Raises:
          InputError: the function returned what is no array of that shape.
        """
        answer = self.apply(self.params, view, legal)
        if (found := getattr(answer, "shape", None)) != np.shape(legal):
            what = a_kind(type(answer)) if found is None else f"an array of shape {found}"
            raise InputError(
                f"a policy's function returned {what}; it must return the probabilities of all actions, an array of "
                f"shape {np.shape(legal)}"
            )
        return answer
