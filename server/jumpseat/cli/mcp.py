"""``jumpseat mcp``: list the MCP servers that are configured in files, log in to them, keep secrets, log out.

A server that only a session has is named by its URL. Tokens are never shown.
"""

from __future__ import annotations

import argparse
import logging
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from getpass import getpass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from jumpseat.cli.commands import CommandContext, CommandParser, print_json, print_table, print_text
from jumpseat.config import Config, load_config
from jumpseat.errors import InvalidRequestError
from jumpseat.mcp.catalogue import MissingVariableError, ServerEntry, find_servers, resolve_config
from jumpseat.mcp.tokens import Login, parse_login
from jumpseat.store.user.mcp_config import McpConfigFile, McpTokenFile
from jumpseat.store.user.trusted_folders import TrustedFolders
from jumpseat_protocol.mcp_servers import McpServerConfig
from jumpseat_protocol.safe import one_line

INVALID: Final = 3


DESCRIPTION: Final = "Servers of the Model Context Protocol."


def add_arguments(parser: CommandParser) -> None:
    parser.add_command("list", "list the servers that are configured in files").add_json()
    login = parser.add_command("login", "log in to a server, in a browser")
    login.add_argument("server", metavar="SERVER", help="name or URL of the server")
    login.add_argument("--no-browser", action="store_true", help="only print the address to open")
    login.add_argument("--client-id", metavar="ID", help="id of an OAuth client that is registered with the server")
    login.add_argument(
        "--client-secret-env", metavar="NAME", help="environment variable that holds the secret of that client"
    )
    secret = parser.add_command("secret", "keep the secret of a registered client in the keyring")
    secret.add_argument("server", metavar="SERVER", help="name of a server with oauthGrantType client_credentials")
    secret.add_argument("--remove", action="store_true", help="remove the secret from the keyring")
    logout = parser.add_command("logout", "remove a stored login")
    logout.add_argument("server", metavar="SERVER", help="name or URL of the server")


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    home, environ = ctx.home, ctx.environ
    tokens = McpTokenFile(home)
    # The mcp package logs tracebacks of failures that are reported here.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    servers = _servers(load_config(home), home)
    if args.command == "list":
        return _list(servers, tokens, environ, as_json=args.json)
    url, config = _find_url(args.server, servers, environ)
    if args.command == "secret":
        return _secret(args.server, url, config, remove=args.remove)
    if args.command == "logout":
        removed = tokens.remove(url)
        print_text(f"Logged out of {args.server}." if removed else f"There was no login to {args.server}.")
        return 0
    return anyio.run(_login, ctx, args, url, config, tokens)


def _servers(config: Config, home: Path) -> dict[str, ServerEntry]:
    """Return the servers of every session in this folder: the user's, and the project's if it is trusted."""
    user, cwd = McpConfigFile(home), Path.cwd()
    trusted = TrustedFolders(home, config.trusted_folders).is_trusted(cwd)
    return find_servers(
        {},
        user=config.mcp.servers,
        user_file=user.servers(),
        home=home,
        disabled=user.disabled(),
        project=cwd if trusted else None,
    )


def _find_url(
    server: str, servers: Mapping[str, ServerEntry], environ: Mapping[str, str]
) -> tuple[str, McpServerConfig | None]:
    """Return the URL of a server, given by name or URL, and its settings if it is configured.

    Raises:
        InvalidRequestError: the server is not configured or invalid, or has no URL.
    """
    if server.startswith(("https://", "http://")):
        return server, None
    entry = servers.get(server)
    if entry is None:
        known = ", ".join(name for name, server in servers.items() if server.config and server.config.remote)
        raise InvalidRequestError(
            f"unknown MCP server {server!r}: expected {f'one of {known}, or a URL' if known else 'a URL'}"
        )
    if entry.config is None:
        raise InvalidRequestError(f"MCP server {server!r}: {entry.problem}")
    try:
        config = resolve_config(entry, entry.config, environ)
    except MissingVariableError as error:
        raise InvalidRequestError(f"MCP server {server!r}: {error}") from None
    if config.url is None:
        raise InvalidRequestError(f"MCP server {server!r} is a program, expected a server with a URL")
    return config.url, config


# --- list ---------------------------------------------------------------------------------------------------------


def _list(
    servers: Mapping[str, ServerEntry], tokens: McpTokenFile, environ: Mapping[str, str], *, as_json: bool
) -> int:
    logins = {url: login for url, record in tokens.all().items() if (login := parse_login(record)) is not None}
    found = [_row(entry, logins, environ) for entry in servers.values()]
    configured = {url for url, _ in found}
    rows = [row for _, row in found]
    rows += [
        {"name": None, "from": None, "address": _public_url(url), "login": _state(login)}
        for url, login in logins.items()
        if url not in configured
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        print_text("There are no MCP servers in configuration files, and no logins.")
    else:
        _print_rows([row for row in rows if "problem" not in row])
        for row in rows:
            if "problem" in row:
                print_text(one_line(f"{row['name']} cannot be used: {row['problem']}"))
    return INVALID if any("problem" in row for row in rows) else 0


def _print_rows(rows: Sequence[Mapping[str, str | None]]) -> None:
    if rows:
        print_table([tuple(rows[0]), *(tuple(one_line(value or "-") for value in row.values()) for row in rows)])


def _row(
    entry: ServerEntry, logins: Mapping[str, Login], environ: Mapping[str, str]
) -> tuple[str | None, dict[str, Any]]:
    """Return the URL of a server, if it has one, and its row in the list."""
    url, address = None, None
    if entry.config is not None:
        try:
            url = resolve_config(entry, entry.config, environ).url
            address = _public_url(url) if url else entry.config.command
        except MissingVariableError as error:
            address = f"({error})"
    login = logins.get(url) if url else None
    origin = {"workspace": "project", "user": "user"}.get(entry.source or "", entry.source)
    shown = {"name": entry.name, "from": origin, "address": address, "login": login and _state(login)}
    if entry.config is None:
        shown["problem"] = entry.problem
    return url, shown


def _state(login: Login) -> str:
    if not login.expires_soon():
        return "yes"
    return "renewed at its next use" if login.refresh_token else "expired"


def _public_url(url: str) -> str:
    """Return a URL without user, password and query, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


# --- login --------------------------------------------------------------------------------------------------------


async def _login(
    ctx: CommandContext, args: argparse.Namespace, url: str, config: McpServerConfig | None, tokens: McpTokenFile
) -> int:
    from jumpseat.mcp.login import log_in

    secret: str | None = None
    if args.client_secret_env:
        secret = ctx.environ.get(args.client_secret_env)
        if secret is None:
            raise InvalidRequestError(f"the environment variable {args.client_secret_env} is not set")

    async def show(address: str) -> None:
        print_text(f"Open this address in a browser to log in to {args.server}:\n\n{address}\n")
        if not args.no_browser and _has_display(ctx.environ):
            await anyio.to_thread.run_sync(webbrowser.open, address, abandon_on_cancel=True)

    client_id = args.client_id or (config.oauth_client_id if config else None)
    login = await log_in(url, show, client_id=client_id, client_secret=secret)
    if login is None:
        print_text(f"{args.server} requires no login.")
        return 0
    tokens.put(url, login.model_dump(exclude_none=True))
    print_text(f"Logged in to {args.server}.")
    return 0


def _has_display(environ: Mapping[str, str]) -> bool:
    # Without a display, a text browser would take over this terminal.
    return sys.platform != "linux" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


# --- secrets ------------------------------------------------------------------------------------------------------


def _secret(server: str, url: str, config: McpServerConfig | None, *, remove: bool) -> int:
    """Read the secret of a client from the terminal, or a line of standard input, and keep it in the keyring."""
    from jumpseat.store.user.client_secrets import RegisteredClient, forget_client_secret, keep_client_secret

    if config is None or config.oauth_grant_type != "client_credentials":
        raise InvalidRequestError(
            f'MCP server {server!r}: expected oauthGrantType = "client_credentials" in a file'
        )
    if not config.oauth_client_id or not config.oauth_issuer:
        raise InvalidRequestError(f"MCP server {server!r}: expected oauthClientId and oauthIssuer")
    client = RegisteredClient(url, config.oauth_issuer, config.oauth_client_id)
    if remove:
        print_text("The secret is removed." if forget_client_secret(client) else "There was no secret.")
        return 0
    if sys.stdin.isatty():
        secret = getpass(f"Secret of {config.oauth_client_id} for {config.oauth_issuer}: ")
    else:
        secret = sys.stdin.readline()
    if not secret.strip():
        raise InvalidRequestError("expected a secret, got an empty line")
    keep_client_secret(client, secret.strip())
    print_text(f"The secret of {config.oauth_client_id} is in the keyring.")
    if config.oauth_client_secret_env is not None:
        print_text(f"It is not used while oauthClientSecretEnv names {config.oauth_client_secret_env}.")
    return 0
