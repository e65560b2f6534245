"""All kinds of faults, in one table.

A fault changes a message of one part of the conversation (see :mod:`jumpseat_testkit.faults.conversation`).
To add one, add an entry to :data:`FAULTS`;
``python -m jumpseat_testkit.faults.page > docs/script-faults.md`` updates the page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from jumpseat_testkit.faults.conversation import Part
from jumpseat_testkit.protocols import ProtocolName

JsonObject: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[JsonObject], "list[Any]"]
"""Returns what is sent in the place of a message: messages, raw bytes, and things to do."""


class Raw(Struct, frozen=True):
    """Bytes that are sent as they are. ``body``: framed as a message first."""

    data: bytes
    is_body: bool = False


class Do(Struct, frozen=True):
    """Something that the peer does.

    ``exit``: end with this code. ``wait``: send nothing for so many seconds. ``hold``: keep this message until the
    turn has ended. ``silent``: send nothing any more. ``close``: close the output, and stay. ``stay``: do not exit
    at the end of the input. ``pieces``: send this message byte by byte. ``joined``: send this message together with
    the next one. ``length``: add this to the Content-Length of the message.
    """

    what: str
    message: JsonObject | None = None
    number: float = 0


class Fault(Struct, frozen=True):
    """A kind of fault. ``is_harmless``: the peer is unusual rather than wrong, and a client has to go on."""

    about: str
    part: Part
    change: Change
    protocols: Collection[ProtocolName] = ("copilot", "acp-1", "acp-2", "ahp")
    is_harmless: bool = False


LATE_S: Final = 30.0
"""The delay of a late message, in seconds: more than the limit of a test, less than that of a person."""

_COPILOT: Final[Collection[ProtocolName]] = ("copilot",)
_ACP: Final[Collection[ProtocolName]] = ("acp-1", "acp-2")
_ACP_1: Final[Collection[ProtocolName]] = ("acp-1",)
_ACP_2: Final[Collection[ProtocolName]] = ("acp-2",)
_AHP: Final[Collection[ProtocolName]] = ("ahp",)
_HEADERS: Final = _COPILOT
_LINES: Final[Collection[ProtocolName]] = ("acp-1", "acp-2", "ahp")
# In the draft of version 2, work in the background may go on after the end of a turn.
_NOT_ACP_2: Final[Collection[ProtocolName]] = ("copilot", "acp-1", "ahp")
_NOT_ACP_1: Final[Collection[ProtocolName]] = ("copilot", "acp-2", "ahp")


def _with(**members: Any) -> Change:
    """Replace members of the message; ``...`` removes one."""

    def change(message: JsonObject) -> list[Any]:
        found = {**message, **members}
        return [{name: value for name, value in found.items() if value is not ...}]

    return change


def _params(**members: Any) -> Change:
    """Replace members of the params."""

    def change(message: JsonObject) -> list[Any]:
        found = {**message["params"], **members}
        return [{**message, "params": {name: value for name, value in found.items() if value is not ...}}]

    return change


def _event(change_event: Callable[[JsonObject], Any]) -> Change:
    """Replace the event in the message, whatever it is called."""

    def change(message: JsonObject) -> list[Any]:
        params = message["params"]
        name = next(name for name in ("event", "update", "action") if name in params)
        return [{**message, "params": {**params, name: change_event(params[name])}}]

    return change


def _member(*names: str, to: Any) -> Change:
    """Replace the first of these members that the event has, or its data."""

    def change_event(event: JsonObject) -> Any:
        inner: JsonObject = event.get("data", event)
        name = next((name for name in names if name in inner), names[0])
        changed = {key: value for key, value in {**inner, name: to}.items() if value is not ...}
        return {**event, "data": changed} if "data" in event else changed

    return _event(change_event)


def _kindless(event: JsonObject) -> JsonObject:
    return {name: value for name, value in event.items() if name not in ("type", "sessionUpdate")}


def _of_unknown_kind(event: JsonObject) -> JsonObject:
    name = "sessionUpdate" if "sessionUpdate" in event else "type"
    return {**event, name: "never_heard_of"}


def _unknown_event(message: JsonObject) -> list[Any]:
    """Send an event of an unknown kind before the message, with an id and a number of its own."""
    (extra,) = _event(_of_unknown_kind)(message)
    if "event" in extra["params"]:
        extra["params"]["event"]["id"] = "event-unknown"
    return [extra, message]


def _error(error: Any) -> Change:
    return _with(result=..., error=error)


def _half(message: JsonObject) -> list[Any]:
    return [Raw(_encode(message)[:-9], is_body=True)]


def _encode(message: Any) -> bytes:
    return json.dumps(message).encode()


_DROP: Final[Change] = lambda message: []  # noqa: E731
_TWICE: Final[Change] = lambda message: [message, message]  # noqa: E731
_BIG: Final = "x" * 1_000_000

FAULTS: Final[Mapping[str, Fault]] = {
    # --- answers
    "no_answer": Fault("never answers a request", "answer", _DROP),
    "late_answer": Fault(f"answers after {LATE_S:g} s", "answer", lambda m: [Do("wait", number=LATE_S), m]),
    "two_answers": Fault("answers twice", "answer", _TWICE),
    "two_kinds_of_answers": Fault(
        "answers, and then with an error", "answer", lambda m: [m, *_error({"code": -32603, "message": "no"})(m)]
    ),
    "wrong_id": Fault("answers with an id that nobody has sent", "answer", _with(id=987654)),
    "id_of_another_type": Fault("answers with the id as an array", "answer", lambda m: [{**m, "id": [m["id"]]}]),
    "null_id": Fault("answers with the id null", "answer", _with(id=None)),
    "no_id": Fault("answers without an id", "answer", _with(id=...)),
    "result_and_error": Fault(
        "answers with a result and an error", "answer", _with(error={"code": -32603, "message": "no"})
    ),
    "no_result": Fault("answers with neither result nor error", "answer", _with(result=...)),
    "error_without_code": Fault("an error without a code", "answer", _error({"message": "no"})),
    "error_without_message": Fault("an error without a message", "answer", _error({"code": -32603})),
    "error_as_string": Fault("an error that is a string", "answer", _error("no")),
    "code_as_string": Fault("an error whose code is a string", "answer", _error({"code": "1", "message": "no"})),
    "unexpected_error": Fault(
        "refuses a valid request", "answer", _error({"code": -32603, "message": "internal error"})
    ),
    "result_of_another_type": Fault("a result that is a number", "session", _with(result=7), ("copilot", *_ACP)),
    "session_without_id": Fault("a new session without an id", "session", _with(result={}), ("copilot", *_ACP)),
    "wrong_version": Fault(
        "agrees on a version that does not exist", "greeting", _with(result={"protocolVersion": 99}), (*_ACP, *_AHP)
    ),
    # --- JSON and frames
    "not_json": Fault(
        "a message that is not JSON", "begin", lambda m: [Raw(b"{oops}", is_body=True), m], _NOT_ACP_1
    ),
    "not_json_in_answer": Fault("an answer that is not JSON", "answer", lambda m: [Raw(b"{oops}", is_body=True)]),
    "cut_json": Fault("an answer that lacks its end", "answer", _half),
    "not_utf_8": Fault(
        "an answer that is not UTF-8", "answer", lambda m: [Raw(b'{"a": "\xff\xfe"}', is_body=True)]
    ),
    "array": Fault("messages in an array", "answer", lambda m: [Raw(b"[" + _encode(m) + b"]", is_body=True)]),
    "number": Fault("a number instead of a message", "answer", lambda m: [Raw(b"42", is_body=True)]),
    "no_version": Fault('messages without "jsonrpc"', "answer", _with(jsonrpc=...)),
    "other_version": Fault('messages with "jsonrpc": "1.0"', "answer", _with(jsonrpc="1.0")),
    "noise": Fault("a line of a log among the messages", "answer", lambda m: [Raw(b"INFO ready\r\n\r\n"), m]),
    "short_length": Fault(
        "a Content-Length that is too small", "answer", lambda m: [Do("length", m, -5)], _HEADERS
    ),
    "long_length": Fault("a Content-Length that is too large", "answer", lambda m: [Do("length", m, 7)], _HEADERS),
    "no_length": Fault(
        "a header without Content-Length",
        "answer",
        lambda m: [Raw(b"Content-Type: x\r\n\r\n" + _encode(m))],
        _HEADERS,
    ),
    "length_in_words": Fault(
        "a Content-Length that is no number", "answer", lambda m: [Raw(b"Content-Length: ten\r\n\r\n")], _HEADERS
    ),
    "two_on_a_line": Fault("two messages on one line", "answer", lambda m: [Raw(_encode(m) * 2 + b"\n")], _LINES),
    "broken_line": Fault(
        "a message on two lines", "answer", lambda m: [Raw(_encode(m).replace(b": ", b":\n", 1) + b"\n")], _LINES
    ),
    # --- the end of the process
    "dies_at_once": Fault("exits before the first answer", "greeting", lambda m: [Do("exit", number=1)]),
    "dies_before_answer": Fault("exits instead of an answer", "answer", lambda m: [Do("exit", number=1)]),
    "dies_in_answer": Fault(
        "exits in the middle of an answer", "answer", lambda m: [Raw(_encode(m)[:9]), Do("exit", number=1)]
    ),
    "dies_in_turn": Fault("exits in the middle of a turn", "delta", lambda m: [m, Do("exit", number=0)]),
    "closes_output": Fault("closes its output in a turn, and stays", "delta", lambda m: [m, Do("close")]),
    "goes_silent": Fault("says nothing any more in a turn", "delta", lambda m: [m, Do("silent")]),
    "stays": Fault("goes on when its input is closed", "session", lambda m: [m, Do("stay")]),
    # --- events
    "no_kind": Fault("an event without its type", "call", _event(_kindless)),
    "kind_of_another_type": Fault(
        "an event whose type is a number", "call", _event(lambda e: dict.fromkeys(e, 7) | {"id": "x"})
    ),
    "event_as_string": Fault("an event that is a string", "call", _event(lambda e: "tool")),
    "no_params": Fault("an event without params", "call", _with(params=...)),
    "no_session": Fault("an event that names no session", "call", lambda m: [_without(m, "sessionId", "channel")]),
    "unknown_session": Fault(
        "an event of a session that does not exist", "delta", _params(sessionId="session-9"), ("copilot", *_ACP)
    ),
    "event_with_id": Fault("an event with an id, as if it were a request", "call", _with(id="event")),
    "method_as_number": Fault("a method that is a number", "call", _with(method=7)),
    "same_event_id": Fault(
        "two events with the same id", "delta", _event(lambda e: {**e, "id": "event-1"}), _COPILOT
    ),
    "no_time": Fault("an event without a time", "delta", _event(lambda e: {**e, "timestamp": None}), _COPILOT),
    "unknown_parent": Fault(
        "an event whose parent does not exist", "message", _event(lambda e: {**e, "parentId": "event-99"}), _COPILOT
    ),
    "same_number": Fault("an action with the number of the one before", "call", _params(serverSeq=10), _AHP),
    "number_as_string": Fault("an action whose number is a string", "call", _params(serverSeq="9"), _AHP),
    # --- turns
    "no_end": Fault("a turn that never ends", "end", _DROP, _NOT_ACP_1),
    "two_ends": Fault("a turn that ends twice", "end", lambda m: [m, *_again(m)], ("copilot", "ahp")),
    "early_end": Fault(
        "a turn that ends before its last tool call", "result", lambda m: [Do("hold", m)], _NOT_ACP_2
    ),
    "after_the_end": Fault(
        "a piece of the answer after the end", "delta", lambda m: [Do("hold", *_again(m)), m], _NOT_ACP_2
    ),
    "no_message": Fault("pieces without a whole answer", "message", _DROP, _COPILOT),
    "lost_piece": Fault("a piece of the answer is lost", "delta", _DROP, _COPILOT),
    "other_content": Fault(
        "a whole answer that differs from its pieces", "message", _member("content", to="Other"), _COPILOT
    ),
    "unknown_stop_reason": Fault(
        "a turn that ends with an unknown reason", "answer", _with(result={"stopReason": "bored"}), _ACP_1
    ),
    "unknown_state": Fault("a state that does not exist", "begin", _member("state", to="bored"), _ACP_2),
    "no_message_id": Fault("an acknowledgement without an id", "answer", _with(result={}), _ACP_2),
    # --- tool calls and questions
    "call_never_begun": Fault("the result of a call that was never begun", "call", _DROP, ("copilot", "acp-1")),
    "call_never_ended": Fault("a tool call without a result", "result", _DROP, ("copilot", "acp-1", "ahp")),
    "two_results": Fault(
        "a tool call with two results", "result", lambda m: [m, *_failed(m)], ("copilot", "acp-1", "ahp")
    ),
    "result_of_another_call": Fault(
        "the result of a call that does not exist",
        "result",
        _member("toolCallId", to="call-9"),
        ("copilot", "acp-1", "ahp"),
    ),
    "call_twice": Fault("a call that begins twice", "call", lambda m: [m, *_again(m)], ("acp-1", "ahp")),
    "never_settled": Fault("a question that is never settled", "settled", _DROP, _COPILOT),
    "settled_twice": Fault("a question that is settled twice", "settled", lambda m: [m, *_again(m)], _COPILOT),
    "settles_another": Fault(
        "settles a question that nobody has asked", "settled", _member("requestId", to="q-9"), _COPILOT
    ),
    "asks_twice": Fault("two questions with the same id", "question", _TWICE, _ACP),
    "no_options": Fault("a question without answers to choose from", "question", _params(options=[]), _ACP),
    "options_of_one_id": Fault(
        "a question with two answers of the same id",
        "question",
        _params(options=[{"optionId": "yes", "name": "Yes", "kind": "allow_once"}] * 2),
        _ACP,
    ),
    # --- unusual, and right
    "split_frames": Fault(
        "messages that come byte by byte", "answer", lambda m: [Do("pieces", m)], is_harmless=True
    ),
    "joined_frames": Fault(
        "two messages at once", "begin", lambda m: [Do("joined", m)], _NOT_ACP_1, is_harmless=True
    ),
    "slow": Fault("a pause in the turn", "delta", lambda m: [Do("wait", number=0.3), m], is_harmless=True),
    "unknown_event": Fault("an event of a new kind", "call", _unknown_event, ("copilot", *_ACP), is_harmless=True),
    "unknown_notification": Fault(
        "a notification of a new method",
        "call",
        lambda m: [{"jsonrpc": "2.0", "method": "_new/thing", "params": {}}, m],
        is_harmless=True,
    ),
    "unknown_member": Fault("members that nobody knows", "answer", _with(_new={"a": [1]}), is_harmless=True),
    "more_headers": Fault(
        "a second header",
        "answer",
        lambda m: [
            Raw(b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_encode(m)) + _encode(m))
        ],
        _HEADERS,
        is_harmless=True,
    ),
    "huge_value": Fault("a member of a megabyte", "call", _member("_note", to=_BIG), is_harmless=True),
}


def _without(message: JsonObject, *names: str) -> JsonObject:
    return {**message, "params": {name: value for name, value in message["params"].items() if name not in names}}


def _again(message: JsonObject) -> list[Any]:
    """Return a message again, with an id and a number of its own."""
    params = dict(message["params"])
    if "event" in params:
        params["event"] = {**params["event"], "id": params["event"]["id"] + "-again"}
    if "serverSeq" in params:
        params["serverSeq"] += 1
    return [{**message, "params": params}]


def _failed(message: JsonObject) -> list[Any]:
    """Return a result again, but as that of a call that has failed."""
    (again,) = _again(message)
    if "update" in again["params"]:
        again["params"]["update"] = {**again["params"]["update"], "status": "failed"}
    return [again]
