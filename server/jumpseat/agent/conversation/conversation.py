"""The conversation as a pure function of the persisted events.

Live sessions apply each event as it is emitted, resumed ones replay their log: the model sees the same messages
either way. A call without a result, because the process was killed, gets the result for interrupted calls, so that
providers always receive a valid sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    DocumentBlock,
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
from jumpseat.agent.conversation.attachments import (
    IMAGE_TOKENS,
    check_media,
    media_note,
    user_block,
)
from jumpseat.agent.conversation.media import result_without_images, user_without_media
from jumpseat.agent.conversation.pictures import PictureError
from jumpseat.agent.conversation.prompt import is_bare_prompt
from jumpseat.agent.conversation.provider_blocks import answer_blocks
from jumpseat.agent.conversation.tokens import Messages, Settled
from jumpseat.agent.projection import Appliers, Projection
from jumpseat_protocol import events
from jumpseat_protocol.prompt_marks import SUMMARIZED as SUMMARIZED
from jumpseat_protocol.prompt_marks import SUMMARY_REQUEST as SUMMARY_REQUEST
from jumpseat_protocol.prompt_marks import last_prompt as last_prompt

INTERRUPTED: Final = "The execution of this tool, or a previous tool was interrupted."

REFUSED_MEDIA: Final = "refused_media"
"""The type of the warning that the media since the last answer were refused: notes take their place."""

REFUSED_ALL_MEDIA: Final = "refused_all_media"
"""The same for all media of the conversation."""

MAX_PROMPT_CHARACTERS: Final = 40_000
"""The most characters of earlier prompts kept beside a summary; fewer for models with small windows."""

PROMPT_SHARE: Final = 0.15
"""The share of the context window that these prompts may take, at four characters per token."""


class _Step(Struct):
    """A message of the user or the model, with the calls of a model's message and their results so far.

    Results have the positions of their calls, since a model may use the same id twice in an answer.
    """

    message: UserMessage | AssistantMessage
    # The user's own text, and whether the message consists of nothing else.
    prompt: str | None = None
    bare: bool = False
    is_summary: bool = False
    calls: list[ToolUseBlock] = field(default_factory=list[ToolUseBlock])
    # The ids of the calls in the events, which differ from those of the blocks where a model has repeated an id.
    ids: list[str] = field(default_factory=list[str])
    results: list[ToolResultBlock | None] = field(default_factory=list[ToolResultBlock | None])
    # The message with all results, once they are there, so that later requests share it and what is known of it.
    answer: ToolMessage | None = None

    def replace_arguments(self, place: int, arguments: JsonObject) -> None:
        """Replace the arguments of a call in a new message, because the written form of the old one is kept."""
        old = self.calls[place]
        new = replace(old, arguments=arguments, arguments_json=canonical_json(arguments))
        assert isinstance(self.message, AssistantMessage), "only answers have calls"
        self.message = AssistantMessage([new if block is old else block for block in self.message.blocks])
        self.calls[place] = new

    def leave_out_media(self) -> None:
        """Replace pictures and documents by notes."""
        if isinstance(self.message, UserMessage):
            self.message = user_without_media(self.message)
        self.results = [result and result_without_images(result) for result in self.results]
        self.answer = None

    def clear_results(self, notes: Mapping[str, str]) -> None:
        """Replace the results of calls by the notes for their ids."""
        if any(call.id in notes for call in self.calls):
            self.results = [
                replace(result, text=notes[result.tool_use_id], images=[])
                if result and result.tool_use_id in notes
                else result
                for result in self.results
            ]
            self.answer = None

    def tool_message(self) -> ToolMessage:
        """Return the results of the calls, with the text for interrupted ones where there is none."""
        if self.answer is not None:
            return self.answer
        results = [
            result or _interrupted_result(call) for call, result in zip(self.calls, self.results, strict=True)
        ]
        message = ToolMessage(results)
        if None not in self.results:
            self.answer = message
        return message


class Conversation(Projection):
    """The conversation of a session, built by :meth:`apply` and read by :meth:`messages`."""

    def __init__(self) -> None:
        # The number of compactions, and the checkpoint that holds the last summary.
        self.compactions = 0
        self.checkpoint = 0
        # How often messages were replaced that may have been sent, and the last cause.
        self.rewrites = 0
        self.rewrite_cause = ""
        # Whether the work on the last prompt was aborted; the next prompt tells the model.
        self.interrupted = False
        # Whether the last prompt has no complete answer yet.
        self._unanswered = False
        self._steps: list[_Step] = []
        # The number of steps at the beginning that do not change any more, and their messages.
        self._final_steps = 0
        self._final_messages: list[Message] = []
        self._settled = Settled()
        # The prompts that the summary covers, oldest first.
        self._compacted_prompts: list[str] = []
        # The commands that the user runs, by call, and the reports about finished ones for the next message.
        self._user_commands: dict[str, str] = {}
        self._reports: list[str] = []
        # The ids of all calls so far, each with the last number that was added to it: some providers number the
        # calls of each answer anew, and others refuse repeated ids.
        self._call_ids: dict[str, int] = {}
        # The number of steps that a running compaction covers.
        self._compacting: int | None = None

    def has_call(self, call_id: str) -> bool:
        """Return whether a call has had this id."""
        return call_id in self._call_ids

    def __len__(self) -> int:
        return len(self._steps)

    def _add_prompt(self, payload: events.UserMessage) -> None:
        self._add_reports()
        prompt = payload.content if payload.source is None else None
        sent = payload.transformed_content or payload.content
        bare = prompt is not None and is_bare_prompt(sent, prompt) and not payload.attachments
        self._steps.append(_Step(UserMessage(_user_blocks(payload)), prompt, bare))
        self._unanswered = True
        if prompt is not None:
            self.interrupted = False

    def _add_notification(self, payload: events.SystemNotification) -> None:
        self._steps.append(_Step(UserMessage([TextBlock(payload.content)])))
        self._unanswered = True

    def _add_answer(self, payload: events.AssistantMessage) -> None:
        self._unanswered = bool(payload.interrupted or payload.tool_requests)
        if blocks := _assistant_blocks(payload):
            ids = [block.id for block in blocks if isinstance(block, ToolUseBlock)]
            blocks = [self._with_unique_id(block) if isinstance(block, ToolUseBlock) else block for block in blocks]
            calls = [block for block in blocks if isinstance(block, ToolUseBlock)]
            step = _Step(AssistantMessage(blocks), calls=calls, ids=ids, results=[None] * len(calls))
            self._steps.append(step)

    def _with_unique_id(self, call: ToolUseBlock) -> ToolUseBlock:
        unique = call.id
        while unique in self._call_ids:
            self._call_ids[call.id] += 1
            unique = f"{call.id}_{self._call_ids[call.id]}"
        self._call_ids[unique] = 1
        return call if unique == call.id else replace(call, id=unique)

    def _begin_user_command(self, payload: events.ToolUserRequested) -> None:
        self._user_commands[payload.tool_call_id] = str(payload.arguments.get("command", ""))

    def _end_call(self, payload: events.ToolExecutionComplete) -> None:
        if payload.is_user_requested:
            if (command := self._user_commands.pop(payload.tool_call_id, None)) is not None:
                self._reports.append(command_report(command, payload))
        elif (found := self._find_open_call(payload.tool_call_id)) is not None:
            step, place = found
            step.results[place] = _result(step.calls[place], payload)
            if payload.effective_arguments is not None:
                step.replace_arguments(place, payload.effective_arguments)

    def _abort(self, _: events.Abort) -> None:
        # A slash command that is aborted after an answer interrupts no prompt.
        self.interrupted = self._unanswered

    def _begin_compaction(self, _: events.SessionCompactionStart) -> None:
        self._compacting = len(self._steps)

    def _end_compaction(self, payload: events.SessionCompactionComplete) -> None:
        if payload.success and payload.summary_content is not None:
            self._replace_steps(*self._compact(payload.summary_content, payload.token_limit), "compacted")
            self.compactions += 1
            self.checkpoint = payload.checkpoint_number or self.checkpoint
        self._compacting = None

    def _clear(self, _: events.SessionContextCleared) -> None:
        # The results of calls that still run find no call any more.
        self._replace_steps([], [], "context cleared")
        self._compacting = None

    def _clear_results(self, payload: events.SessionTruncation) -> None:
        if not payload.cleared_results:
            # The provider has cleared results in a request, not here.
            return
        for step in self._steps:
            step.clear_results(payload.cleared_results)
        self._replace_steps(self._steps, self._compacted_prompts, "results cleared")

    def _leave_out_refused_media(self, payload: events.SessionWarning) -> None:
        if payload.warning_type not in (REFUSED_MEDIA, REFUSED_ALL_MEDIA):
            return
        begin = 0
        if payload.warning_type == REFUSED_MEDIA:
            answers = (n for n, step in enumerate(self._steps) if isinstance(step.message, AssistantMessage))
            begin = max(answers, default=0)
        for step in self._steps[begin:]:
            step.leave_out_media()
        self._replace_steps(self._steps, self._compacted_prompts, "media left out")

    appliers: ClassVar[Appliers] = {
        events.UserMessage: _add_prompt,
        events.SystemNotification: _add_notification,
        events.AssistantMessage: _add_answer,
        events.ToolUserRequested: _begin_user_command,
        events.ToolExecutionComplete: _end_call,
        events.Abort: _abort,
        events.SessionCompactionStart: _begin_compaction,
        events.SessionCompactionComplete: _end_compaction,
        events.SessionContextCleared: _clear,
        events.SessionTruncation: _clear_results,
        events.SessionWarning: _leave_out_refused_media,
    }

    def _add_reports(self) -> None:
        reports, self._reports = self._reports, []
        self._steps += [_Step(UserMessage([TextBlock(report)])) for report in reports]

    def messages(self) -> Messages:
        """Return the messages for a model. Each call is followed by its result, in the order of the calls."""
        for step in self._steps[self._final_steps :]:
            if None in step.results:
                break
            self._final_messages += _messages([step])
            self._final_steps += 1
        return Messages(self._final_messages, _messages(self._steps[self._final_steps :]), self._settled)

    def _replace_steps(self, steps: list[_Step], compacted_prompts: list[str], cause: str) -> None:
        self.rewrites += 1
        self.rewrite_cause = cause
        self._steps, self._compacted_prompts = steps, compacted_prompts
        self._final_steps, self._final_messages, self._settled = 0, [], Settled()

    def after_compaction(self, summary: str, limit: int | None) -> list[Message]:
        """Return the :meth:`messages` that follow if the running compaction ends with ``summary``.

        ``limit`` is the model's context window in tokens.
        """
        return _messages(self._compact(summary, limit)[0])

    @property
    def has_answers(self) -> bool:
        """Return whether there is an answer since the last compaction, and thus anything to summarize."""
        return any(isinstance(step.message, AssistantMessage) for step in self._steps)

    @property
    def ends_in_summary(self) -> bool:
        return bool(self._steps) and self._steps[-1].is_summary

    def open_calls(self) -> list[ToolUseBlock]:
        """Return the calls of the last assistant message that have no result yet."""
        for step in reversed(self._steps):
            if isinstance(step.message, AssistantMessage):
                return [call for call, result in zip(step.calls, step.results, strict=True) if result is None]
        return []

    def _compact(self, summary: str, limit: int | None) -> tuple[list[_Step], list[str]]:
        """Return the steps after compaction, and all prompts covered by the summary.

        ``summary`` replaces the steps that were present when the compaction began. Unanswered steps are kept unless
        they consist of bare prompts that fit beside the summary. ``limit`` is the context window in tokens.
        """
        about = len(self._steps) if self._compacting is None else self._compacting
        room = _room(limit)
        unanswered_from = _find_unanswered(self._steps[:about], room)
        if not all(
            step.bare and len(step.prompt or "") <= room // 2 for step in self._steps[unanswered_from:about]
        ):
            about = unanswered_from
        old, rest = self._steps[:about], self._steps[about:]
        prompts = self._compacted_prompts + [step.prompt for step in old if step.prompt is not None]
        message = UserMessage([TextBlock(summary_text(prompts, summary, room))])
        return [_Step(message, is_summary=True), *rest], prompts

    def _find_open_call(self, call_id: str) -> tuple[_Step, int] | None:
        """Return the step and the place of the latest call with an id and without a result."""
        # Search from the end, because some providers reuse the same ids in every answer.
        for step in reversed(self._steps):
            for place, result in enumerate(step.results):
                if result is None and call_id in (step.ids[place], step.calls[place].id):
                    return step, place
        return None


def command_report(command: str, end: events.ToolExecutionComplete) -> str:
    """Return the message that tells the model about a command that the user has run."""
    code = (end.tool_telemetry or {}).get("exitCode")
    state = f"exit code {code}" if code is not None else "it did not run to its end"
    output = end.result.content if end.result is not None else end.error.message if end.error is not None else ""
    return (
        f"<user_shell_command_output>\nThe user has run a shell command ({state}).\n\n"
        f"Command:\n{command}\n\nOutput:\n{output}\n</user_shell_command_output>"
    )


def _find_unanswered(steps: Sequence[_Step], room: int) -> int:
    """Return the index of the first unanswered step.

    Unanswered are the last prompt with the steps that belong to it, and earlier prompts that fit into ``room``
    characters, in case they are of the same run.
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
            out.append(step.tool_message())
    return out


def summary_text(prompts: Sequence[str], summary: str, room: int = MAX_PROMPT_CHARACTERS) -> str:
    """Return the message that replaces a compacted conversation: the user's prompts and a summary of the rest.

    The wire fixes the form. If the prompts have more than ``room`` bytes in total, only the first and the latest
    ones are included, and long ones lose their middle.
    """
    quoted = "\n".join(f"<user_message>\n{prompt}\n</user_message>" for prompt in _select_prompts(prompts, room))
    return (
        f"{SUMMARIZED}\n\n"
        "You were originally given instructions from a user over one or more turns. Here were the user messages:\n"
        f"{quoted}\n\nHere is a summary of the prior context:\n<summary>\n{summary}\n</summary>"
    )


def _room(limit: int | None) -> int:
    """Return the number of bytes of prompts to keep beside a summary; ``limit`` is the window in tokens."""
    return MAX_PROMPT_CHARACTERS if limit is None else min(MAX_PROMPT_CHARACTERS, int(PROMPT_SHARE * limit * 4))


def _select_prompts(prompts: Sequence[str], room: int) -> list[str]:
    """Return the prompts that fit into ``room`` bytes, long ones shortened, with a note in place of the others."""
    if not prompts:
        return []
    # The latest prompt gets the most room, since it may be the current task.
    longest = [room // 5] * (len(prompts) - 1) + [room // 2]
    first, *others = [_limit_bytes(prompt, most) for prompt, most in zip(prompts, longest, strict=True)]
    latest: list[str] = []
    room -= _size(first)
    while others and _size(others[-1]) <= room:
        room -= _size(others[-1])
        latest.insert(0, others.pop())
    left_out = [f"[{len(others)} earlier messages omitted]"] if others else []
    return [first, *left_out, *latest]


def _size(prompt: str) -> int:
    """Return the size of a prompt and its tags in bytes."""
    return len(prompt.encode()) + len("<user_message>\n\n</user_message>\n")


def _limit_bytes(text: str, longest: int) -> str:
    size = len(text.encode())
    return text if size <= longest else shorten(text, longest * len(text) // size)


def shorten(text: str, longest: int) -> str:
    """Replace the middle of a ``text`` with more than ``longest`` characters by a note."""
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n[{len(text) - head - tail} characters omitted]\n{text[len(text) - tail :]}"


def canonical_json(arguments: Any) -> str:
    """Encode ``arguments`` as compact JSON, keeping the order of keys."""
    return orjson.dumps(arguments).decode()


def media_problems(attachments: Iterable[dict[str, Any]]) -> list[str]:
    """Return a line for each attachment that no model can receive, with its name and the reason."""
    problems: list[str] = []
    for data, mime_type, name in _media(attachments):
        try:
            check_media(data, mime_type)
        except PictureError as problem:
            problems.append(f"{name or mime_type} is {problem}")
    return problems


def _user_blocks(payload: events.UserMessage) -> list[UserBlock]:
    media = _media(payload.attachments or ())
    return [TextBlock(payload.transformed_content or payload.content), *(user_block(*item) for item in media)]


def _media(attachments: Iterable[dict[str, Any]]) -> Iterator[tuple[str, str, str | None]]:
    """Iterate over the content, the type and the name of attachments that are sent as media."""
    for attachment in attachments:
        content = _content(attachment)
        data, mime_type = content.get("data"), content.get("mimeType")
        if not isinstance(data, str) or not isinstance(mime_type, str):
            continue  # selections and files other than images are part of the text
        name = attachment.get("displayName") or attachment.get("path")
        yield data, mime_type, name if isinstance(name, str) else None


def _content(attachment: dict[str, Any]) -> dict[str, Any]:
    """Return the object with the ``data`` and ``mimeType`` of an attachment; empty if it has no content."""
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
            match user_block(item.data, item.mime_type, item.description):
                case ImageBlock() as image:
                    images.append(image)
                case TextBlock(text=note):
                    text = f"{text}\n{note}" if text else note
                case DocumentBlock():
                    # Such as an SVG drawing: results have no place for documents.
                    note = media_note(item.description or item.mime_type, "not a picture that you can see")
                    text = f"{text}\n{note}" if text else note
    else:
        text = payload.error.message if payload.error is not None else ""
    return ToolResultBlock(call.id, call.name, text, is_error=not payload.success, images=images)


def _interrupted_result(call: ToolUseBlock) -> ToolResultBlock:
    return ToolResultBlock(call.id, call.name, INTERRUPTED, is_error=True)
