"""Connect confined commands to hosts: directly to checked addresses, or through the proxy of the environment."""

from __future__ import annotations

import base64
from typing import Final

import anyio
import h11
from anyio.abc import ByteStream

from jumpseat.adapters.transport.network import Proxies, tls_context
from jumpseat.adapters.transport.url import Url, parse_url
from jumpseat.sandbox.proxy import UnreachableError
from jumpseat.services.addresses import HostPolicy, PrivateHostError
from jumpseat.tools.web import WebError

ATTEMPT_S: Final = 10.0
"""Time limit for connecting to one address."""

_MAX_HEAD_BYTES: Final = 64 * 1024


async def connect_host(host: str, port: int, *, private: bool, proxy: str | None) -> ByteStream:
    """Connect to a host; see :class:`jumpseat.sandbox.proxy.Connect`."""
    policy = HostPolicy(allow_private=private)
    shown = f"[{host}]" if ":" in host else host
    proxy_url = proxy or Proxies.from_environment().for_url(parse_url(f"https://{shown}:{port}/"))
    try:
        if proxy_url is not None:
            await policy.check_name(host, port)
            return await _through(parse_url(proxy_url), f"{shown}:{port}")
        addresses = await policy.addresses(host, port)
    except PrivateHostError:
        raise UnreachableError(
            "its address is private, and [sandbox] hosts in config.toml does not list it"
        ) from None
    except WebError:
        raise UnreachableError("it cannot be found") from None
    return await _direct(addresses, port)


async def _direct(addresses: list[str], port: int) -> ByteStream:
    problem = "it has no address"
    for address in addresses:
        try:
            with anyio.fail_after(ATTEMPT_S):
                return await anyio.connect_tcp(address, port)
        except TimeoutError:
            problem = "it does not answer"
        except OSError as error:
            problem = error.strerror or "connection failed"
    raise UnreachableError(problem)


async def _through(proxy: Url, target: str) -> ByteStream:
    """Open a tunnel through an HTTP proxy."""
    if proxy.scheme not in ("http", "https"):
        raise UnreachableError(f"proxies of the kind {proxy.scheme!r} are not supported for commands")
    port = proxy.port or (443 if proxy.scheme == "https" else 80)
    try:
        with anyio.fail_after(ATTEMPT_S):
            stream: ByteStream
            if proxy.scheme == "https":
                context = tls_context()
                stream = await anyio.connect_tcp(
                    proxy.host, port, ssl_context=context, tls_hostname=proxy.host, tls_standard_compatible=False
                )
            else:
                stream = await anyio.connect_tcp(proxy.host, port)
            return await _tunnel(stream, proxy, target)
    except (TimeoutError, OSError, anyio.BrokenResourceError, anyio.EndOfStream):
        raise UnreachableError(f"the proxy {proxy.host} did not connect to {target}") from None


async def _tunnel(stream: ByteStream, proxy: Url, target: str) -> ByteStream:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
    headers = [("Host", target)]
    if proxy.user:
        pair = f"{proxy.user}:{proxy.password}".encode()
        headers.append(("Proxy-Authorization", f"Basic {base64.b64encode(pair).decode()}"))
    done = False
    try:
        request = connection.send(h11.Request(method="CONNECT", target=target, headers=headers))
        await stream.send(request or b"")
        event = connection.next_event()
        while event is h11.NEED_DATA or isinstance(event, h11.InformationalResponse):
            if event is h11.NEED_DATA:
                # Byte by byte, because data after the response comes from the host and belongs to the program.
                connection.receive_data(await stream.receive(1))
            event = connection.next_event()
        if not isinstance(event, h11.Response) or event.status_code // 100 != 2:
            status = event.status_code if isinstance(event, h11.Response) else "no answer"
            raise UnreachableError(f"the proxy {proxy.host} did not connect to {target}: {status}")
        done = True
        return stream
    except h11.RemoteProtocolError:
        raise UnreachableError(f"the proxy {proxy.host} sent an invalid response") from None
    finally:
        if not done:
            await anyio.aclose_forcefully(stream)
