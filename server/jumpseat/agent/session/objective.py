"""The objective of a session in autopilot mode: a task that the session keeps in a file until it is done.

The protocol defines the file: a JSON object ``{version, nextId, current}``. Clients may write it, too.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, TypeGuard, cast

import orjson
from msgspec import Struct

from jumpseat.agent.clock import utc_now

ObjectiveStatus: TypeAlias = Literal["active", "paused", "completed"]

LIMIT_REACHED: Final = "the limit on continuations was reached"
MODE_LEFT: Final = "autopilot mode was left"

_MOST: Final = 2**53 - 1
"""The largest integer that every client can read."""


class Objective(Struct):
    """A task on which the session works until it is done. ``tokens`` are those of input and output.

    ``next_id`` is the id of the objective that follows, ``resumes`` counts how often a paused one became active.
    """

    id: int
    text: str
    status: ObjectiveStatus
    created_at: str
    next_id: int
    turns: int = 0
    continuations: int = 0
    tokens: int = 0
    nano_aiu: int = 0
    resumes: int = 0
    summary: str | None = None
    pause_reason: str | None = None

    @classmethod
    def create(cls, number: int, text: str) -> Objective:
        """Return a new, active objective."""
        number = min(number, _MOST)
        return cls(number, text, "active", utc_now(), min(number + 1, _MOST))

    def encode(self) -> str:
        """Return the content of the file."""
        current = {
            "id": self.id,
            "objective": self.text,
            "status": self.status,
            "autopilotOrigin": "objective",
            "continuationCount": self.continuations,
            "turnCount": self.turns,
            "tokenCount": self.tokens,
            "creditCountNanoAiu": str(self.nano_aiu),
            "resumeCount": self.resumes,
            "createdAt": self.created_at,
            "updatedAt": utc_now(),
            **({"completionSummary": self.summary} if self.summary is not None else {}),
            **({"pauseReason": self.pause_reason} if self.pause_reason is not None else {}),
        }
        return orjson.dumps({"version": 1, "nextId": self.next_id, "current": current}).decode()

    @classmethod
    def decode(cls, content: str) -> Objective | None:
        """Parse the file; ``None`` if it is not as the protocol defines it.

        The former status ``cap_reached`` is read as paused.
        """
        try:
            whole: Any = orjson.loads(content)
            current = cast("dict[str, Any]", whole["current"])
            text, number, written = current["objective"], current["id"], current["status"]
        except (ValueError, KeyError, TypeError):
            return None
        status, reason = (
            ("paused", LIMIT_REACHED) if written == "cap_reached" else (written, _text(current, "pauseReason"))
        )
        if status not in ("active", "paused", "completed") or not isinstance(text, str) or not _is_count(number):
            return None
        return cls(
            number,
            text,
            status,
            _text(current, "createdAt") or utc_now(),
            max(_count(whole, "nextId"), min(number + 1, _MOST)),
            _count(current, "turnCount"),
            _count(current, "continuationCount"),
            _count(current, "tokenCount"),
            _credits(current.get("creditCountNanoAiu")),
            _count(current, "resumeCount"),
            _text(current, "completionSummary"),
            reason if status == "paused" else None,
        )

    def work(self, tokens: int, nano_aiu: int) -> None:
        """Count a turn and its usage."""
        self.turns = min(self.turns + 1, _MOST)
        self.tokens = min(self.tokens + tokens, _MOST)
        self.nano_aiu = min(self.nano_aiu + nano_aiu, _MOST)

    def resume(self) -> None:
        """Make a paused objective active."""
        self.status, self.pause_reason, self.resumes = "active", None, min(self.resumes + 1, _MOST)

    def pause(self, reason: str) -> None:
        """Stop the work on the objective until it is resumed."""
        self.status, self.pause_reason = "paused", reason

    def complete(self, summary: str) -> None:
        """End the work on the objective."""
        self.status, self.summary = "completed", summary


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def _count(table: dict[str, Any], key: str) -> int:
    value = table.get(key)
    return value if _is_count(value) else 0


def _text(table: dict[str, Any], key: str) -> str | None:
    value = table.get(key)
    return value if isinstance(value, str) else None


def _credits(value: Any) -> int:
    """Parse a count of credits, which the file has as a string of digits."""
    if not isinstance(value, str) or not (value.isascii() and value.isdigit()) or len(value) > len(str(_MOST)):
        return 0
    return min(int(value), _MOST)
