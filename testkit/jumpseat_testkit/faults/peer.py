"""The small server of the peer on standard input and output, with one fault."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Final

from jumpseat_protocol.envelope import FramingError, encode_frame
from jumpseat_protocol.json_values import as_object
from jumpseat_testkit.faults.conversation import Said, Talk
from jumpseat_testkit.faults.table import FAULTS, Do, Fault, Raw
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.protocols import PROTOCOLS, Framing, ProtocolName
from jumpseat_testkit.target import DECODERS, encode_message

_CHUNK: Final = 65536
_STAYS_S: Final = 30.0
"""The time that a peer stays which should exit: it must not outlive its test for long."""


def serve_fault(kind: str, protocol: ProtocolName) -> int:
    """Serve one client on standard input and output, and return the exit code. ``none`` is no fault.

    Raises:
        ScriptError: there is no such fault, or not in this protocol.
    """
    return Peer(protocol, find_fault(kind, protocol)).serve()


def find_fault(kind: str, protocol: ProtocolName) -> Fault | None:
    """Return a fault; ``None`` for ``none``.

    Raises:
        ScriptError: there is no such fault, or not in this protocol.
    """
    if kind == "none":
        return None
    if kind not in FAULTS:
        raise ScriptError(f"unknown fault {kind!r}: docs/script-faults.md lists them")
    if protocol not in FAULTS[kind].protocols:
        raise ScriptError(f"the fault {kind!r} does not exist in the protocol {protocol!r}")
    return FAULTS[kind]


class _ExitError(Exception):
    """The peer exits with a code."""


class Peer:
    """The server with a fault; it reads and writes with plain system calls, and waits where it is told to."""

    def __init__(self, protocol: ProtocolName, fault: Fault | None) -> None:
        self._framing: Framing = PROTOCOLS[protocol].framing
        self._talk = Talk(protocol)
        self._fault = fault
        self._held: list[Any] = []
        self._unsent = b""
        self._is_silent = False
        self._stays = False

    def serve(self) -> int:
        """Answer the client until it closes its output, and return the exit code."""
        decoder = DECODERS[self._framing]()
        try:
            while data := os.read(0, _CHUNK):
                for body in decoder.feed(data):
                    if not isinstance(body, FramingError):
                        for said in self._talk.hear(as_object(json.loads(body))):
                            self._say(said)
        except _ExitError as error:
            return int(error.args[0])
        except (BrokenPipeError, ValueError):
            # The client has gone, or sends no JSON.
            return 1
        if self._stays:
            time.sleep(_STAYS_S)
        return 0

    def _say(self, said: Said) -> None:
        if self._fault is None or said.part != self._fault.part:
            self._send(said.message)
        else:
            change, self._fault = self._fault.change, None
            for piece in change(said.message):
                self._send(piece)
        if said.part == "end" or (
            said.part == "answer" and as_object(said.message.get("result")).get("stopReason")
        ):
            held, self._held = self._held, []
            for message in held:
                self._send(message)

    def _send(self, piece: Any) -> None:
        match piece:
            case Raw():
                self._write(self._frame(piece.data) if piece.is_body else piece.data)
            case Do():
                self._do(piece)
            case _:
                self._write(encode_message(piece, self._framing))

    def _frame(self, body: bytes) -> bytes:
        return encode_frame(body) if self._framing == "content-length" else body + b"\n"

    def _do(self, thing: Do) -> None:
        match thing.what:
            case "exit":
                raise _ExitError(int(thing.number))
            case "wait":
                time.sleep(thing.number)
            case "hold":
                self._held.append(thing.message)
            case "silent":
                self._is_silent = True
            case "close":
                self._is_silent = True
                os.close(1)
            case "stay":
                self._stays = True
            case "joined":
                self._unsent = encode_message(thing.message, self._framing)
            case "pieces":
                for byte in encode_message(thing.message, self._framing):
                    self._write(bytes([byte]))
            case "length":
                body = encode_message(thing.message, "messages")
                self._write(b"Content-Length: %d\r\n\r\n" % (len(body) + int(thing.number)) + body)
            case _:
                raise ValueError(f"unknown thing to do {thing.what!r}")

    def _write(self, data: bytes) -> None:
        if self._is_silent:
            return
        rest = memoryview(self._unsent + data)
        self._unsent = b""
        while rest:
            rest = rest[os.write(1, rest) :]
