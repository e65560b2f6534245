"""``jumpseat schema``: print the protocol as JSON Schema."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import Final

from jumpseat.cli.commands import CommandContext, CommandParser
from jumpseat_protocol.schema import encoded

DESCRIPTION: Final = "Print the protocol as JSON Schema (2020-12)."


def add_arguments(parser: CommandParser) -> None:
    del parser


def run(ctx: CommandContext, args: argparse.Namespace) -> int:
    del ctx, args
    # The reader may close the pipe early, as `head` does.
    with suppress(BrokenPipeError):
        sys.stdout.buffer.write(encoded())
    return 0
