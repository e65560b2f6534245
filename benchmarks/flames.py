"""Draw flame graphs of a server: of its start, of plain turns and of a streamed answer.

    flames.py [NAME=COMMAND ...] [--out FOLDER] [--seconds N]

NAME becomes part of the names of the files, such as ``stream-before.svg``; without arguments, the ``jumpseat``
installed with this Python is drawn as ``after``. The samples are taken by py-spy (``pip install py-spy``), which
reads the memory of the process from outside: it may need root or ptrace rights.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final, TypeAlias

from driver import Server

HERE: Final = Path(__file__).resolve().parent
STARTS: Final = 10
SAMPLES_PER_S: Final = 500

Stacks: TypeAlias = Counter[tuple[str, ...]]
"""Numbers of samples by stack, outermost function first."""


# --- sampling ---------------------------------------------------------------------------------------------------


async def start(command: str, model_url: str, spy: str, _seconds: float) -> Stacks:
    """Sample the time from the start of the process to the response to ``ping``, in several processes."""
    found: Stacks = Counter()
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory(prefix="flames-", ignore_cleanup_errors=True) as home:
            raw = Path(home) / "samples"
            server = await Server.start(f"{_record(spy, raw)} -- {command}", Path(home), model_url)
            try:
                await server.call("connect", {})
                await server.call("ping", {"message": "x"})
                await server.close_stdin()
            finally:
                await server.kill()
            found += _read(raw)
    return found


async def turn(command: str, model_url: str, spy: str, seconds: float) -> Stacks:
    """Sample plain turns in one session."""
    return await _while(command, model_url, spy, seconds, "Hello")


async def stream(command: str, model_url: str, spy: str, seconds: float) -> Stacks:
    """Sample answers of many deltas in one session."""
    return await _while(command, model_url, spy, seconds, "deltas=2000")


async def _while(command: str, model_url: str, spy: str, seconds: float, prompt: str) -> Stacks:
    """Sample turns with ``prompt`` in a server that has taken some before."""
    with tempfile.TemporaryDirectory(prefix="flames-", ignore_cleanup_errors=True) as home:
        raw = Path(home) / "samples"
        server = await Server.start(command, Path(home), model_url)
        try:
            await server.call("connect", {})
            session = await server.create()
            for _ in range(3):
                await server.turn(session, prompt)
            recorder = await asyncio.create_subprocess_exec(
                *shlex.split(_record(spy, raw)),
                "--duration",
                f"{seconds:g}",
                "--pid",
                str(server.pid),
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            while recorder.returncode is None:
                # New sessions, so that the conversation does not grow.
                session = await server.create()
                for _ in range(20):
                    await server.turn(session, prompt)
        finally:
            await server.kill()
        return _read(raw)


def _record(spy: str, raw: Path) -> str:
    return f"{shlex.quote(spy)} record --format raw --function --rate {SAMPLES_PER_S} -o {shlex.quote(str(raw))}"


def _read(raw: Path) -> Stacks:
    found: Stacks = Counter()
    for line in raw.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        # Each import passes through several functions of the import system, which would hide who imports what.
        frames = [_short(frame) for frame in stack.split(";") if "<frozen importlib" not in frame]
        # py-spy takes some threads that wait for a lock, or for the network, to be busy.
        if frames and not frames[-1].startswith(("Condition.wait", "EpollSelector.select")):
            found[tuple(frames)] += int(count)
    return found


def _short(frame: str) -> str:
    """Shorten the path in ``function (path/of/file.py)`` to the names from the package on."""
    name, _, path = frame.partition(" (")
    path = re.sub(r"^.*(?:site-packages|python3\.\d+|server|protocol)/|:\d+\)?$", "", path)
    return f"{name} ({path})" if path else name


SUBJECTS: Final[Mapping[str, Callable[[str, str, str, float], Awaitable[Stacks]]]] = {
    "start": start,
    "turn": turn,
    "stream": stream,
}


# --- drawing ----------------------------------------------------------------------------------------------------

WIDTH: Final = 1200
ROW: Final = 17
LEAST: Final = 0.004
"""The smallest share of all samples that is drawn."""

STYLE: Final = (
    "text{font:11px ui-monospace,monospace;fill:#1f2328;pointer-events:none}.title{font:600 15px system-ui}"
    ".page{fill:#fff}rect{stroke:#fff;stroke-width:.5}.own{fill:#ffb77c}.lib{fill:#a5d6ff}.std{fill:#d8dee4}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.page{fill:#0d1117}rect{stroke:#0d1117}"
    ".own{fill:#7a4100}.lib{fill:#0c4a86}.std{fill:#3d444d}}"
)


@dataclass(slots=True)
class _Frame:
    """A function in one place of the call tree, with the samples of itself and of everything that it has called."""

    samples: int = 0
    inner: dict[str, _Frame] = field(default_factory=dict[str, "_Frame"])


def write_flames(path: Path, title: str, stacks: Stacks) -> None:
    """Draw samples as a tree that grows downwards; the width of a function is its share of all samples."""
    root = _Frame(stacks.total())
    for stack, count in stacks.items():
        frame = root
        for name in stack:
            frame = frame.inner.setdefault(name, _Frame())
            frame.samples += count
    rows: list[str] = []
    depth = max(1, _draw(root, root.samples, 0.0, 0, rows))
    height = depth * ROW + 44
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="8" y="22">{escape(title)} ({stacks.total():,} samples)</text>',
    ]
    path.write_text("\n".join([*head, *rows, "</svg>\n"]), encoding="utf-8")


def _draw(frame: _Frame, total: int, begin: float, depth: int, rows: list[str]) -> int:
    """Add the functions that ``frame`` calls to ``rows``; return the number of rows below the title."""
    deepest = depth
    for name, inner in sorted(frame.inner.items(), key=lambda item: -item[1].samples):
        width = inner.samples / total * WIDTH
        if inner.samples >= LEAST * total:
            y = 36 + depth * ROW
            shown = escape(name[: max(0, int((width - 6) / 6.7))]) if width > 30 else ""
            text = f'<text x="{begin + 3:.1f}" y="{y + 12}">{shown}</text>' if shown else ""
            tip = f"<title>{escape(name)}: {inner.samples / total:.1%}</title>"
            place = f'x="{begin:.1f}" y="{y}" width="{width:.1f}" height="{ROW}"'
            rows.append(f'<rect class="{_kind(name)}" {place}>{tip}</rect>{text}')
            deepest = max(deepest, _draw(inner, total, begin, depth + 1, rows))
        begin += width
    return max(deepest, depth)


def _kind(name: str) -> str:
    """Return the colour of a function: our own code, a library, or Python itself."""
    if "(jumpseat" in name:
        return "own"
    return "lib" if re.search(r"\((pydantic|httpx2|httpcore2|h11|anyio|orjson|pygls|attrs?|mcp)\b", name) else "std"


# --- the whole --------------------------------------------------------------------------------------------------


async def _model() -> AsyncIterator[str]:
    model = await asyncio.create_subprocess_exec(sys.executable, str(HERE / "model.py"), stdout=subprocess.PIPE)
    assert model.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await model.stdout.readline())}/v1"
    finally:
        model.kill()
        await model.wait()


async def run(servers: Mapping[str, str], out: Path, spy: str, seconds: float) -> None:
    async for url in _model():
        for name, command in servers.items():
            for subject, sample in SUBJECTS.items():
                stacks = await sample(command, url, spy, seconds)
                path = out / f"{subject}-{name}.svg"
                write_flames(path, f"{subject}, {name}", stacks)
                print(path, f"{stacks.total()} samples", file=sys.stderr)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Draw flame graphs of a server.")
    parser.add_argument("servers", nargs="*", metavar="NAME=COMMAND", help="a server and its name in the files")
    parser.add_argument(
        "--out", type=Path, default=HERE.parent / "docs" / "performance", help="folder of the results"
    )
    parser.add_argument("--seconds", type=float, default=10, help="time of the samples (default: %(default)s)")
    options = parser.parse_args(argv)
    spy = shutil.which("py-spy", path=f"{Path(sys.executable).parent}") or shutil.which("py-spy")
    if spy is None:
        parser.error("py-spy is missing: install it with `pip install py-spy`")
    servers: dict[str, str] = {}
    for given in options.servers:
        name, equals, command = given.partition("=")
        if not name or not equals or not command:
            parser.error(f"expected NAME=COMMAND, got {given!r}")
        servers[name] = command
    ours = shlex.quote(str(Path(sys.executable).with_name("jumpseat")))
    options.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(run(servers or {"after": ours}, options.out, spy, options.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
