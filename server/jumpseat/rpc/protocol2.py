"""Protocol 2, for SDKs older than the broadcast of requests (0.1.x): the server calls the client.

What protocol 3 announces as the events ``external_tool.requested`` and ``permission.requested`` becomes a request
to the client here, and its answer settles the question as any client's answer does. The events themselves are kept
from these clients: SDKs 0.2 and 0.3 understand both forms and would run a tool twice.

These clients have no other way to answer. So whatever comes back settles a question, a question that somebody else
has settled is withdrawn, and who resumes a session is asked what nobody has answered yet.
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
"""What protocol 3 announces and protocol 2 asks."""


class Protocol2:
    """Turns the events of one connection into requests. ``concerns`` tells which questions are for this client."""

    def __init__(self, peer: JsonRpcPeer, tasks: TaskGroup, concerns: Callable[[str, Question], bool]) -> None:
        self._peer = peer
        self._tasks = tasks
        self._concerns = concerns
        # What the client is being asked, by session and request id.
        self._asking: dict[tuple[str, str], anyio.CancelScope] = {}

    def takes(self, session_id: str, event: Event) -> bool:
        """Whether ``event`` is no event to this client, but a request, or none of its business."""
        match event.payload:
            case PermissionRequested(resolved_by_hook=True):
                # Nobody is to answer it.
                pass
            case ExternalToolRequested() | PermissionRequested() as question:
                self.ask(session_id, question)
            case ExternalToolCompleted() | PermissionCompleted() as settled:
                self._withdraw((session_id, settled.request_id))
            case Abort():
                for key in [key for key in self._asking if key[0] == session_id]:
                    self._withdraw(key)
                return False
            case _:
                return False
        return True

    def wire(self, event: Event) -> dict[str, Any]:
        """``event`` as these clients can read it."""
        return readable(event.wire())

    def ask(self, session_id: str, question: Question) -> None:
        """Put a question to the client, if it is one for it and not being put to it already."""
        key = (session_id, question.request_id)
        if key in self._asking or not self._concerns(session_id, question):
            return
        # Made here and not in the task, so that a withdrawal that comes first is not lost.
        scope = self._asking[key] = anyio.CancelScope()
        self._tasks.start_soon(self._put, key, question, scope)

    async def _put(self, key: tuple[str, str], question: Question, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                if isinstance(question, ExternalToolRequested):
                    await self._call_tool(key[0], question)
                else:
                    await self._request_permission(key[0], question)
        finally:
            del self._asking[key]

    def _withdraw(self, key: tuple[str, str]) -> None:
        scope = self._asking.get(key)
        if scope is not None:
            scope.cancel()

    async def _call_tool(self, session_id: str, question: ExternalToolRequested) -> None:
        answer: dict[str, Any] = {"sessionId": session_id, "requestId": question.request_id}
        try:
            said = await self._peer.ask(
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
                return  # The call stays open for whoever resumes the session.
            answer["error"] = str(error)
        else:
            answer["result"] = cast("dict[str, Any]", said).get("result") if isinstance(said, dict) else None
        self._settle(session_id, question, "session.tools.handlePendingToolCall", answer)

    async def _request_permission(self, session_id: str, question: PermissionRequested) -> None:
        try:
            said = await self._peer.ask(
                "permission.request",
                {"sessionId": session_id, "permissionRequest": to_wire(question.permission_request)},
            )
        except ClientCallError:
            if self._peer.closed:
                return
            said = None
        answer = {"sessionId": session_id, "requestId": question.request_id, "result": _decision(said)}
        self._settle(session_id, question, "session.permissions.handlePendingPermissionRequest", answer)

    def _settle(self, session_id: str, question: Question, method: str, answer: dict[str, Any]) -> None:
        # A client that has left the session meanwhile has no more say in it.
        if self._concerns(session_id, question):
            self._peer.invoke(method, answer)


def _decision(said: Any) -> dict[str, Any]:
    """What a client has decided. An answer that says nothing, or nothing that can be read, allows nothing."""
    if said is None:
        return COULD_NOT_ASK
    try:
        decision = PermissionRequestResult.model_validate(said).result
    except ValidationError:
        log.warning("a client's answer to 'permission.request' could not be read")
        return COULD_NOT_ASK
    return COULD_NOT_ASK if decision.kind == "no-result" else decision.wire()
