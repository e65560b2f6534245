"""Protocol 2, for SDKs older than the broadcast of requests (0.1.x): the server calls the client.

What protocol 3 announces as the events ``external_tool.requested`` and ``permission.requested`` becomes a request
to the client here, and its answer goes the way any client's answer goes. The events themselves are kept from these
clients: SDKs 0.2 and 0.3 understand both forms and would run a tool twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from anyio.abc import TaskGroup

from jumpseat.errors import ClientCallError
from jumpseat.rpc.pygls_seam import Seam
from jumpseat_protocol.events import (
    Event,
    ExternalToolCompleted,
    ExternalToolRequested,
    PermissionCompleted,
    PermissionRequested,
)
from jumpseat_protocol.old_clients import readable
from jumpseat_protocol.wire import to_wire

COULD_NOT_ASK: Final = {"kind": "denied-no-approval-rule-and-could-not-request-from-user"}


class Protocol2:
    """Turns the events of one connection into requests. ``owns_tool`` tells which tools are this client's."""

    def __init__(self, seam: Seam, tasks: TaskGroup, owns_tool: Callable[[str, str], bool]) -> None:
        self._seam = seam
        self._tasks = tasks
        self._owns_tool = owns_tool

    def takes(self, session_id: str, event: Event) -> bool:
        """Whether ``event`` is no event to this client, but a request, or none of its business."""
        match event.payload:
            case ExternalToolRequested() as asked:
                if self._owns_tool(session_id, asked.tool_name):
                    self._tasks.start_soon(self._call_tool, session_id, asked)
            case PermissionRequested() as asked:
                self._tasks.start_soon(self._request_permission, session_id, asked)
            case ExternalToolCompleted() | PermissionCompleted():
                pass
            case _:
                return False
        return True

    def wire(self, event: Event) -> dict[str, Any]:
        """``event`` as these clients can read it."""
        return readable(event.wire())

    async def _call_tool(self, session_id: str, asked: ExternalToolRequested) -> None:
        answer: dict[str, Any] = {"sessionId": session_id, "requestId": asked.request_id}
        try:
            said = await self._seam.ask(
                "tool.call",
                {
                    "sessionId": session_id,
                    "toolCallId": asked.tool_call_id,
                    "toolName": asked.tool_name,
                    "arguments": asked.arguments,
                },
            )
        except ClientCallError as error:
            if self._seam.closed:
                return  # The call stays open for whoever resumes the session.
            answer["error"] = str(error)
        else:
            answer["result"] = _member(said, "result")
        self._answer("session.tools.handlePendingToolCall", answer)

    async def _request_permission(self, session_id: str, asked: PermissionRequested) -> None:
        try:
            said = await self._seam.ask(
                "permission.request",
                {"sessionId": session_id, "permissionRequest": to_wire(asked.permission_request)},
            )
        except ClientCallError:
            if self._seam.closed:
                return
            said = None
        result = _member(said, "result")
        if not isinstance(result, dict):
            result = COULD_NOT_ASK
        self._answer(
            "session.permissions.handlePendingPermissionRequest",
            {"sessionId": session_id, "requestId": asked.request_id, "result": result},
        )

    def _answer(self, method: str, params: dict[str, Any]) -> None:
        self._seam.pass_on(method, params)


def _member(value: Any, name: str) -> Any:
    return cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
