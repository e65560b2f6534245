"""Tools of MCP servers, in the form that the orchestrator runs."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

import anyio.to_thread

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.model import ToolOrigin, ToolSchema, ToolSpec
from jumpseat.agent.observation import headers_of
from jumpseat.agent.permissions.permissions import ApprovalLimits
from jumpseat.agent.session.hooks import stop_of
from jumpseat.tools.filters import SourceName
from jumpseat.tools.tool import Ordering, Prepared, ToolContext, ToolOutcome, failure
from jumpseat_protocol.events import McpTaskCreated
from jumpseat_protocol.permissions import McpPermission

if TYPE_CHECKING:
    import mcp.types as types

    from jumpseat.agent.session.session import Session
    from jumpseat.mcp.connection import Connection

MAX_DESCRIPTION: Final = 16 * 1024
"""Characters of a tool's description that the model gets."""

PROGRESS_INTERVAL_S: Final = 0.1
"""Shortest time between two progress events of a call."""


class McpTool:
    """A tool of a server; ``tool`` is the server's definition, ``name`` the name that the model knows."""

    __slots__ = ("connection", "name", "session", "spec", "tool")

    def __init__(self, name: str, session: Session, connection: Connection, tool: types.Tool) -> None:
        self.name = name
        self.session = session
        self.connection = connection
        self.tool = tool
        description = (tool.description or tool.title or "")[:MAX_DESCRIPTION]
        origin = ToolOrigin(connection.name, tool.name)
        self.spec = ToolSpec(name, description, ToolSchema.of(tool.input_schema), origin)

    @property
    def source(self) -> SourceName:
        return "mcp"

    @property
    def ordering(self) -> Ordering:
        return "reading" if self.is_read_only else "queued"

    @property
    def changes_nothing(self) -> bool:
        return self.is_read_only

    @property
    def is_read_only(self) -> bool:
        """Return whether the server declares that the tool changes nothing."""
        annotations = self.tool.annotations
        return bool(annotations and annotations.read_only_hint)

    @property
    def title(self) -> str:
        annotations = self.tool.annotations
        return self.tool.title or (annotations.title if annotations else None) or self.tool.name

    @property
    def fingerprint(self) -> str:
        """Return a hash of the definition that the server has sent."""
        definition = self.tool.model_dump(exclude_none=True, exclude={"meta", "icons"})
        return hashlib.sha256(json.dumps(definition, sort_keys=True, default=str).encode()).hexdigest()

    def summary(self, arguments: JsonObject) -> str | None:
        """Return ``None``: servers define no summary of a call."""
        return None

    def permission(self, arguments: JsonObject) -> McpPermission:
        """Return what is asked for by a call."""
        return McpPermission(
            server_name=self.connection.name,
            tool_name=self.tool.name,
            tool_title=self.title,
            # Annotations come from the server: they allow nothing, and are shown to whoever decides.
            read_only=self.is_read_only,
            args=arguments,
        )

    async def prepare(self, ctx: ToolContext, call: ToolUseBlock) -> Prepared | ToolOutcome:
        arguments = call.arguments or {}
        if (task := self.session.history.mcp_tasks.get(call.id)) is not None:
            # The call was allowed, and has begun, in an earlier process.
            return Prepared(None, lambda: self._outcome(self.connection.follow_task(task.task_id, _progress(ctx))))
        permission = self.permission(arguments)

        async def run() -> ToolOutcome:
            return await self._run(ctx, arguments)

        # An approval covers the tool as it was described when it was approved: perhaps by a mebibyte.
        scope = await anyio.to_thread.run_sync(lambda: self.fingerprint)
        return Prepared(permission, run, guard=ApprovalLimits(scope=scope))

    async def _run(self, ctx: ToolContext, arguments: JsonObject) -> ToolOutcome:
        hook_result = await self.session.hooks.pre_mcp_tool_call(
            self.connection.name, self.tool.name, arguments, ctx.call_id
        )
        if (stopped := stop_of(hook_result)) is not None:
            return ToolOutcome(text="Denied by preMcpToolCall hook.", status="denied", stopped=stopped)
        trace = headers_of(self.session.services.observers.trace_context())
        meta = {**trace, **(hook_result.meta_to_use or {})} or None

        def note_task(task_id: str) -> None:
            self.session.emit(
                McpTaskCreated(tool_call_id=ctx.call_id, server_name=self.connection.name, task_id=task_id)
            )

        return await self._outcome(
            self.connection.call(
                self.tool.name, arguments, meta=meta, on_progress=_progress(ctx), on_task=note_task
            )
        )

    async def _outcome(self, call: Awaitable[types.CallToolResult]) -> ToolOutcome:
        """Return the outcome of a call for the model."""
        from jumpseat.mcp.client import CallTimeoutError, RefusedError, ServerGoneError
        from jumpseat.mcp.failures import NotConnectedError
        from jumpseat.mcp.results import outcome_of

        try:
            result = await call
        except NotConnectedError as error:
            return failure(f"The tool `{self.name}` cannot be called: {error}.")
        except ServerGoneError:
            return failure(
                f"The MCP server of `{self.name}` ended before it answered."
                " Whether the call had an effect is unknown."
            )
        except CallTimeoutError:
            limit_s = self.connection.call_timeout_s
            text = f"`{self.name}` did not answer within {limit_s:g} seconds and was cancelled."
            return ToolOutcome(text=text, status="timeout", error=text)
        except RefusedError as error:
            return failure(f"The MCP server refused the call to `{self.name}`: {error}")
        return outcome_of(result, self.name)


def _progress(ctx: ToolContext) -> Any:
    """Return a callback that shows the progress of a call at a limited rate."""
    last = 0.0

    def show(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PROGRESS_INTERVAL_S and done != total:
            return
        last = now
        share = f"{done:g}/{total:g}" if total else f"{done:g}"
        ctx.progress(f"{message[:1000]} ({share})" if message else share)

    return show
