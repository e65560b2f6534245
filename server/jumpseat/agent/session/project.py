"""The description of a session's project for its model: its folders, languages and checks."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from jumpseat.agent.interfaces import Brief, Storage
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import StoreError

log = logging.getLogger(__name__)

BRIEF_S: Final = 1.0
"""The longest time that a prompt waits for the description of the project."""
LOOKING: Final = frozenset(("view", "bash", "grep", "glob"))
"""The tools to which the description of a project is of use."""


class ProjectBriefs:
    """The description of the project of a session, made once for each working directory.

    It is kept with the session: requests of a resumed session begin as before, so that providers find them in their
    caches. ``read`` describes a project, in any thread.
    """

    def __init__(self, session_id: str, storage: Storage, read: Callable[[SessionSettings], Brief]) -> None:
        # The last description, with its folder.
        self.last: tuple[Path, Brief] | None = None
        self._session_id = session_id
        self._storage = storage
        self._read = read

    async def describe(self, settings: SessionSettings) -> str:
        """Return the description for the model; empty if there is nothing to say, or the disk is slow."""
        if self.last is None or self.last[0] != settings.cwd:
            self.last = settings.cwd, await self._kept(settings)
        return self.last[1].text

    async def read(self, settings: SessionSettings) -> Brief:
        """Read the description of the project; an empty one if the disk is slow."""
        with anyio.move_on_after(BRIEF_S):
            return await anyio.to_thread.run_sync(self._read, settings, abandon_on_cancel=True)
        return Brief()

    async def _kept(self, settings: SessionSettings) -> Brief:
        cwd = str(settings.cwd)
        if (kept := await anyio.to_thread.run_sync(self._storage.read_brief, cwd)) is not None:
            return kept
        brief = await self.read(settings)
        if brief.text:
            try:
                await anyio.to_thread.run_sync(self._storage.write_brief, cwd, brief)
            except StoreError as error:
                log.warning("session %s: %s", self._session_id, error)
        return brief
