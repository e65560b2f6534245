"""The addresses of sessions and of their channels."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final
from urllib.parse import quote

ROOT: Final = "ahp-root://"
PROVIDER: Final = "jumpseat"
"""The name of the only agent."""

_SESSION: Final = re.compile(r"ahp-session:/([A-Za-z0-9][A-Za-z0-9._-]{0,127})")
_CHAT: Final = "ahp-chat://default/"
_PART: Final = re.compile(r"ahp-(?:session|terminal):/([A-Za-z0-9][A-Za-z0-9._-]{0,127})/.*", re.DOTALL)
"""The further channels of a session, apart from chats: they begin with its id."""
_SUB_AGENT: Final = "ahp-chat://subagent/"


def session_uri(session_id: str) -> str:
    """Return the URI of a session."""
    return f"ahp-session:/{session_id}"


def chat_uri(session_id: str) -> str:
    """Return the URI of a session's only chat. VS Code computes it in the same way."""
    return _CHAT + _encoded(session_uri(session_id))


def sub_agent_uri(session_id: str, agent_id: str) -> str:
    """Return the URI of the chat of a sub-agent."""
    return _SUB_AGENT + _encoded(f"{session_uri(session_id)}#{agent_id}")


def terminal_uri(session_id: str, turn_id: str, call_id: str) -> str:
    """Return the URI of the terminal of a call."""
    return f"ahp-terminal:/{session_id}/{quote(turn_id, safe='')}/{quote(call_id, safe='')}"


def session_of(uri: str) -> str | None:
    """Return the id of the session of a session's URI or of its main chat's, ``None`` for other URIs."""
    if uri.startswith(_CHAT):
        uri = _decoded(uri.removeprefix(_CHAT))
    found = _SESSION.fullmatch(uri)
    return found[1] if found is not None else None


def owner_of(uri: str) -> str | None:
    """Return the id of the session that a channel belongs to, also a further one, ``None`` for other URIs."""
    if uri.startswith(_SUB_AGENT):
        return session_of(_decoded(uri.removeprefix(_SUB_AGENT)).partition("#")[0])
    found = _PART.fullmatch(uri)
    return found[1] if found is not None else session_of(uri)


def kind_of(uri: str) -> str:
    """Return the kind of a session's channel, with which the types of its actions begin."""
    if uri.startswith("ahp-session:"):
        return "session" if _PART.fullmatch(uri) is None else "changeset"
    return "chat" if uri.startswith("ahp-chat:") else "terminal"


def _encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(encoded: str) -> str:
    """Return a text from Base64, an empty one if it is none."""
    try:
        return urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError:
        return ""


def is_session(uri: str) -> bool:
    """Return whether a URI is that of a session, rather than of a chat or something else."""
    return _SESSION.fullmatch(uri) is not None
