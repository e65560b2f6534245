"""``jumpseat mcp``: the MCP servers that are set up in files, and logging in to those that want it.

A server that only a session has is named by its URL. No token is ever shown.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from jumpseat.config import Config, home_folder, load_config
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.mcp.catalogue import MissingVariableError, ServerEntry, find_servers, resolved
from jumpseat.mcp.loading import spare_server_side
from jumpseat.mcp.tokens import Login, login_of
from jumpseat.store.mcp_config import McpConfigFile
from jumpseat.store.mcp_tokens import McpTokenFile
from jumpseat.store.trusted_folders import TrustedFolders
from jumpseat_protocol.mcp import McpServerConfig

FAILED: Final = 1
WRONG: Final = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _complain(message)
        sys.exit(WRONG)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Do what the arguments say; returns the exit code."""
    known = _parse(argv)
    environ = {name: value for name, value in environ.items() if value}
    home = home_folder(environ)
    tokens = McpTokenFile(home)
    # The mcp package tells tracebacks of what is told here in words.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    try:
        servers = _servers(load_config(home), home)
        if known.command == "list":
            return _list(servers, tokens, environ, as_json=known.json)
        url, config = _url_of(known.server, servers, environ)
        if known.command == "logout":
            gone = tokens.remove(url)
            _print(f"Logged out of {known.server}." if gone else f"There was no login to {known.server}.")
            return 0
        return anyio.run(_login, known, url, config, tokens, environ)
    except InvalidRequestError as error:
        _complain(str(error))
        return WRONG
    except JumpseatError as error:
        _complain(str(error))
        return FAILED
    except KeyboardInterrupt:
        _complain("nobody has logged in")
        return FAILED


def _parse(argv: Sequence[str]) -> Any:
    parser = _Parser(prog="jumpseat mcp", allow_abbrev=False, description="Servers of the Model Context Protocol.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list the servers that are set up in files", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="print JSON")
    login = commands.add_parser("login", help="log in to a server, in a browser", allow_abbrev=False)
    login.add_argument("server", metavar="SERVER", help="its name, or its URL")
    login.add_argument("--no-browser", action="store_true", help="only print the address to open")
    login.add_argument("--client-id", metavar="ID", help="a client that is registered with the server")
    login.add_argument("--client-secret-env", metavar="NAME", help="the variable that holds its secret")
    logout = commands.add_parser("logout", help="forget a login", allow_abbrev=False)
    logout.add_argument("server", metavar="SERVER", help="its name, or its URL")
    return parser.parse_args(argv)


def _servers(config: Config, home: Path) -> dict[str, ServerEntry]:
    """Those that every session here has: no plugins, and a project's where it is trusted."""
    user, cwd = McpConfigFile(home), Path.cwd()
    trusted = TrustedFolders(home, config.trusted_folders).is_trusted(cwd)
    return find_servers(
        {},
        user=config.mcp.servers,
        user_file=user.servers(),
        disabled=user.disabled(),
        project=cwd if trusted else None,
    )


def _url_of(
    server: str, servers: Mapping[str, ServerEntry], environ: Mapping[str, str]
) -> tuple[str, McpServerConfig | None]:
    """The URL that a server is reached by, and its settings where it has some.

    Raises:
        InvalidRequestError: there is no such server, or it has no URL.
    """
    if server.startswith(("https://", "http://")):
        return server, None
    entry = servers.get(server)
    if entry is None:
        known = ", ".join(name for name, one in servers.items() if one.config and one.config.remote)
        raise InvalidRequestError(
            f"there is no MCP server {server!r} in a file; {f'there are: {known}' if known else 'give its URL'}"
        )
    if entry.config is None:
        raise InvalidRequestError(f"MCP server {server!r}: {entry.problem}")
    try:
        config = resolved(entry, entry.config, environ)
    except MissingVariableError as error:
        raise InvalidRequestError(f"MCP server {server!r}: {error}") from None
    if config.url is None:
        raise InvalidRequestError(f"MCP server {server!r} is a program: it has no login")
    return config.url, config


# --- list ---------------------------------------------------------------------------------------------------------


def _list(
    servers: Mapping[str, ServerEntry], tokens: McpTokenFile, environ: Mapping[str, str], *, as_json: bool
) -> int:
    logins = {url: login for url, one in tokens.all().items() if (login := login_of(one)) is not None}
    found = [_row(entry, logins, environ) for entry in servers.values()]
    named = {url for url, _ in found}
    rows = [row for _, row in found]
    rows += [
        {"name": None, "from": None, "address": _place(url), "login": _state(login)}
        for url, login in logins.items()
        if url not in named
    ]
    if as_json:
        _print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif not rows:
        _complain("no MCP server is set up in a file, and there is no login")
    else:
        lines = [tuple(rows[0]), *(tuple(str(value or "-") for value in row.values()) for row in rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            _print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return 0


def _row(
    entry: ServerEntry, logins: Mapping[str, Login], environ: Mapping[str, str]
) -> tuple[str | None, dict[str, Any]]:
    url, address = None, entry.problem
    if entry.config is not None:
        try:
            url = resolved(entry, entry.config, environ).url
            address = _place(url) if url else entry.config.command
        except MissingVariableError as error:
            address = f"({error})"
    login = logins.get(url) if url else None
    origin = {"workspace": "project", "user": "user"}.get(entry.source or "", entry.source)
    shown = {"name": entry.name, "from": origin, "address": address, "login": login and _state(login)}
    return url, shown


def _state(login: Login) -> str:
    if not login.ends_soon():
        return "yes"
    return "renewed at its next use" if login.refresh_token else "expired"


def _place(url: str) -> str:
    """A URL without user, password and query, for those may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


# --- login --------------------------------------------------------------------------------------------------------


async def _login(
    known: Any, url: str, config: McpServerConfig | None, tokens: McpTokenFile, environ: Mapping[str, str]
) -> int:
    spare_server_side()
    from jumpseat.mcp.login import log_in

    secret: str | None = None
    if known.client_secret_env:
        secret = environ.get(known.client_secret_env)
        if secret is None:
            raise InvalidRequestError(f"the environment variable {known.client_secret_env} is not set")

    async def show(address: str) -> None:
        _print(f"Open this address in a browser to log in to {known.server}:\n\n{address}\n")
        if not known.no_browser and _has_screen(environ):
            await anyio.to_thread.run_sync(webbrowser.open, address, abandon_on_cancel=True)

    client_id = known.client_id or (config.oauth_client_id if config else None)
    login = await log_in(url, show, client_id=client_id, client_secret=secret)
    if login is None:
        _print(f"{known.server} wants no login.")
        return 0
    tokens.put(url, login.model_dump(exclude_none=True))
    _print(f"Logged in to {known.server}.")
    return 0


def _has_screen(environ: Mapping[str, str]) -> bool:
    # Without one, a browser for terminals would take over this one.
    return sys.platform != "linux" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def _print(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command speaks to its user


def _complain(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)  # noqa: T201 - a command speaks to its user
