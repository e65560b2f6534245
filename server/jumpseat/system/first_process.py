"""Go on in a child if this is the first process of a container, and adopt orphans in its place.

Linux gives processes whose parents have ended to the first one of a container. If that one does not ask for their
exit codes, a zombie is left of each: of commands in the background, and of each sandbox.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final

SENT_BY_PROCESS: Final = 0
"""The largest ``si_code`` of signals that a process has sent. Those of a terminal reach the child anyway."""


def leave_first_process() -> None:
    """Return in a child if this is the first process, which then reaps orphans and passes signals on.

    The first process exits with the exit code of the child. Returns at once in any other process.
    """
    if sys.platform != "linux" or os.getpid() != 1:
        return
    signals = signal.valid_signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    # Others wait for the end of these.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    code = None
    while code is None:
        received = signal.sigwaitinfo(signals)
        if received.si_signo == signal.SIGCHLD:
            code = _reap(child)
        elif received.si_code <= SENT_BY_PROCESS:
            os.kill(child, received.si_signo)
    os._exit(code)


def _reap(child: int) -> int | None:
    """Reap all processes that have ended; return the exit code of ``child`` if it is among them."""
    assert sys.platform == "linux"
    while True:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process == 0:
            return None
        if process == child:
            code = os.waitstatus_to_exitcode(status)
            # As shells report signals.
            return code if code >= 0 else 128 - code
