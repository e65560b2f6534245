"""The built-in tools of one session, and the commands they have running."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jumpseat.agent.session.session import Session
from jumpseat.tools.tool import BuiltinTool


class BuiltinTools:
    """Those of ``tools`` that the session has what they need for."""

    def __init__(self, session: Session, tools: Iterable[BuiltinTool[Any]]) -> None:
        self._session = session
        self._tools = {tool.name: tool for tool in tools}

    def tools(self) -> Mapping[str, BuiltinTool[Any]]:
        return {name: tool for name, tool in self._tools.items() if self._has(tool.needs)}

    async def ready(self) -> None:
        """They always are."""

    async def close(self, grace_s: float) -> None:
        """Nothing of their own: what commands they have running belongs to the session's shells."""

    def _has(self, need: str | None) -> bool:
        return need is None or self._session.clients.user_input_client() is not None


class FixedTools:
    """Tools that one session always has."""

    def __init__(self, *tools: BuiltinTool[Any]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def tools(self) -> Mapping[str, BuiltinTool[Any]]:
        return self._tools

    async def ready(self) -> None:
        """They always are."""

    async def close(self, grace_s: float) -> None:
        """Nothing is running."""
