"""``session/new``, ``load``, ``resume`` and ``fork``.

The sessions are those of the Copilot protocol, opened by the same code.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
from pydantic import ValidationError

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.view import SessionView
from jumpseat.acp.translation.content import text_of
from jumpseat.acp.translation.params import McpServer, NewSessionParams, OpenSessionParams, SessionSetup
from jumpseat.errors import InvalidRequestError
from jumpseat.rpc.wire_errors import invalid_params
from jumpseat.sessions.opening import ATTENDED, create_session, resume_session
from jumpseat_protocol.events import decode_payload
from jumpseat_protocol.sessions import SessionCreateParams, SessionOptions, SessionResumeParams

M = TypeVar("M", bound=SessionOptions)

MODELS_WAIT_S: Final = 0.01
"""The response waits this long for the list of models. A later list is sent as an update."""


async def new(ctx: AcpContext, params: NewSessionParams) -> dict[str, Any]:
    """Create a session. It is stored with its first prompt."""
    return await create(ctx, params, None)


async def create(ctx: AcpContext, params: NewSessionParams, session_id: str | None) -> dict[str, Any]:
    """Create a session, with an id that is claimed already if there is one."""
    folders = _folders(params)
    claimed = {"sessionId": session_id} if session_id is not None else {}
    options = _validate("session/new", SessionCreateParams, {**_options(ctx, params), **claimed})
    session = await create_session(ctx.server, options)
    view = ctx.open(session)
    session.permissions.path_scope.added_folders = folders
    return {"sessionId": session.id, **await opened_result(ctx, view)}


async def load(ctx: AcpContext, params: OpenSessionParams) -> dict[str, Any]:
    """Resume a session, and send its history before the response."""
    view = await reopen(ctx, params)
    send_history(ctx, view)
    return await opened_result(ctx, view)


async def resume(ctx: AcpContext, params: OpenSessionParams) -> dict[str, Any]:
    """Resume a session without its history."""
    return await opened_result(ctx, await reopen(ctx, params))


async def fork(ctx: AcpContext, params: OpenSessionParams) -> dict[str, Any]:
    """Copy a session and resume the copy."""
    new_id = ctx.server.registry.fork(params.session_id, None, None)
    view = await reopen(ctx, params.model_copy(update={"session_id": new_id}))
    return {"sessionId": new_id, **await opened_result(ctx, view)}


def send_history(ctx: AcpContext, view: SessionView) -> None:
    """Send the history of a session."""
    log = ctx.server.registry.storage(view.session).log.read()
    masked = ctx.server.process.secrets.mask_records(log.records)
    view.replay(decode_payload(record["type"], record.get("data")) for record in masked if "agentId" not in record)


async def reopen(ctx: AcpContext, params: OpenSessionParams) -> SessionView:
    """Open a stored or live session in a new view."""
    folders = _folders(params)
    if (before := ctx.views.pop(params.session_id, None)) is not None:
        before.withdraw_all()
    options = {**_options(ctx, params), "sessionId": params.session_id}
    # The turn of an editor whose connection was cut goes on, and its questions are asked again.
    options["continuePendingWork"] = await ctx.server.registry.find_live(params.session_id) is not None
    session = await resume_session(ctx.server, _validate("session/load", SessionResumeParams, options))
    session.permissions.path_scope.added_folders = folders
    view = ctx.open(session)
    view.translator.titled = session.history.first_prompt is not None
    ctx.server.connection.catch_up(session.id, session.open_questions())
    return view


async def opened_result(ctx: AcpContext, view: SessionView) -> dict[str, Any]:
    """Return the state of a session that was opened, for the response. Updates about it may follow from now on."""
    view.models = ctx.server.models.declared(view.session.settings)
    ctx.editor.connection.tasks.start_soon(view.find_models)
    with anyio.move_on_after(MODELS_WAIT_S):
        await view.models_known.wait()
    view.announce_soon()
    opened = {"modes": view.modes(), "configOptions": view.options()}
    return ctx.editor.version.opened(opened, view.listed_commands())


def _validate(method: str, model: type[M], options: dict[str, Any]) -> M:
    """Validate options by the model of the Copilot protocol, which checks headers, for example."""
    try:
        return model.model_validate(options)
    except ValidationError as error:
        raise invalid_params(method, error, model) from None


def _options(ctx: AcpContext, setup: SessionSetup) -> dict[str, Any]:
    """Convert a session's setup into options of ``session.create``.

    Raises:
        InvalidRequestError: ``cwd`` is not an absolute path, or an MCP server is invalid.
    """
    if not Path(setup.cwd).is_absolute():
        raise InvalidRequestError("cwd must be an absolute path")
    elicitation = ctx.editor.capabilities.elicitation
    options: dict[str, Any] = {
        "workingDirectory": setup.cwd,
        **ATTENDED,
        "requestElicitation": elicitation.form is not None or elicitation.url is not None,
        "mcpServers": _servers(ctx, setup.mcp_servers),
    }
    if ctx.editor.client_name is not None:
        options["clientName"] = ctx.editor.client_name
    if setup.system_prompt is not None:
        mode = "replace" if setup.system_prompt.mode == "override" else "append"
        options["systemMessage"] = {"mode": mode, "content": text_of(setup.system_prompt.content)}
    return options


def _folders(setup: SessionSetup) -> list[Path]:
    """Return the additional folders of the session.

    Raises:
        InvalidRequestError: a folder is not an absolute path, or not a directory.
    """
    folders = [Path(folder) for folder in dict.fromkeys(setup.additional_directories)]
    for place, folder in enumerate(folders):
        if not folder.is_absolute():
            raise InvalidRequestError(f"additionalDirectories.{place} must be an absolute path")
        if not os.path.isdir(folder):
            raise InvalidRequestError(f"additionalDirectories.{place}: {str(folder)!r} is not a directory")
    return folders


def _servers(ctx: AcpContext, servers: list[McpServer]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for server in servers:
        if server.name in options:
            raise InvalidRequestError(f"mcpServers: duplicate name {server.name!r}")
        if server.type == "stdio":
            if not server.command:
                raise InvalidRequestError(f"mcpServers.{server.name}: command is required")
            env = {variable.name: variable.value for variable in server.env}
            options[server.name] = {"type": "stdio", "command": server.command, "args": server.args, "env": env}
        elif server.type == "acp":
            if not server.server_id:
                raise InvalidRequestError(f"mcpServers.{server.name}: serverId is required")
            ctx.editor.mcp.ids.add(server.server_id)
            options[server.name] = {"type": "acp", "serverId": server.server_id}
        else:
            if not server.url:
                raise InvalidRequestError(f"mcpServers.{server.name}: url is required")
            headers = {header.name: header.value for header in server.headers}
            options[server.name] = {"type": server.type, "url": server.url, "headers": headers}
        options[server.name]["tools"] = ["*"]
    return options
