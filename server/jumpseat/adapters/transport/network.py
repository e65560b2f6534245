"""Network settings from the environment: proxies and trusted certificates.

They are read once, at the first request. An empty variable counts as unset.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import sys

from msgspec import Struct

from jumpseat.adapters.adapter import Network
from jumpseat.adapters.transport.url import DEFAULT_PORTS, Address


class Proxies(Struct, frozen=True):
    """The proxies to use, by URL scheme, and the hosts to connect to directly.

    ``by_scheme`` maps ``http``, ``https`` and ``all`` to proxy URLs. ``bypass`` is the value of ``NO_PROXY``, a
    comma-separated list of ``*``, host names (which include their subdomains, with or without a leading dot), IP
    addresses and networks in CIDR notation, each with an optional port.
    """

    by_scheme: dict[str, str]
    bypass: str = ""

    @classmethod
    def from_environment(cls) -> Proxies:
        """Read ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, or else the system's settings."""
        found = {scheme: url for scheme, url in _known_proxies().items() if url}
        bypass = found.pop("no", "")
        return cls({scheme: url if "://" in url else f"http://{url}" for scheme, url in found.items()}, bypass)

    def for_url(self, url: Address) -> str | None:
        """Return the proxy URL for ``url``, or ``None`` for a direct connection, as for any loopback address."""
        proxy = self.by_scheme.get(url.scheme) or self.by_scheme.get("all")
        if not proxy or _is_loopback(url.host) or self._bypassed(url.host, url.port or DEFAULT_PORTS[url.scheme]):
            return None
        return proxy

    def _bypassed(self, host: str, port: int) -> bool:
        address = _ip(host)
        for entry in self.bypass.replace(" ", ",").split(","):
            if not entry:
                continue
            if entry == "*":
                return True
            name, entry_port = _split_port(entry)
            if entry_port is not None and entry_port != port:
                continue
            if address is not None:
                if _covers(name, address):
                    return True
            else:
                name = name.lower().removeprefix("*").removeprefix(".")
                if name and (host == name or host.endswith(f".{name}")):
                    return True
        return False


def _known_proxies() -> dict[str, str]:
    # Elsewhere, the system has settings, too.
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return {}
    # Its import takes 10 ms, and so most of the first call of a model, for the mail and cookies of its HTTP client.
    from urllib.request import getproxies

    return getproxies()


def tls_context(network: Network | None = None) -> ssl.SSLContext:
    """Return the TLS context with the trusted authorities and the client certificate.

    ``SSL_CERT_FILE``, else ``REQUESTS_CA_BUNDLE``, else ``SSL_CERT_DIR`` replaces the authorities of the package
    ``certifi``. ``NODE_EXTRA_CA_CERTS`` adds to whichever set is in use, as in Node. The settings of ``network``
    take precedence over the environment.

    Raises:
        OSError: a certificate file cannot be loaded; the message names the variable or option.
    """
    context: ssl.SSLContext | None = None
    if network is not None and network.ca_file:
        context = _load("--cacert", os.path.expanduser(network.ca_file), None)
    elif network is not None and network.insecure:
        context = ssl.create_default_context()
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"):
        path = os.environ.get(variable)
        if path and context is None:
            context = _load(variable, path, None)
    if context is None:
        import certifi

        context = ssl.create_default_context(cafile=certifi.where())
    extra = os.environ.get("NODE_EXTRA_CA_CERTS")
    if extra:
        _load("NODE_EXTRA_CA_CERTS", extra, context)
    if network is not None:
        _adapt(context, network)
    return context


def _adapt(context: ssl.SSLContext, network: Network) -> None:
    if network.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if network.client_cert:
        cert, _, password = network.client_cert.partition(":")
        key = os.path.expanduser(network.client_key) if network.client_key else None
        try:
            context.load_cert_chain(os.path.expanduser(cert), key, password or None)
        except OSError as error:
            raise OSError(f"cannot use {cert!r}, given by --cert: {error.strerror or error}") from None


def _load(variable: str, path: str, context: ssl.SSLContext | None) -> ssl.SSLContext:
    file, folder = (None, path) if os.path.isdir(path) else (path, None)
    try:
        if context is None:
            # Given a file or a folder, create_default_context loads no other certificates.
            return ssl.create_default_context(cafile=file, capath=folder)
        context.load_verify_locations(cafile=file, capath=folder)
    except OSError as error:
        # ssl.SSLError is an OSError too.
        raise OSError(f"cannot load certificates from {path!r}, given by {variable}: {error}") from None
    return context


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _ip(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def _covers(entry: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        network = ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False
    return address.version == network.version and address in network


def _split_port(entry: str) -> tuple[str, int | None]:
    """Split ``host:port``; a bare IPv6 address has colons but no port."""
    host, _, port = entry.rpartition(":")
    if host and port.isdecimal() and (":" not in host or host.endswith("]")):
        return host, int(port)
    return entry, None
