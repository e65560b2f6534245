"""Words about a conversation for people: messages in short, differences, the end of a server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.patterns import Difference, preview
from jumpseat_testkit.protocols import Feed
from jumpseat_testkit.target import Target, WireMessage

_SHOWN_MESSAGES: Final = 12


def list_differences(found: Iterable[Difference]) -> str:
    """Return a line for each difference."""
    return "\n".join(f"    {difference}" for difference in found)


def exit_note(target: Target) -> str:
    """Return how the server has ended, with the end of its stderr; empty if it runs."""
    if not target.ended.is_set():
        return ""
    stderr = target.stderr.strip()
    code = f" with code {target.exit_code}" if target.exit_code is not None else ""
    return f"; the server has exited{code}" + (f", end of its stderr: {stderr[-500:]}" if stderr else "")


def conversation_end(traffic: Sequence[WireMessage], feed: Feed) -> str:
    """Return the last messages, one on each line."""
    lines = [
        f"    {message.direction} {summary(as_object(message.message), feed)}"
        for message in traffic[-_SHOWN_MESSAGES:]
    ]
    return "\n  end of the conversation:\n" + "\n".join(lines) if lines else ""


def event_summary(event: dict[str, Any], feed: Feed) -> str:
    """Return an event in short."""
    data = event.get("data", {name: value for name, value in event.items() if name != feed.kind})
    return f"{event.get(feed.kind)} {preview(data, 120)}"


def summary(message: dict[str, Any], feed: Feed) -> str:
    """Return a message in short."""
    if (event := feed.event_of(message)) is not None:
        return f"event {event_summary(event, feed)}"
    if "method" in message:
        suffix = f" (id {message['id']!r})" if "id" in message else ""
        return f"{message['method']}{suffix} {preview(message.get('params'), 120)}"
    part = "error" if "error" in message else "result"
    return f"{part} of {message.get('id')!r}: {preview(message.get(part), 120)}"
