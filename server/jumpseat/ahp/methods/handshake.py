"""``initialize``, ``reconnect`` and ``ping``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from jumpseat.ahp.live.door import Peer
from jumpseat.ahp.live.errors import UNSUPPORTED_VERSION, AhpError
from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.attachments import uri_of
from jumpseat.commands.completions import TRIGGERS
from jumpseat.errors import SessionElsewhereError, UnknownItemError
from jumpseat_protocol.envelope import METHOD_NOT_FOUND
from jumpseat_protocol.version import __version__

SUPPORTED: Final = ("^1.0.0", "^0.9.0", "^0.10.0")
_VERSION: Final = re.compile(r"(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})")
_LONGEST_ID: Final = 200


def ping(_connection: Peer, _params: JsonObject) -> None:
    """Answer with ``null``."""


async def initialize(connection: Peer, params: JsonObject) -> JsonObject:
    """Choose a version, introduce the client and subscribe it to its first channels.

    Raises:
        AhpError: no version fits, a param is missing, or the client is initialized.
    """
    _check_new(connection)
    client_id = _client_id(params)
    version = choose_version(_strings(params, "protocolVersions"))
    connection.client_id = client_id
    hub = connection.door.hub
    hub.introduce(connection, connection.rights)
    connection.door.withdraw_tools(client_id, connection.rights)
    connection.initialized = True
    snapshots: list[JsonObject] = []
    for uri in dict.fromkeys(_strings(params, "initialSubscriptions", required=False)):
        await _open(connection, uri)
        try:
            snapshots.append(hub.subscribe(connection, uri))
        except UnknownItemError:
            # A channel without a snapshot does not exist.
            continue
        connection.door.note_client(connection, uri)
    return {
        "protocolVersion": version,
        "serverSeq": hub.numbers.last,
        "snapshots": snapshots,
        # Where sessions begin whose clients choose no folder.
        "defaultDirectory": uri_of(str(Path.cwd())),
        "completionTriggerCharacters": list(TRIGGERS),
        "serverInfo": {"name": "jumpseat", "title": "Jumpseat", "version": __version__},
    }


async def reconnect(connection: Peer, params: JsonObject) -> JsonObject:
    """Give a client its place again, with what it has missed.

    Raises:
        AhpError: a param is missing, or the client is initialized.
    """
    _check_new(connection)
    client_id, last_seen = _client_id(params), params.get("lastSeenServerSeq")
    if not isinstance(last_seen, int) or isinstance(last_seen, bool) or not 0 <= last_seen < 1 << 53:
        raise AhpError.invalid("lastSeenServerSeq: expected an unsigned integer")
    uris = list(dict.fromkeys(_strings(params, "subscriptions")))
    for uri in uris:
        await _open(connection, uri)
    connection.client_id = client_id
    result = connection.door.hub.reconnect(connection, connection.rights, last_seen, uris)
    connection.initialized = connection.returned = True
    for uri in uris:
        connection.door.note_client(connection, uri)
    return result


async def _open(connection: Peer, uri: str) -> None:
    """Open a channel, unless its host is down: that must not keep the client from its other channels."""
    with suppress(SessionElsewhereError):
        await connection.door.open(uri, connection.rights)
        await connection.door.open_further(uri, connection.rights)


def choose_version(offered: Iterable[str]) -> str:
    """Return the highest offered version that is supported.

    Raises:
        AhpError: none is, or one is no version.
    """
    fitting: list[tuple[tuple[int, ...], str]] = []
    for text in offered:
        found = _VERSION.fullmatch(text)
        if found is None:
            raise AhpError.invalid(f"protocolVersions: {text[:50]!r} is not a version like 1.0.0")
        number = tuple(map(int, found.groups()))
        if number[0] == 1 or number[:2] in ((0, 9), (0, 10)):
            fitting.append((number, text))
    if not fitting:
        raise AhpError(
            UNSUPPORTED_VERSION, "no offered version is supported", {"supportedVersions": list(SUPPORTED)}
        )
    return max(fitting)[1]


def _check_new(connection: Peer) -> None:
    if connection.initialized:
        raise AhpError(METHOD_NOT_FOUND, "the connection is initialized")


def _client_id(params: JsonObject) -> str:
    client_id = params.get("clientId")
    if not isinstance(client_id, str) or not 0 < len(client_id) <= _LONGEST_ID:
        raise AhpError.invalid(f"clientId: expected a string of 1 to {_LONGEST_ID} characters")
    return client_id


def _strings(params: JsonObject, name: str, *, required: bool = True) -> list[str]:
    value: Any = params.get(name)
    if value is None and not required:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
        raise AhpError.invalid(f"{name}: expected an array of strings")
    return cast("list[str]", value)
