"""Selection of the MCP servers of a session that are stored on disk: those without secrets. Pure.

A server is stored as a whole, or only by name with the names of its secret values: a server that is started without
its key would fail in a way that is harder to understand. Anything that might be a secret counts as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from jumpseat_protocol.mcp_servers import McpServerConfig

_STORED_FIELDS: Final = (
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "tools",
    "exclude_tools",
    "timeout",
    "oauth_client_id",
    "oauth_public_client",
    "oauth_grant_type",
    "headers_refresh_ttl_ms",
)

_REFERENCE: Final = re.compile(r"(?:(?:Bearer|Basic|token) )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_PLAIN: Final = re.compile(r"[\w@./\\:,=~+-]*")
_PATH: Final = re.compile(r"(?:[./~]|[A-Za-z]:\\)[\w@./\\:,~+ ()-]*")
_SECRET_NAME: Final = re.compile(r"key|token|secret|pass|pwd|auth|cred|bearer|cookie|signature", re.IGNORECASE)
# A user name and a password; after a colon, only ports and paths are known to be harmless.
_PASSWORD_PAIR: Final = re.compile(r"(?<!^[A-Za-z]):(?!//|\d+(?:/|$))")
_MIXED: Final = re.compile(r"[A-Za-z][0-9]|[0-9][A-Za-z]")
MOST_CHARS: Final = 64 * 1024
"""The characters of all servers that are examined. What exceeds them counts as secret."""

SHORTEST_MIXED: Final = 6
SHORTEST_OPAQUE: Final = 16


def split_servers(
    servers: Mapping[str, McpServerConfig], mask: Callable[[str], str]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Split servers into those that can be stored and those that hold secrets.

    Returns the former in their form on the wire, and for the latter the names of the values that cannot be stored,
    joined by commas; both by the name of the server. ``mask`` replaces known secrets in a string.
    """
    stored: dict[str, dict[str, Any]] = {}
    lost: dict[str, str] = {}
    left = MOST_CHARS

    def is_unsafe(text: str, is_harmless: Callable[[str], bool]) -> bool:
        nonlocal left
        left -= len(text)
        return left < 0 or mask(text) != text or not is_harmless(text)

    for name, config in servers.items():
        if config.transport == "acp":
            # Its editor serves it for as long as it is connected.
            continue
        if missing := list(_secret_values(config, is_unsafe)):
            lost[name] = ", ".join(missing)
        else:
            # Unknown fields may hold secrets.
            stored[name] = config.model_dump(
                include=set(_STORED_FIELDS), exclude_none=True, by_alias=True, mode="json"
            )
    return stored, lost


def _secret_values(
    config: McpServerConfig, is_unsafe: Callable[[str, Callable[[str], bool]], bool]
) -> Iterator[str]:
    """Yield the names of the values of a server that may be secret."""
    is_name, is_word = partial(_is_harmless, name=True), partial(_is_harmless, name=False)
    if config.command and is_unsafe(config.command, is_name):
        yield "command"
    if any(is_unsafe(argument, is_word) for argument in config.args or ()):
        yield "args"
    if config.cwd and is_unsafe(config.cwd, is_name):
        yield "cwd"
    if config.url and is_unsafe(config.url, _plain_url):
        yield "url"
    for field, values in (("env", config.env), ("headers", config.headers)):
        for name, value in (values or {}).items():
            if value and not _REFERENCE.fullmatch(value):
                yield f"{field} {name[:100]}"


def _is_harmless(text: str, *, name: bool) -> bool:
    """Return whether ``text`` is an option, a path, a plain word, a number or a reference.

    A ``name`` of a program or folder may mix letters and digits.
    """
    if _REFERENCE.fullmatch(text):
        return True
    if not (_PLAIN.fullmatch(text) or _PATH.fullmatch(text)) or (_SECRET_NAME.search(text) and not name):
        return False
    if "://" in text:
        return _plain_url(text.partition("=")[2] if text.startswith("-") else text)
    if _PASSWORD_PAIR.search(text) or any(_opaque(part) for part in re.split(r"[/\\.:,=@ ]", text)):
        return False
    value = text.partition("=")[2] if text.startswith("-") else text
    return name or "/" in value or not any(map(_mixes_letters_and_digits, re.split(r"[^A-Za-z0-9]", value)))


def _plain_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    if "@" in parts.netloc or parts.query or parts.fragment:
        return False
    return not any(_opaque(part) for part in re.split(r"[/.]", parts.path))


def _mixes_letters_and_digits(word: str) -> bool:
    return len(word) >= SHORTEST_MIXED and _MIXED.search(word) is not None


def _opaque(part: str) -> bool:
    """Return whether a string looks generated, like a key."""
    if len(part) < SHORTEST_OPAQUE:
        return False
    digits = sum(character.isdigit() for character in part)
    upper, lower = any(map(str.isupper, part)), any(map(str.islower, part))
    return (digits >= 3 and (upper or lower)) or (upper and lower and not re.search("[-_]", part))
