"""Try an agent against clients with faults: each plays a script, and does one thing wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from jumpseat_protocol.envelope import encode_frame
from jumpseat_protocol.json_values import as_object, as_text
from jumpseat_testkit.faults.clients import CLIENT_FAULTS, ClientFault, Do, Part
from jumpseat_testkit.faults.table import Raw
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.play import play
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.protocols import PROTOCOLS, ProtocolName
from jumpseat_testkit.steps import Script
from jumpseat_testkit.target import EXIT_S, Target, encode_message

Fate: TypeAlias = Literal["goes on", "ends", "hang", "crash", "broken rule"]

_MOMENT_S: Final = 0.3
"""The time in which a client reads, in the middle of a turn."""
_PARTS: Final[Mapping[str, Part]] = {
    "session.create": "session",
    "session/new": "session",
    "createSession": "session",
    "session.send": "prompt",
    "session/prompt": "prompt",
    "chat/turnStarted": "prompt",
    "session.permissions.handlePendingPermissionRequest": "answer",
    "chat/toolCallConfirmed": "answer",
}


class AgentFinding(Struct):
    """How an agent has taken a fault of its client. ``note``: what was wrong with it, for people."""

    kind: str
    how: Fate
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.how == "goes on" or (self.how == "ends" and CLIENT_FAULTS[self.kind].may_end)


def client_kinds(text: str, protocol: ProtocolName) -> list[str]:
    """Return the kinds in a list with commas; ``all`` are those of the protocol.

    Raises:
        ScriptError: a kind is unknown, or does not exist in this protocol.
    """
    known = [kind for kind, fault in CLIENT_FAULTS.items() if protocol in fault.protocols]
    if text == "all":
        return known
    chosen = [kind.strip() for kind in text.split(",")]
    if unknown := [kind for kind in chosen if kind not in known]:
        raise ScriptError(f"no fault {unknown[0]!r} of clients in the protocol {protocol!r}")
    return chosen


async def try_agent(
    script: Script, name: str, kinds: Iterable[str], options: PlayOptions | None = None
) -> AsyncIterator[AgentFinding]:
    """Play a script with each fault against its server.

    Raises:
        ScriptError: the server cannot be started, or the script has no message in whose place the fault occurs.
    """
    options = options or PlayOptions()
    for kind in kinds:
        client = _FaultyClient(script.protocol, CLIENT_FAULTS[kind], script.within)
        outcome = await play(script, name, PlayOptions(options.command, options.url, interfere=client.interfere))
        if client.how is None:
            first = outcome.failures[0].strip().splitlines()[0] if outcome.failures else ""
            part = CLIENT_FAULTS[kind].part
            raise ScriptError(f"{kind}: the script has not come to the message it needs ({part}) {first}".rstrip())
        yield AgentFinding(kind, client.how, client.note)


def part_of(message: Mapping[str, Any], *, is_first: bool) -> Part | None:
    """Return the part that a message of the client has in a conversation."""
    if is_first:
        return "first"
    if "method" not in message:
        return "answer"
    action = as_object(as_object(message.get("params")).get("action"))
    return _PARTS.get(as_text(action.get("type")) or as_text(message["method"]))


class _FaultyClient:
    """Interferes with the messages that a player sends."""

    def __init__(self, protocol: ProtocolName, fault: ClientFault, seconds: float) -> None:
        self.how: Fate | None = None
        self.note = ""
        self._protocol: ProtocolName = protocol
        self._fault = fault
        self._seconds = seconds
        self._sent = 0
        self._prompt: dict[str, Any] = {}
        self._closed = False

    async def interfere(self, target: Target, message: dict[str, Any]) -> bool:
        """Do the fault in the place of a message; return whether the script ends with it."""
        part = part_of(message, is_first=self._sent == 0)
        self._sent += 1
        if part == "prompt":
            self._prompt = message
        if part != self._fault.part:
            return False
        for piece in self._fault.change(message):
            await self._send(target, piece)
        await self._judge(target)
        return True

    async def _send(self, target: Target, piece: Any) -> None:
        framing = target.framing
        match piece:
            case Raw() if piece.is_body:
                body = piece.data
                whole = {"content-length": encode_frame(body), "lines": body + b"\n"}.get(framing, body)
                await target.write(whole)
            case Raw():
                await target.write(piece.data)
            case Do(what="cut"):
                data = encode_message(piece.message, framing)
                await target.write(data[: len(data) // 2])
            case Do(what="pieces"):
                target.checks.sent(piece.message)
                for byte in encode_message(piece.message, framing):
                    await target.write(bytes([byte]))
            case Do(what="close"):
                self._closed = True
            case Do(what="cancel"):
                await self._cancel(target)
            case Do(what="wait"):
                await target.until(lambda: False, _MOMENT_S)
            case _ if self._fault.is_lawful:
                await target.post(piece)
            case _:
                await target.write(encode_message(piece, framing))

    async def _cancel(self, target: Target) -> None:
        params = as_object(self._prompt.get("params"))
        match self._protocol:
            case "acp-1" | "acp-2":
                message: dict[str, Any] = {
                    "method": "session/cancel",
                    "params": {"sessionId": params.get("sessionId")},
                }
            case "ahp":
                turn = as_object(params.get("action")).get("turnId")
                action = {"type": "chat/turnCancelled", "turnId": turn}
                message = {
                    "method": "dispatchAction",
                    "params": {"channel": params.get("channel"), "clientSeq": 999, "action": action},
                }
            case _:
                params = {"sessionId": params.get("sessionId")}
                message = {"id": f"cancel-{len(target.traffic)}", "method": "session.abort", "params": params}
        await target.write(encode_message({"jsonrpc": "2.0", **message}, target.framing))

    # --- the verdict --------------------------------------------------------------------------------------------

    async def _judge(self, target: Target) -> None:
        """Check that the agent still answers, unless the client has closed its output, and that it exits then."""
        if not self._closed:
            ping = PROTOCOLS[self._protocol].ping
            answer = await target.request(ping.method, dict(ping.params), self._seconds)
            if answer is None and not target.ended.is_set():
                self._set("hang", f"no response to {ping.method} within {self._seconds:g} s")
                return
            await target.until(lambda: False, 0.05)
            if answer is None:
                self._set_end(target)
                return
        # An agent that has got no whole message may still be starting.
        seconds = max(EXIT_S, self._seconds)
        code = await target.close_input(seconds)
        if code is None:
            self._set("hang", f"it still runs {seconds:g} s after its input was closed")
        elif code < 0:
            self._set("crash", f"killed by signal {-code}")
        elif self._fault.is_lawful and target.problems:
            self._set("broken rule", target.problems[0])
        else:
            self._set("ends" if self._closed else "goes on")

    def _set_end(self, target: Target) -> None:
        code = target.exit_code
        said = target.stderr.strip().splitlines()
        note = f"it has exited with code {code}" + (f": {said[-1]}" if said else "")
        self._set("crash" if code is not None and code < 0 else "ends", note)

    def _set(self, how: Fate, note: str = "") -> None:
        self.how, self.note = how, note
