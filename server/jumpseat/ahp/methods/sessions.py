"""Sessions: ``subscribe``, ``listSessions``, ``createSession``, ``disposeSession`` and what belongs to them."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Container, Iterable
from datetime import datetime
from heapq import nlargest
from operator import itemgetter
from typing import Any, Final, TypeAlias, cast

import orjson

from jumpseat.ahp.hub.channels import envelope_of, older_turns
from jumpseat.ahp.live.customizations import offer_token
from jumpseat.ahp.live.door import Peer
from jumpseat.ahp.live.errors import PROVIDER_NOT_FOUND, AhpError
from jumpseat.ahp.states.values import IDLE, JsonObject, present
from jumpseat.ahp.translation import config
from jumpseat.ahp.translation.attachments import uri_of
from jumpseat.ahp.translation.client_tools import tools_of
from jumpseat.ahp.translation.uris import PROVIDER, ROOT, chat_uri, is_session, session_of, session_uri
from jumpseat.errors import SessionNotFoundError
from jumpseat_protocol.sessions import SessionMetadata

Position: TypeAlias = tuple[str, str]
"""The place of a session in lists: when it was modified, and its URI."""

PAGE: Final = 100
TURNS: Final = 50
"""The turns that one ``fetchTurns`` brings."""


async def subscribe(connection: Peer, params: JsonObject) -> JsonObject:
    """Open a session's channels if need be, and subscribe the client to one of them.

    Raises:
        UnknownItemError: there is no such channel for the client.
    """
    uri, view = _channel(params), params.get("view")
    turns: Any = cast("JsonObject", view).get("turns") if isinstance(view, dict) else None
    mirror = await connection.door.open(uri, connection.rights) if uri != ROOT else None
    if uri != ROOT:
        await connection.door.open_further(uri, connection.rights)
    wanted = turns if isinstance(turns, int) and turns >= 0 else None
    snapshot = connection.door.hub.subscribe(connection, uri, wanted)
    if mirror is not None:
        connection.door.note_subscription(mirror)
    connection.door.note_client(connection, uri)
    return {"snapshot": snapshot}


def fetch_turns(connection: Peer, params: JsonObject) -> JsonObject:
    """Send older turns to the client alone, before the response: others may have them.

    Raises:
        AhpError: there is no such chat or cursor.
    """
    uri, cursor = _channel(params), params.get("cursor")
    hub = connection.door.hub
    channel = hub.get(uri, connection.rights)
    if channel is None or "turns" not in channel.state:
        raise SessionNotFoundError(uri)
    action = older_turns(channel.state, cursor, TURNS) if isinstance(cursor, str) else None
    if action is None:
        raise AhpError.invalid(f"invalid cursor {str(cursor)[:100]!r}")
    connection.deliver(envelope_of(uri, action, hub.numbers.last))
    return {}


async def list_all(connection: Peer, params: JsonObject) -> JsonObject:
    """Return one page of the sessions of all replicas. See :func:`list_sessions`."""
    await connection.door.catch_up()
    await connection.door.registry(connection.rights).prepare_list()
    return list_sessions(connection, params)


def list_sessions(connection: Peer, params: JsonObject) -> JsonObject:
    """Return one page of the sessions that a person may resume, the last modified first.

    Raises:
        AhpError: the cursor or the limit is invalid.
    """
    limit: Any = params.get("limit", PAGE)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise AhpError.invalid("limit: expected a positive integer")
    last = _decode(params["cursor"]) if params.get("cursor") is not None else None
    rights, door = connection.rights, connection.door
    live = {summary["resource"]: summary for summary in door.live_summaries(rights)}
    stored, has_more = _stored_page(
        door.registry(rights).latest(last[0] if last is not None else None), live, last, min(limit, PAGE)
    )
    found = [*((_position(summary), summary) for summary in live.values()), *stored]
    behind = [one for one in found if last is None or one[0] < last]
    latest = nlargest(min(limit, PAGE), behind, key=itemgetter(0))
    page = [
        door.with_marks(live.get(uri) or _summary(SessionMetadata.model_validate(one)), rights)
        for (_, uri), one in latest
    ]
    answer: JsonObject = {"items": page}
    if has_more or len(page) < len(behind):
        answer["nextCursor"] = urlsafe_b64encode("\n".join(_position(page[-1])).encode()).decode()
    return answer


def _stored_page(
    latest: Iterable[bytes], live: Container[str], last: Position | None, most: int
) -> tuple[list[tuple[Position, JsonObject]], bool]:
    """Return at least the first ``most`` stored sessions after a position, and whether there are more of them.

    ``latest`` has them in the order of their times: no others are read, there may be ten thousand.
    """
    found: list[tuple[Position, JsonObject]] = []
    for json in latest:
        listed: JsonObject = orjson.loads(json)
        # Also by the URI: sessions modified at the same time must not be on two pages, or on none.
        position = listed["modifiedTime"], session_uri(listed["sessionId"])
        if position[1] in live or not _is_resumable(listed) or (last is not None and position >= last):
            continue
        if len(found) >= most and position[0] < found[most - 1][0][0]:
            return found, True
        found.append((position, listed))
    return found, False


async def create(connection: Peer, params: JsonObject) -> None:
    """Create a session with the URI that the client has chosen.

    Raises:
        AhpError: the URI is taken or invalid, or the provider unknown.
    """
    provider = params.get("provider")
    if provider not in (None, PROVIDER):
        raise AhpError(PROVIDER_NOT_FOUND, f"unknown provider {str(provider)[:100]!r}: expected {PROVIDER!r}")
    for name, kind in (("config", dict), ("workingDirectories", list), ("activeClient", dict)):
        if params.get(name) is not None and not isinstance(params[name], kind):
            raise AhpError.invalid(f"{name}: expected an {'array' if kind is list else 'object'}")
    if (client := params.get("activeClient")) is not None:
        if client.get("clientId") != connection.client_id or not isinstance(client.get("tools"), list):
            raise AhpError.invalid("activeClient: expected the client itself, with an array 'tools'")
        # Refused before there is a session.
        tools_of([client])
    await connection.door.create(_channel(params), connection.rights, params)


async def dispose(connection: Peer, params: JsonObject) -> None:
    """Delete a session.

    Raises:
        AhpError: the channel is that of a chat: who ends one must not lose its session.
        SessionNotFoundError: there is no such session.
    """
    uri = _channel(params)
    session_id = session_of(uri)
    if session_id is None:
        raise SessionNotFoundError(uri)
    if not is_session(uri):
        raise AhpError.invalid(f"channel: {uri[:200]!r} is not a URI like ahp-session:/<id>")
    await connection.door.delete(session_id, connection.rights)


def resolve_config(_connection: Peer, params: JsonObject) -> JsonObject:
    """Return the configuration that a new session can have, with the values that the client has chosen so far."""
    given: Any = params.get("config")
    values = config.values_of("interactive", None, allow_all=False)
    return {"schema": config.SCHEMA, "values": {**values, **(given if isinstance(given, dict) else {})}}


def complete_config(connection: Peer, params: JsonObject) -> JsonObject:
    """Return the models whose names contain what the client has typed."""
    if params.get("property") != config.MODEL:
        raise AhpError.invalid("property: only models are completed")
    query = str(params.get("query") or "").casefold()
    return {
        "items": [
            {"value": model["id"], "label": model["name"]}
            for model in connection.door.models()
            if query in model["id"].casefold() or query in model["name"].casefold()
        ]
    }


async def authenticate(connection: Peer, params: JsonObject) -> JsonObject:
    """Give a token to the MCP servers that require one for a resource.

    Raises:
        AhpError: no server of the client's sessions does.
    """
    resource, token = params.get("resource"), params.get("token")
    if not isinstance(resource, str) or not isinstance(token, str):
        raise AhpError.invalid("resource and token: expected strings")
    found = [offer_token(mirror, resource, token) for mirror in connection.door.mirrors(connection.rights)]
    # Both, in this order: a server of each may require it.
    if not await connection.door.offer_token_elsewhere(connection.rights, resource, token) and not any(found):
        raise AhpError.invalid("resource: no server requires a token for it")
    return {}


def announce(connection: Peer, params: JsonObject, created_by: str | None) -> None:
    """Tell the client of a session that is gone, or that another door has created."""
    if params["type"] == "session.deleted":
        connection.door.close(params["sessionId"])
        removed = {"channel": ROOT, "session": session_uri(params["sessionId"])}
        connection.tell(created_by, "root/sessionRemoved", removed)
    else:
        connection.door.announce_change(params, connection, created_by)


def _is_resumable(listed: JsonObject) -> bool:
    """See :attr:`jumpseat_protocol.sessions.SessionMetadata.resumable`."""
    is_ignored = listed.get("oneOff") or listed.get("unanswered")
    return not is_ignored and bool(listed.get("summary") or listed.get("name"))


def _summary(session: SessionMetadata) -> JsonObject:
    cwd = session.context.cwd if session.context is not None else None
    uri, title = session_uri(session.session_id), session.name or session.summary or ""
    return present(
        {
            "resource": uri,
            "provider": PROVIDER,
            "title": title,
            "status": IDLE,
            "createdAt": session.start_time,
            "modifiedAt": session.modified_time,
            "workingDirectories": [uri_of(cwd)] if cwd else None,
            "defaultChat": chat_uri(session.session_id),
            "chats": [{"resource": chat_uri(session.session_id), "title": title, "status": IDLE}],
        }
    )


def _position(summary: JsonObject) -> Position:
    return summary["modifiedAt"], summary["resource"]


def _decode(cursor: Any) -> Position:
    try:
        time, uri = urlsafe_b64decode(str(cursor).encode()).decode().split("\n")
        datetime.fromisoformat(time)
    except ValueError:
        raise AhpError.invalid(f"invalid cursor {str(cursor)[:100]!r}") from None
    return time, uri


def _channel(params: JsonObject) -> str:
    channel = params.get("channel")
    if not isinstance(channel, str):
        raise AhpError.invalid("channel: expected a string")
    return channel
