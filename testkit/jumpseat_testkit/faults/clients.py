"""All faults of a client, in one table: the other half of :mod:`jumpseat_testkit.faults.table`.

A client with a fault plays a script, and does something else in the place of one of its messages.
To add one, add an entry to :data:`CLIENT_FAULTS`;
``python -m jumpseat_testkit.faults.page > docs/script-faults.md`` updates the page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.faults.table import Raw
from jumpseat_testkit.protocols import ProtocolName

JsonObject: TypeAlias = dict[str, Any]
Part: TypeAlias = Literal["first", "session", "prompt", "answer"]
"""The message that is replaced: the first one, that which opens a session, a prompt, the answer to a question."""
Act: TypeAlias = Literal["cut", "close", "pieces", "cancel", "wait"]

_ACP: Final[Collection[ProtocolName]] = ("acp-1", "acp-2")
_ALL: Final[Collection[ProtocolName]] = ("copilot", "acp-1", "acp-2", "ahp")
_HEADERS: Final[Collection[ProtocolName]] = ("copilot",)
_LINES: Final[Collection[ProtocolName]] = ("acp-1", "acp-2", "ahp")
HUGE: Final = 8 * 1024 * 1024
"""The size of a huge message, in bytes."""
_DEEP: Final = 100_000


class Do(Struct, frozen=True):
    """Something that the client does.

    ``cut``: send the first half of this message. ``close``: close the output. ``pieces``: send this message byte by
    byte. ``cancel``: cancel the turn. ``wait``: read for a moment.
    """

    what: Act
    message: JsonObject | None = None


Change: TypeAlias = Callable[[JsonObject], list[Any]]
"""Returns what is sent in the place of a message: messages, raw bytes, and things to do."""


class ClientFault(Struct, frozen=True):
    """A fault of a client.

    ``may_end``: the agent may end the connection, because it cannot know where the next message begins.
    ``is_lawful``: the client is unusual rather than wrong, and the conversation has to obey all rules.
    """

    about: str
    part: Part
    change: Change
    protocols: Collection[ProtocolName] = _ALL
    may_end: bool = False
    is_lawful: bool = False


def _with(**members: Any) -> Change:
    return lambda message: [{**message, **members}]


def _without(*names: str) -> Change:
    return lambda message: [{name: value for name, value in message.items() if name not in names}]


def _first(*others: Any) -> Change:
    """Send something first, and the message then."""
    return lambda message: [*others, message]


def _then(*others: Any) -> Change:
    return lambda message: [message, *others]


def _body(data: bytes) -> Change:
    return lambda message: [Raw(data, is_body=True), message]


def _raw(data: bytes) -> Change:
    return lambda message: [Raw(data), message]


def _header(about: str, data: bytes) -> ClientFault:
    """Return the fault of a header, behind which no message can be found."""
    return ClientFault(about, "session", _raw(data), _HEADERS, may_end=True)


def _session(value: Any) -> Change:
    """Send the message with another session, under an id of its own, and then as it is."""

    def change(message: JsonObject) -> list[Any]:
        params = as_object(message.get("params"))
        name = "channel" if "channel" in params else "sessionId"
        other = {**message, "params": {**params, name: value}}
        return [{**other, "id": "other"} if "id" in message else other, message]

    return change


def _twice(message: JsonObject) -> list[Any]:
    return [message, message]


def _cut(message: JsonObject) -> list[Any]:
    return [Do("cut", message), Do("close")]


def _request(method: Any, **members: Any) -> JsonObject:
    return {"jsonrpc": "2.0", "id": "extra", "method": method, **members}


_HUGE_VALUE: Final = _request("_huge", params={"value": "x" * HUGE})
_UNASKED: Final[JsonObject] = {"jsonrpc": "2.0", "id": "nobody-asked", "result": {}}
_CANCEL: Final = Do("cancel")
_CLOSE: Final = Do("close")
_WAIT: Final = Do("wait")

CLIENT_FAULTS: Final[Mapping[str, ClientFault]] = {
    "not_json": ClientFault("a message that is not JSON", "session", _body(b"{]"), may_end=True),
    "cut_json": ClientFault("a message that lacks its end", "session", _body(b'{"jsonrpc": "2.0", "id": 1')),
    "not_utf_8": ClientFault("a message that is not UTF-8", "session", _body(b'{"id": "\xff\xfe"}'), may_end=True),
    "array": ClientFault("messages in an array", "session", _body(b'[{"jsonrpc":"2.0","method":"x"}]')),
    "empty_array": ClientFault("an empty array", "session", _body(b"[]")),
    "number": ClientFault("a number instead of a message", "session", _body(b"42")),
    "empty_object": ClientFault("an object without members", "session", _body(b"{}")),
    "deep": ClientFault(f"{_DEEP:,} brackets", "session", _body(b"[" * _DEEP), may_end=True),
    "huge_value": ClientFault(f"a message of {HUGE >> 20} MiB", "session", _first(_HUGE_VALUE), is_lawful=True),
    "half_message": ClientFault("half a message, and then the end", "session", _cut, may_end=True),
    "half_first_message": ClientFault("half of the first message, and the end", "first", _cut, may_end=True),
    "half_answer": ClientFault("half of an answer, and then the end", "answer", _cut, may_end=True),
    "pieces": ClientFault("a message byte by byte", "session", lambda it: [Do("pieces", it)], is_lawful=True),
    "empty_lines": ClientFault("empty lines", "session", _raw(b"\n\n\r\n"), _LINES, is_lawful=True),
    "broken_line": ClientFault("a message on two lines", "session", _raw(b'{"jsonrpc":\n"2.0"}\n'), _LINES),
    "long_length": ClientFault(
        "a Content-Length that is too large, and the end",
        "session",
        lambda _: [Raw(b"Content-Length: 999\r\n\r\n{}"), _CLOSE],
        _HEADERS,
        may_end=True,
    ),
    "short_length": _header("a Content-Length that is too small", b"Content-Length: 1\r\n\r\n{}"),
    "giant_length": _header("a Content-Length of a terabyte", b"Content-Length: 1000000000000\r\n\r\n"),
    "negative_length": _header("a negative Content-Length", b"Content-Length: -1\r\n\r\n"),
    "length_in_words": _header("a Content-Length that is no number", b"Content-Length: ten\r\n\r\n"),
    "no_length": _header("a header without Content-Length", b"Content-Type: json\r\n\r\n{}"),
    "no_version": ClientFault('a request without "jsonrpc"', "session", _without("jsonrpc")),
    "other_version": ClientFault('a request with "jsonrpc": "1.0"', "session", _with(jsonrpc="1.0")),
    "unknown_method": ClientFault(
        "an unknown method", "session", _first(_request("no/such.method")), is_lawful=True
    ),
    "method_as_number": ClientFault("a method that is a number", "session", _first(_request(7))),
    "no_params": ClientFault("a request without params", "prompt", _without("params")),
    "params_as_string": ClientFault("params that are a string", "prompt", _with(params="go")),
    "params_as_array": ClientFault("params that are an array", "prompt", _with(params=["go"])),
    "id_as_object": ClientFault("an id that is an object", "session", _with(id={})),
    "id_as_fraction": ClientFault("an id that is a fraction", "session", _with(id=1.5)),
    "null_id": ClientFault("an id that is null", "session", _with(id=None)),
    "same_id": ClientFault("two requests with the same id", "session", _twice),
    "unknown_member": ClientFault("members that nobody knows", "session", _with(x_new=1), is_lawful=True),
    "unknown_session": ClientFault("a prompt for an unknown session", "prompt", _session("ahp-chat:/none")),
    "session_as_number": ClientFault("a prompt for a session that is a number", "prompt", _session(7)),
    "no_greeting": ClientFault("a request before the first one", "first", lambda _: []),
    "two_greetings": ClientFault("a second greeting", "first", lambda it: [it, {**it, "id": "again"}]),
    "unasked_answer": ClientFault("an answer to a question that nobody asked", "prompt", _first(_UNASKED)),
    "late_unasked_answer": ClientFault("the same in a turn", "prompt", _then(_WAIT, _UNASKED)),
    "two_prompts": ClientFault("a prompt in the middle of a turn", "prompt", lambda it: [it, _second(it)]),
    "no_answer": ClientFault("no answer to a question, and a cancellation", "answer", lambda _: [_CANCEL]),
    "late_answer": ClientFault("an answer after the cancellation", "answer", _first(_CANCEL, _WAIT)),
    "two_answers": ClientFault("two answers to a question", "answer", _twice),
    "wrong_answer": ClientFault("an answer of another form", "answer", lambda it: [_of_another_form(it)]),
    "answer_with_unknown_id": ClientFault("an answer with another id", "answer", lambda it: [_other_id(it), it]),
    "error_as_answer": ClientFault(
        "an error instead of an answer",
        "answer",
        lambda it: [{"jsonrpc": "2.0", "id": it["id"], "error": {"code": -32603, "message": "no"}}],
        _ACP,
    ),
    "result_and_error": ClientFault(
        "a result and an error", "answer", _with(error={"code": 1, "message": "no"}), _ACP
    ),
    "empty_answer": ClientFault("an answer with neither result nor error", "answer", _without("result"), _ACP),
    "cancel_at_once": ClientFault("a cancellation right after the prompt", "prompt", _then(_CANCEL)),
    "cancel_before": ClientFault("a cancellation before the prompt", "prompt", _first(_CANCEL)),
    "cancel_twice": ClientFault("two cancellations", "prompt", _then(_WAIT, _CANCEL, _CANCEL)),
    "closes_at_once": ClientFault("the end without a message", "first", lambda _: [_CLOSE], may_end=True),
    "closes_after_prompt": ClientFault("the end right after the prompt", "prompt", _then(_CLOSE), may_end=True),
    "closes_in_turn": ClientFault("the end in a turn", "prompt", _then(_WAIT, _CLOSE), may_end=True),
    "closes_in_question": ClientFault("the end instead of an answer", "answer", lambda _: [_CLOSE], may_end=True),
}


def _second(message: JsonObject) -> JsonObject:
    """Return a second prompt like the first."""
    params = as_object(message.get("params"))
    action = as_object(params.get("action"))
    if action:
        again = {**action, "turnId": f"{action.get('turnId')}-2"}
        return {**message, "params": {**params, "clientSeq": 1000, "action": again}}
    return {**message, "id": "second"}


def _of_another_form(message: JsonObject) -> JsonObject:
    """Replace what a client answers: in a response the result, in a request the decision."""
    if "result" in message:
        return {**message, "result": 7}
    params = as_object(message.get("params"))
    return {**message, "params": {**params, "result": 7} if "result" in params else {**params, "action": 7}}


def _other_id(message: JsonObject) -> JsonObject:
    """Answer another question than the one that was asked."""
    if "method" not in message:
        return {**message, "id": "nobody-asked"}
    text = json.dumps(message["params"])
    params = json.loads(text)
    for place in (params, as_object(params.get("action"))):
        for name in ("requestId", "toolCallId"):
            if name in place:
                place[name] = "nobody-asked"
    return {**message, "params": params, **({"id": "other"} if "id" in message else {})}
