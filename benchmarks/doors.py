"""The doors through which ``blocking.py`` sends foreign text to a server: clients, models, tools, files."""

from __future__ import annotations

import asyncio
import base64
import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from blocking_server import SdkBench, call, pieces_of_call
from driver import ServerError

FOREIGN_SERVERS: Final = str(Path(__file__).with_name("foreign_servers.py"))

Entry: TypeAlias = Callable[[SdkBench, str], Awaitable[Callable[[], Awaitable[object]]]]
"""Prepares a server for a text, and returns a function that sends it."""


async def _prompt(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    return lambda: bench.turn(session, text)


async def _answer(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    return lambda: bench.turn(session, "x", [{"content": text}])


def _pieces(count: int, member: str = "content") -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        session = await bench.session(await bench.project())
        size = max(1, len(text) // count)
        deltas = [{member: text[at : at + size]} for at in range(0, len(text), size)]
        return lambda: bench.turn(session, "x", deltas)

    return entry


async def _reasoning(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    return lambda: bench.turn(session, "x", [{"reasoning_content": text}, {"content": "done"}])


async def _xml(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    provider = {"type": "openai", "baseUrl": bench.model.url, "apiKey": "none", "toolProtocol": "xml"}
    session = await bench.session(await bench.project(), provider=provider)
    size = max(1, len(text) // 100)
    deltas = [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    return lambda: bench.turn(session, "x", deltas)


async def _xml_whole(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    provider = {"type": "openai", "baseUrl": bench.model.url, "apiKey": "none", "toolProtocol": "xml"}
    session = await bench.session(await bench.project(), provider=provider)
    return lambda: bench.turn(session, "x", [{"content": f'<tool name="bash"><command>{text}'}])


def _tool(
    name: str, files: Callable[[str], dict[str, str]] = lambda _: {}, **arguments: str | Callable[[str], Any]
) -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(**files(text))
        session = await bench.session(folder)
        made = {
            key: value(text) if callable(value) else value.replace("FOLDER", str(folder))
            for key, value in arguments.items()
        }
        return lambda: bench.turn(session, "x", call(name, **made))

    return entry


async def _malformed(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    function = {"name": "bash", "arguments": text}
    delta = {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}
    return lambda: bench.turn(session, "x", [delta])


async def _client_tool(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.server.create()
    bench.server.tool_result = text
    return lambda: bench.turn(session, "x", call("add", a=1))


def _file(name: str) -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(**{name: text})

        async def run() -> None:
            try:
                session = await bench.session(folder)
                await bench.turn(session, "x", call("bash", command="true"))
            except ServerError:
                pass

        return run

    return entry


async def _picture(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    folder = await bench.project()
    data = b"\x89PNG\r\n\x1a\n" + text.encode("utf-8", "surrogatepass")
    session = await bench.session(folder)
    blob = {
        "type": "blob",
        "data": base64.b64encode(data).decode(),
        "mimeType": "image/png",
        "displayName": "p.png",
    }

    async def run() -> None:
        await bench.turn(session, "x", attachments=[blob])
        await bench.turn(session, "y")

    return run


def _response(head: bytes, make: Callable[[str], bytes]) -> Entry:
    """A response of a provider as a whole, after which the connection is closed."""

    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        session = await bench.session(await bench.project())
        answer = head + b"\r\nConnection: close\r\n\r\n" + make(text)
        # A failed call is repeated.
        return lambda: bench.turn(session, "x", *[answer] * 3)

    return entry


def _pieces_of_arguments(count: int) -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        session = await bench.session(await bench.project())
        arguments = json.dumps({"command": "true", "description": text}, ensure_ascii=False)
        return lambda: bench.turn(session, "x", pieces_of_call("bash", arguments, count))

    return entry


def _mcp(place: str) -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(text=text)
        command = {"command": sys.executable, "args": [FOREIGN_SERVERS, "mcp", place, str(folder / "text")]}

        async def run() -> None:
            servers = {"foreign": {"type": "local", "tools": ["*"], **command}}
            session = await bench.session(folder, mcpServers=servers, requestElicitation=True)
            await bench.turn(session, "x", call("foreign-act"))

        return run

    return entry


def _lsp(place: str) -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(**{f"f.{place}": "one\n"})
        session = await bench.session(folder)
        path = str(folder / f"f.{place}")
        (bench.folder / "text").write_text(text, "utf-8", "replace")
        return lambda: bench.turn(session, "x", call("edit", path=path, old_str="one", new_str="two"))

    return entry


def _hook(name: str) -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        hooks = {"version": 1, "hooks": {name: [{"bash": "cat text"}]}}
        folder = await bench.project(**{"text": text, ".github__hooks__h.json": json.dumps(hooks)})
        session = await bench.session(folder)
        return lambda: bench.turn(session, "x", call("bash", command="true"))

    return entry


async def _names(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    """Send the text as the names of files."""
    plain = text.replace("/", "_").replace("\0", "_")
    folder = await bench.project()
    for number, at in enumerate(range(0, len(plain), 50)):
        (folder / f"{plain[at : at + 50]}{number}").touch()

    async def run() -> None:
        session = await bench.session(folder)
        await bench.turn(session, "@a", call("glob", pattern="**"), call("view", path=str(folder)))

    return run


async def _log(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    """Read the text from the log of a stored session."""
    session = await bench.session(await bench.project())
    await bench.turn(session, text, [{"content": text}])
    await bench.server.call("session.destroy", {"sessionId": session})
    return lambda: bench.server.resume(session)


def _option(make: Callable[[str], dict[str, Any]]) -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project()

        async def run() -> None:
            try:
                session = await bench.session(folder, **make(text))
                await bench.turn(session, "x", call("bash", command="true"))
            except ServerError:
                pass

        return run

    return entry


def _tool_option(text: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {text[:300_000]: {"type": "string", "pattern": text[:300_000]}}}
    return {"tools": [{"name": "t", "description": text[:300_000], "parameters": schema}]}


def _policy(text: str) -> dict[str, Any]:
    return {"managedSettings": {"permissions": {"deny": [f"Shell({text[:500_000]})", f"Read({text[:500_000]})"]}}}


def _policies(text: str) -> dict[str, Any]:
    rules = [f"Shell({text[at : at + 50]} {at})" for at in range(0, len(text), 50)]
    return {"managedSettings": {"permissions": {"deny": rules}}}


async def _page(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    session = await bench.session(await bench.project())
    bench.model.page = text.encode("utf-8", "replace")
    return lambda: bench.turn(session, "x", call("web_fetch", url=bench.model.page_url))


async def _servers_of_project(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    folder = await bench.project(**_servers(text))

    async def run() -> None:
        session = await bench.session(folder)
        await bench.turn(session, "x", call("bash", command="true"))

    return run


def _plugin(make: Callable[[str], dict[str, str]]) -> Entry:
    """A plugin with files in the folder ``plugin``."""

    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(**{f"plugin__{name}": content for name, content in make(text).items()})

        async def run() -> None:
            session = await bench.session(folder, pluginDirectories=[str(folder / "plugin")])
            await bench.turn(session, "x", call("bash", command="true"))

        return run

    return entry


def _members(text: str) -> dict[str, str]:
    """A manifest with the text as its name, and as many paths."""
    third = text[: len(text) // 3]
    return {"plugin.json": json.dumps({"name": third, "version": third, "skills": _parts(third)})}


def _servers(text: str) -> dict[str, str]:
    half = text[: len(text) // 2]
    parts = enumerate(_parts(half, 300))
    servers = {f"server{number}": {"command": "false", "args": [part]} for number, part in parts}
    return {".mcp.json": json.dumps({"mcpServers": servers})}


def _parts(text: str, length: int = 50) -> list[str]:
    """Return parts of a text, with numbers that make them different."""
    return [f"{text[at : at + length]}{at}" for at in range(0, len(text), length)]


def _marketplace(make: Callable[[str], str]) -> Entry:
    async def entry(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
        folder = await bench.project(**{"marketplace.json": make(text)})

        async def run() -> None:
            added = await bench.server.call("plugins.marketplaces.add", {"source": str(folder)})
            await bench.server.call("plugins.marketplaces.browse", {"name": added["name"]})
            await bench.server.call("plugins.marketplaces.remove", {"name": added["name"], "force": True})

        return run

    return entry


def _listed(text: str) -> str:
    plugins = [{"name": part, "source": "./a", "description": part} for part in _parts(text[: len(text) // 2], 200)]
    return json.dumps({"name": "m", "owner": {"name": text[:1000]}, "plugins": plugins})


async def _git_status(bench: SdkBench, text: str) -> Callable[[], Awaitable[object]]:
    """Send the text as the names of files that are new in a git repository."""
    plain = text.replace("/", "_").replace("\0", "_")
    folder = await bench.project()
    git = await asyncio.create_subprocess_exec("git", "init", "-q", str(folder))
    await git.wait()
    for part in _parts(plain):
        (folder / part).touch()

    async def run() -> None:
        session = await bench.session(folder)
        await bench.turn(session, "x", call("bash", command="git status"))
        await bench.server.call("session.workspaces.diff", {"sessionId": session, "mode": "unstaged"})

    return run


ENTRIES: Final[Mapping[str, Entry]] = {
    "prompt": _prompt,
    "answer": _answer,
    "answer in 1,000 pieces": _pieces(1000),
    "answer in 30,000 pieces": _pieces(30_000),
    "reasoning in 30,000 pieces": _pieces(30_000, "reasoning_content"),
    "arguments in 30,000 pieces": _pieces_of_arguments(30_000),
    "body of an error": _response(b"HTTP/1.1 400 Bad Request", lambda text: text.encode("utf-8", "replace")),
    "error of a provider": _response(
        b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json",
        lambda text: json.dumps({"error": {"message": text}}).encode(),
    ),
    "response, not streamed": _response(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json",
        lambda text: json.dumps({"id": "a", "choices": [{"index": 0, "message": {"content": text}}]}).encode(),
    ),
    "stream of a provider": _response(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream", lambda text: text.encode("utf-8", "replace")
    ),
    "events of a provider": _response(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream",
        lambda text: b"".join(b"data: %b\n\n" % text[at : at + 20].encode() for at in range(0, len(text), 20)),
    ),
    "reasoning": _reasoning,
    "XML": _xml,
    "XML call": _xml_whole,
    "malformed arguments": _malformed,
    "command": _tool("bash", command=lambda text: text),
    "command, quoted": _tool("bash", command=lambda text: f"echo {shlex.quote(text)}"),
    "output": _tool("bash", lambda text: {"f.txt": text}, command="cat f.txt; exit 1"),
    "new file": _tool("create", path="FOLDER/new.txt", file_text=lambda text: text),
    "edit": _tool(
        "edit",
        lambda text: {"f.txt": text},
        path="FOLDER/f.txt",
        old_str=lambda text: text[: len(text) // 2],
        new_str="x",
    ),
    "edit, missing": _tool(
        "edit",
        lambda text: {"f.txt": text},
        path="FOLDER/f.txt",
        old_str=lambda text: text[: len(text) // 2] + "z",
        new_str="x",
    ),
    "edit, small": _tool(
        "edit", lambda text: {"f.txt": text}, path="FOLDER/f.txt", old_str="no such text", new_str="x"
    ),
    "view": _tool("view", lambda text: {"f.txt": text}, path="FOLDER/f.txt"),
    "grep": _tool("grep", lambda text: {"f.txt": text}, path="FOLDER", pattern=".", output_mode="content"),
    "path": _tool("view", path=lambda text: text),
    "pattern": _tool("grep", pattern=lambda text: text, path="FOLDER"),
    "glob": _tool("glob", pattern=lambda text: text, path="FOLDER"),
    "address": _tool("web_fetch", url=lambda text: f"http://127.0.0.1:9/{text}"),
    "host": _tool("web_fetch", url=lambda text: f"http://{text}"),
    "result of a client's tool": _client_tool,
    "picture": _picture,
    "MCP result": _mcp("result"),
    "MCP structured result": _mcp("structure"),
    "MCP error": _mcp("error"),
    "MCP description": _mcp("description"),
    "MCP schema": _mcp("schema"),
    "MCP members of a schema": _mcp("members"),
    "MCP names of tools": _mcp("names"),
    "MCP instructions": _mcp("instructions"),
    "MCP notifications": _mcp("notifications"),
    "MCP elicitation": _mcp("elicitation"),
    "diagnostic": _lsp("one"),
    "diagnostics": _lsp("many"),
    "output of a hook before": _hook("preToolUse"),
    "output of a hook after": _hook("postToolUse"),
    "output of a hook of prompts": _hook("userPromptSubmitted"),
    "names of files": _names,
    "stored log": _log,
    "tool of a client": _option(_tool_option),
    "rule of a policy": _option(_policy),
    "rules of a policy": _option(_policies),
    "system message": _option(lambda text: {"systemMessage": {"mode": "append", "content": text}}),
    "custom agent": _option(
        lambda text: {"customAgents": [{"name": "a", "description": text[:500_000], "prompt": text[:500_000]}]}
    ),
    "AGENTS.md": _file("AGENTS.md"),
    "instructions": _file(".github__copilot-instructions.md"),
    "skill": _file(".github__skills__s__SKILL.md"),
    "agent": _file(".github__agents__a.agent.md"),
    "instructions of paths": _file(".github__instructions__i.instructions.md"),
    "prompt file": _file(".github__prompts__p.prompt.md"),
    ".mcp.json": _file(".mcp.json"),
    "settings": _file(".jumpseat__config.toml"),
    "git settings": _file(".git__config"),
    "members of .mcp.json": _servers_of_project,
    "web page": _page,
    "plugin manifest": _plugin(lambda text: {"plugin.json": text}),
    "members of a plugin manifest": _plugin(_members),
    "servers of a plugin": _plugin(_servers),
    "hooks of a plugin": _plugin(lambda text: {"hooks.json": text}),
    "skill of a plugin": _plugin(lambda text: {"skills__s__SKILL.md": text}),
    "front matter of a skill": _plugin(
        lambda text: {"skills__s__SKILL.md": f"---\nname: s\ndescription: {text}\n---\n"}
    ),
    "agent of a plugin": _plugin(lambda text: {"agents__a.md": text}),
    "front matter of an agent": _plugin(lambda text: {"agents__a.md": f"---\nname: a\n{text}\n---\n"}),
    "marketplace manifest": _marketplace(lambda text: text),
    "plugins of a marketplace": _marketplace(_listed),
    "git status": _git_status,
    "hooks": _file(".github__hooks__h.json"),
}
