"""The source of the built-in tools that are the same in all sessions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jumpseat.agent.session.session import Session
from jumpseat.tools.tool import BuiltinTool


class BuiltinTools:
    """Offers the ``tools`` whose needs the clients of ``session`` meet."""

    def __init__(self, session: Session, tools: Iterable[BuiltinTool[Any]]) -> None:
        self._session = session
        self._tools = {tool.name: tool for tool in tools}
        self._without_questions = {name: tool for name, tool in self._tools.items() if tool.needs != "user_input"}

    def tools(self) -> Mapping[str, BuiltinTool[Any]]:
        can_ask = self._session.clients.user_input_client() is not None
        return self._tools if can_ask else self._without_questions

    async def ready(self) -> None:
        """Return at once."""

    async def close(self, grace_s: float) -> None:
        """Do nothing: running commands belong to the session's shells."""
