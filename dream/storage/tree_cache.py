"""Trees kept on disk, by what their game is and does; a tree that disagrees with its game is built anew."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dream.game_tree.probe import agrees
from dream.game_tree.tree import Tree, build_tree
from envs import EnumerableGame
from envs.traces import forget_other_traces

_FORMAT = 3
_SLOW = 20_000
"""Histories beyond which building shows its progress."""
_IN_MEMORY = 4
_KEPT: OrderedDict[tuple[Any, ...], Tree] = OrderedDict()
"""The trees of this process that were asked for last, by class, game and key."""


def cache_folder() -> Path:
    """Returns where trees are kept: $DREAM_CACHE_DIR, else the user's cache folder."""
    given = os.environ.get("DREAM_CACHE_DIR")
    return Path(given or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "dream") / "trees"


def stored_tree(game: EnumerableGame) -> Tree:
    """Returns a game's tree, from memory or from disk where it was built before.

    The key holds the game's name, version and rules, its source and that of the modules it imports. A tree read from
    disk is compared with the game, as a game may change by more than its source. A cache that cannot be read or written
    costs the time to build the tree, and a line on stderr. What JAX has traced is forgotten where it may be of another
    key.

    Raises:
      InputError: as build_tree.
    """
    identity = json.dumps({**game.identity, "format": _FORMAT, "source": forget_other_traces(game)}, sort_keys=True)
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    place = (type(game), game, key)
    if place not in _KEPT:
        _KEPT[place] = _read_or_build(game, key)
    _KEPT.move_to_end(place)
    while len(_KEPT) > _IN_MEMORY:
        _KEPT.popitem(last=False)
    return _KEPT[place]


def _read_or_build(game: EnumerableGame, key: str) -> Tree:
    path = stored = None
    try:
        path = cache_folder() / f"{game.name}-{key}.npz"
        stored = _load(path, game) if path.exists() else None
    except Exception as error:  # cut off, damaged, not to be read: built anew
        _warn(f"a stored tree cannot be read ({type(error).__name__}: {str(error)[:100]}); it is built anew")
    if stored is not None:
        if agrees(stored, game):
            return stored
        _warn(f"{path} disagrees with the game; it is built anew")
    tree = build_tree(game, progress=_show)
    if path is None:
        return tree
    try:
        _save(path, tree)
    except OSError as error:
        _warn(f"{path.parent} cannot be written ({error.strerror or error}); the tree is not kept for the next time")
    return tree


def _warn(text: str) -> None:
    print(f"warning: tree cache: {' '.join(text.split())}", file=sys.stderr, flush=True)


def _show(level: int, histories: int) -> None:
    if histories > _SLOW:
        print(f"tree: level {level}, {histories:,} histories", file=sys.stderr, flush=True)


def _save(path: Path, tree: Tree) -> None:
    arrays = {f.name: getattr(tree, f.name) for f in dataclasses.fields(tree) if f.name not in ("game", "views")}
    views = {f"view_{n}": leaf for n, leaf in enumerate(jax.tree.leaves(tree.views))}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{os.getpid()}.npz")
    try:
        np.savez(temporary, **arrays, **views)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _load(path: Path, game: EnumerableGame) -> Tree:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        arrays = {f.name: stored[f.name] for f in dataclasses.fields(Tree) if f.name not in ("game", "views")}
        state = jax.eval_shape(game.init, jax.random.key(0))
        structure = jax.tree.structure(jax.eval_shape(game.view, state, np.int32(0)))
        leaves = [stored[f"view_{n}"] for n in range(structure.num_leaves)]
    return Tree(game=game, views=jax.tree.unflatten(structure, leaves), **arrays)
