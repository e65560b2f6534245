"""A small server of this protocol with one fault, named by its argument; ``none`` is a server without a fault.

It answers ``connect``, ``ping``, ``session.create`` and ``session.send``, whose run calls one tool. It shares no
code with the product.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from typing import Any

FAULT = sys.argv[1]
SESSION = "s-1"
PARENT: list[str | None] = [None]


def read() -> Any:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        length = int(line.partition(b":")[2])
    return json.loads(sys.stdin.buffer.read(length)) if length else None


def write(message: Any) -> None:
    write_body(json.dumps({"jsonrpc": "2.0", **message} if FAULT != "no_version" else message).encode())


def write_body(body: bytes) -> None:
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    sys.stdout.buffer.flush()


def event(kind: str, **data: Any) -> None:
    event_id = "the-same" if FAULT == "same_event_id" else str(uuid.uuid4())
    parent = "nobody" if FAULT == "unknown_parent" and kind == "assistant.turn_end" else PARENT[0]
    PARENT[0] = event_id
    envelope = {"id": event_id, "timestamp": "2026-01-01T00:00:00.000Z", "parentId": parent, "type": kind}
    write({"method": "session.event", "params": {"sessionId": SESSION, "event": {**envelope, "data": data}}})


def stray_messages() -> None:
    """Send messages that belong to no run or to no session of the client."""
    info: dict[str, Any] = {
        "id": "x",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "parentId": None,
        "type": "session.info",
        "data": {},
    }
    if FAULT == "unopened_session":
        write({"method": "session.event", "params": {"sessionId": "s-2", "event": info}})
    if FAULT == "event_as_request":
        write({"id": 1, "method": "session.event", "params": {"sessionId": SESSION, "event": info}})
    if FAULT == "array":
        write_body(b"[1, 2]")


def run() -> None:
    """Send the events of one prompt, from ``user.message`` to ``session.idle``."""
    stray_messages()
    event("user.message", content="go")
    event("assistant.turn_start", turnId="0")
    event("assistant.message_delta", messageId="m", deltaContent="Hel")
    event("assistant.message_delta", messageId="m", deltaContent="lo")
    calls = [{"toolCallId": "c", "name": "tool"}]
    if FAULT == "no_message":
        event("assistant.message_delta", messageId="m2", deltaContent="and on")
    event(
        "assistant.message",
        messageId="m",
        content="Goodbye" if FAULT == "other_content" else "Hello",
        toolRequests=calls,
    )
    if FAULT == "late_delta":
        event("assistant.message_delta", messageId="m", deltaContent="!")
    if FAULT != "call_not_run":
        event("tool.execution_start", toolCallId="c")
    if FAULT != "unrequested_permission":
        event("permission.requested", requestId="p")
    if FAULT != "open_permission":
        event("permission.completed", requestId="p")
    if FAULT not in ("no_tool_result", "call_not_run"):
        event("tool.execution_complete", toolCallId="c", success=True)
    if FAULT == "two_tool_results":
        event("tool.execution_complete", toolCallId="c", success=True)
    if FAULT != "open_turn":
        event("assistant.turn_end", turnId="0")
    if FAULT != "no_idle":
        event("session.idle")
    if FAULT == "two_idles":
        event("session.idle")
    if FAULT == "event_after_idle":
        event("assistant.turn_start", turnId="1")
        event("assistant.turn_end", turnId="1")
    if FAULT == "late_call":
        event("external_tool.requested", requestId="e", toolCallId="c")


while (request := read()) is not None:
    method, request_id = request["method"], request["id"]
    result: Any = {"sessionId": SESSION} if method == "session.create" else {}
    response: Any = {"id": request_id, "result": result}
    if method == "session.create":
        event("session.start")
    if method == "session.send":
        match FAULT:
            case "wrong_id":
                response["id"] = request_id + 100
            case "string_id":
                response["id"] = str(request_id)
            case "result_and_error":
                response["error"] = {"code": -32603, "message": "no"}
            case "neither":
                del response["result"]
            case "bad_error":
                del response["result"]
                response["error"] = "no"
            case "two_responses":
                write(response)
            case "not_json":
                sys.stdout.buffer.write(b"Content-Length: 4\r\n\r\noops")
            case "noise":
                sys.stdout.buffer.write(b"Starting up...\r\n\r\n")
            case _:
                pass
    if method != "session.send" or FAULT != "no_response":
        write(response)
    if method == "session.send":
        run()
if FAULT == "stays":
    time.sleep(60)
sys.exit(3 if FAULT == "bad_exit" else 0)
