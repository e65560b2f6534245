"""Check the base URLs of providers."""

from __future__ import annotations

import re
from typing import Final

WEB_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+\S*\Z", re.IGNORECASE)

_TAKE_HOSTS: Final = frozenset({"ollama"})
"""The types of providers whose base URL may be a host or a port, as in ``OLLAMA_HOST``."""

# Compiled when they are needed: the first session checks its address.
_NO_SCHEME: Final = r"(?P<host>\[[0-9a-f:]+\]|[\w.-]+)(:\d+)?(/[\w./-]*)?"
_LOCAL: Final = r"localhost|\[|127\.|10\.|192\.168\.|0\.0\.0\.0|[^.]+$"


def base_url_problem(url: str | None, kind: str) -> str | None:
    """Return the problem of a base URL that no request can be sent to, or ``None``.

    ``kind`` is the type of the provider. The URL is shown only without a scheme, and if it has no part that may be
    secret.
    """
    if not url or WEB_ADDRESS.match(url) or kind in _TAKE_HOSTS:
        return None
    problem = "expected an address that begins with http:// or https://"
    match = re.fullmatch(_NO_SCHEME, url, re.IGNORECASE)
    if match is None:
        return problem
    scheme = "http" if re.match(_LOCAL, match["host"], re.IGNORECASE) else "https"
    return f"{problem}, did you mean '{scheme}://{url}'?"
