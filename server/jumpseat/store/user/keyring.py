"""The keyring of the operating system, where there is one (``pip install 'jumpseat[keyring]'``).

All calls may block, also for a person who unlocks the keyring: do not call them in the event loop's thread.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, Final

log = logging.getLogger(__name__)

SERVICE: Final = "jumpseat"


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
            log.warning("the keyring does not store logins: %s", type(error).__name__)
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
            log.warning("a login may still be in the keyring: %s", type(error).__name__)

    def _backend(self) -> Any:
        try:
            backend: Any = import_module("keyring").get_keyring()
        except ImportError:
            return None
        # Without a usable service, the package has backends that fail or keep nothing.
        return backend if backend.priority > 0 else None
