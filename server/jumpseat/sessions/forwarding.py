"""``gitHubTelemetry.event``: tell clients that ask for it which sessions they open.

Nothing is sent anywhere else.
"""

from __future__ import annotations

import platform

from jumpseat.agent.clock import utc_now
from jumpseat.agent.session.session import Session
from jumpseat.sessions.context import Context
from jumpseat_protocol.sessions import SessionOptions
from jumpseat_protocol.version import __version__


def forward_opening(ctx: Context, session: Session, options: SessionOptions, kind: str) -> None:
    """Send the client an event of type ``kind`` about a session that it has opened, if it wants such events."""
    if options.enable_git_hub_telemetry_forwarding is not None:
        ctx.connection.wants_telemetry = options.enable_git_hub_telemetry_forwarding
    if not ctx.connection.wants_telemetry:
        return
    # Imported here, because few clients want them.
    from jumpseat_protocol.telemetry import (
        EVENT,
        GitHubTelemetryClient,
        GitHubTelemetryEvent,
        GitHubTelemetryParams,
    )

    settings = session.settings
    properties = {
        "mode": settings.mode,
        "model": settings.options.model,
        "reasoning_effort": settings.options.reasoning_effort,
    }
    event = GitHubTelemetryEvent(
        kind=kind,
        properties={name: value for name, value in properties.items() if value},
        metrics={"events": session.history.event_count},
        session_id=session.id,
        created_at=utc_now(),
        client=GitHubTelemetryClient(
            cli_version=__version__,
            node_version="",
            os_platform=platform.system().lower(),
            os_version=platform.release(),
            os_arch=platform.machine(),
            client_name=settings.options.client_name,
        ),
    )
    params = GitHubTelemetryParams(session_id=session.id, restricted=False, event=event)
    ctx.connection.notify(EVENT, params.wire())
