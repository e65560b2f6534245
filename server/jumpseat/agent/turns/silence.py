"""Ask again after empty answers, and warn the user about answers that end a run without its result."""

from __future__ import annotations

from typing import Final

from jumpseat.agent.conversation import tokens
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.model_calls.requests import uses_xml
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat_protocol import events

SOURCE: Final = "empty_answer"
"""The source of the message that asks again."""

QUESTION: Final = "Your last answer was empty. Go on with the task, or write your answer if the task is done."

_CAN_GO_ON: Final = frozenset({"end_turn", "stop_sequence", "tool_use"})
"""The stop reasons after which a model may answer if it is asked again."""


def asks_again(session: Session, prompt: Prompt, request: ModelRequest, completed: Completed) -> bool:
    """Ask the model once more in a prompt after an empty answer; return whether that was done.

    Some models end a turn with nothing after the results of tools. A request for structured output, and autopilot
    mode, have messages of their own that make the model go on.
    """
    message = completed.message
    if prompt.asked_again or completed.stop_reason not in _CAN_GO_ON or request.response_format is not None:
        return False
    if message.tool_uses() or message.text().strip() or session.settings.mode == "autopilot":
        return False
    prompt.asked_again = True
    session.add_context(QUESTION, SOURCE)
    return True


def warn_of_silence(session: Session, request: ModelRequest, completed: Completed) -> None:
    """Warn the user about an answer without text and calls, or one that was cut off at the output limit."""
    text = _describe_silence(request, completed)
    if text is not None:
        session.emit(events.SessionWarning(warning_type="incomplete_answer", message=text))


def _describe_silence(request: ModelRequest, completed: Completed) -> str | None:
    message = completed.message
    if message.tool_uses() or completed.stop_reason == "pause_turn":
        return None
    has_text = bool(message.text().strip())
    match completed.stop_reason:
        case "max_tokens":
            used = completed.usage.output_tokens if completed.usage is not None else 0
            limit = request.max_output_tokens or used
            at = f"limit of {limit:,} output tokens" if limit else "limit of output tokens"
            if has_text:
                return f"The model's answer is cut off at its {at}."
            doing = "was still thinking at its" if message.reasoning() else "answered nothing within its"
            return f"The model {doing} {at}: raise max_output_tokens, or lower the reasoning effort."
        case "tool_use":
            return "The provider announced a tool call and sent none: a gateway in between may have dropped it."
        case "refusal" | "content_filter" if not has_text:
            who = "The model" if completed.stop_reason == "refusal" else "A content filter of the provider"
            return f"{who} declined to answer."
        case _ if has_text:
            return None
        case _ if message.reasoning():
            return "The model's answer is empty: it consists of reasoning alone."
        case _:
            return "The model's answer is empty."


def warn_of_dropped_tools(
    session: Session,
    resolved: ResolvedModel,
    request: ModelRequest,
    estimate: tokens.TokenEstimate,
    completed: Completed,
) -> None:
    """Warn the user once if a server seems to drop the tools, as one does whose chat template has none.

    It counts about as many tokens as the prompt has without the tools, which must be the larger part.
    """
    if completed.usage is None or not request.tools or uses_xml(resolved.info) or session.warned.dropped_tools:
        return
    others, counted = estimate.system + estimate.conversation, completed.usage.input_tokens
    if estimate.tools < 2 * others or not 0.7 * others <= counted <= 1.3 * others:
        return
    if completed.message.tool_uses():
        return
    session.warned.dropped_tools = True
    text = (
        f"{resolved.info.id} seems not to receive the tools: its server counts {counted:,} tokens for a prompt of"
        f' about {estimate.total:,}. Its chat template may have no tools: set tool_protocol = "xml" for the model.'
    )
    session.emit(events.SessionWarning(warning_type="tool_protocol", message=text))
