"""Sums over stored sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from jumpseat.cli.sessions.selection import Listed, read_transcript
from jumpseat.errors import StoreError
from jumpseat_transcript.transcript import Usage


class Statistics(Struct):
    """Sums over sessions. ``folders`` and ``tools`` count sessions and calls, ``usage`` is by model.

    ``unreadable`` counts the sessions whose log cannot be read.
    """

    sessions: int = 0
    one_off: int = 0
    unanswered: int = 0
    prompts: int = 0
    calls: int = 0
    denied: int = 0
    size_bytes: int = 0
    unreadable: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    folders: Counter[str] = field(default_factory=Counter[str])
    tools: Counter[str] = field(default_factory=Counter[str])
    usage: dict[str, Usage] = field(default_factory=dict[str, Usage])

    def wire(self) -> dict[str, Any]:
        """Return the sums as JSON values."""
        return {
            "sessions": self.sessions,
            "oneOff": self.one_off,
            "unanswered": self.unanswered,
            "unreadable": self.unreadable,
            "prompts": self.prompts,
            "toolCalls": self.calls,
            "deniedCalls": self.denied,
            "linesAdded": self.lines_added,
            "linesRemoved": self.lines_removed,
            "sizeBytes": self.size_bytes,
            "folders": dict(self.folders.most_common()),
            "tools": dict(self.tools.most_common()),
            "models": {
                model: {
                    "calls": used.calls,
                    "inputTokens": used.input_tokens,
                    "cachedTokens": used.cached_tokens,
                    "outputTokens": used.output_tokens,
                    "costUsd": used.dollars,
                }
                for model, used in self.usage.items()
            },
        }


def count_sessions(sessions: Iterable[Listed]) -> Statistics:
    """Return the sums over ``sessions``, from their logs."""
    sums = Statistics()
    for session in sessions:
        sums.sessions += 1
        sums.one_off += session.metadata.one_off is True
        sums.unanswered += session.metadata.unanswered is True
        sums.size_bytes += session.folder.size_bytes()
        sums.folders[session.cwd] += 1
        try:
            transcript = read_transcript(session.folder)
        except StoreError:
            sums.unreadable += 1
            continue
        sums.prompts += transcript.prompts
        sums.lines_added += transcript.lines_added
        sums.lines_removed += transcript.lines_removed
        for call in transcript.calls:
            sums.calls += 1
            sums.denied += call.status == "denied"
            sums.tools[call.tool] += 1
        for model, used in transcript.usage.items():
            sums.usage.setdefault(model, Usage()).add(used)
    return sums
