"""The prompts of the soak test, and the script of the model that answers them."""

from __future__ import annotations

from typing import Any, Final

JsonObject = dict[str, Any]

CLIENTS: Final = 3
"""The number of clients. Client N has the tools ``freeN``, which needs no permission, and ``lookupN``."""


def tools_of(client: int) -> list[JsonObject]:
    """Return the definitions of the tools of a client."""
    parameters = {"type": "object"}
    return [
        {"name": f"free{client}", "description": "x", "parameters": parameters, "skipPermission": True},
        {"name": f"lookup{client}", "description": "x", "parameters": parameters},
    ]


def _calls(*names: str, **arguments: Any) -> JsonObject:
    # Without ids, so that each call of a conversation gets its own.
    return {"tool_calls": [{"name": name, "arguments": arguments} for name in names]}


def _agents(mode: str, *prompts: str) -> JsonObject:
    """Return a turn that starts sub-agents with prompts of this module."""
    starts = [
        {"name": prompt, "agent_type": "task", "description": "x", "prompt": f"{prompt} please", "mode": mode}
        for prompt in prompts
    ]
    return {"tool_calls": [{"name": "task", "arguments": start} for start in starts]}


_DONE: Final[JsonObject] = {"text": "It is done: {{last_tool_result}}."}
_UNAVAILABLE: Final = {"status": 503}

_TURNS: Final[dict[str, list[JsonObject]]] = {
    "text": [{"text": "A few words of text.", "usage": {"input": 10, "output": 5}}],
    "reason": [{"reasoning": "Let me think.", "text": "Yes."}],
    "silent": [{}],
    "many": [_calls("free0", "free0", "free1"), _DONE],
    "mixed": [_calls("free0", "lookup1", "missing"), _calls("free2"), _DONE],
    "unknown": [_calls("missing"), _DONE],
    "broken": [{"tool_calls": [{"name": "free0", "arguments": "{not JSON"}]}, _DONE],
    "again": [*({"tool_calls": [{"id": "same", "name": "free0"}]} for _ in range(2)), _DONE],
    "view": [_calls("view", path="notes.txt"), _DONE],
    "write": [_calls("create", path="made.txt", file_text="x"), _DONE],
    "question": [_calls("ask_user", question="Which?"), _DONE],
    "echo": [_calls("tools-echo", text="x"), _DONE],
    "shell": [_calls("bash", command="echo hello"), _DONE],
    "hang": [{"text": "It begins", "hang": True}],
    "hangshell": [_calls("bash", command="sleep 1000"), _DONE],
    "flaky": [{"text": "At last.", "errors": [_UNAVAILABLE, {}]}],
    "dead": [{"errors": [_UNAVAILABLE, _UNAVAILABLE, _UNAVAILABLE, _UNAVAILABLE]}],
    "refused": [{"errors": [{"status": 400}]}],
    "locked": [{"errors": [{"status": 401}]}],
    "agent": [_agents("sync", "text"), _DONE],
    "team": [_agents("sync", "free0", "view", "refused"), _DONE],
    "launch": [_agents("background", "free1", "text"), _DONE],
    "nested": [_agents("sync", "agent", "launch"), _DONE],
    "hangagent": [_agents("sync", "hang"), _DONE],
    "hanglaunch": [_agents("background", "hangshell"), _DONE],
    "reread": [_calls("read_agent", agent_id="text"), _calls("write_agent", agent_id="text", message="x"), _DONE],
    "toolong": [{"errors": [{"status": 400, "code": "context_length_exceeded"}], "text": "Short now."}],
    "filtered": [{"text": "No", "stop_reason": "content_filter"}],
    **{f"free{client}": [_calls(f"free{client}"), _DONE] for client in range(CLIENTS)},
    **{f"lookup{client}": [_calls(f"lookup{client}"), _DONE] for client in range(CLIENTS)},
}

PROMPTS: Final = tuple(_TURNS)

PROVIDER: Final[JsonObject] = {
    "type": "scripted",
    "script": {
        "prompts": [
            *({"when": rf"\b{name} please", "turns": turns} for name, turns in _TURNS.items()),
            # Summaries, and other requests of the server itself.
            {"turns": [{"text": "A summary of what was said."}]},
        ],
        "after_last": "repeat",
    },
}
