"""The tools of one session: those that the model sees, and those that are deferred until it searches for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.client import ProvidedTool
from jumpseat.agent.conversation.attachments import expand_mentions, mentions
from jumpseat.agent.interfaces import ToolTexts
from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat.tools.client_tools import ClientTools
from jumpseat.tools.filters import (
    EDITS,
    PATCH,
    SETS,
    Configured,
    Filter,
    SourceName,
    ToolSet,
    available_of,
    is_chosen,
    is_minimal,
    is_named,
    left_out,
    may_patch,
    meant,
    named_beside_sets,
    set_of,
    shortened,
)
from jumpseat.tools.orchestrator.environment import BuiltinTools, Environment
from jumpseat.tools.orchestrator.followers import Followers
from jumpseat.tools.tool import (
    TOOL_SEARCH,
    Ordering,
    Prepared,
    Tool,
    ToolContext,
    ToolOutcome,
    ToolSource,
    failure,
    is_grouping,
    is_instructing,
    is_starting,
)
from jumpseat_protocol import events

MOST_UNKNOWN: Final = 50
"""The unknown names that a client is told about."""
FEW: Final = 4
"""Up to this many names, looking up each one takes less time than listing all tools."""

MOST_FOUND: Final = 10

NAMES_CHARACTERS: Final = 4000
"""Characters of the system message that the names of deferred tools may take."""

_WORD: Final = re.compile(r"[a-z0-9]+|[^\W_0-9a-z]+")


class Deferral:
    """Decides which tools of one session are deferred."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def select(self, tools: Mapping[str, Tool], needed: Collection[str] = ()) -> dict[str, Tool]:
        """Return the tools that are deferred now; tools named in ``needed`` never are."""
        settings = self._session.settings
        if not settings.options.tool_search.enabled:
            return {}
        foreign = {name: tool for name, tool in tools.items() if tool.source != "builtin"}
        # Most sessions have few tools, and need no closer look.
        if not foreign or not self._too_many(tools, foreign):
            return {}
        deferrable = {name: tool for name, tool in foreign.items() if _is_deferrable(tool)}
        if not deferrable or not self._too_many(tools, deferrable):
            return {}
        if TOOL_SEARCH not in tools and not Filter(settings).offers(TOOL_SEARCH, "builtin"):
            return {}
        shown = {*self._session.history.tools_in_use, TOOL_SEARCH, *needed}
        return {name: tool for name, tool in deferrable.items() if name not in shown}

    def _too_many(self, tools: Mapping[str, Tool], deferrable: Mapping[str, Tool]) -> bool:
        """Return whether there are too many tools, or the specs of those that may be deferred are too long.

        Tools in use count, too: finding one must not bring all the others back.
        """
        config = self._session.settings.options.tool_search
        if len(tools) > config.defer_threshold:
            return True
        total = 0
        for tool in deferrable.values():
            total += _length(tool.spec)
            if total > config.defer_characters:
                return True
        return False


def _length(spec: ToolSpec) -> int:
    """Return the length of a spec in characters."""
    schema = spec.schema.json
    return len(spec.name) + len(spec.description) + len(schema if schema.isascii() else schema.decode())


def _is_deferrable(tool: Tool) -> bool:
    """Return whether a tool may be deferred: all may that do not declare otherwise, unless they are built in."""
    return getattr(tool, "defer", None) != "never"


def guidance(names: Collection[str]) -> str:
    """Return the paragraph of the system message about the deferred tools ``names``."""
    listed, rest = "", 0
    for name in sorted(names):
        if len(listed) + len(name) > NAMES_CHARACTERS:
            rest += 1
        else:
            listed += f", {name}" if listed else name
    more = f" and {rest} more" if rest else ""
    return f"Some tools must be found with {TOOL_SEARCH} before they can be called: {listed}{more}."


def activate(session: Session, names: Iterable[str], strategy: str) -> list[str]:
    """Put tools in use, so that requests contain them; return the names that are new."""
    new = [name for name in dict.fromkeys(names) if name not in session.history.tools_in_use]
    if new:
        session.emit(events.ToolSearchActivated(strategy=strategy, tool_names=new))
    return new


_SEARCH: Final = ToolSpec(
    TOOL_SEARCH,
    "Find tools by what they do, or by name. What it finds can be called from then on.",
    ToolSchema.of(
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words for the task, or names of tools"},
                "limit": {
                    "type": "integer",
                    "description": f"Most results; default {MOST_FOUND}",
                },
            },
            "required": ["query"],
        }
    ),
)


class ToolSearch(Struct, frozen=True):
    """Finds tools by words or by name; ``hidden`` are the deferred tools."""

    session: Session
    hidden: Mapping[str, Tool]

    @property
    def name(self) -> str:
        return TOOL_SEARCH

    @property
    def source(self) -> SourceName:
        return "builtin"

    @property
    def ordering(self) -> Ordering:
        return "reading"

    @property
    def spec(self) -> ToolSpec:
        return _SEARCH

    @property
    def changes_nothing(self) -> bool:
        return True

    def summary(self, arguments: JsonObject) -> str | None:
        query = arguments.get("query")
        return f"Find tools for {query!r}" if isinstance(query, str) else None

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        arguments = call.arguments or {}
        query, limit = arguments.get("query"), arguments.get("limit", MOST_FOUND)
        if not isinstance(query, str) or not query.strip():
            return failure(f"Invalid arguments for `{TOOL_SEARCH}`: query: expected a string that is not empty")
        if not isinstance(limit, int) or limit < 1:
            return failure(f"Invalid arguments for `{TOOL_SEARCH}`: limit: expected an integer of at least 1")

        async def run() -> ToolOutcome:
            found = search(query, self.hidden)[:limit]
            if not found:
                return ToolOutcome("No tool was found. Try other words.")
            activate(self.session, (tool.name for tool in found), "keyword")
            lines = (f"- {tool.name}: {tool.spec.description}" for tool in found)
            return ToolOutcome("These tools can be called now:\n" + "\n".join(lines))

        # No permission: the search reads nothing but the list of tools.
        return Prepared(None, run)


def search(query: str, tools: Mapping[str, Tool]) -> list[Tool]:
    """Return the tools that ``query`` names or describes, best match first."""
    named = [tools[name] for name in dict.fromkeys(re.split(r"[\s,]+", query)) if name in tools]
    if named:
        return named
    words = set(_words(query))
    scored: list[tuple[int, str]] = []
    for name, tool in tools.items():
        spec = tool.spec
        parameters: Any = spec.parameters.get("properties", {})
        in_name, in_rest = set(_words(name)), {*_words(spec.description), *_words(" ".join(parameters))}
        score = sum(3 * _matches(word, in_name) + _matches(word, in_rest) for word in words)
        if score:
            scored.append((-score, name))
    return [tools[name] for _, name in sorted(scored)]


def _matches(word: str, words: Collection[str]) -> bool:
    # Different forms of a word match: file, files; delete, deleting.
    return word in words or (
        len(word) >= 4 and any(candidate[:4] == word[:4] and _alike(candidate, word) for candidate in words)
    )


def _alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long.startswith(short.rstrip("es")) and len(long) - len(short) <= 3


def _words(text: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return _WORD.findall(apart.lower())


def _is_small(name: str, tool: Tool, named: Collection[str]) -> bool:
    """Return whether the minimal set has a tool: those of clients and of servers, and named ones, are chosen."""
    return tool.source != "builtin" or is_minimal(name) or is_named(name, "builtin", named)


class OfferedTools:
    """The tools of all sources of one session, filtered by its settings."""

    def __init__(self, session: Session, environment: Environment, has_commands: Callable[[], bool]) -> None:
        """``has_commands`` returns whether a command is in the background."""
        self._session = session
        self._environment = environment
        self._followers = Followers(session, has_commands)
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
        settings = settings or self._session.settings
        tools = self._allowed(settings)
        builtin = [name for name in (*EDITS, PATCH) if name in tools and tools[name].source == "builtin"]
        hidden = left_out(builtin, self._session.profile(settings).edit_tools) if PATCH in builtin else ()
        return {name: tool for name, tool in tools.items() if name not in hidden} if hidden else tools

    def _allowed(self, settings: SessionSettings) -> dict[str, Tool]:
        """Return the tools that the filters allow; a model is offered some of those that change files."""
        tool_filter = self._filter(settings)
        tools = self._all(tool_filter.names)
        allowed = {name: tool for name, tool in tools.items() if _offers(tool_filter, name, tool)}
        if PATCH in allowed and not may_patch(tool_filter, self._source_of):
            del allowed[PATCH]
        return allowed

    async def ready(self) -> None:
        """Wait, for a limited time, for the tools that the filters allow and that are being started."""
        for source in self._asked(self._filter(self._session.settings).names):
            await source.ready()

    def _lookup(self, name: str) -> Tool | None:
        found = (source.tools().get(name) for source in reversed(self.sources))
        return next((tool for tool in found if tool is not None), None)

    def _source_of(self, name: str) -> SourceName | None:
        tool = self._lookup(name)
        return None if tool is None else tool.source

    def find(self, name: str) -> Tool | None:
        """Return the tool that a call names: one that is allowed, or the search for deferred ones."""
        tool = self._lookup(name)
        if tool is not None:
            tool_filter = self._filter(self._session.settings)
            if _offers(tool_filter, name, tool) and (name != PATCH or may_patch(tool_filter, self._source_of)):
                return tool
        if name == TOOL_SEARCH and (hidden := self._hidden(self.offered())):
            return ToolSearch(self._session, hidden)
        return None

    def find_all(self, names: Collection[str]) -> dict[str, Tool]:
        """Return the tools that calls name, by name: for many names in less time than :meth:`find`."""
        if len(names) > FEW:
            names = {*self._allowed(self._session.settings), TOOL_SEARCH}.intersection(names)
        return {name: tool for name in names if (tool := self.find(name)) is not None}

    async def absence(self, name: str) -> str:
        """Return the reason why there is no tool of this name, for the model."""
        if (reason := await self._absence_of(name)) is not None:
            return reason
        names = ", ".join(self.offered())
        return f"Tool '{name}' does not exist." + (
            f" Available tools that can be called are {names}." if names else ""
        )

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
        environment = self._environment
        names = [environment.reserved, *(maker.names for maker in environment.sources), None]
        pairs = zip(self.sources, names, strict=True)
        return [source for source, known in pairs if known is None or not known.isdisjoint(wanted)]

    def _filter(self, settings: SessionSettings) -> Filter:
        # Most sessions have no groups; those with several look at all tools once.
        all_tools = cache(self._all)
        return Filter(
            settings,
            lambda name: self._members(name, all_tools()) if self._is_group(name) else (),
            self._environment.tool_set,
        )

    # --- what the model sees ------------------------------------------------------------------------------------

    def set_for(self, *, small: bool) -> ToolSet:
        """Return the set of tools for a model, whose window may be ``small``."""
        return "minimal" if small and not self.is_chosen else set_of(*self._choice)

    @property
    def is_chosen(self) -> bool:
        """Return whether the client or the user has chosen the tools."""
        return is_chosen(*self._choice)

    @property
    def _choice(self) -> tuple[SessionSettings, Configured]:
        return self._session.settings, self._environment.tool_set

    def _named_beside_sets(self) -> Collection[str]:
        return named_beside_sets(*self._choice)

    async def unknown_names(self, offered: Collection[str]) -> dict[str, str | None]:
        """Return the names among the available and the excluded tools that no tool has, with the one that is meant.

        Tools that may still be missing, and patterns, are left out. Tools have the names ``offered`` for certain.
        """
        options = self._session.settings.options
        available = available_of(*self._choice) or ()
        wanted = dict.fromkeys((*available, *options.excluded_tools)).keys() - offered
        # Each request asks.
        if not wanted:
            return {}
        known = {*self._environment.reserved, TOOL_SEARCH, *SETS}
        unknown = sorted(name for name in wanted if name not in known and not set(name) & set("*:/"))[:MOST_UNKNOWN]
        if unknown:
            known |= self._all().keys()
        return {
            name: meant(name, known)
            for name in unknown
            if name not in known and not self._is_group(name) and await self._absence_of(name) is None
        }

    async def _absence_of(self, name: str) -> str | None:
        for source in self.sources:
            if is_starting(source) and (reason := await source.absence(name)) is not None:
                return reason
        return None

    def specs(self, needed: str | None = None, *, small: bool = False) -> list[ToolSpec]:
        """Return the specs of the tools in a request; the tool ``needed`` is never deferred.

        They are fewer and shorter for a model with a ``small`` window.
        """
        tools = self.offered()
        if self.set_for(small=small) == "minimal":
            tools = {
                name: tool
                for name, tool in tools.items()
                if name == needed or _is_small(name, tool, self._named_beside_sets())
            }
            return [shortened(tool.spec) if tool.source == "builtin" else tool.spec for tool in tools.values()]
        hidden = self._hidden(tools, needed)
        if hidden and TOOL_SEARCH not in tools:
            tools[TOOL_SEARCH] = ToolSearch(self._session, hidden)
        idle = self._idle(tools) - {needed}
        return [tool.spec for name, tool in tools.items() if name not in hidden and name not in idle]

    def deferred_specs(self) -> list[ToolSpec]:
        """Return the specs of the tools that requests do not have yet."""
        tools = self.offered()
        return [tools[name].spec for name in (*self._hidden(tools), *self._idle(tools))]

    def unlisted_specs(self) -> list[ToolSpec]:
        """Return the specs of all tools that can be called although a request has none of them."""
        offered = self.offered()
        others = [tool.spec for name, tool in self._allowed(self._session.settings).items() if name not in offered]
        return [*self.deferred_specs(), *others]

    def in_system_message(self) -> ToolTexts:
        """Return the tools' part of the system message."""
        tools = self.offered()
        if self.set_for(small=False) == "minimal":
            named = self._named_beside_sets()
            tools = {name: tool for name, tool in tools.items() if _is_small(name, tool, named)}
        hidden = self._hidden(tools)
        shown = tools.keys() - hidden.keys()
        texts = [text for source in self._instructing for text in source.instructions(shown)]
        if hidden:
            texts.append(guidance(hidden))
        omitted = frozenset(section for source in self._grouping for section in source.omitted_sections(shown))
        return ToolTexts("\n\n".join(texts), omitted)

    def _idle(self, tools: Mapping[str, Tool]) -> set[str]:
        """Return the tools of the default set that have nothing to work on yet, and are not mentioned."""
        if self.set_for(small=False) != "default":
            return set()
        return self._followers.idle(tools) - self._mentioned(tools)

    def _mentioned(self, tools: Mapping[str, Tool]) -> set[str]:
        named = {*self._session.history.mentions, *self._mentioned_now}
        named.update(*(self._members(name, tools) for name in list(named)))
        return named

    def _hidden(self, tools: Mapping[str, Tool], needed: str | None = None) -> dict[str, Tool]:
        """Return the deferred tools: those that are neither in use nor mentioned by the user."""
        named = self._mentioned(tools)
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
        if name not in self._environment.reserved:
            return False
        if name in self._environment.builtin_tools():
            return True
        found = (source.tools().get(name) for source in self.sources)
        return any(tool is not None and tool.source == "builtin" for tool in found)


def _offers(tool_filter: Filter, name: str, tool: Tool) -> bool:
    return tool_filter.offers(name, tool.source, tool.spec.origin if tool.source == "mcp" else None)


def _is_of_server(tool: Tool, server: str) -> bool:
    origin = tool.spec.origin if tool.source == "mcp" else None
    return origin is not None and origin.server == server
