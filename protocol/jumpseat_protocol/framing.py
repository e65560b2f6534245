"""Split a byte stream into messages, without I/O; used by the server and the Python client.

The Copilot SDK protocol has a header before each message, like the Language Server Protocol. Since the Copilot SDKs
accept less, messages are sent with exactly one header, spelled ``Content-Length``; received messages may have any
headers, in any case. The Agent Client Protocol has one message per line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BODY_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 16 * 1024

_LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)
_NAME = re.compile(rb"content-length[ \t]*:", re.IGNORECASE)


def encode_frame(body: bytes) -> bytes:
    """Return ``body`` with its header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


@dataclass(frozen=True, slots=True)
class FramingError:
    """An invalid header. The decoder has skipped it and searches for the next one."""

    message: str


class FrameDecoder:
    """Splits a byte stream into message bodies, wherever its chunks end.

    After an invalid header, everything up to the next ``Content-Length`` is skipped, and one error is reported. The
    stream continues, because a client cannot reconnect on stdio.
    """

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._buffer = bytearray()
        self._max_body_bytes = max_body_bytes
        self._body_bytes: int | None = None
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | FramingError]:
        """Add a chunk, and return the bodies and framing errors that it completes, in order."""
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
                    # Drop its name, too, or it would be found as the next header again and again.
                    del self._buffer[:MAX_HEADER_BYTES]
                    out.append(self._reject(f"header longer than {MAX_HEADER_BYTES} bytes"))
                    continue
                return out
            length = self._length(bytes(self._buffer[:header_end]))
            if isinstance(length, str):
                # Drop the header. The bytes after it may be its body, and are skipped.
                del self._buffer[: header_end + 4]
                out.append(self._reject(length))
                continue
            del self._buffer[: header_end + 4]
            self._body_bytes = length

    def _length(self, header: bytes) -> int | str:
        """Return the length of the body, or a description of the header's error."""
        found = _LENGTH.search(header)
        if found is None:
            return "header without Content-Length"
        text = found.group(1).strip()
        # Converting a very long number would take long.
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
        """Drop bytes up to the next possible header; returns ``False`` if there is none yet."""
        found = _NAME.search(self._buffer)
        if found is None:
            # A chunk may end within the name of a header.
            del self._buffer[: max(0, len(self._buffer) - len(b"content-length:") - 8)]
            return False
        del self._buffer[: found.start()]
        self._skipping = False
        return True


def encode_line(body: bytes) -> bytes:
    """Return ``body``, JSON without line breaks, as a line."""
    return body + b"\n"


class LineDecoder:
    """Splits a byte stream into lines, wherever its chunks end. Empty lines and trailing CRs are dropped."""

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._max_body_bytes = max_body_bytes
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | FramingError]:
        """Add a chunk, and return the lines and framing errors that it completes, in order."""
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
                # Skip the rest of the line.
                self._pieces, self._size, self._skipping = [], 0, True
                out.append(FramingError(f"line longer than the limit of {self._max_body_bytes} bytes"))
        return out
