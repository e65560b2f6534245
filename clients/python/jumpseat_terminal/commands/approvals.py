"""The commands about permissions: ``/permissions``, ``/accept-edits`` and ``/plan``."""

from __future__ import annotations

from typing import Any, Final

from jumpseat_protocol.visible import exact_line
from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.dialogue import Option

_KINDS: Final = {
    "write": "changes to files in this folder",
    "read": "reads of files in this folder",
    "memory": "all memories",
    "url": "all hosts",
}
_SCOPES: Final = {"session": "this session", "location": "this project", "everywhere": "everywhere"}


async def permissions(chat: Chat, _args: str) -> None:
    """List what is allowed without a question, and let the user revoke approvals one by one."""
    painter = chat.screen.painter()
    fixed = [("--allow-tool", str(rule)) for rule in chat.settings.allow]
    fixed += [("--deny-tool", str(rule)) for rule in chat.settings.deny]
    if chat.settings.yolo:
        fixed.append(("--yolo", "everything that no rule denies"))
    if chat.modes.accepts_edits:
        fixed.append(("shift-tab", "changes to files in this folder, until you change the mode"))
    if fixed:
        chat.feed.show(painter.table([(f"from {source}:", what) for source, what in fixed]))
    while True:
        found = await chat.session.request("jumpseat.permissions.list")
        kept = [approval for approval in found["approvals"] if not _is_mode(chat, approval)]
        if not kept:
            chat.feed.note(
                "No approval outlasts its call." if not fixed else "No other approval outlasts its call."
            )
            return
        chat.feed.show(painter.table([(_SCOPES[approval["scope"]], *_describe(approval)) for approval in kept]))
        options = [
            Option(f"{_SCOPES[approval['scope']]}: {_describe(approval)[0]}", approval["id"]) for approval in kept
        ]
        revoked: str | None = await chat.screen.asking.pick("Revoke an approval? (esc keeps all)", options)
        if revoked is None:
            return
        label = next(option.label for option in options if option.value == revoked)
        await chat.session.request("jumpseat.permissions.revoke", ids=[revoked])
        chat.feed.note(f"revoked for {label}", "yellow")


def _is_mode(chat: Chat, approval: dict[str, Any]) -> bool:
    """Return whether an approval is the rule of the mode that accepts edits, which shift-tab takes back."""
    return (
        chat.modes.accepts_edits
        and approval["scope"] == "session"
        and approval["rules"] == [{"kind": "write", "argument": None}]
        and not approval.get("paths")
    )


def _describe(approval: dict[str, Any]) -> tuple[str, str]:
    """Return what an approval covers, and the paths and command lines that were approved with it."""
    covers = [_describe_rule(rule) for rule in approval["rules"]]
    covers += [f"the host {exact_line(host)}" for host in approval["hosts"]]
    lines = [exact_line(line) for line in approval["commandLines"]]
    if not covers:
        covers, lines = [f"the command line {line}" for line in lines], []
    lines = [line for line in lines if line not in ", ".join(covers)]
    paths = [exact_line(path) for path in approval["paths"]]
    return ", ".join(covers) or "nothing", "; ".join([*lines, *paths])


def _describe_rule(rule: dict[str, Any]) -> str:
    kind, argument = str(rule["kind"]), rule.get("argument")
    if argument is None:
        return _KINDS.get(kind, f"all calls of the kind {kind}")
    named = {"shell": "commands: ", "mcp": "the MCP tool ", "custom-tool": "the tool ", "tool": "the tool "}
    return f"{named.get(kind, f'{kind} ')}{exact_line(str(argument))}"


async def accept_edits(chat: Chat, args: str) -> None:
    on = args == "on" if args in ("on", "off") else not chat.modes.accepts_edits
    await chat.modes.change("edits" if on else "ask")
    chat.feed.note(
        "Changes to files in this folder are made without a question."
        if on
        else "You are asked about each change to a file."
    )


async def plan(chat: Chat, args: str) -> None:
    if args or chat.modes.session_mode != "plan":
        await chat.modes.change("plan")
        chat.feed.note("Plan mode: the model explores and plans, and asks for approval of its plan.")
    else:
        await chat.modes.change("ask")
        chat.feed.note("Plan mode is off.")
    if args:
        await chat.send(args)
