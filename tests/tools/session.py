"""A tool context for tests: a working directory, an environment and shells."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from jumpseat.agent.client import EditorTerminals
from jumpseat.errors import ClientCallError
from jumpseat.sandbox.session import SessionSandbox
from jumpseat.tools.builtin import builtin_tools
from jumpseat.tools.shell.shells import Shells
from jumpseat.tools.tool import BuiltinTool, Prepared, ToolContext, ToolOutcome
from jumpseat.tools.web import Web
from jumpseat_protocol.callbacks import UserInputResponse
from jumpseat_protocol.permissions import PermissionRequest


@asynccontextmanager
async def tool_session(
    cwd: Path,
    *,
    path: str | None = None,
    web: Web | None = None,
    sandbox: SessionSandbox | None = None,
    terminals: EditorTerminals | None = None,
) -> AsyncGenerator[ToolContext, None]:
    """Make a context in ``cwd`` and end its processes afterwards. ``path`` is the ``PATH`` of programs."""
    environ = {"PATH": path if path is not None else os.environ["PATH"], "HOME": str(cwd)}
    async with anyio.create_task_group() as tasks:
        shells = Shells(tasks, lambda: terminals, make_sandbox=None if sandbox is None else lambda: sandbox)
        yield ToolContext(
            call_id="call_1",
            session_id="session_1",
            cwd=cwd,
            environ=lambda: environ,
            shells=shells,
            partial=lambda _text: None,
            progress=lambda _text: None,
            ask_user=_ask_nobody,
            web=web,
        )
        await shells.close()


async def _ask_nobody(_question: str, _choices: list[str] | None, _allow_freeform: bool) -> UserInputResponse:
    raise ClientCallError("there is nobody to ask")


async def call(ctx: ToolContext, name: str, **arguments: Any) -> ToolOutcome:
    """Check the arguments of a call, prepare and run it, as the orchestrator does; nobody is asked."""
    tool = tool_named(name)
    args = tool.args.model_validate(arguments)
    assert tool.intention(args)
    if tool.prepares is not None:
        prepared = await tool.prepares(ctx, args)
        return prepared if isinstance(prepared, ToolOutcome) else prepared.refusal or await prepared.run()
    tool.permission(ctx, args)
    return await tool.run(ctx, args)


async def prepared_call(ctx: ToolContext, name: str, **arguments: Any) -> Prepared:
    """Prepare a call that the arguments allow."""
    tool = tool_named(name)
    assert tool.prepares is not None
    prepared = await tool.prepares(ctx, tool.args.model_validate(arguments))
    assert isinstance(prepared, Prepared)
    return prepared


def permission(ctx: ToolContext, name: str, **arguments: Any) -> PermissionRequest | None:
    tool = tool_named(name)
    return tool.permission(ctx, tool.args.model_validate(arguments))


def tool_named(name: str) -> BuiltinTool[Any]:
    return next(tool for tool in builtin_tools() if tool.name == name)


async def output_until(ctx: ToolContext, shell_id: str, wanted: str, output: str) -> str:
    """Read the output of a background command, of which ``output`` has been read, until it contains ``wanted``."""
    while wanted not in output:
        output += (await call(ctx, "read_bash", shellId=shell_id, delay=0.05)).text
    return output


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Poll for a condition without an event, such as the end of a process that is not a child."""
    for _ in range(int(seconds * 100)):
        if condition():
            return
        await anyio.sleep(0.01)
    raise TimeoutError


def process_runs(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    except OSError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
