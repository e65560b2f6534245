"""The plan of a session, ``plan.md``: written by clients, and by models in plan mode."""

from __future__ import annotations

from typing import Final

from jumpseat.store.session.state_files import StateFiles, store_error

FILE: Final = "plan.md"


class Plan:
    """The plan of one session, which need not exist."""

    def __init__(self, state: StateFiles) -> None:
        self._state = state

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._state.path(FILE)

    async def read(self) -> str | None:
        """Return the text, invalid bytes replaced; ``None`` if there is no plan.

        Raises:
            StoreError: the file cannot be read.
        """
        await self._state.refresh(FILE)
        try:
            content = self._state.read(FILE)
        except OSError as error:
            raise store_error("read", FILE, error) from error
        return None if content is None else content.decode("utf-8", "replace")

    async def write(self, text: str) -> bool:
        """Replace the text; returns whether the plan is new.

        Raises:
            StoreError: the file cannot be written.
        """
        await self._state.refresh(FILE)
        try:
            is_new = self._state.read(FILE) is None
            self._state.write(FILE, text.encode())
        except (OSError, UnicodeEncodeError) as error:
            raise store_error("write", FILE, error) from error
        await self._state.flush()
        return is_new

    async def remove(self) -> bool:
        """Remove the plan; returns whether there was one.

        Raises:
            StoreError: the file cannot be removed.
        """
        await self._state.refresh(FILE)
        try:
            existed = self._state.remove(FILE)
        except OSError as error:
            raise store_error("remove", FILE, error) from error
        await self._state.flush()
        return existed
