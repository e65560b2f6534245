"""A session as tools see it: a working directory, an environment and its shells."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from jumpseat.errors import ClientCallError
from jumpseat.tools import BUILTIN_TOOLS
from jumpseat.tools.shell.shells import Shells
from jumpseat.tools.tool import BuiltinTool, ToolContext, ToolOutcome
from jumpseat_protocol.callbacks import UserInputResponse
from jumpseat_protocol.permissions import PermissionRequest


@asynccontextmanager
async def tool_session(cwd: Path, *, path: str | None = None) -> AsyncGenerator[ToolContext, None]:
    """A context in ``cwd``; nothing it started outlives the block. ``path`` is where programs are looked up."""
    environ = {"PATH": path if path is not None else os.environ["PATH"], "HOME": str(cwd)}
    async with anyio.create_task_group() as tasks:
        shells = Shells(tasks)
        yield ToolContext(
            call_id="call_1",
            session_id="session_1",
            cwd=cwd,
            environ=environ,
            shells=shells,
            partial=lambda _text: None,
            progress=lambda _text: None,
            ask_user=_nobody,
        )
        await shells.close()


async def _nobody(_question: str, _choices: list[str] | None, _allow_freeform: bool) -> UserInputResponse:
    raise ClientCallError("there is nobody to ask")


async def call(ctx: ToolContext, name: str, **arguments: Any) -> ToolOutcome:
    """Run a tool as the loop does: arguments checked, permission worked out, then the run."""
    tool = tool_named(name)
    args = tool.args.model_validate(arguments)
    tool.permission(ctx, args)
    assert tool.intention(args)
    return await tool.run(ctx, args)


def permission(ctx: ToolContext, name: str, **arguments: Any) -> PermissionRequest | None:
    tool = tool_named(name)
    return tool.permission(ctx, tool.args.model_validate(arguments))


def tool_named(name: str) -> BuiltinTool[Any]:
    return next(tool for tool in BUILTIN_TOOLS if tool.name == name)


async def until(condition: Callable[[], bool], seconds: float = 5) -> None:
    """Poll for something that nobody announces: the end of a process that is no child of ours."""
    for _ in range(int(seconds * 100)):
        if condition():
            return
        await anyio.sleep(0.01)
    raise TimeoutError


def process_runs(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
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
