"""The texts by which a reader of jumpseat's requests to models knows prompts, and what surrounds them."""

from __future__ import annotations

from typing import Final

PROMPT_MARK: Final = "<current_datetime>"
"""The prefix of every prompt, which other messages with the role user do not have."""

SUMMARY_REQUEST: Final = (
    "Please create a detailed summary of the conversation so far. The history is being compacted"
)
"""The request for a summary. The wire fixes this text and the next one."""

SUMMARIZED: Final = "Some of the conversation history has been summarized to free up context."


def last_prompt(text: str) -> str:
    """Return the last prompt in the message for a compacted conversation, and any other ``text`` unchanged."""
    if not text.startswith(SUMMARIZED):
        return text
    head = text.partition("\n</user_message>\n\nHere is a summary of the prior context:\n")[0]
    return head.rpartition("<user_message>\n")[2]
