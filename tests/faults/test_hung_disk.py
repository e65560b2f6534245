"""A server ends in time although a thread of it reads from a disk that hangs."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.limits import WAIT_S
from tests.support.server import running_server, scripted

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders"),
]

ENDS: Final = ("stdin", "shutdown", signal.SIGTERM)


@pytest.mark.parametrize("how", ENDS, ids=str)
async def test_a_read_without_an_end_does_not_hold_up_the_end(tmp_path: Path, how: str | signal.Signals) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "answered"}))
        await wire.prompt(session)
        assert sys.platform != "win32"
        # Opening it does not return, because nobody writes to it.
        (server.home / "trusted-folders.json").unlink(missing_ok=True)
        os.mkfifo(server.home / "trusted-folders.json")
        added = {"sessionId": session, "path": str(tmp_path)}
        await wire.ask("session.permissions.folderTrust.addTrusted", added)
        await wire.check_alive()
        match how:
            case "stdin":
                await server.close_stdin()
            case "shutdown":
                await wire.call("runtime.shutdown")
            case signal.Signals():
                server.signal(how)
            case _:
                raise AssertionError(how)
        assert await server.exit_code(WAIT_S) == 0
        assert b"answered" in server.log_of(session).read_bytes()
