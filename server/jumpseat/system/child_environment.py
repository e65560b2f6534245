"""Decide which environment variables child processes get: commands, searches, git, and commands that print keys.

They get all but the credentials of the server: the connection token, GitHub tokens, and the keys of providers and
services. The configuration can name credentials to pass nevertheless (``[environment] pass``), and the ``env`` of
an MCP server or of a declared tool names those for one process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

OWN: Final = frozenset(
    {
        "COPILOT_CONNECTION_TOKEN",
        "COPILOT_SDK_AUTH_TOKEN",
        "GITHUB_COPILOT_API_TOKEN",
        "COPILOT_HMAC_KEY",
        "CAPI_HMAC_KEY",
        "JUMPSEAT_MCP_TOKEN",
        "JUMPSEAT_METRICS_TOKEN",
    }
)
"""Variables with credentials of the server itself."""

_LONG: Final = 16
"""Length in characters from which another variable with the same value is taken for the same key."""

_WORD: Final = re.compile(r"\w+")


class ChildEnvironment:
    """The environment of child processes."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        passed: Collection[str] = (),
        values: Iterable[str | None] = (),
    ) -> None:
        """
        Args:
            environ: all variables of this process.
            passed: the names of the credentials that child processes get nevertheless.
            values: keys and tokens; variables with such a value are credentials whatever their name is.
        """
        self._environ = dict(environ)
        self._passed = frozenset(passed)
        self._values = frozenset(filter(None, values))
        self._sources: list[Callable[[], Iterable[str]]] = []

    def withhold(self, names: Callable[[], Iterable[str]]) -> None:
        """Treat the variables that ``names`` returns as credentials.

        ``names`` is called for every child process, because clients can register adapters.
        """
        self._sources.append(names)

    def credentials(self) -> frozenset[str]:
        """Return the names of the variables that hold credentials."""
        names = OWN.union(*(source() for source in self._sources))
        # The same key is often kept under a second name, for another program. A short value may be a dummy.
        known = self._values.union(self._environ.get(name, "") for name in names)
        values = {value for value in known if len(value) >= _LONG}
        return names.union(name for name, value in self._environ.items() if value in values)

    def variables(self) -> dict[str, str]:
        """Return the environment of a child process."""
        return self._without(self.credentials() - self._passed)

    def variables_for(self, command: str) -> dict[str, str]:
        """Return the environment of a command of the configuration, with the credentials that its text names."""
        return self._without(self.credentials() - self._passed - set(_WORD.findall(command)))

    def _without(self, names: Collection[str]) -> dict[str, str]:
        return {name: value for name, value in self._environ.items() if name not in names}
