"""Requests that exceed the context window: learn the real limit, and end runs whose compactions do not help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from jumpseat.agent.blocks import Message, ToolMessage
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.media import has_media
from jumpseat.agent.conversation.result_size import fit_results
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelRequest
from jumpseat.agent.session.queue_items import Progress
from jumpseat.agent.session.session import Session
from jumpseat.errors import ProviderContextError
from jumpseat_protocol import events

MOST_IN_VAIN: Final = 3
"""Compactions of one run between which the model makes no call that it has not made before."""

FIXED_SHARE: Final = 0.75
"""The share of the window from which the instructions and the tools are named as the reason of a refusal."""


REFUSED_SHARE: Final = 0.9
"""The share of a refused request that is taken for the window, if the refusal names none."""

LEAST_WINDOW: Final = 2_000
"""The smallest window in tokens that is concluded from a refusal: one of a shorter request has another reason."""

ASK_TOKENS: Final = 3_000
"""The estimated tokens of a request from which a local server is asked for its window again: most take more."""


async def learn_from_server(
    session: Session, resolved: ResolvedModel, request: ModelRequest, estimate: tokens.TokenEstimate
) -> bool:
    """Ask a local server about a model that is not known by its name.

    The window decides about the tools, so it is asked for before the first request that offers the default ones;
    again before one that the server may not accept, as some know the window only while the model is loaded.

    Returns:
        Whether it said anything new, so that the request has to be built again.
    """
    known = resolved.known
    unknown = known.context_window is None and known.max_prompt_tokens is None
    again = unknown and estimate.total > ASK_TOKENS
    asks_window = again or (unknown and bool(request.tools) and session.tools.shortens())
    asks_vision = known.vision is None and has_media(request.messages, vision=request.vision)
    return (asks_window or asks_vision) and await session.services.models.ask_server(resolved, again=again)


def learn_limit(
    session: Session,
    resolved: ResolvedModel,
    error: ProviderContextError,
    request: ModelRequest,
    estimate: tokens.TokenEstimate,
) -> bool:
    """Remember the window that a refusal names or implies, if it is smaller than assumed, and warn the user.

    Returns:
        Whether the next request will be shorter.
    """
    if error.limit is None:
        return _learn_from_size(session, resolved, request, estimate)
    if error.limit >= resolved.known.prompt_limit:
        return False
    assumed = resolved.known.token_limit
    session.services.models.learn(resolved, context_window=error.limit)
    _warn(
        session,
        f"{resolved.info.id} takes {error.limit:,} tokens, not {assumed:,}. The session keeps to that from now on; "
        f"set context_window = {error.limit} for the model, so that later ones need not be refused first.",
    )
    # Estimates may be too low, but not by more than this.
    return estimate.total > error.limit // 2


def _learn_from_size(
    session: Session, resolved: ResolvedModel, request: ModelRequest, estimate: tokens.TokenEstimate
) -> bool:
    """Take the size of a refused request for the window, if that shortens its results."""
    size = round(REFUSED_SHARE * session.compactor.apply_calibration(estimate.total))
    if not LEAST_WINDOW <= size < resolved.known.prompt_limit:
        return False
    if fit_results(request.messages, size) is request.messages:
        return False
    session.services.models.learn(resolved, context_window=size)
    _warn(
        session,
        f"{resolved.info.id} refused a request of about {estimate.total:,} tokens as too long and did not name its "
        f"limit. Requests stay below {size:,} tokens from now on; set context_window for the model.",
    )
    return True


def notice_silent_cut(
    session: Session, resolved: ResolvedModel, estimate: tokens.TokenEstimate, counted: int
) -> None:
    """Remember the window of a server that cuts prompts without an error, and warn the user.

    Its count of the tokens stays the same, although the prompts grow.
    """
    if session.compactor.note_count(estimate.total, counted) and counted < resolved.known.prompt_limit:
        session.services.models.learn(resolved, context_window=counted)
        _warn(
            session,
            f"{resolved.info.id} seems to cut off the beginning of prompts above {counted:,} tokens, instructions "
            "and tools first. The session keeps to that from now on; start the server with a larger context "
            "(Ollama: OLLAMA_CONTEXT_LENGTH), and set context_window for the model.",
        )


def _warn(session: Session, text: str) -> None:
    session.emit(events.SessionWarning(warning_type="context_window", message=text))


def check_progress(
    progress: Progress, compactions: int, messages: Sequence[Message], resolved: ResolvedModel
) -> None:
    """Count the compactions since the last request of a run. ``messages`` are those of the next one.

    Raises:
        ProviderContextError: there were more than :data:`MOST_IN_VAIN` without progress.
    """
    if progress.compactions is not None:
        progress.in_vain += compactions - progress.compactions
    progress.compactions = compactions
    if progress.in_vain > MOST_IN_VAIN:
        raise ProviderContextError(
            f"the conversation was compacted {progress.in_vain} times, and the model repeated its calls each time: "
            f"{_largest(progress.messages)} fill the {resolved.known.prompt_limit:,} tokens of model "
            f"{resolved.info.id!r}. Ask for less at a time, or use a model with a larger context"
        )
    progress.messages = messages


def _largest(messages: Sequence[Message]) -> str:
    """Return the tool with the largest results, and their size."""
    sizes = Counter[str]()
    for message in messages:
        if isinstance(message, ToolMessage):
            for result in message.results:
                sizes[result.tool_name] += tokens.of_text(result.text)
    if not sizes:
        return "the prompt and the instructions"
    (name, size), *_ = sizes.most_common(1)
    return f"the results of {name!r} (about {size:,} tokens)"


def explain_overflow(
    error: ProviderContextError, request: ModelRequest, estimate: tokens.TokenEstimate, resolved: ResolvedModel
) -> None:
    """Name the instructions and the tools as the reason of a refusal, if they hardly fit by themselves."""
    limit, fixed = error.limit or resolved.known.prompt_limit, estimate.system + estimate.tools
    if fixed > FIXED_SHARE * limit:
        error.explanation = (
            f"The instructions and {len(request.tools)} tools take about {fixed:,} of the {limit:,} tokens of "
            f"model {resolved.info.id!r}: {error}. Start the server with a larger context, or offer fewer tools."
        )
