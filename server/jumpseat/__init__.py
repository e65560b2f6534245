"""The agent server, and model calls from Python without one: ``from jumpseat import complete``.

The names are loaded at their first use, because every module of the server imports this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jumpseat.errors import ConfigError, InvalidRequestError, JumpseatError, ProviderError
    from jumpseat.library import ModelLibrary, complete, complete_sync, open_models, stream
    from jumpseat_protocol.blocks import (
        Block,
        Citation,
        DocumentBlock,
        HostedToolResultBlock,
        HostedToolUseBlock,
        ImageBlock,
        Message,
        ReasoningBlock,
        SearchResult,
        TextBlock,
        ToolResultBlock,
        ToolUseBlock,
        WebSearchResultBlock,
        WebSearchUseBlock,
    )
    from jumpseat_protocol.complete import (
        AnswerStream,
        CompleteDelta,
        CompleteEvent,
        CompleteParams,
        CompleteResult,
        CompleteUsage,
        ToolChoice,
    )
    from jumpseat_protocol.portability import Portability
    from jumpseat_protocol.sessions import HostedToolConfig, JsonSchemaFormat, ProviderConfig
    from jumpseat_protocol.tool_definitions import (
        FunctionDetails,
        Tool,
        new_bash_tool,
        new_custom_tool,
        new_search_tool,
        new_text_editor_tool,
    )

__all__ = [
    "AnswerStream",
    "Block",
    "Citation",
    "CompleteDelta",
    "CompleteEvent",
    "CompleteParams",
    "CompleteResult",
    "CompleteUsage",
    "ConfigError",
    "DocumentBlock",
    "FunctionDetails",
    "HostedToolConfig",
    "HostedToolResultBlock",
    "HostedToolUseBlock",
    "ImageBlock",
    "InvalidRequestError",
    "JsonSchemaFormat",
    "JumpseatError",
    "Message",
    "ModelLibrary",
    "Portability",
    "ProviderConfig",
    "ProviderError",
    "ReasoningBlock",
    "SearchResult",
    "TextBlock",
    "Tool",
    "ToolChoice",
    "ToolResultBlock",
    "ToolUseBlock",
    "WebSearchResultBlock",
    "WebSearchUseBlock",
    "complete",
    "complete_sync",
    "new_bash_tool",
    "new_custom_tool",
    "new_search_tool",
    "new_text_editor_tool",
    "open_models",
    "stream",
]

_MODULES = (
    "jumpseat.errors",
    "jumpseat.library",
    "jumpseat_protocol.blocks",
    "jumpseat_protocol.complete",
    "jumpseat_protocol.portability",
    "jumpseat_protocol.sessions",
    "jumpseat_protocol.tool_definitions",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        from importlib import import_module

        for module in map(import_module, _MODULES):
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
