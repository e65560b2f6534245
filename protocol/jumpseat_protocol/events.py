"""Session events, which clients receive and the session's log stores, one per line.

Every event is an envelope (:class:`Event`) around one payload. The payloads are a closed union of structs;
each has its wire name and whether it is persisted. The fields are those of the Copilot SDK's generated
event types.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast, get_args

import msgspec.json
import orjson
from msgspec import DecodeError, Raw, Struct, ValidationError, field

from jumpseat_protocol.permissions import DecidedBy, Decider, PermissionRequest, PermissionResult
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
    """The id of the event."""
    timestamp: str
    """When it happened, in ISO 8601."""
    parent_id: str | None
    """The last persisted event before this one."""
    type: str
    payload: EventPayload = field(name="data")
    """What happened."""
    ephemeral: bool = False
    """Set for an event that is not stored."""
    agent_id: str | None = None
    """The sub-agent that the event belongs to."""
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
    """The working directory of a session, and its repository."""

    cwd: str
    git_root: str | None = None
    branch: str | None = None
    repository: str | None = None


class SessionLimits(WireStruct, kw_only=True):
    """The limits on the usage of a session."""

    max_ai_credits: float | None = None
    """The most AI credits of a Copilot plan that the session may use."""


class SandboxState(WireStruct, kw_only=True):
    """The sandbox of a session. ``mechanism`` is known after the first command of the process: ``none`` if no
    mechanism works on this system.
    """

    mode: Literal["auto", "require"]
    """Whether commands may run without a sandbox where none works (``auto``), or are refused (``require``)."""
    mechanism: str | None = None
    """The mechanism that confines commands: ``bubblewrap``, ``landlock``, ``seatbelt`` or ``none``."""


class SessionStart(Payload, kw_only=True):
    """The first event of a session."""

    type: ClassVar[str] = "session.start"
    session_id: str
    version: int
    """The version of the log's format."""
    producer: str
    """The program that wrote the log."""
    copilot_version: str
    """The version of that program."""
    start_time: str
    """When the session was created, in ISO 8601."""
    selected_model: str | None = None
    """The id of the model that the session begins with, if one was chosen."""
    reasoning_effort: str | None = None
    session_limits: SessionLimits | None = None
    """The limits on the session's usage."""
    context: WorkingDirectoryContext | None = None
    """Where the session works."""
    already_in_use: bool | None = None
    """Whether another process had the session open."""
    github_mcp_tool_config: dict[str, Any] | None = None
    """The tools of GitHub's MCP server that the session offers."""
    sandbox: SandboxState | None = None
    """How commands are confined."""


class SessionResume(Payload, kw_only=True):
    """The session was opened again."""

    type: ClassVar[str] = "session.resume"
    resume_time: str
    """When the session was resumed, in ISO 8601."""
    event_count: int
    """How many events the log had."""
    events_file_size_bytes: int | None = None
    """The size of the log in bytes."""
    continue_pending_work: bool | None = None
    """Whether work that was interrupted goes on."""
    session_was_active: bool | None = None
    """Whether the session was open when it was resumed."""
    selected_model: str | None = None
    """The id of the model that the session goes on with."""
    reasoning_effort: str | None = None
    session_limits: SessionLimits | None = None
    """The limits on the session's usage."""
    context: WorkingDirectoryContext | None = None
    """Where the session works."""


FAILED: Final = "Execution failed: "
"""The first words of the message of a run that has failed, which clients of the protocol may expect."""


class SessionError(Payload, kw_only=True):
    """A prompt has failed."""

    type: ClassVar[str] = "session.error"
    error_type: str
    """The kind of error, such as ``authentication`` or ``rate_limit``."""
    message: str
    """What went wrong and what to do, for people."""
    status_code: int | None = None
    """The HTTP status of the provider, if it answered."""
    error_code: str | None = None
    """The provider's own code of the error."""
    url: str | None = None
    originating_message_id: str | None = None
    """The id of the prompt that failed."""

    @property
    def reason(self) -> str:
        """The message for people who know already that something has failed."""
        return self.message.removeprefix(FAILED)


class SessionWarning(Payload, kw_only=True):
    """Something that people should know."""

    type: ClassVar[str] = "session.warning"
    warning_type: str
    """The kind of warning."""
    message: str
    """The warning, for people."""
    url: str | None = None


class SessionInfo(Payload, kw_only=True):
    """A notice for people."""

    type: ClassVar[str] = "session.info"
    info_type: str
    """The kind of notice."""
    message: str
    """The notice, for people."""
    url: str | None = None
    tip: str | None = None
    """What people can do with it."""


class SessionIdle(Payload, kw_only=True):
    """The session has nothing to do any more."""

    type: ClassVar[str] = "session.idle"
    persisted: ClassVar[bool] = False
    mode: SessionMode
    """The mode of the session."""
    aborted: bool | None = None
    """Whether the last prompt was aborted."""


class SessionModelChange(Payload, kw_only=True):
    """The model was changed."""

    type: ClassVar[str] = "session.model_change"
    new_model: str
    """The id of the model that is used from now on."""
    previous_model: str | None = None
    """The id of the model that was used before."""
    reasoning_effort: str | None = None
    source: str | None = None
    """Where the change came from."""
    cause: str | None = None
    """Why the model was changed."""


class SessionModeChanged(Payload, kw_only=True):
    """The mode was changed."""

    type: ClassVar[str] = "session.mode_changed"
    new_mode: SessionMode
    """The mode from now on."""
    previous_mode: SessionMode
    """The mode before."""


class SessionTaskComplete(Payload, kw_only=True):
    """The model has called ``task_complete``."""

    type: ClassVar[str] = "session.task_complete"
    summary: str | None = None
    """What was done, in the model's words."""
    success: bool | None = None
    objective_id: int | None = None
    """The number of the objective that is completed."""


class SessionAutopilotStopped(Payload, kw_only=True):
    """A prompt in autopilot mode is not continued. ``request_id`` is the message id of the prompt.

    ``reason`` is ``completed``, ``limit`` (on continuations), ``disabled``, ``rejected``, ``aborted`` or ``error``.
    """

    type: ClassVar[str] = "session.autopilot_stopped"
    persisted: ClassVar[bool] = False
    reason: str
    """Why: ``completed``, ``limit``, ``disabled``, ``rejected``, ``aborted`` or ``error``."""
    request_id: str | None = None


class SessionAutopilotObjectiveChanged(Payload, kw_only=True):
    """The objective of autopilot has changed."""

    type: ClassVar[str] = "session.autopilot_objective_changed"
    operation: Literal["create", "update", "delete"]
    """What was done with the objective."""
    id: int | None = None
    """The number of the objective."""
    status: Literal["active", "paused", "cap_reached", "completed"] | None = None
    """The state of the objective."""


class SessionTitleChanged(Payload, kw_only=True):
    """The title of the session has changed."""

    type: ClassVar[str] = "session.title_changed"
    persisted: ClassVar[bool] = False
    title: str


class SessionPermissionsChanged(Payload, kw_only=True):
    """The new and the previous mode. SDK 1.0.6 requires the fields with ``allow_all``, newer ones use ``mode``."""

    type: ClassVar[str] = "session.permissions_changed"
    mode: str
    """The mode of approvals from now on."""
    previous_mode: str
    """The mode of approvals before."""
    allow_all_permissions: bool
    """Whether everything is approved from now on."""
    previous_allow_all_permissions: bool
    """Whether everything was approved before."""
    assisted_approval_model: str | None = None
    """The id of the model that recommends decisions."""


class SessionManagedSettingsResolved(Payload, kw_only=True):
    """The policy that hosts have set for the session. ``settings`` is what is enforced of all of them.

    With ``permissions_allow_intersected``, several hosts list what is allowed, and each of them has to.
    """

    type: ClassVar[str] = "session.managed_settings_resolved"
    persisted: ClassVar[bool] = False
    source: Literal["client", "none"]
    """Whether a client has set the policy."""
    managed_keys: list[str]
    """The names of the settings that the policy decides."""
    settings: dict[str, Any] | None = None
    """What is enforced."""
    bypass_permissions_disabled: bool
    """Whether approving everything is forbidden."""
    client_managed: bool
    """Whether the policy came from a client."""
    permissions_allow_intersected: bool
    """Whether several hosts list what is allowed, so that all of them have to allow it."""
    device_managed: bool = always(False)
    """Whether the policy came from the management of the device."""
    server_managed: bool = always(False)
    """Whether the policy came from a server of the host."""
    fail_closed: bool = always(False)
    """Whether the policy could not be read, so that everything it might forbid is refused."""


PermissionEscalation: TypeAlias = Literal[
    "allow_all", "approve_all", "assisted_approval", "unrestricted_paths", "unrestricted_urls"
]


class SessionManagedSettingsEnforced(Payload, kw_only=True):
    """A client was refused an ``escalation`` that the ``setting`` of a host's policy forbids."""

    type: ClassVar[str] = "session.managed_settings_enforced"
    persisted: ClassVar[bool] = False
    setting: str
    """The setting that forbids it."""
    escalation: PermissionEscalation
    """What the client asked for."""
    message: str
    """What was refused, for people."""
    action: Literal["bypass_permissions_blocked"] = always("bypass_permissions_blocked")
    """What the server did."""
    fail_closed: bool = always(False)
    """Whether it was refused because the policy could not be read."""


class SessionPlanChanged(Payload, kw_only=True):
    """The plan has changed."""

    type: ClassVar[str] = "session.plan_changed"
    operation: Literal["create", "update", "delete"]
    """What was done with the plan."""


class SessionTodosChanged(Payload, kw_only=True):
    """The model has changed its todos, which ``session.plan.readSqlTodos`` returns."""

    type: ClassVar[str] = "session.todos_changed"
    persisted: ClassVar[bool] = False


class SkillInvoked(Payload, kw_only=True):
    """A skill was invoked. ``content`` was sent to the model; ``path`` is the file of the skill."""

    type: ClassVar[str] = "skill.invoked"
    name: str
    """The name of the skill."""
    path: str
    """The file of the skill."""
    content: str
    """The text that was sent to the model."""
    description: str | None = None
    source: str | None = None
    """Where the skill comes from, such as ``project`` or ``user``."""
    plugin_name: str | None = None
    """The plugin that brings the skill."""
    plugin_version: str | None = None
    """The version of that plugin."""
    trigger: Literal["user-invoked", "agent-invoked", "context-load"] | None = None
    """Who invoked it."""
    allowed_tools: list[str] | None = None
    """The tools that the skill may use without a question."""


class SubagentSelected(Payload, kw_only=True):
    """A custom agent was selected. ``tools`` of ``null`` means all."""

    type: ClassVar[str] = "subagent.selected"
    agent_name: str
    agent_display_name: str
    tools: list[str] | None = always(None)
    """The tools that it may use, or all of them if ``null``."""


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
    """What the sub-agent is for."""
    model: str | None = None
    """The id of its model."""
    agent_type: str | None = None
    """The name of its type."""
    execution_mode: Literal["sync", "background"] | None = None
    """Whether its call waits for it."""
    resumable: bool | None = None
    """Whether it takes further prompts."""
    parent_id: str | None = None
    """The id of the agent that started it, if that is a sub-agent."""


class SubagentConfigured(Payload, kw_only=True):
    """``model`` is ``default`` if the provider chooses it; logs of older versions may lack it."""

    type: ClassVar[str] = "subagent.configured"
    model: str | None = None
    """The id of its model, or ``default``."""
    reasoning_effort: str | None = None
    multi_turn: bool | None = None
    """Whether it takes further prompts."""


class SubagentCompleted(Payload, kw_only=True):
    """A sub-agent has answered its first prompt, or was cancelled. ``total_tokens`` are input and output tokens."""

    type: ClassVar[str] = "subagent.completed"
    tool_call_id: str
    agent_name: str
    agent_display_name: str
    model: str | None = None
    """The id of its model."""
    cancelled: bool | None = None
    """Whether it was cancelled."""
    total_tool_calls: int | None = None
    """How many tools it has called."""
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
    """The id of its model."""
    total_tool_calls: int | None = None
    """How many tools it has called."""
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
    """The text that the model reads."""
    kind: dict[str, Any]


class LoadedSkill(WireStruct, kw_only=True):
    """A list entry for a skill. ``command_name`` is its slash command, without the slash, if users may call it."""

    name: str
    """The name of the skill."""
    description: str
    source: str
    """Where the skill comes from, such as ``project`` or ``user``."""
    user_invocable: bool
    """Whether people may invoke it by a slash command."""
    enabled: bool
    path: str
    """The file of the skill."""
    argument_hint: str | None = None
    """What to write behind the slash command."""
    command_name: str | None = None
    """The slash command, without the slash."""


class SessionSkillsLoaded(Payload, kw_only=True):
    """The skills of the session, after a search for skills."""

    type: ClassVar[str] = "session.skills_loaded"
    persisted: ClassVar[bool] = False
    skills: list[LoadedSkill]
    """The skills."""


class SessionWorkspaceFileChanged(Payload, kw_only=True):
    """One of the session's own files has changed."""

    type: ClassVar[str] = "session.workspace_file_changed"
    operation: Literal["create", "update"]
    """What was done with the file."""
    path: str
    """The path of the file in the session's workspace."""


class SessionContextChanged(Payload, kw_only=True):
    """The working directory or its git state has changed."""

    type: ClassVar[str] = "session.context_changed"
    cwd: str
    git_root: str | None = None
    branch: str | None = None
    repository: str | None = None
    repository_host: str | None = None
    """The host of the repository, such as ``github.com``."""
    host_type: str | None = None
    """The kind of that host."""
    head_commit: str | None = None
    """The hash of the commit that is checked out."""
    base_commit: str | None = None
    """The hash of the commit that the branch started from."""


class SessionRemoteSteerableChanged(Payload, kw_only=True):
    """The permission of other devices to send prompts has changed."""

    type: ClassVar[str] = "session.remote_steerable_changed"
    remote_steerable: bool
    """Whether other devices may send prompts."""


class SessionSnapshotRewind(Payload, kw_only=True):
    """``up_to_event_id`` is the first of the removed events."""

    type: ClassVar[str] = "session.snapshot_rewind"
    persisted: ClassVar[bool] = False
    events_removed: int
    """How many events were removed."""
    up_to_event_id: str
    """The id of the first event that was removed."""


class SessionChangesUndone(Payload, kw_only=True):
    """Changes of files were taken back."""

    type: ClassVar[str] = "session.changes_undone"
    persisted: ClassVar[bool] = False
    undone: list[str]
    """The files that are as before."""
    left: list[str]
    """The files that were not touched."""


class SessionContextCleared(Payload, kw_only=True):
    """The conversation was removed from the model's context; ``initial_message`` begins the new one."""

    type: ClassVar[str] = "session.context_cleared"
    initial_message: str
    """The prompt that begins the new conversation."""
    messages_cleared: int
    """How many messages were removed."""


class SessionShutdown(Payload, kw_only=True):
    """The end of a session, with its usage. ``session_start_time`` is in Unix milliseconds."""

    type: ClassVar[str] = "session.shutdown"
    shutdown_type: Literal["routine", "error"]
    """Whether the session ended as usual or by an error."""
    error_reason: str | None = None
    """The error that ended it."""
    session_start_time: int
    """When the session was created, in ms since the epoch."""
    total_api_duration_ms: int
    """How long model calls took in all, in milliseconds."""
    total_premium_requests: float | None = None
    """The premium requests of a Copilot plan that were used."""
    code_changes: dict[str, Any]
    """Lines added and removed, and the files that were changed."""
    model_metrics: dict[str, Any]
    """Requests and tokens by model."""
    current_model: str | None = None
    """The id of the last model."""
    events_file_size_bytes: int | None = None
    """The size of the log in bytes."""


class SessionUsageInfo(Payload, kw_only=True):
    """The parts of the context, in tokens."""

    type: ClassVar[str] = "session.usage_info"
    persisted: ClassVar[bool] = False
    current_tokens: int
    """The tokens of the whole context."""
    messages_length: int
    """How many messages the context has."""
    token_limit: int
    system_tokens: int | None = None
    """The tokens of the system message."""
    conversation_tokens: int | None = None
    """The tokens of the conversation."""
    tool_definitions_tokens: int | None = None
    """The tokens of the tools' definitions."""


class SessionCompactionStart(Payload, kw_only=True):
    """The compaction of the conversation has begun. Sizes are estimates, in tokens."""

    type: ClassVar[str] = "session.compaction_start"
    trigger: str | None = None
    """What started it: the size of the context, a person, or an error of the provider."""
    model: str | None = None
    """The id of the model that writes the summary."""
    current_tokens: int | None = None
    """The tokens of the whole context."""
    system_tokens: int | None = None
    """The tokens of the system message."""
    conversation_tokens: int | None = None
    """The tokens of the conversation."""
    tool_definitions_tokens: int | None = None
    """The tokens of the tools' definitions."""
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
    """The id of the model that wrote the summary."""
    duration: int | None = None
    """How long the call took, in milliseconds."""
    copilot_usage: CopilotUsage | None = None
    """What the call used of a Copilot plan."""
    input: int | None = None
    """The same as ``input_tokens``, for old SDKs."""
    output: int | None = None
    """The same as ``output_tokens``, for old SDKs."""
    cached_input: int | None = None
    """The same as ``cache_read_tokens``, for old SDKs."""

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
    """What started it, as in ``session.compaction_start``."""
    error: str | None = None
    status_code: int | None = None
    """The HTTP status of the provider, if the call failed."""
    custom_instructions: str | None = None
    """What the summary was asked to keep."""
    summary_content: str | None = None
    """The summary."""
    checkpoint_number: int | None = None
    """The number of the checkpoint that was written."""
    checkpoint_path: str | None = None
    """The file of that checkpoint."""
    pre_compaction_tokens: int | None = None
    """The tokens of the context before."""
    pre_compaction_messages_length: int | None = None
    """How many messages the context had before."""
    post_compaction_tokens: int | None = None
    """The tokens of the context afterwards."""
    tokens_removed: int | None = None
    """How many tokens were removed."""
    messages_removed: int | None = None
    """How many messages were removed."""
    system_tokens: int | None = None
    """The tokens of the system message."""
    conversation_tokens: int | None = None
    """The tokens of the conversation."""
    tool_definitions_tokens: int | None = None
    """The tokens of the tools' definitions."""
    token_limit: int | None = None
    compaction_tokens_used: CompactionTokensUsed | None = None
    """The usage of the call for the summary."""


class SessionTruncation(Payload, kw_only=True):
    """Results of tools were cleared from the conversation: ``cleared_results`` has, by the id of the call, the line
    that is sent in place of each. No message is removed.
    """

    type: ClassVar[str] = "session.truncation"
    token_limit: int
    pre_truncation_tokens_in_messages: int
    """The tokens of the messages before."""
    pre_truncation_messages_length: int
    """How many messages there were before."""
    post_truncation_tokens_in_messages: int
    """The tokens of the messages afterwards."""
    post_truncation_messages_length: int
    """How many messages there are afterwards."""
    tokens_removed_during_truncation: int
    """How many tokens were removed."""
    messages_removed_during_truncation: int
    """How many messages were removed."""
    performed_by: str
    """The part of the server that did it."""
    cleared_results: dict[str, str]
    """The line that is sent in place of each result, by the id of the call."""


class PendingMessagesModified(Payload, kw_only=True):
    """The queue has changed."""

    type: ClassVar[str] = "pending_messages.modified"
    persisted: ClassVar[bool] = False


class Abort(Payload, kw_only=True):
    """The prompt was aborted."""

    type: ClassVar[str] = "abort"
    reason: str
    """Why the prompt was aborted."""


# --- messages ---------------------------------------------------------------------------------------------------


class UserMessage(Payload, kw_only=True):
    """``content`` is the prompt as sent, ``transformed_content`` the text that is sent to the model."""

    type: ClassVar[str] = "user.message"
    content: str
    """The prompt as it was sent."""
    message_id: str
    transformed_content: str | None = None
    """The text that the model reads."""
    attachments: list[dict[str, Any]] | None = None
    agent_mode: AgentMode | None = None
    """The mode that the prompt runs in."""
    delivery: Delivery | None = None
    """Whether the session was idle, or the prompt was queued or steers the running turn."""
    interaction_id: str | None = None
    source: str | None = None
    """Where the prompt comes from, if not from a person."""
    turn_id: str | None = None
    is_autopilot_continuation: bool | None = None
    """Whether autopilot wrote the prompt."""

    @property
    def is_prompt(self) -> bool:
        """Return whether the message begins a run or steers one, rather than adding context to it."""
        return self.source is None or self.interaction_id is not None


class TurnStart(Payload, kw_only=True):
    """A turn begins: one call of the model with the tools that it calls."""

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
    """The common status of the tool calls of the answer."""


class ReasoningDelta(Payload, kw_only=True):
    """The next part of the model's reasoning."""

    type: ClassVar[str] = "assistant.reasoning_delta"
    persisted: ClassVar[bool] = False
    reasoning_id: str
    """The id of the reasoning that this is a part of."""
    delta_content: str
    """The next part of the text."""


class Reasoning(Payload, kw_only=True):
    """The model's reasoning as a whole."""

    type: ClassVar[str] = "assistant.reasoning"
    reasoning_id: str
    """The id of the reasoning."""
    content: str
    """The whole text."""


class MessageStart(Payload, kw_only=True):
    """An answer of the model begins."""

    type: ClassVar[str] = "assistant.message_start"
    persisted: ClassVar[bool] = False
    message_id: str


class MessageDelta(Payload, kw_only=True):
    """The next part of an answer."""

    type: ClassVar[str] = "assistant.message_delta"
    persisted: ClassVar[bool] = False
    message_id: str
    delta_content: str
    """The next part of the text."""
    parent_tool_call_id: str | None = None


class ToolCallDelta(Payload, kw_only=True):
    """The next part of a tool call's arguments."""

    type: ClassVar[str] = "assistant.tool_call_delta"
    persisted: ClassVar[bool] = False
    tool_call_id: str
    input_delta: str
    """The next part of the arguments, as JSON text."""
    tool_name: str | None = None


class ToolRequest(WireStruct, kw_only=True):
    """A tool call in an assistant message.

    ``arguments`` is the parsed object. ``arguments_json`` is the model's own text, which is sent back to it; it is
    set only if compact JSON of ``arguments`` would differ.
    """

    tool_call_id: str
    name: str
    """The name of the tool."""
    arguments: Any = None
    """The arguments."""
    arguments_json: str | None = None
    """The arguments as the model wrote them, if that differs from the compact JSON of ``arguments``."""
    type: Literal["function", "custom"] = always("function")
    intention_summary: str | None = None
    """What the call is for, in a few words."""
    mcp_server_name: str | None = None
    """The MCP server that has the tool."""
    mcp_tool_name: str | None = None
    """The name of the tool on that server."""


class CitationSource(WireStruct, kw_only=True):
    """A source that an answer cites."""

    id: str
    """The id of the source in this message."""
    provider: Literal["anthropic", "openai", "client"]
    """Who gave the source."""
    title: str | None = None
    url: str | None = None


class CitationReference(WireStruct, kw_only=True):
    """``location`` is the position in a document: ``{type: char | page | block, start..., end...}``."""

    source_id: str
    """The id of the source."""
    cited_text: str | None = None
    """The text of the source that is cited."""
    location: dict[str, Any] | None = None
    """The position in the source."""


class CitationSpan(WireStruct, kw_only=True):
    """The span of the content that the references support, in characters, without the one at the end index."""

    start_index: int
    """Index of the first character."""
    end_index: int
    """Index after the last character."""
    references: list[CitationReference]
    """The places that support it."""


class Citations(WireStruct, kw_only=True):
    """The sources of an answer, and where it cites them."""

    sources: list[CitationSource]
    """The sources."""
    spans: list[CitationSpan]
    """The parts of the content with the sources that support them."""


class AssistantMessage(Payload, kw_only=True):
    """``provider_blocks`` holds content for the provider of the message only, such as signed reasoning.

    ``interrupted`` marks what was shown of an answer before it was aborted (``keepInterruptedAnswers``).
    """

    type: ClassVar[str] = "assistant.message"
    message_id: str
    content: str
    """The text of the answer."""
    tool_requests: list[ToolRequest] = field(default_factory=list[ToolRequest])
    """The tools that the model calls."""
    model: str | None = None
    """The id of the model."""
    turn_id: str | None = None
    interaction_id: str | None = None
    output_tokens: int | None = None
    reasoning_text: str | None = None
    """The model's reasoning, as far as its provider shows it."""
    citations: Citations | None = None
    """The sources of the content."""
    provider_blocks: list[dict[str, Any]] | None = None
    """Content that only the provider of this message can read."""
    originating_message_id: str | None = None
    """The id of the prompt that is answered."""
    interrupted: bool | None = None
    """Whether the answer was aborted, so that it is a part only."""
    parent_tool_call_id: str | None = None


class AgentInterrupted(Payload, kw_only=True):
    """A user has interrupted the agent. ``turn`` and ``elapsed_ms`` are those of the interrupted turn.

    The names and ids are those of the tool calls that were running. Both numbers are 0 for ``background_agent``:
    only sub-agents in the background were ended.
    """

    type: ClassVar[str] = "agent.interrupted"
    persisted: ClassVar[bool] = False
    activity: Literal["model_call", "tool_call", "background_agent"]
    """What was interrupted."""
    turn: int
    """The number of the turn in its prompt."""
    elapsed_ms: int
    """How long the turn had lasted, in milliseconds."""
    model: str | None = None
    """The id of the model."""
    tool_call_ids: list[str] | None = None
    """The ids of the tool calls that were running."""
    tool_names: list[str] | None = None
    """The names of their tools."""
    interrupted_agent_count: int | None = None
    """How many sub-agents were interrupted."""


class AssistantIdle(Payload, kw_only=True):
    """The agent has answered the prompt; tasks in the background may still run."""

    type: ClassVar[str] = "assistant.idle"
    persisted: ClassVar[bool] = False
    aborted: bool | None = None
    """Whether the prompt was aborted."""


class CopilotUsage(WireStruct, kw_only=True):
    """The credits that a call used of a Copilot plan, in 10^-9. SDKs up to 0.3 require ``token_details``."""

    total_nano_aiu: int
    """The credits, in 10^-9."""
    token_details: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Always empty; old SDKs require it."""


class AssistantUsage(Payload, kw_only=True):
    """The usage of one model call; ``duration`` is in milliseconds.

    ``cost`` counts premium requests of a Copilot plan. ``cost_usd`` is as the provider reports it, or computed from
    known prices.
    """

    type: ClassVar[str] = "assistant.usage"
    persisted: ClassVar[bool] = False
    model: str
    """The id of the model that answered."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int | None = None
    """The tokens of reasoning among the output."""
    cost: float | None = None
    """The premium requests of a Copilot plan that the call counts for."""
    cost_usd: float | None = None
    """The price of the call in US dollars, if it is known."""
    duration: int
    """How long the call took, in milliseconds."""
    time_to_first_token_ms: int | None = None
    """How long the first token took, in milliseconds."""
    initiator: str | None = None
    """What made the call: the user's prompt or the agent itself."""
    finish_reason: str | None = None
    """Why the answer ended, in the provider's words."""
    content_filter_triggered: bool | None = None
    """Whether the provider's filter ended the answer."""
    num_tool_calls: int | None = None
    """How many tools the answer calls."""
    is_byok: bool | None = None
    """Whether the model is reached with a key of the user instead of a Copilot plan."""
    copilot_usage: CopilotUsage | None = None
    """What the call used of a Copilot plan."""
    parent_tool_call_id: str | None = None


class ModelCallFailure(Payload, kw_only=True):
    """A call of the model has failed."""

    type: ClassVar[str] = "model.call_failure"
    persisted: ClassVar[bool] = False
    source: Literal["top_level", "subagent", "mcp_sampling"]
    """What the call was for."""
    model: str | None = None
    """The id of the model."""
    status_code: int | None = None
    """The HTTP status of the provider, if it answered."""
    error_code: str | None = None
    """The provider's own code of the error."""
    error_type: str | None = None
    """The kind of error."""
    error_message: str | None = None
    """What went wrong, for people."""
    duration_ms: int | None = None


# --- tools ------------------------------------------------------------------------------------------------------


class ShellToolInfo(WireStruct, kw_only=True):
    """The facts about a command that are known before it runs."""

    possible_paths: list[str]
    """The paths that the command may touch, as far as they can be read from it."""
    has_write_file_redirection: bool
    """Whether it redirects output to a file."""


class ToolExecutionStart(Payload, kw_only=True):
    """A tool call begins."""

    type: ClassVar[str] = "tool.execution_start"
    tool_call_id: str
    tool_name: str
    arguments: Any = None
    """The arguments."""
    turn_id: str | None = None
    shell_tool_info: ShellToolInfo | None = None
    """What can be read from a shell command."""
    mcp_server_name: str | None = None
    """The MCP server that has the tool."""
    mcp_tool_name: str | None = None
    """The name of the tool on that server."""
    parent_tool_call_id: str | None = None


class ToolExecutionPartialResult(Payload, kw_only=True):
    """The output of a tool until now."""

    type: ClassVar[str] = "tool.execution_partial_result"
    persisted: ClassVar[bool] = False
    tool_call_id: str
    partial_output: str
    """The output until now."""


class ToolExecutionProgress(Payload, kw_only=True):
    """The progress of a running tool."""

    type: ClassVar[str] = "tool.execution_progress"
    persisted: ClassVar[bool] = False
    tool_call_id: str
    progress_message: str
    """What the tool is doing, for people."""


class BinaryResult(WireStruct, kw_only=True):
    """An image or a file in the result of a tool."""

    data: str
    """The content in base64."""
    mime_type: str
    description: str | None = None
    type: Literal["image", "resource"] = always("image")


class ToolResult(WireStruct, kw_only=True):
    """``content`` is for the model, ``detailed_content`` for the user only."""

    content: str
    """The text that the model reads."""
    detailed_content: str | None = None
    """A longer form for people, such as a diff."""
    binary_results_for_llm: list[BinaryResult] | None = None
    """Images and other content that the model gets."""


class ToolError(WireStruct, kw_only=True):
    """Why a tool call failed."""

    message: str
    """What went wrong."""
    code: str | None = None
    """The kind of failure, such as ``rejected`` or ``denied``."""


class CallDecision(WireStruct, kw_only=True):
    """Why a call was allowed or denied without a client's decision."""

    by: Decider
    """The source of the decision."""
    reason: str | None = None
    """The rule, if one covers the call alone, or the permission mode."""


class ToolExecutionComplete(Payload, kw_only=True):
    """The only result of a call. A failed call has a ``result``, too, if the model is sent another text.

    ``effective_arguments`` are set if a hook or the user changed the arguments. Later model requests show them in
    place of the model's own.
    """

    type: ClassVar[str] = "tool.execution_complete"
    tool_call_id: str
    success: bool
    result: ToolResult | None = None
    """The result."""
    error: ToolError | None = None
    effective_arguments: dict[str, Any] | None = None
    """The arguments that the tool ran with, if a hook or a person changed them."""
    tool_telemetry: dict[str, Any] | None = None
    """Figures of the call, such as the exit code of a command."""
    session_log: str | None = None
    """The result in the form that sessions show."""
    turn_id: str | None = None
    interaction_id: str | None = None
    sandboxed: bool | None = None
    """Whether the command was confined."""
    jumpseat_decision: CallDecision | None = None
    """Why the call was allowed or denied, if no client has decided; the SDKs ignore it."""
    parent_tool_call_id: str | None = None
    is_user_requested: bool | None = None
    """Whether a person asked for the call."""


class SessionScheduleCreated(Payload, kw_only=True):
    """A scheduled prompt: at an interval, at a time (ms since the epoch), by cron, or paced by the model."""

    type: ClassVar[str] = "session.schedule_created"
    id: int
    """The number of the entry."""
    prompt: str
    """The prompt that runs."""
    display_prompt: str | None = None
    interval_ms: int | None = None
    """The time between two runs, in milliseconds."""
    at: int | None = None
    """When it runs, in ms since the epoch."""
    cron: str | None = None
    """When it runs, as a cron expression."""
    tz: str | None = None
    """The time zone of ``cron``."""
    recurring: bool | None = None
    """Whether it runs more than once."""
    self_paced: bool | None = None
    """Whether the model decides on the next run."""


class SessionScheduleCancelled(Payload, kw_only=True):
    """A scheduled prompt was stopped, or has run for the last time."""

    type: ClassVar[str] = "session.schedule_cancelled"
    id: int
    """The number of the entry."""


class SessionScheduleRearmed(Payload, kw_only=True):
    """The next run of a prompt that the model paces, in ms since the epoch."""

    type: ClassVar[str] = "session.schedule_rearmed"
    id: int
    """The number of the entry."""
    next_run_at: int
    """When it runs next, in ms since the epoch."""


class ToolUserRequested(Payload, kw_only=True):
    """The user runs a command, which the model learns with the next prompt."""

    type: ClassVar[str] = "tool.user_requested"
    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any]
    """The arguments."""


class EphemeralQuery(Payload, kw_only=True):
    """A question beside the conversation: ``chunk`` is a part of the answer, ``answer`` the whole at the end."""

    type: ClassVar[str] = "ui.ephemeral_query"
    persisted: ClassVar[bool] = False
    request_id: str
    phase: Literal["started", "chunk", "completed"]
    """Whether this is the question, a part of the answer, or the whole of it."""
    chunk: str | None = None
    """The next part of the answer."""
    answer: str | None = None
    """The whole answer."""


class ToolSearchActivated(Payload, kw_only=True):
    """These tools, which were left out of model requests, are included from now on."""

    type: ClassVar[str] = "tool_search.activated"
    strategy: str
    """How the tools were found."""
    tool_names: list[str]
    """The names of the tools."""


class PermissionRequested(Payload, kw_only=True):
    """A call waits for a person's permission."""

    type: ClassVar[str] = "permission.requested"
    request_id: str
    permission_request: PermissionRequest
    """What permission is asked for."""
    prompt_request: dict[str, Any] | None = None
    """The same request in the form that newer SDKs show."""
    resolved_by_hook: bool | None = None
    """Whether a hook has decided already."""
    calls_behind: int | None = None
    """How many calls of the same answer wait for this decision, and may ask, too; the SDKs ignore it."""


class PermissionCompleted(Payload, kw_only=True):
    """``decided_by`` is set if a client has decided; the SDKs ignore it."""

    type: ClassVar[str] = "permission.completed"
    request_id: str
    result: PermissionResult
    """The decision."""
    tool_call_id: str | None = None
    decided_by: DecidedBy | None = None
    """The client that decided."""


class ExternalToolRequested(Payload, kw_only=True):
    """A tool of a client is called."""

    type: ClassVar[str] = "external_tool.requested"
    request_id: str
    session_id: str
    tool_call_id: str
    tool_name: str
    arguments: Any = None
    """The arguments."""
    working_directory: str | None = None
    traceparent: str | None = None
    tracestate: str | None = None


class ExternalToolCompleted(Payload, kw_only=True):
    """The call of a client's tool was answered."""

    type: ClassVar[str] = "external_tool.completed"
    request_id: str


class HookStart(Payload, kw_only=True):
    """A hook begins."""

    type: ClassVar[str] = "hook.start"
    hook_invocation_id: str
    """The id of this run, which ``hook.end`` repeats."""
    hook_type: str


class HookError(WireStruct, kw_only=True):
    """Why a hook has failed."""

    message: str
    """What went wrong."""


class HookEnd(Payload, kw_only=True):
    """A hook has ended."""

    type: ClassVar[str] = "hook.end"
    hook_invocation_id: str
    """The id of this run."""
    hook_type: str
    success: bool
    error: HookError | None = None


class UserInputRequested(Payload, kw_only=True):
    """The model asks a question."""

    type: ClassVar[str] = "user_input.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    question: str
    """The question of the model."""
    choices: list[str] | None = None
    """Answers to choose from."""
    allow_freeform: bool | None = None
    """Whether another answer may be typed."""
    tool_call_id: str | None = None


class UserInputCompleted(Payload, kw_only=True):
    """The question was answered."""

    type: ClassVar[str] = "user_input.completed"
    persisted: ClassVar[bool] = False
    request_id: str
    answer: str | None = None
    """The answer."""
    was_freeform: bool | None = None
    """Whether the answer was typed."""


class ExitPlanModeRequested(Payload, kw_only=True):
    """``plan_content`` is the content of the plan file, empty if there is none."""

    type: ClassVar[str] = "exit_plan_mode.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    summary: str
    """The plan in short."""
    plan_content: str
    """The plan file's content."""
    actions: list[PlanAction]
    """What a person may choose to do with the plan."""
    recommended_action: PlanAction
    """What the model recommends."""


class ExitPlanModeCompleted(Payload, kw_only=True):
    """``approved`` is unset if the request ended without an answer."""

    type: ClassVar[str] = "exit_plan_mode.completed"
    persisted: ClassVar[bool] = False
    request_id: str
    approved: bool | None = None
    """Whether the plan was approved."""
    selected_action: PlanAction | None = None
    """What is done with the plan."""
    auto_approve_edits: bool | None = None
    """Whether edits are approved from now on."""
    feedback: str | None = None
    """What the model should change in the plan."""


AutoModeSwitchAnswer: TypeAlias = Literal["yes", "yes_always", "no"]


class AutoModeSwitchRequested(Payload, kw_only=True):
    """The model is rate limited, and the provider offers to choose another one. ``error_code`` is the provider's.

    The seconds are an integer, because SDKs up to 1.0.6 cannot decode fractions.
    """

    type: ClassVar[str] = "auto_mode_switch.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    error_code: str | None = None
    """The provider's code of the limit."""
    retry_after_seconds: int | None = None
    """In how many seconds the model can be used again."""


class AutoModeSwitchCompleted(Payload, kw_only=True):
    """A client has decided about another model."""

    type: ClassVar[str] = "auto_mode_switch.completed"
    persisted: ClassVar[bool] = False
    request_id: str
    response: AutoModeSwitchAnswer
    """The answer."""


class ElicitationRequested(Payload, kw_only=True):
    """A form waits for a person."""

    type: ClassVar[str] = "elicitation.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    message: str
    """What is asked for."""
    mode: Literal["form", "url"] | None = None
    """Whether a form is to be filled in, or a URL to be opened."""
    requested_schema: dict[str, Any] | None = None
    """The JSON Schema of the form."""
    elicitation_source: str | None = None
    """Who asks, such as the name of an MCP server."""
    url: str | None = None


class ElicitationCompleted(Payload, kw_only=True):
    """The form was answered."""

    type: ClassVar[str] = "elicitation.completed"
    persisted: ClassVar[bool] = False
    request_id: str
    action: Literal["accept", "decline", "cancel"] | None = None
    """What the person did."""
    content: dict[str, Any] | None = None
    """The values of the form."""


class CanvasActionInfo(WireStruct, kw_only=True):
    """An action that a canvas offers."""

    name: str
    """The name of the action."""
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
    """What can be done with the canvas."""


class SessionCanvasRegistryChanged(Payload, kw_only=True):
    """The canvases of all attached clients, after they changed."""

    type: ClassVar[str] = "session.canvas.registry_changed"
    persisted: ClassVar[bool] = False
    canvases: list[CanvasInfo]
    """The canvases."""


class SessionCanvasOpened(Payload, kw_only=True):
    """A canvas was opened."""

    type: ClassVar[str] = "session.canvas.opened"
    persisted: ClassVar[bool] = False
    instance_id: str
    extension_id: str
    canvas_id: str
    extension_name: str | None = None
    title: str | None = None
    status: str | None = None
    """What the canvas shows of its state."""
    url: str | None = None
    input: Any = None
    """What the canvas was opened with."""


class SessionCanvasRecorded(Payload, kw_only=True):
    """An open instance, from which a resumed session opens the canvas again."""

    type: ClassVar[str] = "session.canvas.recorded"
    instance_id: str
    extension_id: str
    canvas_id: str
    title: str | None = None
    input: Any = None
    """What the canvas was opened with."""


class SessionCanvasClosed(Payload, kw_only=True):
    """A canvas was closed."""

    type: ClassVar[str] = "session.canvas.closed"
    persisted: ClassVar[bool] = False
    instance_id: str
    extension_id: str
    canvas_id: str


class SessionCanvasRemoved(Payload, kw_only=True):
    """A canvas is not opened again by a resumed session."""

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
    """The user interfaces that clients can show now."""

    elicitation: bool
    """Whether a client can show forms."""
    canvases: bool | None = None
    """Whether a client can show canvases."""


class CapabilitiesChanged(Payload, kw_only=True):
    """The combined capabilities of the attached clients, after one was attached or detached."""

    type: ClassVar[str] = "capabilities.changed"
    persisted: ClassVar[bool] = False
    ui: UiChanges
    """What clients can show."""


class CommandQueued(Payload, kw_only=True):
    """A queued command is due. A client that has registered interest has to run it."""

    type: ClassVar[str] = "command.queued"
    persisted: ClassVar[bool] = False
    request_id: str
    command: str
    """The command with its arguments."""


class CommandExecute(Payload, kw_only=True):
    """A command is due that the receiving client has to run."""

    type: ClassVar[str] = "command.execute"
    persisted: ClassVar[bool] = False
    request_id: str
    command: str
    """The command with its arguments."""
    command_name: str
    """The name of the command, without the slash."""
    args: str
    """The text behind the name."""


class CommandCompleted(Payload, kw_only=True):
    """A queued command has ended, or no longer needs a client."""

    type: ClassVar[str] = "command.completed"
    persisted: ClassVar[bool] = False
    request_id: str


class CommandInfo(WireStruct, kw_only=True):
    """A slash command that clients offer."""

    name: str
    """The name of the command, without the slash."""
    description: str | None = None


class SessionToolsUpdated(Payload, kw_only=True):
    """The tools of the attached clients have changed. ``model`` is the one that they are offered to."""

    type: ClassVar[str] = "session.tools_updated"
    persisted: ClassVar[bool] = False
    model: str
    """The id of the model that the tools are offered to."""


class CommandsChanged(Payload, kw_only=True):
    """The commands of all attached clients, after one was attached or detached."""

    type: ClassVar[str] = "commands.changed"
    persisted: ClassVar[bool] = False
    commands: list[CommandInfo]
    """The commands."""


# --- MCP --------------------------------------------------------------------------------------------------------


class McpLoadedServer(WireStruct, kw_only=True):
    """An MCP server of the session, as it was loaded."""

    name: str
    """The name of the server."""
    status: str
    """The state of its connection."""
    source: str | None = None
    """Where its configuration comes from."""
    transport: str | None = None
    """How it is reached: ``stdio``, ``http`` or ``sse``."""
    plugin_name: str | None = None
    """The plugin that brings it."""
    error: str | None = None


class McpServersLoaded(Payload, kw_only=True):
    """All servers that the session began with have started or failed."""

    type: ClassVar[str] = "session.mcp_servers_loaded"
    persisted: ClassVar[bool] = False
    servers: list[McpLoadedServer]
    """The servers."""


class McpServerStatusChanged(Payload, kw_only=True):
    """The connection of an MCP server has changed."""

    type: ClassVar[str] = "session.mcp_server_status_changed"
    persisted: ClassVar[bool] = False
    server_name: str
    status: str
    """The state of its connection."""
    error: str | None = None


class McpTaskCreated(Payload, kw_only=True):
    """An MCP server runs a call as a task, whose result is fetched later, also by another process."""

    type: ClassVar[str] = "mcp.task_created"
    persisted: ClassVar[bool] = True
    tool_call_id: str
    """The call that waits for the result."""
    server_name: str
    task_id: str
    """The server's id of the task."""


class McpToolsListChanged(Payload, kw_only=True):
    """The tools of an MCP server have changed."""

    type: ClassVar[str] = "mcp.tools.list_changed"
    persisted: ClassVar[bool] = False
    server_name: str


class McpResourcesListChanged(Payload, kw_only=True):
    """The resources of an MCP server have changed."""

    type: ClassVar[str] = "mcp.resources.list_changed"
    persisted: ClassVar[bool] = False
    server_name: str


class McpPromptsListChanged(Payload, kw_only=True):
    """The prompts of an MCP server have changed."""

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
    """The address of the server."""
    reason: Literal["initial", "refresh", "reauth", "upscope"]
    """Why a token is needed."""
    www_authenticate_params: dict[str, str] | None = None
    """The parameters of the server's ``WWW-Authenticate`` header."""
    resource_metadata: str | None = None
    """The metadata that the server publishes, as JSON text."""
    static_client_config: dict[str, Any] | None = None
    """The OAuth client that the configuration names."""


class McpOauthCompleted(Payload, kw_only=True):
    """The question for a token was answered."""

    type: ClassVar[str] = "mcp.oauth_completed"
    persisted: ClassVar[bool] = False
    request_id: str
    outcome: Literal["token", "cancelled"]
    """Whether there is a token now."""


class McpHeadersRefreshRequired(Payload, kw_only=True):
    """A server requires headers, which a client that has registered interest has to provide."""

    type: ClassVar[str] = "mcp.headers_refresh_required"
    persisted: ClassVar[bool] = False
    request_id: str
    server_name: str
    server_url: str
    """The address of the server."""
    reason: Literal["startup", "ttl-expired", "auth-failed"]
    """Why headers are needed."""


class McpHeadersRefreshCompleted(Payload, kw_only=True):
    """The question for headers was answered."""

    type: ClassVar[str] = "mcp.headers_refresh_completed"
    persisted: ClassVar[bool] = False
    request_id: str
    outcome: Literal["headers", "none", "timeout"]
    """Whether there are headers now."""


class SamplingRequested(Payload, kw_only=True):
    """A server requests a response of a model. ``request`` has the form of MCP's sampling params."""

    type: ClassVar[str] = "sampling.requested"
    persisted: ClassVar[bool] = False
    request_id: str
    server_name: str
    mcp_request_id: Any
    """The id of the server's request."""
    request: dict[str, Any] | None = None
    """The request, in the form of MCP's sampling params."""


class SamplingCompleted(Payload, kw_only=True):
    """The request for a model's answer was answered."""

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
    | McpTaskCreated
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


@cache
def _decoder(cls: type[Payload]) -> msgspec.json.Decoder[Any]:
    # Kept: `msgspec.json.decode` would make one for each event.
    return msgspec.json.Decoder(cls, dec_hook=model_of_wire)


def decode_json(kind: str, data: bytes | memoryview | Raw) -> EventPayload | UnknownPayload:
    """Decode a payload from JSON, like :func:`decode_payload`; other values than objects count as empty ones.

    Raises:
        orjson.JSONDecodeError: the data are no JSON.
    """
    if (cls := EVENT_TYPES.get(kind)) is not None:
        try:
            return cast("EventPayload", _decoder(cls).decode(data))
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
