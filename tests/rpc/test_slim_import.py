"""Importing only the JSON-RPC half of pygls: it leaves no trace, and the normal import works as well."""

from __future__ import annotations

import subprocess
import sys

import pytest

USE = """
import anyio, orjson
from jumpseat.rpc.json_rpc_peer import JsonRpcPeer, json_rpc

async def main():
    sent = []
    async with anyio.create_task_group() as tasks:
        peer = JsonRpcPeer(sent.append, tasks)
        peer.find = {"ping": lambda params: params}.get
        for method in ("ping", "pong"):
            peer.receive(orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"a b": 1}}))
    assert [orjson.loads(one) for one in sent] == [
        {"jsonrpc": "2.0", "id": 1, "result": {"a b": 1}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Unhandled method pong"}},
    ], sent

anyio.run(main)
"""

ALONE = "import sys; assert not {'pygls', 'lsprotocol', 'lsprotocol.types'} & set(sys.modules)\n"
WHOLE = "import pygls.protocol as p; assert p.LanguageServerProtocol and p.default_converter()\n"
OURS_IS_THEIRS = "assert json_rpc is p.json_rpc, json_rpc\n"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(USE + ALONE + WHOLE, id="alone without a trace, and all of pygls afterwards"),
        pytest.param(WHOLE + USE + OURS_IS_THEIRS, id="all of pygls before"),
        pytest.param(
            "import importlib.util as u; find = u.find_spec\n"
            "u.find_spec = lambda name: None if name == 'pygls' else find(name)\n"
            + USE
            + "import pygls.protocol as p\n"
            + OURS_IS_THEIRS,
            id="the ordinary way where the short one fails",
        ),
    ],
)
def test_the_peer_works_however_pygls_was_loaded(code: str) -> None:
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
