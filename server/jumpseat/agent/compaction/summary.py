"""The summary of a conversation: what the model is asked for, of how much, and whether its answer is one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from jumpseat.agent.blocks import AssistantMessage, Message, TextBlock, ToolMessage, ToolUseBlock, UserMessage
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.conversation import SUMMARISED, SUMMARY_REQUEST, canonical_json, shortened
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest, ToolChoice, Usage
from jumpseat.agent.model_calls.model_call import ask_quietly
from jumpseat.agent.session import limits
from jumpseat.agent.session.session import Session
from jumpseat.errors import ProviderContextError, ProviderError
from jumpseat_protocol import events

TOO_LONG: Final = "context_limit_retry"
"""The trigger of a compaction that a provider's refusal has begun."""

AUTOMATIC_TRIGGERS: Final = ("threshold", TOO_LONG)
"""The triggers of compactions that begin by themselves."""

SHARES: Final = (1.0, 0.6, 0.3)
"""How much of what fits the model is asked to sum up, where it says that more is too long."""

ANSWER_TOKENS: Final = 8_000
"""Room for the summary itself, where a model's window has that."""

LONGEST_TEXT: Final = 1500
"""Characters of an output, an argument or a prompt, where all of them do not fit."""

ASKED: Final = f"""\
{SUMMARY_REQUEST}: the summary and the user's own messages are all that is left of it then, and the work goes on \
from them.

Answer with the summary alone, as text. Do not call tools, and do not go on with the work now.
Whoever reads it knows nothing else, so name files, commands, values and decisions exactly. Leave out what did not \
matter in the end, and never write down passwords or keys. Use these sections, in this order:

<overview>
What the user wants in the end, and what for.
</overview>

<history>
What happened, in order: what was asked, what was done about it, what came of it, what the user corrected.
</history>

<work_done>
What is finished, with the files it is in, and what is begun and not finished.
</work_done>

<technical_details>
What was found out and decided: how things work here, what did not work and why, what the user and the project \
want kept to.
</technical_details>

<important_files>
The files that matter, each with what is in it and what was changed.
</important_files>

<next_steps>
What is to be done next; for work that was interrupted, where exactly it stands.
</next_steps>

<checkpoint_title>Two to six words for this summary</checkpoint_title>"""


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """A summary that is to be made: why (the trigger on the wire), of what, and by whom.

    ``limit`` is the model's context window, ``instructions`` are what a user wants of it, and ``used`` is what all
    calls for it have taken so far.
    """

    trigger: str
    resolved: ResolvedModel
    request: ModelRequest
    estimate: tokens.TokenEstimate
    limit: int
    instructions: str | None = None
    used: events.CompactionTokensUsed = field(
        default_factory=lambda: events.CompactionTokensUsed(input_tokens=0, output_tokens=0, duration=0)
    )

    @property
    def unasked(self) -> bool:
        """Whether nobody but the server wants it."""
        return self.trigger in AUTOMATIC_TRIGGERS

    @property
    def too_long(self) -> bool:
        """Whether the provider has refused the request."""
        return self.trigger == TOO_LONG


async def make_summary(session: Session, task: SummaryTask) -> str:
    """Have the model sum up the request it would get; of one that is too long, as much of it as it can be given.

    Raises:
        JumpseatError: it gave no summary.
    """
    asked = f"{ASKED}\n\nThe user wants of this summary: {task.instructions}" if task.instructions else ASKED
    question = UserMessage([TextBlock(asked)])
    room = _room(session, task, question)
    refused: ProviderContextError | None = None
    messages: list[Message] = []
    for share in SHARES:
        tried, messages = messages, [*fitting(task.request.messages, round(share * room)), question]
        if messages == tried:
            continue
        request = replace(
            task.request,
            messages=messages,
            tool_choice=None,
            response_format=None,
            hosted_tools=[],
            unasked=task.unasked,
        )
        try:
            return await _ask(session, task, request)
        except ProviderContextError as error:
            refused = error
    raise refused or AssertionError("there is at least one share")


def _room(session: Session, task: SummaryTask, question: Message) -> int:
    """How much of the conversation the model can be given beside all else, in estimated tokens."""
    estimate, limit = task.estimate, task.resolved.known.prompt_limit
    # In estimated tokens, as all else here.
    window = limit * estimate.total // max(1, session.compactor.corrected(estimate.total))
    beside = estimate.system + estimate.tools + tokens.of_message(question) + min(ANSWER_TOKENS, limit // 4)
    room = min(window - beside, estimate.conversation)
    if not task.too_long and room > 0:
        return room
    # It does not fit, whatever is known of the model.
    return round(SHARES[1] * (room if room > 0 else estimate.conversation))


async def _ask(session: Session, task: SummaryTask, request: ModelRequest) -> str:
    """Ask for the summary; once more where the model goes on with its work instead, or does not come to an end.

    The first request has no choice of tools, because with one some providers do not use what they have cached.
    """
    for choice in (None, ToolChoice("none")):
        limits.check(session)
        started = time.monotonic()
        completed = await ask_quietly(session, task.resolved, replace(request, tool_choice=choice))
        _count(session, task, request, completed, int((time.monotonic() - started) * 1000))
        text = completed.message.text().strip()
        if _is_summary(text, completed, strict=choice is None):
            return text
    raise ProviderError("the model gave no summary of the conversation")


def _is_summary(text: str, completed: Completed, *, strict: bool) -> bool:
    """Whether an answer can stand for the conversation; what is asked for ``strict``-ly has all its sections."""
    if not text or completed.stop_reason in ("refusal", "content_filter"):
        return False
    if completed.stop_reason == "max_tokens" and "</history>" not in text:
        return False
    return "<overview>" in text or not (strict or completed.message.tool_uses())


def _count(
    session: Session,
    task: SummaryTask,
    request: ModelRequest,
    completed: Completed,
    duration_ms: int,
) -> None:
    usage = completed.usage or Usage()
    call = events.CompactionTokensUsed(
        input_tokens=usage.input_tokens or tokens.of_request(request).total,
        output_tokens=usage.output_tokens or tokens.of_answer(completed.message),
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        model=completed.model or task.resolved.wire_name,
        duration=duration_ms,
        copilot_usage=events.CopilotUsage(total_nano_aiu=usage.nano_aiu) if usage.nano_aiu else None,
    )
    session.metrics.count_compaction(call)
    task.used.add(call)


def fitting(messages: Sequence[Message], room: int) -> list[Message]:
    """As much of ``messages`` as fits into ``room`` tokens; all as they are where they fit.

    Long texts and pictures are cut first, the oldest first; then whole exchanges go, from the oldest on. The last
    one stays, and so does the summary of what was before, which loses its middle where it does not fit by itself.
    """
    kept = list(messages)
    over = sum(map(tokens.of_message, kept)) - room
    begin = 1 if kept and _is_compacted(kept[0]) else 0
    for place in range(begin, len(kept)):
        if over <= 0:
            return kept
        lighter = _cut(kept[place])
        over -= tokens.of_message(kept[place]) - tokens.of_message(lighter)
        kept[place] = lighter
    end = begin
    while over > 0:
        # Results go with their calls.
        following = next((at for at in range(end + 1, len(kept)) if not isinstance(kept[at], ToolMessage)), None)
        if following is None:
            break
        over -= sum(map(tokens.of_message, kept[end:following]))
        end = following
    if over > 0 and begin:
        most = tokens.of_message(kept[0]) - over
        kept[0] = _cut(kept[0], max(LONGEST_TEXT, 4 * most))
    left_out = [UserMessage([TextBlock("[What was said here is left out, because it is too long.]")])]
    return [*kept[:begin], *(left_out if end > begin else []), *kept[end:]]


def _is_compacted(message: Message) -> bool:
    return isinstance(message, UserMessage) and any(
        isinstance(block, TextBlock) and block.text.startswith(SUMMARISED) for block in message.blocks
    )


def _cut(message: Message, longest: int = LONGEST_TEXT) -> Message:
    """``message`` with its long texts cut, and without its pictures and files."""
    match message:
        case ToolMessage():
            return ToolMessage(
                [replace(one, text=shortened(one.text, longest), images=[]) for one in message.results]
            )
        case UserMessage():
            said = [
                replace(block, text=shortened(block.text, longest)) if isinstance(block, TextBlock) else _GONE
                for block in message.blocks
            ]
            return UserMessage([*said])
        case AssistantMessage():
            return AssistantMessage(
                [_cut_call(one) if isinstance(one, ToolUseBlock) else one for one in message.blocks]
            )


_GONE: Final = TextBlock("[A picture or a file is left out here.]")


def _cut_call(call: ToolUseBlock) -> ToolUseBlock:
    arguments = {
        name: shortened(value, LONGEST_TEXT) if isinstance(value, str) else value
        for name, value in (call.arguments or {}).items()
    }
    if call.arguments is None or arguments == call.arguments:
        return call
    return replace(call, arguments=arguments, arguments_json=canonical_json(arguments))
