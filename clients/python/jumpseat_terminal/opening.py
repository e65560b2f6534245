"""Start the server and open the session that the arguments select. Shared by ``chat`` and ``run``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from jumpseat_client import (
    Client,
    Event,
    JumpseatClientError,
    PermissionHandler,
    Session,
    SessionSettings,
    connect_stdio,
)
from jumpseat_terminal.options import Settings
from jumpseat_terminal.rules import Rule, hidden_tools
from jumpseat_terminal.streams import to_stderr


class NoSessionError(JumpseatClientError):
    """The requested session does not exist."""


def connect(settings: Settings) -> AbstractAsyncContextManager[Client]:
    """Start a server in its own process group, so that ctrl-c reaches only this process."""
    # Without -P, a file in the working directory could shadow one of our modules.
    command = [sys.executable, "-P", "-m", "jumpseat"]
    env = {"COPILOT_HOME": os.path.abspath(home)} if (home := os.environ.get("COPILOT_HOME")) else {}
    level = settings.log_level
    return connect_stdio(
        command,
        args=() if level is None else ("--log-level", level),
        env=env,
        cwd=settings.folder,
        start_new_session=True,
        on_stderr=None if level is None else _print_log,
    )


def _print_log(output: bytes) -> None:
    to_stderr(output.decode("utf-8", "replace"))


async def find_session(client: Client, settings: Settings) -> str | None:
    """Return the id of the session to resume; ``None`` for a new one.

    Raises:
        NoSessionError: no session, or more than one, matches the arguments.
    """
    if settings.latest:
        folder = str(settings.folder)
        here = [
            session for session in await client.list_sessions() if session.context and session.context.cwd == folder
        ]
        if not here:
            raise NoSessionError(f"no session in {folder} yet")
        return here[0].session_id
    if not settings.resume:
        return None
    found = [
        session.session_id
        for session in await client.list_sessions()
        if session.session_id.startswith(settings.resume)
    ]
    if settings.resume in found:
        return settings.resume
    if len(found) != 1:
        what = "no session has" if not found else f"{len(found)} sessions have"
        raise NoSessionError(f"{what} an id that starts with {settings.resume!r}")
    return found[0]


async def open_session(
    client: Client,
    settings: Settings,
    session_id: str | None,
    *,
    on_event: Callable[[Event], None],
    on_permission: PermissionHandler,
    extra: dict[str, Any],
) -> Session:
    """Create a session, or resume ``session_id``, with the options and rules of the arguments."""
    options: SessionSettings = {
        "model": settings.model,
        "streaming": True,
        "client_name": "jumpseat-terminal",
        "extra": {**extra, "adapterSettings": settings.adapter_settings} if settings.adapter_settings else extra,
    }
    if settings.reasoning_effort is not None:
        options["reasoning_effort"] = settings.reasoning_effort
    if hidden := hidden_tools(settings.deny):
        options["excluded_tools"] = hidden
    if session_id is None:
        options["working_directory"] = str(settings.folder)
        session = await client.create_session(on_event=on_event, on_permission=on_permission, **options)
    else:
        session = await client.resume_session(session_id, on_event=on_event, on_permission=on_permission, **options)
    rules = {name: [rule.wire() for rule in rules] for name, rules in _session_rules(settings).items()}
    everything = {"approveAllToolPermissionRequests": True} if settings.yolo else {}
    await session.request("session.permissions.configure", rules=rules, **everything)
    return session


def _session_rules(settings: Settings) -> dict[str, tuple[Rule, ...]]:
    # Users expect an agent to read the folder that it is started in. Any other rule about reading takes precedence.
    return {"approved": (Rule("read"), *settings.allow), "denied": settings.deny}
