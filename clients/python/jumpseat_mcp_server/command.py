"""The entry point of ``jumpseat mcp-server``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import anyio

from jumpseat_client import JumpseatClientError, connect_stdio
from jumpseat_protocol.safe import one_line

if TYPE_CHECKING:
    from jumpseat_mcp_server.server import SessionServer

TOKEN_VARIABLE = "JUMPSEAT_MCP_TOKEN"  # noqa: S105 - the name of a variable


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; on an error, exit with code 2."""
    parser = argparse.ArgumentParser(
        "jumpseat mcp-server",
        allow_abbrev=False,
        description=(
            "Serve other agents: an MCP server on stdin and stdout, whose tools start sessions, go on with them and"
            " read them. Calls that need approval are asked about by elicitation; without it, they are rejected."
        ),
    )
    parser.add_argument(
        "--http",
        type=int,
        metavar="PORT",
        help=f"serve streamable HTTP on this loopback port; clients present the token in {TOKEN_VARIABLE}",
    )
    parser.add_argument("--no-token", action="store_true", help="with --http: serve all programs of this machine")
    parser.add_argument("--tools", metavar="NAMES", help="the tools of the agent, as for a server")
    args = parser.parse_args(argv)
    if args.no_token and args.http is None:
        parser.error("--no-token requires --http")
    if args.http is not None and not args.no_token and not os.environ.get(TOKEN_VARIABLE):
        parser.error(f"--http: set {TOKEN_VARIABLE} to a token for the clients, or give --no-token")
    if args.http is not None and not 0 <= args.http <= 65535:
        parser.error(f"--http: expected a port from 0 to 65535, got {args.http}")
    return args


def main(argv: Sequence[str]) -> int:
    """Serve until the client leaves, and return the exit code."""
    args = parse(argv)
    code = 0
    try:
        anyio.run(partial(_serve, args))
    except* (JumpseatClientError, OSError) as group:
        for error in group.exceptions:
            print(f"error: {one_line(str(error))}", file=sys.stderr)
        code = 1
    except* KeyboardInterrupt:
        code = 130
    return code


async def _serve(args: argparse.Namespace) -> None:
    from jumpseat_mcp_server.server import SessionServer

    server = SessionServer()
    async with anyio.create_task_group() as tasks:
        # Clients wait a few seconds for the first answer, which needs no session.
        tasks.start_soon(_open, server, ["--tools", args.tools] if args.tools is not None else [])
        if args.http is None:
            from mcp.server.stdio import stdio_server

            async with stdio_server() as (read, write):
                await server.mcp.run(read, write, server.mcp.create_initialization_options())
        else:
            from jumpseat_mcp_server.http import serve_http

            await serve_http(server.mcp, args.http, None if args.no_token else os.environ[TOKEN_VARIABLE])
        tasks.cancel_scope.cancel()


async def _open(server: SessionServer, options: list[str]) -> None:
    """Run the server of the sessions until cancelled."""
    from jumpseat_mcp_server.turns import Turns

    async with connect_stdio(args=options, start_new_session=True) as client, anyio.create_task_group() as tasks:
        server.open(client, Turns(client, tasks))
        await anyio.sleep_forever()
