"""The facts about a session that stand above its turns, as rows of text."""

from __future__ import annotations

from collections.abc import Mapping

from jumpseat_transcript.transcript import Transcript, Usage
from jumpseat_transcript.words import count, display_time


def facts(transcript: Transcript) -> list[tuple[str, str]]:
    """Return the facts about a session, each with its name; those that are unknown are left out."""
    calls = transcript.calls
    rows = [
        ("session", transcript.session_id),
        ("folder", transcript.folder),
        ("started", display_time(transcript.started)),
        ("last change", display_time(transcript.changed)),
        ("model", ", ".join(transcript.models)),
        ("size", f"{count(transcript.prompts, 'prompt')}, {count(len(calls), 'tool call')}"),
    ]
    if approved := sum(call.approval.startswith("approved") for call in calls):
        rows.append(("approved by hand", count(approved, "call")))
    if denied := sum(call.status == "denied" for call in calls):
        rows.append(("denied", count(denied, "call")))
    if transcript.files_changed:
        lines = f"+{transcript.lines_added} -{transcript.lines_removed} lines"
        rows.append(("changes", f"{lines} in {count(transcript.files_changed, 'file')}"))
    return [(name, value) for name, value in rows if value]


def usage_table(usage: Mapping[str, Usage]) -> list[tuple[str, ...]]:
    """Return the usage of each model as a table with a head, the most used model first."""
    rows: list[tuple[str, ...]] = [("model", "calls", "tokens in", "from cache", "tokens out", "cost")]
    for model, used in sorted(usage.items(), key=lambda item: item[1].calls, reverse=True):
        numbers = (used.calls, used.input_tokens, used.cached_tokens, used.output_tokens)
        rows.append((model, *(f"{number:,}" for number in numbers), _dollars(used.dollars)))
    return rows


def _dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:.4f}"
