"""Prompts as people have typed them, for titles and lists. Pure."""

from __future__ import annotations

from typing import Final

_COMMAND: Final = '\n\n<user_command line="'
_COMMAND_END: Final = "</user_command>"


def as_typed(prompt: str) -> str:
    """Return a prompt without the output of the user's own commands, which the terminal chat adds for the model."""
    return prompt.partition(_COMMAND)[0] if prompt.endswith(_COMMAND_END) else prompt
