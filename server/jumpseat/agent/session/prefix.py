"""Notice requests that do not begin as the last one of the session: the provider's cache has the old beginning."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from operator import is_
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from jumpseat.agent.blocks import Message
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat.agent.model import ModelRequest, ToolSpec
from jumpseat.system.log_fields import fields

log = logging.getLogger(__name__)

Part: TypeAlias = Literal["model", "instructions", "tools", "messages"]

# One for all sessions: an empty set takes 216 bytes.
_NONE: Final[frozenset[tuple[Part, str]]] = frozenset()


class PrefixBreak(Struct, frozen=True):
    """The first ``part`` of a request that differs from the last request, and the cause.

    ``kept`` is the number of messages at the beginning that are the same.
    """

    part: Part
    cause: str
    kept: int = 0


class Digest(Struct, frozen=True):
    """The beginning of a request without its messages, as it is stored: ``tools`` are digests by name, in order."""

    model: str
    system: str
    tools: list[tuple[str, str]]

    @classmethod
    def of(cls, request: ModelRequest) -> Digest:
        """Return the digest of a request."""
        tools = [(tool.name, _digest([tool.description, tool.parameters])) for tool in request.tools]
        return cls(request.model, _digest(request.system), tools)

    def compare(self, later: Digest) -> PrefixBreak | None:
        """Return how the beginning of a later request differs, if it does."""
        if later.model != self.model:
            return PrefixBreak("model", "another model")
        if later.system != self.system:
            return PrefixBreak("instructions", "changed")
        if later.tools != self.tools:
            return PrefixBreak("tools", _describe(dict(self.tools), dict(later.tools)))
        return None


class SentPrefix:
    """The last request of a session. Its parts are those of the conversation, not copies.

    ``stored`` is the digest of the last one before the session was opened.
    """

    def __init__(self, stored: bytes | None = None) -> None:
        self._stored: Digest | None = None
        if stored is not None:
            try:
                self._stored = msgspec.json.decode(stored, type=Digest)
            except (ValueError, msgspec.MsgspecError):
                log.debug("the digest of the last request cannot be read")
        self._last: tuple[str, bool, int, list[ToolSpec], Sequence[Message]] | None = None
        self._conversation: Conversation | None = None
        self._rewrites = 0
        self._logged = _NONE

    def note(self, request: ModelRequest, conversation: Conversation) -> PrefixBreak | None:
        """Remember ``request``, and return how its beginning differs from that of the last one, if it does."""
        last = self._last
        if last is not None:
            found = self._compare(last, request, conversation)
        else:
            found = self._stored.compare(Digest.of(request)) if self._stored is not None else None
        self._last = (request.model, request.vision, hash(request.system), request.tools, request.messages)
        self._conversation, self._rewrites = conversation, conversation.rewrites
        return found

    def changed(self, found: PrefixBreak | None, request: ModelRequest) -> bytes | None:
        """Return the digest to store after :meth:`note` has returned ``found``; ``None`` if it is stored."""
        if self._stored is not None and (found is None or found.part == "messages"):
            return None
        self._stored = Digest.of(request)
        return msgspec.json.encode(self._stored)

    def log(self, session_id: str, found: PrefixBreak) -> None:
        """Log a break, at a visible level once per cause."""
        level = logging.DEBUG if (found.part, found.cause) in self._logged else logging.INFO
        self._logged |= {(found.part, found.cause)}
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
            before = {tool.name: tool for tool in tools}
            return PrefixBreak("tools", _describe(before, {tool.name: tool for tool in request.tools}))
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


def _digest(value: object) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()


def _describe(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    changes = {
        "added": after.keys() - before.keys(),
        "removed": before.keys() - after.keys(),
        "changed": {name for name in before.keys() & after.keys() if before[name] != after[name]},
    }
    said = [f"{what} {', '.join(sorted(names))}" for what, names in changes.items() if names]
    return "; ".join(said) or "order"
