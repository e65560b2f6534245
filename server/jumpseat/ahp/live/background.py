"""Background work of a session: its chats list it, and terminals show the output of its commands.

Both are those of this process: the log has only what the model has read of a command, and so does its terminal
after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

import anyio
from anyio.abc import TaskGroup

from jumpseat.agent.clock import iso_time
from jumpseat.agent.interfaces import BackgroundCommand
from jumpseat.agent.session.session import Session
from jumpseat.agent.subagents.subagents import sub_agents
from jumpseat.ahp.states.values import JsonObject, State
from jumpseat.ahp.translation.background import agent_work, background_actions, shell_work
from jumpseat.ahp.translation.session_events import SessionTranslator
from jumpseat.ahp.translation.terminals import Ended, Step
from jumpseat.ahp.translation.uris import chat_uri, sub_agent_uri
from jumpseat_protocol import events

SHOWN_BYTES: Final = 64 * 1024
"""The end of a command's output that its terminal gets: more at once would flood clients."""
INTERVAL_S: Final = 0.1
LONG_INTERVAL_S: Final = 1.0
"""The time between two such ends, each of which takes the place of the one before; also for slow clients."""

_CHANGING: Final = (
    events.BackgroundTasksChanged,
    events.ToolExecutionComplete,
    events.SubagentStarted,
    events.SubagentCompleted,
    events.SubagentFailed,
    events.SessionIdle,
)
"""The events after which something else may run in the background."""
_READING: Final = (events.ToolExecutionComplete, events.SystemNotification)
"""The events with which a command's terminal may end."""


class Mirror(Protocol):
    """The channels of the session. See :class:`jumpseat.ahp.live.mirror.Mirror`."""

    session_id: str
    tasks: TaskGroup
    translator: SessionTranslator

    @property
    def source(self) -> Session | None: ...

    @property
    def has_slow_reader(self) -> bool: ...

    def chats(self) -> list[State]: ...

    def take(self, step: Step, /) -> None: ...

    def publish(self, action: JsonObject, *, uri: str | None = None) -> bool: ...


class _Followed(NamedTuple):
    """A command that the agent of a chat has left running, and the scope of the task that shows its output."""

    chat: str
    command: BackgroundCommand
    since: str
    scope: anyio.CancelScope


class Background:
    """The background of one session."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        # By the chats and the ids of the commands.
        self._followed: dict[tuple[str, str], _Followed] = {}
        self._is_closed = False

    def expect(self, payload: events.EventPayload) -> None:
        """Show all output so far, before an event with which a terminal may end."""
        if self._followed and isinstance(payload, _READING):
            for followed in self._followed.values():
                self._show(followed)

    def note(self, payload: events.EventPayload) -> None:
        """Bring the chats in step after an event."""
        if isinstance(payload, _CHANGING):
            self.renew()

    def renew(self) -> None:
        """Bring the chats in step with what runs, and follow new commands."""
        session = self._mirror.source
        if session is None or self._is_closed:
            return
        work: dict[str, list[JsonObject]] = {}
        for chat, of_agent in self._sessions(session):
            for command in of_agent.tools.commands():
                if command.in_background and not command.finished:
                    work.setdefault(chat, []).append(self._work_of(chat, command, session))
        for chat, shown in self._agents(session):
            work.setdefault(chat, []).append(shown)
        for followed in self._followed.values():
            # A rewind may have taken the terminal back to what the log has.
            self._show(followed)
        for state in self._mirror.chats():
            for action in list(background_actions(state, work.get(state["resource"], []))):
                self._mirror.publish(action, uri=state["resource"])

    def close(self) -> None:
        """Follow no command any more."""
        self._is_closed = True
        for followed in self._followed.values():
            followed.scope.cancel()

    def _sessions(self, session: Session) -> Iterator[tuple[str, Session]]:
        """Return the sessions of all agents with their chats."""
        yield chat_uri(self._mirror.session_id), session
        for agent in sub_agents(session) if session.agents is not None else ():
            if agent.session is not None:
                yield sub_agent_uri(self._mirror.session_id, agent.id), agent.session

    def _agents(self, session: Session) -> Iterator[tuple[str, JsonObject]]:
        """Return the agents that work in the background, with the chats of those that have started them."""
        own_id = self._mirror.session_id
        for agent in sub_agents(session) if session.agents is not None else ():
            if agent.status == "running" and (agent.ended or not agent.waited_for):
                chat = chat_uri(own_id) if agent.parent_id is None else sub_agent_uri(own_id, agent.parent_id)
                since = agent.active_since or agent.started_at
                yield chat, agent_work(agent.id, agent.description, since, sub_agent_uri(own_id, agent.id))

    # --- commands -------------------------------------------------------------------------------------------------

    def _work_of(self, chat: str, command: BackgroundCommand, session: Session) -> JsonObject:
        followed = self._followed.get((chat, command.id))
        if followed is None or followed.command is not command:
            since = iso_time(time.time() - command.age_s)
            followed = _Followed(chat, command, since, anyio.CancelScope())
            self._followed[chat, command.id] = followed
            self._mirror.tasks.start_soon(self._follow, followed)
        text, label = map(session.services.secrets, (command.command, command.description))
        terminal = self._mirror.translator.terminal_of(chat, command.id)
        return shell_work(command.id, label, followed.since, text, terminal)

    async def _follow(self, followed: _Followed) -> None:
        """Show the output of a command until it ends."""
        command = followed.command
        with followed.scope:
            while not command.finished:
                seen = command.output_bytes
                self._show(followed)
                await command.news(seen)
                is_long = command.output_bytes > SHOWN_BYTES or self._mirror.has_slow_reader
                with anyio.move_on_after(LONG_INTERVAL_S if is_long else INTERVAL_S):
                    await command.wait()
            self._show(followed)
        if self._followed.get((followed.chat, command.id)) is followed:
            del self._followed[followed.chat, command.id]
        self.renew()

    def _show(self, followed: _Followed) -> None:
        session, command = self._mirror.source, followed.command
        if session is None or self._is_closed:
            return
        secrets, output = session.services.secrets, command.output(SHOWN_BYTES)
        # A secret that begins at the end is shown once it is complete, and masked then.
        text = secrets(output) if command.finished else secrets.split(output)[0]
        ended = Ended(command.exit_code) if command.finished else None
        for step in self._mirror.translator.show_output(followed.chat, command.id, text.rstrip("\r\n"), ended):
            self._mirror.take(step)
