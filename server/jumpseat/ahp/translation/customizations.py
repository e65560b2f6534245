"""The customizations of a session: agents, skills and instructions in their folders, and MCP servers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias
from urllib.parse import quote

from jumpseat.ahp.states.values import Action, JsonObject, present
from jumpseat.ahp.translation.attachments import uri_of
from jumpseat_protocol.mcp import McpServerInfo

Kind: TypeAlias = Literal["agent", "skill", "rule"]


class Item(NamedTuple):
    """A customization in a file. ``members`` are those that only its kind has."""

    kind: Kind
    path: Path
    name: str
    description: str | None
    members: JsonObject


def folders_of(items: Iterable[Item], cwd: Path) -> list[JsonObject]:
    """Return the folders of some customizations, each with what it contains. Skills have folders of their own."""
    found: dict[tuple[Kind, Path], list[JsonObject]] = {}
    for item in items:
        folder = item.path.parent.parent if item.kind == "skill" else item.path.parent
        uri = uri_of(str(item.path))
        child = {"type": item.kind, "id": uri, "uri": uri, "name": item.name, "description": item.description}
        found.setdefault((item.kind, folder), []).append(present({**child, **item.members}))
    return [
        {
            "type": "directory",
            "id": f"{kind}s:{uri_of(str(folder))}",
            "uri": uri_of(str(folder)),
            "name": str(folder.relative_to(cwd)) if folder.is_relative_to(cwd) else str(folder),
            "enabled": True,
            "contents": kind,
            "writable": False,
            "children": children,
        }
        for (kind, folder), children in found.items()
    ]


_SERVER: Final = "mcp:"


def changes(before: Sequence[JsonObject], after: Sequence[JsonObject]) -> Iterator[Action]:
    """Return the actions that lead from some customizations to others."""
    known = {one["id"]: one for one in before}
    if [one["id"] for one in before] != [one["id"] for one in after] or any(
        {**known[one["id"]], "state": None} != {**one, "state": None} for one in after
    ):
        yield {"type": "session/customizationsChanged", "customizations": list(after)}
        return
    for one in after:
        if one.get("state") != known[one["id"]].get("state"):
            yield {"type": "session/mcpServerStateChanged", "id": one["id"], "state": one["state"]}


def server_of(server: McpServerInfo, session_uri: str, url: str | None) -> JsonObject:
    """Return an MCP server. ``url`` is its address, if it has one."""
    return {
        "type": "mcpServer",
        "id": server_id(server.name),
        "uri": f"{session_uri}/mcp/{quote(server.name, safe='')}",
        "name": server.name,
        "state": server_state(server.status, server.error, url),
    }


def server_id(name: str) -> str:
    """Return the id of an MCP server."""
    return f"{_SERVER}{name}"


def server_name(customization_id: str) -> str | None:
    """Return the name of the MCP server with an id, ``None`` for other customizations."""
    return customization_id.removeprefix(_SERVER) if customization_id.startswith(_SERVER) else None


def server_state(status: str, error: str | None, url: str | None) -> JsonObject:
    """Return the state of an MCP server."""
    match status:
        case "connected":
            return {"kind": "ready"}
        case "pending":
            return {"kind": "starting"}
        case "needs-auth" if url is not None:
            return {"kind": "authRequired", "reason": "required", "resource": {"resource": url}}
        case "failed" | "needs-auth":
            return {"kind": "error", "error": {"errorType": "mcp", "message": error or "The server has failed"}}
        case _:
            return {"kind": "stopped"}
