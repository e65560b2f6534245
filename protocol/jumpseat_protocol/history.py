"""``session.history.*``: truncating, rewinding, clearing and compacting the history of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class SummaryResult(WireModel):
    summary: str
    """The summary."""


class CompactParams(WireModel):
    """``token_limit`` overrides the context window of the model."""

    session_id: str
    custom_instructions: str | None = None
    """What the summary should keep."""
    trigger: Literal["manual", "model_switch"] = "manual"
    """What started it."""
    token_limit: int | None = Field(default=None, ge=1)


class ContextWindow(WireModel):
    """Estimates of the sizes of the parts of the context, in tokens."""

    token_limit: int
    current_tokens: int
    """The tokens of the whole context."""
    messages_length: int
    """How many messages it has."""
    system_tokens: int
    """The tokens of the system message."""
    conversation_tokens: int
    """The tokens of the conversation."""
    tool_definitions_tokens: int
    """The tokens of the tools' definitions."""


class CompactResult(WireModel):
    success: StrictBool
    tokens_removed: int
    """How many tokens were removed."""
    messages_removed: int
    """How many messages were removed."""
    summary_content: str | None = None
    """The summary."""
    context_window: ContextWindow | None = None
    """The context afterwards."""


class CompactionCancelledResult(WireModel):
    cancelled: StrictBool
    """Whether a compaction was running."""


class CompactionAbortedResult(WireModel):
    aborted: StrictBool
    """Whether a compaction was running."""


class TruncateParams(WireModel):
    session_id: str
    event_id: str


class TruncateResult(WireModel):
    events_removed: int
    """How many events were removed."""
    checkpoint_cleanup_failed: StrictBool | None = None
    """Whether checkpoints were left behind."""
    checkpoint_cleanup_error: str | None = None
    """Why."""


RewindUnavailableReason = Literal["file-change-tracking-disabled", "session-busy"]


class RewindPoint(WireModel):
    """A prompt to whose beginning a session can go back.

    ``event_id`` is that of its ``user.message``. ``file_count`` is the number of files that this prompt and later
    ones have changed; ``can_restore_files`` is whether any of them can be restored. The lines are those of this
    prompt alone.
    """

    event_id: str
    user_message: str
    """The prompt."""
    timestamp: str
    """When it was sent, in ISO 8601."""
    can_restore_files: StrictBool
    """Whether the files can be restored."""
    file_count: int
    """How many files this and later prompts have changed."""
    turn_changed_files: StrictBool
    """Whether this prompt has changed files."""
    lines_added: int
    lines_removed: int
    is_autopilot_continuation: StrictBool
    """Whether autopilot wrote the prompt."""


class RewindPointsResult(WireModel):
    """The points, the oldest first."""

    file_change_tracking_enabled: StrictBool
    """Whether file changes are kept."""
    unavailable_reason: RewindUnavailableReason | None = None
    """Why files cannot be restored."""
    points: list[RewindPoint]
    """The points, the oldest first."""


class PreviewRewindParams(WireModel):
    session_id: str
    event_id: str


class RewindFilePreview(WireModel):
    """The change of a file that a rewind takes back. ``path`` is absolute."""

    path: str
    """The absolute path of the file."""
    change_type: Literal["created", "modified", "deleted"]
    """What happened to the file since."""
    lines_added: int
    lines_removed: int


class PreviewRewindResult(WireModel):
    available: StrictBool
    """Whether the files can be restored."""
    reason: RewindUnavailableReason | None = None
    """Why they cannot."""
    file_count: int
    """How many files would be restored."""
    files: list[RewindFilePreview]
    """The files."""


class RewindParams(WireModel):
    """``mode`` is ``conversation`` or ``conversation-and-files``; others are refused with the error of the SDKs."""

    session_id: str
    event_id: str
    mode: str
    """``conversation``, or ``conversation-and-files``."""


class SkippedFile(WireModel):
    """A file that a rewind has left alone: changed by someone else since, or its content was not kept."""

    path: str
    """The absolute path of the file."""
    reason: Literal["user-modified", "skipped-capture"]
    """Why it was left alone."""


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
    """How it ended."""
    events_removed: int | None = None
    """How many events were removed."""
    restored_files: list[str] = Field(default_factory=list)
    """The files that were restored."""
    skipped_files: list[SkippedFile] = Field(default_factory=list[SkippedFile])
    """The files that were left alone."""
    error: str | None = None


class ClearContextParams(WireModel):
    """``prompt`` is the first message of the new conversation."""

    session_id: str
    prompt: str
    """The first prompt of the new conversation."""


class ClearContextResult(WireModel):
    messages_cleared: int
    """How many messages were removed."""


METHODS: Final[Mapping[str, Method]] = {
    "session.history.summarizeForHandoff": Method(
        SessionParams, SummaryResult, "Summarize the session for whoever goes on with the work."
    ),
    "session.history.truncate": Method(TruncateParams, TruncateResult, "Remove an event and all later ones."),
    "session.history.listRewindPoints": Method(
        SessionParams, RewindPointsResult, "List the prompts to which the session can go back."
    ),
    "session.history.previewRewind": Method(
        PreviewRewindParams, PreviewRewindResult, "Return which files a rewind would restore."
    ),
    "session.history.rewind": Method(
        RewindParams, RewindResult, "Go back to the beginning of a prompt, with or without files."
    ),
    "session.history.clearContext": Method(
        ClearContextParams,
        ClearContextResult,
        "Remove the conversation; the model goes on with a new prompt alone.",
    ),
    "session.history.compact": Method(
        CompactParams, CompactResult, "Summarize the conversation, to make room in the context."
    ),
    "session.history.cancelBackgroundCompaction": Method(
        SessionParams, CompactionCancelledResult, "Cancel the compaction that runs beside the session."
    ),
    "session.history.abortManualCompaction": Method(
        SessionParams, CompactionAbortedResult, "Abort the compaction that a person has started."
    ),
}
