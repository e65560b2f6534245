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
    """What the hook gets: ``sessionId``, ``timestamp`` (ms since the epoch), ``cwd``, and what its kind has."""


class HooksInvokeResult(WireModel):
    output: dict[str, Any] | None = None
    """What the hook decides; nothing if missing."""


class HookOutput(WireModel):
    """The members that the answer of any hook may have.

    ``continue: false`` ends the run, for the ``stop_reason``. The user is shown the ``system_message``. Outputs of
    hooks are not shown anyway, so ``suppress_output`` changes nothing.
    """

    continue_: StrictBool | None = Field(default=None, alias="continue")
    """Whether the run goes on."""
    stop_reason: str | None = None
    """Why the run ends."""
    system_message: str | None = None
    """A message to people."""
    suppress_output: StrictBool | None = None
    """Has no effect: outputs of hooks are not shown."""


class SessionStartOutput(HookOutput):
    additional_context: str | None = None
    """Text that the model reads with the first prompt."""


class UserPromptSubmittedOutput(HookOutput):
    """With ``block``, the prompt is not sent, for the ``reason``."""

    decision: Literal["allow", "block"] | None = None
    """Whether the prompt is sent."""
    reason: str | None = None
    """Why it is not sent."""
    modified_prompt: str | None = None
    """The prompt to send instead."""
    additional_context: str | None = None
    """Text that the model reads with the prompt."""


class UserPromptTransformedOutput(HookOutput):
    modified_transformed_prompt: str | None = None
    """The text to send to the model instead."""


class PreToolUseOutput(HookOutput):
    permission_decision: Literal["allow", "deny", "ask"] | None = None
    """Whether the call runs, is refused, or needs a person's answer."""
    permission_decision_reason: str | None = None
    """Why."""
    modified_args: dict[str, Any] | None = None
    """Arguments to run the call with instead."""
    additional_context: str | None = None
    """Text that the model reads with the result."""


class PermissionRequestOutput(HookOutput):
    """The answer to a question for permission; a denial with ``interrupt`` ends the run."""

    behavior: Literal["allow", "deny"] | None = None
    """Whether the call is allowed."""
    message: str | None = None
    """What the model reads if it is denied."""
    interrupt: StrictBool | None = None
    """Whether a denial ends the run."""
    updated_input: dict[str, Any] | None = None
    """Arguments to run the call with instead."""


class PostToolUseOutput(HookOutput):
    modified_result: ToolResultObject | None = None
    """The result that the model reads instead."""
    additional_context: str | None = None
    """Text that the model reads with the result."""


class PostToolUseFailureOutput(HookOutput):
    additional_context: str | None = None
    """Text that the model reads with the result."""


class PreMcpToolCallOutput(HookOutput):
    """``meta_to_use`` replaces the ``_meta`` of the call; ``null`` removes it."""

    meta_to_use: dict[str, Any] | None = None
    """The ``_meta`` that the call is sent with; ``null`` removes it."""


class AgentStopOutput(HookOutput):
    decision: Literal["allow", "block"] | None = None
    """Whether the run may end."""
    reason: str | None = None
    """What the model is told to go on with."""


class SubagentStartOutput(HookOutput):
    """``additional_context`` is put before the first prompt of the sub-agent."""

    additional_context: str | None = None
    """Text that the sub-agent reads before its first prompt."""


class SubagentStopOutput(AgentStopOutput):
    """With ``block``, the sub-agent goes on for the ``reason``; else ``modified_response`` replaces its answer."""

    modified_response: str | None = None
    """The answer that replaces the sub-agent's."""


class ErrorOccurredOutput(HookOutput):
    error_handling: Literal["retry", "skip", "abort"] | None = None
    """What to do about the error."""
    retry_count: int | None = Field(default=None, ge=0)
    """How often to try again."""
    user_notification: str | None = None
    """What people are told."""


class SessionEndOutput(HookOutput):
    session_summary: str | None = None
    """A summary of the session."""


class UserInputRequestParams(WireModel):
    session_id: str
    question: str
    """The question of the model."""
    choices: list[str] | None = None
    """Answers to choose from."""
    allow_freeform: StrictBool | None = None
    """Whether another answer may be typed."""


class UserInputResponse(WireModel):
    answer: str
    """The answer."""
    was_freeform: StrictBool = True
    """Whether it was typed instead of chosen."""


class ExitPlanModeParams(WireModel):
    """``plan_content`` is the content of the plan file, empty if there is none."""

    session_id: str
    summary: str
    """The plan in short."""
    plan_content: str
    """The plan file's content."""
    actions: list[PlanAction]
    """What a person may choose to do with the plan."""
    recommended_action: PlanAction
    """What the model recommends."""


class ExitPlanModeResponse(WireModel):
    """``feedback`` is sent to the model. ``selected_action`` defaults to the recommended action.

    With ``defer_implementation``, the client sends the prompt to implement the plan itself.
    """

    approved: StrictBool
    """Whether the plan is approved."""
    selected_action: PlanAction | None = None
    """What to do with the plan; by default, what the model recommends."""
    auto_approve_edits: StrictBool | None = None
    """Whether edits are approved from now on."""
    feedback: str | None = None
    """What the model should change."""
    defer_implementation: StrictBool | None = None
    """Whether the client sends the prompt to carry out the plan."""


class AutoModeSwitchParams(WireModel):
    """``error_code`` and ``retry_after_seconds`` are those of the provider."""

    session_id: str
    error_code: str | None = None
    """The provider's code of the limit."""
    retry_after_seconds: int | None = None
    """In how many seconds the model can be used again."""


class AutoModeSwitchResponse(WireModel):
    """``yes_always`` applies to the rest of the session."""

    response: AutoModeSwitchAnswer
    """Whether to choose another model, once or for the rest of the session."""


class SectionContent(WireModel):
    """A section of the system message."""

    content: str
    """The text of the section."""


class SystemMessageTransformParams(WireModel):
    session_id: str
    sections: dict[str, SectionContent]
    """The sections of the system message by name."""


class SystemMessageTransformResult(WireModel):
    sections: dict[str, SectionContent]
    """The sections that replace them, by name."""


class ProviderTokenParams(WireModel):
    """``provider_name`` is ``default`` for ``provider`` of the session, or the name of one of its ``providers``."""

    session_id: str
    provider_name: str
    """``default``, or the name of one of ``providers``."""


class ProviderTokenResult(WireModel):
    token: KeyText = Field(repr=False)
    """The token."""


class GitHubTokenParams(WireModel):
    """``registration_id`` is the client's id of its callback; ``host`` is a URL, such as ``https://github.com``.

    ``reason`` is ``refresh`` if an earlier token of the client is about to expire.
    """

    registration_id: str
    """The client's id of its callback."""
    host: str
    session_id: str | None = None
    reason: Literal["initial", "refresh"]
    """Whether this is the first token, or the earlier one is about to expire."""


class GitHubTokenResult(WireModel):
    """A token with its lifetime in seconds, or ``cancelled`` if the client provides none."""

    kind: Literal["token", "cancelled"]
    access_token: KeyText | None = Field(default=None, repr=False)
    """The token."""
    token_type: str | None = None
    """The kind of token, such as ``bearer``."""
    expires_in: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Its lifetime in seconds."""


class HttpRequestStartParams(WireModel):
    """A model request that the client has to make. The body follows in chunks."""

    request_id: str
    session_id: str | None = None
    agent_id: str | None = None
    """The sub-agent that the request is for."""
    parent_agent_id: str | None = None
    """The agent that started that one."""
    interaction_type: str | None = None
    """What the request is for."""
    method: str
    """The HTTP method."""
    url: str
    headers: dict[str, list[str]] = Field(repr=False)
    transport: Literal["http", "websocket"] = "http"
    """How the request is made."""


class HttpRequestChunkParams(WireModel):
    """A part of the body, its end, or the cancellation of the request."""

    request_id: str
    data: str = Field(repr=False)
    """The next part of the body."""
    end: StrictBool | None = None
    """Whether the body is complete."""
    cancel: StrictBool | None = None
    """Whether the request is cancelled."""
    cancel_reason: str | None = None
    """Why."""


class CanvasSessionContext(WireModel):
    """The folder and host of a canvas's session."""

    working_directory: str | None = None


class CanvasCloseParams(WireModel):
    """``extension_id`` is the provider that the client declared, or ``connection:N``."""

    session_id: str
    extension_id: str
    canvas_id: str
    instance_id: str
    session: CanvasSessionContext
    """The session that the canvas belongs to."""


class CanvasOpenParams(CanvasCloseParams):
    input: Any = None
    """What the canvas is opened with."""


class CanvasActionParams(CanvasCloseParams):
    action_name: str
    """The name of the action."""
    input: Any = None
    """The arguments of the action."""


class CanvasOpenResult(WireModel):
    url: str | None = None
    title: str | None = None
    status: str | None = None
    """What the canvas shows of its state."""


class CancelClientTaskParams(WireModel):
    """A request to stop a task that the client has registered; ``id`` is the session's name for it."""

    session_id: str
    id: str
    """The session's id of the task."""
    client_task_id: str
    """The client's id of the task."""
    cancellation_id: str
    """The id of this request."""
    reason: Literal["cancel_requested"]
    """Why the task is to be stopped."""


class CancelClientTaskResult(WireModel):
    """``cancelled``: the work has stopped."""

    cancelled: StrictBool
    """Whether the work has stopped."""


class ToolCallParams(WireModel):
    """A client tool call, in protocol 2. Protocol 3 has the event ``external_tool.requested`` instead."""

    session_id: str
    tool_call_id: str
    tool_name: str
    arguments: Any = None
    """The arguments."""


class ToolCallResult(WireModel):
    """``result`` is as in ``session.tools.handlePendingToolCall``: a string, a tool result, or any JSON."""

    result: Any = None
    """A string, a tool result, or any JSON."""


class PermissionRequestParams(WireModel):
    """A permission request, in protocol 2. Protocol 3 has the event ``permission.requested`` instead."""

    session_id: str
    permission_request: PermissionRequest
    """What permission is asked for."""


class PermissionRequestResult(WireModel):
    result: PermissionDecision
    """The decision."""


class EmptyAnswer(WireModel):
    """For requests whose answer only confirms that they were received."""


class ElicitationResult(WireModel):
    """``content`` is set for ``accept``."""

    action: Literal["accept", "decline", "cancel"]
    """What the person did."""
    content: dict[str, Any] | None = None
    """The values of the form, for ``accept``."""


class QueuedCommandResult(WireModel):
    """``handled``: the client has run the command. ``stop_processing_queue``: later commands are not run."""

    handled: StrictBool
    """Whether the client has run the command."""
    stop_processing_queue: StrictBool = False
    """Whether later commands are dropped."""
