"""The environment as adapters see it: keys that the user has entered stand in for variables that are not set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol


class EnteredKeys(Protocol):
    """The keys that the user has entered, by the names of environment variables."""

    def places(self) -> Mapping[str, str]:
        """Return the names of all keys, and where each is stored."""
        ...

    def has(self, variable: str) -> bool:
        """Return whether there is a key in place of a variable, without reading it."""
        ...

    def value(self, variable: str) -> str | None:
        """Return a key that has been read by :meth:`load`."""
        ...

    async def load(self) -> None:
        """Read all keys that have not been read yet."""
        ...


class KeyedEnvironment(Mapping[str, str]):
    """The variables of ``environ``, and entered keys in place of those that are missing.

    Whether a key is there is known at once; its value only after :meth:`load`.
    """

    def __init__(self, environ: Mapping[str, str], keys: EnteredKeys | None) -> None:
        self._environ = environ
        self._keys = keys

    async def load(self) -> None:
        """Read the keys, before their values are used.

        Raises:
            StoreError: the keyring does not answer.
        """
        if self._keys is not None:
            await self._keys.load()

    def entered(self) -> frozenset[str]:
        """Return the names of the variables that entered keys stand in for."""
        if self._keys is None:
            return frozenset()
        return frozenset(name for name in self._keys.places() if name not in self._environ)

    def __getitem__(self, name: str) -> str:
        value = self._environ.get(name)
        if value is None and self._keys is not None:
            value = self._keys.value(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        if name in self._environ:
            return True
        return self._keys is not None and isinstance(name, str) and self._keys.has(name)

    def __iter__(self) -> Iterator[str]:
        yield from self._environ
        yield from sorted(self.entered())

    def __len__(self) -> int:
        return len(self._environ) + len(self.entered())
