"""The gin rummy MDP document's network in NumPy, written from its sections 6 to 8 alone."""

from __future__ import annotations

import numpy as np

Weights = dict[str, dict[str, np.ndarray]]
VALUES = ("value_draw", "value_discard", "value_knock", "opp_dw_pred")


def random_weights(rng: np.random.Generator, width: int = 1024) -> Weights:
    """Returns weights of every layer, none of them zero or one, of a size that keeps the outputs near 1."""
    sizes = {"Dense_0": (342, width), **{f"Dense_{n}": (width, width) for n in range(1, 5)}, "Dense_5": (width, 16)}
    sizes |= dict.fromkeys(VALUES, (width, 1))

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    weights = {
        name: {"kernel": normal(rows, columns) / np.float32(np.sqrt(rows)), "bias": 0.1 * normal(columns)}
        for name, (rows, columns) in sizes.items()
    }
    norms = {f"LayerNorm_{n}": {"scale": 1 + 0.1 * normal(width), "bias": 0.1 * normal(width)} for n in range(3)}
    return {**weights, **norms}


def simba_forward(p: Weights, observations: np.ndarray) -> dict[str, np.ndarray]:
    """Returns every head's output in float64: logits [B, 16], the others [B]."""
    p = {name: {part: np.asarray(x, np.float64) for part, x in layer.items()} for name, layer in p.items()}

    def dense(name: str, x: np.ndarray) -> np.ndarray:
        return x @ p[name]["kernel"] + p[name]["bias"]

    def layer_norm(name: str, x: np.ndarray) -> np.ndarray:
        normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return normal * p[name]["scale"] + p[name]["bias"]

    x = np.maximum(dense("Dense_0", np.float64(observations)), 0)
    x = x + dense("Dense_2", np.maximum(dense("Dense_1", layer_norm("LayerNorm_0", x)), 0))
    x = x + dense("Dense_4", np.maximum(dense("Dense_3", layer_norm("LayerNorm_1", x)), 0))
    x = layer_norm("LayerNorm_2", x)
    return {"logits": dense("Dense_5", x), **{name: dense(name, x)[..., 0] for name in VALUES}}
