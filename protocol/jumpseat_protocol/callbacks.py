"""Requests that the server sends to clients: hooks, questions to the user, transforms and tokens.

Clients of protocol 2 are also sent tool calls and permission requests. A client is sent only the requests that it
declared when it created or joined the session. Answers are validated; an invalid answer counts as no answer.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.events import AutoModeSwitchAnswer, PlanAction
from jumpseat_protocol.limits import KeyText
from jumpseat_protocol.permissions import PermissionDecision, PermissionRequest
from jumpseat_protocol.tools import ToolResultObject
from jumpseat_protocol.wire import WireModel


class HooksInvokeParams(WireModel):
    """``input`` always has ``sessionId``, ``timestamp`` (Unix milliseconds) and ``cwd``."""

    session_id: str
    hook_type: str
    input: dict[str, Any]


class HooksInvokeResult(WireModel):
    output: dict[str, Any] | None = None


class HookOutput(WireModel):
    """The members that the answer of any hook may have.

    ``continue: false`` ends the run, for the ``stop_reason``. The user is shown the ``system_message``. Outputs of
    hooks are not shown anyway, so ``suppress_output`` changes nothing.
    """

    continue_: StrictBool | None = Field(default=None, alias="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    suppress_output: StrictBool | None = None


class SessionStartOutput(HookOutput):
    additional_context: str | None = None


class UserPromptSubmittedOutput(HookOutput):
    """With ``block``, the prompt is not sent, for the ``reason``."""

    decision: Literal["allow", "block"] | None = None
    reason: str | None = None
    modified_prompt: str | None = None
    additional_context: str | None = None


class UserPromptTransformedOutput(HookOutput):
    modified_transformed_prompt: str | None = None


class PreToolUseOutput(HookOutput):
    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None
    modified_args: dict[str, Any] | None = None
    additional_context: str | None = None


class PermissionRequestOutput(HookOutput):
    """The answer to a question for permission; a denial with ``interrupt`` ends the run."""

    behavior: Literal["allow", "deny"] | None = None
    message: str | None = None
    interrupt: StrictBool | None = None
    updated_input: dict[str, Any] | None = None


class PostToolUseOutput(HookOutput):
    modified_result: ToolResultObject | None = None
    additional_context: str | None = None


class PostToolUseFailureOutput(HookOutput):
    additional_context: str | None = None


class PreMcpToolCallOutput(HookOutput):
    """``meta_to_use`` replaces the ``_meta`` of the call; ``null`` removes it."""

    meta_to_use: dict[str, Any] | None = None


class AgentStopOutput(HookOutput):
    decision: Literal["allow", "block"] | None = None
    reason: str | None = None


class SubagentStartOutput(HookOutput):
    """``additional_context`` is put before the first prompt of the sub-agent."""

    additional_context: str | None = None


class SubagentStopOutput(AgentStopOutput):
    """With ``block``, the sub-agent goes on for the ``reason``; else ``modified_response`` replaces its answer."""

    modified_response: str | None = None


class ErrorOccurredOutput(HookOutput):
    error_handling: Literal["retry", "skip", "abort"] | None = None
    retry_count: int | None = Field(default=None, ge=0)
    user_notification: str | None = None


class SessionEndOutput(HookOutput):
    session_summary: str | None = None


class UserInputRequestParams(WireModel):
    session_id: str
    question: str
    choices: list[str] | None = None
    allow_freeform: StrictBool | None = None


class UserInputResponse(WireModel):
    answer: str
    was_freeform: StrictBool = True


class ExitPlanModeParams(WireModel):
    """``plan_content`` is the content of the plan file, empty if there is none."""

    session_id: str
    summary: str
    plan_content: str
    actions: list[PlanAction]
    recommended_action: PlanAction


class ExitPlanModeResponse(WireModel):
    """``feedback`` is sent to the model. ``selected_action`` defaults to the recommended action.

    With ``defer_implementation``, the client sends the prompt to implement the plan itself.
    """

    approved: StrictBool
    selected_action: PlanAction | None = None
    auto_approve_edits: StrictBool | None = None
    feedback: str | None = None
    defer_implementation: StrictBool | None = None


class AutoModeSwitchParams(WireModel):
    """``error_code`` and ``retry_after_seconds`` are those of the provider."""

    session_id: str
    error_code: str | None = None
    retry_after_seconds: int | None = None


class AutoModeSwitchResponse(WireModel):
    """``yes_always`` applies to the rest of the session."""

    response: AutoModeSwitchAnswer


class SectionContent(WireModel):
    content: str


class SystemMessageTransformParams(WireModel):
    session_id: str
    sections: dict[str, SectionContent]


class SystemMessageTransformResult(WireModel):
    sections: dict[str, SectionContent]


class ProviderTokenParams(WireModel):
    """``provider_name`` is ``default`` for ``provider`` of the session, or the name of one of its ``providers``."""

    session_id: str
    provider_name: str


class ProviderTokenResult(WireModel):
    token: KeyText = Field(repr=False)


class GitHubTokenParams(WireModel):
    """``registration_id`` is the client's id of its callback; ``host`` is a URL, such as ``https://github.com``.

    ``reason`` is ``refresh`` if an earlier token of the client is about to expire.
    """

    registration_id: str
    host: str
    session_id: str | None = None
    reason: Literal["initial", "refresh"]


class GitHubTokenResult(WireModel):
    """A token with its lifetime in seconds, or ``cancelled`` if the client provides none."""

    kind: Literal["token", "cancelled"]
    access_token: KeyText | None = Field(default=None, repr=False)
    token_type: str | None = None
    expires_in: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class HttpRequestStartParams(WireModel):
    """A model request that the client has to make. The body follows in chunks."""

    request_id: str
    session_id: str | None = None
    agent_id: str | None = None
    parent_agent_id: str | None = None
    interaction_type: str | None = None
    method: str
    url: str
    headers: dict[str, list[str]] = Field(repr=False)
    transport: Literal["http", "websocket"] = "http"


class HttpRequestChunkParams(WireModel):
    """A part of the body, its end, or the cancellation of the request."""

    request_id: str
    data: str = Field(repr=False)
    end: StrictBool | None = None
    cancel: StrictBool | None = None
    cancel_reason: str | None = None


class CanvasSessionContext(WireModel):
    working_directory: str | None = None


class CanvasCloseParams(WireModel):
    """``extension_id`` is the provider that the client declared, or ``connection:N``."""

    session_id: str
    extension_id: str
    canvas_id: str
    instance_id: str
    session: CanvasSessionContext


class CanvasOpenParams(CanvasCloseParams):
    input: Any = None


class CanvasActionParams(CanvasCloseParams):
    action_name: str
    input: Any = None


class CanvasOpenResult(WireModel):
    url: str | None = None
    title: str | None = None
    status: str | None = None


class CancelClientTaskParams(WireModel):
    """A request to stop a task that the client has registered; ``id`` is the session's name for it."""

    session_id: str
    id: str
    client_task_id: str
    cancellation_id: str
    reason: Literal["cancel_requested"]


class CancelClientTaskResult(WireModel):
    """``cancelled``: the work has stopped."""

    cancelled: StrictBool


class ToolCallParams(WireModel):
    """A client tool call, in protocol 2. Protocol 3 has the event ``external_tool.requested`` instead."""

    session_id: str
    tool_call_id: str
    tool_name: str
    arguments: Any = None


class ToolCallResult(WireModel):
    """``result`` is as in ``session.tools.handlePendingToolCall``: a string, a tool result, or any JSON."""

    result: Any = None


class PermissionRequestParams(WireModel):
    """A permission request, in protocol 2. Protocol 3 has the event ``permission.requested`` instead."""

    session_id: str
    permission_request: PermissionRequest


class PermissionRequestResult(WireModel):
    result: PermissionDecision


class EmptyAnswer(WireModel):
    """For requests whose answer only confirms that they were received."""


class ElicitationResult(WireModel):
    """``content`` is set for ``accept``."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class QueuedCommandResult(WireModel):
    """``handled``: the client has run the command. ``stop_processing_queue``: later commands are not run."""

    handled: StrictBool
    stop_processing_queue: StrictBool = False
