"""An adapter whose handlers do everything, for a wire that there is nowhere else.

Nested and flat names stand side by side, old ones and those of today.
"""

# pyright: basic

import json


def build_messages(adapter, messages):
    return {"talk": [_line(message) for message in messages]}


def _line(message):
    line = {"who": message["role"], "text": message.get("content")}
    if message.get("context"):
        line["attached"] = message["context"]["mimetype"]
    if message.get("reasoning"):
        line["thought"] = message["reasoning"]
    if message.get("tools"):
        line |= message["tools"]
    return line


def form_tools(adapter, tools):
    return {"can": [name for table in tools for name in table]}


def form_structured_output(adapter, wanted):
    return {"form": wanted["schema"]}


def chat_output(adapter, data, tools):
    """One line of a stream (``data: {...}``), or a whole answer."""
    if isinstance(data, str):
        pieces = [json.loads(data.partition(":")[2])] if data.startswith("data: {") else []
    else:
        pieces = json.loads(data["body"])["pieces"]
    output = {"content": "", "meta": {}}
    for piece in pieces:
        if "failed" in piece:
            return {"status": "error", "output": piece["failed"]}
        output["content"] += piece.get("say", "")
        if "think" in piece:
            output["reasoning"] = {"content": piece["think"], "seal": piece.get("seal")}
        if "call" in piece:
            tools.append(piece["call"])
        if "end" in piece:
            output["meta"] = {"stop_reason": piece["end"], "response_id": piece.get("id")}
    return {"status": "success", "output": output} if pieces else None


def tokens(adapter, data):
    if isinstance(data, str):
        return json.loads(data.partition(":")[2]).get("tokens") if data.startswith("data: {") else None
    return json.loads(data["body"]).get("tokens")


def build_reasoning(adapter, chunks):
    text = "".join(chunk["content"] for chunk in chunks)
    return {"content": text, "signature": "".join(chunk["seal"] or "" for chunk in chunks)}


def format_calls(adapter, calls):
    return [
        {"id": call["id"], "type": "function", "function": {"name": call["do"], "arguments": call["with"]}}
        for call in calls
    ]


def output_response(adapter, call, text):
    return {"role": "tool", "content": text, "tools": {"call_id": call["id"]}}


ADAPTER = {
    "formatted_name": "Oracle",
    "url": "${base_url}/ask",
    "env": {
        "base_url": "https://oracle.example.com",
        "api_key": {"value": "ORACLE_KEY", "variable": True, "optional": True},
    },
    "headers": {"Authorization": "Bearer ${api_key}"},
    "roles": {"llm": "oracle", "user": "pilgrim"},
    "parameters": {"model": "${model}"},
    "schema": {"model": {"default": "delphi", "choices": ["delphi"]}},
    "handlers": {
        "request": {"build_messages": build_messages, "build_reasoning": build_reasoning},
        "form_tools": form_tools,
        "form_structured_output": form_structured_output,
        "chat_output": chat_output,
        "tokens": tokens,
        "tools": {"format_calls": format_calls, "output_response": output_response},
    },
}
ADAPTER["env"]["model"] = "schema.model.default"
