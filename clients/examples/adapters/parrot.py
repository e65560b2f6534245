import json


def build_messages(adapter, messages):
    lines = []
    for message in messages:
        if message.get("content"):
            lines.append({"from": message["role"], "text": message["content"]})
    return {"lines": lines}


def build_tools(adapter, tools):
    functions = [entry["function"] for tool in tools for entry in tool.values()]
    return {"abilities": [{"name": function["name"], "takes": function["parameters"]} for function in functions]}


def parse_chat(adapter, data, tools):
    answer = json.loads(data["body"])
    if "use" in answer:
        use = answer["use"]
        tools.append({"id": "1", "name": use["name"], "input": use["with"]})
    return {"status": "success", "output": {"content": answer.get("say", "")}}


def parse_tokens(adapter, data):
    return json.loads(data["body"]).get("words")


def format_response(adapter, tool_call, output):
    return {"role": "tool", "content": output, "tools": {"call_id": tool_call["id"]}}


ADAPTER = {
    "name": "parrot",
    "formatted_name": "Parrot",
    "url": "http://127.0.0.1:8124/parrot",
    "env": {"api_key": "LOCAL_KEY"},
    "headers": {"Authorization": "Bearer ${api_key}"},
    "roles": {"user": "human", "llm": "bird"},
    "opts": {"stream": False, "tools": True},
    "schema": {
        "model": {"default": "polly", "choices": ["polly"]},
        "volume": {"mapping": "body", "type": "integer", "default": 1, "minimum": 1, "maximum": 5},
    },
    "handlers": {
        "request": {"build_messages": build_messages, "build_tools": build_tools},
        "response": {"parse_chat": parse_chat, "parse_tokens": parse_tokens},
        "tools": {"format_response": format_response},
    },
    "samples": [
        {"body": {"say": "Hello!", "words": 1}, "text": "Hello!"},
        {"body": {"use": {"name": "count_words", "with": {"path": "poem.txt"}}}, "calls": ["count_words"]},
    ],
}
