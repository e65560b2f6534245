"""JSON-RPC 2.0: error codes, the members of a message, and the messages in a stream of bytes, without I/O.

The Copilot SDK protocol has a header before each message, like the Language Server Protocol. Since the Copilot SDKs
accept less, messages are sent with exactly one header, spelled ``Content-Length``; received messages may also have
``Content-Type``, in any case. Any other header line, such as those of HTTP, is an error. The Agent Client Protocol
has one message per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic import ConfigDict

from jumpseat_protocol.lazy_models import LazyModel

RequestId: TypeAlias = int | str

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800

# Codes of this server, for logs and people: clients match messages, not codes.
UNSUPPORTED: Final = -32000
AUTHENTICATION_FAILED: Final = -32001
SESSION_NOT_FOUND: Final = -32002
INVALID_OPERATION: Final = -32003
PROVIDER_FAILED: Final = -32004
OVERLOADED: Final = -32005
SESSION_IN_USE: Final = -32006


class ErrorObject(LazyModel):
    """The ``error`` member of a response. The type of ``data`` depends on the code; it never holds a traceback."""

    model_config = ConfigDict(extra="ignore")

    code: int
    """The code of the error: one of JSON-RPC, or one of docs/errors.md."""
    message: str
    """What went wrong, for people."""
    data: Any = None
    """Details, whose form depends on the code."""


Version: TypeAlias = Literal["2.0"]


class Outline(Struct):
    """The id and the unread method of a message; both are unset if the message cannot be read."""

    id: RequestId | UnsetType = UNSET
    method: Raw | UnsetType = UNSET


def outline_of(body: bytes) -> Outline:
    """Read the envelope of a message that takes too long to read as a whole: no objects are made of the rest."""
    try:
        return msgspec.json.decode(body, type=Outline)
    except (msgspec.DecodeError, RecursionError):
        return Outline()


MAX_BODY_BYTES = 256 * 1024 * 1024
MAX_HEADER_BYTES = 16 * 1024

# The header that clients send nearly always.
_PLAIN = re.compile(rb"Content-Length: (\d{1,18})\r\n\r\n")
_LINE = re.compile(rb"(content-length|content-type)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
# Not the end of a longer name. The blanks are limited, so that few bytes are kept for a match that a chunk cuts.
_LENGTH_NAME = re.compile(rb"(?<!-)content-length[ \t]{0,8}:", re.IGNORECASE)
_KEPT_BYTES: Final = len(b"-content-length:") + 7


def _any_beginning(word: bytes, rest: bytes) -> bytes:
    """Return an expression for all beginnings of ``word``, and for ``rest`` after all of ``word``."""
    for index in reversed(range(len(word))):
        rest = re.escape(word[index : index + 1]) + rb"(?:" + rest + rb")?"
    return rest


_VALUE: Final = rb"[ \t]*(?::[^\r\n]*\r?)?"
_PART_OF_LINE: Final = _any_beginning(
    b"content-", rb"(?:" + _any_beginning(b"length", _VALUE) + rb"|" + _any_beginning(b"type", _VALUE) + rb")"
)
# The longest part of a text that may begin a header. An empty header is reported as one without Content-Length.
_BEGINNING: Final = re.compile(
    rb"(?:content-(?:length|type)[ \t]*:[^\r\n]*\r\n)*+(?:" + _PART_OF_LINE + rb"|\r\n?\r?)?", re.IGNORECASE
)


def frame_header(body_bytes: int) -> bytes:
    """Return the header of a body of that many bytes."""
    return b"Content-Length: %d\r\n\r\n" % body_bytes


def encode_frame(body: bytes) -> bytes:
    """Return ``body`` with its header."""
    return frame_header(len(body)) + body


class FramingError(Struct, frozen=True):
    """An invalid header, which the decoder has skipped to search for the next one."""

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

        Each item is decoded when the iterator reaches it. The rest of the chunk stays for the next call.
        """
        self._buffer += data
        return self._decoded()

    def _decoded(self) -> Iterator[bytes | FramingError]:
        while True:
            if self._body_bytes is not None:
                if len(self._buffer) < self._body_bytes:
                    return
                # A slice of the buffer itself would be one copy more of a large message.
                with memoryview(self._buffer) as buffered:
                    body = bytes(buffered[: self._body_bytes])
                del self._buffer[: self._body_bytes]
                self._body_bytes = None
                yield body
            if not self._buffer or (self._skipping and not self._skip()):
                return
            if (plain := _PLAIN.match(self._buffer)) and 0 < (length := int(plain[1])) <= self.max_body_bytes:
                del self._buffer[: plain.end()]
                self._body_bytes = length
                continue
            end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES)
            header = bytes(self._buffer[: end + 2 if end >= 0 else MAX_HEADER_BYTES])
            valid = _valid_bytes(header)
            if valid < len(header):
                yield self._reject(valid, "a header line is neither Content-Length nor Content-Type")
            elif end >= 0:
                length = self._length(header)
                if isinstance(length, str):
                    # The bytes after the header may be its body, and are skipped.
                    yield self._reject(end + 4, length)
                else:
                    del self._buffer[: end + 4]
                    self._body_bytes = length
            elif len(header) == MAX_HEADER_BYTES:
                yield self._reject(MAX_HEADER_BYTES, f"header longer than {MAX_HEADER_BYTES} bytes")
            else:
                return

    def _length(self, header: bytes) -> int | str:
        """Return the length of the body, or a description of the header's error."""
        lengths = [line[2].strip() for line in _LINE.finditer(header) if line[1].lower() == b"content-length"]
        if len(lengths) != 1:
            return "header with two Content-Length lines" if lengths else "header without Content-Length"
        (text,) = lengths
        # Converting a very long number would take long.
        if not text.isdigit() or len(text) > 18:
            return f"Content-Length is not a number of bytes: {text[:32].decode('ascii', 'replace')!r}"
        length = int(text)
        if length == 0:
            return "Content-Length is 0, expected a message"
        if length > self.max_body_bytes:
            return f"message of {length} bytes is larger than the limit of {self.max_body_bytes}"
        return length

    def _reject(self, at: int, message: str) -> FramingError:
        """Skip to the next header after ``at``. The byte before stays: it may be part of a longer name."""
        del self._buffer[: max(0, at - 1)]
        self._skipping = True
        return FramingError(message)

    def _skip(self) -> bool:
        """Drop bytes up to the next possible header; return ``False`` if there is none yet."""
        # The first byte belongs to the rejected header.
        found = _LENGTH_NAME.search(self._buffer, 1)
        if found is None:
            # A chunk may end within the name of a header.
            del self._buffer[: max(0, len(self._buffer) - _KEPT_BYTES)]
            return False
        del self._buffer[: found.start()]
        self._skipping = False
        return True


def _valid_bytes(header: bytes) -> int:
    """Return the number of bytes of a header before the first byte that no header of the protocol has there.

    The number depends on no later byte, so that the same bytes are skipped wherever a chunk ends.
    """
    found = _BEGINNING.match(header)
    return found.end() if found is not None else 0


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
            self._add(end, out)
            if not self._skipping and (body := b"".join(self._pieces).strip()):
                out.append(body)
            self._pieces, self._size, self._skipping = [], 0, False
        self._add(rest, out)
        return out

    def _add(self, piece: bytes, out: list[bytes | FramingError]) -> None:
        """Add a piece of the current line; an error about a line that is too long goes to ``out``."""
        if not piece or self._skipping:
            return
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self.max_body_bytes:
            # Skip the rest of the line.
            self._pieces, self._size, self._skipping = [], 0, True
            out.append(FramingError(f"line longer than the limit of {self.max_body_bytes} bytes"))
