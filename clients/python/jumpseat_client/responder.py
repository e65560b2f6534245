"""Responses to the tool calls and permission requests that arrive as events of a session."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from jumpseat_client.errors import JumpseatClientError
from jumpseat_client.events import Event
from jumpseat_client.permissions import PermissionHandler, PermissionRequest, UnknownPermission
from jumpseat_client.session import Session
from jumpseat_client.tools import AnyTool, ToolContext
from jumpseat_protocol.events import (
    ExternalToolRequested,
    PermissionCompleted,
    PermissionRequested,
    ToolExecutionComplete,
    UnknownPayload,
)
from jumpseat_protocol.permissions import PermissionDecision

_log = logging.getLogger("jumpseat_client")


class SessionResponder:
    """Runs the client's tools and its permission handler when a session's events request them.

    Each request runs in a task of ``tasks``, and is cancelled once the server has settled it otherwise.
    """

    def __init__(
        self,
        session: Session,
        tasks: TaskGroup,
        *,
        tools: Sequence[AnyTool] = (),
        on_permission: PermissionHandler | None = None,
    ) -> None:
        self.session = session
        self._tasks = tasks
        self._tools = {tool.name: tool for tool in tools}
        self._on_permission = on_permission
        # By tool call id or permission request id.
        self._running: dict[str, anyio.CancelScope] = {}

    def handle(self, event: Event) -> None:
        """Start or cancel responses, as ``event`` requires. Returns at once."""
        match event.payload:
            case ExternalToolRequested() as call if call.tool_name in self._tools:
                self._tasks.start_soon(self._run_tool, self._tools[call.tool_name], call)
            case PermissionRequested(request_id=request_id, permission_request=request):
                self._request_permission(request_id, request, event.data)
            case UnknownPayload(type="permission.requested", data={"requestId": str(request_id), **rest}):
                details = cast("dict[str, Any]", rest.get("permissionRequest") or {})
                request = UnknownPermission(str(details.get("kind")), details)
                self._request_permission(request_id, request, event.data)
            case ToolExecutionComplete(tool_call_id=key) | PermissionCompleted(request_id=key):
                if key in self._running:
                    self._running[key].cancel()
            case _:
                pass

    def _request_permission(self, request_id: str, request: PermissionRequest, data: Mapping[str, Any]) -> None:
        if self._on_permission is not None and data.get("resolvedByHook") is not True:
            self._tasks.start_soon(self._run_permission_handler, self._on_permission, request_id, request)

    async def _run_tool(self, tool: AnyTool, call: ExternalToolRequested) -> None:
        ctx = ToolContext(self.session, call.tool_call_id, call.tool_name, call.working_directory)

        async def run() -> dict[str, Any]:
            try:
                return {"result": await tool.run(call.arguments, ctx)}
            except Exception as error:
                # Log the details here; send only the type, since the message may hold secrets.
                _log.exception("tool %r failed", tool.name)
                return {"error": f"{tool.name} raised {type(error).__name__}"}

        await self._respond("session.tools.handlePendingToolCall", call.request_id, call.tool_call_id, run)

    async def _run_permission_handler(
        self, handler: PermissionHandler, request_id: str, request: PermissionRequest
    ) -> None:
        async def run() -> dict[str, Any] | None:
            try:
                decision = await handler(request)
            except Exception:
                _log.exception("the permission handler failed")
                decision = PermissionDecision(kind="user-not-available")
            return None if decision.kind == "no-result" else {"result": decision.wire()}

        method = "session.permissions.handlePendingPermissionRequest"
        await self._respond(method, request_id, request_id, run)

    async def _respond(
        self, method: str, request_id: str, key: str, run: Callable[[], Awaitable[dict[str, Any] | None]]
    ) -> None:
        """Send what ``run`` returns, unless the server settles the request first or ``run`` returns ``None``."""
        answer: dict[str, Any] | None = None
        with anyio.CancelScope() as scope:
            self._running[key] = scope
            try:
                answer = await run()
            finally:
                del self._running[key]
        if answer is None:
            return
        try:
            # `success: false` only means that another client answered first.
            await self.session.request(method, requestId=request_id, **answer)
        except JumpseatClientError as error:
            _log.warning("the server refused the response sent by %s: %s", method, error)
