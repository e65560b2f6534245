"""What a session knows of itself: name, plan, files, metadata, tools, usage, event log.

Loaded when the first of these methods is called; see ``methods.py``.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.callbacks import ExitPlanModeResponse, UserInputResponse
from jumpseat_protocol.events import AutoModeSwitchAnswer, SessionMode
from jumpseat_protocol.wire import WireModel


class EmptyResult(WireModel):
    """``{}``: done, and nothing to tell."""


# --- log, name, plan --------------------------------------------------------------------------------------------


class LogParams(WireModel):
    """A line for the people who read along. ``type`` is its domain; ``tip`` goes with ``info`` only."""

    session_id: str
    message: str
    level: Literal["info", "warning", "error"] = "info"
    type: str = "notification"
    ephemeral: StrictBool = False
    url: str | None = None
    tip: str | None = None


class LogResult(WireModel):
    event_id: str


class NameSetParams(WireModel):
    session_id: str
    name: str


class NameSetAutoParams(WireModel):
    session_id: str
    summary: str


class NameResult(WireModel):
    sent_as_null: ClassVar[tuple[str, ...]] = ("name",)

    name: str | None = None


class AppliedResult(WireModel):
    applied: StrictBool


class PlanUpdateParams(WireModel):
    session_id: str
    content: str


class PlanReadResult(WireModel):
    """``path`` is where the plan is, or would be."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("content", "path")

    exists: StrictBool
    content: str | None = None
    path: str | None = None


# --- workspace --------------------------------------------------------------------------------------------------


class WorkspaceResult(WireModel):
    """``workspace`` has the keys of ``workspace.yaml``, in snake_case."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("workspace",)

    workspace: dict[str, Any] | None = None
    path: str | None = None


class FileParams(WireModel):
    """``path`` is relative to the files folder of the session."""

    session_id: str
    path: str


class FileCreateParams(FileParams):
    content: str


class FilesResult(WireModel):
    files: list[str]


class FileResult(WireModel):
    content: str


class LargePasteParams(WireModel):
    session_id: str
    content: str


class SavedPaste(WireModel):
    file_path: str
    filename: str
    size_bytes: int


class LargePasteResult(WireModel):
    saved: SavedPaste


# --- metadata ---------------------------------------------------------------------------------------------------


class ProcessingResult(WireModel):
    processing: StrictBool


class ActivityResult(WireModel):
    has_active_work: StrictBool
    abortable: StrictBool


class MetadataSnapshotResult(WireModel):
    """``workspace`` is what ``session.workspaces.getWorkspace`` tells; times are ISO 8601."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("workspacePath", "workspace", "sessionLimits")

    session_id: str
    start_time: str
    modified_time: str
    is_remote: StrictBool = False
    already_in_use: StrictBool
    workspace_path: str | None = None
    working_directory: str
    current_mode: SessionMode
    client_name: str | None = None
    selected_model: str | None = None
    summary: str | None = None
    workspace: dict[str, Any] | None = None
    session_limits: dict[str, Any] | None = None


class WorkingDirectoryParams(WireModel):
    session_id: str
    working_directory: str


class WorkingDirectoryResult(WireModel):
    working_directory: str


class ChangedContext(WireModel):
    """Where a host sees the working directory."""

    cwd: str
    git_root: str | None = None
    branch: str | None = None
    repository: str | None = None
    repository_host: str | None = None
    host_type: str | None = None
    head_commit: str | None = None
    base_commit: str | None = None


class ContextChangeParams(WireModel):
    session_id: str
    context: ChangedContext


class ContextInfoParams(WireModel):
    session_id: str
    prompt_token_limit: int = Field(ge=0)
    output_token_limit: int = Field(ge=0)
    selected_model: str | None = None


class ContextInfoResult(WireModel):
    """``context_info``: ``{modelName, systemTokens, conversationTokens, ...}``."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("contextInfo",)

    context_info: dict[str, Any] | None = None


class ContextTokensParams(WireModel):
    session_id: str
    model_id: str


class ContextTokensResult(WireModel):
    total_tokens: int
    messages_token_count: int
    system_token_count: int


class ContextAttributionResult(WireModel):
    """``context_attribution``: ``{totalTokens, categories, entries: [{kind, id, label, tokens}], ...}``."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("contextAttribution",)

    context_attribution: dict[str, Any] | None = None


class HeaviestMessagesParams(WireModel):
    session_id: str
    limit: int | None = Field(default=None, ge=1)


class HeaviestMessagesResult(WireModel):
    """``messages``: ``{id, label, role, tokens}`` each."""

    total_tokens: int
    messages: list[dict[str, Any]]


class SummaryResult(WireModel):
    summary: str


class CompactParams(WireModel):
    """``token_limit`` stands for the model's context window where the caller knows better."""

    session_id: str
    custom_instructions: str | None = None
    trigger: Literal["manual", "model_switch"] = "manual"
    token_limit: int | None = Field(default=None, ge=1)


class ContextWindow(WireModel):
    """How full the context is, in tokens, all of them estimates."""

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


class CheckpointInfo(WireModel):
    number: int
    title: str
    filename: str


class CheckpointsResult(WireModel):
    checkpoints: list[CheckpointInfo]


class CheckpointParams(WireModel):
    session_id: str
    number: int


class CheckpointResult(WireModel):
    """``content`` is ``null`` where there is no such checkpoint."""

    sent_as_null: ClassVar[tuple[str, ...]] = ("content",)

    content: str | None = None


class InstructionSourcesResult(WireModel):
    """``sources``: ``{id, label, sourcePath, content, type, location, projectPath?}`` each."""

    sources: list[dict[str, Any]]


class InstructionsDiscoverParams(WireModel):
    """``exclude_host_instructions`` leaves the user's own out."""

    project_paths: list[str] = Field(default_factory=list)
    exclude_host_instructions: StrictBool = False


class InstructionDiscoveryPath(WireModel):
    """A place that instructions are looked for in; new ones of a project go into the preferred one."""

    path: str
    location: Literal["user", "repository", "working-directory", "plugin"]
    kind: Literal["file", "directory"]
    preferred_for_creation: StrictBool
    project_path: str | None = None


class InstructionPathsResult(WireModel):
    paths: list[InstructionDiscoveryPath]


# --- model and tools --------------------------------------------------------------------------------------------


class ReasoningEffortParams(WireModel):
    session_id: str
    reasoning_effort: str = Field(min_length=1)


class ReasoningEffortResult(WireModel):
    reasoning_effort: str


class SessionModelsParams(WireModel):
    """``skip_cache`` asks the providers anew."""

    session_id: str
    skip_cache: StrictBool = False


class SessionModelsResult(WireModel):
    """The models the session can switch to, in the Copilot form."""

    models: list[dict[str, Any]] = Field(alias="list")


class ToolsListParams(WireModel):
    model: str | None = None


class ToolsListResult(WireModel):
    """``tools``: ``{name, description, parameters}`` each."""

    tools: list[dict[str, Any]]


class ToolsMetadataResult(WireModel):
    """``tools``: ``{name, description, input_schema}`` each, as the model would see them now."""

    tools: list[dict[str, Any]]


# --- usage ------------------------------------------------------------------------------------------------------


class CodeChanges(WireModel):
    lines_added: int
    lines_removed: int
    files_modified_count: int
    files_modified: list[str]


class UsageMetricsResult(WireModel):
    """What the session has used since it was opened in this process.

    ``model_metrics``: ``{requests: {count, cost}, usage: {inputTokens, ...}}`` by model. Code changes count from
    the beginning of the session.
    """

    total_premium_request_cost: float = 0
    total_user_requests: int
    total_nano_aiu: int | None = None
    total_api_duration_ms: int
    session_start_time: str
    code_changes: CodeChanges
    model_metrics: dict[str, Any]
    current_model: str | None = None
    last_call_input_tokens: int
    last_call_output_tokens: int


# --- permissions ------------------------------------------------------------------------------------------------


class PermissionModeParams(WireModel):
    session_id: str
    mode: Literal["manual", "assisted", "allow-all"]
    assisted_approval_model: str | None = None


class PermissionModeResult(WireModel):
    mode: Literal["manual", "assisted", "allow-all"]


class PermissionModeSetResult(WireModel):
    success: StrictBool = True
    mode: Literal["manual", "assisted", "allow-all"]


class AllowAllParams(WireModel):
    """``mode`` wins over ``enabled``."""

    session_id: str
    enabled: StrictBool = False
    mode: Literal["on", "off", "auto"] | None = None


class AllowAllResult(WireModel):
    enabled: StrictBool
    mode: Literal["on", "off"]


class AllowAllSetResult(AllowAllResult):
    success: StrictBool = True


# --- event log and history --------------------------------------------------------------------------------------


class CursorResult(WireModel):
    cursor: str


class EventLogReadParams(WireModel):
    """``cursor`` is what an earlier read or ``tail`` gave; without it, the log is read from its beginning, or
    backward from its end. A cursor goes on in its own direction.

    ``wait_ms`` is how long to wait for a first event, at most 30 seconds. ``agent_ids`` wins over ``agent_scope``.
    """

    session_id: str
    cursor: str | None = None
    max: int = Field(default=200, ge=1)
    wait_ms: int = Field(default=0, ge=0)
    types: Literal["*"] | list[str] = "*"
    direction: Literal["forward", "backward"] = "forward"
    include_ephemeral: StrictBool = True
    agent_scope: Literal["primary", "all"] = "all"
    agent_ids: list[str] | None = None


class EventLogReadResult(WireModel):
    """``expired``: the event at the cursor is gone, and this is read from the boundary of what is left."""

    events: list[dict[str, Any]]
    cursor: str
    has_more: StrictBool
    cursor_status: Literal["ok", "expired"] = "ok"


class TruncateParams(WireModel):
    session_id: str
    event_id: str


class TruncateResult(WireModel):
    events_removed: int
    checkpoint_cleanup_failed: StrictBool | None = None
    checkpoint_cleanup_error: str | None = None


class ForkParams(WireModel):
    """``to_event_id`` and what comes after it stay out of the fork."""

    session_id: str
    to_event_id: str | None = None
    name: str | None = None


class ForkResult(WireModel):
    session_id: str
    name: str | None = None


# --- queue, end, remote -----------------------------------------------------------------------------------------


class QueueItemsResult(WireModel):
    """``items``: ``{id, kind, displayText, agentMode}`` each, in the order they will run."""

    items: list[dict[str, Any]]
    steering_messages: list[str]


class RemovedResult(WireModel):
    removed: StrictBool


class ShutdownParams(WireModel):
    session_id: str
    type: Literal["routine", "error"] = "routine"
    reason: str | None = None


class UnregisteredResult(WireModel):
    """Whether there was something to take back."""

    unregistered: StrictBool


class HandlePendingUserInputParams(WireModel):
    session_id: str
    request_id: str
    response: UserInputResponse


class HandlePendingExitPlanModeParams(WireModel):
    session_id: str
    request_id: str
    response: ExitPlanModeResponse


class HandlePendingAutoModeSwitchParams(WireModel):
    session_id: str
    request_id: str
    response: AutoModeSwitchAnswer


class SteerableParams(WireModel):
    session_id: str
    remote_steerable: StrictBool


# --- what has changed in the working tree -----------------------------------------------------------------------


class DiffParams(WireModel):
    """``include_contents`` goes with the mode ``session`` only."""

    session_id: str
    mode: Literal["unstaged", "branch", "session"]
    ignore_whitespace: StrictBool = False
    include_contents: StrictBool = False


class DiffFileChange(WireModel):
    """``diff`` is a unified diff, empty where it was too long. Paths are relative to the working directory."""

    path: str
    diff: str
    change_type: Literal["added", "modified", "deleted", "renamed"]
    old_path: str | None = None
    is_truncated: StrictBool | None = None


class DiffResult(WireModel):
    """``mode`` is what ``changes`` are; with ``is_fallback`` that is not what was asked for."""

    requested_mode: Literal["unstaged", "branch", "session"]
    mode: Literal["unstaged", "branch", "session"]
    changes: list[DiffFileChange]
    base_branch: str | None = None
    is_fallback: StrictBool
    unavailable_reason: Literal["file-change-tracking-disabled"] | None = None


class TokenPriceUnit(WireModel):
    model_id: str
    unit: Literal["ai_credits"]


class TokenPriceUnitsResult(WireModel):
    """In what the prices of ``models.list`` are counted, for every model that has some."""

    units: list[TokenPriceUnit]
