"""Tools that the model is told of only when it looks for them, where there are very many.

Above a number of tools, or where much is to be said of them, those of clients, servers and declarations that were
not used yet are left out of requests (all but those that say ``never``), and one tool finds them by what they are
for. What was found, or called, stays: the events of the session say so, also after a resume. A call of a tool that
was left out runs as any other.

A client may bring a search of its own: a tool of that name, whose result names what it has found.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, runtime_checkable

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.session.session import Session
from jumpseat.tools.filters import Filter, SourceName
from jumpseat.tools.tool import TOOL_SEARCH, Prepared, Tool, ToolContext, ToolOutcome, failure
from jumpseat_protocol import events

MOST_FOUND: Final = 10

NAMES_CHARACTERS: Final = 4000
"""How much of the system message the names of the tools may take that are left out."""

_WORD: Final = re.compile(r"[a-z0-9]+|[^\W_0-9a-z]+")


@runtime_checkable
class Deferring(Protocol):
    """A tool that says whether it may be left out; others may, unless they are built in."""

    @property
    def defer(self) -> Literal["auto", "never"] | None: ...


class Deferral:
    """Says which tools of one session the model is not told of."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # By name: a schema, and how long it is. Most turns have the tools of the turn before.
        self._lengths: dict[str, tuple[object, int]] = {}

    def deferred(self, tools: Mapping[str, Tool], needed: Collection[str] = ()) -> dict[str, Tool]:
        """Those of ``tools`` that the model is not told of now; it must be told of those that are ``needed``."""
        settings = self._session.settings
        if not settings.tool_search.enabled:
            return {}
        left = {name: tool for name, tool in tools.items() if _may_be_left_out(tool)}
        if not left or not self._too_much(tools, left):
            return {}
        if TOOL_SEARCH not in tools and not Filter(settings).offers(TOOL_SEARCH, "builtin"):
            return {}
        kept = {*self._session.tools_in_use, TOOL_SEARCH, *needed}
        return {name: tool for name, tool in left.items() if name not in kept}

    def _too_much(self, tools: Mapping[str, Tool], left: Mapping[str, Tool]) -> bool:
        """Whether there are too many tools, or too much is said of those that may be left out, used ones included:
        what is found must not bring all others back."""
        config = self._session.settings.tool_search
        if len(tools) > config.defer_threshold:
            return True
        total = 0
        for name, tool in left.items():
            total += self._length(name, tool.spec)
            if total > config.defer_characters:
                return True
        return False

    def _length(self, name: str, spec: ToolSpec) -> int:
        schema, length = self._lengths.get(name, (None, 0))
        if schema is not spec.parameters:
            length = len(canonical_json(spec.parameters))
            self._lengths[name] = (spec.parameters, length)
        return length + len(name) + len(spec.description)


def _may_be_left_out(tool: Tool) -> bool:
    if tool.source == "builtin":
        return False
    return not (isinstance(tool, Deferring) and tool.defer == "never")


def guidance(names: Collection[str]) -> str:
    """What the system message says of tools that are left out."""
    listed, rest = "", 0
    for name in sorted(names):
        if len(listed) + len(name) > NAMES_CHARACTERS:
            rest += 1
        else:
            listed += f", {name}" if listed else name
    more = f" and {rest} more" if rest else ""
    return f"Some tools must be found with {TOOL_SEARCH} before they can be called: {listed}{more}."


def activate(session: Session, names: Iterable[str], strategy: str) -> list[str]:
    """Tell the model of these tools from now on; gives those that are new."""
    new = [name for name in dict.fromkeys(names) if name not in session.tools_in_use]
    if new:
        session.emit(events.ToolSearchActivated(strategy=strategy, tool_names=new))
    return new


@dataclass(frozen=True, slots=True)
class ToolSearch:
    """Finds tools by words, or by their names; ``hidden`` are those that are left out."""

    session: Session
    hidden: Mapping[str, Tool]

    @property
    def name(self) -> str:
        return TOOL_SEARCH

    @property
    def source(self) -> SourceName:
        return "builtin"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            TOOL_SEARCH,
            "Find tools by what they do, or by name. What it finds can be called from then on.",
            {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words for what is to be done, or names of tools"},
                    "limit": {"type": "integer", "description": f"How many at most; {MOST_FOUND} unless given"},
                },
                "required": ["query"],
            },
        )

    def summary(self, arguments: JsonObject) -> str | None:
        query = arguments.get("query")
        return f"Find tools for {query!r}" if isinstance(query, str) else None

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        arguments = call.arguments or {}
        query, limit = arguments.get("query"), arguments.get("limit", MOST_FOUND)
        if not isinstance(query, str) or not query.strip():
            return failure(f"Invalid arguments for `{TOOL_SEARCH}`: query: expected words")
        if not isinstance(limit, int) or limit < 1:
            return failure(f"Invalid arguments for `{TOOL_SEARCH}`: limit: expected a number from 1 on")

        async def run() -> ToolOutcome:
            found = search(query, self.hidden)[:limit]
            if not found:
                return ToolOutcome("No tool was found. Try other words.")
            activate(self.session, (tool.name for tool in found), "keyword")
            lines = (f"- {tool.name}: {tool.spec.description}" for tool in found)
            return ToolOutcome("These tools can be called now:\n" + "\n".join(lines))

        # Nothing but the list of tools is read.
        return Prepared(None, run)


def search(query: str, tools: Mapping[str, Tool]) -> list[Tool]:
    """The tools that ``query`` names or describes, the best first."""
    named = [tools[name] for name in dict.fromkeys(re.split(r"[\s,]+", query)) if name in tools]
    if named:
        return named
    words = set(_words(query))
    scored: list[tuple[int, str]] = []
    for name, tool in tools.items():
        spec = tool.spec
        parameters: Any = spec.parameters.get("properties", {})
        of_name, of_rest = set(_words(name)), {*_words(spec.description), *_words(" ".join(parameters))}
        score = sum(3 * _meets(word, of_name) + _meets(word, of_rest) for word in words)
        if score:
            scored.append((-score, name))
    return [tools[name] for _, name in sorted(scored)]


def _meets(word: str, words: Collection[str]) -> bool:
    # One form of a word finds another: file, files; delete, deleting.
    return word in words or (len(word) >= 4 and any(one[:4] == word[:4] and _alike(one, word) for one in words))


def _alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return long.startswith(short.rstrip("es")) and len(long) - len(short) <= 3


def _words(text: str) -> list[str]:
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return _WORD.findall(apart.lower())
