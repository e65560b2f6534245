"""Every request that a client may send, with the types of its params and of its result.

Each module of a namespace ends with its part of the table, ``METHODS``. Clients, the schema and the coverage page
use the table. The server does not: it takes the types from its handlers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from typing import Final

from jumpseat_protocol.wire import Method

PROTOCOL_VERSION: Final = 3

MODULES: Final = (
    "server",
    "models",
    "tools",
    "user_settings",
    "accounts",
    "sessions",
    "state",
    "maintenance",
    "metadata",
    "workspaces",
    "autopilot",
    "plan",
    "history",
    "event_log",
    "queue",
    "shell",
    "schedule",
    "commands",
    "ui",
    "canvases",
    "permission_methods",
    "approvals",
    "changes",
    "instructions",
    "skills",
    "plugins",
    "hooks",
    "agents",
    "tasks",
    "mcp",
    "provider",
    "llm_inference",
    "session_fs",
    "adapters",
    "complete",
    "completions",
    "declared_tools",
    "web",
)
"""The modules of this package that have a table ``METHODS``."""


class _Methods(Mapping[str, Method]):
    """The tables of all modules in one. The modules are imported by the first access."""

    @cached_property
    def _all(self) -> Mapping[str, Method]:
        modules = (import_module(f"jumpseat_protocol.{name}") for name in MODULES)
        return {name: method for module in modules for name, method in module.METHODS.items()}

    def __getitem__(self, name: str) -> Method:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


CLIENT_REQUESTS: Final[Mapping[str, Method]] = _Methods()
