"""The source of the built-in tools that are the same in all sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jumpseat.agent.session.session import Session
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.tool import BuiltinTool


class BuiltinTools:
    """Offers those built-in tools of the server whose needs the clients of ``session`` meet."""

    __slots__ = ("_environment", "_session")

    def __init__(self, session: Session, environment: Environment) -> None:
        self._session = session
        self._environment = environment

    def tools(self) -> Mapping[str, BuiltinTool[Any]]:
        disabled = self._session.settings.options.ask_user_disabled
        can_ask = not disabled and self._session.clients.user_input_client() is not None
        return self._environment.builtin_tools(can_ask=can_ask)

    async def ready(self) -> None:
        """Return at once."""

    async def close(self, grace_s: float) -> None:
        """Do nothing: running commands belong to the session's shells."""
