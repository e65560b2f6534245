"""``jumpseat token``: make, list and revoke the connection tokens of a shared server."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from jumpseat.cli.output import FAILED, USAGE_ERROR, CommandParser, print_error, print_json, print_text
from jumpseat.config import home_folder
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.store.user.connection_tokens import ConnectionTokenFile


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command in ``argv``; return the exit code."""
    args = _parse(argv)
    tokens = ConnectionTokenFile(home_folder({name: value for name, value in environ.items() if value}))
    try:
        match args.command:
            case "add":
                # The token alone, for scripts; it cannot be shown again.
                print_text(tokens.add(args.name, all_sessions=args.all))
                return 0
            case "revoke":
                if tokens.revoke(args.name):
                    print_text(f"Revoked {args.name}.")
                    return 0
                print_error(f"there is no token {args.name!r}")
                return USAGE_ERROR
            case _:
                return _list(tokens, as_json=args.json)
    except InvalidRequestError as error:
        print_error(str(error))
        return USAGE_ERROR
    except JumpseatError as error:
        print_error(str(error))
        return FAILED


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser(
        prog="jumpseat token",
        allow_abbrev=False,
        description="Manage the connection tokens of a shared server. Each one sees only its own sessions.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="add | list | revoke")
    add = commands.add_parser("add", help="make a token and print it", allow_abbrev=False)
    add.add_argument("name", help="name of the token; its sessions are stored with the name")
    add.add_argument(
        "--all", action="store_true", help="see the sessions of all tokens, and change settings of the server"
    )
    listing = commands.add_parser("list", help="list the names of the tokens", allow_abbrev=False)
    listing.add_argument("--json", action="store_true", help="print JSON")
    revoke = commands.add_parser("revoke", help="revoke a token; its sessions stay", allow_abbrev=False)
    revoke.add_argument("name", help="name of the token")
    return parser.parse_args(argv)


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
