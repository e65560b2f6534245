"""The streams of ``jumpseat run``: stdin, stdout for the answer, stderr for progress and errors."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections.abc import Callable
from typing import Any, Final
from unicodedata import east_asian_width

from jumpseat_protocol.safe import one_line, safe
from jumpseat_transcript.calls import main_argument

INPUT_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of the input."""
STDIN_WAIT_S: Final = 3.0
"""Seconds to wait for the first input before a warning."""
_INPUT_KINDS: Final = (stat.S_ISFIFO, stat.S_ISREG, stat.S_ISSOCK)


class ReaderGone(Exception):  # noqa: N818 - no error of ours
    """The reader of stdout has closed it."""


class OutputError(Exception):
    """stdout cannot be written to; the message gives the reason."""


class InputError(Exception):
    """The content of stdin cannot be a prompt; the message says why."""


def open_missing_streams() -> None:
    """Open the null device for each closed standard stream, or the next file opened would take its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - it is None if fd 2 was closed
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def read_input() -> str:
    """Read all of stdin.

    Raises:
        InputError: there is more than :data:`INPUT_BYTES`.
    """
    return _read(wait_forever=True)


def piped_input() -> str:
    """Read the input piped to the program along with its prompt; empty if stdin is no pipe, file or socket.

    Raises:
        InputError: there is more than :data:`INPUT_BYTES`.
    """
    mode = os.fstat(0).st_mode
    if not any(is_kind(mode) for is_kind in _INPUT_KINDS):
        return ""
    # Shells close their pipes. Programs that start others with a socket as stdin often never close it.
    return _read(wait_forever=not stat.S_ISSOCK(mode))


def _read(*, wait_forever: bool) -> str:
    data = bytearray()
    waited = False
    while True:
        if not data and not waited and not select.select([0], [], [], STDIN_WAIT_S)[0]:
            if not wait_forever:
                to_stderr("warning: no input on stdin, which is open: continuing without it\n")
                return ""
            to_stderr("reading stdin until it ends (use </dev/null if there is no input)\n")
            waited = True
        piece = os.read(0, 65536)
        data += piece
        if len(data) > INPUT_BYTES:
            raise InputError(f"stdin has more than {INPUT_BYTES >> 20} MiB")
        if not piece:
            return data.decode("utf-8", "replace")


class Output:
    """Writes to stdout; text for a terminal is made safe.

    Raises:
        ReaderGone: the reader has closed stdout.
        OutputError: stdout cannot be written.
    """

    def __init__(self) -> None:
        self._open = sys.stdout is not None  # pyright: ignore[reportUnnecessaryComparison] - None if closed
        self._clean: Callable[[str], str] = safe if self._open and sys.stdout.isatty() else str
        if self._open and sys.platform != "win32":
            # With a non-blocking pipe, text that does not fit would be lost.
            os.set_blocking(sys.stdout.fileno(), True)
        self.in_message = False
        self._separator = ""

    def write(self, text: str) -> None:
        data = self._clean(self._separator + text).encode("utf-8", "replace")
        self._separator = ""
        self.in_message = True
        if not self._open:
            raise ReaderGone
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError as error:
            # Or the interpreter would report the error again when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError | ConnectionResetError):
                raise ReaderGone from None
            raise OutputError(f"cannot write the answer: {error.strerror or error}") from None

    def end_message(self) -> None:
        """End the line of a message; an empty line precedes the next message."""
        if self.in_message:
            self.write("\n")
            self._separator = "\n"
        self.in_message = False

    def close(self) -> None:
        self._separator = ""


class Progress:
    """Writes to stderr: messages and, on a terminal, a line with the current activity and its duration."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._can_redraw = self._is_terminal and os.environ.get("TERM", "dumb") != "dumb"
        self._shares_terminal = sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
        self._activity = "waiting for the model"
        self._since = time.monotonic()
        self._drawn = False

    def start_call(self, tool: str, arguments: Any) -> None:
        self._activity, self._since = (
            f"{one_line(tool)} {one_line(main_argument(arguments))[:80]}".strip(),
            time.monotonic(),
        )

    def finish_call(self, tool: str, success: bool) -> None:
        if self._is_terminal:
            self.write_line(
                f"{'ok' if success else 'failed'}: {self._activity if self._activity.startswith(tool) else tool}"
            )
        self._activity, self._since = "waiting for the model", time.monotonic()

    def redraw(self, *, in_message: bool) -> None:
        """Redraw the line, unless the same terminal shows an unfinished line of the answer."""
        if self._can_redraw and not (in_message and self._shares_terminal):
            self._drawn = True
            took = f" ... {time.monotonic() - self._since:.0f} s"
            room = min(os.get_terminal_size(sys.stderr.fileno()).columns or 80, 80) - len(took) - 1
            to_stderr(f"\r\x1b[K{_truncate(self._activity, room)}{took}")

    def clear(self) -> None:
        if self._drawn:
            self._drawn = False
            to_stderr("\r\x1b[K")

    def write_line(self, text: str) -> None:
        self.clear()
        to_stderr(text + "\n")


def to_stderr(text: str) -> None:
    try:
        sys.stderr.buffer.write(text.encode("utf-8", "replace"))
        sys.stderr.buffer.flush()
    except OSError:
        # An unreadable stderr is no reason to end the run.
        return


def _truncate(text: str, cells: int) -> str:
    """Truncate ``text`` to ``cells``; a line that wraps could not be erased."""
    used = 0
    for at, char in enumerate(text):
        used += 2 if east_asian_width(char) in "WF" else 1
        if used > cells:
            return text[:at]
    return text
