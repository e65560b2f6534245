"""The Agent Host Protocol in a cluster: any replica serves any session, whoever owns it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.ahp.client import check_equal, connected
from tests.cluster.replicas import Replicas, running_replicas

pytestmark = pytest.mark.anyio

MODEL: Final = '[adapters.fake]\ntype = "scripted"\nscript = "script.json"\nmodels = ["one"]\n'
PREFIX: Final = "jumpseat serves WebSocket clients on port "


@asynccontextmanager
async def hosts(
    folder: Path, script: Mapping[str, Any], count: int = 2, **options: Any
) -> AsyncGenerator[tuple[Replicas, list[int]]]:
    """Run replicas whose models are scripted, and yield their WebSocket ports, too."""
    for number in range(count):
        home = folder / f"replica{number}" / "home"
        home.mkdir(parents=True)
        (home / "script.json").write_text(json.dumps(script))
    args = ("--ws-port", "0", *options.pop("args", ()))
    async with running_replicas(folder, count, more=MODEL, args=args, patience_s=5, **options) as replicas:
        yield replicas, [int((await server.next_line()).removeprefix(PREFIX)) for server in replicas.servers]


async def test_a_session_of_another_replica_is_like_one_of_this(tmp_path: Path) -> None:
    script = {"turns": [{"text": "hello"}]}
    async with hosts(tmp_path, script) as (_, (here, there)), connected(here, "a") as owner:
        uri = await owner.create()
        async with connected(there, "b") as guest:
            await guest.join(uri)
            assert (await guest.prompt("t1", "hi"))["action"]["turnId"] == "t1"
            await guest.action("chat/turnComplete")
            await owner.action("chat/turnComplete")
            [turn] = guest.states[guest.chat]["turns"]
            assert turn["responseParts"][0]["content"] == "hello"
            assert owner.states[owner.chat] == guest.states[guest.chat]
            await check_equal(there, guest)
            await check_equal(here, owner)
