"""Which tools a session offers: ``availableTools`` and ``excludedTools`` with their pattern forms.

A pattern is a bare ``name`` (of any source), ``source:name`` or ``source:*``, where the source is ``builtin``,
``custom`` or ``mcp``. Excluded wins over available. The list of a custom agent narrows that further; it may also
have ``*``, and ``server/tool`` or ``server/*`` for tools of MCP servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

from jumpseat.agent.model import ToolOrigin
from jumpseat.agent.settings import SessionSettings

SourceName: TypeAlias = Literal["builtin", "custom", "mcp"]


def offered(name: str, source: SourceName, available: Iterable[str] | None, excluded: Iterable[str]) -> bool:
    """Whether a tool is offered; ``available`` of ``None`` means all."""
    forms = {name, f"{source}:{name}", f"{source}:*"}
    if not forms.isdisjoint(excluded):
        return False
    return available is None or not forms.isdisjoint(available)


class Filter:
    """What a session with these settings offers of its tools. ``members`` gives the tools of a group."""

    def __init__(
        self, settings: SessionSettings, members: Callable[[str], Iterable[str]] = lambda _name: ()
    ) -> None:
        def expanded(names: Iterable[str]) -> list[str]:
            return [one for name in names for one in (name, *members(name.removeprefix("custom:")))]

        agent = settings.custom_agent
        of_agent = None if agent is None else agent.tools
        excluded = settings.excluded_tools
        if of_agent is None:
            excluded = [*excluded, *settings.default_excluded_tools]
        self._available = None if settings.available_tools is None else expanded(settings.available_tools)
        self._excluded = expanded(excluded)
        self._of_agent = None if of_agent is None or "*" in of_agent else expanded(of_agent)

    def offers(self, name: str, source: SourceName, origin: ToolOrigin | None = None) -> bool:
        """Whether a tool is offered; ``origin`` says of which MCP server it is."""
        if not offered(name, source, self._available, self._excluded):
            return False
        if self._of_agent is None or offered(name, source, self._of_agent, ()):
            return True
        return origin is not None and not {f"{origin.server}/{origin.tool}", f"{origin.server}/*"}.isdisjoint(
            self._of_agent
        )
