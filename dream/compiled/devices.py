"""Lanes, minibatches and buffers split over devices by JAX's own sharding; parameters are whole on each.

The mesh is JAX's context mesh, one axis of all devices of all hosts: inside `over`, functions traced here split what
they are given along it. Without a mesh, on one device, they return what they are given, so that the program is the one
it always was. What the arrays hold does not depend on the number of devices, up to the order of sums over a minibatch.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from envs.errors import InputError

AXIS = "devices"
_uneven: dict[int, int] = {}
"""Size -> devices that do not divide it, as met in traces."""


@contextlib.contextmanager
def over(wanted: int | None) -> Iterator[None]:
    """Splits what is traced inside over devices.

    Args:
      wanted: so many devices of this machine, or of each host where there are several; None for all of them. One alone
        is no mesh.
    Raises:
      InputError: there are fewer.
    """
    mesh = _mesh(wanted)
    _uneven.clear()
    with contextlib.nullcontext() if mesh is None else jax.set_mesh(mesh):
        if jax.process_count() > 1:
            _connect(mesh)
        yield


def _connect(mesh: Mesh) -> None:
    """Adds up an array over all hosts: they connect now, as later the first may wait for others that still compile."""
    ones = jax.device_put(np.ones(mesh.size, np.float32), NamedSharding(mesh, PartitionSpec(AXIS)))
    jax.block_until_ready(jax.jit(jnp.sum)(ones))


def _mesh(wanted: int | None) -> Mesh | None:
    if wanted == 1 and jax.process_count() == 1:
        return None
    present = jax.local_devices()
    if wanted is not None and wanted > len(present):
        raise InputError(f"devices={wanted} is more than there are; it must be at most {len(present)}, or null for all")
    own = [[x for x in jax.devices() if x.process_index == n][:wanted] for n in range(jax.process_count())]
    chosen = [device for each in own for device in each]
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
    if count() == 1 or _is_uneven(size):
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
        evenly = x.ndim > axis and not _is_uneven(x.shape[axis])
        return _constrained(x, PartitionSpec(*[None] * axis, AXIS) if evenly else PartitionSpec())

    return jax.tree.map(laid, tree)


def whole(tree: Any) -> Any:
    """Returns arrays that every device holds whole."""
    return tree if count() == 1 else jax.tree.map(lambda x: _constrained(x, PartitionSpec()), tree)


def _constrained(x: Array, spec: PartitionSpec) -> Array:
    return lax.with_sharding_constraint(x, spec)


def _is_uneven(size: int) -> bool:
    """Returns whether the devices do not divide a size, which is then computed whole on each; keeps it for a notice."""
    if size % count() == 0:
        return False
    _uneven[size] = count()
    return True


def uneven() -> dict[int, int]:
    """Returns the sizes that were not split since the last call -> the number of devices they were to be split over."""
    found = dict(_uneven)
    _uneven.clear()
    return found


def kept(most: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that keeps a function's newest results, for each number of devices its own.

    Arrays made inside `over` are on all of its devices, and a program on another number of devices refuses them.

    Args:
      most: how many results.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.lru_cache(maxsize=most)
        def on_mesh(mesh: Any, *arguments: Any) -> Any:
            return function(*arguments)

        @functools.wraps(function)
        def here(*arguments: Any) -> Any:
            return on_mesh(jax.sharding.get_abstract_mesh(), *arguments)

        return here

    return decorate


def is_at_hand(tree: Any) -> bool:
    """Returns whether this process holds arrays whole, without asking others."""
    return all(_is_at_hand(x) for x in jax.tree.leaves(tree) if isinstance(x, Array))


def _is_at_hand(x: Array) -> bool:
    return x.is_fully_addressable or x.is_fully_replicated


def on_host(tree: Any) -> Any:
    """Returns arrays in this process's memory, whole, and PRNG keys as words; with several hosts all must call it."""
    leaves, structure = jax.tree.flatten(tree)
    with jax.enable_x64(True):
        away = [n for n, x in enumerate(leaves) if isinstance(x, Array) and not _is_at_hand(x)]
        for n, x in zip(away, _gathered([leaves[n] for n in away]) if away else [], strict=True):
            leaves[n] = x
        return jax.tree.unflatten(structure, jax.device_get([_words(x) for x in leaves]))


@jax.jit
def _gathered(arrays: list[Array]) -> list[Array]:
    return whole(arrays)


def _words(x: Any) -> Any:
    is_key = isinstance(x, Array) and jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(x) if is_key else x


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
