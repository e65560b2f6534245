"""The conversation as a pure function of the persisted events.

Live sessions feed it event by event, resumed ones replay their log through it: the messages a model sees are the
same either way. Whatever the events leave open (a call without a result, because the process was killed) is
closed here with the text for interrupted calls, so that the sequence a provider gets is always valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from jumpseat.agent.conversation.media import IMAGE_TOKENS, not_shown, plain_type, shown_as, user_block
from jumpseat.agent.conversation.prompt import is_plain
from jumpseat.agent.conversation.provider_blocks import answer_blocks
from jumpseat_protocol import events

INTERRUPTED: Final = "The execution of this tool, or a previous tool was interrupted."

SUMMARY_REQUEST: Final = (
    "Please create a detailed summary of the conversation so far. The history is being compacted"
)
"""How the model is asked for a summary; like the next text, in the words that the wire fixes."""

SUMMARISED: Final = "Some of the conversation history has been summarized to free up context."

MOST_PROMPT_CHARACTERS: Final = 40_000
"""Of all prompts in a conversation that was summed up; of models with small windows, fewer."""

PROMPT_SHARE: Final = 0.15
"""What of a window these may take, at about four characters to a token."""


@dataclass(slots=True)
class _Step:
    """One message of the user or the model; with the model's, its calls and their results so far.

    Results stand at the places of their calls: a model may use one id twice in an answer.
    """

    message: UserMessage | AssistantMessage
    # What the user said, as they said it; whether the model was told just that.
    prompt: str | None = None
    bare: bool = False
    is_summary: bool = False
    calls: list[ToolUseBlock] = field(default_factory=list[ToolUseBlock])
    results: list[ToolResultBlock | None] = field(default_factory=list[ToolResultBlock | None])


class Conversation:
    """Built by :meth:`apply`, read by :meth:`messages`."""

    def __init__(self) -> None:
        # How often it was compacted, and which checkpoint holds the last summary.
        self.compactions = 0
        self.checkpoint = 0
        self._steps: list[_Step] = []
        # The prompts that are in the summary, oldest first.
        self._compacted_prompts: list[str] = []
        # How many steps a compaction is about that has begun.
        self._compacting: int | None = None

    def __len__(self) -> int:
        return len(self._steps)

    def apply(self, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Take note of one persisted event; those that are not part of the conversation change nothing."""
        match payload:
            case events.UserMessage():
                prompt = payload.content if payload.source is None else None
                told = payload.transformed_content or payload.content
                bare = prompt is not None and is_plain(told, prompt) and not payload.attachments
                self._steps.append(_Step(UserMessage(_user_blocks(payload)), prompt, bare))
            case events.AssistantMessage():
                blocks = _assistant_blocks(payload)
                if blocks:
                    message = AssistantMessage(blocks)
                    calls = message.tool_uses()
                    self._steps.append(_Step(message, calls=calls, results=[None] * len(calls)))
            case events.ToolExecutionComplete():
                self._settle(payload)
            case events.SessionCompactionStart():
                self._compacting = len(self._steps)
            case events.SessionCompactionComplete(success=True, summary_content=str(summary)):
                self._steps, self._compacted_prompts = self._compacted(summary, payload.token_limit)
                self._compacting = None
                self.compactions += 1
                self.checkpoint = payload.checkpoint_number or self.checkpoint
            case events.SessionCompactionComplete():
                self._compacting = None
            case _:
                pass

    def messages(self) -> list[Message]:
        """What to send to a model: every call is followed by its result, in the order of the calls."""
        return _messages(self._steps)

    def after_compaction(self, summary: str, limit: int | None) -> list[Message]:
        """What :meth:`messages` will be once the compaction that has begun ends with ``summary``."""
        return _messages(self._compacted(summary, limit)[0])

    @property
    def has_answers(self) -> bool:
        """Whether the model has said anything since the last compaction: else there is nothing to sum up."""
        return any(isinstance(step.message, AssistantMessage) for step in self._steps)

    @property
    def ends_in_summary(self) -> bool:
        return bool(self._steps) and self._steps[-1].is_summary

    def open_calls(self) -> list[ToolUseBlock]:
        """Calls of the last assistant message that have no result yet."""
        for step in reversed(self._steps):
            if isinstance(step.message, AssistantMessage):
                return [call for call, result in zip(step.calls, step.results, strict=True) if result is None]
        return []

    def _compacted(self, summary: str, limit: int | None) -> tuple[list[_Step], list[str]]:
        """The steps with ``summary`` in the place of what was there when the compaction began, and the prompts that
        are in none of them any more. ``limit`` is the model's context window, in tokens.

        What has no answer yet stays as it is, unless it is nothing but a prompt that fits beside the summary.
        """
        about = len(self._steps) if self._compacting is None else self._compacting
        room = _room(limit)
        asked = _unanswered(self._steps[:about], room)
        if not all(one.bare and len(one.prompt or "") <= room // 2 for one in self._steps[asked:about]):
            about = asked
        old, rest = self._steps[:about], self._steps[about:]
        prompts = self._compacted_prompts + [step.prompt for step in old if step.prompt is not None]
        said = UserMessage([TextBlock(compacted(prompts, summary, room))])
        return [_Step(said, is_summary=True), *rest], prompts

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


def _unanswered(steps: Sequence[_Step], room: int) -> int:
    """From where on ``steps`` have no answer: the last prompt with what belongs to it, and those before it that fit
    into ``room`` characters, in case they are of the same run.
    """
    begin, size, has_prompt = len(steps), 0, False
    while begin and isinstance(steps[begin - 1].message, UserMessage) and not steps[begin - 1].is_summary:
        step = steps[begin - 1]
        size += sum(
            len(block.text) if isinstance(block, TextBlock) else 4 * IMAGE_TOKENS for block in step.message.blocks
        )
        if has_prompt and size > room:
            break
        has_prompt = has_prompt or step.prompt is not None
        begin -= 1
    return begin


def _messages(steps: Iterable[_Step]) -> list[Message]:
    out: list[Message] = []
    for step in steps:
        out.append(step.message)
        if step.calls:
            answers = zip(step.calls, step.results, strict=True)
            out.append(ToolMessage([result or _interrupted(call) for call, result in answers]))
    return out


def compacted(prompts: Sequence[str], summary: str, room: int = MOST_PROMPT_CHARACTERS) -> str:
    """What stands for a conversation that was summed up: what the user said, and the summary of the rest.

    The form is fixed by the wire. Of prompts that have more than ``room`` characters (bytes, to be exact) together,
    the first and the latest are kept, and of long ones the beginning and the end.
    """
    said = "\n".join(f"<user_message>\n{one}\n</user_message>" for one in _kept(prompts, room))
    return (
        f"{SUMMARISED}\n\n"
        "You were originally given instructions from a user over one or more turns. Here were the user messages:\n"
        f"{said}\n\nHere is a summary of the prior context:\n<summary>\n{summary}\n</summary>"
    )


def _room(limit: int | None) -> int:
    """How many characters of prompts are kept beside a summary."""
    return MOST_PROMPT_CHARACTERS if limit is None else min(MOST_PROMPT_CHARACTERS, int(PROMPT_SHARE * limit * 4))


def last_prompt(text: str) -> str:
    """The last prompt in what stands for a conversation that was summed up; any other ``text`` as it is."""
    if not text.startswith(SUMMARISED):
        return text
    said = text.partition("\n</user_message>\n\nHere is a summary of the prior context:\n")[0]
    return said.rpartition("<user_message>\n")[2]


def _kept(prompts: Sequence[str], room: int) -> list[str]:
    """The prompts that fit, each without its middle where it is long; one line stands for those left out."""
    if not prompts:
        return []
    # The latest one counts most: it may be what is being worked on.
    longest = [room // 5] * (len(prompts) - 1) + [room // 2]
    first, *others = [_in_bytes(one, most) for one, most in zip(prompts, longest, strict=True)]
    latest: list[str] = []
    room -= _size(first)
    while others and _size(others[-1]) <= room:
        room -= _size(others[-1])
        latest.insert(0, others.pop())
    left_out = [f"[{len(others)} earlier messages are left out here.]"] if others else []
    return [first, *left_out, *latest]


def _size(prompt: str) -> int:
    """What a prompt takes, with the tags around it."""
    return len(prompt.encode()) + len("<user_message>\n\n</user_message>\n")


def _in_bytes(text: str, longest: int) -> str:
    size = len(text.encode())
    return text if size <= longest else shortened(text, longest * len(text) // size)


def shortened(text: str, longest: int) -> str:
    """``text`` without its middle where it has more than ``longest`` characters."""
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n[{len(text) - head - tail} characters are left out here.]\n{text[len(text) - tail :]}"


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
