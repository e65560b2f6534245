"""Rules of providers for conversations with tool calls, on every wire."""

from __future__ import annotations

import json
from typing import Any, Final, cast

JsonObject = dict[str, Any]

_KINDS: Final = {"user_input": "user", "model_output": "assistant"}


def check_calls(name: str, body: JsonObject) -> None:
    """Assert that a request to ``name`` has each call once, directly followed by its one result, in order."""
    due: list[str] = []
    answering = False
    for kind, call_id in steps(body):
        if kind == "call":
            assert not (answering and due), (name, call_id, due)
            answering = False
            due.append(call_id)
        elif kind == "result":
            answering = True
            assert due[:1] == [call_id], (name, call_id, due)
            del due[0]
        else:
            assert not due, (name, kind, due)
    assert not due, (name, due)


def steps(body: JsonObject) -> list[tuple[str, str]]:
    """Return a request as roles, calls and results, with their ids, or their names on a wire without ids."""
    if "contents" in body:
        return [step for content in body["contents"] for step in _gemini_steps(content["parts"], content["role"])]
    if "input" in body:
        return [_item_step(item) for item in body["input"]]
    messages: list[JsonObject] = [message for message in body["messages"] if message["role"] != "system"]
    if any(part["type"].startswith("tool_") for message in messages for part in _parts(message)):
        # Anthropic: the user begins, and the roles alternate.
        roles: list[str] = [message["role"] for message in messages]
        assert roles == (["user", "assistant"] * len(roles))[: len(roles)]
    return [step for message in messages for step in _message_steps(message)]


def _gemini_steps(parts: list[JsonObject], role: str) -> list[tuple[str, str]]:
    calls: list[JsonObject] = [part["functionCall"] for part in parts if "functionCall" in part]
    results: list[JsonObject] = [part["functionResponse"] for part in parts if "functionResponse" in part]
    assert all(isinstance(call["args"], dict) for call in calls)
    assert not (calls and results)
    out = [("call", call["name"]) for call in calls] + [("result", result["name"]) for result in results]
    return out if results else [({"model": "assistant"}.get(role, role), ""), *out]


def _item_step(item: JsonObject) -> tuple[str, str]:
    match item.get("type", "message"):
        case "function_call":
            _assert_object(item["arguments"])
            return "call", item.get("call_id") or item["id"]
        case "function_call_output" | "function_result":
            return "result", item["call_id"]
        case "message":
            return item["role"], ""
        case kind:
            return _KINDS[kind], ""


def _message_steps(message: JsonObject) -> list[tuple[str, str]]:
    calls: list[JsonObject] = message.get("tool_calls") or []
    for call in calls:
        _assert_object(call["function"]["arguments"])
    if message["role"] == "tool":
        return [("result", message["tool_call_id"])]
    parts = _parts(message)
    results = [("result", part["tool_use_id"]) for part in parts if part["type"] == "tool_result"]
    uses = [part for part in parts if part["type"] == "tool_use"]
    for use in uses:
        _assert_object(use["input"])
    steps_of_calls = [("call", use["id"]) for use in uses] + [("call", call["id"]) for call in calls]
    # Results come first in a message.
    assert [part["type"] for part in parts[: len(results)]] == ["tool_result"] * len(results)
    return [*results, *steps_of_calls] if results else [(message["role"], ""), *steps_of_calls]


def _parts(message: JsonObject) -> list[JsonObject]:
    content: Any = message["content"]
    return cast("list[JsonObject]", content) if isinstance(content, list) else []


def _assert_object(arguments: Any) -> None:
    assert isinstance(json.loads(arguments) if isinstance(arguments, str) else arguments, dict)
