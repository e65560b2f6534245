"""The keyring of the operating system, for the user's logins and keys. The package ``keyring`` is optional."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread

from jumpseat.errors import StoreError

log = logging.getLogger(__name__)

SERVICE: Final = "jumpseat"

TIMEOUT_S: Final = 60.0
"""Time limit for the keyring, which may ask a person to unlock it."""

T = TypeVar("T")


class Keyring:
    """Secrets by name. A keyring that is missing or fails keeps nothing."""

    def put(self, name: str, secret: str) -> bool:
        """Store a secret and return whether the keyring has it."""
        backend = self._backend()
        if backend is None:
            return False
        try:
            backend.set_password(SERVICE, name, secret)
            return backend.get_password(SERVICE, name) == secret
        except Exception as error:
            # The text may contain the secret.
            log.warning("the keyring stores nothing: %s", type(error).__name__)
            return False

    def get(self, name: str) -> str | None:
        """Return a secret; ``None`` if the keyring does not have it."""
        backend = self._backend()
        if backend is None:
            return None
        try:
            return backend.get_password(SERVICE, name)
        except Exception as error:
            log.warning("the keyring cannot be read: %s", type(error).__name__)
            return None

    def remove(self, name: str) -> None:
        """Remove a secret, if the keyring has it."""
        backend = self._backend()
        if backend is None:
            return
        try:
            backend.delete_password(SERVICE, name)
        except Exception as error:
            log.warning("a secret may still be in the keyring: %s", type(error).__name__)

    def _backend(self) -> Any:
        try:
            backend: Any = import_module("keyring").get_keyring()
        except ImportError:
            return None
        # Without a usable service, the package has backends that fail or keep nothing.
        return backend if backend.priority > 0 else None


async def in_thread(call: Callable[[], T]) -> T:
    """Run a call that may block.

    Raises:
        StoreError: it takes too long.
    """
    try:
        with anyio.fail_after(TIMEOUT_S):
            return await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    except TimeoutError:
        raise StoreError(f"the keyring does not answer within {TIMEOUT_S:g} s") from None
