"""The interface of every learner: its state, its metrics, and the functions that the training loop calls."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import jax

from dream.game_tree.tree import Tree, kept_tree
from envs import EnumerableGame, Game, InputError, Policy, make_bot
from envs.checks import check_two_player_zero_sum
from envs.records import Record

TrainState = Any
"""An algorithm's whole state: a pytree of arrays, typed PRNG keys among them, with `iteration`, int32."""
Metrics = dict[str, float]


@functools.partial(jax.tree_util.register_dataclass, data_fields=["params"], meta_fields=["apply"])
@dataclasses.dataclass(frozen=True)
class Value:
    """What a player expects from here: a pure function of what it sees, and its parameters.

    Attributes:
      apply: (params, view) -> float32, in units of reward.
      params: pytree of arrays.
    """

    apply: Callable[[Any, Any], Any]
    params: Any = ()

    def __call__(self, view: Any) -> Any:
        """Returns the value: float32."""
        return self.apply(self.params, view)


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """A learner.

    Attributes:
      init: key -> TrainState.
      iterate: TrainState -> (TrainState, metrics of the iteration, counters and seconds by part among them).
      policies: TrainState -> policies by name; "current" always, "average" where the learner has one.
      value: TrainState -> what the current policy's player expects; None where the learner has no such thing.
      calls: the same as `iterate`, as a generator that yields between calls of bounded length, where it may be left and
        closed; None where an iteration is short or one call (see dream/compiled/bounded.py).
      several: (TrainState, how many iterations, at most `most`) -> the state after them and the metrics of each, as a
        generator like `calls`; the same to the bit as one after the other. None where they are done one at a time.
      most: iterations that `several` does at once.
      tables: TrainState -> the policies as tables of the game's exact form, where the learner has them as such.
      settle: TrainState -> (TrainState, counters), as a generator like `calls`: what the learner fits every so many
        iterations alone is fitted to the last one, before a run's last measurement. None where nothing is left behind.
      traceable: whether `init` may be traced: the shapes of a state can then be had without compiling or computing it.
      counts: which totals a run of it can end by: of `nodes` and `episodes` those that it adds to. Solvers that go
        through all of a game at once count no episodes, learners from records neither.
      with_share: (state, share in [0, 1] of the run's budget that is spent) -> the state with it, for settings that
        change over the whole run; the run calls it between calls of `several`, or of `iterate`. None where nothing
        depends on it.
      has_network: whether it is made of the `network` node; a run of one that is not takes no settings of a network.
      fixed: settings that a run keeps for its whole length, by name within `algo`: a value, or a checksum of what the
        setting names; plain numbers or texts.
    """

    init: Callable[[Any], TrainState]
    iterate: Callable[[TrainState], tuple[TrainState, Metrics]]
    policies: Callable[[TrainState], dict[str, Policy]]
    value: Callable[[TrainState], Value] | None = None
    calls: Callable[[TrainState], Generator[None, None, tuple[TrainState, Metrics]]] | None = None
    several: Callable[[TrainState, int], Generator[None, None, tuple[TrainState, list[Metrics]]]] | None = None
    most: int = 1
    tables: Callable[[TrainState], dict[str, Any]] | None = None
    settle: Callable[[TrainState], Generator[None, None, tuple[TrainState, Metrics]]] | None = None
    traceable: bool = False
    counts: tuple[str, ...] = ("nodes", "episodes")
    with_share: Callable[[TrainState, float], TrainState] | None = None
    has_network: bool = True
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def like(self) -> TrainState:
        """Returns shapes and dtypes of a state, a state itself where `init` cannot be traced: to restore one by."""
        key = jax.random.key(0)
        return jax.eval_shape(self.init, key) if self.traceable else self.init(key)

    def in_calls(self, state: TrainState, iterations: int) -> Generator[None, None, tuple[TrainState, list[Metrics]]]:
        """Returns iterations, at most `most`, as `several`; without it one, as `calls` or in one call."""
        if self.several is not None:
            return (yield from self.several(state, iterations))
        done = (yield from self.calls(state)) if self.calls is not None else self.iterate(state)
        if not isinstance(done, tuple) or len(done) != 2 or not isinstance(done[1], Mapping):
            raise InputError(f"an iteration returned {type(done).__name__}; it must return (state, metrics by name)")
        return done[0], [done[1]]


def _no_records(name: str, game: Game) -> Sequence[Record]:
    raise InputError(f"records={name} of {game.name} cannot be read by these resources; give some with find_records")


@dataclasses.dataclass(frozen=True)
class Resources:
    """Functions that find what a learner does not make itself; who builds the learner decides where they look.

    Attributes:
      find_player: (name, game) -> Policy; by default the rule-based players alone.
      find_tree: enumerable game -> Tree; by default expanded anew, and kept in memory.
      find_records: (name of a file, game) -> records of that game; by default there are none.
    """

    find_player: Callable[[str, Game], Policy] = make_bot
    find_tree: Callable[[EnumerableGame], Tree] = kept_tree
    find_records: Callable[[str, Game], Sequence[Record]] = _no_records


FOR_ANY_GAME = "ppo, mmd, nfsp or dueling_dream"
"""Algorithms that take games for more than two players, and games that are not zero-sum."""


def needs_two_players(algorithm: str, game: Game) -> None:
    """Raises InputError unless a game is for two players and zero-sum, for an algorithm that takes it to be."""
    check_two_player_zero_sum(game, f"algo={algorithm}", f"use {FOR_ANY_GAME}")


def needs_tree(algorithm: str, game: Game) -> None:
    """Raises InputError unless a game is enumerable and for two, for an algorithm that goes through the whole tree."""
    if not isinstance(game, EnumerableGame):
        for_two = game.num_players == 2 and game.zero_sum
        raise InputError(
            f"algo={algorithm} needs the whole tree of its game, and {game.name} is not enumerable; "
            f"use an algorithm that samples play, such as {'dream or dueling_dream' if for_two else FOR_ANY_GAME}"
        )
    if game.num_players != 2:
        needs_two_players(algorithm, game)
