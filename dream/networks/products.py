"""A matrix product whose operands are rounded to a lower precision, in the backward pass as well.

    y = round(x) round(w),   dw = round(x)^T round(dy),   dx = round(dy) round(w)^T;   sums and results are float32

Differentiated by JAX's own rule dy would stay float32, and a product of float32 and bfloat16 is computed in float32.
Source: Micikevicius et al. 2018, "Mixed precision training", section 3; the bfloat16 of today needs no loss scaling.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental.layout import Layout, with_layout_constraint

from envs.batching import on_cpu


def product(x: Array, w: Array, dtype: Any) -> Array:
    """Returns x w of float32[..., n] and float32[n, m], float32[..., m]; float32 is JAX's own product.

    Args:
      x: rows.
      w: columns.
      dtype: of the operands of every product; sums are float32.
    """
    x = x.astype(jnp.float32)
    return _sums(x, w) if jnp.dtype(dtype) == jnp.float32 else _rounded(x, w, jnp.dtype(dtype))


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _rounded(x: Array, w: Array, dtype: Any) -> Array:
    """Returns the product of rounded operands."""
    return _sums(x.astype(dtype), w.astype(dtype))


def _forward(x: Array, w: Array, dtype: Any) -> tuple[Array, tuple[Array, Array]]:
    """Returns the product, and its operands for the backward pass."""
    operands = x.astype(dtype), w.astype(dtype)
    return _sums(*operands), operands


def _backward(dtype: Any, operands: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    """Returns the gradients of both operands, given that of the product."""
    x, w = operands
    dy = gradient.astype(dtype)
    rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return _sums(dy, _transposed(w)), _sums(_transposed(rows[0]), rows[1])


_rounded.defvjp(_forward, _backward)


def _sums(x: Array, w: Array) -> Array:
    """Returns their product, summed in float32."""
    return jnp.matmul(x, w, preferred_element_type=jnp.float32)


@jax.jit  # outside of a program neither tracers nor NumPy arrays have a layout to set
def _transposed(x: Array) -> Array:
    """Returns the transpose of a matrix, on a CPU as a copy: XLA would compute a product of columns in float32 there.

    Not on several devices, where the layout would gather the rows of all of them.
    """
    if on_cpu() and jax.device_count() == 1:
        return with_layout_constraint(x.T, Layout((0, 1)))
    return x.T
