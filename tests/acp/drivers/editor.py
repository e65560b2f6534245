"""An editor on the PyPI package ``agent-client-protocol``; prints what it has seen, and all messages, as JSON.

The editor runs in a virtual environment of its own. Its arguments are the agent's command or a URL of tcp:, a
working directory, and the arguments of the command. The token of a URL is in the environment.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# The package lives in a virtual environment of its own, where the type checker does not look.

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import acp
from acp import schema
from acp.connection import StreamDirection

# The token of the server, and the folder of its home: this SDK passes only well-known variables to the agent.
PASSED = ("COPILOT_CONNECTION_TOKEN", "COPILOT_HOME")


class Editor:
    """An editor that approves everything, and reads and writes files on disk."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.spoke = asyncio.Event()

    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **_: Any) -> Any:
        self.asked.append(tool_call.title)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True, mode="json"))
        if update.session_update == "agent_message_chunk":
            self.spoke.set()

    async def write_text_file(self, content: str, path: str, session_id: str, **_: Any) -> Any:
        await asyncio.to_thread(Path(path).write_text, content)
        return schema.WriteTextFileResponse()

    async def read_text_file(self, path: str, session_id: str, **_: Any) -> Any:
        return schema.ReadTextFileResponse(content=await asyncio.to_thread(Path(path).read_text))

    def on_connect(self, conn: Any) -> None:
        pass


@asynccontextmanager
async def connected(editor: Editor, where: str, arguments: list[str], observer: Any) -> AsyncIterator[Any]:
    options: dict[str, Any] = {"use_unstable_protocol": True, "observers": [observer]}
    if where.startswith("tcp:"):
        url = urlsplit(where)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        agent = acp.connect_to_agent(editor, writer, reader, **options)
        yield agent
        await agent.close()
        writer.close()
        return
    # The agent warns where a busy machine holds it up.
    argv = (where, *(arguments or ("acp", "--log-level", "error")))
    env = {name: os.environ[name] for name in PASSED if name in os.environ}
    async with acp.spawn_agent_process(editor, *argv, env=env, **options) as (agent, _process):
        yield agent


async def main(where: str, cwd: str, *arguments: str) -> None:
    editor = Editor()
    seen: dict[str, Any] = {}
    messages: list[dict[str, Any]] = []

    def keep(event: Any) -> None:
        sender = "client" if event.direction is StreamDirection.OUTGOING else "agent"
        messages.append({"from": sender, "message": event.message})

    token = os.environ.get("COPILOT_CONNECTION_TOKEN")
    meta = {} if token is None else {"jumpseat": {"token": token}}
    async with connected(editor, where, list(arguments), keep) as agent:
        fs = schema.FileSystemCapabilities(read_text_file=True, write_text_file=True)
        hello = await agent.initialize(1, client_capabilities=schema.ClientCapabilities(fs=fs), **meta)
        seen["version"] = hello.protocol_version
        await agent.authenticate(method_id=hello.auth_methods[0].id)
        opened = await agent.new_session(cwd=cwd, mcp_servers=[])
        seen["options"] = [option.id for option in opened.config_options]
        # In the second one, plan mode, nothing is changed.
        for mode in reversed(opened.modes.available_modes[:2]):
            await agent.set_session_mode(mode_id=mode.id, session_id=opened.session_id)
        answer = await agent.prompt(session_id=opened.session_id, prompt=[acp.text_block("please edit")])
        seen["stop"] = answer.stop_reason
        editor.spoke.clear()
        prompt = agent.prompt(session_id=opened.session_id, prompt=[acp.text_block("please hang")])
        hanging = asyncio.create_task(prompt)
        await editor.spoke.wait()
        await agent.cancel(session_id=opened.session_id)
        seen["cancelled"] = (await hanging).stop_reason
        listed = await agent.list_sessions()
        seen["listed"] = [session.title for session in listed.sessions]
        before = len(editor.updates)
        await agent.load_session(cwd=cwd, session_id=opened.session_id, mcp_servers=[])
        seen["replayed"] = sorted({update["sessionUpdate"] for update in editor.updates[before:]})
        await agent.close_session(session_id=opened.session_id)
    seen["kinds"] = sorted({update["sessionUpdate"] for update in editor.updates})
    seen["asked"] = editor.asked
    print(json.dumps({**seen, "messages": messages}))


asyncio.run(main(*sys.argv[1:]))
