"""``jumpseat web``: open the page of a running server, or start a server for the stored sessions."""

from __future__ import annotations

import argparse
import http.client
import json
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast
from urllib.parse import urlsplit

from jumpseat.cli.output import FAILED, CommandParser, print_error, print_text
from jumpseat.config import home_folder
from jumpseat.errors import JumpseatError
from jumpseat.options import Options, TcpOptions, options_of_environ
from jumpseat.store.user.page_access import PageAccess, PageServer

TIMEOUT_S: Final = 2.0
LARGEST_BYTES: Final = 1 << 16


def main(argv: Sequence[str], environ: Mapping[str, str], serve: Callable[[Options], int]) -> int:
    """Run the command in ``argv``; ``serve`` runs a server until it ends. Return the exit code."""
    args = _parse(argv)
    options = options_of_environ(environ)
    if not args.new and args.port is None:
        access = PageAccess(home_folder(options.environ))
        server = find_server(access)
        if server is not None:
            return _open(access, server, only_print=args.print)
    tcp = TcpOptions(
        token=options.environ.get("COPILOT_CONNECTION_TOKEN"),
        named_tokens=False,
        serves_tcp=False,
        web_port=args.port or 0,
        page="print" if args.print else "open",
    )
    return serve(replace(options, tcp=tcp))


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
    return isinstance(value, dict) and cast("dict[str, Any]", value).get("pid") == server.pid


def _open(access: PageAccess, server: PageServer, *, only_print: bool) -> int:
    try:
        address = access.page_address(server.url, server.pid)
    except JumpseatError as error:
        print_error(str(error))
        return FAILED
    print_text(f"The page of the server {server.pid}: {address}")
    print_text("The address is valid once, for a minute.")
    if not only_print:
        webbrowser.open(address)
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(
        prog="jumpseat web",
        allow_abbrev=False,
        description="Open the page for sessions in the browser: that of the server of this home folder that was"
        " started with --ws-port, otherwise that of a server of its own, which ends with Ctrl-C.",
    )
    parser.add_argument("--print", action="store_true", help="print the address, and open no browser")
    parser.add_argument("--new", action="store_true", help="start a server, even if there is one")
    parser.add_argument("--port", type=_port, metavar="N", help="start a server on this port")
    return parser.parse_args(argv)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, got {text!r}")
    return int(text)
