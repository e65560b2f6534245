"""An MCP server made with the official package: a program on stdio, or with the argument ``http`` or ``sse`` on a
free port, which it prints. Each tool serves one or two tests.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import anyio
import uvicorn
from mcp.server.mcpserver import (
    Context,
    Elicit,
    ElicitationResult,
    Image,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.resources import TextResource
from mcp.types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent, ToolAnnotations
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
server = MCPServer("testing")
Ctx: TypeAlias = Context[Any, Any]


class Colour(BaseModel):
    colour: str


@contextmanager
def cancellation_marked() -> Generator[None]:
    try:
        yield
    except anyio.get_cancelled_exc_class():
        Path(os.environ["CANCELLED"]).touch()
        raise


@server.tool(title="Say it again")
def echo(text: str) -> str:
    """Say what was said."""
    return text


@server.tool()
def pid() -> str:
    return str(os.getpid())


@server.tool()
def environment() -> str:
    return json.dumps(dict(os.environ))


@server.tool(structured_output=False)
def picture() -> list[Any]:
    return ["look:", Image(data=PIXEL, format="png")]


@server.tool()
def fail() -> str:
    raise ToolError("the disk is full")


@server.tool()
def leave() -> str:
    os._exit(3)


@server.tool()
async def wait(ctx: Ctx) -> str:
    """Wait forever."""
    with cancellation_marked():
        await ctx.report_progress(0)
        await anyio.sleep_forever()
    return ""


class Visitors:
    """The calls of ``meet`` and ``visit`` that run."""

    count = 0
    met = anyio.Event()


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def meet() -> str:
    """Wait for a second call."""
    Visitors.count += 1
    if Visitors.count == 2:
        Visitors.met.set()
    await Visitors.met.wait()
    return "met"


@server.tool()
async def visit() -> str:
    """Return how many calls run."""
    Visitors.count += 1
    count = Visitors.count
    await anyio.sleep(0.05)
    Visitors.count -= 1
    return f"{count} here"


@server.tool()
async def work(ctx: Ctx) -> str:
    for step in range(1, 4):
        await ctx.report_progress(step, 3, f"step {step}")
    return "done"


@server.tool()
async def learn(ctx: Ctx) -> str:
    """Add a tool, a resource and a prompt, and announce them."""
    server.add_tool(lambda: "new", name="learnt", description="What was learnt.")
    server.add_resource(TextResource(uri="test://learnt", text="new"))
    server.add_prompt(Prompt.from_function(lambda: "new", name="learnt"))
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        await ctx.notify_tools_changed()
        await ctx.notify_resources_changed()
        await ctx.notify_prompts_changed()
    else:
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_resource_list_changed()
        await ctx.session.send_prompt_list_changed()
    return "learnt"


def which_colour() -> Elicit[Colour]:
    return Elicit("Which colour?", Colour)


def two_and_two() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is 2+2?"))
    return Sample([question], max_tokens=10)


def all_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def ask(answer: Annotated[ElicitationResult[Colour], Resolve(which_colour)]) -> str:
    return f"{answer.action} {answer.data.colour if answer.action == 'accept' else ''}".strip()


@server.tool()
async def think(answer: Annotated[CreateMessageResult, Resolve(two_and_two)]) -> str:
    return answer.content.text if isinstance(answer.content, TextContent) else ""


@server.tool()
async def roots(found: Annotated[ListRootsResult, Resolve(all_roots)]) -> str:
    return " ".join(str(root.uri) for root in found.roots)


@server.tool()
def meta(ctx: Ctx) -> str:
    sent = ctx.request_context.meta
    return str(sent.get("by") if sent else None)


@server.tool()
def much() -> str:
    return "x" * 200_000


@server.resource("test://greeting")
def greeting() -> str:
    return "hello"


@server.resource("test://greeting/{name}")
def greeting_for(name: str) -> str:
    return f"hello {name}"


@server.prompt()
def review(code: str) -> str:
    """Have code reviewed."""
    return f"Review this: {code}"


async def serve(app: Any) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="error")).serve(sockets=[listener])


def main() -> None:
    match sys.argv[1:]:
        case ["http"]:
            anyio.run(serve, server.streamable_http_app())
        case ["sse"]:
            anyio.run(serve, server.sse_app())
        case _:
            server.run()


if __name__ == "__main__":
    main()
