"""``sandboxConfig``: the option of a session that confines its commands."""

from __future__ import annotations

from urllib.parse import quote

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import KeyText, PathTexts
from jumpseat_protocol.wire import WireModel


class SandboxFiles(WireModel):
    """Paths that commands may write, may only read, and may not read."""

    readwrite_paths: PathTexts = Field(default_factory=list)
    readonly_paths: PathTexts = Field(default_factory=list)
    denied_paths: PathTexts = Field(default_factory=list)
    clear_policy_on_exit: StrictBool | None = None


class SandboxProxy(WireModel):
    """A proxy for the programs in the sandbox."""

    url: str
    username: str | None = None
    password: KeyText | None = Field(default=None, repr=False)

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
    blocked_hosts: list[str] = Field(default_factory=list)
    allow_outbound: StrictBool = False
    allow_local_network: StrictBool = False
    proxy: SandboxProxy | None = None


class SandboxUserPolicy(WireModel):
    filesystem: SandboxFiles | None = None
    network: SandboxNetwork | None = None


class SandboxAuth(WireModel):
    """Programs whose stored credentials commands may read."""

    git: StrictBool = False
    gh: StrictBool = False


class SandboxConfig(WireModel):
    """With ``enabled``, commands run only if they can be confined.

    With ``allow_dev_tool_access``, package managers use the user's caches.
    """

    enabled: StrictBool
    user_policy: SandboxUserPolicy | None = None
    add_current_working_directory: StrictBool = True
    auth: SandboxAuth | None = None
    allow_dev_tool_access: StrictBool = False

    def without_secrets(self) -> SandboxConfig:
        """Return a copy without the address of a proxy, which may contain a password."""
        policy = self.user_policy
        if policy is None or policy.network is None:
            return self
        network = policy.network.model_copy(update={"proxy": None})
        return self.model_copy(update={"user_policy": policy.model_copy(update={"network": network})})
