"""A client of a busy session with the official Python SDK, which resumes the session whenever it is cut off.

Started by ``sdk_client.py`` with the interpreter of the SDK: ``busy_sdk_client.py URL SESSION PROVIDER``. It prints
a line of JSON for each event that it is told, and for each attachment; a line on its stdin makes it rest.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import sys

from copilot import CopilotClient, RuntimeConnection


def tell(**line: object) -> None:
    """Print a line of JSON."""
    print(json.dumps(line), flush=True)


async def use(url: str, session_id: str, provider: dict[str, object], rest: asyncio.Event) -> None:
    """Attach, and prompt until the connection is gone or it is time to rest."""
    client = CopilotClient(connection=RuntimeConnection.for_uri(url))
    idle = asyncio.Event()

    def take(event) -> None:
        tell(id=str(event.id), type=event.type.value, ephemeral=bool(event.ephemeral))
        if event.type.value == "session.idle":
            idle.set()

    await client.start()
    try:
        # The handler of an event must be there before the first one.
        tell(attached=True)
        session = await client.resume_session(session_id, provider=provider, model="scripted", on_event=take)
        number = 0
        while not rest.is_set():
            number += 1
            idle.clear()
            await session.send(f"text it again {number}")
            await asyncio.wait_for(idle.wait(), 100)
            await asyncio.sleep(1)
        while True:
            # Notice the end of the connection.
            await client.ping("still there?")
            tell(rests=True)
            await asyncio.sleep(1)
    finally:
        tell(attached=False)
        await client.force_stop()


async def main(url: str, session_id: str, provider: str) -> None:
    """Connect again and again until the process is killed."""
    rest = asyncio.Event()

    async def read() -> None:
        await asyncio.to_thread(sys.stdin.readline)
        rest.set()

    reading = asyncio.create_task(read())
    while not reading.cancelled():
        try:
            await asyncio.wait_for(use(url, session_id, json.loads(provider), rest), 600)
        except Exception as error:
            tell(error=f"{type(error).__name__}: {error}"[:100])
            await asyncio.sleep(0.3)


asyncio.run(main(*sys.argv[1:]))
