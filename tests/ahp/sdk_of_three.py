"""A client with the official Python SDK, beside clients of two other protocols.

Started by ``test_three_doors.py`` with the interpreter of the SDK: ``sdk_of_three.py URL ROLE SESSION``. It creates
the session if SESSION is ``-``, and prints one JSON object per line: the session, and then all events. Lines on
stdin are prompts, or ``/cancel``. Only a client whose role is ``decides`` answers questions: it allows all but
``never.txt``, and chooses "Blue".
"""

# pyright: basic, reportMissingImports=false
from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from copilot import CopilotClient, RuntimeConnection
from copilot.generated.rpc import (
    PermissionDecisionApproveOnce,
    PermissionDecisionReject,
    UIHandlePendingUserInputRequest,
    UIUserInputResponse,
)


def decide(request: object, _: object) -> object:
    """Deny one file, and allow everything else."""
    # Without feedback, the turn would end.
    return PermissionDecisionReject("No.") if "never.txt" in str(request) else PermissionDecisionApproveOnce()


async def no_answer(*_: object) -> None:
    """Leave a question to others."""
    await asyncio.Event().wait()


async def main(url: str, role: str, session_id: str) -> None:
    """Attach to the session and show its events until stdin ends."""
    client = CopilotClient(connection=RuntimeConnection.for_uri(url))
    await client.start()
    options = {"model": "fake/one", "streaming": True, "on_permission_request": no_answer}
    if role == "decides":
        options["on_permission_request"] = decide
    if session_id == "-":
        session = await client.create_session(**options)
    else:
        session = await client.resume_session(session_id, **options)
    answers: set[asyncio.Task[object]] = set()

    def answer(event: Any) -> None:
        given = UIUserInputResponse(answer="Blue", was_freeform=False)
        request = UIHandlePendingUserInputRequest(event.data.request_id, given)
        answers.add(asyncio.create_task(session.rpc.ui.handle_pending_user_input(request)))

    if role == "decides":
        # The session asks the editor directly; whoever sees the event may answer first.
        session.on(lambda event: answer(event) if event.to_dict()["type"] == "user_input.requested" else None)
    session.on(lambda event: print(json.dumps(event.to_dict()), flush=True))
    print(json.dumps({"session": session.session_id}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        if line == b"/cancel\n":
            await session.abort()
        else:
            await session.send(line.decode().strip())


asyncio.run(main(*sys.argv[1:]))
