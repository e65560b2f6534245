"""Try a client, or a script, against each kind of fault."""

from __future__ import annotations

import shlex
import signal
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final, Literal, TypeAlias

import anyio
from msgspec import Struct

from jumpseat_testkit.faults.table import FAULTS
from jumpseat_testkit.patterns import ScriptError
from jumpseat_testkit.play import play
from jumpseat_testkit.play_setup import PlayOptions
from jumpseat_testkit.protocols import ProtocolName
from jumpseat_testkit.running import end_group, python_command
from jumpseat_testkit.steps import Script

How: TypeAlias = Literal["told", "went on", "hang", "crash"]

PEER: Final = "{peer}"
"""The place of the peer's executable in the command of a client."""


class Finding(Struct):
    """How a client has taken a fault. ``note``: what it has said."""

    kind: str
    how: How
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the client has told of an error, or has gone on where nothing was wrong."""
        return self.how == ("went on" if FAULTS[self.kind].is_harmless else "told")


def kinds_of(text: str, protocol: ProtocolName) -> list[str]:
    """Return the kinds in a list with commas; ``all`` are those of the protocol.

    Raises:
        ScriptError: a kind is unknown, or does not exist in this protocol.
    """
    known = [kind for kind, fault in FAULTS.items() if protocol in fault.protocols]
    if text == "all":
        return known
    chosen = [kind.strip() for kind in text.split(",")]
    if unknown := [kind for kind in chosen if kind not in known]:
        raise ScriptError(f"no fault {unknown[0]!r} in the protocol {protocol!r}: docs/script-faults.md lists them")
    return chosen


def peer_command(kind: str, protocol: ProtocolName) -> list[str]:
    """Return the command that starts the peer."""
    return [*python_command("jumpseat_testkit.faults"), kind, protocol]


async def try_script(script: Script, name: str, kinds: Iterable[str]) -> AsyncIterator[Finding]:
    """Play a script against each kind."""
    for kind in kinds:
        outcome = await play(script, name, PlayOptions(peer_command(kind, script.protocol)))
        first = outcome.failures[0].strip().splitlines()[0] if outcome.failures else ""
        yield Finding(kind, "told" if outcome.failures else "went on", first)


async def try_client(
    command: Sequence[str], kinds: Iterable[str], protocol: ProtocolName, seconds: float
) -> AsyncIterator[Finding]:
    """Run a client with each kind as its server, whose executable is at ``{peer}`` in the command.

    Raises:
        ScriptError: the command has no such place, or cannot be run.
    """
    if not any(PEER in part for part in command):
        raise ScriptError(f"expected {PEER} in the client's command: the executable of the server goes there")
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="jumpseat-fault-") as folder:
            peer = Path(folder) / "peer"
            # Clients add arguments of their own.
            peer.write_text(f"#!/bin/sh\nexec {shlex.join(peer_command(kind, protocol))}\n", encoding="utf-8")
            peer.chmod(peer.stat().st_mode | stat.S_IXUSR)
            yield await _run_client([part.replace(PEER, str(peer)) for part in command], kind, seconds)


async def _run_client(command: Sequence[str], kind: str, seconds: float) -> Finding:
    try:
        process = await anyio.open_process(
            command, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, start_new_session=True
        )
    except OSError as error:
        raise ScriptError(f"cannot run {command[0]!r}: {error.strerror or error}") from None
    said = bytearray()
    code: int | None = None
    try:
        with anyio.move_on_after(seconds):
            assert process.stderr is not None
            async for chunk in process.stderr:
                said += chunk
                del said[:-4096]
            await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            code = process.returncode
            end_group(process.pid)
            await process.wait()
            await process.aclose()
    lines = said.decode("utf-8", "replace").strip().splitlines()
    note = lines[-1].strip() if lines else ""
    if code is None:
        return Finding(kind, "hang", f"it still ran after {seconds:g} s")
    if code < 0:
        return Finding(kind, "crash", signal.Signals(-code).name)
    return Finding(kind, "told" if code else "went on", note)


def summarize(findings: Sequence[Finding]) -> str:
    """Return the counts in one line."""
    wrong = [one for one in findings if not FAULTS[one.kind].is_harmless]
    unusual = [one for one in findings if FAULTS[one.kind].is_harmless]
    count: Callable[[Sequence[Finding]], str] = lambda some: f"{sum(one.ok for one in some)} of {len(some)}"  # noqa: E731
    return f"{count(wrong)} faults found, {count(unusual)} unusual peers accepted"
