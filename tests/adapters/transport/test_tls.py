"""Declared adapters behind TLS: private authorities, client certificates, no verification, and proxies."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.support.model_server import ModelServer
from tests.support.provided import answer_of_new_session, error_of_new_session, streamed_completion
from tests.support.server import running_server

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return a certificate authority that no system trusts."""
    return trustme.CA(organization_name="Authority of the tests")


def shown_by(authority: trustme.CA, *, asks_back: trustme.CA | None = None) -> ssl.SSLContext:
    """Return the TLS context of a server, which may require a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    if asks_back is not None:
        asks_back.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def config(url: str, *raw: str) -> str:
    flags = ", ".join(f"'{flag}'" for flag in raw)
    return f'[retry]\nattempts = 1\n[adapters.far]\ntype = "openai"\nbase_url = "{url}/v1"\nraw = [{flags}]\n'


async def test_a_server_with_an_authority_trusted_by_its_adapter_only_is_called(
    tmp_path: Path, authority: trustme.CA
) -> None:
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    async with ModelServer(streamed_completion("Trusted."), tls=shown_by(authority)) as model:
        near = f'[adapters.near]\ntype = "openai"\nbase_url = "{model.url}/v1"\n'
        async with running_server(tmp_path, config=config(model.url, "--cacert", str(file)) + near) as server:
            assert await answer_of_new_session(server, model="far/m") == "Trusted."
            assert "cannot verify the certificate of" in await error_of_new_session(server, model="near/m")


async def test_an_adapter_without_verification_accepts_an_untrusted_certificate(
    tmp_path: Path, authority: trustme.CA
) -> None:
    async with (
        ModelServer(streamed_completion("Whoever you are."), tls=shown_by(authority)) as model,
        running_server(tmp_path, config=config(model.url, "--insecure")) as server,
    ):
        assert await answer_of_new_session(server, model="far/m") == "Whoever you are."


async def test_a_server_that_requires_a_certificate_gets_that_of_the_adapter(
    tmp_path: Path, authority: trustme.CA
) -> None:
    own = authority.issue_cert("me@example.com")
    cert, key, ca = (tmp_path / name for name in ("me.pem", "me.key", "ca.pem"))
    own.cert_chain_pems[0].write_to_path(str(cert))
    own.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(ca))
    async with ModelServer(
        streamed_completion("I know you."), tls=shown_by(authority, asks_back=authority)
    ) as model:
        shown = config(model.url, "--cacert", str(ca), "--cert", str(cert), "--key", str(key))
        async with running_server(tmp_path, config=shown) as server:
            assert await answer_of_new_session(server, model="far/m") == "I know you."
        (tmp_path / "home" / "config.toml").write_text(config(model.url, "--cacert", str(ca)))
        async with running_server(tmp_path) as server:
            assert await error_of_new_session(server, model="far/m")


@pytest.mark.parametrize("flag", ["--cacert", "--cert"])
async def test_a_missing_certificate_file_is_named(tmp_path: Path, flag: str) -> None:
    async with running_server(tmp_path, config=config("https://127.0.0.1:9", flag, "/not/there.pem")) as server:
        assert f"'/not/there.pem', given by {flag}" in await error_of_new_session(server, model="far/m")


@asynccontextmanager
async def tunnel() -> AsyncGenerator[tuple[str, list[str]]]:
    """Run a CONNECT proxy, which sees only the targets of calls; yields its address and the requests."""
    requests: list[str] = []

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while piece := await source.read(65536):
            target.write(piece)
            await target.drain()
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        requests.append(head)
        host, _, port = head.split()[1].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer), return_exceptions=True)

    server: Any = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", requests
    finally:
        server.close()


async def test_a_proxy_before_tls_gets_its_password_and_not_the_call(tmp_path: Path, authority: trustme.CA) -> None:
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    async with (
        tunnel() as (proxy, requests),
        ModelServer(streamed_completion("Through."), tls=shown_by(authority)) as model,
    ):
        flags = ("--cacert", str(file), "--proxy", f"http://me:hidden@{proxy}")
        async with running_server(tmp_path, config=config(model.url, *flags)) as server:
            assert await answer_of_new_session(server, model="far/m") == "Through."

    assert requests[0].startswith(f"CONNECT {model.url.removeprefix('https://')} ")
    assert "proxy-authorization: basic " in requests[0].lower()
    assert "/chat/completions" not in requests[0]
