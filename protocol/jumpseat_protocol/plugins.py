"""Plugins: folders that bring skills and MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import StrictBool

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class BuiltinPluginsParams(WireModel):
    """All that an application brings for the sessions of the process, as absolute paths."""

    paths: list[str]


class SessionPlugin(WireModel):
    """``marketplace`` is where it comes from: ``local`` is a folder."""

    name: str
    marketplace: str
    version: str | None = None
    enabled: StrictBool


class SessionPluginsResult(WireModel):
    plugins: list[SessionPlugin]


class PluginsReloadParams(WireModel):
    """``reload_mcp`` of false leaves the servers as they are."""

    session_id: str
    reload_mcp: StrictBool = True


METHODS: Final[Mapping[str, Method]] = {
    "session.plugins.list": Method(SessionParams, SessionPluginsResult),
    "session.plugins.reload": Method(PluginsReloadParams, None),
    "plugins.builtin.set": Method(BuiltinPluginsParams, None),
}
