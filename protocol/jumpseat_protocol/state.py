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


class CodeChanges(WireModel):
    lines_added: int
    lines_removed: int
    files_modified_count: int
    files_modified: list[str]


class UsageMetricsResult(WireModel):
    """The usage of a session since it was opened in this process.

    ``model_metrics``: ``{requests: {count, cost}, usage: {inputTokens, ...}, costUsd?}`` by model. Code changes and
    ``total_model_metrics`` count from the beginning of the session. ``agent_metrics`` is the usage of
    the main agent, as ``main``, and of each sub-agent, by its id.
    """

    total_premium_request_cost: float = 0
    total_user_requests: int
    total_nano_aiu: int | None = None
    total_api_duration_ms: int
    session_start_time: str
    code_changes: CodeChanges
    model_metrics: dict[str, Any]
    total_model_metrics: dict[str, Any]
    agent_metrics: dict[str, Any] | None = None
    current_model: str | None = None
    last_call_input_tokens: int
    last_call_output_tokens: int


class ShutdownParams(WireModel):
    session_id: str
    type: Literal["routine", "error"] = "routine"
    reason: str | None = None


class SteerableParams(WireModel):
    session_id: str
    remote_steerable: StrictBool


class ModeSetParams(WireModel):
    """With an ``expected_mode``, the mode is changed only from that one."""

    session_id: str
    mode: SessionMode
    expected_mode: SessionMode | None = None


class ModeSetResult(WireModel):
    """``mode_applied`` is ``False`` if the session was not in the expected mode."""

    status: Literal["ok", "unchanged"] = "ok"
    model_changed: StrictBool = False
    mode_applied: StrictBool | None = None


class CodeChangesParams(WireModel):
    """The totals of a host that counts changes itself; ``files_count`` is kept if it is not set."""

    session_id: str
    lines_added: int = Field(ge=0)
    lines_removed: int = Field(ge=0)
    files_count: int | None = Field(default=None, ge=0)


class SettingsModel(WireModel):
    model: str | None = None
    default_reasoning_effort: str | None = None


class SettingsRepository(WireModel):
    name: str | None = None
    owner_name: str | None = None
    branch: str | None = None


class SettingsSnapshotResult(WireModel):
    """The settings of a session, without secrets. ``start_time_ms`` is in Unix milliseconds.

    ``job``, ``online_evaluation`` and ``validation`` are empty: they describe jobs of the vendor's service.
    """

    client_name: str | None = None
    start_time_ms: int
    version: str
    model: SettingsModel
    repo: SettingsRepository
    job: dict[str, Any] = Field(default_factory=dict)
    online_evaluation: dict[str, Any] = Field(default_factory=dict)
    validation: dict[str, Any] = Field(default_factory=dict)


METHODS: Final[Mapping[str, Method]] = {
    "session.usage.setCodeChanges": Method(CodeChangesParams, None),
    "session.settings.snapshot": Method(SessionParams, SettingsSnapshotResult),
    "session.mode.get": Method(SessionParams, str),
    "session.mode.set": Method(ModeSetParams, ModeSetResult),
    "session.log": Method(LogParams, LogResult),
    "session.shutdown": Method(ShutdownParams, None),
    "session.suspend": Method(SessionParams, None),
    "session.name.get": Method(SessionParams, NameResult),
    "session.name.set": Method(NameSetParams, None),
    "session.name.setAuto": Method(NameSetAutoParams, AppliedResult),
    "session.usage.getMetrics": Method(SessionParams, UsageMetricsResult),
    "session.remote.notifySteerableChanged": Method(SteerableParams, EmptyResult),
}
