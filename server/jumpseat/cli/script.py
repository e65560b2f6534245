"""``jumpseat script``: the command of :mod:`jumpseat_testkit.command`, and scripts of stored sessions."""

from __future__ import annotations

import argparse

from jumpseat.cli.commands import USAGE_ERROR, CommandContext, CommandParser, print_error
from jumpseat.errors import InvalidRequestError
from jumpseat_testkit import command
from jumpseat_testkit.patterns import ScriptError

DESCRIPTION = command.DESCRIPTION


def add_arguments(parser: CommandParser) -> None:
    command.add_arguments(parser)
    parser.add_argument(
        "--session", metavar="ID", help="with --record: write a script of a stored session instead (or 'last')"
    )


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    try:
        if args.session is not None:
            return _record_stored(ctx, args)
        return command.run(args)
    except ScriptError as error:
        print_error(str(error))
        return USAGE_ERROR


def _record_stored(ctx: CommandContext, args: argparse.Namespace) -> int:
    from jumpseat.cli.script_recording import record_stored

    if args.files or args.record is None:
        raise InvalidRequestError("expected --record FILE --session ID, without other files")
    return record_stored(ctx.home, args.session, args.record, everything=args.noise)
