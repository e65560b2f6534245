"""The reports of a server about its own work, and the waits for its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import anyio

from jumpseat.lsp.documents import Documents
from jumpseat.lsp.process import ServerFailedError

if TYPE_CHECKING:
    from jumpseat.lsp.client import Progress

LOADING_S: Final = 300.0
"""Time for a server to load a project."""

CHECKS: Final = "flycheck"
"""A part of the tokens of work that repeats with every change, such as a build, and ends whenever it ends."""

MOST_PROGRESS: Final = 100
BEGIN_S: Final = 10.0
"""Time for a server to begin work that it has announced."""

LOOK_S: Final = 1.0

QUIET_S: Final = 0.25
"""A server that has been silent for so long, and is not at work, has said what it has to say."""

SETTLES_S: Final = 0.1
"""A server says that a build has ended before it has said all that the build has found."""

QUIET_AFTER_ANSWERS_S: Final = 0.1
"""The same for one that is asked for all that it says: in this time, it would say that it has begun to work."""


class Work:
    """The work of one running server.

    ``has_built`` is whether a build has ended, and ``is_healthy`` whether the server has all that it needs, as far
    as it says so. ``tells_builds_apart``: it pushes only what builds find, and is asked for what it finds itself.
    """

    def __init__(self, documents: Documents) -> None:
        self.has_built = False
        self.is_healthy = True
        self.tells_builds_apart = False
        self._is_ready = True
        self._ends: dict[int | str, float] = {}
        self._documents = documents
        # Whether a build has begun since the last change.
        self._is_building = False

    def progressed(self, token: int | str, state: Progress) -> None:
        """Take that a piece of work was announced, has begun or has ended."""
        if CHECKS in str(token):
            self._noted_build(state, is_new=token not in self._ends)
        if state == "ended":
            self._ends.pop(token, None)
        elif token in self._ends or len(self._ends) < MOST_PROGRESS:
            self._ends[token] = anyio.current_time() + (BEGIN_S if state == "created" else LOADING_S)
        self._documents.hear()

    def _noted_build(self, state: Progress, *, is_new: bool) -> None:
        if state == "ended":
            self.has_built = True
            if self._is_building:
                self._documents.end_build(SETTLES_S)
        elif is_new and self.tells_builds_apart:
            self._is_building = True
            self._documents.begin_build()

    def changed(self) -> None:
        """Note that a change was sent: what a build finds is of the text before, until another one has ended."""
        self._is_building = False
        if self.has_built and self.tells_builds_apart:
            self._documents.changed()

    def reported(self, *, ready: bool, healthy: bool) -> None:
        """Take what the server says about its state."""
        self._is_ready, self.is_healthy = ready, healthy
        self._documents.hear()

    def is_busy(self, *, checks: bool = False) -> bool:
        """Return whether the server says that it is at work; with ``checks``, also if it only checks a change."""
        now = anyio.current_time()
        running = [token for token, end in self._ends.items() if end > now]
        return not self._is_ready or any(checks or CHECKS not in str(token) for token in running)

    async def until_loaded(self) -> None:
        """Wait until the server has loaded its project, as far as it says so.

        Raises:
            ServerFailedError: it takes too long.
        """
        with anyio.move_on_after(LOADING_S):
            while self.is_busy():
                with anyio.move_on_after(LOOK_S):
                    await self._documents.heard.wait()
            return
        raise ServerFailedError("it does not finish loading the project")

    async def until_quiet(self, quiet_s: float = QUIET_S) -> bool:
        """Wait until the server is quiet and not at work; return whether it was at work."""
        documents, was_busy = self._documents, False
        with anyio.move_on_after(LOADING_S):
            while (left := documents.heard_at + quiet_s - anyio.current_time()) > 0 or self.is_busy():
                was_busy |= self.is_busy()
                with anyio.move_on_after(left if left > 0 else LOOK_S):
                    await documents.heard.wait()
        return was_busy

    async def until_checked(self, is_enough: Callable[[], bool]) -> None:
        """Wait until the checks of a change have ended, or it is enough."""
        with anyio.move_on_after(LOADING_S):
            while not is_enough() and (self.is_busy(checks=True) or self._documents.settles):
                with anyio.move_on_after(SETTLES_S if self._documents.settles else LOOK_S):
                    await self._documents.heard.wait()
