"""``call_tools``: run a short Python script that calls other tools, and return only what it prints.

The script runs in a sandbox without files, network and processes: all its effects are calls of tools, each of which
is decided about like a call of the model.
"""

from __future__ import annotations

import builtins
import os
from functools import partial
from typing import Final

from pydantic import Field

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import ToolSpec
from jumpseat.tools.filters import SCRIPTS
from jumpseat.tools.tool import BuiltinTool, Inner, Prepared, ToolArgs, ToolContext, ToolOutcome, failure

MAX_SCRIPT_BYTES: Final = 64 * 1024
MAX_SUMMARY: Final = 60

_KEPT_VARIABLES: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TZ")


class CallToolsArgs(ToolArgs):
    script: str = Field(description="Python")


async def _prepare(ctx: ToolContext, args: CallToolsArgs) -> Prepared | ToolOutcome:
    if ctx.inner is None:
        return failure("A script cannot run here: call the tools themselves.")
    if len(args.script.encode("utf-8", "surrogatepass")) > MAX_SCRIPT_BYTES:
        return failure(f"The script is too long: expected at most {MAX_SCRIPT_BYTES} bytes.")
    try:
        compile(args.script, "script", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        place = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        return failure(f"The script is not valid Python: {error.args[0] if error.args else error}{place}.")
    # Imported with the first script.
    from jumpseat.sandbox.closed import interpreter
    from jumpseat.tools.shell.sandbox_needs import shell_permission
    from jumpseat.tools.shell.script_process import program_of

    inner, program = ctx.inner(), program_of(interpreter())
    confined = await inner.close_off(program)
    if confined is not None:
        # It can do nothing but compute and call tools.
        return Prepared(None, partial(_run, ctx, args, inner, confined, True))
    request = shell_permission(f"python3 - <<'SCRIPT'\n{args.script}\nSCRIPT", _summary(args))
    return Prepared(request, partial(_run, ctx, args, inner, program, None))


async def _run(
    ctx: ToolContext, args: CallToolsArgs, inner: Inner, command: list[str], sandboxed: bool | None
) -> ToolOutcome:
    from jumpseat.tools.shell.script_process import ScriptProcess

    specs = {spec.name: spec for spec in inner.specs()}

    async def call(name: str, arguments: JsonObject) -> tuple[str, bool]:
        outcome = await inner.run(name, arguments)
        return outcome.text, outcome.ok

    environ = ctx.environ()
    kept = {name: environ[name] for name in _KEPT_VARIABLES if name in environ}
    process = ScriptProcess(call, partial(_help, specs))
    meant = {**specs, **_others_names(args.script, specs, inner)}
    tools = {name: list(spec.parameters.get("properties", {})) for name, spec in meant.items()}
    try:
        variables = {"PATH": os.defpath, "MALLOC_ARENA_MAX": "2", **kept}
        end = await process.run(command, variables, args.script, tools, alone=sandboxed is True)
    except OSError as error:
        return failure(f"The script could not be started: {error.strerror or error}.")
    outcome = inner.effects
    outcome.text = "\n".join(filter(None, (end.output.rstrip("\n"), end.problem))) or "The script printed nothing."
    if end.problem is not None and outcome.status == "success":
        outcome.status = "failure"
    outcome.sandboxed = sandboxed
    return outcome


def _others_names(script: str, specs: dict[str, ToolSpec], inner: Inner) -> dict[str, ToolSpec]:
    """Return the tools that a script calls by names of other agents' tools."""
    # Imported with the first script.
    import ast

    nodes = list(ast.walk(ast.parse(script)))
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {
        node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    unknown = called - bound - specs.keys() - vars(builtins).keys()
    found = {name: inner.meant(name) for name in unknown}
    return {name: specs[tool] for name, tool in found.items() if tool in specs}


def _help(specs: dict[str, ToolSpec], name: str | None) -> str:
    """Return the text of ``help(name)``: all tools in a line each, or all about one."""
    if name is not None:
        if (spec := specs.get(name)) is None:
            return f"There is no tool {name!r}."
        return f"{_signature(spec)}\n{spec.description}\n{spec.schema.json.decode()}"
    return "\n".join(f"{_signature(spec)}: {spec.description.split(chr(10), 1)[0]}" for spec in specs.values())


def _signature(spec: ToolSpec) -> str:
    required = spec.parameters.get("required", [])
    names = (name if name in required else f"{name}=..." for name in spec.parameters.get("properties", {}))
    return f"{spec.name}({', '.join(names)})"


def _summary(args: CallToolsArgs) -> str:
    line = next((line for line in args.script.splitlines() if line.strip()), "").strip()
    return f"Run a script that calls tools: {line[:MAX_SUMMARY]}"


async def _unprepared(ctx: ToolContext, args: CallToolsArgs) -> ToolOutcome:
    prepared = await _prepare(ctx, args)
    return prepared if isinstance(prepared, ToolOutcome) else await prepared.run()


TOOL: Final = BuiltinTool(
    name=SCRIPTS,
    description=(
        "Run a Python script that calls tools; only what it prints comes back. For many calls, loops and filters:"
        ' `for path in glob("**/*.py").split(): print(path, grep("TODO", path=path))`. Each tool is a function of'
        " that name: it takes the tool's arguments, returns its result as a string and raises ToolError."
        " parallel(view, paths) makes calls side by side, call(name, **arguments) calls any tool, help() lists"
        " them. The script itself has no files and no network."
    ),
    args=CallToolsArgs,
    run=_unprepared,
    intention=_summary,
    prepares=_prepare,
    needs="scripts",
    for_plans=True,
)
