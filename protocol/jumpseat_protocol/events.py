"""Session events, which clients receive and the session's log stores, one per line.

Every event is an envelope (:class:`Event`) around one payload. The payloads are a closed union of structs;
each has its wire name and whether it is persisted. The fields are those of the Copilot SDK's generated
event types.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast, get_args

import msgspec.json
import orjson
from msgspec import DecodeError, Raw, Struct, ValidationError, field

from jumpseat_protocol.permissions import DecidedBy, PermissionRequest, PermissionResult
from jumpseat_protocol.wire import WireStruct, always, from_wire, model_of_wire, wire_of_model

SessionMode: TypeAlias = Literal["interactive", "plan", "autopilot"]
AgentMode: TypeAlias = Literal["interactive", "plan", "autopilot", "shell"]
PlanAction: TypeAlias = Literal["exit_only", "interactive", "autopilot", "autopilot_fleet"]
Delivery: TypeAlias = Literal["idle", "queued", "steering"]


class Event(WireStruct, eq=False):
    """An event with its envelope.

    ``id`` is a UUID; ``timestamp`` is ISO 8601 in UTC with milliseconds; ``parent_id`` is the id of the last
    persisted event before it. An ``ephemeral`` event is not logged; its type may be one that is persisted. The
    encoded form is computed once, and shared by the log and all connections.
    """

    id: str
    timestamp: str
    parent_id: str | None
    type: str
    payload: EventPayload = field(name="data")
    ephemeral: bool = False
    agent_id: str | None = None
    _encoded: bytes | None = None

    @classmethod
    def of(
        cls,
        event_id: str,
        timestamp: str,
        parent_id: str | None,
        payload: EventPayload,
        agent_id: str | None = None,
        ephemeral: bool = False,
    ) -> Event:
        """Return the event of a payload, whose type says whether it can be persisted."""
        is_ephemeral = ephemeral or not payload.persisted
        return cls(event_id, timestamp, parent_id, payload.type, payload, is_ephemeral, agent_id)

    @property
    def persisted(self) -> bool:
        return not self.ephemeral

    def wire(self) -> dict[str, Any]:
        """Return the envelope as JSON values."""
        return msgspec.json.decode(self.encode())

    def encode(self) -> bytes:
        """Return the envelope as compact JSON."""
        if self._encoded is None:
            # Its own default is left out.
            self._encoded = _ENCODER.encode(self)
        return self._encoded


_ENCODER: Final = msgspec.json.Encoder(enc_hook=wire_of_model)


class Payload(WireStruct):
    """The base of all event payloads."""

    type: ClassVar[str]
    persisted: ClassVar[bool] = True


# --- the session ------------------------------------------------------------------------------------------------


class WorkingDirectoryContext(WireStruct, kw_only=True):
    cwd: str
    git_root: str | None = None
    branch: str | None = None
    repository: str | None = None


class SessionLimits(WireStruct, kw_only=True):
    max_ai_credits: float | None = None


class SandboxState(WireStruct, kw_only=True):
    """The sandbox of a session. ``mechanism`` is known after the first command of the process: ``none`` if no
    mechanism works on this system.
    """

    mode: Literal["auto", "require"]
    mechanism: str | None = None


class SessionStart(Payload, kw_only=True):
    type: ClassVar[str] = "session.start"
    session_id: str
    version: int
    producer: str
    copilot_version: str
    start_time: str
    selected_model: str | None = None
    reasoning_effort: str | None = None
    session_limits: SessionLimits | None = None
    context: WorkingDirectoryContext | None = None
    already_in_use: bool | None = None
    github_mcp_tool_config: dict[str, Any] | None = None
    sandbox: SandboxState | None = None


class SessionResume(Payload, kw_only=True):
    type: ClassVar[str] = "session.resume"
    resume_time: str
    event_count: int
    events_file_size_bytes: int | None = None
    continue_pending_work: bool | None = None
    session_was_active: bool | None = None
    selected_model: str | None = None
    reasoning_effort: str | None = None
    session_limits: SessionLimits | None = None
    context: WorkingDirectoryContext | None = None


FAILED: Final = "Execution failed: "
"""The first words of the message of a run that has failed, which clients of the protocol may expect."""


class SessionError(Payload, kw_only=True):
    type: ClassVar[str] = "session.error"
    error_type: str
    message: str
    status_code: int | None = None
    error_code: str | None = None
    url: str | None = None
    originating_message_id: str | None = None

    @property
    def reason(self) -> str:
        """The message for people who know already that something has failed."""
        return self.message.removeprefix(FAILED)


class SessionWarning(Payload, kw_only=True):
    type: ClassVar[str] = "session.warning"
    warning_type: str
    message: str
    url: str | None = None


class SessionInfo(Payload, kw_only=True):
    type: ClassVar[str] = "session.info"
    info_type: str
    message: str
    url: str | None = None
    tip: str | None = None


class SessionIdle(Payload, kw_only=True):
    type: ClassVar[str] = "session.idle"
    persisted: ClassVar[bool] = False
    mode: SessionMode
    aborted: bool | None = None


class SessionModelChange(Payload, kw_only=True):
    type: ClassVar[str] = "session.model_change"
    new_model: str
    previous_model: str | None = None
    reasoning_effort: str | None = None
    source: str | None = None
    cause: str | None = None


class SessionModeChanged(Payload, kw_only=True):
    type: ClassVar[str] = "session.mode_changed"
    new_mode: SessionMode
    previous_mode: SessionMode


class SessionTaskComplete(Payload, kw_only=True):
    """The model has called ``task_complete``."""

    type: ClassVar[str] = "session.task_complete"
    summary: str | None = None
    success: bool | None = None
    objective_id: int | None = None


class SessionAutopilotStopped(Payload, kw_only=True):
    """A prompt in autopilot mode is not continued. ``request_id`` is the message id of the prompt.

    ``reason`` is ``completed``, ``limit`` (on continuations), ``disabled``, ``rejected``, ``aborted`` or ``error``.
    """

    type: ClassVar[str] = "session.autopilot_stopped"
    persisted: ClassVar[bool] = False
    reason: str
    request_id: str | None = None


class SessionAutopilotObjectiveChanged(Payload, kw_only=True):
    type: ClassVar[str] = "session.autopilot_objective_changed"
    operation: Literal["create", "update", "delete"]
    id: int | None = None
    status: Literal["active", "paused", "cap_reached", "completed"] | None = None


class SessionTitleChanged(Payload, kw_only=True):
    type: ClassVar[str] = "session.title_changed"
    persisted: ClassVar[bool] = False
    title: str


class SessionPermissionsChanged(Payload, kw_only=True):
    """The new and the previous mode. SDK 1.0.6 requires the fields with ``allow_all``, newer ones use ``mode``."""

    type: ClassVar[str] = "session.permissions_changed"
    mode: str
    previous_mode: str
    allow_all_permissions: bool
    previous_allow_all_permissions: bool
    assisted_approval_model: str | None = None


class SessionManagedSettingsResolved(Payload, kw_only=True):
    """The policy that hosts have set for the session. ``settings`` is what is enforced of all of them.

    With ``permissions_allow_intersected``, several hosts list what is allowed, and each of them has to.
    """

    type: ClassVar[str] = "session.managed_settings_resolved"
    persisted: ClassVar[bool] = False
    source: Literal["client", "none"]
    managed_keys: list[str]
    settings: dict[str, Any] | None = None
    bypass_permissions_disabled: bool
    client_managed: bool
    permissions_allow_intersected: bool
    device_managed: bool = always(False)
    server_managed: bool = always(False)
    fail_closed: bool = always(False)


PermissionEscalation: TypeAlias = Literal[
    "allow_all", "approve_all", "assisted_approval", "unrestricted_paths", "unrestricted_urls"
]


class SessionManagedSettingsEnforced(Payload, kw_only=True):
    """A client was refused an ``escalation`` that the ``setting`` of a host's policy forbids."""

    type: ClassVar[str] = "session.managed_settings_enforced"
    persisted: ClassVar[bool] = False
    setting: str
    escalation: PermissionEscalation
    message: str
    action: Literal["bypass_permissions_blocked"] = always("bypass_permissions_blocked")
    fail_closed: bool = always(False)


class SessionPlanChanged(Payload, kw_only=True):
    type: ClassVar[str] = "session.plan_changed"
    operation: Literal["create", "update", "delete"]


class SessionTodosChanged(Payload, kw_only=True):
    """The model has changed its todos, which ``session.plan.readSqlTodos`` returns."""

    type: ClassVar[str] = "session.todos_changed"
    persisted: ClassVar[bool] = False


class SkillInvoked(Payload, kw_only=True):
    """A skill was invoked. ``content`` was sent to the model; ``path`` is the file of the skill."""

    type: ClassVar[str] = "skill.invoked"
    name: str
    path: str
    content: str
    description: str | None = None
    source: str | None = None
    plugin_name: str | None = None
    plugin_version: str | None = None
    trigger: Literal["user-invoked", "agent-invoked", "context-load"] | None = None
    allowed_tools: list[str] | None = None


class SubagentSelected(Payload, kw_only=True):
    """A custom agent was selected. ``tools`` of ``null`` means all."""

    type: ClassVar[str] = "subagent.selected"
    agent_name: str
    agent_display_name: str
    tools: list[str] | None = always(None)


class SubagentDeselected(Payload, kw_only=True):
    """The custom agent was deselected."""

    type: ClassVar[str] = "subagent.deselected"


class SubagentStarted(Payload, kw_only=True):
    """A sub-agent was started by the tool call ``tool_call_id``; its events have the id of the agent.

    ``agent_name`` is its type, ``agent_display_name`` the name that its call gave it. ``parent_id`` is the id of
    the sub-agent that started it, if any.
    """

    type: ClassVar[str] = "subagent.started"
    tool_call_id: str
    agent_name: str
    agent_display_name: str
    agent_description: str
    model: str | None = None
    agent_type: str | None = None
    execution_mode: Literal["sync", "background"] | None = None
    resumable: bool | None = None
    parent_id: str | None = None


class SubagentConfigured(Payload, kw_only=True):
    """``model`` is ``default`` if the provider chooses it; logs of older versions may lack it."""

    type: ClassVar[str] = "subagent.configured"
    model: str | None = None
    reasoning_effort: str | None = None
    multi_turn: bool | None = None


class SubagentCompleted(Payload, kw_only=True):
    """A sub-agent has answered its first prompt, or was cancelled. ``total_tokens`` are input and output tokens."""

    type: ClassVar[str] = "subagent.completed"
    tool_call_id: str
    agent_name: str
    agent_display_name: str
    model: str | None = None
    cancelled: bool | None = None
    total_tool_calls: int | None = None
    total_tokens: int | None = None
    duration_ms: int | None = None


class SubagentFailed(Payload, kw_only=True):
    """A sub-agent has ended without an answer to its first prompt."""

    type: ClassVar[str] = "subagent.failed"
    tool_call_id: str
    agent_name: str
    agent_display_name: str
    error: str
    model: str | None = None
    total_tool_calls: int | None = None
    total_tokens: int | None = None
    duration_ms: int | None = None


class BackgroundTasksChanged(Payload, kw_only=True):
    """The list of ``session.tasks.list`` has changed."""

    type: ClassVar[str] = "session.background_tasks_changed"
    persisted: ClassVar[bool] = False


class SystemNotification(Payload, kw_only=True):
    """A message to the model about something that happened outside of its turn, in the place of a prompt.

    ``kind`` has a ``type``, such as ``agent_idle``, and the fields that belong to it.
    """

    type: ClassVar[str] = "system.notification"
    content: str
    kind: dict[str, Any]


class LoadedSkill(WireStruct, kw_only=True):
    """A list entry for a skill. ``command_name`` is its slash command, without the slash, if users may call it."""

    name: str
    description: str
    source: str
    user_invocable: bool
    enabled: bool
    path: str
    argument_hint: str | None = None
    command_name: str | None = None


class SessionSkillsLoaded(Payload, kw_only=True):
    """The skills of the session, after a search for skills."""

    type: ClassVar[str] = "session.skills_loaded"
    persisted: ClassVar[bool] = False
    skills: list[LoadedSkill]


class SessionWorkspaceFileChanged(Payload, kw_only=True):
    type: ClassVar[str] = "session.workspace_file_changed"
    operation: Literal["create", "update"]
    path: str


class SessionContextChanged(Payload, kw_only=True):
    type: ClassVar[str] = "session.context_changed"
    cwd: str
    git_root: str | None = None
    branch: str | None = None
    repository: str | None = None
    repository_host: str | None = None
    host_type: str | None = None
    head_commit: str | None = None
    base_commit: str | None = None


class SessionRemoteSteerableChanged(Payload, kw_only=True):
    type: ClassVar[str] = "session.remote_steerable_changed"
    remote_steerable: bool


class SessionSnapshotRewind(Payload, kw_only=True):
    """``up_to_event_id`` is the first of the removed events."""

    type: ClassVar[str] = "session.snapshot_rewind"
    persisted: ClassVar[bool] = False
    events_removed: int
    up_to_event_id: str


class SessionChangesUndone(Payload, kw_only=True):
    """Changes of files were taken back. ``undone`` and ``left`` are as in :class:`ChangesUndoResult`."""

    type: ClassVar[str] = "session.changes_undone"
    persisted: ClassVar[bool] = False
    undone: list[str]
    left: list[str]


class SessionContextCleared(Payload, kw_only=True):
    """The conversation was removed from the model's context; ``initial_message`` begins the new one."""

    type: ClassVar[str] = "session.context_cleared"
    initial_message: str
    messages_cleared: int


class SessionShutdown(Payload, kw_only=True):
    """The end of a session, with its usage. ``session_start_time`` is in Unix milliseconds."""

    type: ClassVar[str] = "session.shutdown"
    shutdown_type: Literal["routine", "error"]
    error_reason: str | None = None
    session_start_time: int
    total_api_duration_ms: int
    total_premium_requests: float | None = None
    code_changes: dict[str, Any]
    model_metrics: dict[str, Any]
    current_model: str | None = None
    events_file_size_bytes: int | None = None


class SessionUsageInfo(Payload, kw_only=True):
    type: ClassVar[str] = "session.usage_info"
    persisted: ClassVar[bool] = False
    current_tokens: int
    messages_length: int
    token_limit: int
    system_tokens: int | None = None
    conversation_tokens: int | None = None
    tool_definitions_tokens: int | None = None


class SessionCompactionStart(Payload, kw_only=True):
    """The compaction of the conversation has begun. Sizes are estimates, in tokens."""

    type: ClassVar[str] = "session.compaction_start"
    trigger: str | None = None
    model: str | None = None
    current_tokens: int | None = None
    system_tokens: int | None = None
    conversation_tokens: int | None = None
    tool_definitions_tokens: int | None = None
    token_limit: int | None = None


class CompactionTokensUsed(WireStruct, kw_only=True):
    """The usage of the call for the summary; ``duration`` is in milliseconds.

    SDKs up to 0.2 require ``input``, ``output`` and ``cached_input``, which repeat other fields.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = always(0)
    cache_write_tokens: int = always(0)
    model: str | None = None
    duration: int | None = None
    copilot_usage: CopilotUsage | None = None
    input: int | None = None
    output: int | None = None
    cached_input: int | None = None

    def __post_init__(self) -> None:
        self.input, self.output = self.input_tokens, self.output_tokens
        self.cached_input = self.cache_read_tokens

    def add(self, other: CompactionTokensUsed) -> None:
        """Add the usage of another call."""
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cache_read_tokens += other.cache_read_tokens
        self.cache_write_tokens += other.cache_write_tokens
        self.model = other.model or self.model
        self.duration = (self.duration or 0) + (other.duration or 0)
        if other.copilot_usage is not None:
            so_far = self.copilot_usage.total_nano_aiu if self.copilot_usage else 0
            self.copilot_usage = CopilotUsage(total_nano_aiu=so_far + other.copilot_usage.total_nano_aiu)
        self.__post_init__()


COMPACTION_CANCELLED: Final = "it was cancelled"
"""The ``error`` of a cancelled compaction."""


class SessionCompactionComplete(Payload, kw_only=True):
    """After a ``success``, ``summary_content`` replaces the conversation before the latest
    ``session.compaction_start`` in model requests.
    """

    type: ClassVar[str] = "session.compaction_complete"
    success: bool
    trigger: str | None = None
    error: str | None = None
    status_code: int | None = None
    custom_instructions: str | None = None
    summary_content: str | None = None
    checkpoint_number: int | None = None
    checkpoint_path: str | None = None
    pre_compaction_tokens: int | None = None
    pre_compaction_messages_length: int | None = None
    post_compaction_tokens: int | None = None
    tokens_removed: int | None = None
    messages_removed: int | None = None
    system_tokens: int | None = None
    conversation_tokens: int | None = None
    tool_definitions_tokens: int | None = None
    token_limit: int | None = None
    compaction_tokens_used: CompactionTokensUsed | None = None


class SessionTruncation(Payload, kw_only=True):
    """Results of tools were cleared from the conversation: ``cleared_results`` has, by the id of the call, the line
    that is sent in place of each. No message is removed.
    """

    type: ClassVar[str] = "session.truncation"
    token_limit: int
    pre_truncation_tokens_in_messages: int
    pre_truncation_messages_length: int
    post_truncation_tokens_in_messages: int
    post_truncation_messages_length: int
    tokens_removed_during_truncation: int
    messages_removed_during_truncation: int
    performed_by: str
    cleared_results: dict[str, str]


class PendingMessagesModified(Payload, kw_only=True):
    type: ClassVar[str] = "pending_messages.modified"
    persisted: ClassVar[bool] = False


class Abort(Payload, kw_only=True):
    type: ClassVar[str] = "abort"
    reason: str


# --- messages ---------------------------------------------------------------------------------------------------


class UserMessage(Payload, kw_only=True):
    """``content`` is the prompt as sent, ``transformed_content`` the text that is sent to the model."""

    type: ClassVar[str] = "user.message"
    content: str
    message_id: str
    transformed_content: str | None = None
    attachments: list[dict[str, Any]] | None = None
    agent_mode: AgentMode | None = None
    delivery: Delivery | None = None
    interaction_id: str | None = None
    source: str | None = None
    turn_id: str | None = None
    is_autopilot_continuation: bool | None = None

    @property
    def is_prompt(self) -> bool:
        """Return whether the message begins a run or steers one, rather than adding context to it."""
        return self.source is None or self.interaction_id is not None


class TurnStart(Payload, kw_only=True):
    type: ClassVar[str] = "assistant.turn_start"
    turn_id: str
    interaction_id: str | None = None


ToolsStatus: TypeAlias = Literal["success", "failure", "rejected", "cancelled"]
"""The common status of the tool calls of one answer: ``failure`` if any has failed or was denied."""


class TurnEnd(Payload, kw_only=True):
    """The end of a turn. All tool calls of the answer have their results; ``tools_status`` is their common status.

    ``tools_status`` is an addition of this server, absent if the answer had no calls or the turn was aborted.
    """

    type: ClassVar[str] = "assistant.turn_end"
    turn_id: str
    tools_status: ToolsStatus | None = None


class ReasoningDelta(Payload, kw_only=True):
    type: ClassVar[str] = "assistant.reasoning_delta"
    persisted: ClassVar[bool] = False
    reasoning_id: str
    delta_content: str


class Reasoning(Payload, kw_only=True):
    type: ClassVar[str] = "assistant.reasoning"
    reasoning_id: str
    content: str


class MessageStart(Payload, kw_only=True):
    type: ClassVar[str] = "assistant.message_start"
    persisted: ClassVar[bool] = False
    message_id: str


class MessageDelta(Payload, kw_only=True):
    type: ClassVar[str] = "assistant.message_delta"
    persisted: ClassVar[bool] = False
    message_id: str
    delta_content: str
    parent_tool_call_id: str | None = None


class ToolCallDelta(Payload, kw_only=True):
    type: ClassVar[str] = "assistant.tool_call_delta"
    persisted: ClassVar[bool] = False
    tool_call_id: str
    input_delta: str
    tool_name: str | None = None


class ToolRequest(WireStruct, kw_only=True):
    """A tool call in an assistant message.

    ``arguments`` is the parsed object. ``arguments_json`` is the model's own text, which is sent back to it; it is
    set only if compact JSON of ``arguments`` would differ.
    """

    tool_call_id: str
    name: str
    arguments: Any = None
    arguments_json: str | None = None
    type: Literal["function", "custom"] = always("function")
    intention_summary: str | None = None
    mcp_server_name: str | None = None
    mcp_tool_name: str | None = None


class CitationSource(WireStruct, kw_only=True):
    id: str
    provider: Literal["anthropic", "openai", "client"]
    title: str | None = None
    url: str | None = None


class CitationReference(WireStruct, kw_only=True):
    """``location`` is the position in a document: ``{type: char | page | block, start..., end...}``."""

    source_id: str
    cited_text: str | None = None
    location: dict[str, Any] | None = None


class CitationSpan(WireStruct, kw_only=True):
    """The span of the content that the references support, in characters, without the one at the end index."""

    start_index: int
    end_index: int
    references: list[CitationReference]


class Citations(WireStruct, kw_only=True):
    sources: list[CitationSource]
    spans: list[CitationSpan]


class AssistantMessage(Payload, kw_only=True):
    """``provider_blocks`` holds content for the provider of the message only, such as signed reasoning.

    ``interrupted`` marks what was shown of an answer before it was aborted (``keepInterruptedAnswers``).
    """

    type: ClassVar[str] = "assistant.message"
    message_id: str
    content: str
    tool_requests: list[ToolRequest] = field(default_factory=list[ToolRequest])
    model: str | None = None
    turn_id: str | None = None
    interaction_id: str | None = None
    output_tokens: int | None = None
    reasoning_text: str | None = None
    citations: Citations | None = None
    provider_blocks: list[dict[str, Any]] | None = None
    originating_message_id: str | None = None
    interrupted: bool | None = None
    parent_tool_call_id: str | None = None


class AgentInterrupted(Payload, kw_only=True):
    """A user has interrupted the agent. ``turn`` and ``elapsed_ms`` are those of the interrupted turn.

    The names and ids are those of the tool calls that were running. Both numbers are 0 for ``background_agent``:
    only sub-agents in the background were ended.
    """

    type: ClassVar[str] = "agent.interrupted"
    persisted: ClassVar[bool] = False
    activity: Literal["model_call", "tool_call", "background_agent"]
    turn: int
    elapsed_ms: int
    model: str | None = None
    tool_call_ids: list[str] | None = None
    tool_names: list[str] | None = None
    interrupted_agent_count: int | None = None


class AssistantIdle(Payload, kw_only=True):
    type: ClassVar[str] = "assistant.idle"
    persisted: ClassVar[bool] = False
    aborted: bool | None = None


class CopilotUsage(WireStruct, kw_only=True):
    """The credits that a call used of a Copilot plan, in 10^-9. SDKs up to 0.3 require ``token_details``."""

    total_nano_aiu: int
    token_details: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class AssistantUsage(Payload, kw_only=True):
    """The usage of one model call; ``duration`` is in milliseconds.

    ``cost`` counts premium requests of a Copilot plan. ``cost_usd`` is as the provider reports it, or computed from
    known prices.
    """

    type: ClassVar[str] = "assistant.usage"
    persisted: ClassVar[bool] = False
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int | None = None
    cost: float | None = None
    cost_usd: float | None = None
    duration: int
    time_to_first_token_ms: int | None = None
    initiator: str | None = None
    finish_reason: str | None = None
    content_filter_triggered: bool | None = None
    num_tool_calls: int | None = None
    is_byok: bool | None = None
    copilot_usage: CopilotUsage | None = None
    parent_tool_call_id: str | None = None


class ModelCallFailure(Payload, kw_only=True):
    type: ClassVar[str] = "model.call_failure"
    persisted: ClassVar[bool] = False
    source: Literal["top_level", "subagent", "mcp_sampling"]
    model: str | None = None
    status_code: int | None = None
    error_code: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    duration_ms: int | None = None


# --- tools ------------------------------------------------------------------------------------------------------


class ShellToolInfo(WireStruct, kw_only=True):
    possible_paths: list[str]
    has_write_file_redirection: bool


class ToolExecutionStart(Payload, kw_only=True):
    type: ClassVar[str] = "tool.execution_start"
    tool_call_id: str
    tool_name: str
    arguments: Any = None
    turn_id: str | None = None
    shell_tool_info: ShellToolInfo | None = None
    mcp_server_name: str | None = None
    mcp_tool_name: str | None = None
    parent_tool_call_id: str | None = None


class ToolExecutionPartialResult(Payload, kw_only=True):
    type: ClassVar[str] = "tool.execution_partial_result"
    persisted: ClassVar[bool] = False
    tool_call_id: str
    partial_output: str


class ToolExecutionProgress(Payload, kw_only=True):
    type: ClassVar[str] = "tool.execution_progress"
    persisted: ClassVar[bool] = False
    tool_call_id: str
    progress_message: str


class BinaryResult(WireStruct, kw_only=True):
    data: str
    mime_type: str
    description: str | None = None
    type: Literal["image", "resource"] = always("image")


class ToolResult(WireStruct, kw_only=True):
    """``content`` is for the model, ``detailed_content`` for the user only."""

    content: str
    detailed_content: str | None = None
    binary_results_for_llm: list[BinaryResult] | None = None


class ToolError(WireStruct, kw_only=True):
    message: str
    code: str | None = None


class ToolExecutionComplete(Payload, kw_only=True):
    """The only result of a call. A failed call has a ``result``, too, if the model is sent another text.

    ``effective_arguments`` are set if a hook or the user changed the arguments. Later model requests show them in
    place of the model's own.
    """

    type: ClassVar[str] = "tool.execution_complete"
    tool_call_id: str
    success: bool
    result: ToolResult | None = None
    error: ToolError | None = None
    effective_arguments: dict[str, Any] | None = None
    tool_telemetry: dict[str, Any] | None = None
    session_log: str | None = None
    turn_id: str | None = None
    interaction_id: str | None = None
    sandboxed: bool | None = None
    parent_tool_call_id: str | None = None
    is_user_requested: bool | None = None


class SessionScheduleCreated(Payload, kw_only=True):
    """A scheduled prompt: at an interval, at a time (ms since the epoch), by cron, or paced by the model."""

    type: ClassVar[str] = "session.schedule_created"
    id: int
    prompt: str
    display_prompt: str | None = None
    interval_ms: int | None = None
    at: int | None = None
    cron: str | None = None
    tz: str | None = None
    recurring: bool | None = None
    self_paced: bool | None = None


class SessionScheduleCancelled(Payload, kw_only=True):
    """A scheduled prompt was stopped, or has run for the last time."""

    type: ClassVar[str] = "session.schedule_cancelled"
    id: int


class SessionScheduleRearmed(Payload, kw_only=True):
    """The next run of a prompt that the model paces, in ms since the epoch."""

    type: ClassVar[str] = "session.schedule_rearmed"
    id: int
    next_run_at: int


class ToolUserRequested(Payload, kw_only=True):
    """The user runs a command, which the model learns with the next prompt."""

    type: ClassVar[str] = "tool.user_requested"
    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any]


class EphemeralQuery(Payload, kw_only=True):
    """A question beside the conversation: ``chunk`` is a part of the answer, ``answer`` the whole at the end."""

    type: ClassVar[str] = "ui.ephemeral_query"
    persisted: ClassVar[bool] = False
    request_id: str
    phase: Literal["started", "chunk", "completed"]
    chunk: str | None = None
    answer: str | None = None


class ToolSearchActivated(Payload, kw_only=True):
    """These tools, which were left out of model requests, are included from now on."""

    type: ClassVar[str] = "tool_search.activated"
    strategy: str
    tool_names: list[str]


class PermissionRequested(Payload, kw_only=True):
    type: ClassVar[str] = "permission.requested"
    request_id: str
    permission_request: PermissionRequest
    prompt_request: dict[str, Any] | None = None
    resolved_by_hook: bool | None = None


class PermissionCompleted(Payload, kw_only=True):
    """``decided_by`` is set if a client has decided; the SDKs ignore it."""

    type: ClassVar[str] = "permission.completed"
    request_id: str
    result: PermissionResult
    tool_call_id: str | None = None
    decided_by: DecidedBy | None = None


class ExternalToolRequested(Payload, kw_only=True):
    type: ClassVar[str] = "external_tool.requested"
    request_id: str
    session_id: str
    tool_call_id: str
    tool_name: str
    arguments: Any = None
    working_directory: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None


class ExternalToolCompleted(Payload, kw_only=True):
    type: ClassVar[str] = "external_tool.completed"
    request_id: str


class HookStart(Payload, kw_only=True):
    type: ClassVar[str] = "hook.start"
    hook_invocation_id: str
    hook_type: str


class HookError(WireStruct, kw_only=True):
    message: str


class HookEnd(Payload, kw_only=True):
    type: ClassVar[str] = "hook.end"
    hook_invocation_id: str
    hook_type: str
    success: bool
    error: HookError | None = None


class UserInputRequested(Payload, kw_only=True):
    type: ClassVar[str] = "user_input.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    question: str
    choices: list[str] | None = None
    allow_freeform: bool | None = None
    tool_call_id: str | None = None


class UserInputCompleted(Payload, kw_only=True):
    type: ClassVar[str] = "user_input.completed"
    persisted: ClassVar[bool] = False
    request_id: str
    answer: str | None = None
    was_freeform: bool | None = None


class ExitPlanModeRequested(Payload, kw_only=True):
    """``plan_content`` is the content of the plan file, empty if there is none."""

    type: ClassVar[str] = "exit_plan_mode.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    summary: str
    plan_content: str
    actions: list[PlanAction]
    recommended_action: PlanAction


class ExitPlanModeCompleted(Payload, kw_only=True):
    """``approved`` is unset if the request ended without an answer."""

    type: ClassVar[str] = "exit_plan_mode.completed"
    persisted: ClassVar[bool] = False
    request_id: str
    approved: bool | None = None
    selected_action: PlanAction | None = None
    auto_approve_edits: bool | None = None
    feedback: str | None = None


AutoModeSwitchAnswer: TypeAlias = Literal["yes", "yes_always", "no"]


class AutoModeSwitchRequested(Payload, kw_only=True):
    """The model is rate limited, and the provider offers to choose another one. ``error_code`` is the provider's.

    The seconds are an integer, because SDKs up to 1.0.6 cannot decode fractions.
    """

    type: ClassVar[str] = "auto_mode_switch.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    error_code: str | None = None
    retry_after_seconds: int | None = None


class AutoModeSwitchCompleted(Payload, kw_only=True):
    type: ClassVar[str] = "auto_mode_switch.completed"
    persisted: ClassVar[bool] = False
    request_id: str
    response: AutoModeSwitchAnswer


class ElicitationRequested(Payload, kw_only=True):
    type: ClassVar[str] = "elicitation.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    message: str
    mode: Literal["form", "url"] | None = None
    requested_schema: dict[str, Any] | None = None
    elicitation_source: str | None = None
    url: str | None = None


class ElicitationCompleted(Payload, kw_only=True):
    type: ClassVar[str] = "elicitation.completed"
    persisted: ClassVar[bool] = False
    request_id: str
    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, Any] | None = None


class CanvasActionInfo(WireStruct, kw_only=True):
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class CanvasInfo(WireStruct, kw_only=True):
    """A canvas that a client provides; ``extension_id`` names the provider."""

    extension_id: str
    canvas_id: str
    display_name: str
    description: str
    extension_name: str | None = None
    input_schema: dict[str, Any] | None = None
    actions: list[CanvasActionInfo] | None = None


class SessionCanvasRegistryChanged(Payload, kw_only=True):
    """The canvases of all attached clients, after they changed."""

    type: ClassVar[str] = "session.canvas.registry_changed"
    persisted: ClassVar[bool] = False
    canvases: list[CanvasInfo]


class SessionCanvasOpened(Payload, kw_only=True):
    type: ClassVar[str] = "session.canvas.opened"
    persisted: ClassVar[bool] = False
    instance_id: str
    extension_id: str
    canvas_id: str
    extension_name: str | None = None
    title: str | None = None
    status: str | None = None
    url: str | None = None
    input: Any = None


class SessionCanvasRecorded(Payload, kw_only=True):
    """An open instance, from which a resumed session opens the canvas again."""

    type: ClassVar[str] = "session.canvas.recorded"
    instance_id: str
    extension_id: str
    canvas_id: str
    title: str | None = None
    input: Any = None


class SessionCanvasClosed(Payload, kw_only=True):
    type: ClassVar[str] = "session.canvas.closed"
    persisted: ClassVar[bool] = False
    instance_id: str
    extension_id: str
    canvas_id: str


class SessionCanvasRemoved(Payload, kw_only=True):
    type: ClassVar[str] = "session.canvas.removed"
    instance_id: str
    extension_id: str
    canvas_id: str


class SessionCanvasUnavailable(Payload, kw_only=True):
    """The provider of an open instance has left. ``session.canvas.opened`` follows if the provider returns."""

    type: ClassVar[str] = "session.canvas.unavailable"
    persisted: ClassVar[bool] = False
    instance_id: str
    extension_id: str
    canvas_id: str


class UiChanges(WireStruct, kw_only=True):
    elicitation: bool
    canvases: bool | None = None


class CapabilitiesChanged(Payload, kw_only=True):
    """The combined capabilities of the attached clients, after one was attached or detached."""

    type: ClassVar[str] = "capabilities.changed"
    persisted: ClassVar[bool] = False
    ui: UiChanges


class CommandQueued(Payload, kw_only=True):
    """A queued command is due. A client that has registered interest has to run it."""

    type: ClassVar[str] = "command.queued"
    persisted: ClassVar[bool] = False
    request_id: str
    command: str


class CommandExecute(Payload, kw_only=True):
    """A command is due that the receiving client has to run."""

    type: ClassVar[str] = "command.execute"
    persisted: ClassVar[bool] = False
    request_id: str
    command: str
    command_name: str
    args: str


class CommandCompleted(Payload, kw_only=True):
    """A queued command has ended, or no longer needs a client."""

    type: ClassVar[str] = "command.completed"
    persisted: ClassVar[bool] = False
    request_id: str


class CommandInfo(WireStruct, kw_only=True):
    name: str
    description: str | None = None


class SessionToolsUpdated(Payload, kw_only=True):
    """The tools of the attached clients have changed. ``model`` is the one that they are offered to."""

    type: ClassVar[str] = "session.tools_updated"
    persisted: ClassVar[bool] = False
    model: str


class CommandsChanged(Payload, kw_only=True):
    """The commands of all attached clients, after one was attached or detached."""

    type: ClassVar[str] = "commands.changed"
    persisted: ClassVar[bool] = False
    commands: list[CommandInfo]


# --- MCP --------------------------------------------------------------------------------------------------------


class McpLoadedServer(WireStruct, kw_only=True):
    name: str
    status: str
    source: str | None = None
    transport: str | None = None
    plugin_name: str | None = None
    error: str | None = None


class McpServersLoaded(Payload, kw_only=True):
    """All servers that the session began with have started or failed."""

    type: ClassVar[str] = "session.mcp_servers_loaded"
    persisted: ClassVar[bool] = False
    servers: list[McpLoadedServer]


class McpServerStatusChanged(Payload, kw_only=True):
    type: ClassVar[str] = "session.mcp_server_status_changed"
    persisted: ClassVar[bool] = False
    server_name: str
    status: str
    error: str | None = None


class McpToolsListChanged(Payload, kw_only=True):
    type: ClassVar[str] = "mcp.tools.list_changed"
    persisted: ClassVar[bool] = False
    server_name: str


class McpResourcesListChanged(Payload, kw_only=True):
    type: ClassVar[str] = "mcp.resources.list_changed"
    persisted: ClassVar[bool] = False
    server_name: str


class McpPromptsListChanged(Payload, kw_only=True):
    type: ClassVar[str] = "mcp.prompts.list_changed"
    persisted: ClassVar[bool] = False
    server_name: str


class McpOauthRequired(Payload, kw_only=True):
    """A server requires a token, which a client that has registered interest has to provide.

    ``resource_metadata`` is the metadata that the server publishes, as JSON text.
    """

    type: ClassVar[str] = "mcp.oauth_required"
    persisted: ClassVar[bool] = False
    request_id: str
    server_name: str
    server_url: str
    reason: Literal["initial", "refresh", "reauth", "upscope"]
    www_authenticate_params: dict[str, str] | None = None
    resource_metadata: str | None = None
    static_client_config: dict[str, Any] | None = None


class McpOauthCompleted(Payload, kw_only=True):
    type: ClassVar[str] = "mcp.oauth_completed"
    persisted: ClassVar[bool] = False
    request_id: str
    outcome: Literal["token", "cancelled"]


class McpHeadersRefreshRequired(Payload, kw_only=True):
    """A server requires headers, which a client that has registered interest has to provide."""

    type: ClassVar[str] = "mcp.headers_refresh_required"
    persisted: ClassVar[bool] = False
    request_id: str
    server_name: str
    server_url: str
    reason: Literal["startup", "ttl-expired", "auth-failed"]


class McpHeadersRefreshCompleted(Payload, kw_only=True):
    type: ClassVar[str] = "mcp.headers_refresh_completed"
    persisted: ClassVar[bool] = False
    request_id: str
    outcome: Literal["headers", "none", "timeout"]


class SamplingRequested(Payload, kw_only=True):
    """A server requests a response of a model. ``request`` has the form of MCP's sampling params."""

    type: ClassVar[str] = "sampling.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    server_name: str
    mcp_request_id: Any
    request: dict[str, Any] | None = None


class SamplingCompleted(Payload, kw_only=True):
    type: ClassVar[str] = "sampling.completed"
    persisted: ClassVar[bool] = False
    request_id: str


class UnknownPayload(Struct, kw_only=True):
    """An event of another version, read from a log. It is passed on unchanged."""

    type: str
    data: dict[str, Any]
    persisted: bool = True


EventPayload: TypeAlias = (
    SessionStart
    | SessionResume
    | SessionError
    | SessionWarning
    | SessionInfo
    | SessionIdle
    | SessionModelChange
    | SessionModeChanged
    | SessionTaskComplete
    | SessionAutopilotStopped
    | SessionAutopilotObjectiveChanged
    | SessionTitleChanged
    | SessionPermissionsChanged
    | SessionManagedSettingsResolved
    | SessionManagedSettingsEnforced
    | SessionPlanChanged
    | SessionTodosChanged
    | SkillInvoked
    | SubagentSelected
    | SubagentDeselected
    | SubagentStarted
    | SubagentConfigured
    | SubagentCompleted
    | SubagentFailed
    | BackgroundTasksChanged
    | SystemNotification
    | SessionSkillsLoaded
    | SessionWorkspaceFileChanged
    | SessionContextChanged
    | SessionRemoteSteerableChanged
    | SessionSnapshotRewind
    | SessionChangesUndone
    | SessionContextCleared
    | SessionShutdown
    | SessionUsageInfo
    | SessionCompactionStart
    | SessionCompactionComplete
    | SessionTruncation
    | PendingMessagesModified
    | Abort
    | UserMessage
    | TurnStart
    | TurnEnd
    | ReasoningDelta
    | Reasoning
    | MessageStart
    | MessageDelta
    | ToolCallDelta
    | AssistantMessage
    | AgentInterrupted
    | AssistantIdle
    | AssistantUsage
    | ModelCallFailure
    | ToolExecutionStart
    | ToolExecutionPartialResult
    | ToolExecutionProgress
    | ToolExecutionComplete
    | ToolSearchActivated
    | ToolUserRequested
    | SessionScheduleCreated
    | SessionScheduleCancelled
    | SessionScheduleRearmed
    | EphemeralQuery
    | PermissionRequested
    | PermissionCompleted
    | ExternalToolRequested
    | ExternalToolCompleted
    | HookStart
    | HookEnd
    | UserInputRequested
    | UserInputCompleted
    | ExitPlanModeRequested
    | ExitPlanModeCompleted
    | AutoModeSwitchRequested
    | AutoModeSwitchCompleted
    | ElicitationRequested
    | ElicitationCompleted
    | CapabilitiesChanged
    | SessionCanvasRegistryChanged
    | SessionCanvasOpened
    | SessionCanvasRecorded
    | SessionCanvasClosed
    | SessionCanvasRemoved
    | SessionCanvasUnavailable
    | CommandQueued
    | CommandExecute
    | CommandCompleted
    | SessionToolsUpdated
    | CommandsChanged
    | McpServersLoaded
    | McpServerStatusChanged
    | McpToolsListChanged
    | McpResourcesListChanged
    | McpPromptsListChanged
    | McpOauthRequired
    | McpOauthCompleted
    | McpHeadersRefreshRequired
    | McpHeadersRefreshCompleted
    | SamplingRequested
    | SamplingCompleted
)

EVENT_TYPES: Final[Mapping[str, type[Payload]]] = {cls.type: cls for cls in get_args(EventPayload)}
"""The payload class of every known event, by wire name."""


def decode_json(kind: str, data: bytes | memoryview | Raw) -> EventPayload | UnknownPayload:
    """Decode a payload from JSON, like :func:`decode_payload`; other values than objects count as empty ones.

    Raises:
        orjson.JSONDecodeError: the data are no JSON.
    """
    if (cls := EVENT_TYPES.get(kind)) is not None:
        try:
            return cast("EventPayload", msgspec.json.decode(data, type=cls, dec_hook=model_of_wire))
        except (DecodeError, UnicodeDecodeError, RecursionError):
            # Decoded again below, as leniently as possible.
            pass
    return decode_payload(kind, orjson.loads(bytes(data)))


def decode_payload(kind: str, data: Any) -> EventPayload | UnknownPayload:
    """Decode a payload from JSON values; an unknown or invalid one becomes an :class:`UnknownPayload`."""
    values: dict[str, Any] = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    cls = EVENT_TYPES.get(kind)
    if cls is not None:
        try:
            return cast("EventPayload", from_wire(values, cls))
        except ValidationError:
            # `null` means the same as absent.
            present = {name: value for name, value in values.items() if value is not None}
        with suppress(ValidationError):
            return cast("EventPayload", from_wire(present, cls))
    return UnknownPayload(type=kind, data=values)
