"""The names that a model knows MCP tools by: ``<server>-<tool>``, in the characters all providers take."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container
from typing import Final

LONGEST: Final = 64
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_TAG: Final = 8


def tool_name(server: str, tool: str, taken: Container[str] = ()) -> str:
    """A name that is not ``taken``; the same for the same server and tool, as far as the others are the same.

    What was too long, or is taken once its odd characters are replaced, ends in a tag of its own.
    """
    name = _ODD.sub("_", f"{server}-{tool}")
    if not re.match("[A-Za-z_]", name):
        name = f"_{name}"
    if len(name) <= LONGEST and name not in taken:
        return name
    whole = f"{server}\0{tool}"
    while True:
        tag = hashlib.sha256(whole.encode()).hexdigest()[:_TAG]
        short = f"{name[: LONGEST - _TAG - 1]}_{tag}"
        if short not in taken:
            return short
        whole += "\0"
