"""Host names that resolve to the addresses a test gives them."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest


def resolve_names(monkeypatch: pytest.MonkeyPatch, names: dict[str, list[str]]) -> list[str]:
    """Resolve names to given addresses; returns the names that were looked up."""
    looked_up: list[str] = []

    def getaddrinfo(host: Any, port: Any, *_args: Any, **_named: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else str(host)
        looked_up.append(name)
        if name not in names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        family = {4: socket.AF_INET, 6: socket.AF_INET6}
        return [
            (family[ipaddress.ip_address(address).version], socket.SOCK_STREAM, 6, "", (address, port))
            for address in names[name]
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return looked_up
