"""Creating Adapters, line 20: the fields of an adapter, each with a value."""

# pyright: basic

import json

ADAPTER = {
    "name": "interface",  # The name of the adapter e.g. "openai"
    "formatted_name": "Interface",  # The formatted name of the adapter e.g. "OpenAI"
    "roles": {
        "llm": "assistant",
        "user": "person",
    },  # The mapping of roles in the config to the LLM's defined roles
    "url": "https://api.example.com/${path}",  # The URL of the LLM to connect to
    "env": {"path": "chat", "team": "blue"},  # Environment variables which can be referenced in the parameters
    "headers": {"X-Team": "${team}"},  # The headers to pass to the request
    "parameters": {"team": "${team}"},  # The parameters to pass to the request
    "body": {"seed": 7},  # Additional body parameters to pass to the request
    "raw": ["--header", "X-Raw: ${team}"],  # Any additional curl arguments to pass to the request
    "opts": {"stream": False},  # Additional options for the adapter
    "handlers": {  # Functions which link the output from the request to CodeCompanion
        "request": {"build_messages": lambda self, messages: {"messages": messages}},
        "response": {
            "parse_chat": lambda self, data: {
                "status": "success",
                "output": {"content": self.env_replaced.team + ": " + json.loads(data["body"])["said"]},
            },
        },
    },
    "schema": {"model": {"default": "m"}},  # Set of parameters for the LLM that the user can customise
}
