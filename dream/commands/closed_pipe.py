"""What a command does where nobody reads its output any more, as after `| head`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def while_somebody_reads() -> Iterator[None]:
    """Ends the process without a word, as SIGPIPE would, where standard output is a pipe that was closed."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        if not _is_closed(sys.stdout.fileno()):
            raise  # another pipe broke
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python writes at its end
        sys.exit(128 + signal.SIGPIPE)


def _is_closed(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, 0)  # errors alone, which are always reported
    return any(event & select.POLLERR for _, event in poll.poll(0))
