"""The smaller namespaces of sessions: log, name, mode, remote, usage, shutdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.events import SessionMode
from jumpseat_protocol.server import EmptyResult
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class LogParams(WireModel):
    """A message to all clients. ``type`` is its category; ``tip`` is used with ``info`` only."""

    session_id: str
    message: str
    """The message."""
    level: Literal["info", "warning", "error"] = "info"
    """How grave it is."""
    type: str = "notification"
    ephemeral: StrictBool = False
    """Whether it is left out of the log."""
    url: str | None = None
    tip: str | None = None
    """What people can do with it."""


class LogResult(WireModel):
    event_id: str


class NameSetParams(WireModel):
    session_id: str
    name: str
    """The name."""


class NameSetAutoParams(WireModel):
    session_id: str
    summary: str
    """A name that a person's name precedes."""


class NameResult(WireModel):
    sent_as_null: ClassVar[tuple[str, ...]] = ("name",)

    name: str | None = None
    """The name."""


class AppliedResult(WireModel):
    applied: StrictBool
    """Whether it had an effect."""


class CodeChanges(WireModel):
    """The size of the changes to files in the session."""

    lines_added: int
    lines_removed: int
    files_modified_count: int
    """How many files were changed."""
    files_modified: list[str]
    """Their paths."""


class UsageMetricsResult(WireModel):
    """The usage of a session since it was opened in this process.

    ``model_metrics``: ``{requests: {count, cost}, usage: {inputTokens, ...}, costUsd?}`` by model. Code changes and
    ``total_model_metrics`` count from the beginning of the session. ``agent_metrics`` is the usage of
    the main agent, as ``main``, and of each sub-agent, by its id.
    """

    total_premium_request_cost: float = 0
    """The premium requests of a Copilot plan."""
    total_user_requests: int
    """How many prompts were run."""
    total_nano_aiu: int | None = None
    """The credits of a Copilot plan, in 10^-9."""
    total_api_duration_ms: int
    """How long model calls took in all, in milliseconds."""
    session_start_time: str
    """When the session was opened."""
    code_changes: CodeChanges
    """What was changed."""
    model_metrics: dict[str, Any]
    """Requests, tokens and cost by model."""
    total_model_metrics: dict[str, Any]
    """The same with earlier processes."""
    agent_metrics: dict[str, Any] | None = None
    """The same by agent."""
    current_model: str | None = None
    """The id of the model."""
    last_call_input_tokens: int
    """The input of the last call."""
    last_call_output_tokens: int
    """The output of the last call."""


class ShutdownParams(WireModel):
    session_id: str
    type: Literal["routine", "error"] = "routine"
    reason: str | None = None
    """Why, for the log."""


class SteerableParams(WireModel):
    session_id: str
    remote_steerable: StrictBool
    """Whether other devices may send prompts."""


class ModeSetParams(WireModel):
    """With an ``expected_mode``, the mode is changed only from that one."""

    session_id: str
    mode: SessionMode
    """The mode."""
    expected_mode: SessionMode | None = None
    """The mode that the session must be in."""


class ModeSetResult(WireModel):
    """``mode_applied`` is ``False`` if the session was not in the expected mode."""

    status: Literal["ok", "unchanged"] = "ok"
    """Whether anything changed."""
    model_changed: StrictBool = False
    """Whether another model is used now."""
    mode_applied: StrictBool | None = None
    """Whether the session was in the expected mode."""


class CodeChangesParams(WireModel):
    """The totals of a host that counts changes itself; ``files_count`` is kept if it is not set."""

    session_id: str
    lines_added: int = Field(ge=0)
    lines_removed: int = Field(ge=0)
    files_count: int | None = Field(default=None, ge=0)
    """How many files were changed."""


class SettingsModel(WireModel):
    """The model in the settings of a session."""

    model: str | None = None
    """The id of the model."""
    default_reasoning_effort: str | None = None
    """How much the model reasons unless told otherwise."""


class SettingsRepository(WireModel):
    """The repository in the settings of a session."""

    name: str | None = None
    """The name of the repository."""
    owner_name: str | None = None
    """Its owner."""
    branch: str | None = None


class SettingsSnapshotResult(WireModel):
    """The settings of a session, without secrets. ``start_time_ms`` is in Unix milliseconds.

    ``job``, ``online_evaluation`` and ``validation`` are empty: they describe jobs of the vendor's service.
    """

    client_name: str | None = None
    start_time_ms: int
    """When the session was created, in ms since the epoch."""
    version: str
    """The version of the server."""
    model: SettingsModel
    """The model."""
    repo: SettingsRepository
    """The repository."""
    job: dict[str, Any] = Field(default_factory=dict)
    """Always empty."""
    online_evaluation: dict[str, Any] = Field(default_factory=dict)
    """Always empty."""
    validation: dict[str, Any] = Field(default_factory=dict)
    """Always empty."""


METHODS: Final[Mapping[str, Method]] = {
    "session.usage.setCodeChanges": Method(
        CodeChangesParams, None, "Set the numbers of changed lines that a host has counted."
    ),
    "session.settings.snapshot": Method(
        SessionParams, SettingsSnapshotResult, "Return the settings of the session, without secrets."
    ),
    "session.mode.get": Method(SessionParams, str, "Return the mode of the session."),
    "session.mode.set": Method(ModeSetParams, ModeSetResult, "Change the mode of the session."),
    "session.log": Method(LogParams, LogResult, "Show a message to all clients."),
    "session.shutdown": Method(
        ShutdownParams, None, "Stop the work of the session and close it. It can be resumed."
    ),
    "session.suspend": Method(
        SessionParams, None, "Stop the running prompt, withdraw open questions, and write the log."
    ),
    "session.name.get": Method(SessionParams, NameResult, "Return the name of the session."),
    "session.name.set": Method(NameSetParams, None, "Name the session."),
    "session.name.setAuto": Method(NameSetAutoParams, AppliedResult, "Name the session unless a person has."),
    "session.usage.getMetrics": Method(SessionParams, UsageMetricsResult, "Return what the session has used."),
    "session.remote.notifySteerableChanged": Method(
        SteerableParams, EmptyResult, "Record whether other devices may send prompts."
    ),
}
