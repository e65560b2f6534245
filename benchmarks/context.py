"""Measure what long sessions send to a model: tokens, unchanged prefixes, and the facts that stay within reach.

    context.py [--command COMMAND] [--window TOKENS]... [--sessions N] [--seed N] [--provider-clears] [--json]

Each session works on a copy of a part of Python's standard library: it lists, searches, reads, changes and tests,
in 100 to 400 calls of the real tools of ``COMMAND``, a server of the Copilot protocol such as ``jumpseat``. A model
on loopback makes the calls; it knows nothing of what a server sends, so versions of a server can be compared.
Summaries that a server asks for keep the facts and paths that their request shows.

Facts are lines that the session meets once, in files and in the output of commands. In the end, each must be in the
last request, or the last request must name the file that has it, so that one call shows it again.
With ``--provider-clears``, the server sends whole conversations, and results are cleared as Anthropic documents it
for ``context_management``, with the values that ``context_editing`` sends: what the model reads then is counted.
The table has, for each window, the tokens of all requests (four bytes each), the share of bytes that repeat the
beginning of the request before, compactions, and facts within reach.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
from driver import Server

FOLDERS: Final = (
    "json",
    "email",
    "http",
    "logging",
    "unittest",
    "importlib",
    "concurrent",
    "xml",
    "urllib",
    "html",
)
FACTS: Final = 8
FACT: Final = re.compile(r"FACT-[0-9a-f]{12}")
PATH: Final = re.compile(r"[\w./-]+\.(?:py|txt)\b")
SUMMARY_MARK: Final = "Please create a detailed summary of the conversation so far."
CALLS_PER_PROMPT: Final = 12
SUMMARY_CHARS: Final = 6_000

Call = tuple[str, dict[str, Any]]


@dataclass
class Plan:
    """The calls of one session, in groups that are made in one answer, and the facts that they meet."""

    groups: list[list[Call]]
    facts: dict[str, str | None]
    """Each fact with its file; ``None`` for those that a command printed."""


def make_plan(rng: random.Random, project: Path) -> Plan:
    """Plan the work on a project, and hide facts in it."""
    files = sorted(path for path in project.rglob("*.py") if path.stat().st_size > 3_000)
    focus = rng.sample(files, min(len(files), rng.randint(6, 14)))
    total = rng.randint(100, 400)
    facts: dict[str, str | None] = {}
    met: dict[int, Call] = {}
    for number, at in enumerate(sorted(rng.sample(range(5, total * 3 // 4), FACTS))):
        fact = f"FACT-{rng.getrandbits(48):012x}"
        if number % 2:
            command = f"echo setting {fact}; sed -n 1,60p {rng.choice(focus).relative_to(project)}"
            facts[fact], met[at] = None, ("bash", {"command": command, "description": "Read a setting"})
        else:
            path = rng.choice([file for file in files if file not in focus])
            lines = path.read_text(errors="replace").splitlines()
            lines.insert(min(20, len(lines)), f"# {fact}")
            path.write_text("\n".join(lines) + "\n")
            name = str(path.relative_to(project))
            facts[fact], met[at] = name, ("view", {"path": name, "view_range": [1, 120]})
    groups: list[list[Call]] = []
    made = 0
    while made < total:
        group = [met[made]] if made in met else list(_step(rng, project, focus))
        group = [call for offset, call in enumerate(group) if offset == 0 or made + offset not in met]
        groups.append(group)
        made += len(group)
    return Plan(groups, facts)


def _step(rng: random.Random, project: Path, focus: list[Path]) -> Iterator[Call]:
    path = rng.choice(focus[: rng.randint(1, len(focus))])
    name = str(path.relative_to(project))
    text = path.read_text(errors="replace")
    lines = text.splitlines()
    first = rng.randrange(max(1, len(lines) - 150)) // 100 * 100 + 1
    shown = {"path": name, "view_range": [first, min(len(lines), first + rng.choice([80, 150, 200]))]}
    match rng.choices(
        ["view", "whole", "edit", "test", "grep", "list", "shell", "pair"], [26, 6, 20, 16, 14, 6, 8, 4]
    )[0]:
        case "view":
            yield "view", shown
        case "whole":
            yield "view", {"path": name}
        case "edit":
            unique = [line for line in lines if len(line) > 20 and text.count(line) == 1]
            if unique:
                old = rng.choice(unique)
                new = f"{old}  # changed {rng.randrange(1000)}"
                # The plan is made before the session, so the files are changed as its calls will find them.
                path.write_text(text.replace(old, new))
                yield "edit", {"path": name, "old_str": old, "new_str": new}
        case "test":
            folder = path.parent.relative_to(project)
            yield (
                "bash",
                {
                    "command": f"cd {folder} && wc -l *.py && grep -c def *.py && grep -n 'class ' *.py | head -60",
                    "description": "Run the checks",
                },
            )
        case "grep":
            word = rng.choice(["def get", "raise ValueError", "import re", "self._", "return None", "isinstance"])
            yield (
                "grep",
                {
                    "pattern": word,
                    "path": str(path.parent.relative_to(project)),
                    "output_mode": "content",
                    "-n": True,
                    "head_limit": 40,
                },
            )
        case "list":
            yield rng.choice(
                [("view", {"path": str(path.parent.relative_to(project))}), ("glob", {"pattern": "**/*.py"})]
            )
        case "shell":
            word, most = rng.choice(["import", "def", "class"]), rng.randint(20, 90)
            yield (
                "bash",
                {
                    "command": f"grep -n {word} {name} | head -{most}",
                    "description": "Look",
                },
            )
        case _:
            yield "view", shown
            yield "grep", {"pattern": "def ", "path": name, "output_mode": "content", "-n": True}


BEGIN, KEPT, AT_LEAST = 18_000, 10, 2_400
CLEARED: Final = frozenset({"glob", "grep", "view"})


def provider_view(messages: list[dict[str, Any]], others: int) -> list[dict[str, Any]]:
    """Clear old results as a provider does, in a request with ``others`` bytes beside its messages."""
    if (others + len(orjson.dumps(messages))) // 4 < BEGIN:
        return messages
    names = {
        call["id"]: call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()
    }
    results = [number for number, message in enumerate(messages) if message["role"] == "tool"]
    old = [number for number in results[:-KEPT] if names[messages[number]["tool_call_id"]] in CLEARED]
    if sum(len(messages[number]["content"]) for number in old) // 4 < AT_LEAST:
        return messages
    cleared = set(old)
    return [
        {**message, "content": "[Old tool result content cleared]"} if number in cleared else message
        for number, message in enumerate(messages)
    ]


@dataclass
class Sent:
    """The requests of one session."""

    bytes: int = 0
    same: int = 0
    requests: int = 0
    summaries: int = 0
    last: bytes = b""

    def add(self, body: dict[str, Any]) -> None:
        text = orjson.dumps([body.get("tools", []), body["messages"]])
        self.requests += 1
        self.bytes += len(text)
        self.same += common(self.last, text)
        self.last = text


def common(a: bytes, b: bytes) -> int:
    """Return the length of the common beginning."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass
class Model:
    """A model that makes the calls of a plan, a few for each prompt."""

    plan: Plan = field(default_factory=lambda: Plan([], {}))
    sent: Sent = field(default_factory=Sent)
    provider_clears: bool = False
    made: int = 0

    @property
    def is_done(self) -> bool:
        return self.made >= len(self.plan.groups)

    def answer(self, body: dict[str, Any]) -> tuple[dict[str, Any], str]:
        if self.provider_clears:
            body["messages"] = provider_view(body["messages"], len(orjson.dumps(body.get("tools", []))))
        self.sent.add(body)
        if SUMMARY_MARK in str(body["messages"][-1]["content"]):
            self.sent.summaries += 1
            return {"content": _summary(body)}, "stop"
        since = next(n for n, message in enumerate(reversed(body["messages"])) if message["role"] == "user")
        results = sum(message["role"] == "tool" for message in body["messages"][len(body["messages"]) - since :])
        if self.is_done or results >= CALLS_PER_PROMPT:
            return {"content": "That part is done; the files are as they should be. " * 4}, "stop"
        group = self.plan.groups[self.made]
        self.made += 1
        calls = [
            {
                "index": index,
                "id": f"call_{self.made}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for index, (name, arguments) in enumerate(group)
        ]
        return {"content": "Next I look at this.", "tool_calls": calls}, "tool_calls"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                match = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                content = await reader.readexactly(int(match[1])) if match else b""
                if not content:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                    continue
                body = orjson.loads(content)
                delta, finish = self.answer(body)
                usage = {"prompt_tokens": len(self.sent.last) // 4, "completion_tokens": 60, "total_tokens": 0}
                parts: list[dict[str, Any]] = [
                    {"choices": [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}]},
                    {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
                    {"choices": [], "usage": usage},
                ]
                base = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "fake-model"}
                data = b"".join(b"data: %b\n\n" % orjson.dumps({**base, **part}) for part in parts)
                data += b"data: [DONE]\n\n"
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%b"
                    % (len(data), data)
                )
                await writer.drain()
        writer.close()


def _summary(body: dict[str, Any]) -> str:
    text = json.dumps(body["messages"])
    facts = dict.fromkeys(FACT.findall(text))
    # Of the files that were worked with, or that earlier notes and summaries name.
    named = [
        str(message.get("tool_calls", "")) if message["role"] == "assistant" else str(message["content"])
        for message in body["messages"]
        if message["role"] != "tool" or str(message["content"]).startswith("[Cleared")
    ]
    paths = dict.fromkeys(path for part in named for path in PATH.findall(part))
    filler = "The work went on as planned, and the checks passed. " * (SUMMARY_CHARS // 50)
    return (
        f"<overview>\nThe project is checked and changed.\n</overview>\n<history>\n{filler}\n</history>\n"
        f"<technical_details>\n{' '.join(facts)}\n</technical_details>\n"
        f"<important_files>\n{chr(10).join(paths)}\n</important_files>\n<next_steps>\nGo on.\n</next_steps>"
    )


def within_reach(plan: Plan, last: bytes, project: Path) -> int:
    """Count the facts in the last request, or in a file that it names."""
    # Escaped line ends would be taken for a part of paths.
    text = last.decode().replace("\\\\n", " ").replace("\\n", " ")
    found = {fact for fact in plan.facts if fact in text}
    for name in set(PATH.findall(text)):
        if len(found) == len(plan.facts):
            break
        with suppress(OSError):
            content = (project / name).read_text(errors="replace")
            found |= {fact for fact in plan.facts if fact in content}
    return len(found)


def _make_project(rng: random.Random, home: Path, project: Path) -> Plan:
    """Make the folders of a session, and plan its work."""
    home.mkdir()
    planned, stdlib = home / "planned", Path(sysconfig.get_path("stdlib"))
    for name in rng.sample(FOLDERS, 4):
        shutil.copytree(stdlib / name, planned / name, ignore=shutil.ignore_patterns("__pycache__", "test*"))
    shutil.copytree(planned, project)
    plan = make_plan(rng, planned)
    for name in filter(None, plan.facts.values()):
        shutil.copy(planned / name, project / name)
    return plan


async def run_session(command: str, window: int, seed: int, *, provider_clears: bool = False) -> dict[str, int]:
    """Run one session in a server of its own."""
    rng = random.Random(seed)
    model = Model(provider_clears=provider_clears)
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0, limit=1 << 24)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as scratch:
        home, project = Path(scratch, "home"), Path(scratch, "project")
        model.plan = plan = _make_project(rng, home, project)
        process = await Server.start(command, home, f"http://127.0.0.1:{port}/v1")
        try:
            await process.call("connect", {"token": None})
            provider = {
                "type": "openai",
                "baseUrl": f"http://127.0.0.1:{port}/v1",
                "apiKey": "none",
                "maxPromptTokens": window,
            }
            options = {"infiniteSessions": {"enabled": False}} if provider_clears else {}
            session = await process.create(workingDirectory=str(project), provider=provider, **options)
            await process.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
            prompts = 0
            while not model.is_done:
                prompts += 1
                await process.turn(session, f"Part {prompts}: go on with the work on the project.")
        finally:
            await process.kill()
            server.close()
        calls = sum(map(len, plan.groups))
        sent = model.sent
        return {
            "calls": calls,
            "requests": sent.requests,
            "tokens": sent.bytes // 4,
            "bytes": sent.bytes,
            "same": sent.same,
            "summaries": sent.summaries,
            "facts": len(plan.facts),
            "reached": within_reach(plan, sent.last, project),
        }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="jumpseat")
    parser.add_argument("--window", type=int, action="append")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--provider-clears", action="store_true", help="clear as Anthropic does, not in the server")
    parser.add_argument("--json", action="store_true", help="print each session, too")
    args = parser.parse_args()
    for window in args.window or [32_000, 128_000]:
        total: dict[str, int] = {}
        for number in range(args.sessions):
            seed = args.seed * 1000 + number
            result = await run_session(args.command, window, seed, provider_clears=args.provider_clears)
            if args.json:
                print(json.dumps(result), flush=True)
            for name, value in result.items():
                total[name] = total.get(name, 0) + value
        print(
            f"window {window}: {args.sessions} sessions, {total['calls']} calls, {total['requests']} requests, "
            f"{total['tokens']:,} tokens, {100 * total['same'] / total['bytes']:.1f} % unchanged, "
            f"{total['summaries']} summaries, {total['reached']} of {total['facts']} facts",
            flush=True,
        )


if __name__ == "__main__":
    asyncio.run(main())
