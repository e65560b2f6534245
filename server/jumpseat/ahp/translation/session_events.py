"""Translate the events of a session into steps on its channels: its own, chats of agents, and terminals. Pure.

A sub-agent has a chat of its own, which clients can only watch. The call that has started the agent refers to it.
The first turn of such a chat ends with the event about the end of the agent's first run. Later prompts have no such
event: their turns end with the first answer that calls no tool, and at the latest with the next turn or
``session.idle``.

Questions of sub-agents belong to the main chat, where people can answer them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from jumpseat.ahp.states.channels import REDUCERS
from jumpseat.ahp.states.values import IDLE, Action, JsonObject, State, present
from jumpseat.ahp.translation.edits import with_edits
from jumpseat.ahp.translation.events import Translator
from jumpseat.ahp.translation.terminals import Closed, Ended, Opened, Published, Step, Terminals
from jumpseat.ahp.translation.uris import chat_uri, kind_of, session_uri, sub_agent_uri
from jumpseat_protocol import events


class AgentChat(Struct):
    """The chat of an agent: the main one, or a sub-agent."""

    session_id: str
    uri: str
    translator: Translator

    def steps(self, event: events.Event) -> Iterator[Step]:
        """Return the steps for an event of the agent, or of the whole session."""
        return (Published(self.uri, action) for action in with_edits(self.session_id, event, self.translator))


class SessionTranslator:
    """Translates the events of one session, in their order: those of the log first, then all that follow."""

    def __init__(self, session_id: str) -> None:
        self.owners: dict[str, str] = {}
        """The ids of the clients that run tools, by the names of the tools."""
        self.main = Translator(owners=self.owners)
        self._session_id = session_id
        self._main = AgentChat(session_id, chat_uri(session_id), self.main)
        self._agents: dict[str, AgentChat] = {}
        self._terminals = Terminals(session_id)

    def steps(self, event: events.Event) -> Iterator[Step]:
        """Return the steps for an event."""
        payload = event.payload
        if isinstance(payload, events.SubagentStarted):
            yield from self._open(event, payload)
        elif isinstance(payload, _OF_ALL):
            for chat in self._chats():
                yield from chat.steps(event)
            if isinstance(payload, events.SessionIdle):
                yield from self._terminals.end_calls()
            elif not isinstance(payload, events.SessionResume) or not payload.continue_pending_work:
                yield from self._terminals.end_all()
        elif isinstance(payload, events.ExternalToolRequested):
            yield from self._chat_of_call(payload.tool_call_id).steps(event)
        elif event.agent_id is None or isinstance(payload, _QUESTIONS):
            for action in _of_session(payload):
                yield Published(session_uri(self._session_id), action)
            yield from self._steps_of(self._main, event)
        elif (agent := self._agents.get(event.agent_id)) is not None:
            yield from self._steps_of(agent, event)

    def _steps_of(self, chat: AgentChat, event: events.Event) -> Iterator[Step]:
        yield from self._terminals.steps(chat.uri, chat.translator, event)
        yield from chat.steps(event)

    def join(self, *, is_working: bool) -> None:
        """End the replay of the log. See :meth:`Translator.join`."""
        for chat in self._chats():
            chat.translator.join(is_working=is_working)

    def end_turns(self) -> Iterator[Step]:
        """Return the steps that end the open turns, if any."""
        for chat in self._chats():
            for action in chat.translator.end_turn():
                yield Published(chat.uri, action)
        yield from self._terminals.end_calls()

    def request_of(self, uri: str, call_id: str) -> str | None:
        """Return the id of the question for the result of a call in a chat, by the call's id for clients."""
        found = next((chat for chat in self._chats() if chat.uri == uri), None)
        return found.translator.request_of(call_id) if found is not None else None

    def terminal_of(self, chat: str, shell_id: str) -> str | None:
        """Return the terminal of a command in the background. See :meth:`Terminals.of_shell`."""
        return self._terminals.of_shell(chat, shell_id)

    def show_output(self, chat: str, shell_id: str, text: str, ended: Ended | None) -> Iterator[Step]:
        """Return the steps that show the output of such a command. See :meth:`Terminals.show_output`."""
        return self._terminals.show_output(chat, shell_id, text, ended)

    def keep_shown(self, states: Mapping[str, State]) -> None:
        """Go on from the states in which terminals are shown. See :meth:`Terminals.keep_shown`."""
        self._terminals.keep_shown(states)

    def _chats(self) -> list[AgentChat]:
        return [self._main, *self._agents.values()]

    def _chat_of_call(self, call_id: str) -> AgentChat:
        """Return the chat that shows a running call: the question for its result lacks the id of the agent."""
        return next((chat for chat in self._agents.values() if chat.translator.runs(call_id)), self._main)

    def _open(self, event: events.Event, started: events.SubagentStarted) -> Iterator[Step]:
        if event.agent_id is None:
            return
        uri = sub_agent_uri(self._session_id, event.agent_id)
        parent = self._agents.get(started.parent_id or "", self._main)
        self._agents[event.agent_id] = AgentChat(self._session_id, uri, Translator(owners=self.owners))
        block = {
            "type": "subagent",
            "resource": uri,
            "title": started.agent_display_name,
            "agentName": started.agent_name,
            "description": started.agent_description,
        }
        found = parent.translator.refer(started.tool_call_id, block)
        call_id, actions = found if found is not None else (None, [])
        yield Opened(uri, _new_chat(uri, event.timestamp, started, parent.uri, call_id))
        for action in actions:
            yield Published(parent.uri, action)


_OF_ALL: Final = (events.SessionIdle, events.SessionShutdown, events.SessionResume)
"""The events that end the turns of all agents."""

_QUESTIONS: Final = (
    events.UserInputRequested,
    events.UserInputCompleted,
    events.ElicitationRequested,
    events.ElicitationCompleted,
    events.ExitPlanModeRequested,
    events.ExitPlanModeCompleted,
    events.AutoModeSwitchRequested,
    events.AutoModeSwitchCompleted,
)


def apply(states: dict[str, State], step: Step) -> None:
    """Apply a step to the states of channels, by their URIs. Actions on other channels are skipped."""
    if isinstance(step, Opened):
        states[step.uri] = step.state
    elif isinstance(step, Closed):
        states.pop(step.uri, None)
    elif (state := states.get(step.uri)) is not None:
        states[step.uri] = REDUCERS[kind_of(step.uri)](state, step.action)


def _new_chat(uri: str, time: str, started: events.SubagentStarted, parent: str, call_id: str | None) -> JsonObject:
    origin = {"kind": "tool", "chat": parent, "toolCallId": call_id} if call_id is not None else None
    return present(
        {
            "resource": uri,
            "title": started.agent_display_name,
            "status": IDLE,
            "modifiedAt": time,
            "turns": [],
            "origin": origin,
            "interactivity": "read-only",
        }
    )


def _of_session(payload: events.EventPayload) -> Iterator[Action]:
    match payload:
        case events.SessionTitleChanged():
            yield {"type": "session/titleChanged", "title": payload.title}
        case events.SessionModeChanged():
            yield {"type": "session/configChanged", "config": {"mode": payload.new_mode}}
        case events.SessionModelChange():
            yield {"type": "session/configChanged", "config": {"model": payload.new_model}}
        case events.SessionPermissionsChanged():
            yield {"type": "session/configChanged", "config": {"autoApprove": payload.allow_all_permissions}}
        case _:
            pass
