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
    """Ends the process, as SIGPIPE would, where standard output is a pipe that was closed.

    Without a word, unless the error has notes on what was under way: standard error gets them in one line.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        if not output_is_closed():
            raise  # another pipe broke
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python writes at its end
        if notes := getattr(error, "__notes__", ()):
            with contextlib.suppress(OSError):  # it may be the same pipe
                os.write(2, f"stopped, as its output was closed; {'; '.join(notes)}\n".encode())
        sys.exit(128 + signal.SIGPIPE)


def output_is_closed() -> bool:
    """Returns whether standard output is a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # errors alone, which are always reported
    return any(event & select.POLLERR for _, event in poll.poll(0))
