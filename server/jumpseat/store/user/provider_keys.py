"""Keys of model providers that the user has entered: ``keys.json`` in the home folder (mode 0600).

A key takes the place of the environment variable that programs read it from, and is stored under its name. The key
itself is in the keyring of the operating system; where there is none, it is in the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

import anyio

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.clock import utc_now
from jumpseat.errors import InvalidRequestError
from jumpseat.store.user.keyring import Keyring, in_thread
from jumpseat.store.user.private_file import PrivateFile

FILE: Final = "keys.json"
LONGEST: Final = 16 * 1024
MASKED_FROM: Final = 8
"""Characters from which on a key is masked in all output: shorter ones occur by chance."""

KeyPlace: TypeAlias = Literal["keyring", "file"]


class ProviderKeys:
    """The entered keys, by the names of environment variables.

    The file is read again when it has changed, because other processes change it, too. ``mask`` gets the keys,
    which must not appear in any output.
    """

    def __init__(self, home: Path, mask: Callable[[Iterable[str]], None] = lambda _: None) -> None:
        self._home = home
        self._path = home / FILE
        self._file = PrivateFile(self._path)
        self._keyring = Keyring()
        self._mask = mask
        self._version: tuple[int, int, int] | None = None
        self._entries: dict[str, JsonObject] = {}
        self._values: dict[str, tuple[JsonObject, str | None]] = {}
        self._lock = anyio.Lock()

    def places(self) -> dict[str, KeyPlace]:
        """Return where the keys are, by the names of their variables. The keyring is not asked."""
        self._read()
        return {name: "file" if "key" in entry else "keyring" for name, entry in self._entries.items()}

    def has(self, variable: str) -> bool:
        """Return whether there is a key in place of a variable."""
        self._read()
        return variable in self._entries

    def value(self, variable: str) -> str | None:
        """Return the key in place of a variable, as :meth:`load` has found it."""
        known = self._values.get(variable)
        return known[1] if known is not None and self.has(variable) else None

    async def load(self) -> None:
        """Read the keys that are new.

        Raises:
            StoreError: the keyring does not answer.
        """
        self._read()
        if all(self._is_loaded(*item) for item in self._entries.items()):
            return
        async with self._lock:
            for name, entry in list(self._entries.items()):
                if not self._is_loaded(name, entry):
                    self._values[name] = (entry, await in_thread(lambda: self._key_of(name, entry)))  # noqa: B023

    async def put(self, variable: str, key: str) -> KeyPlace:
        """Store a key in place of a variable, and return where it is.

        Raises:
            InvalidRequestError: the text cannot be a key.
            StoreError: neither the keyring nor the file can be written.
        """
        key = key.strip()
        if (problem := key_problem(key)) is not None:
            raise InvalidRequestError(problem)
        self._mask_key(key)

        def store() -> KeyPlace:
            entry: JsonObject = {"since": utc_now()}
            if not self._keyring.put(self._name_in_keyring(variable), key):
                entry["key"] = key

            def change(stored: JsonObject) -> None:
                stored["keys"] = {**_entries(stored), variable: entry}

            self._file.change(change)
            self._values[variable] = (entry, key)
            return "file" if "key" in entry else "keyring"

        async with self._lock:
            return await in_thread(store)

    async def remove(self, variable: str) -> bool:
        """Remove the key in place of a variable, and return whether there was one.

        Raises:
            StoreError: the file cannot be written.
        """

        def change(stored: JsonObject) -> bool:
            entries = _entries(stored)
            found = entries.pop(variable, None)
            stored["keys"] = entries
            return found is not None

        def remove() -> bool:
            found = self._file.change(change)
            if found:
                self._keyring.remove(self._name_in_keyring(variable))
            return found

        async with self._lock:
            self._values.pop(variable, None)
            return await in_thread(remove) if self.has(variable) else False

    def _read(self) -> None:
        try:
            found = os.stat(self._path)
        except OSError:
            self._version, self._entries = None, {}
            return
        version = (found.st_mtime_ns, found.st_size, found.st_ino)
        if version != self._version:
            self._version, self._entries = version, _entries(self._file.read())

    def _is_loaded(self, name: str, entry: JsonObject) -> bool:
        known = self._values.get(name)
        return known is not None and known[0] == entry

    def _key_of(self, name: str, entry: JsonObject) -> str | None:
        key = entry.get("key") if "key" in entry else self._keyring.get(self._name_in_keyring(name))
        if not isinstance(key, str):
            return None
        self._mask_key(key)
        return key

    def _mask_key(self, key: str) -> None:
        if len(key) >= MASKED_FROM:
            self._mask([key])

    def _name_in_keyring(self, variable: str) -> str:
        # Other home folders have keys of their own.
        return f"{variable} of {self._home}"


def key_problem(key: str) -> str | None:
    """Return why a text cannot be a key, or ``None``. The text is not shown."""
    if not key:
        return "the key is empty"
    if len(key) > LONGEST:
        return f"the key has more than {LONGEST} characters"
    if not (key.isascii() and key.isprintable()) or " " in key or key[0] in "\"'":
        return "a key has no spaces, quotes or special characters: copy it alone"
    return None


def _entries(stored: JsonObject) -> dict[str, JsonObject]:
    keys: Any = stored.get("keys")
    found = cast("dict[str, Any]", keys) if isinstance(keys, dict) else {}
    return {name: cast("JsonObject", entry) for name, entry in found.items() if isinstance(entry, dict)}
