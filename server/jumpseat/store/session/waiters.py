"""Wait until changes that are stored one after the other are stored."""

from __future__ import annotations

import anyio
from msgspec import Struct

from jumpseat.errors import StoreError


class _Waiter(Struct):
    number: int
    done: anyio.Event
    error: StoreError | None = None


class Waiters:
    """The tasks that wait, each until all changes up to a number are stored."""

    def __init__(self) -> None:
        self._waiting: list[_Waiter] = []

    async def wait(self, number: int) -> None:
        """Wait for a call of :meth:`wake` that concerns the change ``number``.

        Raises:
            StoreError: the one given to :meth:`wake`.
        """
        waiter = _Waiter(number, anyio.Event())
        self._waiting.append(waiter)
        try:
            await waiter.done.wait()
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        if waiter.error is not None:
            raise waiter.error

    def wake(self, stored: int, error: StoreError | None = None) -> None:
        """End the waiting for changes up to the number ``stored``; with an ``error``, all waiting fails."""
        for waiter in list(self._waiting):
            if error is not None or waiter.number <= stored:
                waiter.error = error
                waiter.done.set()
                self._waiting.remove(waiter)
