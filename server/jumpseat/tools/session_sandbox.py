"""The sandbox of a session, with the folders and options that the session has at the time of each command."""

from __future__ import annotations

from dataclasses import replace

from jumpseat.agent.session.session import Session
from jumpseat.sandbox.session import Sandboxes, SessionSandbox
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat_protocol import events


def session_sandbox(session: Session, sandboxes: Sandboxes, *, of_servers: bool = False) -> SessionSandbox:
    """Return a sandbox for the commands of ``session``, or for its MCP servers."""
    scope = session.permissions.path_scope

    def settings() -> SandboxSettings:
        found = sandboxes.defaults.for_session(session.settings.sandbox)
        return replace(found, mode=found.mcp) if of_servers else found

    def warn(text: str) -> None:
        session.emit(events.SessionWarning(warning_type="sandbox", message=text))

    return SessionSandbox(
        sandboxes,
        settings,
        lambda: [scope.main_folder, scope.cwd(), *scope.added_folders],
        scope.session_folders,
        warn=warn,
    )
