"""Names of MCP tools for the model: ``<server>-<tool>``, in characters that all providers accept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from typing import Final

LONGEST: Final = 64
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_TAG: Final = 8


def tool_name(server: str, tool: str, taken: Container[str] = ()) -> str:
    """Return a name for a tool that is not ``taken``; the same arguments give the same name.

    A name that is too long or taken ends in a hash of the server and tool.
    """
    name = name_prefix(server) + _ODD.sub("_", tool)
    if len(name) <= LONGEST and name not in taken:
        return name
    whole = f"{server}\0{tool}"
    while True:
        tag = hashlib.sha256(whole.encode()).hexdigest()[:_TAG]
        short = f"{name[: LONGEST - _TAG - 1]}_{tag}"
        if short not in taken:
            return short
        whole += "\0"


def name_prefix(server: str) -> str:
    """Return the beginning of the names of a server's tools."""
    prefix = _ODD.sub("_", f"{server}-")
    return prefix if re.match("[A-Za-z_]", prefix) else f"_{prefix}"
