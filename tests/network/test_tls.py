"""TLS: our client and the server over real sockets, with a certificate that only the client's context trusts."""

from __future__ import annotations

import ssl
from pathlib import Path

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from jumpseat.errors import ConfigError
from jumpseat.network.tls import server_context
from jumpseat_client import HandshakeError, ProviderConfig, connect_tcp
from tests.support.certificates import certificate as certificate
from tests.support.limits import WAIT_S
from tests.support.server import running_server, scripted

pytestmark = pytest.mark.anyio


def arguments(certificate: tuple[Path, Path]) -> list[str]:
    return ["--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]), "--host", "0.0.0.0"]


async def test_a_client_that_trusts_the_certificate_runs_a_turn(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    async with running_server(tmp_path, tcp=True, token="sesame", args=arguments(certificate)) as server:
        port = server.port or 0
        async with connect_tcp("127.0.0.1", port, token="sesame", tls=context) as client:
            session = await client.create_session(provider=ProviderConfig(**scripted({"text": "over TLS"})))
            assert await session.ask("hello") == "over TLS"
            # More than one TLS record, and more than is allowed before the first request.
            text = "x" * 1_000_000
            assert (await client.ping(text)).message == f"pong: {text}"
        with pytest.raises(HandshakeError, match="AUTHENTICATION_FAILED"):
            async with connect_tcp("127.0.0.1", port, token="wrong", tls=context):
                pass


async def test_other_handshakes_fail_and_leave_the_server_serving(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    async with running_server(tmp_path, tcp=True, token="sesame", args=arguments(certificate)) as server:
        port = server.port or 0
        with pytest.raises(HandshakeError, match="self-signed certificate"):
            async with connect_tcp("127.0.0.1", port, token="sesame", tls=True):
                pass
        with pytest.raises(HandshakeError, match="localhost"):
            async with connect_tcp("localhost", port, token="sesame", tls=context):
                pass
        with pytest.raises(HandshakeError), anyio.fail_after(WAIT_S):
            async with connect_tcp("127.0.0.1", port, token="sesame"):
                pass
        async with connect_tcp("127.0.0.1", port, token="sesame", tls=context) as client:
            await client.ping()
    assert "sesame" not in server.stderr


async def test_a_client_with_tls_is_told_that_the_server_has_none(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True, token="sesame") as server:
        with pytest.raises(HandshakeError, match="could not connect"):
            async with connect_tcp("127.0.0.1", server.port or 0, token="sesame", tls=True):
                pass


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = map(str, certificate)
    broken = tmp_path / "broken.pem"
    broken.write_text("nonsense")
    other = tmp_path / "other.pem"
    other.write_bytes(_private_key(NoEncryption()))
    locked = tmp_path / "locked.pem"
    locked.write_bytes(_private_key(BestAvailableEncryption(b"secret")))
    for arguments, words in {
        (str(tmp_path / "none.pem"), key): "--tls-cert: cannot read .*none.pem",
        (cert, str(tmp_path / "none.pem")): "--tls-key: cannot read .*none.pem",
        (str(broken), key): "--tls-cert: .*broken.pem' is not a certificate in PEM form",
        (cert, str(broken)): "--tls-key: .*broken.pem' is not a private key in PEM form",
        (cert, str(other)): "--tls-key: .*other.pem' is not the key of the certificate",
        (cert, str(locked)): "--tls-key: .*locked.pem': the key has a password",
        (str(tmp_path), key): "--tls-cert: cannot read",
    }.items():
        with pytest.raises(ConfigError, match=words):
            server_context(*arguments)


def _private_key(encryption: KeySerializationEncryption) -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
