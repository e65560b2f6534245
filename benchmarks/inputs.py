"""Measure what large inputs cost: the time must be linear, the memory at most four times the size.

    inputs.py [NAME ...] [--command COMMAND] [--rounds N]

Each row is one kind of input in three sizes, each twice the one before, in a fresh server per size: the processor
time of the server, what it grows by with each doubling (2 is linear), and the peak of its memory above that before,
as a multiple of the input. A small input of the same kind comes first, so that no imports are measured.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from driver import Server
from process import cpu_seconds, peak_mib, reset_peak

HERE: Final = Path(__file__).resolve().parent
MIB: Final = 1 << 20
MEMORY_LIMIT: Final = 4.0
LIMITED: Final = frozenset({"tool-result", "attachment", "system-message", "tools"})
"""The inputs whose memory is limited. A prompt is in its event twice; an answer is much smaller than its deltas."""
GROWTH_LIMIT: Final = 2.6
"""The accepted growth of the time by a doubling; a quadratic part would give 4."""

WORDS: Final = ("server", "change", "a\tb", '"quoted"', "C:\\path", "line\n", "0x7f3a", "value")


def text_of(size: int) -> str:
    """Return a text of about ``size`` bytes, as tools print it: words, escapes and some non-ASCII characters."""
    block = " ".join(random.Random(size).choices(WORDS, k=1000))
    return block * max(1, round(size / len(block.encode())))


async def tool_result(server: Server, size: int) -> int:
    """A result of a client tool."""
    session = await server.create()
    server.tool_result = text_of(size)
    await server.turn(session, "calls=1")
    return size


async def second_turn(server: Server, size: int) -> int:
    """The turn after a turn with a large tool result."""
    session = await server.create()
    server.tool_result = text_of(size)
    await server.turn(session, "calls=1")
    await server.turn(session, "Hello")
    return size


async def attachment(server: Server, size: int) -> int:
    """An image in the prompt, as base64."""
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + random.Random(size).randbytes(size)).decode()
    session = await server.create()
    blob = {"type": "blob", "data": data, "mimeType": "image/png", "displayName": "picture.png"}
    await server.turn(session, "Hello", attachments=[blob])
    return len(data)


async def attached_file(server: Server, size: int) -> int:
    """A file of text in the prompt."""
    path = Path(tempfile.mkdtemp()) / "notes.txt"
    path.write_text(text_of(size))
    session = await server.create()
    await server.turn(session, "Hello", attachments=[{"type": "file", "path": str(path), "displayName": "notes"}])
    path.unlink()
    path.parent.rmdir()
    return size


async def prompt(server: Server, size: int) -> int:
    """The text of a prompt."""
    session = await server.create()
    await server.turn(session, "Hello " + text_of(size))
    return size


async def answer(server: Server, size: int) -> int:
    """A streamed answer, by the number of deltas."""
    session = await server.create()
    await server.turn(session, f"deltas={size}")
    return size * len("word1000 ")


async def system_message(server: Server, size: int) -> int:
    """The system message of a session, and its first turn."""
    session = await server.create(systemMessage={"mode": "append", "content": text_of(size)}, availableTools=[])
    await server.turn(session, "Hello")
    return size


async def tools(server: Server, size: int) -> int:
    """Client tools, by their number, and a turn that calls one of them."""
    given = [_tool(number) for number in range(size)]
    given[0]["name"] = "add"
    session = await server.create(tools=given, availableTools=[tool["name"] for tool in given])
    server.tool_result = "42"
    await server.turn(session, "calls=1")
    return sum(len(str(tool)) for tool in given)


def _tool(number: int) -> dict[str, Any]:
    names = [f"parameter_{index}" for index in range(12)]
    properties = {
        name: {"type": "string", "description": f"The {name} of operation {number}, " + "in detail. " * 8}
        for name in names
    }
    return {
        "name": f"operation_{number}",
        "description": f"Run operation {number}. " + "It does one thing, and says what. " * 4,
        "parameters": {"type": "object", "properties": properties, "required": []},
        "skipPermission": True,
    }


Work = Callable[[Server, int], Awaitable[int]]

INPUTS: Final[Mapping[str, tuple[Work, tuple[int, int, int], str]]] = {
    "tool-result": (tool_result, (5 * MIB, 10 * MIB, 20 * MIB), "MiB"),
    "second-turn": (second_turn, (5 * MIB, 10 * MIB, 20 * MIB), "MiB"),
    "attachment": (attachment, (5 * MIB // 4, 5 * MIB // 2, 5 * MIB), "MiB"),
    "attached-file": (attached_file, (5 * MIB // 4, 5 * MIB // 2, 5 * MIB), "MiB"),
    "prompt": (prompt, (MIB, 2 * MIB, 4 * MIB), "MiB"),
    "system-message": (system_message, (MIB // 4, MIB // 2, MIB), "MiB"),
    "tools": (tools, (125, 250, 500), ""),
    "answer": (answer, (12_500, 25_000, 50_000), ""),
}


async def measure(command: str, work: Work, size: int, model_url: str) -> tuple[float, float]:
    """Return the processor time of one input in seconds, and the peak of memory as a multiple of the input."""
    with tempfile.TemporaryDirectory(prefix="inputs-", ignore_cleanup_errors=True) as home:
        server = await Server.start(command, Path(home), model_url)
        try:
            await server.call("connect", {})
            await work(server, 8)
            before, started = reset_peak(server.pid), cpu_seconds(server.pid)
            bytes_given = await work(server, size)
            taken = cpu_seconds(server.pid) - started
            return taken, (peak_mib(server.pid) - before) * MIB / bytes_given
        finally:
            await server.kill()


async def run(command: str, names: Sequence[str], rounds: int) -> bool:
    """Print a row for each input; return whether all of them are linear and within the limit of memory."""
    model = await asyncio.create_subprocess_exec(sys.executable, str(HERE / "model.py"), stdout=subprocess.PIPE)
    assert model.stdout is not None
    fine = True
    try:
        url = f"http://127.0.0.1:{int(await model.stdout.readline())}/v1"
        print("| input | sizes | processor time, ms | growth | peak memory, times the input |")
        print("| --- | --- | --- | --- | --- |")
        for name in names:
            work, sizes, unit = INPUTS[name]
            taken = {size: [await measure(command, work, size, url) for _ in range(rounds)] for size in sizes}
            times = [statistics.median(time for time, _ in taken[size]) for size in sizes]
            peaks = [statistics.median(peak for _, peak in taken[size]) for size in sizes]
            growth = [after / before for before, after in itertools.pairwise(times)]
            fine = fine and max(growth) <= GROWTH_LIMIT and (name not in LIMITED or peaks[-1] <= MEMORY_LIMIT)
            shown = [f"{size / MIB:g} {unit}" if unit else str(size) for size in sizes]
            cells = [
                name,
                ", ".join(shown),
                ", ".join(f"{time * 1e3:.0f}" for time in times),
                ", ".join(f"{factor:.2f}" for factor in growth),
                ", ".join(f"{peak:.1f}" for peak in peaks),
            ]
            print(f"| {' | '.join(cells)} |", flush=True)
    finally:
        model.kill()
        await model.wait()
    return fine


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure the time and memory of large inputs.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"inputs to measure: {', '.join(INPUTS)}")
    parser.add_argument("--command", default=shlex.quote(str(Path(sys.executable).with_name("jumpseat"))))
    parser.add_argument("--rounds", type=int, default=3, help="servers per size (default: %(default)s)")
    options = parser.parse_args(argv)
    if unknown := sorted(set(options.names) - set(INPUTS)):
        parser.error(f"unknown input {unknown[0]!r}, expected one of {', '.join(INPUTS)}")
    return 0 if asyncio.run(run(options.command, options.names or list(INPUTS), options.rounds)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
