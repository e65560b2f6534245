"""The streams of ``jumpseat run``: stdin, stdout for the answer, stderr for what is being done and for how long."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections.abc import Callable
from typing import Any, Final
from unicodedata import east_asian_width

from jumpseat_terminal.safe import one_line, safe

INPUT_BYTES: Final = 8 * 1024 * 1024
"""More than this is no prompt."""
PATIENCE_S: Final = 3.0
_OF_A_PIPE: Final = (stat.S_ISFIFO, stat.S_ISREG, stat.S_ISSOCK)


class ReaderGone(Exception):  # noqa: N818 - no error of ours
    """Nobody reads stdout any more."""


class OutputError(Exception):
    """stdout takes no more; the text says why."""


class InputError(Exception):
    """What stands on stdin cannot be a prompt; the text says why."""


def have_streams() -> None:
    """Put the null device where a stream is closed: what is opened next would take its number and its text."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where it was closed
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def read_input() -> str:
    """All of stdin.

    Raises:
        InputError: it is too much.
    """
    return _read(patient=True)


def piped_input() -> str:
    """What is piped to the program beside its prompt; empty where stdin is a terminal, or nothing at all.

    Raises:
        InputError: it is too much.
    """
    mode = os.fstat(0).st_mode
    if not any(is_kind(mode) for is_kind in _OF_A_PIPE):
        return ""
    # A shell closes its pipes; programs that start others with a socket there often never do.
    return _read(patient=not stat.S_ISSOCK(mode))


def _read(*, patient: bool) -> str:
    data = bytearray()
    waited = False
    while True:
        if not data and not waited and not select.select([0], [], [], PATIENCE_S)[0]:
            if not patient:
                to_stderr("warning: nothing came on stdin, which is open: going on without it\n")
                return ""
            to_stderr("reading stdin until it ends (</dev/null where there is nothing to read)\n")
            waited = True
        piece = os.read(0, 65536)
        data += piece
        if len(data) > INPUT_BYTES:
            raise InputError(f"stdin holds more than {INPUT_BYTES >> 20} MiB")
        if not piece:
            return data.decode("utf-8", "replace")


class Output:
    """stdout. On a terminal, text is made safe.

    Raises:
        ReaderGone: nobody takes it.
        OutputError: it cannot be written.
    """

    def __init__(self) -> None:
        self._open = sys.stdout is not None  # pyright: ignore[reportUnnecessaryComparison] - see have_streams
        self._clean: Callable[[str], str] = safe if self._open and sys.stdout.isatty() else str
        if self._open and sys.platform != "win32":
            # Whoever has set it up otherwise would lose what does not fit into the pipe.
            os.set_blocking(sys.stdout.fileno(), True)
        self.wrote_in_message = False
        self._between = ""

    def write(self, text: str) -> None:
        data = self._clean(self._between + text).encode("utf-8", "replace")
        self._between = ""
        self.wrote_in_message = True
        if not self._open:
            raise ReaderGone
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError as error:
            # The interpreter would complain once more when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                raise ReaderGone from None
            raise OutputError(f"cannot write the answer: {error.strerror or error}") from None

    def end_message(self) -> None:
        """End the line of a message; the next one begins behind an empty line."""
        if self.wrote_in_message:
            self.write("\n")
            self._between = "\n"
        self.wrote_in_message = False

    def close(self) -> None:
        self._between = ""


class Progress:
    """stderr: a line that says how long the work has taken, where a person watches, and what is left to read."""

    def __init__(self) -> None:
        self._watched = sys.stderr.isatty()
        self._moving = self._watched and os.environ.get("TERM", "dumb") != "dumb"
        self._beside_answer = sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
        self._doing = "waiting for the model"
        self._since = time.monotonic()
        self._drawn = False

    def begin(self, tool: str, arguments: Any) -> None:
        self._doing, self._since = f"{one_line(tool)} {_short(arguments)}".strip(), time.monotonic()

    def end(self, tool: str, success: bool) -> None:
        if self._watched:
            self.say(f"{'ok' if success else 'failed'}: {self._doing if self._doing.startswith(tool) else tool}")
        self._doing, self._since = "waiting for the model", time.monotonic()

    def tick(self, *, in_a_line: bool) -> None:
        """Draw it anew; not where a line of the answer stands unfinished on the same screen."""
        if self._moving and not (in_a_line and self._beside_answer):
            self._drawn = True
            took = f" ... {time.monotonic() - self._since:.0f} s"
            room = min(os.get_terminal_size(sys.stderr.fileno()).columns or 80, 80) - len(took) - 1
            to_stderr(f"\r\x1b[K{_cut(self._doing, room)}{took}")

    def clear(self) -> None:
        if self._drawn:
            self._drawn = False
            to_stderr("\r\x1b[K")

    def say(self, text: str) -> None:
        self.clear()
        to_stderr(text + "\n")


def to_stderr(text: str) -> None:
    try:
        sys.stderr.buffer.write(text.encode("utf-8", "replace"))
        sys.stderr.buffer.flush()
    except OSError:
        # What nobody reads is not worth an end of the run.
        return


def _cut(text: str, cells: int) -> str:
    """So much of it as fits; a line that wraps could not be taken back."""
    used = 0
    for at, char in enumerate(text):
        used += 2 if east_asian_width(char) in "WF" else 1
        if used > cells:
            return text[:at]
    return text


def _short(arguments: Any) -> str:
    if not isinstance(arguments, dict):
        return ""
    first = next((value for value in arguments.values() if isinstance(value, str)), "")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return one_line(first)[:80]
