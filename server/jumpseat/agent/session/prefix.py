"""Notice requests that do not begin as the last one of the session: the provider's cache has the old beginning."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from operator import is_
from typing import Literal, TypeAlias

from msgspec import Struct

from jumpseat.agent.blocks import Message
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat.agent.model import ModelRequest, ToolSpec
from jumpseat.system.log_fields import fields

log = logging.getLogger(__name__)

Part: TypeAlias = Literal["model", "instructions", "tools", "messages"]


class PrefixBreak(Struct, frozen=True):
    """The first ``part`` of a request that differs from the last request, and the cause.

    ``kept`` is the number of messages at the beginning that are the same.
    """

    part: Part
    cause: str
    kept: int = 0


class SentPrefix:
    """The last request of a session. Its parts are those of the conversation, not copies."""

    def __init__(self) -> None:
        self._last: tuple[str, bool, int, list[ToolSpec], Sequence[Message]] | None = None
        self._conversation: Conversation | None = None
        self._rewrites = 0
        self._logged: set[tuple[Part, str]] = set()

    def note(self, request: ModelRequest, conversation: Conversation) -> PrefixBreak | None:
        """Remember ``request``, and return how its beginning differs from that of the last one, if it does."""
        last = self._last
        found = None if last is None else self._compare(last, request, conversation)
        self._last = (request.model, request.vision, hash(request.system), request.tools, request.messages)
        self._conversation, self._rewrites = conversation, conversation.rewrites
        return found

    def log(self, session_id: str, found: PrefixBreak) -> None:
        """Log a break, at a visible level once per cause."""
        level = logging.DEBUG if (found.part, found.cause) in self._logged else logging.INFO
        self._logged.add((found.part, found.cause))
        where = fields(session=session_id, part=found.part, cause=found.cause, messages_kept=found.kept)
        log.log(level, "request begins differently", extra=where)

    def _compare(
        self,
        last: tuple[str, bool, int, list[ToolSpec], Sequence[Message]],
        request: ModelRequest,
        conversation: Conversation,
    ) -> PrefixBreak | None:
        model, vision, system, tools, messages = last
        if request.model != model:
            return PrefixBreak("model", "another model")
        if hash(request.system) != system:
            return PrefixBreak("instructions", "changed")
        if request.tools != tools:
            return PrefixBreak("tools", _describe(tools, request.tools))
        kept = _count_common(messages, request.messages)
        if kept == len(messages):
            return None if request.vision == vision else PrefixBreak("messages", "pictures", kept)
        if conversation is not self._conversation:
            cause = "rewound"
        elif conversation.rewrites != self._rewrites:
            cause = conversation.rewrite_cause
        else:
            cause = "rewritten"
        return PrefixBreak("messages", cause, kept)


def _count_common(old: Sequence[Message], new: Sequence[Message]) -> int:
    """Return the number of messages at the beginning that are the same."""
    most = min(len(old), len(new))
    if all(map(is_, old, new)):
        return most
    differing = (n for n in range(most) if old[n] is not new[n] and old[n] != new[n])
    return next(differing, most)


def _describe(old: Sequence[ToolSpec], new: Sequence[ToolSpec]) -> str:
    before, after = {tool.name: tool for tool in old}, {tool.name: tool for tool in new}
    changes = {
        "added": after.keys() - before.keys(),
        "removed": before.keys() - after.keys(),
        "changed": {name for name in before.keys() & after.keys() if before[name] != after[name]},
    }
    said = [f"{what} {', '.join(sorted(names))}" for what, names in changes.items() if names]
    return "; ".join(said) or "order"
