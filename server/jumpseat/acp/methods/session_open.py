"""``session/new``, ``load``, ``resume`` and ``fork``: sessions that begin, or go on, here.

They are the same sessions as those of the Copilot SDK protocol, opened by the same handlers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
from pydantic import ValidationError

from jumpseat.acp.editor.context import AcpContext
from jumpseat.acp.editor.view import SessionView
from jumpseat.acp.translation.content import text_of
from jumpseat.acp.translation.params import McpServer, NewSessionParams, OpenSessionParams, SessionSetup
from jumpseat.errors import InvalidRequestError
from jumpseat.rpc.wire_errors import InvalidParamsError
from jumpseat.sessions.opening import create_session, resume_session
from jumpseat.store.event_log import read_log
from jumpseat_protocol.events import decode_payload
from jumpseat_protocol.sessions import SessionCreateParams, SessionOptions, SessionResumeParams

M = TypeVar("M", bound=SessionOptions)

MODELS_WAIT_S: Final = 0.01
"""How long the answer waits for the list of models; what takes longer is told when it is there."""


async def new(door: AcpContext, params: NewSessionParams) -> dict[str, Any]:
    """A session; nothing of it is kept unless it is prompted."""
    folders = _folders(params)
    options = _checked("session/new", SessionCreateParams, _options(door, params))
    session = await create_session(door.ctx, options)
    view = door.open(session)
    session.permissions.path_scope.added_folders = folders
    return {"sessionId": session.id, **await _opened(door, view)}


async def load(door: AcpContext, params: OpenSessionParams) -> dict[str, Any]:
    """Bring a session back and tell all that was said in it, before the answer."""
    view = await _resume(door, params)
    log = read_log(door.ctx.registry.folder(view.session).log.path)
    masked = door.ctx.process.secrets.mask_records(log.records)
    view.replay(decode_payload(record["type"], record.get("data")) for record in masked)
    return await _opened(door, view)


async def resume(door: AcpContext, params: OpenSessionParams) -> dict[str, Any]:
    """Bring a session back to an editor that still has its history."""
    return await _opened(door, await _resume(door, params))


async def fork(door: AcpContext, params: OpenSessionParams) -> dict[str, Any]:
    """Go on with a copy of a session."""
    new_id = door.ctx.registry.fork(params.session_id, None, None)
    view = await _resume(door, params.model_copy(update={"session_id": new_id}))
    return {"sessionId": new_id, **await _opened(door, view)}


async def _resume(door: AcpContext, params: OpenSessionParams) -> SessionView:
    folders = _folders(params)
    if (before := door.views.pop(params.session_id, None)) is not None:
        before.withdraw_all()
    options = {**_options(door, params), "sessionId": params.session_id}
    session = await resume_session(door.ctx, _checked("session/load", SessionResumeParams, options))
    session.permissions.path_scope.added_folders = folders
    view = door.open(session)
    view.translator.titled = session.first_prompt is not None
    door.ctx.connection.catch_up(session.id, session.open_questions())
    return view


async def _opened(door: AcpContext, view: SessionView) -> dict[str, Any]:
    view.models = door.ctx.models.declared(view.session.settings)
    door.connection.tasks.start_soon(view.find_models)
    with anyio.move_on_after(MODELS_WAIT_S):
        await view.models_known.wait()
    view.announce_soon()
    return {"modes": view.modes(), "configOptions": view.options()}


def _checked(method: str, model: type[M], options: dict[str, Any]) -> M:
    """What the editor has sent, judged by the rules of the other door: headers that cannot be sent, say."""
    try:
        return model.model_validate(options)
    except ValidationError as error:
        raise InvalidParamsError(method, error) from None


def _options(door: AcpContext, setup: SessionSetup) -> dict[str, Any]:
    """What is asked for, as ``session.create`` has it.

    Raises:
        InvalidRequestError: the working directory is not an absolute path, or a server cannot be.
    """
    if not Path(setup.cwd).is_absolute():
        raise InvalidRequestError("cwd must be an absolute path")
    elicitation = door.capabilities.elicitation
    options: dict[str, Any] = {
        "workingDirectory": setup.cwd,
        "streaming": True,
        "requestPermission": True,
        "requestUserInput": True,
        "requestExitPlanMode": True,
        "requestAutoModeSwitch": True,
        "requestElicitation": elicitation.form is not None or elicitation.url is not None,
        "mcpServers": _servers(setup.mcp_servers),
    }
    if door.client_name is not None:
        options["clientName"] = door.client_name
    if setup.system_prompt is not None:
        mode = "replace" if setup.system_prompt.mode == "override" else "append"
        options["systemMessage"] = {"mode": mode, "content": text_of(setup.system_prompt.content)}
    return options


def _folders(setup: SessionSetup) -> list[Path]:
    """The other folders that the session works in.

    Raises:
        InvalidRequestError: one is not an absolute path, or no folder.
    """
    folders = [Path(one) for one in dict.fromkeys(setup.additional_directories)]
    for place, folder in enumerate(folders):
        if not folder.is_absolute():
            raise InvalidRequestError(f"additionalDirectories.{place} must be an absolute path")
        if not folder.is_dir():
            raise InvalidRequestError(f"additionalDirectories.{place}: {str(folder)!r} is not a directory")
    return folders


def _servers(servers: list[McpServer]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for server in servers:
        if server.name in found:
            raise InvalidRequestError(f"mcpServers: the name {server.name!r} is given twice")
        if server.type == "stdio":
            if not server.command:
                raise InvalidRequestError(f"mcpServers.{server.name}: command is required")
            env = {one.name: one.value for one in server.env}
            found[server.name] = {"type": "stdio", "command": server.command, "args": server.args, "env": env}
        else:
            if not server.url:
                raise InvalidRequestError(f"mcpServers.{server.name}: url is required")
            headers = {one.name: one.value for one in server.headers}
            found[server.name] = {"type": server.type, "url": server.url, "headers": headers}
        found[server.name]["tools"] = ["*"]
    return found
