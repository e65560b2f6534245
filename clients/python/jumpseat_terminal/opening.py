"""Start a server or connect to one, and open the selected session. Shared by ``chat`` and ``run``."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from jumpseat_client import (
    Client,
    Event,
    HandshakeError,
    JumpseatClientError,
    PermissionHandler,
    RpcError,
    ServerGoneError,
    Session,
    SessionSettings,
    connect_stdio,
    connect_tcp,
)
from jumpseat_terminal.options import SETS, Settings, SharedServer
from jumpseat_terminal.rules import KINDS, PROVIDED, Rule, hidden_tools
from jumpseat_terminal.streams import to_stderr


class UnknownToolError(JumpseatClientError):
    """An argument names a tool that does not exist."""


class NoSessionError(JumpseatClientError):
    """The requested session does not exist."""


def connect(settings: Settings) -> AbstractAsyncContextManager[Client]:
    """Connect to the server of the arguments, or start one in its own process group.

    In its own group, ctrl-c reaches only this process.
    """
    if settings.server is not None:
        return _connect_to(settings.server)
    return start_server(settings.folder, settings.log_level)


def start_server(folder: Path, level: str | None = None) -> AbstractAsyncContextManager[Client]:
    """Start a server in its own process group, and connect to it. Its log is printed from ``level`` on."""
    # Without -P, a file in the working directory could shadow one of our modules. A standalone copy, whose launcher
    # ignores the environment of other Pythons, passes that on.
    command = [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", "jumpseat"]
    env = {"COPILOT_HOME": os.path.abspath(home)} if (home := os.environ.get("COPILOT_HOME")) else {}
    return connect_stdio(
        command,
        args=() if level is None else ("--log-level", level),
        env=env,
        cwd=folder,
        start_new_session=True,
        on_stderr=None if level is None else _print_log,
    )


@asynccontextmanager
async def _connect_to(server: SharedServer) -> AsyncGenerator[Client]:
    """Connect to a running server.

    Raises:
        JumpseatClientError: the connection, the certificate or the token was refused.
    """
    token = os.environ.get("COPILOT_CONNECTION_TOKEN")
    try:
        tls = ssl.create_default_context(cafile=server.authority) if server.tls else False
    except ssl.SSLError:
        raise JumpseatClientError(f"{str(server.authority)!r} has no certificates in PEM form") from None
    try:
        async with connect_tcp(server.host, server.port, token=token, tls=tls) as client:
            yield client
    except HandshakeError as error:
        raise HandshakeError(f"{error}{_advise(server, token, error.__cause__)}") from error


def _advise(server: SharedServer, token: str | None, cause: BaseException | None) -> str:
    """Return what to do about a failed connection, or nothing."""
    match cause:
        case ssl.SSLCertVerificationError(verify_code=62 | 64):
            # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
            return "; give --connect a name or address that is in the certificate"
        case ssl.SSLCertVerificationError() if server.authority is not None:
            return f"; the certificates in --tls-ca {server.authority} do not confirm it"
        case ssl.SSLCertVerificationError():
            return "; --tls-ca FILE trusts the certificates in a file"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "RECORD_LAYER_FAILURE"):
            return "; leave out --tls"
        case ServerGoneError() if not server.tls:
            return "; if the server requires TLS, add --tls"
        case RpcError() if token is None:
            return "; set COPILOT_CONNECTION_TOKEN to a token of the server"
        case RpcError():
            return "; COPILOT_CONNECTION_TOKEN has to be a token of this server"
        case _:
            return ""


def _print_log(output: bytes) -> None:
    to_stderr(output.decode("utf-8", "replace"))


def same_folder(one: str, other: str) -> bool:
    """Return whether two paths lead to the same folder."""
    return os.path.realpath(one) == os.path.realpath(other)


async def find_session(client: Client, settings: Settings, *, one_off_too: bool = False) -> str | None:
    """Return the id of the session to resume; ``None`` for a new one.

    With ``one_off_too``, the latest session may be one for a single prompt, as that of the last ``jumpseat run``.

    Raises:
        NoSessionError: no session, or more than one, matches the arguments.
    """
    if settings.latest:
        folder = str(settings.folder)
        here = [
            session
            for session in await client.list_sessions()
            if session.context
            and same_folder(session.context.cwd, folder)
            and (session.resumable or (one_off_too and session.one_off))
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
    one_off: bool = False,
) -> Session:
    """Create a session, or resume ``session_id``, with the options and rules of the arguments.

    A new session is marked if it is ``one_off``; otherwise, a resumed one loses its mark.
    """
    await _check_names(client, settings)
    options: SessionSettings = {
        "model": settings.model,
        "streaming": True,
        "keep_interrupted_answers": True,
        "client_name": "jumpseat-terminal",
        "extra": {**extra, **_own_options(settings)},
    }
    if settings.reasoning_effort is not None:
        options["reasoning_effort"] = settings.reasoning_effort
    if settings.tools is not None:
        options["available_tools"] = settings.tools
    if hidden := hidden_tools(settings.deny):
        options["excluded_tools"] = hidden
    if session_id is None or not one_off:
        options["one_off"] = one_off
    if session_id is None:
        options["working_directory"] = str(settings.folder)
        # A run of one prompt has nothing to go back to.
        options["enable_file_change_tracking"] = not one_off
        session = await client.create_session(on_event=on_event, on_permission=on_permission, **options)
    else:
        session = await client.resume_session(session_id, on_event=on_event, on_permission=on_permission, **options)
    rules = {name: [rule.wire() for rule in rules] for name, rules in _session_rules(settings).items()}
    everything = {"approveAllToolPermissionRequests": True} if settings.yolo else {}
    await session.request("session.permissions.configure", rules=rules, **everything)
    return session


async def _check_names(client: Client, settings: Settings) -> None:
    """Check the names of tools in the arguments.

    Names with a hyphen may be those of MCP servers: the session warns if they are not. A rule may be for tools that
    only some sessions have, so only its misspelt names are errors.

    Raises:
        UnknownToolError: a name is unknown.
    """
    tools = [name for name in settings.tools or () if not set(name) & set("-:/*")]
    named: list[tuple[str, str]] = []
    for option, rules in (("--allow-tool", settings.allow), ("--deny-tool", settings.deny)):
        named += [(option, rule.argument or "") for rule in rules if rule.kind == "tool"]
    if not named and not tools:
        return
    declared = (await client.request("jumpseat.tools.list", {"workingDirectory": str(settings.folder)}))["tools"]
    builtin = (await client.request("tools.list"))["tools"]
    known = {*PROVIDED, *(tool["name"] for tool in (*builtin, *declared))}
    for option, name in [*(("--tools", name) for name in tools), *named]:
        allowed = known | SETS if option == "--tools" else known | {*KINDS}
        if name in allowed:
            continue
        if found := get_close_matches(name, [each.removeprefix("@") for each in allowed], 1, 0.75):
            raise UnknownToolError(f"{option}: unknown tool {name!r}, did you mean {found[0]!r}?")
        if option == "--tools":
            raise UnknownToolError(
                f"--tools: unknown tool {name!r}, expected minimal, default, all or none, or names of tools: "
                f"{', '.join(sorted(tool['name'] for tool in builtin))}; those of an MCP server are SERVER-NAME"
            )


def _own_options(settings: Settings) -> dict[str, Any]:
    """Return the options of jumpseat that the arguments set."""
    limit = {"maxCost": settings.max_cost, "maxTokens": settings.max_tokens}
    budget = {name: value for name, value in limit.items() if value is not None}
    return {
        "projectBrief": True,
        "checkReminder": True,
        **({"adapterSettings": settings.adapter_settings} if settings.adapter_settings else {}),
        **({"budget": {"session": budget}} if budget else {}),
    }


def _session_rules(settings: Settings) -> dict[str, tuple[Rule, ...]]:
    # Users expect an agent to read the folder that it is started in. Any other rule about reading takes precedence.
    return {"approved": (Rule("read"), *settings.allow), "denied": settings.deny}
