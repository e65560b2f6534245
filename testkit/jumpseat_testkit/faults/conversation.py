"""What the small server of the peer says, in each protocol: a session, and a turn with a question and a tool call.

The messages are marked with the part that they have in the conversation, by which faults find them:

============ ================================================================================================
``greeting`` the response to the first request
``session``  the response to the request that creates a session
``answer``   the response to the prompt; in AHP, where prompts have none, to ``subscribe``
``begin``    the turn has begun
``delta``    a piece of the answer; there are two
``message``  the whole answer, where the protocol has such a message
``call``     a tool call has begun
``question`` the client is asked about the call
``settled``  the question is answered
``result``   the tool call has ended
``end``      the turn has ended
============ ================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.protocols import ProtocolName

JsonObject: TypeAlias = dict[str, Any]
Part: TypeAlias = Literal[
    "greeting",
    "session",
    "answer",
    "begin",
    "delta",
    "message",
    "call",
    "question",
    "settled",
    "result",
    "end",
    "other",
]

SESSION: Final = "session-1"
CHAT: Final = "ahp-chat:/chat-1"
CALL: Final = "call-1"
_TIME: Final = "2026-01-01T00:00:00.000Z"


class Said(NamedTuple):
    """A message of the server, and the part that it has."""

    part: Part
    message: JsonObject


class Talk:
    """One connection. :meth:`hear` returns what the server says to a message of the client."""

    def __init__(self, protocol: ProtocolName) -> None:
        self._hear = _TALKS[protocol]
        self.number = 0
        self.prompt_id: Any = None
        self.parent: str | None = None
        self.is_open = False

    def hear(self, message: JsonObject) -> list[Said]:
        """Return the messages that follow a message of the client."""
        return list(self._hear(self, message))

    def next(self) -> int:
        """Return the next number of this connection."""
        self.number += 1
        return self.number


def _response(part: Part, message: JsonObject, result: Any) -> Said:
    return Said(part, {"jsonrpc": "2.0", "id": message.get("id"), "result": result})


def _notification(part: Part, method: str, params: JsonObject) -> Said:
    return Said(part, {"jsonrpc": "2.0", "method": method, "params": params})


def _unknown(message: JsonObject) -> Iterator[Said]:
    """Answer a request that the server does not know."""
    if "id" in message and "method" in message:
        error = {"code": -32601, "message": f"unknown method {message['method']!r}"}
        yield Said("other", {"jsonrpc": "2.0", "id": message["id"], "error": error})


# --- the Copilot SDK protocol -----------------------------------------------------------------------------------


def _hear_copilot(talk: Talk, message: JsonObject) -> Iterator[Said]:
    match message.get("method"):
        case "connect" | "ping":
            yield _response("greeting" if talk.number == 0 else "other", message, {"protocolVersion": 3})
        case "session.create":
            yield _event(talk, "other", "session.start", sessionId=SESSION)
            yield _response("session", message, {"sessionId": SESSION})
        case "session.send":
            yield _response("answer", message, {"messageId": "message-1"})
            yield from _begin_copilot(talk)
        case "session.permissions.handlePendingPermissionRequest" if talk.is_open:
            talk.is_open = False
            yield _response("other", message, {"success": True})
            yield from _end_copilot(talk)
        case "session.destroy" | "runtime.shutdown":
            yield _response("other", message, {})
        case _:
            yield from _unknown(message)


def _begin_copilot(talk: Talk) -> Iterator[Said]:
    calls: list[JsonObject] = [{"toolCallId": CALL, "name": "look", "arguments": {}}]
    yield _event(talk, "begin", "user.message", content="go")
    yield _event(talk, "other", "assistant.turn_start", turnId="0")
    yield _event(talk, "delta", "assistant.message_delta", messageId="m1", deltaContent="Let me ")
    yield _event(talk, "delta", "assistant.message_delta", messageId="m1", deltaContent="look.")
    yield _event(talk, "message", "assistant.message", messageId="m1", content="Let me look.", toolRequests=calls)
    yield _event(talk, "call", "tool.execution_start", toolCallId=CALL, toolName="look")
    question = {"kind": "read", "path": "/a.txt", "intention": "Look", "toolCallId": CALL}
    yield _event(talk, "question", "permission.requested", requestId="question-1", permissionRequest=question)
    talk.is_open = True


def _end_copilot(talk: Talk) -> Iterator[Said]:
    outcome = {"kind": "approved"}
    yield _event(talk, "settled", "permission.completed", requestId="question-1", result=outcome)
    result = {"content": "seen"}
    yield _event(talk, "result", "tool.execution_complete", toolCallId=CALL, success=True, result=result)
    yield _event(talk, "other", "assistant.turn_end", turnId="0")
    yield _event(talk, "end", "session.idle")


def _event(talk: Talk, part: Part, kind: str, /, **data: Any) -> Said:
    envelope = {"id": f"event-{talk.next()}", "timestamp": _TIME, "parentId": talk.parent, "type": kind}
    talk.parent = str(envelope["id"])
    return _notification(part, "session.event", {"sessionId": SESSION, "event": {**envelope, "data": data}})


# --- the Agent Client Protocol ----------------------------------------------------------------------------------


def _hear_acp(talk: Talk, message: JsonObject, version: int) -> Iterator[Said]:
    match message.get("method"):
        case "initialize":
            yield _response("greeting", message, {"protocolVersion": version, **_ABOUT[version]})
        case "session/new":
            yield _response("session", message, {"sessionId": SESSION})
        case "session/prompt":
            talk.prompt_id = message.get("id")
            yield from _begin_acp(talk, version)
        case None if talk.is_open and message.get("id") == QUESTION_ID:
            talk.is_open = False
            yield from _end_acp(talk, version)
        case _:
            yield from _unknown(message)


_AGENT: Final = {"name": "peer", "version": "1"}
_ABOUT: Final[Mapping[int, JsonObject]] = {
    1: {"agentInfo": _AGENT, "agentCapabilities": {}, "authMethods": []},
    2: {"info": _AGENT, "capabilities": {}},
}
QUESTION_ID: Final = "question-1"


def _begin_acp(talk: Talk, version: int) -> Iterator[Said]:
    if version == 2:
        yield _response("answer", {"id": talk.prompt_id}, {"messageId": "m0"})
        yield _update("other", "user_message", messageId="m0", content=[{"type": "text", "text": "go"}])
        yield _update("begin", "state_update", state="running")
    for text in ("Let me ", "look."):
        yield _update("delta", "agent_message_chunk", messageId="m1", content={"type": "text", "text": text})
    kind = "tool_call" if version == 1 else "tool_call_update"
    yield _update("call", kind, toolCallId=CALL, title="Look", kind="read", status="pending")
    options = [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ]
    about: JsonObject = {"toolCall": {"toolCallId": CALL, "title": "Look"}}
    if version == 2:
        about = {"title": "Look", "subject": {"type": "tool_call", "toolCall": {"toolCallId": CALL}}}
    params = {"sessionId": SESSION, **about, "options": options}
    yield Said(
        "question",
        {"jsonrpc": "2.0", "id": QUESTION_ID, "method": "session/request_permission", "params": params},
    )
    talk.is_open = True


def _end_acp(talk: Talk, version: int) -> Iterator[Said]:
    yield _update("settled", "tool_call_update", toolCallId=CALL, status="in_progress")
    yield _update("result", "tool_call_update", toolCallId=CALL, status="completed")
    if version == 1:
        yield _response("answer", {"id": talk.prompt_id}, {"stopReason": "end_turn"})
    else:
        yield _update("end", "state_update", state="idle", stopReason="end_turn")


def _update(part: Part, kind: str, /, **more: Any) -> Said:
    return _notification(part, "session/update", {"sessionId": SESSION, "update": {"sessionUpdate": kind, **more}})


# --- the Agent Host Protocol ------------------------------------------------------------------------------------


def _hear_ahp(talk: Talk, message: JsonObject) -> Iterator[Said]:
    params = as_object(message.get("params"))
    action = as_object(params.get("action"))
    match message.get("method"):
        case "initialize":
            known: JsonObject = {"protocolVersion": "1.0.0", "serverSeq": 0, "snapshots": []}
            yield _response("greeting", message, known)
        case "ping":
            yield _response("other", message, {})
        case "createSession":
            yield _response("session", message, None)
        case "subscribe":
            is_chat = params.get("channel") == CHAT
            chats = {"chats": [{"resource": CHAT, "title": "", "status": 1}], "lifecycle": "ready"}
            state: JsonObject = {"resource": CHAT, "turns": []} if is_chat else chats
            snapshot = {"resource": params.get("channel"), "state": state, "fromSeq": talk.number * 10}
            yield _response("answer" if is_chat else "other", message, {"snapshot": snapshot})
        case "dispatchAction" if action.get("type") == "chat/turnStarted":
            yield from _begin_ahp(talk, action)
        case "dispatchAction" if action.get("type") == "chat/toolCallConfirmed" and talk.is_open:
            talk.is_open = False
            yield from _end_ahp(talk)
        case _:
            yield from _unknown(message)


def _begin_ahp(talk: Talk, action: JsonObject) -> Iterator[Said]:
    talk.prompt_id = action.get("turnId")
    yield _action(talk, "begin", "chat/turnStarted", startedAt=_TIME, message=action.get("message"))
    more: JsonObject = {"part": {"kind": "markdown", "id": "part-1", "content": ""}}
    yield _notification("other", "action", _envelope(talk, "chat/responsePart", more))
    yield _action(talk, "delta", "chat/delta", partId="part-1", content="Let me ")
    yield _action(talk, "delta", "chat/delta", partId="part-1", content="look.")
    yield _action(talk, "call", "chat/toolCallStart", toolCallId=CALL, toolName="look", displayName="look")
    options = [{"id": "once", "label": "Allow", "kind": "approve"}]
    yield _action(
        talk, "question", "chat/toolCallReady", toolCallId=CALL, invocationMessage="Look", options=options
    )
    talk.is_open = True


def _end_ahp(talk: Talk) -> Iterator[Said]:
    yield _action(talk, "settled", "chat/toolCallConfirmed", toolCallId=CALL, approved=True)
    result = {"success": True, "pastTenseMessage": "Looked"}
    yield _action(talk, "result", "chat/toolCallComplete", toolCallId=CALL, result=result)
    yield _action(talk, "end", "chat/turnComplete")


def _action(talk: Talk, part: Part, kind: str, /, **more: Any) -> Said:
    return _notification(part, "action", _envelope(talk, kind, more))


def _envelope(talk: Talk, kind: str, more: JsonObject) -> JsonObject:
    action = {"type": kind, "turnId": talk.prompt_id, **more}
    # Faults use the numbers in between.
    return {"channel": CHAT, "action": action, "serverSeq": talk.next() * 10}


_TALKS: Final[Mapping[ProtocolName, Callable[[Talk, JsonObject], Iterator[Said]]]] = {
    "copilot": _hear_copilot,
    "copilot-3": _hear_copilot,
    "acp-1": lambda talk, message: _hear_acp(talk, message, 1),
    "acp-2": lambda talk, message: _hear_acp(talk, message, 2),
    "ahp": _hear_ahp,
}
