"""How this copy of jumpseat was installed: the only text that tells how to change it.

No name is recommended that a package index would look up: whoever owns the name there would run code here.
"""

from __future__ import annotations

import json
import shlex
from typing import Any, cast
from urllib.parse import unquote, urlsplit


def how_to_add(extra: str) -> str:
    """Return the instruction to install this copy with an extra, such as ``otel``."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        # PEP 610: what an installer was given, unless it was a name.
        record: Any = json.loads(distribution("jumpseat").read_text("direct_url.json") or "{}")
        url, folder = str(record.get("url", "")), record.get("dir_info")
        parts = urlsplit(url)
    except (AttributeError, PackageNotFoundError, ValueError):
        return _again(extra)
    if parts.scheme != "file" or not isinstance(folder, dict):
        return _again(extra)
    options = ["-e"] if cast("dict[str, Any]", folder).get("editable") else []
    command = ["pip", "install", *options, f"{unquote(parts.path)}[{extra}]"]
    return f"install this copy with the extra {extra!r}: {shlex.join(command)}"


def _again(extra: str) -> str:
    return f"repeat the installation of this copy with the extra {extra!r}, as docs/install.md describes it"
