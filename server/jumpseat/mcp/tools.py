"""The tools of a session's servers, as the orchestrator knows tools."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.model import ToolOrigin, ToolSpec
from jumpseat.tools.filters import SourceName
from jumpseat.tools.tool import Prepared, ToolContext, ToolOutcome, failure
from jumpseat_protocol.permissions import McpPermission

if TYPE_CHECKING:
    import mcp.types as types

    from jumpseat.agent.session.session import Session
    from jumpseat.mcp.connection import Connection

MAX_DEPTH: Final = 50
"""How many levels of a schema are told."""

NEWS_S: Final = 0.1
"""The least time between two news of a call's progress that clients are told."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """``tool`` is what the server says of it, ``name`` what the model calls it."""

    name: str
    session: Session
    connection: Connection
    tool: types.Tool
    spec: ToolSpec = field(init=False)

    def __post_init__(self) -> None:
        from jumpseat.mcp.connection import MAX_DESCRIPTION

        description = (self.tool.description or self.tool.title or "")[:MAX_DESCRIPTION]
        origin = ToolOrigin(self.connection.name, self.tool.name)
        spec = ToolSpec(self.name, description, tolerable(self.tool.inputSchema), origin)
        object.__setattr__(self, "spec", spec)

    @property
    def source(self) -> SourceName:
        return "mcp"

    @property
    def title(self) -> str:
        annotations = self.tool.annotations
        return self.tool.title or (annotations.title if annotations else None) or self.tool.name

    def summary(self, arguments: JsonObject) -> str | None:
        """A server does not say."""
        return None

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        arguments = call.arguments or {}
        annotations = self.tool.annotations
        permission = McpPermission(
            server_name=self.connection.name,
            tool_name=self.tool.name,
            tool_title=self.title,
            # What a server says of itself is for the eyes of whoever decides; nothing here believes it.
            read_only=bool(annotations and annotations.readOnlyHint),
            args=arguments,
        )

        async def run() -> ToolOutcome:
            return await self._run(ctx, arguments)

        return Prepared(permission, run)

    async def _run(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutcome:
        from jumpseat.mcp.client import CallTimeoutError, RefusedError, ServerGoneError
        from jumpseat.mcp.connection import NotConnectedError
        from jumpseat.mcp.results import outcome_of

        said = await self.session.hooks.pre_mcp_tool_call(
            self.connection.name, self.tool.name, arguments, ctx.call_id
        )
        meta = said.meta_to_use or None
        try:
            result = await self.connection.call(self.tool.name, arguments, meta=meta, on_news=_news(ctx))
        except NotConnectedError as error:
            return failure(f"The tool `{self.name}` cannot be called: {error}.")
        except ServerGoneError:
            return failure(
                f"The MCP server of `{self.name}` ended before it answered."
                " Whether the call had an effect is unknown."
            )
        except CallTimeoutError:
            text = f"`{self.name}` did not answer within {self.connection.call_s:g} seconds and was cancelled."
            return ToolOutcome(text=text, status="timeout", error=text)
        except RefusedError as error:
            return failure(f"The MCP server refused the call of `{self.name}`: {error}")
        return outcome_of(result, self.name)


def tolerable(schema: JsonObject, depth: int = 0) -> JsonObject:
    """``schema`` with what it leaves unsaid said, where providers insist; it means the same.

    The items of an array, and a schema that is just ``true``: of any form. Below :data:`MAX_DEPTH` all is.
    """
    if depth > MAX_DEPTH:
        return {}

    def sub(value: Any) -> Any:
        if value is True:
            return {}
        return tolerable(cast("JsonObject", value), depth + 1) if isinstance(value, dict) else value

    out: JsonObject = {}
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
            out[key] = {name: sub(one) for name, one in cast("JsonObject", value).items()}
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            out[key] = [sub(one) for one in cast("list[Any]", value)]
        elif key in ("items", "not"):
            out[key] = sub(value)
        else:
            out[key] = value
    kind = out.get("type")
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in out:
        out["items"] = {}
    return out


def _news(ctx: ToolContext) -> Any:
    """Shows the progress of a call, but no more often than somebody can look."""
    last = 0.0

    def show(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < NEWS_S and done != total:
            return
        last = now
        share = f"{done:g}/{total:g}" if total else f"{done:g}"
        ctx.progress(f"{message[:1000]} ({share})" if message else share)

    return show
