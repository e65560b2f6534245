"""The commands that list what the model can use: tools, MCP servers, agents and skills."""

from __future__ import annotations

from typing import Any, Final

from jumpseat_protocol.safe import one_line
from jumpseat_terminal.commands.base import Chat
from jumpseat_terminal.dialogue import Option
from jumpseat_transcript.words import count

_SERVER_ACTIONS: Final = {
    "restart": "session.mcp.restartServer",
    "enable": "session.mcp.enable",
    "disable": "session.mcp.disable",
}
NO_AGENT: Final = ""


async def tools(chat: Chat, _args: str) -> None:
    await chat.session.request("session.tools.initializeAndValidate")
    found = (await chat.session.request("session.tools.getCurrentMetadata"))["tools"]
    chat.feed.show(chat.screen.painter().table([(str(tool["name"]), _first_sentence(tool)) for tool in found]))


async def mcp(chat: Chat, args: str) -> None:
    action, _, name = args.partition(" ")
    if args:
        if action not in _SERVER_ACTIONS or not name:
            chat.feed.note("Expected /mcp, or /mcp restart, enable or disable and the name of a server.", "yellow")
            return
        await chat.session.request(_SERVER_ACTIONS[action], serverName=name.strip())
    servers = (await chat.session.request("session.mcp.list"))["servers"]
    if not servers:
        chat.feed.note("No MCP servers are configured; see docs/mcp.md.")
        return
    rows: list[tuple[str, str, str]] = []
    for server in servers:
        status = str(server["status"])
        about = str(server.get("error") or "")
        if status == "connected":
            found = (await chat.session.request("session.mcp.listTools", serverName=server["name"]))["tools"]
            about = f"{count(len(found), 'tool')}: {', '.join(tool['name'] for tool in found)}"
        rows.append((str(server["name"]), status, about))
    chat.feed.show(chat.screen.painter().table(rows))


async def agents(chat: Chat, args: str) -> None:
    found = (await chat.session.request("session.agent.list"))["agents"]
    if args:
        await _select_agent(chat, NO_AGENT if args == "none" else args)
        return
    if not found:
        chat.feed.note("There are no agents: an agent is a file such as .github/agents/NAME.md.")
        return
    selected = (await chat.session.request("session.agent.getCurrent"))["agent"]
    current: str | None = selected["name"] if selected else None
    options = [
        Option(
            f"{one_line(agent['name'])}{' (current)' if agent['name'] == current else ''}",
            agent["name"],
            aside=_first_sentence(agent),
        )
        for agent in found
    ]
    options.append(Option(f"none{' (current)' if current is None else ''}", NO_AGENT, aside="no custom agent"))
    chosen: str | None = await chat.screen.asking.pick("Which agent?", options)
    if chosen is not None:
        await _select_agent(chat, chosen)


async def _select_agent(chat: Chat, name: str) -> None:
    if name == NO_AGENT:
        await chat.session.request("session.agent.deselect")
        chat.feed.note("agent: none")
    else:
        await chat.session.request("session.agent.select", name=name)
        chat.feed.note(f"agent: {name}")


async def skills(chat: Chat, _args: str) -> None:
    found = (await chat.session.request("session.skills.list"))["skills"]
    if not found:
        chat.feed.note("There are no skills: a skill is a folder with a SKILL.md, such as .github/skills/NAME.")
        return
    rows = [
        (
            f"/{skill['name']}" if skill["userInvocable"] else str(skill["name"]),
            _state_of(skill),
            _first_sentence(skill),
        )
        for skill in found
    ]
    chat.feed.show(chat.screen.painter().table(rows))


def _state_of(skill: dict[str, Any]) -> str:
    return str(skill["source"]) if skill["enabled"] else "disabled"


def _first_sentence(thing: dict[str, Any]) -> str:
    return str(thing.get("description") or "").split(". ")[0].split("\n")[0]
