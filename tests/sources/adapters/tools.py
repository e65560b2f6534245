"""Creating Adapters, line 631: the handlers for tools.

``transformed_tools`` and ``formatted_calls`` are left open in the document. ``parse_chat`` collects the calls of
OpenAI's stream in its parameter ``tools``.
"""

# pyright: basic

import json

from jumpseat.adapters import utilities as utils


def build_tools(self, tools):
    if not self.opts.tools or not tools:
        return None
    # Transform tools into LLM's expected format
    transformed_tools = [schema for tool in tools for schema in tool.values()]
    return {"tools": transformed_tools}


def format_calls(self, tools):
    # Format tool calls for the request
    formatted_calls = [{"id": tool["id"], "type": "function", "function": tool["function"]} for tool in tools]
    return formatted_calls


def format_response(self, tool_call, output):
    # Format tool response for LLM
    return {
        "role": self.roles.tool or "tool",
        "tools": {
            "call_id": tool_call["id"],
        },
        "content": output,
        "opts": {"visible": False},
    }


def parse_chat(self, data, tools):
    delta = json.loads(utils.clean_streamed_data(data))["choices"][0]["delta"]
    for call in delta.get("tool_calls") or []:
        if call["index"] == len(tools):
            tools.append({"id": call["id"], "function": {"name": call["function"]["name"], "arguments": ""}})
        tools[call["index"]]["function"]["arguments"] += call["function"].get("arguments") or ""
    if delta.get("content") is not None:
        return {"status": "success", "output": {"content": delta["content"]}}


ADAPTER = {
    "url": "https://api.openai.com/v1/chat/completions",
    "opts": {"tools": True},
    "handlers": {
        "request": {
            "build_messages": lambda self, messages: {"messages": messages},
            "build_tools": build_tools,
        },
        "response": {"parse_chat": parse_chat},
        "tools": {
            "format_calls": format_calls,
            "format_response": format_response,
        },
    },
    "schema": {"model": {"mapping": "parameters", "default": "gpt-4-0125-preview"}},
}
