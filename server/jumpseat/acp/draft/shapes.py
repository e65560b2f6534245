"""Convert messages of version 1 into those of version 2. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jumpseat.acp.translation.params import ClientCapabilities, ClientSessionCapabilities, ConfigOptionCapabilities
from jumpseat.acp.translation.plans import PLAN_ID


def update_of(update: dict[str, Any]) -> dict[str, Any] | None:
    """Return a ``session/update`` of version 2; ``None`` if version 2 has none for it."""
    match update["sessionUpdate"]:
        case "tool_call":
            # The first update of a call creates it.
            return {**update, "sessionUpdate": "tool_call_update"}
        case "plan":
            plan = {"type": "items", "planId": PLAN_ID, "entries": update["entries"]}
            return {"sessionUpdate": "plan_update", "plan": plan}
        case "config_option_update":
            return {**update, "configOptions": options_of(update["configOptions"])}
        case "available_commands_update":
            return {**update, "availableCommands": commands_of(update["availableCommands"])}
        case "current_mode_update":
            # The options have the mode.
            return None
        case _:
            return update


def permission_of(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params of ``session/request_permission``."""
    call = params["toolCall"]
    return {
        "sessionId": params["sessionId"],
        "title": call["title"],
        "subject": {"type": "tool_call", "toolCall": call},
        "options": params["options"],
    }


def opened_of(opened: dict[str, Any], commands: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the state of a session that was opened, for the response: without modes, and with its commands."""
    return {"configOptions": options_of(opened["configOptions"]), "availableCommands": commands_of(commands)}


def options_of(options: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the options of a session."""
    return [_renamed(option, "id", "configId") for option in options]


def commands_of(commands: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the slash commands of a session."""
    return [
        {"type": "command", **command}
        | ({"input": {"type": "text", **command["input"]}} if "input" in command else {})
        for command in commands
    ]


def auth_methods_of(methods: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the authentication methods."""
    return [{"type": "agent", **_renamed(method, "id", "methodId")} for method in methods]


def abilities_of(given: ClientCapabilities) -> ClientCapabilities:
    """Return the capabilities of an editor: those of version 1 that every editor of version 2 has, and its own.

    Editors of version 2 lend neither files nor terminals.
    """
    session = ClientSessionCapabilities(
        compaction={}, notices={}, config_options=ConfigOptionCapabilities(boolean={})
    )
    return ClientCapabilities(session=session, elicitation=given.elicitation, auth=given.auth)


def _renamed(value: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: member for name, member in value.items()}
