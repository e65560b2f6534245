"""Convert the results of tool calls into those of AHP. Pure."""

from __future__ import annotations

from jumpseat.ahp.states.values import JsonObject, present
from jumpseat.ahp.translation.turns import Call
from jumpseat_protocol import events


def text_content(text: str) -> list[JsonObject]:
    """Return a text as the content of a call."""
    return [{"type": "text", "text": text}] if text else []


def result_of(end: events.ToolExecutionComplete, call: Call) -> JsonObject:
    """Return the result of a call."""
    result, error = end.result, end.error
    shown = ""
    if result is not None:
        # A tool may have its own text for people.
        shown = result.detailed_content or result.content
    content = [*call.blocks, *text_content(shown)] + [
        {"type": "embeddedResource", "data": binary.data, "contentType": binary.mime_type}
        for binary in (result.binary_results_for_llm if result is not None else None) or ()
    ]
    return present(
        {
            "success": end.success,
            "pastTenseMessage": call.title or call.tool,
            "content": content or None,
            "error": present({"message": error.message, "code": error.code}) if error is not None else None,
        }
    )
