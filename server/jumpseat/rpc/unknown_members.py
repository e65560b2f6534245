"""Log the members of requests that this server does not know, and warn of misspelled members of our own.

SDKs may be newer than this server, so the unknown members of their methods are ignored.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionWarning
from jumpseat_protocol.members import UnknownMember, dotted, nearest

log = logging.getLogger(__name__)

EXTENSIONS: Final = frozenset(
    {
        "adapterSettings",
        "apiKeyCommand",
        "hostedTools",
        "keepInterruptedAnswers",
        "oneOff",
        "responseFormat",
        "toolChoice",
        "toolProtocol",
    }
)
"""The members that this server adds to the methods of the Copilot SDK protocol."""

ALMOST: Final = 0.8
"""Similarity from which an unknown member is a misspelled extension; the names of all SDKs are less similar."""

LOGGED_AT_MOST: Final = 500
"""Limits the memory that a client with random names can use up."""


class IgnoredMembers:
    """The ignored members of one process: each is logged once."""

    def __init__(self) -> None:
        self._meant: dict[tuple[str, str], str | None] = {}
        """By method and path, the extension that was probably meant. SDKs send the same members each time."""

    def note(self, method: str, unknown: Iterable[UnknownMember]) -> list[str]:
        """Log ignored members, without their values, and return the warnings about misspelled extensions."""
        warnings: list[str] = []
        for member in unknown:
            path = dotted("*" if isinstance(step, int) else step for step in member.path)
            if (method, path) in self._meant:
                meant = self._meant[method, path]
            else:
                meant = misspelled_extension(member)
                if len(self._meant) < LOGGED_AT_MOST:
                    self._meant[method, path] = meant
                    log.info("%s: the unknown member %.200r is ignored", method, path)
            if meant is not None:
                warnings.append(
                    f"{method}: unknown member {dotted(member.path)!r} is ignored; did you mean {meant!r}?"
                )
        return warnings


def misspelled_extension(member: UnknownMember) -> str | None:
    """Return the extension that a member was probably meant to be."""
    name = str(member.path[-1])
    if nearest(name, EXTENSIONS, ALMOST) is None:
        # Most unknown members are those of newer SDKs: they are compared with few names.
        return None
    found = nearest(name, member.known, ALMOST)
    return found if found in EXTENSIONS else None


async def warn_later(ctx: Context, warnings: Iterable[str], params: Any, result: Any) -> Any:
    """Wait for the result of a request, then send its warnings to the clients of its session."""
    if inspect.isawaitable(result):
        result = await result
    given = cast("Mapping[str, Any]", params).get("sessionId")
    session_id = getattr(result, "session_id", None) or given
    # The request may have ended its session.
    session = await ctx.registry.find_live(session_id) if isinstance(session_id, str) else None
    if session is not None:
        for text in warnings:
            session.emit(SessionWarning(warning_type="unknown_member", message=text))
    return result
