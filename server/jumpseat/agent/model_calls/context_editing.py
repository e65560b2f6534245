"""Ask providers that can to shorten long conversations themselves, where the configuration wants that.

Anthropic clears old results of tools in each request that is too long; OpenAI answers with a compaction that stands
for all before it. Adapters write the request: see ``Adapter.edits_context``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jumpseat.agent.conversation.result_size import REPEATABLE
from jumpseat.agent.conversation.tokens import TokenEstimate
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Cleared, ContextEditing, EditsContext, ToolSpec
from jumpseat.agent.session.compactor import FULL_SHARE, MIN_FREED_SHARE, WORKING_WINDOW
from jumpseat.agent.session.session import Session
from jumpseat.errors import ProviderError, ProviderRequestError
from jumpseat_protocol import events

KEPT_RESULTS: Final = 10
"""The latest results that a provider keeps: more than those of one answer, which the model has not seen yet."""

_REFUSED: Final = re.compile(r"context[ _-]management", re.IGNORECASE)


def editing_for(edits: EditsContext, resolved: ResolvedModel, tools: Sequence[ToolSpec]) -> ContextEditing:
    """Return how the provider shall shorten the conversation, from about the size at which the server would."""
    limit = resolved.known.prompt_limit
    if edits == "compacts":
        return ContextEditing(round(FULL_SHARE * limit))
    context = min(limit, WORKING_WINDOW)
    # Nothing would show the results of other tools again: the provider does not save them.
    spared = tuple(tool.name for tool in tools if tool.name not in REPEATABLE)
    return ContextEditing(round(FULL_SHARE * context), round(MIN_FREED_SHARE * context), KEPT_RESULTS, spared)


def is_refusal(error: ProviderError) -> bool:
    """Return whether a provider or a gateway in between refuses the request because it asks for editing."""
    return isinstance(error, ProviderRequestError) and _REFUSED.search(str(error)) is not None


def settle_refusal(session: Session, resolved: ResolvedModel, error: ProviderError) -> None:
    """Remember for the model that its provider does not edit conversations, and warn the user."""
    session.services.models.learn(resolved, context_editing=False)
    text = (
        f"The provider of {resolved.info.id} rejects context_editing ({error}). From now on, the server shortens"
        " long conversations itself."
    )
    session.emit(events.SessionWarning(warning_type="context_editing", message=text))


def report_cleared(session: Session, resolved: ResolvedModel, estimate: TokenEstimate, cleared: Cleared) -> None:
    """Report the results that the provider has left out of a request, if they are others than in the last one."""
    if cleared == session.compactor.cleared:
        return
    session.compactor.cleared = cleared
    session.emit(
        events.SessionTruncation(
            token_limit=resolved.known.token_limit,
            pre_truncation_tokens_in_messages=estimate.conversation,
            pre_truncation_messages_length=estimate.messages,
            post_truncation_tokens_in_messages=max(0, estimate.conversation - cleared.tokens),
            post_truncation_messages_length=estimate.messages,
            tokens_removed_during_truncation=cleared.tokens,
            messages_removed_during_truncation=0,
            performed_by="provider",
            cleared_results={},
        )
    )
