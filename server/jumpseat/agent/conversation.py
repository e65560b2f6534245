"""The conversation as a pure function of the persisted events.

Live sessions feed it event by event, resumed ones replay their log through it: the messages a model sees are the
same either way. Whatever the events leave open (a call without a result, because the process was killed) is
closed here with the text for interrupted calls, so that the sequence a provider gets is always valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, cast

import orjson

from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ToolMessage,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    UserMessage,
)
from jumpseat.agent.media import not_shown, plain_type, shown_as, user_block
from jumpseat.agent.provider_blocks import answer_blocks
from jumpseat_protocol import events

INTERRUPTED: Final = "The execution of this tool, or a previous tool was interrupted."


@dataclass(slots=True)
class _Step:
    """One message of the user or the model; with the model's, its calls and their results so far.

    Results stand at the places of their calls: a model may use one id twice in an answer.
    """

    message: UserMessage | AssistantMessage
    calls: list[ToolUseBlock] = field(default_factory=list[ToolUseBlock])
    results: list[ToolResultBlock | None] = field(default_factory=list[ToolResultBlock | None])


class Conversation:
    """Built by :meth:`apply`, read by :meth:`messages`."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []

    def __len__(self) -> int:
        return len(self._steps)

    def apply(self, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Take note of one persisted event; those that are not part of the conversation change nothing."""
        match payload:
            case events.UserMessage():
                self._steps.append(_Step(UserMessage(_user_blocks(payload))))
            case events.AssistantMessage():
                blocks = _assistant_blocks(payload)
                if blocks:
                    message = AssistantMessage(blocks)
                    calls = message.tool_uses()
                    self._steps.append(_Step(message, calls, [None] * len(calls)))
            case events.ToolExecutionComplete():
                self._settle(payload)
            case _:
                pass

    def messages(self) -> list[Message]:
        """What to send to a model: every call is followed by its result, in the order of the calls."""
        out: list[Message] = []
        for step in self._steps:
            out.append(step.message)
            if step.calls:
                answers = zip(step.calls, step.results, strict=True)
                out.append(ToolMessage([result or _interrupted(call) for call, result in answers]))
        return out

    def open_calls(self) -> list[ToolUseBlock]:
        """Calls of the last assistant message that have no result yet."""
        for step in reversed(self._steps):
            if isinstance(step.message, AssistantMessage):
                return [call for call, result in zip(step.calls, step.results, strict=True) if result is None]
        return []

    def _settle(self, payload: events.ToolExecutionComplete) -> None:
        # From the end, because some providers use the same ids in every answer.
        for step in reversed(self._steps):
            for place, call in enumerate(step.calls):
                if call.id == payload.tool_call_id and step.results[place] is None:
                    step.results[place] = _result(call, payload)
                    if payload.effective_arguments is not None:
                        call.arguments = payload.effective_arguments
                        call.arguments_json = canonical_json(payload.effective_arguments)
                    return


def canonical_json(arguments: Any) -> str:
    """Compact JSON in the key order given."""
    return orjson.dumps(arguments).decode()


def _user_blocks(payload: events.UserMessage) -> list[UserBlock]:
    blocks: list[UserBlock] = [TextBlock(payload.transformed_content or payload.content)]
    for attachment in payload.attachments or []:
        content = _content(attachment)
        data, mime_type = content.get("data"), content.get("mimeType")
        if not isinstance(data, str) or not isinstance(mime_type, str):
            continue  # selections, and files that are no pictures, are part of the text
        name = attachment.get("displayName") or attachment.get("path")
        name = name if isinstance(name, str) else None
        blocks.append(user_block(data, mime_type, name))
    return blocks


def _content(attachment: dict[str, Any]) -> dict[str, Any]:
    """Where the bytes of an attachment stand, if it has any."""
    match attachment:
        case {"type": "blob"}:
            return attachment
        case {"type": "file", "image": image} if isinstance(image, dict):
            return cast("dict[str, Any]", image)
        case _:
            return {}


def _assistant_blocks(payload: events.AssistantMessage) -> list[AssistantBlock]:
    calls: list[ToolUseBlock] = []
    for request in payload.tool_requests:
        raw: Any = request.arguments
        arguments = cast("JsonObject", raw) if isinstance(raw, dict) else None
        text = request.arguments_json if request.arguments_json is not None else canonical_json(arguments or {})
        if not arguments and not _is_object(text):
            arguments = None
        calls.append(ToolUseBlock(request.tool_call_id, request.name, text, arguments))
    return answer_blocks(payload, calls)


def _is_object(text: str) -> bool:
    if text.strip() in ("", "{}"):
        return True
    try:
        return isinstance(orjson.loads(text), dict)
    except ValueError:
        return False


def _result(call: ToolUseBlock, payload: events.ToolExecutionComplete) -> ToolResultBlock:
    images: list[ImageBlock] = []
    if payload.result is not None:
        text = payload.result.content
        for item in payload.result.binary_results_for_llm or []:
            if item.type != "image":
                continue
            if (shown := shown_as(item.data, item.mime_type)) is not None:
                images.append(ImageBlock(item.data, shown, label=item.description))
            else:
                note = not_shown(plain_type(item.mime_type), item.description)
                text = f"{text}\n{note}" if text else note
    else:
        text = payload.error.message if payload.error is not None else ""
    return ToolResultBlock(call.id, call.name, text, is_error=not payload.success, images=images)


def _interrupted(call: ToolUseBlock) -> ToolResultBlock:
    return ToolResultBlock(call.id, call.name, INTERRUPTED, is_error=True)
