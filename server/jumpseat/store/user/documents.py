"""JSON objects of the user that several processes share: the interface of the storages of approvals and settings.

:class:`~jumpseat.store.user.private_file.PrivateFile` and :class:`~jumpseat.store.user.settings.SettingsFile` are
files; in a cluster, :mod:`jumpseat.cluster.sessions.documents` stores the objects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Document(Protocol):
    """A JSON object."""

    def read(self) -> dict[str, Any]:
        """Return the object, empty if there is none. Must not be changed by the caller.

        Raises:
            StoreError: the object cannot be read.
        """
        ...

    def change(self, change: Callable[[dict[str, Any]], T]) -> T:
        """Call ``change`` with the object, store the object, and return the result of ``change``.

        ``change`` may be called again, with another object, if somebody else has changed it meanwhile. Blocks: do
        not call this in the event loop's thread.

        Raises:
            StoreError: the object cannot be stored.
        """
        ...

    def reload(self) -> None:
        """Let the next :meth:`read` return what other programs have written."""
        ...
