"""One session: prompts and their events, and the answers to what the server asks of us meanwhile."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, cast

import anyio
from anyio.abc import TaskGroup
from pydantic.alias_generators import to_camel

from jumpseat_client.connection import Broadcast, Connection, expect
from jumpseat_client.errors import JumpseatClientError, SessionAborted, SessionFailed
from jumpseat_client.permissions import PermissionHandler, PermissionRequest, UnknownPermission
from jumpseat_client.tools import AnyTool, ToolContext
from jumpseat_protocol.events import (
    AgentMode,
    AssistantMessage,
    EventPayload,
    ExternalToolRequested,
    PermissionCompleted,
    PermissionRequested,
    SessionError,
    SessionIdle,
    SessionMode,
    ToolExecutionComplete,
    UnknownPayload,
    UserMessage,
    decode_payload,
)
from jumpseat_protocol.permissions import PermissionDecision
from jumpseat_protocol.sessions import (
    LargeOutputConfig,
    ProviderConfig,
    ResponseFormatConfig,
    SystemMessageConfig,
    ToolChoiceConfig,
)
from jumpseat_protocol.wire import WireModel

_log = logging.getLogger("jumpseat_client")


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a session.

    ``payload`` is a class of ``jumpseat_protocol.events``, or ``UnknownPayload`` for what this version does not
    know. ``data`` holds the fields as they came, those without a place in ``payload`` included. ``timestamp`` is
    ISO 8601 in UTC; ``ephemeral`` events are not stored; ``agent_id`` is set on events of a sub-agent.
    """

    id: str
    timestamp: str
    parent_id: str | None
    payload: EventPayload | UnknownPayload
    data: Mapping[str, Any]
    ephemeral: bool = False
    agent_id: str | None = None

    @property
    def type(self) -> str:
        return self.payload.type

    @classmethod
    def decode(cls, record: Mapping[str, Any]) -> Event:
        """Read the envelope as it is on the wire. Never fails: what is missing is empty."""
        data = record.get("data")
        return cls(
            id=str(record.get("id", "")),
            timestamp=str(record.get("timestamp", "")),
            parent_id=record.get("parentId"),
            payload=decode_payload(str(record.get("type", "")), data),
            data=cast("dict[str, Any]", data) if isinstance(data, dict) else {},
            ephemeral=record.get("ephemeral") is True,
            agent_id=record.get("agentId"),
        )


class SessionSettings(TypedDict, total=False):
    """What ``create_session`` and ``resume_session`` pass on. Left out or ``None`` means the server's default.

    ``extra`` is merged into the parameters as it is: for what has no name here, in the wire's camelCase.
    """

    model: str | None
    provider: ProviderConfig | None
    reasoning_effort: str
    system_message: SystemMessageConfig
    available_tools: Sequence[str]
    excluded_tools: Sequence[str]
    tool_choice: ToolChoiceConfig
    hosted_tools: Sequence[str | Mapping[str, Any]]
    response_format: ResponseFormatConfig
    working_directory: str
    streaming: bool
    client_name: str
    large_output: LargeOutputConfig
    extra: Mapping[str, Any]


class PromptOptions(TypedDict, total=False):
    """What goes with a prompt.

    ``mode``: ``enqueue`` (default) waits for the prompt in progress, ``immediate`` steers it. ``attachments`` are
    objects as on the wire. ``extra`` as in :class:`SessionSettings`.
    """

    attachments: Sequence[Mapping[str, Any]]
    mode: Literal["enqueue", "immediate"]
    agent_mode: AgentMode
    request_headers: Mapping[str, str]
    tool_choice: ToolChoiceConfig
    hosted_tools: Sequence[str | Mapping[str, Any]]
    response_format: ResponseFormatConfig
    extra: Mapping[str, Any]


def to_params(options: Mapping[str, Any]) -> dict[str, Any]:
    """Python names to wire names; models to their wire form; ``None`` left out; ``extra`` merged in."""
    params = {
        to_camel(name): value.wire() if isinstance(value, WireModel) else value
        for name, value in options.items()
        if name != "extra" and value is not None
    }
    return params | dict(options.get("extra", {}))


class Session:
    """A handle on one session, made by ``Client.create_session`` or ``Client.resume_session``.

    Attributes:
        id: the session's id.
        workspace_path: the session's own folder on the server's machine, if it has one.
    """

    def __init__(
        self,
        connection: Connection,
        tasks: TaskGroup,
        session_id: str,
        *,
        tools: Sequence[AnyTool] = (),
        on_permission: PermissionHandler | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_detached: Callable[[Session], None],
    ) -> None:
        self.id = session_id
        self.workspace_path: str | None = None
        self._connection = connection
        self._tasks = tasks
        self._tools = {tool.name: tool for tool in tools}
        self._on_permission = on_permission
        self._on_event = on_event
        self._on_detached = on_detached
        self._events = Broadcast[Event]()
        # By tool call id or permission request id: what to stop when the server no longer wants an answer.
        self._running: dict[str, anyio.CancelScope] = {}

    async def request(self, method: str, **params: Any) -> Any:
        """Call any ``session.*`` method; ``sessionId`` is added, other parameters are named as on the wire."""
        return await self._connection.request(method, {"sessionId": self.id, **params})

    # --- prompts ------------------------------------------------------------------------------------------------

    async def send(self, prompt: str, **options: Unpack[PromptOptions]) -> str:
        """Queue a prompt and return the id of its message at once."""
        answer = await self.request("session.send", prompt=prompt, **to_params(options))
        return str(answer["messageId"])

    async def ask(self, prompt: str, **options: Unpack[PromptOptions]) -> str:
        """Send a prompt, wait until it is done and return the text of the last assistant message.

        Raises:
            SessionFailed: it ended with an error.
            SessionAborted: it was aborted.
        """
        answer = ""
        failure: SessionFailed | None = None
        async with aclosing(self.stream(prompt, **options)) as events:
            async for event in events:
                match event.payload:
                    case AssistantMessage(content=content) if event.agent_id is None:
                        answer = content
                    case SessionError() as error:
                        failure = SessionFailed(
                            error.message, error_type=error.error_type, status_code=error.status_code
                        )
                    case SessionIdle(aborted=True):
                        failure = failure or SessionAborted()
                    case _:
                        pass
        # Not before the end: the session is free for the next prompt when the caller hears of the failure.
        if failure is not None:
            raise failure
        return answer

    async def stream(self, prompt: str, **options: Unpack[PromptOptions]) -> AsyncGenerator[Event]:
        """Send a prompt and yield its events, from its ``user.message`` to ``session.idle``.

        Where other prompts wait in the queue, it ends when the next one begins: the server is idle only after the
        last. Failures and aborts come as the events that they are.
        """
        async with self.events() as events:
            message_id = await self.send(prompt, **options)
            ours = False
            async for event in events:
                match event.payload:
                    case UserMessage(message_id=id_) if id_ == message_id:
                        ours = True
                    case UserMessage(delivery="queued") if ours:
                        return
                    case SessionIdle(aborted=True):
                        # An abort empties the queue: our prompt may never show.
                        ours = True
                    case _:
                        pass
                if ours:
                    yield event
                    if isinstance(event.payload, SessionIdle):
                        return

    def events(self) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """All events from now on: ``async with session.events() as events: async for event in events: ...``.

        Ends when the session is left; raises :class:`ServerGoneError` when the server is gone.
        """
        return self._events.listen()

    async def messages(self) -> list[Event]:
        """The stored events, oldest first."""
        answer = await self.request("session.getMessages")
        return [Event.decode(record) for record in answer["events"]]

    async def abort(self, reason: str | None = None) -> None:
        """Stop the prompt in progress and forget the queued ones. Harmless when idle."""
        await self.request("session.abort", **to_params({"reason": reason}))

    # --- settings -----------------------------------------------------------------------------------------------

    async def set_approve_all(self, enabled: bool) -> None:
        """Run gated tools without asking anybody, or ask again."""
        answer = await self.request("session.permissions.setApproveAll", enabled=enabled)
        expect(answer, "change the approvals")

    async def set_mode(self, mode: SessionMode) -> None:
        await self.request("session.mode.set", mode=mode)

    async def set_model(self, model: str, *, reasoning_effort: str | None = None) -> None:
        """Use another model from the next call on."""
        options = to_params({"reasoning_effort": reasoning_effort})
        await self.request("session.model.switchTo", modelId=model, **options)

    async def detach(self) -> None:
        """Leave the session; it stays on disk. Its event iterations end."""
        await self.request("session.detach")
        self._on_detached(self)
        self.close()

    # --- what comes in ------------------------------------------------------------------------------------------

    def receive(self, record: Mapping[str, Any]) -> None:
        """Take one event off the wire. Called by the client, in the order of the wire."""
        event = Event.decode(record)
        if self._on_event is not None:
            self._on_event(event)
        self._events.publish(event)
        match event.payload:
            case ExternalToolRequested() as call if call.tool_name in self._tools:
                self._tasks.start_soon(self._answer_tool, self._tools[call.tool_name], call)
            case PermissionRequested(request_id=request_id, permission_request=request):
                self._ask_permission(request_id, request, event.data)
            case UnknownPayload(type="permission.requested", data={"requestId": str(request_id), **rest}):
                details = cast("dict[str, Any]", rest.get("permissionRequest") or {})
                self._ask_permission(request_id, UnknownPermission(str(details.get("kind")), details), event.data)
            case ToolExecutionComplete(tool_call_id=key) | PermissionCompleted(request_id=key):
                if key in self._running:
                    self._running[key].cancel()
            case _:
                pass

    def close(self, failure: str | None = None) -> None:
        """End the event iterations. Called by the client when the session or the server is gone."""
        self._events.close(failure)

    def _ask_permission(self, request_id: str, request: PermissionRequest, data: Mapping[str, Any]) -> None:
        if self._on_permission is not None and data.get("resolvedByHook") is not True:
            self._tasks.start_soon(self._answer_permission, self._on_permission, request_id, request)

    async def _answer_tool(self, tool: AnyTool, call: ExternalToolRequested) -> None:
        ctx = ToolContext(self, call.tool_call_id, call.tool_name, call.working_directory)

        async def answer() -> dict[str, Any]:
            try:
                return {"result": await tool.run(call.arguments, ctx)}
            except Exception as error:
                # The traceback is for the developer here; of the text nothing leaves this process.
                _log.exception("tool %r failed", tool.name)
                return {"error": f"{tool.name} raised {type(error).__name__}"}

        await self._answer("session.tools.handlePendingToolCall", call.request_id, call.tool_call_id, answer)

    async def _answer_permission(
        self, handler: PermissionHandler, request_id: str, request: PermissionRequest
    ) -> None:
        async def answer() -> dict[str, Any] | None:
            try:
                decision = await handler(request)
            except Exception:
                _log.exception("the permission handler failed")
                decision = PermissionDecision(kind="user-not-available")
            return None if decision.kind == "no-result" else {"result": decision.wire()}

        method = "session.permissions.handlePendingPermissionRequest"
        await self._answer(method, request_id, request_id, answer)

    async def _answer(
        self, method: str, request_id: str, key: str, find: Callable[[], Awaitable[dict[str, Any] | None]]
    ) -> None:
        """Find an answer and send it, unless the server announces meanwhile that it has no more need of it."""
        answer: dict[str, Any] | None = None
        with anyio.CancelScope() as scope:
            self._running[key] = scope
            try:
                answer = await find()
            finally:
                del self._running[key]
        if answer is None:
            return
        try:
            # ``success: false`` says that another client was quicker, which is fine.
            await self.request(method, requestId=request_id, **answer)
        except JumpseatClientError as error:
            _log.warning("%s was not taken: %s", method, error)
