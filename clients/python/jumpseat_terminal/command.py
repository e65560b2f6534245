"""The entry points of ``jumpseat chat``, ``jumpseat run`` and ``jumpseat setup``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial

from jumpseat_terminal.options import USAGE_ERROR, parse_chat, parse_run, parse_setup
from jumpseat_terminal.streams import open_missing_streams


def chat(argv: Sequence[str]) -> int:
    """Run a chat until the user leaves, and return the exit code."""
    settings = parse_chat(argv)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print("error: chat needs a terminal; in scripts and pipes, use: jumpseat run '...'", file=sys.stderr)
        return USAGE_ERROR
    # Keys that are typed from now on wait for the screen, as they are.
    with _unread_keys():
        from jumpseat_terminal.chat import main

        return main(settings)


@contextmanager
def _unread_keys() -> Generator[None]:
    """Have the terminal neither show keys nor turn an enter into a line feed, until the screen reads them."""
    if sys.platform == "win32":
        # Keys are kept as they are.
        yield
        return
    import termios

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    mode = termios.tcgetattr(terminal)
    mode[0] &= ~termios.ICRNL
    mode[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(terminal, termios.TCSANOW, mode)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def run(argv: Sequence[str]) -> int:
    """Run one prompt and return the exit code."""
    open_missing_streams()
    options = parse_run(argv)
    # Until there is a turn to cancel, a signal ends the program at once, without a message.
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, partial(_leave, code))
    from jumpseat_terminal.run import main

    return main(options)


def setup(argv: Sequence[str]) -> int:
    """Set up a provider of models, and return the exit code."""
    options = parse_setup(argv)
    asks = options.provider is None and not options.list and options.remove_key is None
    if asks and not (sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"):
        print(
            "error: setup asks questions in a terminal; in scripts: jumpseat setup --provider NAME --key-file -",
            file=sys.stderr,
        )
        return USAGE_ERROR
    from jumpseat_terminal.setup import main

    return main(options)


def _leave(code: int, _number: int, _frame: object) -> None:
    os._exit(code)
