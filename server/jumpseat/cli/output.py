"""Arguments, output and exit codes that the commands of ``jumpseat`` share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

FAILED: Final = 1
USAGE_ERROR: Final = 2
NOT_CONFIGURED: Final = 3


class CommandParser(argparse.ArgumentParser):
    """A parser that reports an error in one line, without the usage, and exits with :data:`USAGE_ERROR`."""

    def error(self, message: str) -> NoReturn:
        print_error(message)
        sys.exit(USAGE_ERROR)

    def parse_options(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments; name the first one that is unknown."""
        known, unknown = self.parse_known_args(argv)
        if unknown:
            self.error(f"unknown option {unknown[0]!r}")
        return known

    def add_json(self) -> None:
        self.add_argument("--json", action="store_true", help="print JSON")


def port_number(text: str) -> int:
    """Parse the number of a TCP port, as the type of an argument."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 65535, got {text!r}")
    return int(text)


def print_text(text: str) -> None:
    """Print a result to stdout at once; a command may wait for its user afterwards.

    If the reader is gone, as in ``jumpseat models | head``, the rest of the output goes nowhere.
    """
    try:
        print(text, flush=True)  # noqa: T201 - the output of a command
    except BrokenPipeError:
        # What is still buffered would fail again when the process exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(value: Any) -> None:
    """Print a result to stdout as JSON."""
    # Imported here, because a server parses its arguments and prints no JSON.
    import json

    print_text(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows with aligned columns to stdout."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print_text("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def print_error(text: str) -> None:
    """Print an error to stderr, in one line for SDKs and people."""
    print(f"error: {text}", file=sys.stderr)  # noqa: T201 - the output of a command
