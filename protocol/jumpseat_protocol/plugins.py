"""``plugins.*`` and ``session.plugins.*``: folders with skills and MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import StrictBool

from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class BuiltinPluginsParams(WireModel):
    """The absolute paths of all plugins that an application brings for the sessions of the process."""

    paths: list[str]


class SessionPlugin(WireModel):
    """``marketplace`` is the origin of the plugin: ``local`` is a folder."""

    name: str
    marketplace: str
    version: str | None = None
    enabled: StrictBool


class SessionPluginsResult(WireModel):
    plugins: list[SessionPlugin]


class PluginsReloadParams(WireModel):
    """Without ``reload_mcp``, MCP servers are left unchanged."""

    session_id: str
    reload_mcp: StrictBool = True


METHODS: Final[Mapping[str, Method]] = {
    "session.plugins.list": Method(SessionParams, SessionPluginsResult),
    "session.plugins.reload": Method(PluginsReloadParams, None),
    "plugins.builtin.set": Method(BuiltinPluginsParams, None),
}
