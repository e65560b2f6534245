"""Protocol 2, for SDKs older than the broadcast of requests (0.1.x): the server calls the client.

Protocol 3 announces tool calls and permission questions as the events ``external_tool.requested`` and
``permission.requested``. Protocol 2 sends the client a request instead, and its response settles the question. The
events are not sent to these clients: SDKs 0.2 and 0.3 understand both forms and would run a tool twice.

These clients cannot answer in any other way. Therefore every response settles its question, even an error; a
question that another client has settled is cancelled; and a client that resumes a session is asked the open
questions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import anyio
from anyio.abc import TaskGroup
from pydantic import ValidationError

from jumpseat.errors import ClientCallError
from jumpseat.rpc.json_rpc_peer import JsonRpcPeer
from jumpseat_protocol.callbacks import PermissionRequestResult
from jumpseat_protocol.events import (
    Abort,
    Event,
    ExternalToolCompleted,
    ExternalToolRequested,
    PermissionCompleted,
    PermissionRequested,
)
from jumpseat_protocol.old_clients import readable
from jumpseat_protocol.wire import to_wire

log = logging.getLogger(__name__)

COULD_NOT_ASK: Final = {"kind": "denied-no-approval-rule-and-could-not-request-from-user"}

Question: TypeAlias = ExternalToolRequested | PermissionRequested
"""An event in protocol 3, and a request in protocol 2."""


class Protocol2:
    """Turns events for one client into requests. ``concerns`` decides whether a question is for this client."""

    def __init__(self, peer: JsonRpcPeer, tasks: TaskGroup, concerns: Callable[[str, Question], bool]) -> None:
        self._peer = peer
        self._tasks = tasks
        self._concerns = concerns
        # The open requests to the client, by session and request id.
        self._open: dict[tuple[str, str], anyio.CancelScope] = {}

    def intercept(self, session_id: str, event: Event) -> bool:
        """Handle an event that belongs to a question, and return whether it is kept from the client."""
        match event.payload:
            case PermissionRequested(resolved_by_hook=True):
                # A hook has decided: there is nothing to ask.
                pass
            case ExternalToolRequested() | PermissionRequested() as question:
                self.ask(session_id, question)
            case ExternalToolCompleted() | PermissionCompleted() as settled:
                self._withdraw((session_id, settled.request_id))
            case Abort():
                for key in [key for key in self._open if key[0] == session_id]:
                    self._withdraw(key)
                return False
            case _:
                return False
        return True

    def wire(self, event: Event) -> dict[str, Any]:
        """Return ``event`` in the form that these clients can read."""
        return readable(event.wire())

    def ask(self, session_id: str, question: Question) -> None:
        """Send a question to the client, unless it is for another client or has been sent already."""
        key = (session_id, question.request_id)
        if key in self._open or not self._concerns(session_id, question):
            return
        # Created before the task starts, so that no early withdrawal is lost.
        scope = self._open[key] = anyio.CancelScope()
        self._tasks.start_soon(self._send, key, question, scope)

    async def _send(self, key: tuple[str, str], question: Question, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                if isinstance(question, ExternalToolRequested):
                    await self._call_tool(key[0], question)
                else:
                    await self._request_permission(key[0], question)
        finally:
            del self._open[key]

    def _withdraw(self, key: tuple[str, str]) -> None:
        scope = self._open.get(key)
        if scope is not None:
            scope.cancel()

    async def _call_tool(self, session_id: str, question: ExternalToolRequested) -> None:
        answer: dict[str, Any] = {"sessionId": session_id, "requestId": question.request_id}
        try:
            response = await self._peer.ask(
                "tool.call",
                {
                    "sessionId": session_id,
                    "toolCallId": question.tool_call_id,
                    "toolName": question.tool_name,
                    "arguments": question.arguments,
                },
            )
        except ClientCallError as error:
            if self._peer.closed:
                return  # The call stays open for the client that resumes the session.
            answer["error"] = str(error)
        else:
            answer["result"] = (
                cast("dict[str, Any]", response).get("result") if isinstance(response, dict) else None
            )
        self._settle(session_id, question, "session.tools.handlePendingToolCall", answer)

    async def _request_permission(self, session_id: str, question: PermissionRequested) -> None:
        try:
            response = await self._peer.ask(
                "permission.request",
                {"sessionId": session_id, "permissionRequest": to_wire(question.permission_request)},
            )
        except ClientCallError:
            if self._peer.closed:
                return
            response = None
        answer = {"sessionId": session_id, "requestId": question.request_id, "result": _decision(response)}
        self._settle(session_id, question, "session.permissions.handlePendingPermissionRequest", answer)

    def _settle(self, session_id: str, question: Question, method: str, answer: dict[str, Any]) -> None:
        # The client may have left the session meanwhile.
        if self._concerns(session_id, question):
            self._peer.invoke(method, answer)


def _decision(response: Any) -> dict[str, Any]:
    """Return the decision in a client's response. An empty or invalid response denies."""
    if response is None:
        return COULD_NOT_ASK
    try:
        decision = PermissionRequestResult.model_validate(response).result
    except ValidationError:
        log.warning("a client's response to 'permission.request' could not be read")
        return COULD_NOT_ASK
    return COULD_NOT_ASK if decision.kind == "no-result" else decision.wire()
