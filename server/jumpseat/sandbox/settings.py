"""The settings of one session's sandbox: those of the operator, and the options of the session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from jumpseat_protocol.sandbox import SandboxConfig

Mode: TypeAlias = Literal["auto", "require", "off"]
"""``auto``: commands are confined where that is possible. ``require``: no command runs unless it is confined."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """The settings of a sandbox; paths may begin with ``~`` and are relative to the working directory.

    ``mcp`` is the mode of MCP servers. ``write`` are further folders that commands may change, ``read_only`` files
    and folders that they may not, ``hide`` those that they may not even read, and ``show`` exceptions from the
    well-known credentials. ``git`` and ``gh`` leave the credentials of that program readable. With
    ``shared_caches``, package managers use the user's caches. ``proxy`` is the address of a proxy for programs.
    ``mechanisms`` are the names of those that may be used; ``None``: all.
    """

    mode: Mode = "off"
    mcp: Mode = "off"
    network: bool = False
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
        return replace(
            self,
            mode="require",
            network=bool(network and network.allow_outbound) or (self.network and network is None),
            write=self.write + tuple(files.readwrite_paths if files else ()),
            read_only=self.read_only + tuple(files.readonly_paths if files else ()),
            hide=self.hide + tuple(files.denied_paths if files else ()),
            git=self.git or bool(config.auth and config.auth.git),
            gh=self.gh or bool(config.auth and config.auth.gh),
            shared_caches=self.shared_caches or config.allow_dev_tool_access,
            working_directory=config.add_current_working_directory,
            proxy=network.proxy.address if network and network.proxy else None,
        )
