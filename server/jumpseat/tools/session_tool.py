"""The source of one built-in tool that belongs to one session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jumpseat.tools.tool import BuiltinTool


class SessionTool:
    """Offers ``tool`` while ``is_offered`` returns true."""

    def __init__(self, tool: BuiltinTool[Any], is_offered: Callable[[], bool] = lambda: True) -> None:
        self._tools = {tool.name: tool}
        self._is_offered = is_offered

    def tools(self) -> Mapping[str, BuiltinTool[Any]]:
        return self._tools if self._is_offered() else {}

    async def ready(self) -> None:
        """Return at once."""

    async def close(self, grace_s: float) -> None:
        """Do nothing: the tool keeps nothing running between calls."""
