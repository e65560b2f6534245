"""Turns as tasks (SEP-2663): a call that takes long gets the name of a task, whose state the caller asks for.

https://modelcontextprotocol.io/extensions/tasks/overview

A task is named after its session and its prompt. While this program runs the turn, its state is that of the turn;
afterwards, and after a restart, it is read from the stored session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, Literal, NamedTuple

import mcp.types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from jumpseat_client import Client, JumpseatClientError
from jumpseat_mcp_server.history import records_backward
from jumpseat_mcp_server.turns import Turn, Turns

EXTENSION: Final = "io.modelcontextprotocol/tasks"
AFTER_S: Final = 2.0
"""A call that takes longer than this becomes a task, in seconds; so does one with a question."""
POLL_MS: Final = 1000
INTERRUPTED: Final = "The turn was stopped, or its server ended: continue_session goes on with the session."

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]


class TaskParams(types.RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


class _Name(NamedTuple):
    session_id: str
    message_id: str


def takes_tasks(ctx: ServerRequestContext[Any]) -> bool:
    """Return whether the caller of a request understands tasks."""
    found = ctx.session.client_capabilities
    extensions = (found.extensions if found is not None else None) or {}
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS and EXTENSION in extensions


def require_tasks(ctx: ServerRequestContext[Any]) -> None:
    """Check that the caller of a request of the extension has declared it.

    Raises:
        MCPError: it has not.
    """
    if not takes_tasks(ctx):
        needed = types.ClientCapabilities(extensions={EXTENSION: {}})
        data = types.MissingRequiredClientCapabilityErrorData(required_capabilities=needed)
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"expected a client with the extension {EXTENSION}",
            data.model_dump(by_alias=True, mode="json", exclude_none=True),
        )


def created(turn: Turn) -> dict[str, Any]:
    """Return the answer to a call whose turn goes on, and whose prompt the session has."""
    return {**_state(turn), "resultType": "task"}


class Tasks:
    """Serves the methods of the extension."""

    def __init__(self, client: Client, turns: Turns) -> None:
        self._client = client
        self._turns = turns

    async def get(self, params: TaskParams) -> dict[str, Any]:
        """Return the state of a task, with its result or its questions.

        Raises:
            MCPError: there is no such task.
        """
        name = _parse(params.task_id)
        turn = self._turns.of_message(*name)
        if turn is None:
            return await self._stored(name)
        if turn.done:
            self._turns.forget(turn)
        return _state(turn)

    async def update(self, params: UpdateParams) -> dict[str, Any]:
        """Answer the questions of a task. Those that are closed are ignored.

        Raises:
            MCPError: there is no such task, or an answer has another form.
        """
        turn = await self._find(_parse(params.task_id))
        for key, given in params.input_responses.items():
            try:
                answer = types.ElicitResult.model_validate(given)
            except ValidationError:
                raise MCPError(types.INVALID_PARAMS, f"inputResponses.{key[:100]}: expected an answer") from None
            if turn is not None and (question := turn.questions.get(key)) is not None:
                question.answer(answer)
        return {}

    async def cancel(self, params: TaskParams) -> dict[str, Any]:
        """Stop the turn of a task. One that has ended stays as it is.

        Raises:
            MCPError: there is no such task.
        """
        turn = await self._find(_parse(params.task_id))
        if turn is not None:
            await self._turns.abort(turn)
        return {}

    async def _find(self, name: _Name) -> Turn | None:
        """Return the turn of a task; ``None`` if it has ended."""
        turn = self._turns.of_message(*name)
        if turn is None:
            await self._stored(name)
        return turn

    async def _stored(self, name: _Name) -> dict[str, Any]:
        """Return the state of a task whose turn this program does not run."""
        try:
            records = await self._records(name)
            runs = await self._client.request("jumpseat.runs.list", {"sessionId": name.session_id})
        except JumpseatClientError:
            raise _unknown() from None
        if not records:
            raise _unknown()
        interaction = records[0]["data"].get("interactionId")
        run = next((one for one in runs["runs"] if one["interactionId"] == interaction), None)
        began = records[0]["timestamp"]
        if run is None or run.get("endedAt") is None:
            status, text, ended = "failed", INTERRUPTED, began
        else:
            (status, text), ended = _outcome(records), run["endedAt"]
        result = _json(_result(name.session_id, status, text))
        return _as_task(name, "completed", began, ended, result=result)

    async def _records(self, name: _Name) -> Sequence[Mapping[str, Any]]:
        """Return the stored events of a prompt, itself first; none if the session has no such prompt."""
        found: list[Mapping[str, Any]] = []
        async with aclosing(records_backward(self._client, name.session_id)) as records:
            async for record in records:
                if record["type"] != "user.message":
                    found.append(record)
                elif record["id"] == name.message_id:
                    return [record, *reversed(found)]
                else:
                    found.clear()
        return []


def _outcome(records: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    status, text = "completed", ""
    for record in records:
        match record["type"]:
            case "assistant.message":
                text = record["data"].get("content") or text
            case "session.error":
                status, text = "failed", record["data"]["message"]
            case "abort":
                status = "cancelled"
            case _:
                pass
    return status, text


def result_of(turn: Turn) -> types.CallToolResult:
    """Return the result of a call whose turn has ended."""
    return _result(turn.session_id, turn.status or "failed", turn.text)


def _result(session_id: str, status: str, text: str) -> types.CallToolResult:
    text = text or (INTERRUPTED if status == "cancelled" else "")
    return types.CallToolResult(
        content=[types.TextContent(text=f"{text}\n\n(session {session_id}, {status})")],
        structured_content={"session_id": session_id, "status": status, "answer": text},
        is_error=status != "completed",
    )


def _json(message: BaseModel) -> dict[str, Any]:
    return message.model_dump(by_alias=True, mode="json", exclude_none=True)


def _state(turn: Turn) -> dict[str, Any]:
    assert turn.message_id is not None, "tasks are named after it"
    name = _Name(turn.session_id, turn.message_id)
    if turn.status is not None:
        return _as_task(name, "completed", turn.began, turn.changed, result=_json(result_of(turn)))
    open_ = {key: question for key, question in turn.questions.items() if not question.answered.is_set()}
    if open_:
        asked = {key: _json(types.ElicitRequest(params=question.form)) for key, question in open_.items()}
        return _as_task(name, "input_required", turn.began, turn.changed, inputRequests=asked)
    said = {"statusMessage": f"uses {turn.steps[-1]}"} if turn.steps else {}
    return _as_task(name, "working", turn.began, turn.changed, **said)


def _as_task(name: _Name, status: Status, began: str, changed: str, **more: Any) -> dict[str, Any]:
    return {
        "taskId": f"{name.session_id}.{name.message_id}",
        "status": status,
        "createdAt": began,
        "lastUpdatedAt": changed,
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
        **more,
    }


def _parse(task_id: str) -> _Name:
    session_id, dot, message_id = task_id.rpartition(".")
    if not (dot and session_id and message_id):
        raise _unknown()
    return _Name(session_id, message_id)


def _unknown() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "taskId: there is no such task")
