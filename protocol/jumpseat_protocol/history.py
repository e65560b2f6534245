"""``session.history.*``: truncating and compacting the history of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class SummaryResult(WireModel):
    summary: str


class CompactParams(WireModel):
    """``token_limit`` overrides the context window of the model."""

    session_id: str
    custom_instructions: str | None = None
    trigger: Literal["manual", "model_switch"] = "manual"
    token_limit: int | None = Field(default=None, ge=1)


class ContextWindow(WireModel):
    """Estimates of the sizes of the parts of the context, in tokens."""

    token_limit: int
    current_tokens: int
    messages_length: int
    system_tokens: int
    conversation_tokens: int
    tool_definitions_tokens: int


class CompactResult(WireModel):
    success: StrictBool
    tokens_removed: int
    messages_removed: int
    summary_content: str | None = None
    context_window: ContextWindow | None = None


class CompactionCancelledResult(WireModel):
    cancelled: StrictBool


class CompactionAbortedResult(WireModel):
    aborted: StrictBool


class TruncateParams(WireModel):
    session_id: str
    event_id: str


class TruncateResult(WireModel):
    events_removed: int
    checkpoint_cleanup_failed: StrictBool | None = None
    checkpoint_cleanup_error: str | None = None


METHODS: Final[Mapping[str, Method]] = {
    "session.history.summarizeForHandoff": Method(SessionParams, SummaryResult),
    "session.history.truncate": Method(TruncateParams, TruncateResult),
    "session.history.compact": Method(CompactParams, CompactResult),
    "session.history.cancelBackgroundCompaction": Method(SessionParams, CompactionCancelledResult),
    "session.history.abortManualCompaction": Method(SessionParams, CompactionAbortedResult),
}
