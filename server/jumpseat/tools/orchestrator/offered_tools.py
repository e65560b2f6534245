"""The tools of one session: which there are, which of them the model sees, and the texts about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from jumpseat.agent.client import ProvidedTool
from jumpseat.agent.conversation.mentions import expand_mentions, mentions
from jumpseat.agent.interfaces import ToolTexts
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.tools.client_tools import ClientTools
from jumpseat.tools.filters import Filter
from jumpseat.tools.orchestrator.builtin_tools import BuiltinTools
from jumpseat.tools.orchestrator.deferral import Deferral, ToolSearch, guidance
from jumpseat.tools.orchestrator.environment import Environment
from jumpseat.tools.tool import TOOL_SEARCH, Tool, ToolSource, is_grouping, is_instructing


class OfferedTools:
    """The tools of all sources of one session, filtered by its settings."""

    def __init__(self, session: Session, environment: Environment) -> None:
        self._session = session
        self._environment = environment
        # Of two tools with the same name, the one of the later source is offered.
        self.sources: list[ToolSource] = [
            BuiltinTools(session, environment),
            *(maker.make(session) for maker in environment.sources),
            ClientTools(session, environment.client_tool_s),
        ]
        self._instructing = [source for source in self.sources if is_instructing(source)]
        self._grouping = [source for source in self.sources if is_grouping(source)]
        self._deferral = Deferral(session)
        # The mentions of the prompt that is about to be sent.
        self._mentioned_now: list[str] = []

    def offered(self, settings: SessionSettings | None = None) -> dict[str, Tool]:
        """Return the tools that may be called with these settings, by name; by default those of the session."""
        tool_filter = self._filter(settings or self._session.settings)
        tools = self._all(tool_filter.names)
        return {name: tool for name, tool in tools.items() if _offers(tool_filter, name, tool)}

    def find(self, name: str) -> Tool | None:
        """Return the tool that a call names: one that is offered, or the search for deferred ones."""
        found = (source.tools().get(name) for source in reversed(self.sources))
        tool = next((tool for tool in found if tool is not None), None)
        if tool is not None and _offers(self._filter(self._session.settings), name, tool):
            return tool
        if name == TOOL_SEARCH and (hidden := self._hidden(self.offered())):
            return ToolSearch(self._session, hidden)
        return None

    def _all(self, wanted: Collection[str] | None = None) -> dict[str, Tool]:
        """Return all tools; of sources whose names are known, possibly only those with ``wanted`` ones."""
        tools: dict[str, Tool] = {}
        for source in self._asked(wanted):
            found = source.tools()
            # Removed first, so that the tool takes the place of the later source.
            for name in tools.keys() & found.keys():
                del tools[name]
            tools.update(found)
        return tools

    def _asked(self, wanted: Collection[str] | None) -> list[ToolSource]:
        if wanted is None:
            return self.sources
        first, *others, last = self.sources
        makers = zip(others, self._environment.sources, strict=True)
        fit = [source for source, maker in makers if maker.names is None or not maker.names.isdisjoint(wanted)]
        return [first, *fit, last]

    def _filter(self, settings: SessionSettings) -> Filter:
        # Most sessions have no groups; those with several look at all tools once.
        all_tools = cache(self._all)
        return Filter(settings, lambda name: self._members(name, all_tools()) if self._is_group(name) else ())

    # --- what the model sees ------------------------------------------------------------------------------------

    def specs(self, needed: str | None = None) -> list[ToolSpec]:
        """Return the specs of the tools in a request; the tool ``needed`` is never deferred."""
        tools = self.offered()
        hidden = self._hidden(tools, needed)
        if hidden and TOOL_SEARCH not in tools:
            tools[TOOL_SEARCH] = ToolSearch(self._session, hidden)
        return [tool.spec for name, tool in tools.items() if name not in hidden]

    def deferred_specs(self) -> list[ToolSpec]:
        """Return the specs of the tools that the model must search for."""
        return [tool.spec for tool in self._hidden(self.offered()).values()]

    def in_system_message(self) -> ToolTexts:
        """Return the tools' part of the system message."""
        tools = self.offered()
        hidden = self._hidden(tools)
        shown = tools.keys() - hidden.keys()
        texts = [text for source in self._instructing for text in source.instructions(shown)]
        if hidden:
            texts.append(guidance(hidden))
        omitted = frozenset(section for source in self._grouping for section in source.omitted_sections(shown))
        return ToolTexts("\n\n".join(texts), omitted)

    def _hidden(self, tools: Mapping[str, Tool], needed: str | None = None) -> dict[str, Tool]:
        """Return the deferred tools: those that are neither in use nor mentioned by the user."""
        named = {*self._session.history.mentions, *self._mentioned_now}
        named.update(*(self._members(name, tools) for name in list(named)))
        return self._deferral.select(tools, named if needed is None else {*named, needed})

    # --- prompts that mention tools -----------------------------------------------------------------------------

    async def discover(self, prompt: str) -> None:
        """Look for new tools, and for those that ``prompt``, which is about to be sent, mentions."""
        self._mentioned_now = mentions(prompt)
        for source in self._grouping:
            await source.discover(prompt)

    def expand_mentions(self, prompt: str) -> str:
        """Replace the mentions of tools and groups (``@{name}``) in ``prompt`` by words."""
        return expand_mentions(prompt, self._words)

    def _words(self, name: str) -> str | None:
        tools = self.offered()
        members = [member for member in self._members(name, tools) if member in tools]
        if not members:
            return f"the `{name}` tool" if name in tools else None
        words = (source.mention_text(name, members) for source in self._grouping)
        listed = ", ".join(f"`{member}`" for member in members)
        return next((word for word in words if word is not None), f"the tools {listed}")

    def _is_group(self, name: str) -> bool:
        return any(source.members(name) is not None for source in self._grouping)

    def _members(self, name: str, tools: Mapping[str, Tool]) -> list[str]:
        """Return the tools of a group, or those in ``tools`` of the MCP server in ``mcp:server``; else none."""
        found = (source.members(name) for source in self._grouping)
        members = next((names for names in found if names is not None), (name,))
        expanded: list[str] = []
        for member in members:
            if member.startswith("mcp:"):
                expanded += [name for name, tool in tools.items() if _is_of_server(tool, member[4:])]
            elif member != name:
                expanded.append(member)
        return expanded

    # --- tools of clients ---------------------------------------------------------------------------------------

    def check(self, tools: Mapping[str, ProvidedTool]) -> None:
        """Refuse client tools that replace a built-in one without saying so.

        Raises:
            InvalidRequestError: the name of a tool is that of a built-in tool.
        """
        for name, tool in tools.items():
            if not tool.overrides_built_in_tool and self._is_builtin(name):
                raise InvalidRequestError(
                    f"tool {name!r} has the name of a built-in tool; set overridesBuiltInTool to replace it"
                )

    def _is_builtin(self, name: str) -> bool:
        """Return whether the server has a built-in tool of this name for all sessions, or one for this session."""
        environment = self._environment
        if name in environment.builtin_tools():
            return True
        found = (source.tools().get(name) for source in self.sources) if name in environment.reserved else ()
        return any(tool is not None and tool.source == "builtin" for tool in found)


def _offers(tool_filter: Filter, name: str, tool: Tool) -> bool:
    return tool_filter.offers(name, tool.source, tool.spec.origin if tool.source == "mcp" else None)


def _is_of_server(tool: Tool, server: str) -> bool:
    origin = tool.spec.origin if tool.source == "mcp" else None
    return origin is not None and origin.server == server
