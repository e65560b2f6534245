"""``jumpseat acp --connect``: an editor on stdin and stdout, and a server elsewhere."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from jumpseat.cli.commands import CommandContext, CommandParser
from jumpseat.errors import ConfigError

if TYPE_CHECKING:
    from jumpseat.acp.bridge.connections import Open

DESCRIPTION: Final = (
    "Connect an editor that starts programs to a running server. The editor speaks the Agent Client Protocol on"
    " stdin and stdout; its messages are passed on. A lost connection is opened again, and sessions are resumed."
)
VARIABLE: Final = "COPILOT_CONNECTION_TOKEN"


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "--connect", metavar="URL", required=True, help="the server: wss://HOST[:PORT], ws://, tcps:// or tcp://"
    )
    parser.add_argument(
        "--token-env", metavar="NAME", default=VARIABLE, help=f"variable with the token; default: {VARIABLE}"
    )
    parser.add_argument("--tls-ca", metavar="FILE", help="certificate authority of the server, in PEM form")


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    # Imported here: with the event loop, it is most of the program.
    import anyio

    from jumpseat.acp.bridge.connections import opener

    token = ctx.environ.get(args.token_env)
    if token is None and args.token_env != VARIABLE:
        raise ConfigError(f"--token-env: the variable {args.token_env!r} is not set")
    anyio.run(_run, opener(args.connect, token, args.tls_ca), token)
    return 0


async def _run(connect: Open, token: str | None) -> None:
    import anyio

    from jumpseat.acp.bridge.bridge import Bridge
    from jumpseat.rpc.transport import LINES, Wire, open_stdio, take_stdio

    stdio = take_stdio()
    bridge = Bridge(connect, token, _say)
    wire = Wire(bridge.take, lambda error: _say(error.message), bridge.end, LINES, on_end=bridge.end)
    bridge.attach(wire)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_stdio, wire, stdio)
        await bridge.run()
        with anyio.move_on_after(1):
            await wire.wait_until_sent()
        tasks.cancel_scope.cancel()


def _say(text: str) -> None:
    print(f"jumpseat acp: {text}", file=sys.stderr, flush=True)  # noqa: T201 - editors show this in their logs
