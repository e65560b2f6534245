"""The MCP server: requests of the calling agent become prompts, and questions of sessions become forms."""

from __future__ import annotations

import json
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import mcp.types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from jumpseat_client import Client, JumpseatClientError
from jumpseat_mcp_server.history import records_backward
from jumpseat_mcp_server.tasks import (
    AFTER_S,
    EXTENSION,
    TaskParams,
    Tasks,
    UpdateParams,
    created,
    require_tasks,
    result_of,
    takes_tasks,
)
from jumpseat_mcp_server.tools import (
    ContinueArguments,
    InvalidArgumentsError,
    ListArguments,
    ReadArguments,
    StartArguments,
    all_tools,
    parse_arguments,
)
from jumpseat_mcp_server.turns import Question, Turn, Turns
from jumpseat_protocol.version import __version__

INSTRUCTIONS: Final = (
    "jumpseat is a coding agent. start_session gives it a task in a folder of this machine; continue_session goes"
    " on with the same conversation. It asks by elicitation before it changes or runs anything."
)
STOP_S: Final = 5.0
"""The time to stop a turn whose call was cancelled, in seconds."""
_ROLES: Final = {"user.message": "user", "assistant.message": "assistant"}


class SessionServer:
    """The server of one program, which answers before its sessions can be reached: see :meth:`open`."""

    def __init__(self) -> None:
        self._sessions: tuple[Client, Turns, Tasks] | None = None
        self._opened = anyio.Event()
        self.mcp = Server[Any](
            "jumpseat",
            version=__version__,
            title="Jumpseat",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
        )
        # Its results may be tasks, which the argument for it does not know.
        self.mcp.add_request_handler("tools/call", types.CallToolRequestParams, self._call_tool)
        self.mcp.extensions[EXTENSION] = {}
        self.mcp.add_request_handler("tasks/get", TaskParams, self._get_task)
        self.mcp.add_request_handler("tasks/update", UpdateParams, self._update_task)
        self.mcp.add_request_handler("tasks/cancel", TaskParams, self._cancel_task)

    def open(self, client: Client, turns: Turns) -> None:
        """Reach sessions by ``client``, and run their prompts by ``turns``."""
        self._sessions = client, turns, Tasks(client, turns)
        self._opened.set()

    @property
    def _client(self) -> Client:
        assert self._sessions is not None, "calls wait for it"
        return self._sessions[0]

    @property
    def _turns(self) -> Turns:
        assert self._sessions is not None, "calls wait for it"
        return self._sessions[1]

    async def _list_tools(
        self, _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=all_tools())

    async def _call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult | dict[str, Any]:
        try:
            given = parse_arguments(params.name, params.arguments)
            await self._opened.wait()
            if params.request_state is not None:
                return await self._resume(ctx, params)
            match given:
                case StartArguments():
                    turn = await self._turns.start(given.prompt, given.folder or str(Path.cwd()), given.model)
                    return await self._answer(ctx, turn)
                case ContinueArguments():
                    return await self._answer(ctx, await self._turns.go_on(given.session_id, given.prompt))
                case ReadArguments():
                    return await self._read(given)
                case ListArguments():
                    return await self._list(given)
                case _:
                    raise AssertionError("all tools are named above")
        except InvalidArgumentsError as error:
            if params.name not in {tool.name for tool in all_tools()}:
                raise MCPError(types.INVALID_PARAMS, str(error)) from None
            return _failure(str(error))
        except JumpseatClientError as error:
            return _failure(str(error))

    # --- tasks ----------------------------------------------------------------------------------------------------

    async def _answer(
        self, ctx: ServerRequestContext[Any], turn: Turn
    ) -> types.CallToolResult | types.InputRequiredResult | dict[str, Any]:
        """Return the result of a turn; a task if it takes long or asks, and the caller understands tasks."""
        if not takes_tasks(ctx):
            return await self._follow(ctx, turn)
        with anyio.move_on_after(AFTER_S):
            while not (turn.done or turn.questions):
                await turn.wait()
        while not (turn.done or turn.message_id):
            await turn.wait()
        if turn.done:
            self._turns.forget(turn)
            return result_of(turn)
        return created(turn)

    async def _tasks(self, ctx: ServerRequestContext[Any]) -> Tasks:
        require_tasks(ctx)
        await self._opened.wait()
        assert self._sessions is not None, "set before"
        return self._sessions[2]

    async def _get_task(self, ctx: ServerRequestContext[Any], params: TaskParams) -> dict[str, Any]:
        return await (await self._tasks(ctx)).get(params)

    async def _update_task(self, ctx: ServerRequestContext[Any], params: UpdateParams) -> dict[str, Any]:
        return await (await self._tasks(ctx)).update(params)

    async def _cancel_task(self, ctx: ServerRequestContext[Any], params: TaskParams) -> dict[str, Any]:
        return await (await self._tasks(ctx)).cancel(params)

    # --- turns ----------------------------------------------------------------------------------------------------

    async def _resume(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Take the answers to questions, which come with a repeated request."""
        turn = self._turns.find(params.request_state or "")
        if turn is None:
            raise MCPError(types.INVALID_PARAMS, "requestState: unknown, or its turn has ended")
        for key, answer in (params.input_responses or {}).items():
            question = turn.questions.get(key)
            if question is not None:
                question.answer(answer if isinstance(answer, types.ElicitResult) else None)
        # Let the answered questions leave.
        await anyio.lowlevel.checkpoint()
        return await self._follow(ctx, turn)

    async def _follow(
        self, ctx: ServerRequestContext[Any], turn: Turn
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Wait for the end of a turn, and ask its questions."""
        told = 0
        try:
            async with anyio.create_task_group() as tasks:
                asked: set[str] = set()
                while not turn.done:
                    for step in turn.steps[told:]:
                        told += 1
                        await ctx.session.report_progress(told, None, f"uses {step}")
                    if (result := self._ask(ctx, turn, asked, tasks)) is not None:
                        tasks.cancel_scope.cancel()
                        return result
                    if turn.done or len(turn.steps) > told:
                        continue
                    await turn.wait()
                tasks.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_S):
                await self._turns.abort(turn)
            self._turns.forget(turn)
            raise
        self._turns.forget(turn)
        return result_of(turn)

    def _ask(
        self, ctx: ServerRequestContext[Any], turn: Turn, asked: set[str], tasks: anyio.abc.TaskGroup
    ) -> types.InputRequiredResult | None:
        """Ask the open questions: by a request, or by a result if the revision has no requests of servers."""
        new = {key: question for key, question in turn.questions.items() if key not in asked}
        new = {key: question for key, question in new.items() if not question.answered.is_set()}
        if not new:
            return None
        if not _shows_forms(ctx):
            for question in new.values():
                question.answer(None)
            asked.update(new)
            return None
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return types.InputRequiredResult(
                input_requests={key: types.ElicitRequest(params=question.form) for key, question in new.items()},
                request_state=turn.id,
            )
        for key, question in new.items():
            asked.add(key)
            tasks.start_soon(_elicit, ctx, question)
        return None

    # --- reading --------------------------------------------------------------------------------------------------

    async def _read(self, given: ReadArguments) -> types.CallToolResult:
        """Return the last messages of a session."""
        found: list[dict[str, str]] = []
        async with aclosing(records_backward(self._client, given.session_id)) as records:
            async for record in records:
                role = _ROLES.get(record["type"])
                if role is not None and (text := record["data"].get("content")):
                    found.append({"role": role, "text": text})
                if len(found) == given.most:
                    break
        return _json({"session_id": given.session_id, "messages": found[::-1]})

    async def _list(self, given: ListArguments) -> types.CallToolResult:
        found = sorted(await self._client.list_sessions(), key=lambda one: one.modified_time, reverse=True)
        return _json(
            {
                "sessions": [
                    {
                        "session_id": one.session_id,
                        "summary": one.summary or "",
                        "modified": one.modified_time,
                        "folder": one.context.cwd if one.context is not None else "",
                    }
                    for one in found[: given.most]
                ]
            }
        )


def _shows_forms(ctx: ServerRequestContext[Any]) -> bool:
    found = ctx.session.client_capabilities
    elicitation = found.elicitation if found is not None else None
    if elicitation is None:
        return False
    # An empty object stands for forms.
    return elicitation.form is not None or elicitation.url is None


async def _elicit(ctx: ServerRequestContext[Any], question: Question) -> None:
    answer: types.ElicitResult | None = None
    # After an error, nobody was asked.
    with suppress(MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        answer = await ctx.session.elicit_form(
            question.form.message, question.form.requested_schema, related_request_id=ctx.request_id
        )
    question.answer(answer)


def _failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _json(values: dict[str, Any]) -> types.CallToolResult:
    text = json.dumps(values, ensure_ascii=False, indent=2)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=values)
