"""Replicas log in to NATS over TLS, and say in one line why they cannot start."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
import trustme

from tests.cluster.replicas import answers
from tests.support.nats import running_nats
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio


async def failure_of(folder: Path, config: str, *args: str, **environ: str) -> str:
    """Start a server that must fail, and return what it says."""
    (folder / "config.toml").write_text(config)
    program = str(Path(sys.executable).with_name("jumpseat"))
    environ |= {"COPILOT_HOME": str(folder), "PATH": "/bin"}
    with anyio.fail_after(60):
        done = await anyio.run_process([program, *args], check=False, env=environ, stdin=-3)
    assert done.returncode == 1
    return done.stderr.decode()


async def test_a_replica_logs_in_with_a_token_over_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    security = (
        f'authorization {{ token: "secret" }}\n'
        f'tls {{ cert_file: "{tmp_path}/server.pem", key_file: "{tmp_path}/server.pem" }}\n'
    )
    async with running_nats(tmp_path, more=security) as nats:
        config = nats.config(token_env="NATS_TOKEN", tls_ca=str(tmp_path / "ca.pem"))
        provider = scripted({"text": "hello"})
        async with running_server(tmp_path / "replica", config=config, env={"NATS_TOKEN": "secret"}) as server:
            session = await server.wire.create(provider)
            assert answers(await server.wire.prompt(session)) == ["hello"]
        serve = ("--headless", "--stdio")
        assert "store.token_env: the environment variable 'NATS_TOKEN' is not set" in await failure_of(
            tmp_path, config, *serve
        )
        wrong = await failure_of(tmp_path, config, *serve, NATS_TOKEN="wrong")
        assert "NATS does not accept the credentials" in wrong
        assert "wrong" not in wrong


async def test_an_editor_and_an_address_with_a_password_are_refused(tmp_path: Path) -> None:
    config = '[store]\nurl = "nats://127.0.0.1:1"\n'
    assert "store.url is not available with --acp" in await failure_of(tmp_path, config, "acp")
    secret = '[store]\nurl = "nats://user:hidden@127.0.0.1:1"\n'
    refused = await failure_of(tmp_path, secret, "--headless", "--stdio")
    assert "credentials do not belong in this file" in refused
    assert "hidden" not in refused
