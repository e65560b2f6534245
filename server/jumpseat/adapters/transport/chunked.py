"""Decode the chunked transfer coding of HTTP/1.1 (RFC 9112, section 7.1), in which answers are streamed.

All chunks that arrived together become one piece: providers send each event as a chunk of its own, and h11 takes
longer to return a chunk than the decoders take for the event in it.
"""

from __future__ import annotations

import re
from typing import Final

from jumpseat.adapters.transport.errors import RemoteProtocolError

LONGEST_LINE: Final = 16 * 1024
"""Limit on the bytes of a line before a chunk, and of all the trailers."""

_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;.*)?[ \t]*")


class ChunkedDecoder:
    """The body of one response. ``ended`` is set after its last chunk, ``rest`` has what follows."""

    def __init__(self) -> None:
        self.ended = False
        self.rest = b""
        # The bytes of the open chunk that have not arrived, its line end included; negative between chunks.
        self._missing = -1
        self._in_trailers = False
        self._trailer_bytes = 0

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes and return the content in them.

        Raises:
            RemoteProtocolError: the bytes are no chunks.
        """
        data = self.rest + data if self.rest else data
        at, end = 0, len(data)
        pieces: list[bytes] = []
        while not self.ended:
            if self._missing > 2:
                piece = data[at : at + self._missing - 2]
                if not piece:
                    break
                pieces.append(piece)
                at += len(piece)
                self._missing -= len(piece)
            elif self._missing == 2:
                if end - at < 2:
                    break
                if data[at : at + 2] != b"\r\n":
                    raise RemoteProtocolError("a chunk is longer than its size")
                at += 2
                self._missing = -1
            else:
                line_end = data.find(b"\r\n", at)
                if line_end < 0:
                    if end - at > LONGEST_LINE:
                        raise RemoteProtocolError("the line before a chunk is too long")
                    break
                line, at = data[at:line_end], line_end + 2
                if self._in_trailers:
                    self._take_trailer(line)
                else:
                    self._begin(line)
        self.rest = data[at:]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _begin(self, line: bytes) -> None:
        match = _SIZE.fullmatch(line)
        if match is None:
            raise RemoteProtocolError("the size of a chunk is not a hexadecimal number")
        size = int(match[1], 16)
        if size:
            self._missing = size + 2
        else:
            self._in_trailers = True

    def _take_trailer(self, line: bytes) -> None:
        self._trailer_bytes += len(line)
        if self._trailer_bytes > LONGEST_LINE:
            raise RemoteProtocolError("the trailers of a response are too long")
        self.ended = not line
