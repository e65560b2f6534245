"""The tools that clients bring to a session, and the calls that they run.

All clients of this protocol are one client of the session, which provides the tools of all of them. A call has the
id of the client that runs it; only that client can give its result.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.live.mirror import Cause, Mirror
from jumpseat.ahp.states.values import Action, JsonObject, with_item
from jumpseat.ahp.translation.client_tools import (
    call_of,
    owners_of,
    result_for_model,
    runner_of,
    tools_of,
)
from jumpseat.errors import InvalidRequestError, SessionNotFoundError
from jumpseat.sessions.opening import provided_tools
from jumpseat_protocol.tools import HandlePendingToolCallParams

log = logging.getLogger(__name__)

_LEFT: Final = "The client that runs this tool has left"


def set_client(mirror: Mirror, action: Action, origin: Origin) -> None:
    """Make the sender an active client, with its tools in place of those that it had.

    Raises:
        InvalidRequestError: a tool is malformed, or has the name of a tool that the session has already.
    """
    client: JsonObject = action["activeClient"]
    if client.get("clientId") != origin.client_id or not isinstance(client.get("tools"), list):
        raise InvalidRequestError("a client sets itself only, with an array 'tools'")
    offer(mirror, with_item(mirror.state, "activeClients", "clientId", client)["activeClients"])
    mirror.publish(action, origin)


def begin_with(mirror: Mirror, client: JsonObject) -> None:
    """Make the client that has created a session the first active one, if the session can have its tools."""
    try:
        offer(mirror, [client])
    except InvalidRequestError as error:
        log.info("session %s: the tools of its client are not offered: %s", mirror.session_id, error)
        return
    mirror.publish({"type": "session/activeClientSet", "activeClient": client})


def remove_client(mirror: Mirror, client_id: str, origin: Origin | None = None) -> None:
    """Withdraw the tools of a client, and end the calls that it runs."""
    left = [one for one in mirror.state["activeClients"] if one["clientId"] != client_id]
    if len(left) == len(mirror.state["activeClients"]):
        return
    with suppress(SessionNotFoundError):
        offer(mirror, left)
    for chat in mirror.chats():
        active: JsonObject | None = chat.get("activeTurn")
        for part in active["responseParts"] if active is not None else ():
            if part["kind"] == "toolCall" and runner_of(part["toolCall"]) == client_id:
                left_over = {"success": False, "error": {"message": _LEFT}}
                _answer(mirror, chat["resource"], part["toolCall"]["toolCallId"], left_over)
    mirror.publish({"type": "session/activeClientRemoved", "clientId": client_id}, origin)


def offer(mirror: Mirror, clients: list[JsonObject]) -> None:
    """Provide the tools of the active clients to the session.

    Raises:
        InvalidRequestError: a tool is malformed, or has the name of a tool that the session has already.
    """
    session = mirror.session
    attachment = session.clients.get(mirror)
    if attachment is None:
        raise InvalidRequestError("the session is not open")
    session.attach(replace(attachment, tools=provided_tools(tools_of(clients))))
    owners = mirror.translator.owners
    owners.clear()
    owners.update(owners_of(clients))


def show_progress(mirror: Mirror, chat: str, action: Action, origin: Origin) -> None:
    """Show the output of a call in a chat so far, as its client tells it."""
    _check_runner(mirror, chat, action, origin)
    mirror.publish(action, origin, chat)


def complete(mirror: Mirror, chat: str, action: Action, origin: Origin) -> None:
    """Give the result of a call in a chat to the session, whose event becomes the echo."""
    _check_runner(mirror, chat, action, origin)
    cause = Cause("chat/toolCallComplete", action["toolCallId"])
    mirror.expect(cause, origin)
    if not _answer(mirror, chat, action["toolCallId"], action["result"]):
        mirror.withdraw(cause)
        raise InvalidRequestError("the call has a result")


def _check_runner(mirror: Mirror, chat: str, action: Action, origin: Origin) -> None:
    call = call_of(mirror.state_of(chat), action["turnId"], action["toolCallId"])
    if call is None or runner_of(call) != origin.client_id:
        raise InvalidRequestError("this client runs no such call")


def _answer(mirror: Mirror, chat: str, call_id: str, result: JsonObject) -> bool:
    calls, request_id = mirror.session.clients.external_calls, mirror.translator.request_of(chat, call_id)
    if request_id is None:
        return False
    shown = result_for_model(result)
    params = HandlePendingToolCallParams(session_id=mirror.session_id, request_id=request_id, result=shown)
    return calls.answer(request_id, params)
