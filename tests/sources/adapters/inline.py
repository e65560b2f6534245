"""Creating Adapters: ``parse_inline`` alone, for an endpoint that streams."""

# pyright: basic

import json

from jumpseat.adapters import utilities as utils


# Line 436; the first lines stand for "Data cleansed, parsed and validated".
def parse_inline(self, data, context):
    data = utils.clean_streamed_data(data)
    chunk = json.loads(data)
    content = chunk["choices"][0]["delta"].get("content")
    if content:
        return content


ADAPTER = {
    "url": "https://api.openai.com/v1/chat/completions",
    "handlers": {
        "request": {"build_messages": lambda self, messages: {"messages": messages}},
        "response": {"parse_chat": lambda self, data: None, "parse_inline": parse_inline},
    },
    "schema": {"model": {"mapping": "parameters", "default": "gpt-4-0125-preview"}},
}
