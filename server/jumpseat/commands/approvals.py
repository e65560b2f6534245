"""Commands about what runs without approval: the mode, the approvals, and the folders of the session."""

from __future__ import annotations

from typing import Final

from jumpseat.commands.command import Builtin, Call
from jumpseat.commands.results import Choice, CommandResult, Option, Text
from jumpseat.errors import InvalidRequestError
from jumpseat.sessions.changes import folder_of

_MODES: Final = (
    Option("manual", "Ask about calls that no rule or approval covers"),
    Option("assisted", "Let a model judge calls first"),
    Option("allow-all", "Approve all calls that no rule denies"),
)
_SWITCH: Final = (
    Option("on", "Approve all calls that no rule denies"),
    Option("off", "Ask about calls that no rule or approval covers"),
    Option("show", "Show the state"),
)


async def _permissions(call: Call) -> CommandResult:
    permissions = call.session.permissions
    match call.args:
        case "":
            kept = len(permissions.approvals.kept())
            return Choice("permissions", f"Permissions: {permissions.mode}, {kept} approvals", _MODES)
        case "manual" | "assisted" | "allow-all" as mode:
            permissions.set_mode(mode)
            return Text(f"Permissions: {mode}.")
        case other:
            raise InvalidRequestError(f"expected manual, assisted or allow-all, got {other[:100]!r}")


async def _allow_all(call: Call) -> Text:
    permissions = call.session.permissions
    match call.args:
        case "show":
            pass
        case "" | "on":
            permissions.set_mode("allow-all")
        case "off":
            permissions.set_mode("manual")
        case other:
            raise InvalidRequestError(f"expected on, off or show, got {other[:100]!r}")
    return Text("All calls are approved." if permissions.approve_all else "Calls need approval.")


async def _reset(call: Call) -> Text:
    call.session.permissions.approvals.reset()
    return Text("The approvals of this session were removed.")


async def _add_dir(call: Call) -> Text:
    folder = folder_of(call.session, call.args)
    added = call.session.permissions.path_scope.added_folders
    if folder not in added:
        added.append(folder)
    return Text(f"{folder} is a folder of the session.")


async def _list_dirs(call: Call) -> Text:
    return Text("\n".join(str(folder) for folder in call.session.permissions.path_scope.folders()))


COMMANDS: Final = (
    Builtin(
        "add-dir",
        "Add a folder whose files need no approval to be read",
        _add_dir,
        hint="path",
        folder=True,
        required=True,
        loosens=True,
    ),
    Builtin("allow-all", "Approve all calls", _allow_all, hint="on, off or show", options=_SWITCH, loosens=True),
    Builtin("list-dirs", "List the folders of the session", _list_dirs),
    Builtin(
        "permissions",
        "Show or change what needs approval",
        _permissions,
        hint="manual, assisted or allow-all",
        options=_MODES,
        loosens=True,
    ),
    Builtin("reset-allowed-tools", "Remove the approvals of this session", _reset),
)
