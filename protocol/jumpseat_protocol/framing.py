"""Split a byte stream into messages, without I/O; used by the server and the Python client.

The Copilot SDK protocol has a header before each message, like the Language Server Protocol. Since the Copilot SDKs
accept less, messages are sent with exactly one header, spelled ``Content-Length``; received messages may also have
``Content-Type``, in any case. Any other header line, such as those of HTTP, is an error. The Agent Client Protocol
has one message per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MAX_BODY_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 16 * 1024

_NAMES: Final = (b"content-length", b"content-type")
_LINE = re.compile(rb"(content-length|content-type)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
# Not the end of a longer name.
_LENGTH_NAME = re.compile(rb"(?<!-)content-length[ \t]*:", re.IGNORECASE)


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
    stream continues, because a client cannot reconnect on stdio. ``max_body_bytes`` may be changed at any time and
    applies from the next header on.
    """

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self.max_body_bytes = max_body_bytes
        self._buffer = bytearray()
        self._body_bytes: int | None = None
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | FramingError]:
        """Add a chunk, and return the bodies and framing errors that it completes, in order.

        Each item is decoded when the iterator is asked for it. The rest of the chunk stays for the next call.
        """
        self._buffer += data
        return self._decoded()

    def _decoded(self) -> Iterator[bytes | FramingError]:
        while True:
            if self._body_bytes is not None:
                if len(self._buffer) < self._body_bytes:
                    return
                body = bytes(self._buffer[: self._body_bytes])
                del self._buffer[: self._body_bytes]
                self._body_bytes = None
                yield body
            if self._skipping and not self._skip():
                return
            end = self._buffer.find(b"\r\n\r\n")
            header = bytes(self._buffer[: end if end >= 0 else MAX_HEADER_BYTES])
            foreign_end = _end_of_foreign_line(header, complete=end >= 0)
            if foreign_end is not None:
                # Its last byte stays, so that the rest of a longer name is not taken for a name.
                del self._buffer[: foreign_end - 1]
                yield self._reject("a header line is neither Content-Length nor Content-Type")
            elif end >= 0:
                length = self._length(header)
                # After an error, the bytes after the header may be its body, and are skipped.
                del self._buffer[: end + 4]
                if isinstance(length, str):
                    yield self._reject(length)
                else:
                    self._body_bytes = length
            elif len(self._buffer) > MAX_HEADER_BYTES:
                # Drop its name, too, or it would be found as the next header again and again.
                del self._buffer[:MAX_HEADER_BYTES]
                yield self._reject(f"header longer than {MAX_HEADER_BYTES} bytes")
            else:
                return

    def _length(self, header: bytes) -> int | str:
        """Return the length of the body, or a description of the header's error."""
        found = [line[2].strip() for line in _LINE.finditer(header) if line[1].lower() == b"content-length"]
        if len(found) != 1:
            return "header with two Content-Length lines" if found else "header without Content-Length"
        (text,) = found
        # Converting a very long number would take long.
        if not text.isdigit() or len(text) > 18:
            return f"Content-Length is not a number of bytes: {text[:32].decode('ascii', 'replace')!r}"
        length = int(text)
        if length == 0:
            return "Content-Length is 0, expected a message"
        if length > self.max_body_bytes:
            return f"message of {length} bytes is larger than the limit of {self.max_body_bytes}"
        return length

    def _reject(self, message: str) -> FramingError:
        self._skipping = True
        return FramingError(message)

    def _skip(self) -> bool:
        """Drop bytes up to the next possible header; returns ``False`` if there is none yet."""
        found = _LENGTH_NAME.search(self._buffer)
        if found is None:
            # A chunk may end within the name of a header.
            del self._buffer[: max(0, len(self._buffer) - len(b"content-length:") - 8)]
            return False
        del self._buffer[: found.start()]
        self._skipping = False
        return True


def _end_of_foreign_line(header: bytes, *, complete: bool) -> int | None:
    """Return where the first line ends that cannot be a header line of the protocol; ``None`` if there is none.

    The last line of an incomplete header may be the beginning of a valid one.
    """
    lines = (header if complete else header.removesuffix(b"\r")).split(b"\r\n")
    end = -2
    for number, line in enumerate(lines):
        end += 2 + len(line)
        is_partial = not complete and number == len(lines) - 1
        # An empty header is reported as one without Content-Length.
        if line and not (_begins_header_line(line) if is_partial else _LINE.fullmatch(line)):
            return end
    return None


def _begins_header_line(line: bytes) -> bool:
    name, colon, rest = line.partition(b":")
    name = name.lower()
    if colon:
        return name.rstrip(b" \t") in _NAMES and b"\n" not in rest
    return any(known.startswith(name) or name.rstrip(b" \t") == known for known in _NAMES)


def encode_line(body: bytes) -> bytes:
    """Return ``body``, JSON without line breaks, as a line."""
    return body + b"\n"


class LineDecoder:
    """Splits a byte stream into lines, wherever its chunks end. Empty lines and trailing CRs are dropped."""

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self.max_body_bytes = max_body_bytes
        self._pieces: list[bytes] = []
        self._size = 0
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
            if self._size > self.max_body_bytes:
                # Skip the rest of the line.
                self._pieces, self._size, self._skipping = [], 0, True
                out.append(FramingError(f"line longer than the limit of {self.max_body_bytes} bytes"))
        return out
