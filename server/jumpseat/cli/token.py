"""``jumpseat token``: make, list and revoke the connection tokens of a shared server."""

from __future__ import annotations

import argparse
from typing import Final

from jumpseat.cli.commands import CommandContext, CommandParser, print_json, print_text
from jumpseat.errors import InvalidRequestError
from jumpseat.store.user.connection_tokens import ConnectionTokenFile

DESCRIPTION: Final = "Manage the connection tokens of a shared server. Each one sees only its own sessions."


def add_arguments(parser: CommandParser) -> None:
    add = parser.add_command("add", "make a token and print it")
    add.add_argument("name", help="name of the token; its sessions are stored with the name")
    add.add_argument(
        "--all", action="store_true", help="see the sessions of all tokens, and change settings of the server"
    )
    parser.add_command("list", "list the names of the tokens").add_json()
    revoke = parser.add_command("revoke", "revoke a token; its sessions stay")
    revoke.add_argument("name", help="name of the token")


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    tokens = ConnectionTokenFile(ctx.home)
    if args.command == "list":
        return _list(tokens, as_json=args.json)
    if args.command == "add":
        # The token alone, for scripts; it cannot be shown again.
        print_text(tokens.add(args.name, all_sessions=args.all))
    elif tokens.revoke(args.name):
        print_text(f"Revoked {args.name}.")
    else:
        raise InvalidRequestError(f"there is no token {args.name!r}")
    return 0


def _list(tokens: ConnectionTokenFile, *, as_json: bool) -> int:
    found = tokens.all()
    if as_json:
        rows = [{"name": token.name, "all": token.all, "createdAt": token.created_at} for token in found]
        print_json(rows)
        return 0
    if not found:
        print_text("No tokens. 'jumpseat token add NAME' makes one.")
    width = max((len(token.name) for token in found), default=0)
    for token in found:
        print_text(f"{token.name:<{width}}  {'all sessions' if token.all else 'own sessions'}  {token.created_at}")
    return 0
