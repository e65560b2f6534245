"""``session.history.*``: truncating, rewinding, clearing and compacting the history of a session."""

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


RewindUnavailableReason = Literal["file-change-tracking-disabled", "session-busy"]


class RewindPoint(WireModel):
    """A prompt to whose beginning a session can go back.

    ``event_id`` is that of its ``user.message``. ``file_count`` is the number of files that this prompt and later
    ones have changed; ``can_restore_files`` is whether any of them can be restored. The lines are those of this
    prompt alone.
    """

    event_id: str
    user_message: str
    timestamp: str
    can_restore_files: StrictBool
    file_count: int
    turn_changed_files: StrictBool
    lines_added: int
    lines_removed: int
    is_autopilot_continuation: StrictBool


class RewindPointsResult(WireModel):
    """The points, the oldest first."""

    file_change_tracking_enabled: StrictBool
    unavailable_reason: RewindUnavailableReason | None = None
    points: list[RewindPoint]


class PreviewRewindParams(WireModel):
    session_id: str
    event_id: str


class RewindFilePreview(WireModel):
    """The change of a file that a rewind takes back. ``path`` is absolute."""

    path: str
    change_type: Literal["created", "modified", "deleted"]
    lines_added: int
    lines_removed: int


class PreviewRewindResult(WireModel):
    available: StrictBool
    reason: RewindUnavailableReason | None = None
    file_count: int
    files: list[RewindFilePreview]


class RewindParams(WireModel):
    """``mode`` is ``conversation`` or ``conversation-and-files``; others are refused with the error of the SDKs."""

    session_id: str
    event_id: str
    mode: str


class SkippedFile(WireModel):
    """A file that a rewind has left alone: changed since by somebody else, or its content was not kept."""

    path: str
    reason: Literal["user-modified", "skipped-capture"]


class RewindResult(WireModel):
    """``events_removed`` is set once the events are removed; ``error`` says why an outcome is no success."""

    outcome: Literal[
        "success",
        "session-busy",
        "file-change-tracking-disabled",
        "files-rolled-back",
        "rollback-incomplete",
        "truncation-failed",
        "checkpoint-cleanup-failed",
        "snapshot-prune-failed",
    ]
    events_removed: int | None = None
    restored_files: list[str] = Field(default_factory=list)
    skipped_files: list[SkippedFile] = Field(default_factory=list[SkippedFile])
    error: str | None = None


class ClearContextParams(WireModel):
    """``prompt`` is the first message of the new conversation."""

    session_id: str
    prompt: str


class ClearContextResult(WireModel):
    messages_cleared: int


METHODS: Final[Mapping[str, Method]] = {
    "session.history.summarizeForHandoff": Method(SessionParams, SummaryResult),
    "session.history.truncate": Method(TruncateParams, TruncateResult),
    "session.history.listRewindPoints": Method(SessionParams, RewindPointsResult),
    "session.history.previewRewind": Method(PreviewRewindParams, PreviewRewindResult),
    "session.history.rewind": Method(RewindParams, RewindResult),
    "session.history.clearContext": Method(ClearContextParams, ClearContextResult),
    "session.history.compact": Method(CompactParams, CompactResult),
    "session.history.cancelBackgroundCompaction": Method(SessionParams, CompactionCancelledResult),
    "session.history.abortManualCompaction": Method(SessionParams, CompactionAbortedResult),
}
