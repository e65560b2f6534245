"""``jumpseat token``: make, list and revoke the connection tokens of a shared server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from jumpseat.config import home_folder
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.store.connection_tokens import ConnectionTokenFile

FAILED: Final = 1
USAGE_ERROR: Final = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        _print_error(message)
        sys.exit(USAGE_ERROR)


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the command in ``argv``; return the exit code."""
    args = _parse(argv)
    tokens = ConnectionTokenFile(home_folder({name: value for name, value in environ.items() if value}))
    try:
        match args.command:
            case "add":
                # The token alone, for scripts; it cannot be shown again.
                _print(tokens.add(args.name, all_sessions=args.all))
                return 0
            case "revoke":
                if tokens.revoke(args.name):
                    _print(f"Revoked {args.name}.")
                    return 0
                _print_error(f"there is no token {args.name!r}")
                return USAGE_ERROR
            case _:
                return _list(tokens, as_json=args.json)
    except InvalidRequestError as error:
        _print_error(str(error))
        return USAGE_ERROR
    except JumpseatError as error:
        _print_error(str(error))
        return FAILED


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
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
        _print(json.dumps(rows, indent=2))
        return 0
    if not found:
        _print("No tokens. 'jumpseat token add NAME' makes one.")
    width = max((len(token.name) for token in found), default=0)
    for token in found:
        _print(f"{token.name:<{width}}  {'all sessions' if token.all else 'own sessions'}  {token.created_at}")
    return 0


def _print(text: str) -> None:
    print(text)  # noqa: T201 - this is a command for people


def _print_error(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)  # noqa: T201 - this is a command for people
