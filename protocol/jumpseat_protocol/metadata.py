"""``session.metadata.*``: state, working directory and context usage of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import Field, StrictBool

from jumpseat_protocol.events import SessionMode
from jumpseat_protocol.limits import PathText
from jumpseat_protocol.server import EmptyResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class ProcessingResult(WireModel):
    processing: StrictBool
    """Whether a prompt is running."""


class ActivityResult(WireModel):
    has_active_work: StrictBool
    """Whether anything is running."""
    abortable: StrictBool
    """Whether it can be aborted."""


class MetadataSnapshotResult(WireModel):
    """``workspace`` is as in ``session.workspaces.getWorkspace``; times are ISO 8601."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("workspacePath", "workspace", "sessionLimits")

    session_id: str
    start_time: str
    """When the session was created."""
    modified_time: str
    """When it was last changed."""
    is_remote: StrictBool = False
    """Always false."""
    already_in_use: StrictBool
    """Whether another process has it open."""
    workspace_path: str | None = None
    """The folder of the session's own files."""
    working_directory: str
    current_mode: SessionMode
    """The mode."""
    client_name: str | None = None
    selected_model: str | None = None
    """The id of the model."""
    summary: str | None = None
    """Its name, or its first prompt, shortened."""
    workspace: dict[str, Any] | None = None
    """What is known of the workspace."""
    session_limits: dict[str, Any] | None = None
    """The limits on its usage."""


class WorkingDirectoryParams(WireModel):
    session_id: str
    working_directory: PathText


class WorkingDirectoryResult(WireModel):
    working_directory: str


class ChangedContext(WireModel):
    """The git state of the working directory, as a host reports it."""

    cwd: PathText
    git_root: PathText | None = None
    branch: str | None = None
    repository: str | None = None
    repository_host: str | None = None
    """The host of the repository."""
    host_type: str | None = None
    """The kind of that host."""
    head_commit: str | None = None
    """The hash of the commit that is checked out."""
    base_commit: str | None = None
    """The hash of the commit that the branch started from."""


class ContextChangeParams(WireModel):
    session_id: str
    context: ChangedContext
    """The git state of the working directory."""


MOST_TOKENS: Final = 2**53 - 1
"""The largest limit: the largest integer that every JSON parser reads exactly."""


class ContextInfoParams(WireModel):
    session_id: str
    prompt_token_limit: int = Field(ge=0, le=MOST_TOKENS)
    """The most tokens of a request."""
    output_token_limit: int = Field(ge=0, le=MOST_TOKENS)
    """The most tokens of an answer."""
    selected_model: str | None = None
    """The id of the model."""


class ContextInfoResult(WireModel):
    """``context_info``: ``{modelName, systemTokens, conversationTokens, ...}``."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("contextInfo",)

    context_info: dict[str, Any] | None = None
    """What the context consists of, in tokens."""


class ContextTokensParams(WireModel):
    session_id: str
    model_id: str


class ContextTokensResult(WireModel):
    total_tokens: int
    messages_token_count: int
    """The tokens of the messages."""
    system_token_count: int
    """The tokens of the system message."""


class ContextAttributionResult(WireModel):
    """``context_attribution``: ``{totalTokens, categories, entries: [{kind, id, label, tokens}], ...}``."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("contextAttribution",)

    context_attribution: dict[str, Any] | None = None
    """What takes how many tokens."""


class HeaviestMessagesParams(WireModel):
    session_id: str
    limit: int | None = Field(default=None, ge=1)
    """The most messages to return."""


class HeaviestMessagesResult(WireModel):
    """``messages``: ``{id, label, role, tokens}`` each."""

    total_tokens: int
    messages: list[dict[str, Any]]
    """The messages with the most tokens."""


class ClientMetadataUpdateParams(WireModel):
    """Entries are cleared, removed, then set: all of it, or nothing if a part is invalid."""

    session_id: str
    clear: StrictBool = False
    """Whether all entries are removed first."""
    remove: list[str] = Field(default_factory=list)
    """The keys to remove."""
    set: dict[str, str] = Field(default_factory=dict)
    """The entries to set."""


METHODS: Final[Mapping[str, Method]] = {
    "session.metadata.snapshot": Method(
        SessionParams, MetadataSnapshotResult, "Return what is known of the session."
    ),
    "session.metadata.getClientMetadata": Method(
        SessionParams, dict, "Return the entries that clients keep with the session."
    ),
    "session.metadata.updateClientMetadata": Method(
        ClientMetadataUpdateParams, dict, "Change the entries that clients keep with the session."
    ),
    "session.metadata.isProcessing": Method(SessionParams, ProcessingResult, "Return whether a prompt is running."),
    "session.metadata.activity": Method(
        SessionParams, ActivityResult, "Return whether anything is running, and whether it can be aborted."
    ),
    "session.metadata.setWorkingDirectory": Method(
        WorkingDirectoryParams, WorkingDirectoryResult, "Change the working directory."
    ),
    "session.metadata.recordContextChange": Method(
        ContextChangeParams, EmptyResult, "Report the git state of the working directory."
    ),
    "session.metadata.contextInfo": Method(
        ContextInfoParams, ContextInfoResult, "Return what the context consists of, in tokens."
    ),
    "session.metadata.recomputeContextTokens": Method(
        ContextTokensParams, ContextTokensResult, "Count the tokens of the context again."
    ),
    "session.metadata.getContextAttribution": Method(
        SessionParams, ContextAttributionResult, "Return what takes how many tokens of the context."
    ),
    "session.metadata.getContextHeaviestMessages": Method(
        HeaviestMessagesParams, HeaviestMessagesResult, "Return the messages that take the most tokens."
    ),
}
