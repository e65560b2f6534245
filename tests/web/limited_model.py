"""A Copilot API on loopback with a rate-limited model and one that it chooses itself, until the end of stdin."""

from __future__ import annotations

import json
import sys

import anyio
import anyio.to_thread

from tests.support.fake_copilot import fake_copilot


async def serve() -> None:
    """Print the environment of a server that uses the API, and serve it."""
    async with fake_copilot() as copilot:
        copilot.models.append({"id": "auto"})
        copilot.limited["by-chat"] = "user_weekly_rate_limited"
        print(json.dumps(copilot.environ), flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    anyio.run(serve)
