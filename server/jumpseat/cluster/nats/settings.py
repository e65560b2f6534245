"""The settings of ``[store]``, checked and with their defaults."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from jumpseat.config import StoreConfig
from jumpseat.errors import ConfigError
from jumpseat_protocol.structs import Discreet

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


class ClusterSettings(Discreet, Struct, frozen=True):
    """The store of a cluster's sessions, and this replica's part in it.

    ``host`` names the machine whose files local working folders are on; ``shared`` are folders that all hosts have.
    ``copies`` is the number of nodes that store each message. ``patience_s`` is the time that requests wait for
    NATS, of which other limits are shares.
    """

    hidden = ("password", "token", "tls")
    servers: tuple[str, ...]
    name: str
    host: str
    shared: tuple[str, ...] = ()
    copies: int | None = None
    drain_s: float = 20.0
    patience_s: float = 12.0
    retention_s: float | None = None
    user: str | None = None
    password: str | None = None
    token: str | None = None
    credentials: str | None = None
    tls: ssl.SSLContext | None = None

    def host_of(self, cwd: str | None) -> str | None:
        """Return the host that a session with a working directory needs; ``None`` if all have the directory."""
        if cwd is None:
            return None
        path = Path(cwd)
        return None if any(path.is_relative_to(shared) for shared in self.shared) else self.host

    def location_key(self, location: str) -> str:
        """Return the name of approvals for a location: a folder of one host is another folder elsewhere."""
        host = self.host_of(location)
        return location if host is None else f"{host}:{location}"

    def location_of(self, key: str) -> str | None:
        """Return the location with a key; ``None`` if it is a folder of another host."""
        location = key.removeprefix(f"{self.host}:")
        return location if self.location_key(location) == key else None


def cluster_settings(config: StoreConfig, environ: Mapping[str, str]) -> ClusterSettings:
    """Return the settings of a cluster.

    Raises:
        ConfigError: a setting is invalid, or names a variable that is not set.
    """
    assert config.url is not None
    servers = tuple(part.strip() for part in config.url.split(",") if part.strip())
    for server in servers:
        if not server.startswith(("nats://", "tls://")):
            raise ConfigError(
                f"store.url: expected nats:// or tls:// addresses, got {server.partition('@')[2] or server!r}"
            )
        if "@" in server:
            raise ConfigError("store.url: credentials do not belong in this file: use token_env or credentials")
    if not _NAME.fullmatch(config.name):
        raise ConfigError(f"store.name: expected letters, digits, '-' and '_', got {config.name!r}")
    return ClusterSettings(
        servers=servers,
        name=config.name,
        host=config.host or socket.gethostname(),
        shared=tuple(os.path.normpath(os.path.expanduser(path)) for path in config.shared),
        copies=config.copies,
        drain_s=config.drain_s,
        patience_s=config.patience_s,
        retention_s=config.retention_days * 86400 if config.retention_days is not None else None,
        user=config.user,
        password=_variable(config.password_env, "password_env", environ),
        token=_variable(config.token_env, "token_env", environ),
        credentials=None if config.credentials is None else str(Path(config.credentials).expanduser()),
        tls=_tls(config),
    )


def _variable(name: str | None, key: str, environ: Mapping[str, str]) -> str | None:
    if name is None:
        return None
    if not (value := environ.get(name)):
        raise ConfigError(f"store.{key}: the environment variable {name!r} is not set")
    return value


def _tls(config: StoreConfig) -> ssl.SSLContext | None:
    if config.tls_ca is None and config.tls_cert is None:
        return None
    try:
        context = ssl.create_default_context(cafile=config.tls_ca and os.path.expanduser(config.tls_ca))
        if config.tls_cert is not None:
            key = config.tls_key and os.path.expanduser(config.tls_key)
            context.load_cert_chain(os.path.expanduser(config.tls_cert), key)
    except (OSError, ValueError) as error:
        raise ConfigError(f"store.tls_ca, store.tls_cert: cannot be loaded: {error}") from None
    return context
