"""Hand sessions over between processes: one process asks for a session, and its owner gives it up.

An idle session is given up to every process that resumes it; a session that runs a prompt only to one that resumes
it with ``takeOver``. ``store/session/ownership.py`` has the locks and the requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from jumpseat.errors import SessionInUseError
from jumpseat.store.session.ownership import GiveUpRequest, Ownership
from jumpseat.store.session.sessions import SessionFolder

# An idle owner gives a session up in milliseconds; a process that is ending takes up to half a second.
IDLE_S: Final = 2.0
# An owner that aborts a prompt first waits for its processes.
ABORT_S: Final = 10.0
_RETRY_S: Final = 0.02


class Handover:
    """Takes sessions over from other processes, and hands those of this process over to them.

    ``give_up`` closes a session of this process, by its id, unless the request does not permit that.
    """

    def __init__(
        self,
        ownership: Ownership,
        tasks: TaskGroup,
        give_up: Callable[[str, GiveUpRequest], Coroutine[Any, Any, None]],
    ) -> None:
        self._ownership = ownership
        self._tasks = tasks
        self._give_up = give_up
        self._listening = False

    async def take(self, folder: SessionFolder, *, abort: bool) -> None:
        """Make this process the owner of a session, and ask another owner to give it up.

        ``abort`` makes the other owner abort a running prompt.

        Raises:
            SessionInUseError: the owner does not give the session up in time.
            InvalidRequestError: the session is live in this process under another name.
            SessionNotFoundError: the session was deleted meanwhile.
            StoreError: the session cannot be locked.
        """
        until_s = time.time() + (ABORT_S if abort else IDLE_S)
        while True:
            try:
                folder.claim()
                return
            except SessionInUseError as error:
                if time.time() > until_s:
                    raise SessionInUseError(error.session_id, error.pid, _advice(abort=abort)) from None
            self._ownership.ask(folder.path, force=abort, until_s=until_s)
            await anyio.sleep(_RETRY_S)

    def listen_soon(self) -> None:
        """Start to listen for requests of other processes. Does nothing at later calls."""
        if not self._listening:
            self._listening = True
            self._tasks.start_soon(self._listen)

    async def _listen(self) -> None:
        # The first client gets its answer before the pipe is made, and unused ones are removed.
        await anyio.lowlevel.checkpoint()
        async for request in self._ownership.requests():
            folder = self._ownership.folder_of(request.lock)
            if folder is not None:
                self._tasks.start_soon(self._give_up, folder.name, request)


def _advice(*, abort: bool) -> str:
    if abort:
        return "it does not respond; end it, and resume the session again"
    return "it runs a prompt or does not respond; resume with takeOver to abort that prompt"
