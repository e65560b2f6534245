"""The addresses that a model may reach."""

from __future__ import annotations

import ipaddress

import pytest

from jumpseat.parsing.addresses import is_public
from jumpseat.services.addresses import HostPolicy
from jumpseat.tools.web import WebError
from tests.support.host_names import resolve_names

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "::8.8.8.8",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:db8::1",
        "3fff::1",
        "2620:4f:8000::1",
        "192.88.99.1",
        "192.31.196.1",
    ],
)
def test_addresses_outside_the_public_internet_are_private(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "::1", "0", "localhost."]
)
async def test_a_private_host_is_refused_however_it_is_written(host: str) -> None:
    with pytest.raises(WebError, match=r"is not on the public internet, so it cannot be fetched|cannot be found"):
        await HostPolicy().addresses(host, 80)
    with pytest.raises(WebError, match="is not on the public internet"):
        await HostPolicy().check_name(host, 80)


async def test_private_hosts_are_reached_if_the_operator_allows_them() -> None:
    assert await HostPolicy(allow_private=True).addresses("127.0.0.1", 80) == ["127.0.0.1"]
    assert await HostPolicy(hosts=["127.0.0.0/8"]).addresses("127.0.0.1", 80) == ["127.0.0.1"]
    assert await HostPolicy(hosts=["127.0.0.1"]).addresses("127.0.0.1", 80) == ["127.0.0.1"]
    assert await HostPolicy(hosts=["LocalHost"]).addresses("localhost", 80)
    for hosts in (["10.0.0.0/8"], ["host"], ["127.0.0.2"], ["calhost"], [""]):
        with pytest.raises(WebError):
            await HostPolicy(hosts=hosts).addresses("localhost", 80)


async def test_a_host_with_one_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_names(monkeypatch, {"two.example": ["8.8.8.8", "10.0.0.1"], "fine.example": ["8.8.8.8", "8.8.8.8"]})
    with pytest.raises(WebError, match=r"The host 'two.example' is not on the public internet"):
        await HostPolicy().addresses("two.example", 443)
    assert await HostPolicy().addresses("fine.example", 443) == ["8.8.8.8"]
    with pytest.raises(WebError, match=r"The host 'none.example' cannot be found"):
        await HostPolicy().addresses("none.example", 443)


async def test_an_allowed_name_covers_its_subdomains(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"wiki.corp.example": ["10.0.0.1"], "evilcorp.example": ["10.0.0.1"]}
    resolve_names(monkeypatch, names)
    policy = HostPolicy(hosts=["corp.example"])
    assert await policy.addresses("wiki.corp.example", 443) == ["10.0.0.1"]
    with pytest.raises(WebError):
        await policy.addresses("evilcorp.example", 443)


async def test_names_of_the_local_network_are_not_sent_to_a_proxy_or_a_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_names(monkeypatch, {"wiki.example": ["10.0.0.1"], "site.example": ["8.8.8.8"]})
    for name in ("wiki.example", "intranet", "db.internal", "printer.local", "x.home.arpa"):
        with pytest.raises(WebError, match="is not on the public internet"):
            await HostPolicy().check_name(name, 443)
    for name in ("site.example", "not-known-here.example"):
        await HostPolicy().check_name(name, 443)
    await HostPolicy(hosts=["intranet"]).check_name("intranet", 443)
