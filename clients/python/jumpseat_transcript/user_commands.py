"""Hand the output of the user's own commands to the model, at the end of the next prompt. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MOST_CHARS: Final = 16_000
"""Characters of an output that the model is given: its end."""
_START: Final = re.compile(r'\n\n<user_command line="([^"\n]*)">\n')
_END: Final = "</user_command>"


@dataclass(frozen=True, slots=True)
class UserCommand:
    """A command that the user has run: its line, its output and how it ended."""

    line: str
    output: str
    status: str

    def text(self) -> str:
        """Return the text for the model."""
        output = self.output[-MOST_CHARS:].strip("\n").replace("</user_command", "<\\/user_command")
        cut = "[the beginning is left out]\n" if len(self.output) > MOST_CHARS else ""
        line = " ".join(self.line.split()).replace('"', "'")
        return f'\n\n<user_command line="{line}">\n{cut}{output}\n[{self.status}]\n</user_command>'


def join_prompt(prompt: str, commands: Sequence[UserCommand]) -> str:
    """Return the prompt, followed by the commands that the user has run since the last one."""
    return prompt + "".join(command.text() for command in commands)


def split_prompt(text: str) -> tuple[str, list[str]]:
    """Split the output of :func:`join_prompt` into the prompt and the lines of the commands."""
    lines: list[str] = []
    while text.endswith(_END) and (found := _START.search(text, max(0, text.rfind(_END, 0, -len(_END))))):
        text = text[: found.start()]
        lines.insert(0, found[1])
    return text, lines
