"""What of a session's MCP servers may be written to the disk. Pure.

A server is kept whole, or by its name and with what is missing: one that is started without its key would only fail
in a way that is harder to understand. What might be a secret is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from jumpseat_protocol.mcp import McpServerConfig

_KEPT: Final = (
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
_TELLING: Final = re.compile(r"key|token|secret|pass|pwd|auth|cred|bearer|cookie|signature", re.IGNORECASE)
# A name before a password; of what stands behind a colon only ports and paths are beyond doubt.
_PAIR: Final = re.compile(r"(?<!^[A-Za-z]):(?!//|\d+(?:/|$))")
_MIXED: Final = re.compile(r"[A-Za-z]+[0-9]|[0-9]+[A-Za-z]")
SHORTEST_MIXED: Final = 6
SHORTEST_OPAQUE: Final = 16


def split_servers(
    servers: Mapping[str, McpServerConfig], mask: Callable[[str], str]
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The servers that can be kept, as they go on the wire, and by name what of the others cannot.

    ``mask`` changes texts that are known to hold secrets.
    """
    kept: dict[str, dict[str, Any]] = {}
    lost: dict[str, str] = {}
    for name, config in servers.items():
        if missing := list(_not_to_keep(config, mask)):
            lost[name] = ", ".join(missing)
        else:
            # Fields that are not ours to understand may hold anything.
            kept[name] = config.model_dump(include=set(_KEPT), exclude_none=True, by_alias=True, mode="json")
    return kept, lost


def _not_to_keep(config: McpServerConfig, mask: Callable[[str], str]) -> Iterator[str]:
    def unsafe(text: str, *, name: bool = False) -> bool:
        return mask(text) != text or not _harmless(text, name=name)

    if config.command and unsafe(config.command, name=True):
        yield "command"
    if any(unsafe(one) for one in config.args or ()):
        yield "args"
    if config.cwd and unsafe(config.cwd, name=True):
        yield "cwd"
    if config.url and (mask(config.url) != config.url or not _plain_url(config.url)):
        yield "url"
    for what, values in (("env", config.env), ("headers", config.headers)):
        for name, value in (values or {}).items():
            if value and not _REFERENCE.fullmatch(value):
                yield f"{what} {name[:100]}"


def _harmless(text: str, *, name: bool) -> bool:
    """Whether ``text`` is an option, a path, a plain word, a number or a reference; a ``name`` may have digits."""
    if _REFERENCE.fullmatch(text):
        return True
    if not (_PLAIN.fullmatch(text) or _PATH.fullmatch(text)) or (_TELLING.search(text) and not name):
        return False
    if "://" in text:
        return _plain_url(text.partition("=")[2] if text.startswith("-") else text)
    if _PAIR.search(text) or any(_opaque(part) for part in re.split(r"[/\\.:,=@ ]", text)):
        return False
    value = text.partition("=")[2] if text.startswith("-") else text
    return name or "/" in value or not any(map(_mixed, re.split(r"[^A-Za-z0-9]", value)))


def _plain_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    if "@" in parts.netloc or parts.query or parts.fragment:
        return False
    return not any(_opaque(part) for part in re.split(r"[/.]", parts.path))


def _mixed(word: str) -> bool:
    return len(word) >= SHORTEST_MIXED and _MIXED.search(word) is not None


def _opaque(part: str) -> bool:
    """Whether it looks as if a machine had made it up."""
    if len(part) < SHORTEST_OPAQUE:
        return False
    digits = sum(one.isdigit() for one in part)
    upper, lower = any(map(str.isupper, part)), any(map(str.islower, part))
    return (digits >= 3 and (upper or lower)) or (upper and lower and not re.search("[-_]", part))
