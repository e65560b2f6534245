"""What ``jumpseat chat`` and ``jumpseat run`` call."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jumpseat_terminal.options import USAGE_ERROR, parse_chat, parse_run


def chat(argv: Sequence[str]) -> int:
    """Talk until the user leaves; returns the exit code."""
    settings = parse_chat(argv)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("error: chat needs a terminal; for pipes there is: jumpseat run -p '...'", file=sys.stderr)
        return USAGE_ERROR
    from jumpseat_terminal.chat import main

    return main(settings)


def run(argv: Sequence[str]) -> int:
    """Run one prompt; returns the exit code."""
    options = parse_run(argv)
    from jumpseat_terminal.run import main

    return main(options)
