"""The customizations of a live session: shown and switched; its MCP servers started, stopped and logged in to."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import anyio
import anyio.to_thread

from jumpseat.agent.agent_files import AgentFile
from jumpseat.agent.session.session import Session
from jumpseat.agent.skills import Skill
from jumpseat.ahp.hub.channels import Origin
from jumpseat.ahp.live.mirror import Mirror
from jumpseat.ahp.states.values import Action, JsonObject
from jumpseat.ahp.translation.attachments import path_of
from jumpseat.ahp.translation.customizations import Item, changes, folders_of, server_name, server_of
from jumpseat.errors import InvalidRequestError, JumpseatError
from jumpseat.sessions.changes import switch_skill
from jumpseat.sessions.context import Process
from jumpseat.sessions.mcp_servers import enable_server
from jumpseat.store.project.skills import SessionSkills
from jumpseat_protocol.events import McpOauthRequired

log = logging.getLogger(__name__)


async def follow(mirror: Mirror) -> None:
    """Publish the customizations of a session now and when they have changed, until its mirror is closed."""
    while not mirror.gone:
        mirror.customized = anyio.Event()
        try:
            await _show(mirror)
        except (JumpseatError, OSError) as error:
            log.info("session %s: customizations are not shown: %s", mirror.session_id, error)
        await mirror.customized.wait()


async def _show(mirror: Mirror) -> None:
    session = mirror.session
    skills = mirror.context.process.skills.for_session(session)
    folders = await anyio.to_thread.run_sync(
        lambda: folders_of(_items(mirror.context.process, session, skills), session.settings.cwd)
    )
    for action in list(changes(mirror.state.get("customizations") or (), [*folders, *_servers(mirror)])):
        mirror.publish(action)


def _items(process: Process, session: Session, skills: SessionSkills) -> Iterator[Item]:
    for source in process.instructions.sources(session.settings):
        yield Item("rule", source.path, source.path.name, None, {"alwaysApply": True})
    for agent in session.settings.found_agents or process.agents.find(session.settings):
        if isinstance(agent, AgentFile) and agent.path:
            members = {
                "model": agent.model,
                "tools": agent.tools,
                "disableUserInvocation": not agent.user_invocable,
            }
            yield Item("agent", Path(agent.path), agent.display_name or agent.name, agent.description, members)
    for skill in skills.all():
        members = {"enabled": skills.is_enabled(skill.name), "disableUserInvocation": not skill.user_invocable}
        yield Item("skill", skill.path, skill.name, skill.description, members)


def _skills(mirror: Mirror) -> Iterable[Skill]:
    return mirror.context.process.skills.for_session(mirror.session).all()


def _servers(mirror: Mirror) -> Iterator[JsonObject]:
    host = mirror.context.mcp.get(mirror.session)
    for server in host.servers() if host is not None else ():
        entry = host.entry(server.name) if host is not None else None
        # Those of the server itself are shown once they are enabled.
        is_absent = server.source == "builtin" and server.status == "disabled"
        if entry is not None and entry.config is not None and not is_absent:
            yield server_of(server, mirror.session_uri, entry.config.url if entry.config.remote else None)


def toggle(mirror: Mirror, action: Action, origin: Origin) -> None:
    """Enable or disable a skill or an MCP server, in this session.

    Raises:
        InvalidRequestError: there is no such customization, or its kind is always enabled.
    """
    scopes: list[JsonObject] = action["enablement"]
    enabled = scopes[0].get("enabled") is True if scopes else True
    if (name := server_name(action["id"])) is not None:
        _run(mirror, action, origin, name, start=enabled)
        return
    skill = next((item.name for item in _skills(mirror) if str(item.path) == path_of(action["id"])), None)
    if skill is None:
        raise InvalidRequestError("only skills and MCP servers can be enabled and disabled")
    if mirror.publish(action, origin):
        switch_skill(mirror.context, mirror.session, skill, on=enabled)


def start_server(mirror: Mirror, action: Action, origin: Origin) -> None:
    """Start an MCP server."""
    _run(mirror, action, origin, server_name(action["id"]), start=True)


def stop_server(mirror: Mirror, action: Action, origin: Origin) -> None:
    """Stop an MCP server."""
    _run(mirror, action, origin, server_name(action["id"]), start=False)


def move_to_background(mirror: Mirror, action: Action, origin: Origin) -> None:
    """Let turns begin before the MCP servers have started."""
    host = mirror.context.mcp.get(mirror.session)
    if host is None or not host.stop_waiting():
        raise InvalidRequestError("no turn waits for MCP servers")
    mirror.publish(action, origin)


def _run(mirror: Mirror, action: Action, origin: Origin, name: str | None, *, start: bool) -> None:
    host = mirror.context.mcp.get(mirror.session)
    if name is None or host is None or host.entry(name) is None:
        raise InvalidRequestError(f"no MCP server {action['id'][:100]!r}")
    # The status of the server follows, whatever the client has expected.
    mirror.publish(action, origin)
    mirror.tasks.start_soon(_change, mirror, name, start)


async def _change(mirror: Mirror, name: str, start: bool) -> None:
    try:
        async with mirror.changing_servers:
            host = mirror.context.mcp.get(mirror.session)
            if start:
                await enable_server(mirror.context, mirror.session, name, "the session has no MCP servers")
            elif host is not None:
                await host.stop(name)
    except JumpseatError as error:
        log.info("session %s: MCP server %r: %s", mirror.session_id, name, error)
    mirror.customized.set()


def offer_token(mirror: Mirror, url: str, token: str) -> bool:
    """Give a token to the servers of a session at an address; return whether there are any.

    A server that is connected needs none. One that is starting may ask for it at any moment.
    """
    host = mirror.context.mcp.get(mirror.session)
    found = False
    for server in host.servers() if host is not None else ():
        entry = host.entry(server.name) if host is not None else None
        if host is None or entry is None or entry.config is None or entry.config.url != url:
            continue
        found = True
        if token and server.status in ("needs-auth", "pending"):
            mirror.tokens[url] = token
            mirror.interests.append(mirror.session.clients.add_interest(mirror, McpOauthRequired.type))
            host.retry_auth(server.name)
    return found
