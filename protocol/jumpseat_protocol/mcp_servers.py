"""The configuration of an MCP server, in requests and in files."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import ConfigDict, Field, StrictBool, model_validator

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.wire import Number, WireModel


class McpServerConfig(WireModel):
    """An MCP server: a ``command`` to run, the ``url`` of a running server, or one of an editor.

    ``tools`` are the names of the tools to offer; all by default, and with ``["*"]``. ``timeout`` is that of one
    call, in milliseconds. With ``headers_refresh_ttl_ms``, a client provides headers that are valid for so long.
    A ``disabled`` server is not started until a client enables it. Unknown fields are kept.
    """

    model_config = ConfigDict(extra="allow")
    only_keeps: ClassVar[bool] = True

    type: Literal["local", "stdio", "http", "sse", "acp"] | None = None
    """How the server is reached; ``acp``: over the connection of an editor, which serves it as ``server_id``."""
    server_id: str | None = None
    command: str | None = Field(default=None, min_length=1)
    """The program to run."""
    args: list[str] | None = None
    """Its arguments."""
    env: dict[str, str] | None = Field(default=None, repr=False)
    cwd: PathText | None = None
    url: str | None = Field(default=None, pattern="^https?://[^/]")
    headers: dict[str, str] | None = Field(default=None, repr=False)
    tools: list[str] | None = None
    """The tools to offer; all by default."""
    exclude_tools: list[str] | None = None
    """The tools not to offer."""
    timeout: Number | None = Field(default=None, gt=0)
    """The time limit of a call, in milliseconds."""
    disabled: StrictBool | None = None
    """Whether the server does not start."""
    oauth_client_id: str | None = None
    """The OAuth client to use."""
    oauth_public_client: StrictBool | None = None
    """Whether that client has no secret."""
    oauth_grant_type: Literal["authorization_code", "client_credentials"] | None = None
    """How the server is logged in to; client_credentials for servers in files."""
    oauth_issuer: str | None = Field(default=None, pattern="^https?://[^/]")
    """The authorization server that gets the credentials of the client."""
    oauth_client_secret_env: str | None = Field(default=None, min_length=1)
    """The environment variable with the secret of the client."""
    oauth_private_key_file: PathText | None = None
    """The file with the private key of the client, in PEM form."""
    oauth_signing_algorithm: Literal["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"] | None = None
    """The algorithm of that key; RS256 by default."""
    oauth_scope: str | None = None
    """The scopes to ask for, separated by spaces."""
    headers_refresh_ttl_ms: int | None = Field(default=None, ge=0)
    """How long headers of the client are good, in milliseconds."""

    @model_validator(mode="after")
    def _one_way_in(self) -> McpServerConfig:
        if self.type == "acp":
            if self.server_id is None or self.command is not None or self.url is not None:
                raise ValueError("expected a serverId, and neither a command nor a url")
            return self
        remote = self.type in ("http", "sse") or (self.type is None and self.command is None)
        if remote and self.url is None:
            raise ValueError("expected a command to run, or the url of a server")
        if not remote and self.command is None:
            raise ValueError("expected a command to run")
        if self.command is not None and self.url is not None:
            raise ValueError("expected a command or a url, not both")
        return self

    @property
    def remote(self) -> bool:
        """Return whether the server has a URL."""
        return self.url is not None

    @property
    def transport(self) -> Literal["stdio", "http", "sse", "acp"]:
        if self.type == "acp":
            return "acp"
        if not self.remote:
            return "stdio"
        return "sse" if self.type == "sse" else "http"
