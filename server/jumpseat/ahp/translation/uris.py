"""The addresses of sessions and chats."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

ROOT: Final = "ahp-root://"
PROVIDER: Final = "jumpseat"
"""The name of the only agent."""

_SESSION: Final = re.compile(r"ahp-session:/([A-Za-z0-9][A-Za-z0-9._-]{0,127})")
_CHAT: Final = "ahp-chat://default/"


def session_uri(session_id: str) -> str:
    """Return the URI of a session."""
    return f"ahp-session:/{session_id}"


def chat_uri(session_id: str) -> str:
    """Return the URI of a session's only chat. VS Code computes it in the same way."""
    return _CHAT + urlsafe_b64encode(session_uri(session_id).encode()).decode().rstrip("=")


def session_of(uri: str) -> str | None:
    """Return the id of the session that a session or a chat belongs to, ``None`` for other URIs."""
    if uri.startswith(_CHAT):
        encoded = uri.removeprefix(_CHAT)
        try:
            uri = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode("ascii")
        except ValueError:
            return None
    found = _SESSION.fullmatch(uri)
    return found[1] if found is not None else None


def is_session(uri: str) -> bool:
    """Return whether a URI is that of a session, rather than of a chat or something else."""
    return _SESSION.fullmatch(uri) is not None
