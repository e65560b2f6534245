"""Every request that a client may send, with the types of its params and of its result.

Each module of a namespace ends with its part of the table, ``METHODS``. Clients, the schema and the coverage page
use the whole table. The server imports the part with a method at the method's first call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from jumpseat_protocol.wire import Method

PROTOCOL_VERSION: Final = 3

ALIKE: Final = 0.8
"""Similarity from which an unknown name counts as misspelled."""

LONGEST: Final = 100
"""Characters of an unknown name that are looked at."""

FOLDERS: Final = ("session", "jumpseat")
"""The namespaces that consist of namespaces."""

MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "server": ("", "auth", "runtime", "secrets", "status"),
    "models": ("models", "session.model"),
    "tools": ("session.tools", "tools"),
    "user_settings": ("user",),
    "accounts": ("account", "session.auth", "session.gitHubAuth"),
    "sessions": ("session", "session.options"),
    "state": ("session", "session.mode", "session.name", "session.remote", "session.settings", "session.usage"),
    "maintenance": ("sessions",),
    "metadata": ("session.metadata",),
    "workspaces": ("session.workspace", "session.workspaces"),
    "autopilot": ("session.autopilotObjective", "session.tools", "session.workspaces"),
    "plan": ("session.plan",),
    "history": ("session.history",),
    "event_log": ("session.eventLog",),
    "queue": ("session", "session.queue"),
    "shell": ("session.shell",),
    "schedule": ("session.schedule",),
    "commands": ("session.commands",),
    "ui": ("session.ui",),
    "canvases": ("session.canvas",),
    "permission_methods": ("session.managedSettings", "session.permissions"),
    "approvals": ("jumpseat.permissions",),
    "changes": ("jumpseat.changes",),
    "instructions": ("instructions", "session.instructions"),
    "skills": ("session.skills", "skills"),
    "plugins": ("jumpseat.plugins", "plugins", "session.plugins"),
    "hooks": ("hooks",),
    "agents": ("agents", "session.agent"),
    "tasks": ("session", "session.fleet", "session.tasks"),
    "lsp": ("session.lsp",),
    "mcp": ("mcp", "session.mcp", "session.ui"),
    "provider": ("jumpseat.session", "session.provider"),
    "llm_inference": ("llmInference",),
    "session_fs": ("sessionFs",),
    "adapters": ("jumpseat.adapters",),
    "complete": ("jumpseat",),
    "completions": ("session.completions",),
    "declared_tools": ("jumpseat.tools",),
    "runs": ("jumpseat.runs",),
    "setup": ("jumpseat.setup",),
    "web": ("jumpseat.web",),
}
"""The modules of this package that have a table ``METHODS``, with the namespaces of their methods."""


def namespace_of(method: str) -> str:
    """Return the first part of a method's name, or the first two in a folder: ``session.mcp`` for all inside."""
    parts = method.split(".")[:-1]
    return ".".join(parts[: 2 if parts[:1] and parts[0] in FOLDERS else 1])


def _last(method: str) -> str:
    return method.rpartition(".")[2]


class _Methods(Mapping[str, Method]):
    """The tables of all modules in one. A module is imported when one of its namespaces is looked up."""

    def __init__(self) -> None:
        self._tables: dict[str, Mapping[str, Method]] = {}

    def _table(self, module: str) -> Mapping[str, Method]:
        if module not in self._tables:
            self._tables[module] = import_module(f"jumpseat_protocol.{module}").METHODS
        return self._tables[module]

    def __getitem__(self, name: str) -> Method:
        namespace = namespace_of(name)
        for module, namespaces in MODULES.items():
            if namespace in namespaces and (method := self._table(module).get(name)) is not None:
                return method
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (name for module in MODULES for name in self._table(module))

    def nearest(self, name: str) -> str | None:
        """Return the request that a misspelled name resembles, or ``None``; imports only its namespace."""
        from difflib import get_close_matches

        from jumpseat_protocol.members import nearest

        name = name[:LONGEST]
        space, last = namespace_of(name), _last(name)
        spaces = {space for spaces in MODULES.values() for space in spaces}
        near = {space} if space in spaces else {*get_close_matches(space, spaces, 3, ALIKE)}
        modules = [module for module, spaces in MODULES.items() if not near.isdisjoint(spaces)]
        known = [one for module in modules for one in self._table(module) if namespace_of(one) in near]
        meant = nearest(last, map(_last, known), ALIKE)
        return nearest(name, [one for one in known if _last(one) == meant], ALIKE)

    def __len__(self) -> int:
        return sum(1 for _ in self)


CLIENT_REQUESTS: Final = _Methods()
