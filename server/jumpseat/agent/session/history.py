"""The persisted events of a session as a conversation, and the latest events for clients that poll."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, TypeAlias

from jumpseat.agent.conversation.attachments import mentions
from jumpseat.agent.conversation.conversation import Conversation
from jumpseat.agent.permissions.judge import MAX_PROMPTS
from jumpseat.agent.projection import Appliers, Projection
from jumpseat_protocol import events

LIMITS_SOURCE: Final = "session_limits"
"""The source of messages that tell the model the remaining credits."""

TOOLS_INFO: Final = "tools"
"""The type of the information that the model gets fewer tools."""

LoggedEvent: TypeAlias = tuple[str | None, str | None, events.EventPayload | events.UnknownPayload]
"""An event read from the log: its id, the id of the sub-agent that it belongs to, if any, and its payload."""

NO_NAMES: Final[frozenset[str]] = frozenset()
"""Shared, because each empty set takes 216 bytes."""


class History(Projection):
    """The history of one session, or of one sub-agent."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.event_count = 0
        self.last_event_id: str | None = None
        # The event of the last prompt in the log, which later changes of files belong to.
        self.latest_message_id: str | None = None
        self.first_prompt: str | None = None
        self.answered = False
        self.latest_prompts: tuple[str, ...] = ()
        # Whether the last prompt was one in plan mode, and the mode was not changed since.
        self.plans = False
        # The tools and groups of tools that prompts have mentioned.
        self.mentions = NO_NAMES
        # The tools that were called, or activated by a tool search.
        self.tools_in_use = NO_NAMES
        # The open calls of scripts, with the calls that run those.
        self.inner_calls: dict[str, str] = {}
        # The tasks that MCP servers have made of open calls, by the id of the call.
        self.mcp_tasks: dict[str, events.McpTaskCreated] = {}
        # Whether the user was told that the model gets fewer tools.
        self.told_of_tools = False
        # The last message to the model about remaining credits.
        self.last_limits_status: str | None = None

    def add(self, event_id: str | None, payload: events.EventPayload | events.UnknownPayload) -> None:
        """Add an event."""
        self.count(event_id)
        self.apply(payload)
        self.conversation.apply(payload)

    def _add_prompt(self, payload: events.UserMessage) -> None:
        if payload.is_prompt:
            self.latest_message_id = self.last_event_id
        # A prompt that steers another one, and has no mode itself, is logged as one in the usual mode.
        if payload.agent_mode is not None and (payload.agent_mode == "plan" or payload.delivery != "steering"):
            self.plans = payload.agent_mode == "plan"
        if payload.source is None:
            self.first_prompt = self.first_prompt if self.first_prompt is not None else payload.content
            self.latest_prompts = (*self.latest_prompts, payload.content)[-MAX_PROMPTS:]
            if mentioned := mentions(payload.content):
                self.mentions = self.mentions.union(mentioned)
        elif payload.source == LIMITS_SOURCE:
            self.last_limits_status = payload.content

    def _change_mode(self, _: events.SessionModeChanged) -> None:
        self.plans = False

    def _end_compaction(self, payload: events.SessionCompactionComplete) -> None:
        if payload.success:
            # The summary does not contain the message.
            self.last_limits_status = None

    def _clear(self, _: events.SessionContextCleared) -> None:
        self.last_limits_status = None

    def _answer(self, _: events.AssistantMessage) -> None:
        self.answered = True

    def _use_tool(self, payload: events.ToolExecutionStart) -> None:
        outer = payload.parent_tool_call_id
        # The calls of a sub-agent name the call that started it.
        if outer is not None and payload.tool_call_id.startswith(f"{outer}."):
            self.inner_calls[payload.tool_call_id] = outer
        elif payload.tool_name not in self.tools_in_use:
            self.tools_in_use |= {payload.tool_name}

    def _end_call(self, payload: events.ToolExecutionComplete) -> None:
        self.inner_calls.pop(payload.tool_call_id, None)
        self.mcp_tasks.pop(payload.tool_call_id, None)

    def _note_task(self, payload: events.McpTaskCreated) -> None:
        self.mcp_tasks[payload.tool_call_id] = payload

    def _activate_tools(self, payload: events.ToolSearchActivated) -> None:
        self.tools_in_use = self.tools_in_use.union(payload.tool_names)

    def _inform(self, payload: events.SessionInfo) -> None:
        if payload.info_type == TOOLS_INFO:
            self.told_of_tools = True

    appliers: ClassVar[Appliers] = {
        events.UserMessage: _add_prompt,
        events.SessionModeChanged: _change_mode,
        events.SessionCompactionComplete: _end_compaction,
        events.SessionContextCleared: _clear,
        events.AssistantMessage: _answer,
        events.ToolExecutionStart: _use_tool,
        events.ToolExecutionComplete: _end_call,
        events.ToolSearchActivated: _activate_tools,
        events.McpTaskCreated: _note_task,
        events.SessionInfo: _inform,
    }

    def count(self, event_id: str | None) -> None:
        """Count an event that is in the log, but in the history of a sub-agent."""
        self.last_event_id = event_id
        self.event_count += 1

    def rewind(self, left: Iterable[LoggedEvent]) -> None:
        """Rebuild the history after the log was truncated to ``left``.

        The first prompt stays that of the session, and what was answered was answered.
        """
        self.conversation = Conversation()
        self.event_count = 0
        self.last_event_id = None
        self.latest_message_id = None
        self.last_limits_status = None
        self.mentions = self.tools_in_use = NO_NAMES
        self.latest_prompts = ()
        self.plans = False
        for event_id, agent_id, payload in left:
            if agent_id is None:
                self.add(event_id, payload)
            else:
                self.count(event_id)
