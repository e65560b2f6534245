"""The summary of a conversation: the prompt, the messages that are sent with it, and the check of the answer."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from jumpseat.agent.blocks import AssistantMessage, Message, TextBlock, ToolMessage, ToolUseBlock, UserMessage
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.conversation import SUMMARIZED, SUMMARY_REQUEST, canonical_json, shorten
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest, ToolChoice, Usage
from jumpseat.agent.model_calls.model_call import ask_quietly
from jumpseat.agent.session import limits
from jumpseat.agent.session.session import Session
from jumpseat.errors import ProviderContextError, ProviderError
from jumpseat_protocol import events

TOO_LONG: Final = "context_limit_retry"
"""The trigger of a compaction after the provider refused a request as too long."""

AUTOMATIC_TRIGGERS: Final = ("threshold", TOO_LONG)
"""The triggers of compactions that start automatically."""

SHARES: Final = (1.0, 0.6, 0.3)
"""The shares of the available tokens that are tried in turn while the provider refuses the request as too long."""

ANSWER_TOKENS: Final = 4_000
"""Tokens that are reserved for the summary itself, if the prompt limit allows.

Most are shorter. For what this takes, old calls are left out of the request, and thus of the summary."""

_SECTION: Final = re.compile(
    r"^[\W_]{0,8}(?:overview|history|work[ _]done|technical[ _]details|important[ _]files|next[ _]steps)\b",
    re.IGNORECASE | re.MULTILINE,
)

MIN_CUT_CHARS: Final = 200
"""The characters from which a summary that was cut off is used."""

DROPPED: Final = "<overview>\nThe earlier answers and results did not fit, and were dropped.\n</overview>"
"""The summary in place of one that the model does not make."""

MAX_TEXT_CHARS: Final = 1500
"""Characters of a tool output, an argument or a prompt that is shortened."""

SUMMARY_PROMPT: Final = f"""\
{SUMMARY_REQUEST}: afterwards, only the summary and the user's own messages are left of it, and the work continues \
from them.

Answer with the summary alone, as text. Do not call tools, and do not continue the work now.
The reader knows nothing else, so name files, commands, values and decisions exactly. Leave out what turned out \
not to matter, and never include passwords or keys. Use these sections, in this order:

<overview>
The user's overall goal, and its purpose.
</overview>

<history>
The events in order: what was asked, what was done about it, the result, and the user's corrections.
</history>

<work_done>
What is finished, with the files involved, and what was started but not finished.
</work_done>

<technical_details>
Findings and decisions: how things work here, what did not work and why, and the rules that the user and the \
project expect to be followed.
</technical_details>

<important_files>
The files that matter, each with its content and the changes to it.
</important_files>

<next_steps>
What has to be done next; for interrupted work, exactly where it stands.
</next_steps>

<checkpoint_title>Two to six words for this summary</checkpoint_title>"""


class NoSummaryError(ProviderError):
    """The model answered, but not with a summary."""


class SummaryTask(Struct, frozen=True):
    """A summary to make: its trigger on the wire, the model, and the request whose conversation is summarized.

    ``limit`` is the model's context window in tokens, ``instructions`` are the user's for the summary, and ``used``
    counts the tokens of all calls for it so far.
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
    def automatic(self) -> bool:
        """Return whether the server started the compaction."""
        return self.trigger in AUTOMATIC_TRIGGERS

    @property
    def too_long(self) -> bool:
        """Return whether the provider refused the request as too long."""
        return self.trigger == TOO_LONG


async def make_summary(session: Session, task: SummaryTask) -> str:
    """Ask the model to summarize the conversation of a request, or as much of it as the model accepts.

    Raises:
        JumpseatError: the model gave no summary.
    """
    text = (
        f"{SUMMARY_PROMPT}\n\nThe user's instructions for this summary: {task.instructions}"
        if task.instructions
        else SUMMARY_PROMPT
    )
    question = UserMessage([TextBlock(text)])
    available = _available_tokens(session, task, question)
    refused: ProviderContextError | None = None
    messages: list[Message] = []
    for share in SHARES:
        previous, messages = messages, [*fit_messages(task.request.messages, round(share * available)), question]
        if messages == previous:
            continue
        request = replace(
            task.request,
            messages=messages,
            tool_choice=None,
            response_format=None,
            hosted_tools=[],
            context_editing=None,
            unasked=task.automatic,
        )
        try:
            return await _ask(session, task, request)
        except ProviderContextError as error:
            refused = error
        except NoSummaryError:
            if not task.too_long:
                raise
            break
    if task.too_long:
        # Without this, the session could not continue at all.
        _warn(session, "The conversation could not be summarized: its earlier answers and results were dropped.")
        return DROPPED
    raise refused or AssertionError("there is at least one share")


def _available_tokens(session: Session, task: SummaryTask, question: Message) -> int:
    """Return the tokens available for the conversation next to the rest of the request, in estimated tokens."""
    estimate, limit = task.estimate, task.resolved.known.prompt_limit
    # The provider's limit, converted to estimated tokens.
    window = limit * estimate.total // max(1, session.compactor.apply_calibration(estimate.total))
    other = estimate.system + estimate.tools + tokens.of_message(question) + min(ANSWER_TOKENS, limit // 4)
    room = min(window - other, estimate.conversation)
    if not task.too_long and room > 0:
        return room
    # The provider refused the request, or the known limit leaves no room: the limit is not reliable.
    return round(SHARES[1] * (room if room > 0 else estimate.conversation))


async def _ask(session: Session, task: SummaryTask, request: ModelRequest) -> str:
    """Ask for the summary; a second time if the model continues its work instead, or does not finish.

    The first request has no tool choice, because a tool choice makes some providers ignore their cache.
    """
    for choice in (None, ToolChoice("none")):
        if choice is not None:
            _warn(session, f"{task.resolved.info.id} wrote no summary of the conversation, and is asked again.")
        limits.check(session)
        await session.admit(task.resolved)
        started = time.monotonic()
        completed = await ask_quietly(session, task.resolved, replace(request, tool_choice=choice))
        _count(session, task, request, completed, int((time.monotonic() - started) * 1000))
        text = completed.message.text().strip()
        if _is_summary(text, completed, strict=choice is None):
            return text
        if (
            completed.stop_reason == "max_tokens"
            and len(text) >= MIN_CUT_CHARS
            and not completed.message.tool_uses()
        ):
            _warn(
                session, "The summary of the conversation was cut off at the model's limit: details may be missing."
            )
            return text
    raise NoSummaryError("the model returned no summary of the conversation")


def _warn(session: Session, text: str) -> None:
    session.emit(events.SessionWarning(warning_type="compaction", message=text))


def _is_summary(text: str, completed: Completed, *, strict: bool) -> bool:
    """Return whether an answer is a usable summary; with ``strict``, it must have one of the requested sections.

    Small models write them as headings.
    """
    if not text or completed.stop_reason in ("refusal", "content_filter"):
        return False
    if completed.stop_reason == "max_tokens" and "</history>" not in text:
        return False
    if "<overview>" in text:
        return True
    return not completed.message.tool_uses() and (not strict or _SECTION.search(text) is not None)


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
    session.metrics.count_compaction(call, task.resolved.cost_of(completed.usage))
    task.used.add(call)


def fit_messages(messages: Sequence[Message], limit: int) -> list[Message]:
    """Shorten ``messages`` to ``limit`` tokens; returns them unchanged if they fit.

    First, long texts are shortened and pictures removed, from the oldest message on. Then whole exchanges are
    removed, from the oldest on. The last exchange stays, and so does the summary of an earlier compaction, which
    loses its middle if it does not fit by itself.
    """
    fitted = list(messages)
    excess = sum(map(tokens.of_message, fitted)) - limit
    start = 1 if fitted and _is_summary_message(fitted[0]) else 0
    for index in range(start, len(fitted)):
        if excess <= 0:
            return fitted
        shorter = _shorten(fitted[index])
        excess -= tokens.of_message(fitted[index]) - tokens.of_message(shorter)
        fitted[index] = shorter
    end = start
    while excess > 0:
        # Tool results are removed together with their calls.
        following = next(
            (at for at in range(end + 1, len(fitted)) if not isinstance(fitted[at], ToolMessage)), None
        )
        if following is None:
            break
        excess -= sum(map(tokens.of_message, fitted[end:following]))
        end = following
    if excess > 0 and start:
        summary_limit = tokens.of_message(fitted[0]) - excess
        fitted[0] = _shorten(fitted[0], max(MAX_TEXT_CHARS, 4 * summary_limit))
    placeholder = [UserMessage([TextBlock("[earlier messages omitted]")])]
    return [*fitted[:start], *(placeholder if end > start else []), *fitted[end:]]


def _is_summary_message(message: Message) -> bool:
    return isinstance(message, UserMessage) and any(
        isinstance(block, TextBlock) and block.text.startswith(SUMMARIZED) for block in message.blocks
    )


def _shorten(message: Message, max_chars: int = MAX_TEXT_CHARS) -> Message:
    """Return ``message`` with long texts shortened, and without pictures and files."""
    match message:
        case ToolMessage():
            return ToolMessage(
                [replace(result, text=shorten(result.text, max_chars), images=[]) for result in message.results]
            )
        case UserMessage():
            blocks = [
                replace(block, text=shorten(block.text, max_chars)) if isinstance(block, TextBlock) else _OMITTED
                for block in message.blocks
            ]
            return UserMessage([*blocks])
        case AssistantMessage():
            return AssistantMessage(
                [_shorten_call(block) if isinstance(block, ToolUseBlock) else block for block in message.blocks]
            )


_OMITTED: Final = TextBlock("[picture or file omitted]")


def _shorten_call(call: ToolUseBlock) -> ToolUseBlock:
    arguments = {
        name: shorten(value, MAX_TEXT_CHARS) if isinstance(value, str) else value
        for name, value in (call.arguments or {}).items()
    }
    if call.arguments is None or arguments == call.arguments:
        return call
    return replace(call, arguments=arguments, arguments_json=canonical_json(arguments))
