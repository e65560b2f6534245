"""Creating Adapters: the adapter for OpenAI that the guide builds, complete."""

# pyright: basic

import json
import logging

# Line 273: put this at the top of your adapter.
from jumpseat.adapters import utilities as utils

log = logging.getLogger(__name__)


# Line 235.
def build_messages(self, messages):
    return {"messages": messages}


# Line 353.
def parse_chat(self, data):
    output = {}

    if data and data != "":
        data = utils.clean_streamed_data(data)
        chunk = json.loads(data)

        delta = chunk["choices"][0]["delta"]

        if delta.get("content") is not None:
            output["content"] = delta["content"]
            output["role"] = delta.get("role") or None

            return {
                "status": "success",
                "output": output,
            }


# Line 420.
def build_parameters(self, params, messages):
    return params


# Line 436; the first lines stand for "Data cleansed, parsed and validated".
def parse_inline(self, data, context):
    data = utils.clean_streamed_data(data)
    chunk = json.loads(data)
    content = chunk["choices"][0]["delta"].get("content")
    if content:
        return content


# Line 486.
def on_exit(self, data):
    if data["status"] >= 400:
        log.error("Error: %s", data["body"])


# Line 512.
def setup(self):
    # Perform initialization
    return True  # Must return boolean


def teardown(self):
    # Clean up resources
    pass


ADAPTER = {
    "name": "openai_guide",
    "formatted_name": "OpenAI",
    "roles": {"llm": "assistant", "user": "user"},
    "opts": {"stream": True},
    "url": "https://api.openai.com/v1/chat/completions",
    "env": {"api_key": "OPENAI_API_KEY"},
    "headers": {"Content-Type": "application/json", "Authorization": "Bearer ${api_key}"},
    "parameters": {"stream": True},
    "handlers": {
        "lifecycle": {"setup": setup, "on_exit": on_exit, "teardown": teardown},
        "request": {"build_messages": build_messages, "build_parameters": build_parameters},
        "response": {"parse_chat": parse_chat},
    },
    "schema": {"model": {"mapping": "parameters", "default": "gpt-4-0125-preview"}},
}
