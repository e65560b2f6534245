"""Deferred tools: left out of requests until the model searches for them.

Above a number of tools, or of characters in their specs, the tools of clients, MCP servers and declarations that
are not in use are deferred, except for those with ``defer: "never"``. One tool finds them by purpose or name. A
tool that was found or called stays in use, also after a resume: the session's events record it. A call of a
deferred tool runs like any other.

A client may bring a search of its own: a tool of that name, whose result names the tools that it has found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.model import ToolSchema, ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.tools.filters import Filter, SourceName
from jumpseat.tools.tool import TOOL_SEARCH, Ordering, Prepared, Tool, ToolContext, ToolOutcome, failure
from jumpseat_protocol import events
from jumpseat_protocol.lazy_dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class ToolSearch:
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
