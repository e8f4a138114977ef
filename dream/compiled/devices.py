"""Lanes, minibatches and buffers split over devices by JAX's own sharding; parameters are whole on each.

The mesh is JAX's context mesh, one axis of all devices: inside `over`, functions traced here split what they are given
along it. Without a mesh, on one device, they return what they are given, so that the program is the one it always was.
What the arrays hold does not depend on the number of devices, up to the order of sums over a minibatch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from envs.errors import InputError

AXIS = "devices"


@contextlib.contextmanager
def over(wanted: int | None) -> Iterator[None]:
    """Splits what is traced inside over devices.

    Args:
      wanted: so many devices of this machine; None for all of them. One is no mesh.
    Raises:
      InputError: there are fewer.
    """
    mesh = _mesh(wanted)
    with contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh):
        yield


def _mesh(wanted: int | None) -> Mesh | None:
    if wanted == 1:
        return None
    present = jax.local_devices()
    if wanted is not None and wanted > len(present):
        raise InputError(f"devices={wanted} is more than there are; it must be at most {len(present)}, or null for all")
    chosen = present[:wanted]
    return Mesh(np.array(chosen), (AXIS,), axis_types=(AxisType.Auto,)) if len(chosen) > 1 else None


def count() -> int:
    """Returns the devices that arrays are split over here: 1 without a mesh, and inside `by_lane`."""
    mesh = jax.sharding.get_abstract_mesh()
    return 1 if mesh.empty or _is_inside(mesh) else mesh.shape[AXIS]


def _is_inside(mesh: Any) -> bool:
    """Returns whether the function under trace is one device's part of `by_lane`."""
    return not mesh.empty and AXIS in mesh.manual_axes


def by_lane(function: Callable[..., Any], *lanes: Any) -> Any:
    """Applies a function to lanes, every device to its share of them.

    Args:
      function: on any number of lanes, each for itself; what it reads besides its arguments is whole on every device.
      *lanes: pytrees of arrays, leading axis [N].
    Returns:
      What the function returns of all lanes: pytree, leading axis [N]. Where N cannot be split evenly, every device
      computes all of it.
    """
    size = jax.tree.leaves(lanes)[0].shape[0]
    if count() == 1 or size % count():
        return function(*lanes)
    part = PartitionSpec(AXIS)
    # Games and policies are not written with the types that JAX's check of what varies by device asks for.
    return jax.shard_map(function, in_specs=part, out_specs=part, check_vma=False)(*lanes)


def lane_keys(key: Array, lanes: int) -> Array:
    """Returns a key for each lane, in `by_lane` for each of the device's: the same on any number of devices."""
    mesh = jax.sharding.get_abstract_mesh()
    if not _is_inside(mesh):
        return jax.random.split(key, lanes)
    keys = jax.random.split(key, lanes * mesh.shape[AXIS])
    return lax.dynamic_slice_in_dim(keys, lax.axis_index(AXIS) * lanes, lanes)


def split(tree: Any, axis: int = 0) -> Any:
    """Returns arrays split over the devices along an axis; those that cannot be split evenly are whole on each."""
    devices = count()
    if devices == 1:
        return tree

    def laid(x: Array) -> Array:
        evenly = x.ndim > axis and x.shape[axis] % devices == 0
        return _constrained(x, PartitionSpec(*[None] * axis, AXIS) if evenly else PartitionSpec())

    return jax.tree.map(laid, tree)


def whole(tree: Any) -> Any:
    """Returns arrays that every device holds whole."""
    return tree if count() == 1 else jax.tree.map(lambda x: _constrained(x, PartitionSpec()), tree)


def _constrained(x: Array, spec: PartitionSpec) -> Array:
    return lax.with_sharding_constraint(x, spec)


def as_laid_out(tree: Any, like: Any) -> Any:
    """Returns arrays from the host where the arrays of another pytree are, those of one device free to be moved.

    Args:
      tree: of arrays that this process holds whole.
      like: the same structure; leaves that are no arrays of devices say nothing of where.
    """

    def put(x: Any, model: Any) -> Array:
        sharding = getattr(model, "sharding", None)
        return jax.device_put(x, sharding if isinstance(sharding, NamedSharding) else None)

    return jax.tree.map(put, tree, like)
