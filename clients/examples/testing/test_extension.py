"""A test of an extension with a scripted model: no key, no network, the same answers each time."""

from __future__ import annotations

import anyio
from extension import release_note

from jumpseat_client import ProviderConfig, connect_stdio

SCRIPT = {
    "turns": [
        {
            # The test fails if the prompt is another one.
            "expect": {"user": "Write a release note for the changes since 1.4."},
            "tool_calls": [{"name": "list_changes", "arguments": {"since": "1.4"}}],
        },
        # The model repeats what the tool has returned.
        {"text": "New: {{last_tool_result}}"},
    ]
}


def test_the_note_has_the_changes() -> None:
    async def note() -> str:
        async with connect_stdio() as client:
            return await release_note(client, ProviderConfig(type="scripted", script=SCRIPT), "1.4")

    assert "Fix the total of empty carts" in anyio.run(note)
