"""The names that older builds of VS Code have for sessions: ``<provider>:/<id>`` instead of ``ahp-session:/<id>``.

They also compute the name of a chat from it. A connection is answered in the form that its client has used last;
everything behind the connection knows the other names only.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final, cast

from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.uris import PROVIDER

_OURS: Final = "ahp-session:/"
_THEIRS: Final = f"{PROVIDER}:/"
_CHAT: Final = "ahp-chat://default/"
_IN_JSON: Final = re.compile(rb'"(?:ahp-session:/|ahp-chat://default/([A-Za-z0-9_-]{1,400}))')
"""The beginning of a string with a name: of a session, or of a chat up to what follows it."""


class Names:
    """The names of sessions and chats on one connection."""

    def __init__(self) -> None:
        self._by_provider = False

    def inward(self, params: Any) -> Any:
        """Return the params of a message with the names that the server uses, wherever a URI is expected."""
        if not isinstance(params, dict):
            return params
        members = cast("JsonObject", params)
        changed: JsonObject = {}
        for member in ("channel", "uri"):
            if isinstance(uri := members.get(member), str):
                changed[member] = self._ours(uri)
        for member in ("subscriptions", "initialSubscriptions"):
            if isinstance(uris := members.get(member), list):
                changed[member] = [
                    self._ours(uri) if isinstance(uri, str) else uri for uri in cast("list[Any]", uris)
                ]
        return {**members, **changed}

    def outward(self, message: tuple[bytes | memoryview, ...]) -> tuple[bytes | memoryview, ...]:
        """Return a message, in parts, with the names that the client uses."""
        return (_IN_JSON.sub(_theirs, b"".join(message)),) if self._by_provider else message

    def _ours(self, uri: str) -> str:
        named = _decoded(uri.removeprefix(_CHAT)) if uri.startswith(_CHAT) else uri
        if named.startswith(_THEIRS):
            self._by_provider = True
            ours = _OURS + named.removeprefix(_THEIRS)
            return ours if named is uri else _CHAT + _encoded(ours)
        if named.startswith(_OURS):
            self._by_provider = False
        return uri


def _theirs(found: re.Match[bytes]) -> bytes:
    if found[1] is None:
        return f'"{_THEIRS}'.encode()
    named = _decoded(found[1].decode())
    if not named.startswith(_OURS):
        return found[0]
    return f'"{_CHAT}{_encoded(_THEIRS + named.removeprefix(_OURS))}'.encode()


def _decoded(text: str) -> str:
    """Return what Base64 without padding stands for, an empty string if it is none."""
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
    except ValueError:
        return ""


def _encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")
