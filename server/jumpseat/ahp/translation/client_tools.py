"""Convert the tools that clients bring, and the results of their calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import ValidationError

from jumpseat.ahp.states.values import JsonObject, State
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.sessions import ClientTool


def owners_of(clients: Iterable[JsonObject]) -> dict[str, str]:
    """Return the ids of the active clients by the names of their tools. The first client with a tool runs it."""
    owners: dict[str, str] = {}
    for client in clients:
        for tool in client["tools"]:
            owners.setdefault(tool["name"], client["clientId"])
    return owners


def tools_of(clients: Iterable[JsonObject]) -> list[ClientTool]:
    """Return the tools of all active clients, of those with the same name in two clients the first one.

    Raises:
        InvalidRequestError: a tool is malformed.
    """
    found: dict[str, ClientTool] = {}
    for client in clients:
        own = [_tool(one) for one in cast("list[Any]", client["tools"])]
        if len({tool.name for tool in own}) < len(own):
            raise InvalidRequestError("two tools have the same name")
        for tool in own:
            found.setdefault(tool.name, tool)
    return list(found.values())


def _tool(declared: Any) -> ClientTool:
    if not isinstance(declared, dict):
        raise InvalidRequestError("a tool is not an object")
    members = cast("JsonObject", declared)
    annotations: Any = members.get("annotations")
    try:
        return ClientTool(
            name=cast("Any", members.get("name")),
            description=members.get("description") or members.get("title") or "",
            parameters=members.get("inputSchema"),
            # The client asks its user itself, if need be.
            skip_permission=True,
            metadata=cast("JsonObject", annotations) if isinstance(annotations, dict) else None,
        )
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise InvalidRequestError(f"tool {str(members.get('name'))[:100]!r}: {where}: {problem['msg']}") from None


def call_of(chat: State, turn_id: str, call_id: str) -> JsonObject | None:
    """Return a call of the active turn."""
    active: JsonObject | None = chat.get("activeTurn")
    if active is None or active["id"] != turn_id:
        return None
    calls = [part["toolCall"] for part in active["responseParts"] if part["kind"] == "toolCall"]
    return next((call for call in calls if call["toolCallId"] == call_id), None)


def runner_of(call: JsonObject) -> str | None:
    """Return the id of the client that runs a call, ``None`` if the server does or the call does not run."""
    contributor: Mapping[str, Any] = call.get("contributor") or {}
    return contributor.get("clientId") if call["status"] == "running" else None


def result_for_model(result: JsonObject) -> JsonObject:
    """Return the result of a client's call in the form of the other protocol."""
    texts: list[str] = []
    binary: list[JsonObject] = []
    for item in _objects(result.get("content")):
        match item.get("type"):
            case "text":
                texts.append(str(item.get("text") or ""))
            case "embeddedResource":
                content_type = str(item.get("contentType") or "application/octet-stream")
                kind = "image" if content_type.startswith("image/") else "resource"
                binary.append({"type": kind, "data": item.get("data"), "mimeType": content_type})
            case "resource":
                texts.append(str(item.get("uri") or ""))
            case _:
                # Clients show the others; the model cannot read them.
                continue
    error: Any = result.get("error")
    message = str(cast("JsonObject", error).get("message") or "") if isinstance(error, dict) else ""
    success = result.get("success") is True
    return {
        "textResultForLlm": "\n".join(texts) or message,
        "resultType": "success" if success else "failure",
        **({} if success else {"error": message or "The tool failed"}),
        "binaryResultsForLlm": binary,
    }


def _objects(value: Any) -> list[JsonObject]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("JsonObject", item) for item in items if isinstance(item, dict)]
