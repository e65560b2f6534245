"""The parts that both versions of the protocol have, and those that this server serves.

The names are those of the schemas of version 2.4.0 of the npm package ``@agentclientprotocol/sdk``, stable and
unstable; a test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct


class Fact(Struct, frozen=True):
    """One name. ``neutral``: the name has no use here, and nothing is missing without it."""

    kind: Literal["served", "neutral", "unsupported"]
    because: str = ""
    is_stable: bool = True


Facts: TypeAlias = Mapping[str, Fact]
"""Facts by name."""


def _neutral(because: str) -> Fact:
    return Fact("neutral", because)


def _no(because: str) -> Fact:
    return Fact("unsupported", because)


def _unstable(facts: Facts) -> Facts:
    """Return facts about names of the unstable schema."""
    return {name: Fact(fact.kind, fact.because, is_stable=False) for name, fact in facts.items()}


def _served(*names: str) -> Facts:
    return dict.fromkeys(names, Fact("served"))


_NO_ARCHIVE: Final = _no("sessions are kept or deleted")
_NO_AUDIO: Final = _no("no adapter sends audio to a model: a prompt with audio is refused in words")
_NO_PROXY: Final = _neutral("for programs between an editor and an agent")
_NO_AGENTS: Final = _no("sub-agents are shown as the calls that start them; their questions reach the editor")
_NO_STATUS: Final = _no("ask for `auth/status`")
_WHOLE: Final = _neutral("a summary is sent as a whole")
_NO_LIMIT: Final = _neutral("the model requests of a prompt have no limit")
_ANSWERED: Final = _neutral("the answer of the user ends the question")
_NO_REJECTION: Final = _neutral("rules for all calls are in files: see hooks and permissions")
_ONE_PLAN: Final = _neutral("a plan is sent as its entries")

_AGENT_UNSTABLE: Final[Facts] = _unstable(
    {
        **_served("auth/status", "providers/disable", "providers/list", "providers/set", "session/fork"),
        **_served("session/set_title", "session/status", "mcp/message"),
        "session/archive": _NO_ARCHIVE,
        "session/unarchive": _NO_ARCHIVE,
        "proxy/initialize": _NO_PROXY,
        "proxy/successor": _NO_PROXY,
    }
)
_CLIENT_UNSTABLE: Final[Facts] = _unstable({**_served("mcp/message"), "auth/status_update": _NO_STATUS})
_AGENT_UPDATES_UNSTABLE: Final[Facts] = _unstable(
    {"subagent_update": _NO_AGENTS, "session_message": _NO_AGENTS, "session_message_chunk": _NO_AGENTS}
)
_CONTENT: Final[Facts] = {**_served("text", "image", "resource_link", "resource"), "audio": _NO_AUDIO}
_STOPS: Final[Facts] = {**_served("end_turn", "max_tokens", "refusal", "cancelled"), "max_turn_requests": _NO_LIMIT}
_OPTIONS: Final[Facts] = {**_served("allow_once", "allow_always", "reject_once"), "reject_always": _NO_REJECTION}
_PLANS_UNSTABLE: Final[Facts] = _unstable({"file": _ONE_PLAN, "markdown": _ONE_PLAN})

V1: Final[Mapping[str, Facts]] = {
    "methods of the agent": {
        **_served("initialize", "authenticate", "logout", "session/new", "session/load", "session/resume"),
        **_served("session/list", "session/close", "session/delete", "session/prompt", "session/cancel"),
        **_served("session/set_mode", "session/set_config_option"),
        **_AGENT_UNSTABLE,
    },
    "methods of the editor": {
        **_served("session/update", "session/request_permission", "elicitation/create"),
        **_served("fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output"),
        **_served("terminal/wait_for_exit", "terminal/kill", "terminal/release"),
        "elicitation/complete": _ANSWERED,
        **_CLIENT_UNSTABLE,
    },
    "methods of both sides": _served("$/cancel_request"),
    "updates": {
        **_served("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call"),
        **_served("tool_call_update", "plan", "available_commands_update", "current_mode_update"),
        **_served("config_option_update", "session_info_update", "usage_update", "notice", "compaction_update"),
        "compaction_summary_chunk": _WHOLE,
        **_unstable(_served("plan_update", "plan_removed")),
        **_AGENT_UPDATES_UNSTABLE,
    },
    "capabilities of the agent": {
        **_served("loadSession", "promptCapabilities.image", "promptCapabilities.embeddedContext"),
        **_served("mcpCapabilities.http", "mcpCapabilities.sse", "auth.logout"),
        **_served("sessionCapabilities.list", "sessionCapabilities.delete", "sessionCapabilities.resume"),
        **_served("sessionCapabilities.close", "sessionCapabilities.additionalDirectories"),
        "promptCapabilities.audio": _NO_AUDIO,
        **_unstable(
            {
                **_served("mcpCapabilities.acp", "sessionCapabilities.systemPrompt.mode.override"),
                **_served("sessionCapabilities.fork", "sessionCapabilities.status", "sessionCapabilities.title"),
                **_served("auth.status", "providers"),
                "sessionCapabilities.archive": _NO_ARCHIVE,
            }
        ),
    },
    "capabilities of the editor": {
        **_served("fs.readTextFile", "fs.writeTextFile", "terminal", "session.compaction", "session.notices"),
        **_served("session.configOptions.boolean", "auth.terminal", "elicitation.form", "elicitation.url"),
        **_unstable({**_served("plan"), "subagents": _NO_AGENTS}),
    },
    "content": _CONTENT,
    "content of tool calls": _served("content", "diff", "terminal"),
    "status of tool calls": _served("pending", "in_progress", "completed", "failed"),
    "stop reasons": _STOPS,
    "options of permissions": _OPTIONS,
    "options of sessions": _served("select", "boolean"),
    "plans": {**_unstable(_served("items")), **_PLANS_UNSTABLE},
    "ways to log in": _served("terminal"),
    "transports of MCP": {**_served("http", "sse"), **_unstable(_served("acp"))},
    "elicitations": _served("form", "url"),
}
"""Version 1, by categories."""

V2: Final[Mapping[str, Facts]] = {
    "methods of the agent": {
        **_served("initialize", "auth/login", "auth/logout", "session/new", "session/resume", "session/list"),
        **_served("session/close", "session/delete", "session/prompt", "session/cancel"),
        **_served("session/set_config_option"),
        "tool_call/cancel": _no("no call offers it: `session/cancel` ends the calls of a prompt"),
        "terminal/cancel": _no("no terminal offers it: the model stops commands in the background"),
        **_AGENT_UNSTABLE,
    },
    "methods of the editor": {
        **_served("session/update", "session/request_permission", "elicitation/create"),
        "elicitation/complete": _ANSWERED,
        **_CLIENT_UNSTABLE,
    },
    "methods of both sides": _served("$/cancel_request"),
    "updates": {
        **_served("user_message", "agent_message", "agent_message_chunk", "agent_thought", "agent_thought_chunk"),
        **_served("state_update", "tool_call_update", "terminal_update", "terminal_output_chunk", "plan_update"),
        **_served("available_commands_update", "config_option_update", "session_info_update", "usage_update"),
        **_served("notice", "compaction_update"),
        "user_message_chunk": _neutral("messages of users are sent as wholes"),
        "tool_call_content_chunk": _neutral("the content of a call is replaced as a whole, output is in terminals"),
        "compaction_summary_chunk": _WHOLE,
        **_unstable({"plan_removed": _neutral("a plan without entries is one")}),
        **_AGENT_UPDATES_UNSTABLE,
    },
    "capabilities of the agent": {
        **_served("session.prompt.image", "session.prompt.embeddedContext", "session.mcp.stdio"),
        **_served("session.mcp.http", "session.delete", "session.additionalDirectories"),
        "session.prompt.audio": _NO_AUDIO,
        **_unstable(
            {
                **_served("session.mcp.acp", "session.systemPrompt.mode.override", "session.fork"),
                **_served("session.status", "session.title", "auth.status", "providers"),
                "session.archive": _NO_ARCHIVE,
            }
        ),
    },
    "capabilities of the editor": _served("auth.terminal", "elicitation.form", "elicitation.url"),
    "content": _CONTENT,
    "content of tool calls": _served("content", "diff", "terminal"),
    "status of tool calls": {
        **_served("pending", "in_progress", "completed", "failed", "cancelled"),
        "paused": _neutral("no call is paused"),
    },
    "changes in diffs": {
        **_served("add", "delete", "modify", "move"),
        "copy": _neutral("no tool copies files"),
    },
    "states": {
        **_served("running", "idle", "requires_action"),
        **_unstable({"unknown": _neutral("the state is always known")}),
    },
    "work in the background": {**_served("terminal", "tool_call"), **_unstable({"subagent": _NO_AGENTS})},
    "stop reasons": {**_STOPS, **_served("error")},
    "subjects of permissions": {
        **_served("tool_call"),
        "command": _neutral("the call has the command, and what else there is to know about it"),
    },
    "options of permissions": _OPTIONS,
    "options of sessions": _served("select", "boolean"),
    "plans": {**_served("items"), **_PLANS_UNSTABLE},
    "ways to log in": _served("terminal", "agent"),
    "transports of MCP": {**_served("stdio", "http"), **_unstable(_served("acp"))},
    "elicitations": _served("form", "url"),
    "replays": _served("start"),
    "commands": _served("command"),
}
"""Version 2, by categories."""
