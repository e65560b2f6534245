"""The sandbox of a session, with the folders and options that the session has at the time of each command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import anyio.to_thread
from msgspec.structs import replace

from jumpseat.agent.permissions.permissions import Permissions
from jumpseat.agent.session.session import Session
from jumpseat.sandbox.session import Sandboxes, SessionSandbox
from jumpseat.sandbox.session_network import Reach, SessionNetwork
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.system.programs import OwnPrograms
from jumpseat_protocol import events
from jumpseat_protocol.permissions import UrlPermission

TOOL: Final = "bash"
"""The tool that rules take connections of commands for."""


def session_sandbox(session: Session, sandboxes: Sandboxes, *, of_servers: bool = False) -> SessionSandbox:
    """Return a sandbox for the commands of ``session``, or for its MCP servers."""
    scope = session.permissions.path_scope

    def settings() -> SandboxSettings:
        current = sandboxes.defaults.for_session(session.settings.options.sandbox_config)
        return replace(current, mode=current.mcp) if of_servers else current

    def warn(text: str) -> None:
        session.emit(events.SessionWarning(warning_type="sandbox", message=text))

    network = None
    if sandboxes.connect is not None:
        tasks, hosts = session.services.tasks, _Hosts(session.permissions)
        network = SessionNetwork(settings, tasks, hosts, sandboxes.connect, sandboxes.own_environ)
    return SessionSandbox(
        sandboxes,
        settings,
        lambda: [scope.main_folder, scope.cwd(), *scope.added_folders],
        scope.session_folders,
        warn=warn,
        network=network,
        of_servers=of_servers,
    )


def own_programs(session: Session, sandboxes: Sandboxes | None) -> OwnPrograms:
    """Return the programs of the server for work in the folders of ``session``; git is confined to reading them."""
    scope = session.permissions.path_scope
    if sandboxes is None:
        return OwnPrograms(scope.folders)
    mode = sandboxes.defaults.for_session(session.settings.options.sandbox_config).mode
    return OwnPrograms(
        lambda: (*scope.folders(), *sandboxes.opened), sandboxes.confine_reading if mode != "off" else None
    )


def note_edit(session: Session, sandboxes: Sandboxes, place: Path) -> None:
    """Note that a tool has changed a file, as it is noted when a command runs. Returns at once."""
    if sandboxes.defaults.for_session(session.settings.options.sandbox_config).mode == "off":
        return
    folders = (Path(os.path.realpath(folder)) for folder in session.permissions.path_scope.folders())
    folder = next((found for found in folders if place.is_relative_to(found)), place.parent)
    try:
        sandboxes.times.note(folder, os.lstat(place).st_ctime_ns)
    except OSError:
        return

    async def store() -> None:
        await anyio.to_thread.run_sync(sandboxes.times.store, folder)

    session.services.tasks.start_soon(store)


class _Hosts:
    """Judges the hosts of confined commands like those of web pages. Implements :class:`HostJudge`."""

    def __init__(self, permissions: Permissions) -> None:
        self._permissions = permissions

    def forbids(self, url: str) -> bool:
        # The facts of a URL are gathered without access to the disk.
        from jumpseat.agent.permissions.facts import gather_facts

        facts = gather_facts(UrlPermission(intention="", url=url), TOOL, self._permissions.path_scope)
        return self._permissions.denial_by_rule(facts) is not None

    async def allows(self, url: str, reach: Reach) -> bool:
        intention = f"Let a command connect: {reach.command}" if reach.command else "Let a command connect"
        request = UrlPermission(intention=intention, url=url, tool_call_id=reach.call_id)
        return (await self._permissions.decide(request, TOOL)).status == "allowed"
