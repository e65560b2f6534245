"""Creating Adapters: the environment variables of Gemini, in all their forms."""

# pyright: basic

import os

# Line 85.
ADAPTER = {
    "extends": "gemini",
    "url": "https://generativelanguage.googleapis.com/v1beta/models/${model}:streamGenerateContent"
    "?alt=sse&key=${api_key}",
    "env": {
        "api_key": "GEMINI_API_KEY",
        "model": "schema.model.default",
    },
    "schema": {"model": {"default": "gemini-2.0-flash"}},
}

FORMS = {
    # Line 108: a command.
    "command": {"api_key": "cmd:op read op://personal/Gemini_API/credential --no-newline"},
    # Line 120: an environment variable.
    "variable": {"api_key": "GEMINI_API_KEY"},
    # Line 130: a function.
    "function": {"api_key": lambda: os.getenv("GEMINI_API_KEY")},
    # Line 142: a path in the schema.
    "path": {"model": "schema.model.default"},
    # Line 99: a plain text value.
    "text": {"api_key": "the-plain-key"},
}
