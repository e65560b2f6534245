"""A client with the official Python SDK, beside clients of two other protocols.

Started by ``test_three_doors.py`` with the interpreter of the SDK: ``sdk_of_three.py URL ROLE SESSION``. It creates
the session if SESSION is ``-``, and prints one JSON object per line: the session, and then all events. Lines on
stdin are prompts. Only a client whose role is ``approves`` answers questions.
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import sys

from copilot import CopilotClient, RuntimeConnection
from copilot.session import PermissionHandler


async def no_answer(*_: object) -> None:
    """Leave a question to others."""
    await asyncio.Event().wait()


async def main(url: str, role: str, session_id: str) -> None:
    """Attach to the session and show its events until stdin ends."""
    client = CopilotClient(connection=RuntimeConnection.for_uri(url))
    await client.start()
    handler = PermissionHandler.approve_all if role == "approves" else no_answer
    options = {"model": "fake/one", "streaming": True, "on_permission_request": handler}
    if session_id == "-":
        session = await client.create_session(**options)
    else:
        session = await client.resume_session(session_id, **options)
    session.on(lambda event: print(json.dumps(event.to_dict()), flush=True))
    print(json.dumps({"session": session.session_id}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        await session.send(line.decode().strip())


asyncio.run(main(*sys.argv[1:]))
