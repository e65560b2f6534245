"""``jumpseat web``: open the page of a running server, or start a server for the stored sessions."""

from __future__ import annotations

import argparse
import http.client
import json
import webbrowser
from typing import Any, Final, cast
from urllib.parse import urlsplit

from msgspec.structs import replace

from jumpseat.cli.commands import CommandContext, CommandParser, port_number, print_text
from jumpseat.options import TcpOptions
from jumpseat.store.user.page_access import PageAccess, PageServer

TIMEOUT_S: Final = 2.0
LARGEST_BYTES: Final = 1 << 16


DESCRIPTION: Final = (
    "Open the page for sessions in the browser. It uses the server of this home folder that was started with"
    " --ws-port, or starts a server, which ends with Ctrl-C."
)


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--print", action="store_true", help="print the address, and open no browser")
    parser.add_argument("--new", action="store_true", help="start a server, even if there is one")
    parser.add_argument("--port", type=port_number, metavar="N", help="start a server on this port")


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    if not args.new and args.port is None:
        access = PageAccess(ctx.home)
        server = find_server(access)
        if server is not None:
            return _open(access, server, only_print=args.print)
    tcp = TcpOptions(
        token=ctx.environ.get("COPILOT_CONNECTION_TOKEN"),
        named_tokens=False,
        serves_tcp=False,
        web_port=args.port or 0,
        page="print" if args.print else "open",
    )
    return ctx.serve(replace(ctx.options, tcp=tcp))


def find_server(access: PageAccess) -> PageServer | None:
    """Return the running server of the home folder that was started last; entries of killed ones are removed."""
    for server in reversed(access.servers()):
        if _is_running(server):
            return server
        access.remove_server(server.pid)
    return None


def _is_running(server: PageServer) -> bool:
    """Return whether the server answers at its address. Another program may have its port since."""
    url = urlsplit(server.url)
    # The certificate need not be known here: the answer decides nothing but whether to open the address.
    if url.scheme == "https":
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            url.netloc, timeout=TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(url.netloc, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/about.json")
        value: Any = json.loads(connection.getresponse().read(LARGEST_BYTES))
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    if not isinstance(value, dict):
        return False
    about = cast("dict[str, Any]", value)
    return about.get("id") == server.id if server.id else about.get("pid") == server.pid


def _open(access: PageAccess, server: PageServer, *, only_print: bool) -> int:
    address = access.page_address(server.url, server.pid)
    print_text(f"The page of the server {server.pid}: {address}")
    print_text("The address is valid once, for a minute.")
    if not only_print:
        webbrowser.open(address)
    return 0
