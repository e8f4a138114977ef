"""Several processes as one run: they meet, do the same, take decisions from the first, and end together.

Every process holds the same state and takes part in every computation on the mesh; the first alone prints and writes.
JAX connects the devices (jax.distributed). What JAX leaves open is here: who is missing at the start, in one line;
which clock and which signal count; and an end within seconds where a process is lost.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from dream.compiled import agreement
from dream.config.schema import HostsConfig
from dream.config.settings import flat
from dream.storage.files import StorageError
from dream.training import meeting
from dream.training.link import Link
from dream.training.signals import StopRequest
from envs.errors import InputError

_INITIALIZE_SECONDS = 60
"""What JAX has to connect processes that have all come."""
_LOSS_SECONDS = 10.0
"""Within which a process that is gone is noticed after a collective operation has failed."""
_ADDRESS_BYTES = 512

_link: Link | None = None
_on_abort: Any = None
_exit_code: int | None = None


def several() -> bool:
    """Returns whether this process is one of several."""
    return _link is not None


def leads() -> bool:
    """Returns whether this process prints and writes: the first, or the only one."""
    return _link is None or _link.index == 0


def join(config: HostsConfig) -> None:
    """Connects this process with the others of its run; does nothing where there are none. Once in a process.

    Args:
      config: who they are.
    Raises:
      InputError: settings that do not fit together, or a process that has not come in time.
    """
    global _link
    if not config.auto and _is_single(config):
        return
    if _link is not None:
        raise InputError("hosts.*: this process has already run with several hosts; start a new process")
    _link = _by_environment(config) if config.auto else _by_settings(config)
    agreement.agree_by(_link.of_the_first)
    _delay_aborts(_link)
    atexit.register(_at_exit)
    if _link.index > 0:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the process's end


def _delay_aborts(link: Link) -> None:
    """Has an abort wait until the link notices a loss: JAX aborts a process whose connection to the first one ends.

    The signal module's handlers run in the main thread alone, later than an abort; one of C's runs in the thread that
    aborts. Where nothing is lost the abort goes on.
    """
    global _on_abort
    _on_abort = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda number: link.wait_for_loss(_LOSS_SECONDS))
    ctypes.CDLL(None).signal(signal.SIGABRT, _on_abort)


def _is_single(config: HostsConfig) -> bool:
    """Returns whether there is one process; raises InputError where the settings contradict each other."""
    count, index = config.count, config.index
    if count is None:
        if config.coordinator is not None or index is not None:
            raise InputError("hosts.count is missing; it must be the number of processes, the same for all")
        return True
    if index is None and (count > 1 or config.coordinator is not None):
        raise InputError(f"hosts.index is missing; it must be from 0 to {count - 1}, a different one for each process")
    if index is not None and index >= count:
        raise InputError(f"hosts.index={index} is too large; it must be at most {count - 1} with hosts.count={count}")
    if config.coordinator is None and count > 1:
        raise InputError("hosts.coordinator is missing; it must be address:port of the first process")
    if config.coordinator is not None:
        _address(config.coordinator)
    return count == 1


def _address(coordinator: str) -> tuple[str, int]:
    host, _, port = coordinator.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise InputError(f"hosts.coordinator={coordinator} is not valid; it must be address:port, as in node1:7700")
    return host, int(port)


def _by_settings(config: HostsConfig) -> Link:
    """Meets at the coordinator's address; the first process then says where JAX's own service is."""
    host, port = _address(config.coordinator)
    count, index = config.count, config.index
    if index == 0:
        with meeting.listen(port) as server:
            said = {"port": meeting.free_port()}
            peers = meeting.receive(server, count, config.wait_seconds, said)
    else:
        caller = {"index": index, "count": count, "name": meeting.own_name()}
        peers, said = meeting.call([host], port, config.wait_seconds, caller)
    address = f"[{host}]:{said['port']}" if ":" in host else f"{host}:{said['port']}"
    _initialize(config, address, count, index, cluster_detection_method="deactivate")
    return Link(index, count, peers, _silence(config))


def _by_environment(config: HostsConfig) -> Link:
    """Has JAX find the others, as SLURM, Open MPI or Kubernetes say; the first process then says where it listens."""
    if config.coordinator is not None or config.count is not None or config.index is not None:
        raise InputError("hosts.auto=true finds coordinator, count and index; leave these out, or hosts.auto")
    _initialize(config)
    count, index = jax.process_count(), jax.process_index()
    with meeting.listen(0) as server:
        addresses = _from_first(meeting.own_addresses())
        port = int(_from_first(str(server.getsockname()[1])))
        if index == 0:
            peers = meeting.receive(server, count, config.wait_seconds, {})
        else:
            caller = {"index": index, "count": count, "name": meeting.own_name()}
            peers, _ = meeting.call(addresses.split(), port, config.wait_seconds, caller)
    return Link(index, count, peers, _silence(config))


def _silence(config: HostsConfig) -> int:
    """Returns the seconds after which the link gives a machine up, before JAX ends the process in its own words."""
    return config.silence_seconds - config.silence_seconds // 4


def _from_first(text: str) -> str:
    """Returns the first process's text, by a collective operation."""
    from jax.experimental.multihost_utils import broadcast_one_to_all

    data = np.zeros(_ADDRESS_BYTES, np.uint8)
    words = np.frombuffer(text.encode()[:_ADDRESS_BYTES], np.uint8)
    data[: len(words)] = words
    return bytes(np.asarray(broadcast_one_to_all(data), np.uint8)).rstrip(b"\0").decode()


def _initialize(config: HostsConfig, *arguments: Any, **others: Any) -> None:
    jax.config.update("jax_enable_preemption_service", False)  # it would take SIGTERM over
    seconds = max(int(config.wait_seconds), _INITIALIZE_SECONDS)
    try:
        jax.distributed.initialize(
            *arguments,
            initialization_timeout=seconds,
            heartbeat_timeout_seconds=config.silence_seconds,
            shutdown_timeout_seconds=_INITIALIZE_SECONDS,
            **others,
        )
    except (RuntimeError, ValueError) as error:
        reason = (str(error).splitlines() or [""])[0]
        way = "; hosts.auto=true needs SLURM, Open MPI or Kubernetes" if config.auto else ""
        raise InputError(f"hosts.*: JAX cannot connect the processes ({reason[:200]}){way}") from error


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Has the other processes end where an error or an exit ends this one.

    Where a collective operation failed as another process is gone, this one ends with the line about that instead.
    """
    global _exit_code
    try:
        yield
    except BaseException as error:
        if _link is None or isinstance(error, GeneratorExit):
            raise
        expected = isinstance(error, InputError | FloatingPointError | StorageError | MemoryError)
        if not expected and isinstance(error, Exception):
            _link.wait_for_loss(_LOSS_SECONDS)
        line = (str(error).splitlines() or [""])[0] or type(error).__name__
        _exit_code = 2 if isinstance(error, InputError) else 1
        _link.leave(line, _exit_code)
        raise


def same(settings: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Waits until every process is here, before anything is written.

    Args:
      settings: of the run, plain; the same in every process.
      found: what each has found, by name: its packages, the checkpoint to go on from.
    Raises:
      InputError: a process has other settings, or has found something else.
    """
    if _link is None:
        return
    own = {**flat(settings), **flat(found)}
    for peer, theirs in sorted(_link.gathered(own).items()):
        for name in {**own, **theirs}:
            if own.get(name) != theirs.get(name):
                raise InputError(
                    f"{_link.name(peer)} has {name}={theirs.get(name)}, host 0 has {own.get(name)}; "
                    "it must be the same for all"
                )
    agreement.agreed("settings", True)


def where_lost(advice: Callable[[], str]) -> None:
    """Says what is to be added to the line about a lost process; it may look at files."""
    if _link is not None:
        _link.advice = advice


def shared(stop: StopRequest) -> StopRequest:
    """Returns a stop request on which all processes agree: a signal to any of them is a signal to all."""
    return stop if _link is None else _SharedStop(stop, _link)


class _SharedStop(StopRequest):
    """What the first process has received or heard of; to be read by all at the same points."""

    def __init__(self, own: StopRequest, link: Link) -> None:
        self._own, self._link, self._agreed, self._passed_on = own, link, None, False

    @property
    def received(self) -> int | None:
        if self._agreed is None:
            if self._own.received is not None and not self._passed_on and self._link.index > 0:
                self._link.pass_on(self._own.received)
                self._passed_on = True
            number = self._own.received if self._own.received is not None else self._link.signal
            self._agreed = agreement.agreed("signal", number)
            if self._agreed is not None:
                self._own.received = self._agreed
        return self._agreed

    @property
    def is_overdue(self) -> bool:
        received = self.received
        return agreement.agreed("overdue", received is not None and self._own.is_overdue)

    def protect(self, protected: bool = True, farewell: str = "") -> None:
        self._own.protect(protected, farewell)

    def holding(self, release: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        return self._own.holding(release)

    @contextlib.contextmanager
    def call(self, rescue: Callable[[], str]) -> Iterator[None]:
        """Marks a call that may be long; the first process alone leaves it, and the others follow."""
        if self._link.index > 0:
            yield
            return

        def saved() -> str:
            line = rescue()
            self._link.leave(f"a signal: {line}", 128 + (self._own.received or 0))
            return line

        with self._own.call(saved):
            yield


def end() -> None:
    """Waits until every process has come to the end of its work, so that none is missed by another."""
    if _link is None:
        return
    _link.gathered(None)
    agreement.agreed("end", True)


def _at_exit() -> None:
    """Ends the connection, the first process last; after an error without JAX, which would wait for the others."""
    if _exit_code is not None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        if _link is not None:
            _link.wait_for_ends(_LOSS_SECONDS)
        os._exit(_exit_code)
    if _link is None:
        return
    if _link.index > 0:
        jax.distributed.shutdown()
    _link.close()
    if _link.index == 0:  # its process holds JAX's service
        _link.wait_for_ends(_LOSS_SECONDS)
