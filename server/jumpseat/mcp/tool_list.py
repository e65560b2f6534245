"""Request the list of an MCP server's tools, within limits."""

from __future__ import annotations

from typing import Final

import mcp.types as types
import orjson
from msgspec import Struct

from jumpseat.mcp.client import McpClient
from jumpseat.mcp.repair import MAX_LIST_BYTES, MAX_TOOLS, PROBLEMS

MAX_PAGES: Final = 100


class ToolList(Struct, frozen=True):
    """The tools of a server, with the first of those that share a name.

    ``complete`` is false if the server has more tools than the limits of this module allow. ``problems`` are those
    of tools that were left out or changed, because their definitions are invalid.
    """

    tools: list[types.Tool]
    complete: bool
    problems: list[str]


async def list_tools(client: McpClient, *, timeout_s: float) -> ToolList:
    """Request all pages of the server's tools; each request may take ``timeout_s``.

    Raises:
        ServerGoneError, CallTimeoutError, RefusedError: as in :meth:`McpClient.ask`.
    """
    tools: dict[str, types.Tool] = {}
    problems: list[str] = []
    size, cursor = 0, None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor, timeout_s=timeout_s)
        problems += (page.meta or {}).get(PROBLEMS, [])
        for tool in page.tools:
            size += len(orjson.dumps(tool.input_schema, default=str)) + len(tool.description or "")
            if len(tools) >= MAX_TOOLS or size > MAX_LIST_BYTES:
                return ToolList([*tools.values()], False, problems)
            tools.setdefault(tool.name, tool)
        cursor = page.next_cursor
        if not cursor:
            break
    return ToolList([*tools.values()], not cursor, problems)


def needs_task(tool: types.Tool) -> bool:
    """Return whether a tool only runs as a task, whose result is fetched later; this client has no tasks."""
    return tool.execution is not None and tool.execution.task_support == "required"
