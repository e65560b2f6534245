"""What each adapter can do beyond text and calls: the one place that says so.

:data:`HOSTED` has the tools that providers run themselves, by adapter and by our name for them, in the form of the
wire; ``bash`` and ``text_editor`` are tools that a model was trained on and that run here. Whether an adapter has a
field for the form of an answer is told by :func:`capabilities`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Capabilities, ModelRequest

RESPONSES_TOOLS: Final[Mapping[str, JsonObject]] = {
    "web_search": {"type": "web_search"},
    "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
    "file_search": {"type": "file_search"},
}

HOSTED: Final[Mapping[str, Mapping[str, JsonObject]]] = {
    "anthropic": {
        "web_search": {"type": "web_search_20250305", "name": "web_search"},
        "url_context": {"type": "web_fetch_20250910", "name": "web_fetch"},
        "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
        "bash": {"type": "bash_20250124", "name": "bash"},
        "text_editor": {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    },
    "openai_responses": RESPONSES_TOOLS,
    "azure_responses": RESPONSES_TOOLS,
    "gemini": {
        "web_search": {"googleSearch": {}},
        "url_context": {"urlContext": {}},
        "code_execution": {"codeExecution": {}},
    },
    "gemini_interactions": {
        "web_search": {"type": "google_search"},
        "url_context": {"type": "url_context"},
        "code_execution": {"type": "code_execution"},
    },
    "openrouter": {
        "web_search": {"type": "openrouter:web_search"},
        "url_context": {"type": "openrouter:web_fetch"},
    },
}

_CLAUDE: Final = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_NEW_GEMINI: Final = re.compile(r"gemini-(?:[3-9]|\d\d)(?!\d)|gemini-.*latest", re.IGNORECASE)


def capabilities(adapter: str, model: str) -> Capabilities:
    """What ``model`` can do behind the adapter of that name."""
    structured = Capabilities().structured_output
    match adapter:
        case "anthropic" | "copilot_messages":
            version = claude_version(model)
            new = version is not None and (version >= (4, 5) or (version == (4, 1) and "opus" in model))
            structured = "always" if new else "never"
        case "gemini" if not _NEW_GEMINI.search(model):
            structured = "without_tools"
        case _:
            pass
    return Capabilities(frozenset(HOSTED.get(adapter, ())), structured)


def claude_version(model: str) -> tuple[int, int] | None:
    """The version of a Claude model by its name, ``None`` where the name does not tell."""
    match = _CLAUDE.search(model)
    return (int(match.group(1)), int(match.group(2) or 0)) if match is not None else None


def hosted(adapter: str, request: ModelRequest) -> list[tuple[JsonObject, JsonObject]]:
    """The hosted tools of a request that the adapter has: the form of each on its wire, and what the user adds."""
    forms = HOSTED.get(adapter, {})
    return [(dict(forms[tool.name]), tool.options) for tool in request.hosted_tools if tool.name in forms]
