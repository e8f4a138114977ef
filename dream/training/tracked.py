"""What a W&B run holds besides numbers: hands that were played, pictures of the run, and its policies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from envs import Game, Policy, drawing, records

HANDS = 3
"""Hands shown of each match of an evaluation."""
_MOST_BYTES = 2**26
"""Of a policy that is kept as an artifact."""


def log_hands(
    run: Any, iteration: int, game: Game, opponent: str, player: str, played: Sequence[dict[str, Any]]
) -> None:
    """Logs hands as pictures: their last positions with all moves.

    Args:
      run: of W&B.
      iteration: whose policy played.
      game: what was played.
      opponent, player: names of who played.
      played: hands as `match` gives them to on_hand.
    """
    import wandb

    shown = []
    for hand in played:
        players = [opponent] * game.num_players
        players[hand["seat"]] = player
        one = records.finished(game, hand["deal"], hand["actions"], hand["won"], players)
        shown.append(wandb.Html(drawing.to_svg(records.scene(one, checked=False)), inject=False))
    if shown:
        run.log({"iteration": iteration, f"hands/{opponent}": shown})


def log_pictures(run: Any, paths: Iterable[Path]) -> None:
    """Logs pictures of the run, each under its file's name."""
    import wandb

    shown = {f"pictures/{path.stem}": wandb.Html(path.read_text(), inject=False) for path in paths}
    if shown:
        run.log(shown)


def log_policy(run: Any, iteration: int, policy: Policy) -> None:
    """Logs the parameters of a checkpoint's policy as a version of the run's artifact: arrays by name, in an .npz."""
    import wandb

    leaves = jax.tree_util.tree_leaves_with_path(jax.device_get(policy.params))
    arrays = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
    if not arrays or sum(array.nbytes for array in arrays.values()) > _MOST_BYTES:
        return
    path = Path(run.dir).parent / "policies" / f"{iteration}.npz"
    path.parent.mkdir(exist_ok=True)
    if path.exists():  # W&B may be reading it: the same iteration, its average fitted once more
        path = path.with_stem(f"{iteration}_settled")
    np.savez_compressed(path, **arrays)
    artifact = wandb.Artifact(f"policy-{run.id}", type="policy", metadata={"iteration": iteration})
    # The file stays where it is: a copy would go to the user's own folder.
    artifact.add_file(str(path), "policy.npz", policy="immutable", skip_cache=True)
    run.log_artifact(artifact, aliases=["latest", f"iteration-{iteration}"])
