"""``sandboxConfig``: the option of a session that confines its commands."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import KeyText, PathTexts
from jumpseat_protocol.wire import WireModel


class SandboxFiles(WireModel):
    """Paths that commands may write, may only read, and may not read."""

    readwrite_paths: PathTexts = Field(default_factory=list)
    """Paths that commands may write."""
    readonly_paths: PathTexts = Field(default_factory=list)
    """Paths that commands may only read."""
    denied_paths: PathTexts = Field(default_factory=list)
    """Paths that commands may not read."""
    clear_policy_on_exit: StrictBool | None = None
    """Has no effect: the policy ends with the session."""


class SandboxProxy(WireModel):
    """A proxy for the programs in the sandbox."""

    url: str
    username: str | None = None
    """The user name."""
    password: KeyText | None = Field(default=None, repr=False)
    """The password."""

    @property
    def address(self) -> str:
        """The URL with the credentials, for ``HTTPS_PROXY``."""
        scheme, separator, rest = self.url.partition("://")
        if self.username is None or not separator:
            return self.url
        password = f":{quote(self.password, safe='')}" if self.password is not None else ""
        return f"{scheme}://{quote(self.username, safe='')}{password}@{rest}"


class SandboxNetwork(WireModel):
    """The hosts that programs may reach.

    With ``allow_outbound``, all hosts; with ``allowed_hosts``, only those. ``blocked_hosts`` are never reached. A
    pattern is a name, an address, ``*.example.com`` or ``*``. If either list is given, programs reach private
    addresses only with ``allow_local_network``, or if ``allowed_hosts`` names them.
    """

    allowed_hosts: list[str] = Field(default_factory=list)
    """The only hosts that may be reached."""
    blocked_hosts: list[str] = Field(default_factory=list)
    """Hosts that may not be reached."""
    allow_outbound: StrictBool = False
    """Whether all hosts may be reached."""
    allow_local_network: StrictBool = False
    """Whether addresses of the local network may be reached."""
    proxy: SandboxProxy | None = None
    """The proxy of the programs."""


class SandboxUserPolicy(WireModel):
    """The permissions of commands in a session's sandbox."""

    filesystem: SandboxFiles | None = None
    """What commands may read and write."""
    network: SandboxNetwork | None = None
    """What commands may reach."""


class SandboxAuth(WireModel):
    """Programs whose stored credentials commands may read."""

    git: StrictBool = False
    """Whether commands may read the credentials of git."""
    gh: StrictBool = False
    """Whether commands may read the credentials of gh."""


class SandboxConfig(WireModel):
    """With ``enabled``, commands run only if they can be confined.

    With ``allow_dev_tool_access``, package managers use the user's caches.
    """

    enabled: StrictBool
    user_policy: SandboxUserPolicy | None = None
    """What commands may read, write and reach."""
    add_current_working_directory: StrictBool = True
    """Whether commands may write the working directory."""
    auth: SandboxAuth | None = None
    """Programs whose credentials commands may read."""
    allow_dev_tool_access: StrictBool = False
    """Whether package managers use the user's caches."""

    def without_secrets(self) -> SandboxConfig:
        """Return a copy without the address of a proxy, which may contain a password."""
        policy = self.user_policy
        if policy is None or policy.network is None:
            return self
        network = policy.network.model_copy(update={"proxy": None})
        return self.model_copy(update={"user_policy": policy.model_copy(update={"network": network})})
