"""Proxies and certificates of the environment."""

from __future__ import annotations

import socket
import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import anyio
import pytest

from jumpseat.adapters.adapter import Network, Timeouts
from jumpseat.adapters.transport.http import HttpTransport
from jumpseat.adapters.transport.network import Proxies
from jumpseat.adapters.transport.url import parse_url
from jumpseat.errors import ProviderTransportError
from tests.support.cases import all_cases
from tests.support.certificates import certificate as certificate
from tests.support.limits import WAIT_S
from tests.support.model_server import ModelServer, json_reply
from tests.support.ports import closed_port

PROXY = "http://proxy:3128"
VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")


ADDRESSES: Final[list[tuple[str, str, str | None]]] = [
    ("http://model.example/v1", "", PROXY),
    ("https://model.example/v1", "", "http://secure:1"),
    ("http://localhost:8080/", "", None),
    ("http://dev.localhost/", "", None),
    ("http://127.0.0.1:8080/", "", None),
    ("http://127.9.9.9/", "", None),
    ("http://[::1]:8080/", "", None),
    ("http://model.example/", "*", None),
    ("http://model.example/", "other.example, model.example", None),
    ("http://a.model.example/", "model.example", None),
    ("http://a.model.example/", ".model.example", None),
    ("http://a.model.example/", "*.model.example", None),
    ("http://amodel.example/", "model.example", PROXY),
    ("http://MODEL.example/", "Model.Example", None),
    ("http://model.example:81/", "model.example:81", None),
    ("http://model.example/", "model.example:81", PROXY),
    ("http://model.example/", "model.example:80", None),
    ("http://10.1.2.3/", "10.0.0.0/8", None),
    ("http://11.1.2.3/", "10.0.0.0/8", PROXY),
    ("http://10.1.2.3/", "10.1.2.3", None),
    ("http://10.1.2.30/", "10.1.2.3", PROXY),
    ("http://10.1.2.3/", "example.org,nonsense/8,,", PROXY),
    ("http://[fd00::1]/", "fd00::/8", None),
    ("http://[fd00::1]:90/", "[fd00::1]:90", None),
    ("http://[fd00::1]:91/", "[fd00::1]:90", PROXY),
    ("http://10.1.2.3/", "fd00::/8", PROXY),
]


def test_an_address_is_reached_through_its_proxy_unless_it_is_exempt() -> None:
    with all_cases() as case:
        for url, bypass, expected in ADDRESSES:
            with case(f"{url} bypassing {bypass!r}"):
                proxies = Proxies({"http": PROXY, "https": "http://secure:1"}, bypass)

                assert proxies.for_url(parse_url(url)) == expected


def test_proxies_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", "")
    monkeypatch.setenv("ALL_PROXY", "proxy:3128")
    monkeypatch.setenv("no_proxy", "a.example")

    assert Proxies.from_environment() == Proxies({"all": PROXY}, "a.example")
    assert Proxies.from_environment().for_url(parse_url("https://b.example")) == PROXY


@pytest.fixture
def no_certificate_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


async def _ask(certificate: tuple[Path, Path]) -> object:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with anyio.fail_after(WAIT_S):
        async with ModelServer(json_reply({"ok": True}), tls=context) as server, HttpTransport() as transport:
            return await transport.get_json(server.url, {})


@pytest.mark.anyio
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
@pytest.mark.usefixtures("no_certificate_variables")
async def test_a_certificate_named_by_the_environment_is_trusted(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(certificate[0]))

    assert await _ask(certificate) == {"ok": True}


@pytest.mark.anyio
@pytest.mark.usefixtures("no_certificate_variables")
async def test_an_untrusted_certificate_is_an_error_without_retry(certificate: tuple[Path, Path]) -> None:
    with pytest.raises(ProviderTransportError, match="cannot verify the certificate of https://") as caught:
        await _ask(certificate)

    assert not caught.value.retryable


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["ca_file", "insecure", "client_cert"])
@pytest.mark.usefixtures("no_certificate_variables")
async def test_certificates_apply_to_their_adapter_only(certificate: tuple[Path, Path], way: str) -> None:
    cert, key = map(str, certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    network = {
        "ca_file": Network(ca_file=cert),
        "insecure": Network(insecure=True),
        "client_cert": Network(ca_file=cert, client_cert=cert, client_key=key),
    }[way]
    if way == "client_cert":
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cert)
    with anyio.fail_after(WAIT_S):
        async with ModelServer(json_reply({"ok": True}), tls=context) as server, HttpTransport() as transport:
            assert await transport.with_network(network).get_json(server.url, {}) == {"ok": True}
            assert transport.with_network(network) is transport.with_network(network)
            with pytest.raises(ProviderTransportError, match="cannot verify the certificate"):
                await transport.get_json(server.url, {})


@pytest.mark.anyio
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"])
@pytest.mark.usefixtures("no_certificate_variables")
async def test_an_unreadable_certificate_file_is_named_with_its_variable(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "missing.pem"))

    with pytest.raises(
        ProviderTransportError, match=rf"cannot load certificates from '.*missing\.pem', given by {variable}"
    ) as caught:
        await _ask(certificate)
    assert not caught.value.retryable


@pytest.mark.anyio
async def test_an_invalid_proxy_is_reported_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "gopher://me:hidden@proxy")

    async with HttpTransport() as transport:
        with (
            anyio.fail_after(WAIT_S),
            pytest.raises(ProviderTransportError, match="invalid proxy in the environment") as caught,
        ):
            await transport.get_json("http://model.invalid/", {})
    assert "hidden" not in str(caught.value)
    assert not caught.value.retryable


@pytest.mark.anyio
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_an_unreachable_proxy_is_named_without_its_password(scheme: str) -> None:
    with closed_port() as port:
        async with HttpTransport() as transport:
            proxied = transport.with_network(Network(proxy=f"http://me:hidden@127.0.0.1:{port}"))
            with anyio.fail_after(WAIT_S), pytest.raises(ProviderTransportError) as caught:
                await proxied.get_json(f"{scheme}://model.invalid/x", {})

    peer = f"the proxy http://127.0.0.1:{port} for {scheme}://model.invalid/x"
    assert str(caught.value) == f"cannot connect to {peer}: connection refused"


@pytest.mark.anyio
@pytest.mark.parametrize("by_proxy", [False, True])
async def test_a_connection_that_is_not_accepted_times_out(by_proxy: bool) -> None:
    with ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        # Once the backlog of a listener is full, new connections get no answer.
        for _ in range(8):
            waiting = held.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        url = f"http://127.0.0.1:{address[1]}"
        async with HttpTransport() as transport:
            way = transport.with_network(Network(proxy=url)) if by_proxy else transport
            target = "http://model.invalid" if by_proxy else url
            with anyio.fail_after(WAIT_S), pytest.raises(ProviderTransportError) as caught:
                await way.get_json(target, {}, timeouts=Timeouts(connect=0.25))

    peer = f"the proxy {url} for {target}" if by_proxy else url
    assert str(caught.value) == f"cannot connect to {peer} within 0.25 s"
    assert caught.value.retryable
