"""The code samples of the document "Tools" (OpenAI-style function calling), translated from Go.

Each function is one sample, with its heading and its first line in the document. ``provider`` is a ``ModelLibrary``
or a ``Client``: both have the same methods. Factories raise where those of Go return an error.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jumpseat as llm

log = logging.getLogger(__name__)


class Provider(Protocol):
    async def complete(self, params: llm.CompleteParams, /) -> llm.CompleteResult: ...

    def stream(self, params: llm.CompleteParams, /) -> Any: ...


def quick_start_built_in_tools(messages: list[llm.Message]) -> llm.CompleteParams:
    """Quick Start, "Built-in tools", line 13."""
    search_tool = llm.new_search_tool()
    bash_tool = llm.new_bash_tool()
    editor_tool = llm.new_text_editor_tool()
    assert editor_tool.type == "function"

    return llm.CompleteParams(
        model="claude-sonnet-4-5",
        messages=messages,
        tools=[search_tool, bash_tool],
    )


def quick_start_custom_tools() -> llm.Tool:
    """Quick Start, "Custom tools", line 28."""
    return llm.new_custom_tool(
        "get_weather",
        "Get current weather for a location",
        {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "City name",
                },
            },
            "required": ["location"],
        },
    )


def tool_structure() -> llm.Tool:
    """Tool Structure, line 49: the members of the two structures."""
    return llm.Tool(
        type="function",  # always "function"
        function=llm.FunctionDetails(
            name="now",
            description="Get the time",
            parameters={"type": "object", "properties": {}},  # JSON Schema object
        ),
    )


def web_search() -> llm.Tool:
    """Web Search, line 71."""
    return llm.new_search_tool()


def text_editor() -> llm.Tool:
    """Text Editor, line 86."""
    return llm.new_text_editor_tool()


def bash() -> llm.Tool:
    """Bash, line 99."""
    return llm.new_bash_tool()


def basic_custom_tool() -> llm.Tool:
    """Basic Custom Tool, line 114."""
    return llm.new_custom_tool(
        "get_weather",
        "Get current weather for a location",
        {
            "type": "object",
            "properties": {
                "location": {
                    "type": "string",
                    "description": "City name",
                },
                "unit": {
                    "type": "string",
                    "enum": ["celsius", "fahrenheit"],
                },
            },
            "required": ["location"],
        },
    )


def parameters_schema() -> dict[str, Any]:
    """Parameters Schema, line 143."""
    return {
        "type": "object",
        "properties": {
            "field_name": {
                "type": "string",  # string, number, boolean, array, object
                "description": "What this field does",
                "enum": ["a", "b"],  # optional: limit to specific values
            },
        },
        "required": ["field_name"],  # optional: required fields
    }


async def server_side_tools(provider: Provider, req: llm.CompleteParams) -> list[llm.SearchResult]:
    """Server-Side Tools (web_search), line 163."""
    found: list[llm.SearchResult] = []

    # 1. Send request with search tool
    resp = await provider.complete(req)

    # 2. Provider handles execution internally

    # 3. Response includes tool results
    for block in resp.blocks:
        if block.type == "web_search_result":
            # Process search results
            results = block.results
            found += results
    return found


async def client_side_tools(
    provider: Provider,
    req: llm.CompleteParams,
    execute_tool: Callable[[str | None, dict[str, Any] | None], str],
) -> llm.CompleteResult | None:
    """Client-Side Tools (bash, text_editor, custom), line 184."""
    resp2: llm.CompleteResult | None = None

    # 1. Send request with tools
    resp1 = await provider.complete(req)

    # 2. Detect tool_use blocks
    for block in resp1.blocks:
        if block.block_type == "tool_use":
            tool_name = block.get_tool_name()
            tool_input = block.get_tool_input()
            tool_use_id = block.get_tool_use_id()
            assert tool_use_id is not None

            # 3. Execute tool in your code
            result = execute_tool(tool_name, tool_input)

            # 4. Create tool_result block
            result_block = llm.ToolResultBlock(
                tool_use_id=tool_use_id,
                is_error=False,
                text=result,
            )

            # 5. Send result back in next request
            req2 = llm.CompleteParams(
                model="claude-sonnet-4-5",
                messages=[
                    *(req.messages or []),
                    llm.Message(role="assistant", blocks=resp1.blocks),
                    llm.Message(role="user", blocks=[result_block]),
                ],
            )

            # 6. Get final response
            resp2 = await provider.complete(req2)
    return resp2


def tool_choice_auto(search_tool: llm.Tool) -> llm.CompleteParams:
    """Tool Choice, line 229: auto (default), the model decides."""
    return llm.CompleteParams(
        tools=[search_tool],
        tool_choice=llm.ToolChoice(mode="auto"),
    )


def tool_choice_required() -> llm.ToolChoice:
    """Tool Choice, line 236: must use a tool."""
    return llm.ToolChoice(mode="required")


def tool_choice_none() -> llm.ToolChoice:
    """Tool Choice, line 239: cannot use tools."""
    return llm.ToolChoice(mode="none")


def tool_choice_specific() -> llm.ToolChoice:
    """Tool Choice, line 242: must use this tool."""
    return llm.ToolChoice(
        mode="specific",
        tool_name="get_weather",
    )


def portable_built_in_tools() -> list[llm.Tool]:
    """Portable Tools, "Client-side built-in tools", line 254."""
    return [llm.new_bash_tool(), llm.new_text_editor_tool()]


def portable_custom_tools(custom_tool: llm.Tool) -> list[llm.Tool]:
    """Portable Tools, "Custom tools", line 262."""
    return [custom_tool]


def non_portable_tools() -> list[llm.Tool]:
    """Non-Portable Tools, line 271."""
    return [llm.new_search_tool()]


ANTHROPIC_WEB_SEARCH_RESPONSE = {
    # "Why not portable?", line 282: a part of Anthropic's response.
    "content": [
        {
            "encrypted_content": "EqgfCioIARgBIiQ3YTAwMjY1...",
            "title": "Result Title",
        }
    ]
}


def provider_data_preservation() -> llm.Block:
    """Provider Data Preservation, line 298."""
    return llm.WebSearchResultBlock(
        tool_use_id="srvtoolu_1",
        provider="anthropic",  # source provider
        provider_data={**ANTHROPIC_WEB_SEARCH_RESPONSE},  # raw provider response
        results=[llm.SearchResult(title="Result Title")],  # normalized fields
    )


def check_before_switching_providers(blocks: Sequence[llm.Block], new_provider: str) -> None:
    """Provider Data Preservation, "Check before switching providers", line 308."""
    for block in blocks:
        if block.provider is not None and block.provider != new_provider:
            log.warning(
                "Block contains provider-specific data block_type=%s provider=%s",
                block.block_type,
                block.provider,
            )


async def streaming_tool_execution(
    provider: Provider, req: llm.CompleteParams, execute_tool: Callable[[llm.Block], None]
) -> dict[str, str]:
    """Streaming Tool Execution, line 322. Returns the incremental input of each call."""
    inputs: dict[str, str] = {}
    async with provider.stream(req) as stream:
        async for event in stream:
            if event.delta is not None:
                match event.delta.delta_type:
                    case "tool_call_start":
                        # Tool call begins
                        tool_id = event.delta.tool_call_id
                        tool_name = event.delta.tool_call_name
                        inputs[tool_id] = f"{tool_name} "

                    case "input_json_delta":
                        # Incremental tool input
                        json_delta = event.delta.input_json_delta
                        inputs[event.delta.tool_call_id] += json_delta

                    case _:
                        pass

            if event.block is not None and event.block.block_type == "tool_use":
                # Complete tool_use block available
                # Execute tool and send result
                execute_tool(event.block)
    return inputs
