"""Describe declared tools for clients, without functions and without values that may be secret."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from jumpseat.declared.catalogue import Origin
from jumpseat.tools.declared.catalogue import ToolEntry
from jumpseat.tools.declared.definition import Command, Definition, read_step
from jumpseat_protocol.declared_tools import DeclaredToolDescription, DeclaredToolSummary, GroupMember


def summarize(known: ToolEntry) -> DeclaredToolSummary:
    """Return the summary of a tool or group for a list."""
    described = known.tool or known.group
    return DeclaredToolSummary(
        name=known.name,
        kind="tool" if known.group is None else "group",
        description=described.description if described is not None else "",
        origin=known.origin,
        problem=known.problem,
    )


def describe(
    known: ToolEntry, others: Iterable[ToolEntry] = (), built_in: Collection[str] = ()
) -> DeclaredToolDescription:
    """Describe a tool or group; members of a group are looked up in ``others`` and ``built_in``."""
    summary: dict[str, Any] = summarize(known).model_dump()
    if known.group is not None:
        origins: dict[str, Origin] = {other.name: other.origin for other in others if other.problem is None}
        members = [_member(name, origins, built_in) for name in known.group.tools]
        return DeclaredToolDescription(
            **summary,
            tools=list(known.group.tools),
            members=members,
            collapse_tools=known.group.opts.collapse_tools,
        )
    tool = known.tool
    if tool is None:
        return DeclaredToolDescription(**summary)
    return DeclaredToolDescription(
        **summary,
        parameters=tool.parameters,
        commands=[_command(cmd) for cmd in tool.cmds],
        env=None if callable(tool.env) else list(tool.env),
        handlers=[*tool.handlers, *tool.output],
        approval="always" if known.origin == "client" else _approval(tool),
        timeout_s=tool.timeout_s,
        on_mention=tool.opts.on_mention,
        parallel=tool.opts.parallel,
    )


def _member(name: str, origins: Mapping[str, Origin], built_in: Collection[str]) -> GroupMember:
    if name.startswith("mcp:"):
        return GroupMember(name=name, origin="mcp")
    if name in origins:
        return GroupMember(name=name, origin=origins[name])
    return GroupMember(name=name, origin="built-in" if name in built_in else None)


def _command(cmd: Any) -> list[str] | str | None:
    step = read_step("cmds", cmd)
    if not isinstance(step, Command):
        return None
    return step.line if isinstance(step.line, str) else list(step.line)


def _approval(tool: Definition) -> Literal["always", "never", "depends"]:
    if tool.unsandboxed is not None:
        return "always"
    approval = tool.opts.approval
    condition = "prompt_condition" in tool.handlers
    if callable(approval) or (condition and not isinstance(approval, bool)):
        return "depends"
    return "always" if approval is None or approval else "never"
