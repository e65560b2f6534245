"""How messages are cut out of a stream of bytes, as pure functions: no I/O, used by server and Python client.

The Copilot SDK protocol has a header in front of each message: that of the Language Server Protocol, narrowed by
what the Copilot SDKs read, exactly one header, spelled ``Content-Length``, when sending; any header in any case
when receiving. The Agent Client Protocol has one message per line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BODY_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 16 * 1024

_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_NAME = re.compile(rb"content-length[ \t]*:", re.IGNORECASE)


def encode_frame(body: bytes) -> bytes:
    """Put the one header in front of ``body``."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@dataclass(frozen=True, slots=True)
class FramingError:
    """A header that cannot be understood. The decoder has skipped it and looks for the next one."""

    message: str


class FrameDecoder:
    """Cuts a byte stream into message bodies, wherever the chunks end.

    A broken header costs what follows it up to the next ``Content-Length``, and nothing more: the peer is told
    once and the stream goes on, because on stdio there is no second connection to make.
    """

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._buffer = bytearray()
        self._max_body_bytes = max_body_bytes
        self._body_bytes: int | None = None
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | FramingError]:
        """Take the next chunk; return the bodies (and framing errors) that it completes, in order."""
        self._buffer += data
        out: list[bytes | FramingError] = []
        while True:
            if self._body_bytes is not None:
                if len(self._buffer) < self._body_bytes:
                    return out
                out.append(bytes(self._buffer[: self._body_bytes]))
                del self._buffer[: self._body_bytes]
                self._body_bytes = None
            if self._skipping and not self._skip():
                return out
            header_end = self._buffer.find(b"\r\n\r\n")
            if header_end < 0:
                if len(self._buffer) > MAX_HEADER_BYTES:
                    # Its name goes too, or it would be taken for the next header over and over.
                    del self._buffer[:MAX_HEADER_BYTES]
                    out.append(self._reject(f"header longer than {MAX_HEADER_BYTES} bytes"))
                    continue
                return out
            length = self._length(bytes(self._buffer[:header_end]))
            if isinstance(length, str):
                # The header goes; what follows it may be its body and is skipped.
                del self._buffer[: header_end + 4]
                out.append(self._reject(length))
                continue
            del self._buffer[: header_end + 4]
            self._body_bytes = length

    def _length(self, header: bytes) -> int | str:
        """The body's length, or what is wrong with the header."""
        found = _LENGTH.search(header)
        if found is None:
            return "header without Content-Length"
        text = found.group(1).strip()
        # An absurdly long number is not worth converting.
        if not text.isdigit() or len(text) > 18:
            return f"Content-Length is not a number of bytes: {text[:32].decode('ascii', 'replace')!r}"
        length = int(text)
        if length == 0:
            return "Content-Length is 0, expected a message"
        if length > self._max_body_bytes:
            return f"message of {length} bytes is larger than the limit of {self._max_body_bytes}"
        return length

    def _reject(self, message: str) -> FramingError:
        self._skipping = True
        return FramingError(message)

    def _skip(self) -> bool:
        """Drop bytes up to the next thing that looks like a header; ``False`` where none is in sight yet."""
        found = _NAME.search(self._buffer)
        if found is None:
            # A header name may be cut in two by the chunk's end.
            del self._buffer[: max(0, len(self._buffer) - len(b"content-length:") - 8)]
            return False
        del self._buffer[: found.start()]
        self._skipping = False
        return True


def encode_line(body: bytes) -> bytes:
    """Make a line of ``body``, which is JSON without line breaks between its parts."""
    return body + b"\n"


class LineDecoder:
    """Cuts a byte stream into lines, wherever the chunks end. Empty lines are nothing; a CR at the end goes."""

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._max_body_bytes = max_body_bytes
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | FramingError]:
        """Take the next chunk; return the lines (and framing errors) that it completes, in order."""
        out: list[bytes | FramingError] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            if not self._skipping and (body := b"".join([*self._pieces, end]).strip()):
                out.append(body)
            self._pieces, self._size, self._skipping = [], 0, False
        if rest and not self._skipping:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > self._max_body_bytes:
                # What is left of the line is of no use.
                self._pieces, self._size, self._skipping = [], 0, True
                out.append(FramingError(f"line longer than the limit of {self._max_body_bytes} bytes"))
        return out
