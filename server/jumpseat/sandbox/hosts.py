"""Patterns of hosts: ``example.com``, ``192.0.2.1``, ``*.example.com`` for subdomains, and ``*`` for all hosts."""

from __future__ import annotations

from collections.abc import Iterable


def any_matches(patterns: Iterable[str], host: str, *, subdomains: bool = False) -> bool:
    """Return whether a pattern covers ``host``, a normalized name or address.

    With ``subdomains``, as for hosts that are blocked, a name covers its subdomains, too.
    """
    return any(_matches(normalize(pattern), host, subdomains) for pattern in patterns)


def normalize(host: str) -> str:
    """Return a host, or a pattern of hosts, in lower case, without brackets and without a final dot."""
    return host.strip().strip("[]").rstrip(".").lower()


def _matches(pattern: str, host: str, subdomains: bool) -> bool:
    if pattern == "*" or pattern == host:
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return subdomains and bool(pattern) and host.endswith(f".{pattern}")
