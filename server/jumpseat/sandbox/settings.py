"""The settings of one session's sandbox: those of the operator, and the options of the session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from jumpseat_protocol.sandbox import SandboxConfig, SandboxNetwork

Mode: TypeAlias = Literal["auto", "require", "off"]
"""``auto``: commands are confined where that is possible. ``require``: no command runs unless it is confined."""

Network: TypeAlias = Literal["approved", "none", "all"]
"""The hosts that commands reach: approved ones, none, or all."""


class SandboxSettings(Struct, frozen=True):
    """The settings of a sandbox; paths may begin with ``~`` and are relative to the working directory.

    ``mcp`` is the mode of MCP servers. ``write`` are further folders that commands may change, ``read_only`` files
    and folders that they may not, ``hide`` those that they may not even read, and ``show`` exceptions from the
    well-known credentials. ``git`` and ``gh`` leave the credentials of that program readable. With
    ``shared_caches``, package managers use the user's caches. ``proxy`` is the address of a proxy for programs.
    ``mechanisms`` are the names of the permitted mechanisms; ``None`` permits all.

    With the network ``approved``, commands reach ``hosts`` except for ``blocked_hosts``; both are patterns of
    ``hosts.py``. With ``asks``, they also reach the hosts that they were approved for, and a person is asked about
    others. ``local_network`` opens private addresses.
    """

    mode: Mode = "off"
    mcp: Mode = "off"
    network: Network = "approved"
    hosts: tuple[str, ...] = ()
    blocked_hosts: tuple[str, ...] = ()
    asks: bool = True
    local_network: bool = False
    write: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    git: bool = False
    gh: bool = False
    shared_caches: bool = False
    working_directory: bool = True
    proxy: str | None = None
    mechanisms: tuple[str, ...] | None = None

    def for_session(self, config: SandboxConfig | None) -> SandboxSettings:
        """Return the settings of a session with this ``sandboxConfig``.

        A session cannot switch off a sandbox that the operator requires.
        """
        if config is None:
            return self
        if not config.enabled:
            return self if self.mode == "require" else replace(self, mode="off")
        policy = config.user_policy
        files = policy.filesystem if policy else None
        network = policy.network if policy else None
        chosen = self if network is None else self._with_network(network)
        return replace(
            chosen,
            mode="require",
            write=self.write + tuple(files.readwrite_paths if files else ()),
            read_only=self.read_only + tuple(files.readonly_paths if files else ()),
            hide=self.hide + tuple(files.denied_paths if files else ()),
            git=self.git or bool(config.auth and config.auth.git),
            gh=self.gh or bool(config.auth and config.auth.gh),
            shared_caches=self.shared_caches or config.allow_dev_tool_access,
            working_directory=config.add_current_working_directory,
        )

    def _with_network(self, chosen: SandboxNetwork) -> SandboxSettings:
        """Return the settings with the network of a session's options; no question is asked about other hosts."""
        changed = replace(
            self,
            asks=False,
            local_network=chosen.allow_local_network,
            proxy=chosen.proxy.address if chosen.proxy else None,
        )
        if not chosen.allow_outbound:
            return replace(changed, network="none")
        if not chosen.allowed_hosts and not chosen.blocked_hosts:
            return replace(changed, network="all")
        hosts = tuple(chosen.allowed_hosts) or ("*",)
        return replace(changed, network="approved", hosts=hosts, blocked_hosts=tuple(chosen.blocked_hosts))


def any_matches(patterns: Iterable[str], host: str, *, subdomains: bool = False) -> bool:
    """Return whether a pattern covers ``host``, a normalized name or address.

    With ``subdomains``, as for hosts that are blocked, a name covers its subdomains, too.
    """
    return any(_matches(normalize(pattern), host, subdomains) for pattern in patterns)


def normalize(host: str) -> str:
    """Return a host, or a pattern of hosts, in lower case, without brackets and without a final dot."""
    return host.strip().strip("[]").rstrip(".").lower()


def _matches(pattern: str, host: str, subdomains: bool) -> bool:
    if pattern == "*" or pattern == host:
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:])
    return subdomains and bool(pattern) and host.endswith(f".{pattern}")
