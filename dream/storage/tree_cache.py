"""Trees kept on disk, by game, version and rules."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path

import jax
import numpy as np

from dream.game_tree.tree import Tree, build_tree
from envs import EnumerableGame

_FORMAT = 1
_SLOW = 20_000
"""Histories beyond which building shows its progress."""


def cache_folder() -> Path:
    """Returns where trees are kept: $DREAM_CACHE_DIR, else the user's cache folder."""
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(os.environ.get("DREAM_CACHE_DIR", home / "dream")) / "trees"


@functools.lru_cache(maxsize=4)
def stored_tree(game: EnumerableGame) -> Tree:
    """Returns a game's tree, read from disk where it was built before.

    Raises:
      InputError: as build_tree.
    """
    identity = json.dumps({**game.identity, "format": _FORMAT}, sort_keys=True)
    path = cache_folder() / f"{game.name}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.npz"
    if path.exists():
        try:
            return _load(path, game)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile):
            path.unlink(missing_ok=True)  # cut off or damaged: built anew
    tree = build_tree(game, progress=_show)
    _save(path, tree)
    return tree


def _show(level: int, histories: int) -> None:
    if histories > _SLOW:
        print(f"tree: level {level}, {histories:,} histories", file=sys.stderr, flush=True)


def _save(path: Path, tree: Tree) -> None:
    arrays = {f.name: getattr(tree, f.name) for f in dataclasses.fields(tree) if f.name not in ("game", "views")}
    views = {f"view_{n}": leaf for n, leaf in enumerate(jax.tree.leaves(tree.views))}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{os.getpid()}.npz")
    np.savez(temporary, **arrays, **views)
    temporary.replace(path)


def _load(path: Path, game: EnumerableGame) -> Tree:
    with np.load(path, allow_pickle=False) as stored:
        arrays = {f.name: stored[f.name] for f in dataclasses.fields(Tree) if f.name not in ("game", "views")}
        state = jax.eval_shape(game.init, jax.random.key(0))
        structure = jax.tree.structure(jax.eval_shape(game.view, state, np.int32(0)))
        leaves = [stored[f"view_{n}"] for n in range(structure.num_leaves)]
    return Tree(game=game, views=jax.tree.unflatten(structure, leaves), **arrays)
