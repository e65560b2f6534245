"""Three clients with the official Python SDK share a session; each comes to the server by a connection of its own.

Started by ``test_official_sdk.py`` with the interpreter of the SDK: ``three_sdk_clients.py URL MODEL_URL``.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import sys

from copilot import CopilotClient, RuntimeConnection
from copilot.tools import Tool, ToolResult


async def weather(_invocation: object) -> ToolResult:
    """Answer the call of the tool."""
    return ToolResult(text_result_for_llm="sunny", result_type="success")


async def main(url: str, model_url: str) -> None:
    """Create here, prompt there, answer a tool call from a third client, stream to two."""
    options = {"model": "fake-model", "streaming": True}
    options["provider"] = {"type": "openai", "base_url": model_url, "api_key": "key"}
    tool = Tool(
        name="weather",
        description="The weather",
        parameters={"type": "object"},
        handler=weather,
        skip_permission=True,
    )
    clients = [CopilotClient(connection=RuntimeConnection.for_uri(url)) for _ in range(3)]
    for client in clients:
        await client.start()
    first, second, third = clients
    created = await first.create_session(**options)
    session_id = created.session_id
    resumed = await second.resume_session(session_id, **options)
    helper = await third.resume_session(session_id, **options, tools=[tool])
    seen: dict[str, list[str]] = {"first": [], "third": []}
    ended = asyncio.Event()

    def note(client: str, kind: str) -> None:
        # The first client may be told of the third's arrival before it listens, or after.
        if kind != "session.resume":
            seen[client].append(kind)
        if all(kinds.count("session.idle") == 2 for kinds in seen.values()):
            ended.set()

    created.on(lambda event: note("first", event.type.value))
    helper.on(lambda event: note("third", event.type.value))
    answer = await resumed.send_and_wait("the weather?")
    again = await created.send_and_wait("and now?")
    listed = [session.session_id for session in await second.list_sessions()]
    # Only the first two clients have waited for the ends of their prompts.
    await asyncio.wait_for(ended.wait(), 30)
    print(
        json.dumps(
            {
                "answers": [answer.data.content, again.data.content],
                "seen": seen,
                "listed": listed == [session_id],
            }
        )
    )
    for client in clients:
        await client.stop()


asyncio.run(main(*sys.argv[1:]))
